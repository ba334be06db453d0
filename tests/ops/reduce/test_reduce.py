"""Sums, products, means, variances, extremes and scans against PyTorch."""

import numpy as np
import pytest

import pellucid
from ops.oracle import check, normal


def test_half_precision_accumulates_in_float32():
    x = np.full((3, 5000), 100.0, np.float16)
    x[:, ::2] = -99
    check(lambda p, x: (x.sum(1), x.mean(1), x.amax(1)), x, rtol=1e-3, atol=1e-3, grad=False)


def test_large_sum_is_accurate():
    x = (np.random.random(1_000_000) + 1).astype(np.float32)
    exact = x.astype(np.float64).sum()
    assert abs(pellucid.tensor(x, device="webgpu").sum().item() - exact) / exact < 3e-7


def test_vocabulary_argmax():
    for columns in (49152, 151936):
        x = normal(2, columns)
        x[0, 777] = x[0, 40000] = 9
        x[1, columns - 1] = 9
        ours = pellucid.tensor(x, device="webgpu").argmax(-1)
        assert ours.tolist() == [777, columns - 1]


@pytest.mark.parametrize("columns", [5000, 20_000, 5_000_000])
def test_variance_of_long_rows(columns, monkeypatch):
    """In tiles and in parts; of numbers whose squares leave float32, and of blocks that are far apart."""
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    rng = np.random.default_rng(columns)
    plain = rng.standard_normal(columns).astype(np.float32)
    blocks = np.where(np.arange(columns) < 4096, plain, 1000 + plain).astype(np.float32)
    for x in (plain, 5 + plain, blocks, 1e17 * plain, 1e30 * (3 + plain)):
        ours = pellucid.tensor(x, device="webgpu")
        np.testing.assert_allclose(ours.std().item(), x.astype(np.float64).std(ddof=1), rtol=2e-6)
    for value in (np.nan, np.inf, -np.inf):
        plain[columns // 3] = value
        assert np.isnan(pellucid.tensor(plain, device="webgpu").var().item())


@pytest.mark.parametrize("shape", [(8, 40), (1, 4000), (3, 20000)])
@pytest.mark.parametrize("kernels", ["", "shared"])
def test_variance_of_a_small_spread_far_from_zero(shape, kernels, monkeypatch):
    """Means are rounded, and what they leave out is taken off: else it would be 3 % of the variance here."""
    monkeypatch.setenv("PELLUCID_KERNELS", kernels)
    rng = np.random.default_rng(shape[1])
    x = (1e5 + 0.05 * rng.standard_normal(shape)).astype(np.float32)
    ours = pellucid.tensor(x, device="webgpu").var(-1, correction=0).numpy()
    tolerance = 1e-6 if kernels else 3e-2
    np.testing.assert_allclose(ours, x.astype(np.float64).var(-1), rtol=tolerance)


@pytest.mark.parametrize("columns", [5, 20, 300, 5000])
def test_variance_of_a_row_with_one_large_element(columns, monkeypatch):
    """Its lane goes another way than the others."""
    monkeypatch.setenv("PELLUCID_KERNELS", "shared")
    x = normal(2, columns)
    x[:, 0] = 3e18
    ours = pellucid.tensor(x, device="webgpu").var(-1).numpy()
    np.testing.assert_allclose(ours, x.astype(np.float64).var(-1, ddof=1), rtol=2e-6)


@pytest.mark.parametrize(("shape", "dim"), [((70, 40), 0), ((3, 5000), 1), ((2, 9, 5), (0, 2))])
def test_variance_on_the_cpu_device_far_from_zero(shape, dim):
    x = (1e6 + normal(*shape)).astype(np.float32)
    ours = pellucid.tensor(x, device="cpu")
    expected = x.astype(np.float64).var(dim, ddof=1)
    np.testing.assert_allclose(ours.var(dim).numpy(), expected, rtol=2e-7)
    np.testing.assert_allclose(ours.std(dim).numpy(), np.sqrt(expected), rtol=2e-7)


@pytest.mark.parametrize(("shape", "dim"), [((7, 900), 1), ((3, 1), 1), ((2, 300, 40), 1), ((100_003,), 0)])
@pytest.mark.parametrize("kernels", ["", "shared"])
def test_logarithms_of_sums_beside_what_is_not_finite(shape, dim, kernels, monkeypatch):
    """Shares of a lane without NaN and +inf go another way than those with one."""
    monkeypatch.setenv("PELLUCID_KERNELS", kernels)
    finite = 60 * normal(*shape)
    for values in ((), (-np.inf,), (np.inf,), (np.nan,), (np.inf, np.nan, -np.inf), (np.finfo("f4").min,)):
        x = finite.copy()
        places = np.random.default_rng(len(values)).permutation(x.size)
        for place, value in zip(places, values, strict=False):
            x.flat[place] = value
        check(lambda p, x: p.logsumexp(x, dim), x, rtol=2e-5, atol=2e-6)
    for value in (-np.inf, np.inf, np.finfo("f4").min):
        x = np.full(shape, value, np.float32)
        check(lambda p, x: (p.logsumexp(x, dim), p.softmax(x, dim)), x, rtol=2e-5, grad=False)
