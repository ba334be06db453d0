"""Powers of floats: to an ulp or two, with IEEE's special values."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES

pytestmark = pytest.mark.gpu
SPECIAL = np.array(
    [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 2.5, -2.5, 1e30, -1e30, 16777216, 16777217, -16777215, 127, 24,
     np.inf, -np.inf, np.nan, 0.9999999, 1.0000001, 1e-30],
    np.float32
)  # fmt: skip


def made(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return pellucid.tensor(x, device="webgpu").pow(pellucid.tensor(y, device="webgpu")).numpy()


def spread(seed: int, low: float, high: float, count: int = 40_000) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        (spread(0, 0, 10), spread(1, -9, 9), 2e-7),
        (np.exp2(spread(2, -126, 127)), spread(3, -3, 3), 2.5e-7),
        (np.float32(1) + spread(4, -0.1, 0.1), np.exp2(spread(5, 0, 10)), 4e-7),
        (np.float32(1) + spread(6, -1e-4, 1e-4), -np.exp2(spread(7, 10, 20)), 4e-7),
        (spread(10, 0.6, 1.7), np.exp2(spread(11, 0, 9)), 4e-7),
        (-spread(8, 0, 10), np.round(spread(9, -40, 40)), 2.5e-7),
    ],
)
def test_errors(x, y, error):
    with np.errstate(over="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    is_normal = (np.abs(exact) > 1.2e-38) & (np.abs(exact) < 3.4e38)
    ours = made(x, y)[is_normal].astype(np.float64)
    assert (np.abs(ours / exact[is_normal] - 1)).max() < error


def test_special_values():
    x, y = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    ours, theirs = made(x, y), torch.tensor(x).pow(torch.tensor(y)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=2.5e-7, atol=1.2e-38)
    is_number = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.signbit(ours)[is_number], np.signbit(theirs)[is_number])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("exponent", [0.5, -0.5, 2, 3.0, -1.0, -2.0, 1.5])
def test_special_values_to_a_number(exponent, device):
    """Of numbers a half is a root: -0 stays itself, and -inf has none. Not so in float16."""
    for dtype in ("float32", "bfloat16", "float16"):
        theirs = torch.tensor(SPECIAL, dtype=getattr(torch, dtype)).pow(exponent).float().numpy()
        x = pellucid.tensor(SPECIAL, dtype=getattr(pellucid, dtype), device=device)
        ours = x.pow(exponent).float().numpy()
        rtol, atol = (1e-3, 6e-8) if dtype == "float16" else (2.5e-7, 1.2e-38)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
        is_number = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[is_number], np.signbit(theirs)[is_number])


def test_whole_numbers_have_whole_powers():
    x = np.arange(-60, 61).astype(np.float32)
    for exponent in range(24):
        exact = np.power(x.astype(np.float64), exponent)
        held = np.abs(exact) < 2**24
        np.testing.assert_array_equal(made(x, np.float32(exponent) + 0 * x)[held], exact[held])


def test_subnormal_bases():
    """Where the device keeps them."""
    x = np.array([1e-40, 3e-45, 1e-44], np.float32)
    kept = pellucid.tensor(x, device="webgpu").mul(1).numpy() != 0
    np.testing.assert_allclose(
        made(x, np.float32([0.5, 0.25, -0.5]))[kept],
        np.power(x, np.float32([0.5, 0.25, -0.5]))[kept],
        rtol=1e-6,
    )
