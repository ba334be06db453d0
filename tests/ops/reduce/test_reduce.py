"""Sums, products, means, variances, extremes and scans against PyTorch."""

import numpy as np

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
