"""LDL factorization of symmetric matrices that are not definite, with Bunch and Kaufman's pivots."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod, sqrt
from typing import NamedTuple

import numpy as np

from ...op.call import results
from ...op.declaration import function, op
from ...op.rules import on_cpu
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from .lu import size_of
from .matrices import checked, one_batch, square, system, typed

_GROWTH = (1 + sqrt(17)) / 8


@results("linalg_ldl_factor")
class LDL(NamedTuple):
    """L and D in one matrix, and the rows that were exchanged."""

    LD: Tensor
    pivots: Tensor


@results("linalg_ldl_factor_ex")
class LDLEx(NamedTuple):
    """L and D in one matrix, the rows that were exchanged, and 0 or the number of the first block of D
    that is 0."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _pivot(A, k) -> tuple[int, int]:
    """(the row that comes next, the size of its block of D)."""
    below = size_of(A[k + 1 :, k])
    if not below.size or size_of(A[k, k]) >= _GROWTH * below.max():
        return k, 1
    r = k + 1 + int(below.argmax())
    widest = max(size_of(A[r, k:r]).max(), size_of(A[r + 1 :, r]).max(initial=0))
    if size_of(A[k, k]) >= _GROWTH * below.max() * (below.max() / widest):
        return k, 1
    return r, 1 if size_of(A[r, r]) >= _GROWTH * widest else 2


def _factor(A, hermitian) -> tuple[np.ndarray, int]:
    """One lower triangle, in place: (pivots, info)."""
    rows, k, info = len(A), 0, 0
    pivots = np.zeros(rows, np.int32)

    def turned(x):
        return x.conj() if hermitian else x

    while k < rows:
        if not np.abs(A[k:, k]).max() > 0:
            pivots[k], info, k = k + 1, info or k + 1, k + 1
            continue
        p, size = _pivot(A, k)
        at, end = k + size - 1, k + size
        if p != at:
            A[p + 1 :, [at, p]] = A[p + 1 :, [p, at]]
            row, column = turned(A[p, at + 1 : p]).copy(), turned(A[at + 1 : p, at]).copy()
            A[at + 1 : p, at], A[p, at + 1 : p] = row, column
            A[p, at] = turned(A[p, at])
            A[at, at], A[p, p] = A[p, p], A[at, at]
            if size == 2:
                A[at, k], A[p, k] = A[p, k], A[at, k]
        block, old = _block(A, k, size, turned), A[end:, k:end].copy()
        scaled = old @ np.linalg.inv(block)
        A[end:, end:] -= np.tril(scaled @ turned(old).T)
        A[end:, k:end] = scaled
        pivots[k:end] = p + 1 if size == 1 else -(p + 1)
        k = end
    return pivots, info


def _block(A, k, size, turned):
    """A block of D, of which the lower triangle is stored."""
    lower = A[k : k + size, k : k + size]
    return np.tril(lower) + turned(np.tril(lower, -1)).T


def _ldl(A, hermitian):
    LD = np.tril(A).reshape(prod(A.shape[:-2]), *A.shape[-2:])
    found = [_factor(each, hermitian) for each in LD]
    pivots, info = (np.array([each[k] for each in found], np.int32) for k in (0, 1))
    return LD.reshape(A.shape), pivots.reshape(A.shape[:-1]), info.reshape(A.shape[:-2])


@op(
    public="linalg.ldl_factor",
    dtype=typed("own", dt.int32, dt.int32),
    shape=lambda call: (call["A"].shape, call["A"].shape[:-1], Size(square(call["A"])[0])),
    kernel=on_cpu,
    reference=_ldl,
    grad=None,
    outputs=("LD", "pivots", "info"),
)
def factor_symmetric(A: Tensor, hermitian: bool) -> LDLEx:
    """LDL factorization of lower triangles."""


@function(exports="linalg")
def ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLEx:
    """LDL factorization ``P A Pᵀ = L D Lᵀ`` as LAPACK has it; D has blocks of one or two rows. It runs on the
    cpu device, wherever the input is.

    Args:
        input: (..., n, n), symmetric; the lower triangle is read.
        hermitian: of complex matrices: conjugate what is transposed.
        check_errors: read ``info`` and raise.

    Returns:
        (LD, pivots, info); info is int32, 0 or the number of the first block of D that is 0.

    Raises:
        LinAlgError: with check_errors, where info is not 0.
    """
    explain = "block {} of D is 0, so that no system is solved with it."
    return checked(LDLEx(*factor_symmetric(input, hermitian)), explain, check_errors)


@function(exports="linalg")
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> LDL:
    """LDL factorization as `linalg.ldl_solve` takes it: ``(LD, pivots)``; see `linalg.ldl_factor_ex`.

    Raises:
        LinAlgError: a block of D is 0.
    """
    return LDL(*ldl_factor_ex(input, hermitian=hermitian, check_errors=True)[:2])


def _solve_one(A, pivots, X, hermitian) -> None:
    """``A X = B`` in the place of B."""

    def turned(x):
        return x.conj() if hermitian else x

    steps, k = [], 0
    while k < len(A):
        steps.append((k, 1 + (pivots[k] < 0), abs(pivots[k]) - 1))
        k = k + steps[-1][1]
    for k, size, p in steps:
        X[[k + size - 1, p]] = X[[p, k + size - 1]]
        X[k + size :] -= A[k + size :, k : k + size] @ X[k : k + size]
        X[k : k + size] = np.linalg.solve(_block(A, k, size, turned), X[k : k + size])
    for k, size, p in reversed(steps):
        X[k : k + size] -= turned(A[k + size :, k : k + size]).T @ X[k + size :]
        X[[k + size - 1, p]] = X[[p, k + size - 1]]


def _ldl_solve(LD, pivots, B, hermitian):
    X = np.array(B, order="C")
    each = [a.reshape(prod(LD.shape[:-2]), *a.shape[LD.ndim - 2 :]) for a in (LD, pivots, X)]
    for A, p, x in zip(*each, strict=True):
        _solve_one(A, p, x, hermitian)
    return X


def _of_one_batch(LD, pivots, B, hermitian) -> Tensor | None:
    if LD.shape[:-2] != B.shape[:-2] or pivots.shape != LD.shape[:-1]:
        LD, B = one_batch(LD, B)
        return ldl_solve(LD, pivots.expand(LD.shape[:-1]), B, hermitian=hermitian)


@op(
    dtype=typed("own"),
    shape=system("LD"),
    kernel=on_cpu,
    reference=_ldl_solve,
    grad=None,
    exports="linalg",
    prepare=_of_one_batch,
)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The ``X`` of ``A X = B`` from the LDL factorization of A. It runs on the cpu device, wherever the
    input is.

    Args:
        LD, pivots: of `linalg.ldl_factor`, (..., n, n) and (..., n).
        B: (..., n, k).
        hermitian: as for the factorization.

    Raises:
        ShapeError: LD is not square, or B has other rows.
    """
