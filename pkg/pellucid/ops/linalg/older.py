"""PyTorch's older names: what `pellucid` itself has of linear algebra; and factors of low rank by chance."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from ...errors import RangeError, ShapeError
from ...op.call import results
from ...op.families import called
from ...op.public import function
from ...tensors.tensor import Tensor
from ..random.distributions import randn
from . import lu as factors
from . import orthogonal, products, solvers, spectral, triangular
from .least_squares import pinv
from .lu import LUFactor, LUFactorEx, eliminate
from .matrices import floats, matrices
from .orthogonal import QR
from .triangular import solve_triangular


@results("svd")
class USV(NamedTuple):
    """The factors of ``A = U diag(S) Vᴴ``."""

    U: Tensor
    S: Tensor
    V: Tensor


@results("triangular_solve")
class Triangular(NamedTuple):
    """A solution, and the triangle that it is of."""

    solution: Tensor
    cloned_coefficient: Tensor


def older(name: str, known: Callable, aten: str | None = None) -> Any:
    """Another name of a function of `pellucid.linalg`, which calls its first argument ``input``."""
    form = inspect.signature(known)
    first, *rest = form.parameters.values()

    @wraps(known)
    def call(input, *args, **kwargs):
        return known(input, *args, **kwargs)

    call.__signature__ = form.replace(parameters=[first.replace(name="input"), *rest])  # type: ignore[attr-defined]
    return called(name, known.__doc__ or "", call, method=True, aten=aten)


det = older("det", solvers.det)
slogdet = older("slogdet", solvers.slogdet)
inverse = older("inverse", solvers.inv)
matrix_exp = older("matrix_exp", products.matrix_exp)
orgqr = older("orgqr", orthogonal.householder_product, "orgqr.default(self, input2)")


@function(method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse of matrices; `linalg.pinv` with another tolerance."""
    return pinv(input, rcond)


@function(method=True)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Cholesky factorization; `linalg.cholesky`."""
    return triangular.cholesky(input, upper=upper)


@function(method=True)
def qr(input: Tensor, some: bool = True) -> QR:
    """QR factorization; `linalg.qr` with mode "reduced", or "complete" if not some."""
    return orthogonal.qr(input, "reduced" if some else "complete")


@function(method=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> USV:
    """Singular values ``A = U diag(S) Vᴴ``; `linalg.svd`, which gives Vᴴ.

    Args:
        input: (..., m, n).
        some: give the first min(m, n) vectors only.
        compute_uv: otherwise U and V are zeros.
    """
    if not compute_uv:
        batch, rows, columns = matrices(input)
        values = spectral.svd(input, False)[1]
        return USV(input.new_zeros((*batch, rows, rows)), values, input.new_zeros((*batch, columns, columns)))
    U, S, Vh = spectral.svd(input, not some)
    return USV(U, S, Vh.mH)


@function(method=True, ours="PyTorch computes it in Python")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LUFactor | LUFactorEx:
    """LU factorization; `linalg.lu_factor`, or with get_infos `linalg.lu_factor_ex`. A matrix that is
    singular is no error.
    """
    found = LUFactorEx(*eliminate(A, pivot))
    return found if get_infos else LUFactor(*found[:2])


@function(method=True)
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The ``X`` of ``A X = b`` from an LU factorization; `linalg.lu_solve`."""
    return factors.lu_solve(LU_data, LU_pivots, b)


@function(method=True, node="TriangularSolve")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Triangular:
    """The ``X`` of ``A X = b`` where A is triangular, and a copy of A; `linalg.solve_triangular`.

    Args:
        b: (..., n, k).
        A: (..., n, n); only its triangle is read.
        upper: whether that is the upper one.
        transpose: solve with the transpose of A.
        unitriangular: take the diagonal of A as ones.
    """
    own = A.mT if transpose else A
    X = solve_triangular(own, b, upper=upper != transpose, unitriangular=unitriangular)
    return Triangular(X, A.expand(*X.shape[:-2], *A.shape[-2:]).clone())


def _range(A: Tensor, q: int, niter: int) -> Tensor:
    """An orthonormal basis of nearly what the first q singular vectors span (Halko, Martinsson and Tropp
    2009, algorithm 4.4)."""
    Q = orthogonal.qr(A @ randn(A.shape[-1], q, dtype=A.dtype, device=A.device))[0]
    for _ in range(niter):
        Q = orthogonal.qr(A.mH @ Q)[0]
        Q = orthogonal.qr(A @ Q)[0]
    return Q


@function(ours="PyTorch computes it in Python")
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> USV:
    """The first q singular values and vectors of matrices, nearly, by random vectors.

    Args:
        A: (..., m, n).
        q: how many; a few more than the rank.
        niter: rounds that make them more exact.
        M: is taken from A first; broadcasts.

    Returns:
        (U, S, V): (..., m, q), (..., q) and (..., n, q).
    """
    floats(A.dtype)
    if A.ndim < 2:
        raise ShapeError(f"takes matrices, not a tensor of shape {tuple(A.shape)}.")
    A = A if M is None else A - M
    if A.shape[-2] < A.shape[-1]:
        U, S, V = svd_lowrank(A.mH, q, niter)
        return USV(V, S, U)
    Q = _range(A, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = spectral.svd(Q.mH @ A, False)
    return USV(Q @ U, S, Vh.mH)


@function(ours="PyTorch computes it in Python")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> USV:
    """Principal components of rows, nearly: the first singular values and vectors of A without its mean.

    Args:
        A: (..., m, n).
        q: how many; 6, or the smaller length, if None.
        center: take the mean of the columns away first.
        niter: rounds that make them more exact.

    Returns:
        (U, S, V): (..., m, q), (..., q) and (..., n, q); columns of V are the directions.

    Raises:
        RangeError: q is above the smaller length.
    """
    _, rows, columns = matrices(A, "A")
    q = min(6, rows, columns) if q is None else q
    if not 0 <= q <= min(rows, columns) or niter < 0:
        raise RangeError(
            f"q is {q} and niter {niter}; q is at most {min(rows, columns)}, and none is negative."
        )
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
