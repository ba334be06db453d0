"""Sums, products, means, variances, extremes and scans against PyTorch."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import check, check_error, normal

DIMS = [None, 0, 1, -1, (0, 2), (1, 2), (0, 1, 2)]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
def test_over_axes(name, dim, keepdim):
    kwargs = {} if dim is None else {"dim": dim, "keepdim": keepdim}
    check(lambda p, x: getattr(p, name)(x, **kwargs), normal(3, 5, 4))


@pytest.mark.parametrize(
    "shape", [(7000,), (3, 9000), (300, 3, 40), (1200, 33), (2, 700, 3), (1, 1), (600, 2)]
)
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "argmax"])
def test_long_axes_in_several_passes(name, shape):
    for dim in {0, len(shape) - 1}:
        check(
            lambda p, x, d=dim: getattr(p, name)(x, dim=d), normal(*shape), atol=2e-4, layouts=("contiguous",)
        )
    check(lambda p, x: getattr(p, name)(x), normal(*shape), atol=2e-4, layouts=("contiguous",))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8, np.bool_, np.int16])
def test_integers_add_up_in_int64(dtype):
    x = np.random.randint(-100, 100, (40, 50)).astype(dtype)
    check(lambda p, x: (p.sum(x), p.sum(x, 0), p.sum(x, dim=1, keepdim=True)), x)


def test_int64_sums_and_products_are_exact():
    big = np.random.randint(-(2**60), 2**60, (5, 300))
    check(lambda p, x: (x.sum(1), x.prod(0), x.amax(1), x.argmin(0)), big)
    check(lambda p, x: x.cumsum(1), big)


def test_sum_of_another_dtype():
    check(lambda p, x: (x.sum(dtype=p.int64), x.sum(0, dtype=p.int32)), normal(4, 6) * 10, grad=False)
    check(lambda p, x: (x.sum(dtype=p.float32), x.mean(dtype=p.float32)), np.arange(12).reshape(3, 4))


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


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_max_and_min_along_an_axis(name, dim):
    x = np.round(normal(6, 7, 5), 1)
    check(lambda p, x: getattr(p, name)(x, dim), x)
    check(lambda p, x: getattr(x, name)(dim, keepdim=True), x)
    check(lambda p, x: getattr(p, name)(x), x)


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin", "max", "min"])
def test_nan_is_taken_first_and_infinities_count(name):
    x = normal(4, 600)
    x[0, 5] = x[0, 400] = np.nan
    x[1, 3], x[1, 4] = np.inf, -np.inf
    x[2] = -np.inf
    x[3] = 0.0
    x[3, 100] = -0.0
    check(lambda p, x: getattr(p, name)(x, dim=1), x, grad=False)
    check(lambda p, x: getattr(p, name)(x.t(), dim=0), x, grad=False)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_, np.int16])
def test_extremes_of_integers(dtype):
    x = np.random.randint(-100, 100, (8, 90)).astype(dtype)
    check(lambda p, x: (p.amax(x, 1), p.amin(x, 0)), x)
    if dtype != np.bool_:
        check(lambda p, x: (p.argmax(x, 1), p.argmin(x, 0)), x)


def test_argmax_without_dim_counts_through():
    check(lambda p, x: (p.argmax(x), p.argmin(x), x.argmax(keepdim=True)), normal(3, 4, 5))


def test_equal_elements_share_the_gradient():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], np.float32)
    check(lambda p, x: (p.amax(x, 1), p.max(x), p.amin(x)), x)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_products(dim):
    x = normal(4, 5)
    x[1, 2] = 0
    x[2, 2] = x[2, 3] = 0
    check(lambda p, x: p.prod(x) if dim is None else p.prod(x, dim), x)
    check(lambda p, x: p.prod(x) if dim is None else p.prod(x, dim, keepdim=True), normal(4, 5))


@pytest.mark.parametrize("name", ["any", "all", "count_nonzero"])
def test_truth(name):
    x = np.random.randint(0, 2, (5, 6, 40)).astype(np.float32) * normal(5, 6, 40)
    x[0] = 0
    x[1] = 1
    for dim in (0, 1, -1):
        check(lambda p, x, d=dim: getattr(p, name)(x, d), x, grad=False)
        check(lambda p, x, d=dim: getattr(p, name)(x != 0, d), x, grad=False)
    check(lambda p, x: getattr(p, name)(x), x.astype(np.uint8))


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_logsumexp(dim):
    x = normal(6, 7) * 30
    x[0] = -np.inf
    check(lambda p, x: p.logsumexp(x, dim), x, grad=False)
    check(lambda p, x: p.logsumexp(x, dim, keepdim=True), normal(6, 7) * 30)


@pytest.mark.parametrize("name", ["var", "std"])
def test_variance(name):
    x = normal(6, 70) + 5
    check(lambda p, x: (getattr(p, name)(x), getattr(p, name)(x, 1)), x)
    check(lambda p, x: getattr(p, name)(x, dim=(0, 1), correction=0, keepdim=True), x)
    check(lambda p, x: getattr(p, name)(x, 0, unbiased=False), x)


@pytest.mark.parametrize("columns", [1, 5, 300, 9000])
def test_running_sums(columns):
    check(lambda p, x: p.cumsum(x, -1), normal(3, columns), rtol=1e-4, atol=1e-3)
    check(lambda p, x: x.cumsum(0), np.random.randint(-9, 9, (7, columns)))


def test_running_products():
    x = normal(4, 9) + 1.5
    check(lambda p, x: p.cumprod(x, 1), x, rtol=1e-4)
    x[1, 3] = 0
    x[2, 2] = x[2, 6] = 0
    check(lambda p, x: p.cumprod(x, -1), x, rtol=1e-4)
    check(lambda p, x: p.cumsum(x, 0, dtype=p.int64), x, grad=False)


def test_without_axes_and_empty():
    check(
        lambda p, x: (p.sum(x), p.mean(x), p.amax(x), p.prod(x), p.sum(x, 0), p.cumsum(x, 0)), np.float32(3)
    )
    empty = np.zeros((0, 4), np.float32)
    check(
        lambda p, x: (p.sum(x), p.sum(x, 0), p.sum(x, 1), p.prod(x, 0), p.amax(x, 1), p.any(x, 0), p.all(x)),
        empty,
        grad=False,
    )
    assert np.isnan(pellucid.tensor(empty, device="webgpu").mean(0).numpy()).all()


def test_errors():
    x = normal(2, 3)
    check_error(lambda p, x: p.sum(x, 5), x)
    check_error(lambda p, x: p.sum(x, (0, 0)), x)
    check_error(lambda p, x: p.mean(x), np.arange(4))
    check_error(lambda p, x: p.amax(x), np.zeros((0,), np.float32))
    check_error(lambda p, x: p.argmax(x, 0), np.zeros((0, 2), np.float32))
    check_error(lambda p, x: p.cumsum(x, 2), x)


def test_double_backward_through_a_sum_of_squares():
    ours = pellucid.tensor([1.0, 2.0], requires_grad=True, device="webgpu")
    (first,) = pellucid.autograd.grad((ours * ours).sum().log(), ours, create_graph=True)
    (second,) = pellucid.autograd.grad(first.sum(), ours)
    theirs = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad((theirs * theirs).sum().log(), theirs, create_graph=True)
    (expected,) = torch.autograd.grad(first.sum(), theirs)
    np.testing.assert_allclose(second.numpy(), expected.numpy(), rtol=1e-5)
