"""Transforms of long signals are as accurate as PyTorch's, whatever the factors of their length."""

import numpy as np
import pytest
import torch

import pellucid
from ops.each_variant import device, dispatches, variant  # noqa: F401
from pellucid.ops.fft import transform
from pellucid.ops.fft.transform import radices

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("n", [1 << 14, 3**7, 2 * 53 * 61, 4093, 30030])
def test_error_is_that_of_pytorch(n):
    """Fours, threes, large primes, one prime for all, and many primes."""
    random = np.random.default_rng(n)
    x = (random.standard_normal(n) + 1j * random.standard_normal(n)).astype(np.complex64)
    exact = np.fft.fft(x.astype(np.complex128))

    def error(t) -> float:
        return float(np.linalg.norm(t.fft.fft(t.tensor(x)).numpy() - exact) / np.linalg.norm(exact))

    assert error(pellucid) <= 1.5 * error(torch)


@pytest.mark.parametrize("n", [32, 64, 128, 512, 1024, 2048, 4096, 8192])
@pytest.mark.parametrize("rows", [1, 7])
def test_rows_of_powers_of_two(n, rows, variant):  # noqa: F811
    """A GPU holds them in workgroup memory up to a length."""
    random = np.random.default_rng(n)
    x = (random.standard_normal((rows, n)) + 1j * random.standard_normal((rows, n))).astype(np.complex64)
    exact, ours = np.fft.fft(x.astype(np.complex128)), device(x)

    def error(found: np.ndarray, of: np.ndarray) -> float:
        return float(np.linalg.norm(found - of) / np.linalg.norm(of))

    most = 1.5 * error(torch.fft.fft(torch.tensor(x)).numpy(), exact)
    assert error(pellucid.fft.fft(ours).numpy(), exact) <= most
    assert error(pellucid.fft.ifft(ours, norm="forward").numpy(), np.fft.ifft(x, norm="forward")) <= 2 * most
    real = np.ascontiguousarray(x.real)
    assert error(pellucid.fft.rfft(device(real)).numpy(), np.fft.rfft(real)) <= 2 * most
    if variant != "direct" and 64 <= n <= 1024:
        assert dispatches(lambda: pellucid.fft.fft(ours)) == 1


@pytest.mark.parametrize("n", [256, 512, 1024])
def test_lanes_make_several_times_four_elements(n, variant, monkeypatch):  # noqa: F811
    monkeypatch.setattr(transform, "_LANES", 64)
    random = np.random.default_rng(n)
    x = (random.standard_normal((3, n)) + 1j * random.standard_normal((3, n))).astype(np.complex64)
    ours = device(x)
    np.testing.assert_allclose(pellucid.fft.fft(ours).numpy(), np.fft.fft(x), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pellucid.fft.ifft(ours).numpy(), np.fft.ifft(x), rtol=1e-4, atol=1e-4)
    if variant != "direct":
        assert dispatches(lambda: pellucid.fft.fft(ours)) == 1


@pytest.mark.parametrize("n", [1, 2, 12, 120, 61 * 4, 67, 1 << 20])
def test_radices_make_the_length(n):
    assert np.prod(radices(n)) == n
    assert all(radix == 4 or all(radix % d for d in range(2, radix)) for radix in radices(n))
