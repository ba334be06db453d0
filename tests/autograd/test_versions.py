"""A saved value that is written before the walk: the walk fails, or its gradient is that of the value before,
whatever wrote it and through whatever shares its memory.
"""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.errors import GradientError

VALUES = np.linspace(0.2, 0.8, 6, dtype=np.float32).reshape(2, 3)


def F(p):
    return p.nn.functional


USES = {
    "mul": lambda p, y: (y * y).sum(),
    "exp": lambda p, y: y.exp().sum(),
    "sqrt": lambda p, y: y.sqrt().sum(),
    "pow": lambda p, y: (y**3).sum(),
    "div": lambda p, y: (1 / y).sum(),
    "norm": lambda p, y: y.norm(),
    "std": lambda p, y: y.std(),
    "prod": lambda p, y: y.prod(),
    "cumprod": lambda p, y: y.cumprod(1).sum(),
    "max": lambda p, y: y.max(),
    "max along": lambda p, y: y.max(0).values.sum(),
    "sort": lambda p, y: (y.sort(1).values * 2).sum(),
    "clamp": lambda p, y: y.clamp(0.3, 0.6).sum(),
    "where": lambda p, y: p.where(y > 0.4, y, y * 2).sum(),
    "mish": lambda p, y: F(p).mish(y).sum(),
    "gelu": lambda p, y: F(p).gelu(y).sum(),
    "softmax": lambda p, y: (y.softmax(1) * y.softmax(1)).sum(),
    "layer_norm": lambda p, y: F(p).layer_norm(y, (3,)).square().sum(),
    "matmul": lambda p, y: (y @ y.T).sum(),
    "cat": lambda p, y: p.cat([y, y * y]).sum(),
    "lookup": lambda p, y: y[[0, 1]].sin().sum(),
    "huber_loss": lambda p, y: F(p).huber_loss(y, y.detach() * 2),
    "binary_cross_entropy": lambda p, y: F(p).binary_cross_entropy(y, y.detach() * 0 + 0.5),
    "cosine_similarity": lambda p, y: F(p).cosine_similarity(y, y.flip(0)).sum(),
}

WRITES = {
    "zero_": lambda part: part.zero_(),
    "mul_": lambda part: part.mul_(2),
    "uniform_": lambda part: part.uniform_(),
    "copy_": lambda part: part.copy_(part.detach() * 2),
    "setitem": lambda part: part.__setitem__(..., 9.0),
    "masked_fill_": lambda part: part.masked_fill_(part.detach() > 0.3, 2.0),
}

PLACES = {
    "itself": lambda y: y,
    "a row": lambda y: y[0],
    "another shape": lambda y: y.view(-1),
    "detached": lambda y: y.detach()[1],
    "transposed": lambda y: y.T,
}


@pytest.mark.parametrize("name", USES)
def test_what_was_saved_is_written(name):
    x = torch.tensor(VALUES, requires_grad=True)
    USES[name](torch, x * 1).backward()
    for write, place, recorded in ((w, v, r) for w in WRITES for v in PLACES for r in (True, False)):
        ours = pellucid.tensor(VALUES, requires_grad=True, device="cpu")
        y = ours * 1
        out = USES[name](pellucid, y)
        with pellucid.set_grad_enabled(recorded):
            WRITES[write](PLACES[place](y))
        try:
            out.backward()
        except GradientError as error:
            if "was changed in place after it was used" in str(error):
                continue
            raise
        np.testing.assert_allclose(
            ours.grad.numpy(), x.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=f"{write} of {place}"
        )
