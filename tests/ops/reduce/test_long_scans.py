"""Products, and running sums and products, over long axes, whose parts leave the range of floats, and the
whole does not."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES

pytestmark = pytest.mark.gpu
N = 50_000


def factors(name: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.99, 1.01, N).astype(np.float32)
    if name == "halves and twos":
        x = np.where(np.arange(N) % 1800 < 900, 2, 0.5).astype(np.float32)
    elif name == "alternating":
        x = np.where(np.arange(N) % 2, 2, 0.5).astype(np.float32)
    elif name == "down and up":
        x[:1000], x[1000:2000] = 0.93, 1.08
    elif name == "signs":
        x *= np.where(rng.random(N) < 0.5, -1, 1).astype(np.float32)
    elif name != "near one":
        x[N // 2] = float(name)
        x[N - 100] = 0 if name == "inf" else np.inf
    return x


NAMES = [
    "near one", "halves and twos", "alternating", "down and up", "signs", "0", "inf", "-inf", "nan", "-0.0",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_running_products(name):
    x = factors(name)
    ours = pellucid.tensor(x, device="webgpu").cumprod(0).numpy()
    theirs = torch.tensor(x).double().cumprod(0).float().numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1.2e-38)
    is_number = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.signbit(ours)[is_number], np.signbit(theirs)[is_number])


def test_running_products_of_rows():
    x = np.random.default_rng(1).standard_normal((3, 2, 2100)).astype(np.float32)
    for dim in range(3):
        ours = pellucid.tensor(x, device="webgpu").cumprod(dim).numpy()
        np.testing.assert_allclose(ours, torch.tensor(x).cumprod(dim).numpy(), rtol=1e-6, atol=1.2e-38)
    halves = pellucid.tensor(x[0], device="webgpu").half().cumprod(1)
    theirs = torch.tensor(x[0]).half().cumprod(1)
    np.testing.assert_allclose(halves[:, :50].numpy(), theirs[:, :50].numpy(), rtol=3e-3, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [*NAMES, "up", "far down and up"])
def test_products(name, device):
    """The product of all, and of rows along each axis, is that of numbers of any range."""
    if name == "up":
        x = np.exp2(np.linspace(-9, 9, N).round()).astype(np.float32)
    elif name == "far down and up":
        x = np.repeat(np.array([1e-3, 1e3], np.float32), N // 2)
    else:
        x = factors(name)
    with np.errstate(all="ignore"):
        size = np.exp(np.log(np.abs(x.astype(np.float64))).sum())
        exact = np.float32(size * np.prod(np.sign(x)))
    wide = np.stack([x, x[::-1]])
    for ours in (
        pellucid.tensor(x, device=device).prod(),
        pellucid.tensor(wide, device=device).prod(1),
        pellucid.tensor(wide.T.copy(), device=device).prod(0),
        pellucid.tensor(wide.reshape(2, 50, -1), device=device).flatten(1).prod(1),
        pellucid.tensor(x.reshape(5, 1, -1), device=device).prod(),
    ):
        np.testing.assert_allclose(ours.numpy(), np.broadcast_to(exact, ours.shape), rtol=2e-4, atol=1.2e-38)


@pytest.mark.parametrize("device", DEVICES)
def test_products_of_other_types(device):
    for dtype in ("float16", "bfloat16"):
        x = pellucid.full((N,), 2.0, dtype=getattr(pellucid, dtype), device=device)
        x[: N // 2] = 0.5
        assert x.prod().tolist() == 1
        assert x.prod().dtype is x.dtype
        assert x.prod(dtype=pellucid.float32).item() == 1


@pytest.mark.parametrize("count", [4000, 1_000_000])
def test_small_numbers_added_to_large_sums(count):
    x = np.full(count, 0.1, np.float32)
    ours = pellucid.tensor(x, device="webgpu").cumsum(0).numpy()
    np.testing.assert_allclose(ours, x.astype(np.float64).cumsum(), rtol=5e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_running_sums(value):
    x = np.random.default_rng(2).integers(-3, 4, N).astype(np.float32)
    x[N // 2], x[N - 9] = value, -np.inf
    ours = pellucid.tensor(x, device="webgpu").cumsum(0).numpy()
    np.testing.assert_array_equal(ours, torch.tensor(x).cumsum(0).numpy())
