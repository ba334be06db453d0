"""Densities, entropies, moments and their gradients are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pellucid
from distributions.rows import ROWS, Row, both

DEVICES = ["cpu", "webgpu"]


def close(ours: Any, theirs: Any, row: Row, wide: float = 1, said: str = "") -> None:
    assert tuple(ours.shape) == tuple(theirs.shape), said
    assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2], said
    np.testing.assert_allclose(
        ours.detach().cpu().numpy(),
        theirs.detach().numpy(),
        rtol=wide * row.rtol,
        atol=wide * row.atol,
        err_msg=said,
    )


def asked(distribution: Any, name: str, value: Any) -> Any:
    """What a distribution answers, or None if there is no answer."""
    try:
        found = getattr(distribution, name)
        if name in ("log_prob", "cdf", "icdf"):
            return found(value)
        return found() if callable(found) else found
    except NotImplementedError:
        return None


def values(row: Row, theirs: Any, device: str) -> tuple[dict, dict]:
    torch.manual_seed(3)
    drawn = theirs.sample((2,)).detach()
    share = (
        torch.linspace(0.1, 0.9, 2).reshape(-1, *[1] * len(theirs.batch_shape)).expand(2, *theirs.batch_shape)
    )
    given = {"log_prob": drawn, "cdf": drawn, "icdf": share}
    return given, {n: pellucid.tensor(v.numpy(), device=device) for n, v in given.items()}


@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("key", ROWS)
def test_values_and_gradients(key, device):
    row = ROWS[key]
    with pellucid.device(device):
        ours, leaves, theirs, their_leaves = both(row, device)
    given, here = values(row, theirs, device)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    totals: list[Any] = [0, 0]
    for name in ("mean", "mode", "variance", "stddev", "entropy", "log_prob", "cdf", "icdf"):
        expected = asked(theirs, name, given.get(name))
        if expected is None or name in row.without:
            continue
        found = asked(ours, name, here.get(name))
        assert found is not None, name
        close(found, expected, row, said=name)
        smooth = name in ("entropy", "log_prob", "cdf", "variance") and name not in row.rough
        if smooth and expected.requires_grad and expected.isfinite().all():
            totals = [totals[0] + found.sum(), totals[1] + expected.sum()]
    if leaves and not isinstance(totals[0], int):
        slopes = pellucid.autograd.grad(totals[0], leaves, allow_unused=True)
        expected = torch.autograd.grad(totals[1], their_leaves, allow_unused=True)
        for a, b in zip(slopes, expected, strict=True):
            close(
                a if a is not None else pellucid.zeros(()), b if b is not None else torch.zeros(()), row, 10
            )
