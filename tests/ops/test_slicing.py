"""Views of parts against PyTorch."""

import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import DTYPES, equal, ours
from pellucid.errors import DimensionError, ShapeError

MOVES = {
    "narrow": lambda p, x: (x.narrow(1, 1, 2), x.narrow(-1, -3, 2)),
    "select": lambda p, x: (x.select(1, 2), x.select(-1, -1)),
    "diagonal": lambda p, x: (x.diagonal(), x.diagonal(1, 1, 2), x.diagonal(-1, 2, 0), x.diagonal(7)),
    "split": lambda p, x: (*x.split(2, 2), *x.split([1, 2], 1), *p.split(x, 3, -1)),
    "chunk": lambda p, x: (*x.chunk(2), *x.chunk(3, 2), *p.chunk(x, 7, 1)),
    "unbind": lambda p, x: (*x.unbind(1), *p.unbind(x)),
}


@pytest.mark.parametrize("name", MOVES)
def test_values_and_gradients(name):
    check(MOVES[name], normal(2, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_moves(dtype):
    x = (torch.arange(24) % (2 if dtype == "bool" else 100)).reshape(2, 3, 4).to(getattr(torch, dtype))
    for device in DEVICES:
        y = ours(x, device)
        for name in ("diagonal", "split"):
            mine, theirs = MOVES[name](pellucid, y), MOVES[name](torch, x)
            for m, t in zip(mine, theirs, strict=True):
                equal(m.contiguous(), t, what=f"{name} on {device}")


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(2, 3, 4, device=device)
    refused = [
        (
            DimensionError,
            r"narrow: start 2 and length 2 do not lie within axis 1 of length 3",
            lambda: x.narrow(1, 2, 2),
        ),
        (ShapeError, r"split: lengths \[1, 1\] must add up to 3", lambda: x.split([1, 1], 1)),
        (ShapeError, r"chunk: chunks must be positive, not 0", lambda: x.chunk(0)),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
