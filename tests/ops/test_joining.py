"""Joining, repeating and reordering against PyTorch."""

import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import DTYPES, equal, ours
from pellucid.errors import ShapeError

MOVES = {
    "cat": lambda p, x: (
        p.cat([x, x[:, 1:]], 1),
        p.cat((x, x.flip(0)), -1),
        p.cat([x[:0], x]),
        p.concat([x, x]),
    ),
    "stack": lambda p, x: (p.stack([x, x * 2]), p.stack((x, x), -1), p.stack([x, x], 1)),
    "hstack and vstack": lambda p, x: (
        p.hstack([x, x]),
        p.vstack([x, x]),
        p.hstack([x[0, 0], x[0, 1]]),
        p.vstack([x[0, 0], x[0, 1]]),
    ),
    "repeat": lambda p, x: (x.repeat(2, 1, 3), x.repeat(2, 1, 1, 2), p.tile(x, (2, 3))),
    "repeat_interleave": lambda p, x: (
        x.repeat_interleave(2),
        x.repeat_interleave(3, 1),
        p.repeat_interleave(x, 2, dim=-1),
    ),
    "flip": lambda p, x: (x.flip(0), x.flip(0, -1), p.flip(x, (1, 2))),
    "roll": lambda p, x: (x.roll(1), x.roll(-1, 0), p.roll(x, (1, 2), (0, 2)), x.roll(5, 1)),
}


@pytest.mark.parametrize("name", MOVES)
def test_values_and_gradients(name):
    check(MOVES[name], normal(2, 3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_moves(dtype):
    x = (torch.arange(24) % (2 if dtype == "bool" else 100)).reshape(2, 3, 4).to(getattr(torch, dtype))
    for device in DEVICES:
        y = ours(x, device)
        for name in ("cat", "stack", "flip", "roll", "repeat"):
            mine, theirs = MOVES[name](pellucid, y), MOVES[name](torch, x)
            for m, t in zip(mine, theirs, strict=True):
                equal(m.contiguous(), t, what=f"{name} on {device}")


@pytest.mark.parametrize("device", DEVICES)
def test_refused(device):
    x = pellucid.zeros(2, 3, 4, device=device)
    refused = [
        (
            ShapeError,
            r"shapes \(2, 3, 4\), \(2, 3, 3\) must agree in every axis but 0",
            lambda: pellucid.cat([x, x[:, :, 1:]]),
        ),
        (ShapeError, r"stack: shapes", lambda: pellucid.stack([x, x[0]])),
        (TypeError, r"non-empty tuple or list of tensors", lambda: pellucid.cat([])),
    ]
    for error, message, call in refused:
        with pytest.raises(error, match=message):
            call()
