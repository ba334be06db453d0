"""Transforms of long signals are as accurate as PyTorch's, whatever the factors of their length."""

import numpy as np
import pytest
import torch

import pellucid
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


@pytest.mark.parametrize("n", [1, 2, 12, 120, 61 * 4, 67, 1 << 20])
def test_radices_make_the_length(n):
    assert np.prod(radices(n)) == n
    assert all(radix == 4 or all(radix % d for d in range(2, radix)) for radix in radices(n))
