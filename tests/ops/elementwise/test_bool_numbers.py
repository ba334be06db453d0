"""A number that meets a bool tensor is true unless it is zero: fractions, multiples of 2**32, NaN."""

import math

import pytest
import torch

import pellucid
from ops.oracle import DEVICES

NUMBERS = [0.5, -0.25, 1e-30, 1e-45, 1e300, 2**32, -(2**40), math.nan, math.inf, 0, -0.0, 1, True, False]


def put(x, where, value):
    x[where] = value
    return x


WAYS = {
    "fill_": lambda m, x, v: x.fill_(v),
    "masked_fill": lambda m, x, v: x.masked_fill(x.logical_not(), v),
    "masked_fill_": lambda m, x, v: x.masked_fill_(x.logical_not(), v),
    "setitem": lambda m, x, v: put(x, slice(None), v),
    "setitem strided": lambda m, x, v: put(x, slice(None, None, 2), v),
    "setitem by a mask": lambda m, x, v: put(x, x.logical_not(), v),
    "full": lambda m, x, v: m.full_like(x, v),
    "new_full": lambda m, x, v: x.new_full((5,), v),
    "pad": lambda m, x, v: m.nn.functional.pad(x, (1, 2), value=v),
    "scatter": lambda m, x, v: x.scatter(0, x.to(m.int64), v),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("way", WAYS)
def test_numbers_in_bool_tensors(way, device):
    held = [True, False, False, True, False]
    for v in NUMBERS:
        theirs = WAYS[way](torch, torch.tensor(held), v)
        # Three times, so that the kernel is also a fused one whose number changes.
        for _ in range(3):
            mine = WAYS[way](pellucid, pellucid.tensor(held, device=device), v)
            assert mine.dtype is pellucid.bool_
            assert mine.tolist() == theirs.tolist(), v
