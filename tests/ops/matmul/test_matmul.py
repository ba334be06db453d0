"""Matrix products against PyTorch."""

import numpy as np
import pytest
import torch.nn.functional as F

from ops.oracle import check, check_error, normal
from pellucid.ops.matmul.linear import linear

SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 1), (1, 1)),
    ((70, 33), (33, 130)),
    ((64, 16), (16, 64)),
    ((200, 20), (20, 3)),
    ((1, 300), (300, 70)),
    ((4, 130), (130, 9)),
    ((5,), (5,)),
    ((5,), (5, 7)),
    ((7, 5), (5,)),
    ((300, 5), (5,)),
    ((2, 7, 5), (5,)),
    ((5,), (2, 5, 7)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((3, 4), (2, 2, 4, 5)),
    ((2, 1, 3, 1, 6, 5), (1, 4, 3, 2, 5, 7)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul(a, b):
    check(lambda p, a, b: p.matmul(a, b), normal(*a), normal(*b), atol=1e-4)


@pytest.mark.parametrize(
    ("a", "b"),
    [((70, 33), (33, 130)), ((2, 40, 6), (2, 6, 50)), ((3, 64), (64, 5)), ((2, 2, 9, 5), (2, 2, 5, 9))],
)
def test_transposed_operands_are_read_in_place(a, b):
    ta, tb = (*a[:-2], a[-1], a[-2]), (*b[:-2], b[-1], b[-2])
    check(lambda p, a, b: a.transpose(-2, -1) @ b.transpose(-2, -1), normal(*ta), normal(*tb), atol=1e-4)
    check(
        lambda p, a, b: a @ b.transpose(-2, -1), normal(*a), normal(*tb), atol=1e-4, layouts=("contiguous",)
    )
    check(
        lambda p, a, b: a.transpose(-2, -1) @ b, normal(*ta), normal(*b), atol=1e-4, layouts=("contiguous",)
    )


def test_expanded_and_sliced_operands():
    check(lambda p, a, b: a.expand(4, 3, 5) @ b[:, ::2], normal(3, 5), normal(5, 8), atol=1e-4)
    check(lambda p, a, b: a[1:, :, 2:] @ b[..., 1:4], normal(3, 4, 7), normal(2, 5, 6), atol=1e-4)


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 40, 100])
def test_linear(rows):
    x, weight, bias = normal(2, rows, 24), normal(70, 24), normal(70)
    check(
        lambda p, x, w, b: linear(x, w, b),
        x,
        weight,
        bias,
        theirs=lambda p, x, w, b: F.linear(x, w, b),
        atol=1e-4,
    )
    check(lambda p, x, w: linear(x[0], w), x, weight, theirs=lambda p, x, w: F.linear(x[0], w), atol=1e-4)


def test_linear_of_a_vector():
    check(
        lambda p, x, w, b: linear(x, w, b),
        normal(6),
        normal(3, 6),
        normal(3),
        theirs=lambda p, x, w, b: F.linear(x, w, b),
    )


def test_named_products():
    check(lambda p, a, b: p.mm(a, b), normal(3, 4), normal(4, 5))
    check(lambda p, a, b: p.bmm(a, b), normal(2, 3, 4), normal(2, 4, 5))
    check(lambda p, a, b: p.mv(a, b), normal(3, 4), normal(4))
    check(lambda p, a, b: p.dot(a, b), normal(40), normal(40))
    check(lambda p, a, b: p.outer(a, b), normal(4), normal(5))
    check(lambda p, i, a, b: p.addmm(i, a, b), normal(5), normal(3, 4), normal(4, 5))
    check(lambda p, i, a, b: p.addmm(i, a, b, beta=0.5, alpha=2), normal(3, 5), normal(3, 4), normal(4, 5))
    check(lambda p, i, a, b: p.baddbmm(i, a, b, beta=0.5), normal(2, 3, 5), normal(2, 3, 4), normal(2, 4, 5))


def test_half_operands():
    a, b = normal(9, 20).astype(np.float16), normal(20, 6).astype(np.float16)
    check(lambda p, a, b: a @ b, a, b, rtol=5e-3, atol=5e-3)
    check(
        lambda p, a, b: linear(a, b.t()),
        a,
        b,
        theirs=lambda p, a, b: F.linear(a, b.t()),
        rtol=5e-3,
        atol=5e-3,
    )
    check(
        lambda p, a, b: a.bfloat16() @ b.bfloat16(),
        normal(3, 20),
        normal(20, 6),
        rtol=2e-2,
        atol=2e-2,
        grad=False,
    )


def test_integers_on_the_cpu():
    check(lambda p, a, b: a @ b, np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4), devices=("cpu",))


def test_empty():
    check(lambda p, a, b: a @ b, np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32))
    check(lambda p, a, b: a @ b, np.zeros((0, 3), np.float32), normal(3, 4))


def test_errors():
    check_error(lambda p, a, b: a @ b, normal(2, 3), normal(2, 3))
    check_error(lambda p, a, b: p.matmul(a, b), normal(2, 2, 3), normal(3, 3, 4))
    check_error(lambda p, a, b: p.matmul(a, b), np.float32(1), normal(2))
    check_error(lambda p, a, b: p.mm(a, b), normal(2, 2, 3), normal(3, 3))
    check_error(lambda p, a, b: p.bmm(a, b), normal(2, 2, 3), normal(3, 3, 3))
    check_error(lambda p, a, b: p.mv(a, b), normal(2, 3), normal(3, 1))
    check_error(lambda p, a, b: p.dot(a, b), normal(2), normal(3))
    check_error(lambda p, a, b: a @ b, normal(2, 2), np.ones((2, 2), np.int64))
