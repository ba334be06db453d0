"""Edge values as tensors of PyTorch, the same tensor here, and whether two are equal."""

import numpy as np
import torch

import pellucid
from samples import elementwise


def edges(dtype: str) -> torch.Tensor:
    """The edge values of a dtype."""
    return torch.tensor(elementwise.edges(dtype)).to(getattr(torch, dtype))


def ours(t: torch.Tensor, device: str) -> pellucid.Tensor:
    """The same tensor here."""
    name = str(t.dtype).removeprefix("torch.")
    values = t.detach().float() if t.dtype is torch.bfloat16 else t.detach()
    return pellucid.tensor(
        values.numpy(), dtype=getattr(pellucid, f"{name}_" if name == "bool" else name), device=device
    )


def equal(mine: pellucid.Tensor, theirs: torch.Tensor, rtol: float = 0.0, what: str = "") -> None:
    """Shape, dtype and values agree, NaN with NaN and infinities exactly."""
    assert tuple(mine.shape) == tuple(theirs.shape), what
    assert mine.dtype.name == str(theirs.dtype).removeprefix("torch."), what
    expected = (theirs.float() if theirs.dtype is torch.bfloat16 else theirs).detach().numpy()
    np.testing.assert_allclose(
        mine.detach().numpy(), expected, rtol=rtol, atol=0, equal_nan=True, err_msg=what
    )
