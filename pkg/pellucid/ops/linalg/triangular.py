"""Cholesky factorization and triangular systems."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from ...autograd.composed import composed
from ...op.arguments import boolean
from ...op.call import results
from ...op.declaration import Call, function, op
from ...op.kernel import Launch, flag, is_direct
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor
from ..shape.creation import eye
from .matrices import checked, lanes, matrices, of_reals, one_batch, square, steps, system, typed

_NOT_DEFINITE = "the leading minor of order {} is not positive, so there is no Cholesky factorization."


@results("linalg_cholesky_ex")
class CholeskyEx(NamedTuple):
    """The factor, and for each matrix 0 or the order of the first minor that is not positive."""

    L: Tensor
    info: Tensor


def _substitute(A, B, upper, left, unitriangular):
    """Row after row of ``X`` in ``A X = B``."""
    X, rows = np.array(B), A.shape[-1]
    for k in reversed(range(rows)) if upper else range(rows):
        known = slice(k + 1, None) if upper else slice(0, k)
        X[..., k, :] -= (A[..., k, None, known] @ X[..., known, :])[..., 0, :]
        if not unitriangular:
            X[..., k, :] /= A[..., k, k, None]
    return X


def _right_grad(g, A, upper, unitriangular):
    return solve_triangular(A.mT, g, upper=not upper, unitriangular=unitriangular)


def _left_grad(g, A, upper, unitriangular, out):
    whole = -_right_grad(g, A, upper, unitriangular) @ out.mT
    return whole.triu(int(unitriangular)) if upper else whole.tril(-int(unitriangular))


def _substitute_launches(call: Call) -> list[Launch] | None:
    m = call["B"]
    rows, columns = m.shape[-2:]
    tile = min(columns, 8 if is_direct() else 32)
    tiles, width = -(-columns // tile), lanes(rows * tile)
    groups = prod(m.shape[:-2]) * tiles
    holes = {
        "WORKGROUP": f"{width}u", "TILE": f"{tile}u", "UPPER": flag(call["upper"]),
        "UNIT": flag(call["unitriangular"]),
    }  # fmt: skip
    params = {"groups": groups, "tiles": tiles, "rows": rows, "columns": columns}
    launch = Launch("linalg/substitute", groups, params, holes)
    return steps(launch, rows, rows * tile // width + tile // width + 4)


def _prepared(A, B, upper, left, unitriangular) -> Tensor | None:
    """The system with A to the left of X, of one batch."""
    matrices(A, "A")
    matrices(B, "B")
    if not boolean(left, "left"):
        upper = boolean(upper, "upper")
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    if A.shape[:-2] != B.shape[:-2]:
        return solve_triangular(*one_batch(A, B), upper=upper, unitriangular=unitriangular)


@op(
    dtype=typed("own"),
    shape=system("A", ": they are no system of equations"),
    kernel=of_reals(_substitute_launches),
    reference=_substitute,
    grad={"A": _left_grad, "B": _right_grad},
    exports="linalg",
    prepare=_prepared,
)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """The ``X`` of ``A X = B``, or of ``X A = B``, where A is triangular.

    Args:
        A: (..., n, n); only its triangle is read.
        B: (..., n, k), or (..., k, n) if not left.
        upper: whether the triangle is the upper one.
        left: whether A stands to the left of X.
        unitriangular: take the diagonal of A as ones, which are not read.

    Returns:
        The shape of B, batches broadcast; infinite where the diagonal has zeros.

    Raises:
        ShapeError: A is not square, or B has other rows.

    Example:
        >>> import pellucid as torch
        >>> A = torch.tensor([[2.0, 0.0], [1.0, 4.0]], device="cpu")
        >>> torch.linalg.solve_triangular(A, torch.tensor([[2.0], [9.0]], device="cpu"), upper=False).tolist()
        [[1.0], [2.0]]
    """


def _cholesky(A):
    L = np.tril(A)
    info = np.zeros(A.shape[:-2], np.int32)
    for k in range(A.shape[-1]):
        row = L[..., k, :k, None].conj()
        pivot = L[..., k, k].real - (np.abs(row) ** 2).sum((-1, -2))
        info = np.where((info == 0) & ~(pivot > 0), k + 1, info)
        L[..., k, k] = np.sqrt(np.where(pivot > 0, pivot, 1))
        L[..., k + 1 :, k] -= (L[..., k + 1 :, :k] @ row)[..., 0]
        L[..., k + 1 :, k] /= L[..., k, k, None]
    return L, info


def _cholesky_grad(g, L):
    inner = (L.mH @ g).tril()
    # As PyTorch's, which leaves the diagonal complex.
    found = solve_triangular(L.mH, (inner + inner.tril(-1).mH) * 0.5, upper=True)
    return solve_triangular(L.mH, found.mH, upper=True).mH


def _cholesky_launches(call: Call) -> list[Launch] | None:
    m = call["A"]
    rows, width = m.shape[-1], lanes(m.shape[-1] ** 2)
    count = prod(m.shape[:-2])
    launch = Launch("linalg/cholesky", count, {"count": count, "rows": rows}, {"WORKGROUP": f"{width}u"})
    return steps(launch, rows, rows * rows // width + rows // width + 4)


@composed(input=lambda g: g)
def _turned(input: Tensor) -> Tensor:
    """Hermitian matrices with their triangles exchanged. They are the same matrices, and so is the gradient,
    whose diagonal PyTorch leaves complex."""
    return input.mH


@op(
    public="linalg.cholesky",
    dtype=typed("own", dt.int32),
    shape=lambda call: (call["A"].shape, square(call["A"])[0]),
    kernel=of_reals(_cholesky_launches),
    reference=_cholesky,
    grad={"A": _cholesky_grad},
    outputs=("L", "info"),
)
def cholesky_factor(A: Tensor) -> CholeskyEx:
    """The lower Cholesky factor, from the lower triangle of A."""


@function(exports="linalg")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """Cholesky factorization that says in ``info`` where it fails; see `linalg.cholesky`.

    Args:
        input: (..., n, n), symmetric positive-definite.
        upper: give the upper factor, from the upper triangle.
        check_errors: read ``info`` and raise.

    Returns:
        (L, info); info is int32, 0 or the order of the first leading minor that is not positive.

    Raises:
        ShapeError: matrices that are not square.
        LinAlgError: with check_errors, where info is not 0.
    """
    L, info = cholesky_factor(_turned(input) if upper else input)
    return checked(CholeskyEx(L.mH if upper else L, info), _NOT_DEFINITE, check_errors)


@function(exports="linalg")
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Cholesky factorization ``A = L Lᴴ``, L lower triangular; with upper ``A = Uᴴ U``.

    Args:
        input: (..., n, n), symmetric positive-definite; only one triangle is read.
        upper: give U, from the upper triangle.

    Raises:
        ShapeError: matrices that are not square.
        LinAlgError: a matrix is not positive-definite; to know it, the call waits for the device.

    Example:
        >>> import pellucid as torch
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]], device="cpu")).tolist()
        [[2.0, 0.0], [1.0, 2.0]]
    """
    return cholesky_ex(input, upper=upper, check_errors=True).L


def _of_factor(g, L, upper, out):
    common = _from_factor(g, L, upper) @ out.mH
    common = common + common.mH
    return -(L @ common if upper else common @ L)


def _of_right_side(g, L, upper):
    return _from_factor(g, L, upper)


@composed(name="cholesky_solve", B=_of_right_side, L=_of_factor)
def _from_factor(B: Tensor, L: Tensor, upper: bool) -> Tensor:
    lower = L.mH if upper else L
    return solve_triangular(lower.mH, solve_triangular(lower, B, upper=False), upper=True)


@function(method=True, aten="cholesky_solve.default(self, input2, upper=False)")
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The ``X`` of ``A X = B`` from the Cholesky factor of A.

    Args:
        B: (..., n, k).
        L: (..., n, n), lower; with upper the upper factor.
        upper: which.
    """
    matrices(B, "B")
    return _from_factor(B, L, boolean(upper, "upper"))


@function(method=True, node="CholeskyInverse")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix from its Cholesky factor; arguments as `cholesky_solve`."""
    return cholesky_solve(identity(L), L, upper)


def identity(x: Tensor) -> Tensor:
    """The unit matrix like a square one, without its batch.

    Raises:
        ShapeError: it is not square.
    """
    return eye(square(x)[1], dtype=x.dtype, device=x.device)
