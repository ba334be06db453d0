"""Softmax and log-softmax against PyTorch."""

import numpy as np
import pytest

import pellucid
from ops.oracle import check, check_error, normal
from pellucid.errors import DTypeError


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((3, 50), 1),
        ((3, 50), 0),
        ((2, 3, 4), 1),
        ((5, 700), -1),
        ((7,), 0),
        ((), 0),
        ((2, 20000), 1),
        ((9000, 3), 0),
    ],
)
def test_along_an_axis(name, shape, dim):
    check(lambda p, x: getattr(p, name)(x, dim), normal(*shape) * 5, atol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("columns", [40, 10000])
def test_special_rows(name, columns):
    x = normal(7, columns) * 10
    x[1, 3] = np.nan
    x[2, 3] = np.inf
    x[3] = -np.inf
    x[4] = np.finfo(np.float32).min
    x[5, 1:] = -np.inf
    x[6] = -1e9
    check(lambda p, x: getattr(p, name)(x, -1), x, grad=False)


def test_another_dtype_and_half():
    check(lambda p, x: p.softmax(x, 0, dtype=p.float32), np.arange(5), grad=False)
    check(
        lambda p, x: (p.softmax(x, 1), p.log_softmax(x, 1)),
        normal(3, 33).astype(np.float16),
        rtol=2e-3,
        atol=2e-3,
    )


def test_large_values_do_not_overflow():
    check(lambda p, x: (p.softmax(x, 1), p.log_softmax(x, 1)), normal(3, 9) * 1e4)


def test_empty():
    check(lambda p, x: p.softmax(x, 1), np.zeros((3, 0), np.float32), grad=False)
    check(lambda p, x: p.log_softmax(x, 1), np.zeros((0, 3), np.float32), grad=False)


def test_errors():
    check_error(lambda p, x: p.softmax(x, 2), normal(2, 3))
    with pytest.raises(DTypeError, match="int64"):
        pellucid.softmax(pellucid.tensor([1, 2]), 0)
