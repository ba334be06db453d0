"""``x[mask] = value`` against PyTorch: one value for all places of a mask is written without a wait."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES, check, normal
from ops.values import equal, ours
from pellucid.device.native import NativeHost

ROWS, COLUMNS = np.array([True, False, True, True]), np.array([False, True, True])
# The same in every process: which tests there are follows from them.
_RNG = np.random.default_rng(0)
PAIRS, ALL = _RNG.random((4, 3)) > 0.5, _RNG.random((4, 3, 5)) > 0.5
# What makes a key of a mask, by name, and the mask.
KEYS = {
    "the first axis": (ROWS, lambda m: m),
    "two axes": (PAIRS, lambda m: m),
    "all axes": (ALL, lambda m: m),
    "an axis in the middle": (COLUMNS, lambda m: (slice(None), m)),
    "behind an integer": (COLUMNS, lambda m: (1, m, slice(0, 2))),
    "before an integer": (ROWS, lambda m: (m, 2)),
    "below a new axis": (ROWS, lambda m: (None, m, Ellipsis, 0)),
    "behind an ellipsis": (ALL[0, 0], lambda m: (Ellipsis, m)),
    "between steps": (COLUMNS, lambda m: (slice(None, None, 2), m, slice(None, None, 2))),
    "nothing": (ROWS & False, lambda m: m),
}
VALUES = {
    "one": normal(1)[0],
    "of one element": normal(1),
    "of more axes": normal(1, 1, 1, 1, 1),
    "a row": normal(5),
    "two columns": normal(2),
    "a matrix": normal(3, 5),
    "one for each row": normal(4, 1),
}


def fits(key: str, value: str) -> bool:
    x, (mask, make) = torch.zeros(4, 3, 5), KEYS[key]
    try:
        x[make(torch.tensor(mask))] = torch.tensor(VALUES[value])
    except (RuntimeError, IndexError):
        return False
    return True


@pytest.mark.parametrize(("key", "value"), [(k, v) for k in KEYS for v in VALUES if fits(k, v)])
def test_values_and_gradients(key, value):
    mask, make = KEYS[key]

    def function(p, x, v, m):
        y = x * 1
        y[make(m)] = v * 2
        return y * y

    check(function, normal(4, 3, 5), VALUES[value], mask, layouts=("contiguous",))


@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("value", [3, True, 2.5, float("inf")])
@pytest.mark.parametrize("device", DEVICES)
def test_numbers_become_elements(device, value, dtype):
    if value == float("inf") and dtype in ("int64", "uint8"):
        return
    for mask, make in KEYS.values():
        theirs = torch.tensor(normal(4, 3, 5)).to(getattr(torch, dtype))
        mine = ours(theirs, device)
        theirs[make(torch.tensor(mask))] = value
        mine[make(pellucid.tensor(mask, device=device))] = value
        equal(mine, theirs)


def test_nothing_waits(monkeypatch):
    x = pellucid.tensor(normal(4, 3, 5), device="webgpu", requires_grad=True)
    rows, pairs = pellucid.tensor(ROWS, device="webgpu"), pellucid.tensor(PAIRS, device="webgpu")
    token = pellucid.tensor(normal(5), device="webgpu", requires_grad=True)

    def fail(*_):
        raise AssertionError("read")

    monkeypatch.setattr(NativeHost, "begin_read", fail)
    y = x * 1
    y[rows] = 0
    y[:, rows[:3]] = token[0]
    y[pairs] = token
    y.sum().backward()
    monkeypatch.undo()
    assert x.grad.shape == x.shape
    assert token.grad.shape == token.shape


@pytest.mark.parametrize("device", DEVICES)
def test_a_mask_or_a_value_that_does_not_fit(device):
    x = pellucid.zeros(4, 3, device=device)
    with pytest.raises(IndexError, match=r"mask of shape \(3,\) does not fit axes 0 to 0 of shape \(4,\)"):
        x[pellucid.tensor(COLUMNS, device=device)] = 1
    with pytest.raises(ValueError, match="broadcast"):
        x[pellucid.tensor(ROWS, device=device)] = pellucid.zeros(2, device=device)
