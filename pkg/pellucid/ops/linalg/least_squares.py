"""Pseudo-inverse, rank, and least squares: systems without one solution, by singular values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...autograd.composed import composed
from ...errors import ArgumentError, ShapeError
from ...op.call import results
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.shape import broadcast_shapes
from ...tensors.tensor import Tensor
from ..elementwise.clamp import maximum
from ..elementwise.comparison import where
from .matrices import floats, matrices, square
from .spectral import eigh, svd, svdvals


@results("linalg_lstsq")
class LeastSquares(NamedTuple):
    """A solution, the squares of what is left, the rank of A and its singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _least(A: Tensor, sizes: Tensor, atol: Tensor | float | None, rtol: Tensor | float | None) -> Tensor:
    """Up to where singular values count as 0: the larger of atol and rtol times the largest, (..., 1)."""
    if rtol is None:
        rtol = float(np.finfo(A.dtype.numpy).eps) * max(A.shape[-2:])
        if atol is not None:
            rtol = where(atol > 0, 0.0, rtol) if isinstance(atol, Tensor) else rtol * (not atol > 0)
    largest = sizes.amax(-1)
    bound = largest * rtol
    if atol is not None:
        bound = maximum(bound, atol) if isinstance(atol, Tensor) else bound.clamp(min=atol)
    return bound.unsqueeze(-1)


def _pinv_grad(g, A, out):
    """Golub and Pereyra 1973, equation 4.12, transposed."""
    P, rows, columns = out, A.shape[-2], A.shape[-1]
    gH = g.mH
    if rows <= columns:
        K = gH @ P
        right = K @ P.mH
        return right - (P @ K).mH - A @ P @ right + P.mH @ P @ (gH - K @ A)
    K = P @ gH
    left = P.mH @ K
    return left - (K @ P).mH + (gH - A @ K) @ P @ P.mH - left @ P @ A


@composed(name="linalg.pinv", A=_pinv_grad)
def _pseudo_inverse(A: Tensor, U: Tensor, S: Tensor, Vh: Tensor, least: Tensor) -> Tensor:
    kept = S.abs() > least
    return (Vh.mH * where(kept, 1 / S, 0.0).unsqueeze(-2)) @ U.mH


@function(
    exports="linalg",
    aten=("linalg_pinv.default", "linalg_pinv.rcond_tensor", "linalg_pinv.atol_rtol_float",
          "linalg_pinv.atol_rtol_tensor"),
)  # fmt: skip
def pinv(
    A: Tensor,
    rcond: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """The pseudo-inverse (Moore-Penrose inverse) of matrices, by singular values.

    Args:
        A: (..., m, n).
        rcond: an older name of rtol.
        hermitian: A is symmetric, of which the lower triangle is read: eigenvalues are taken.
        atol: singular values up to it count as 0; 0 if None.
        rtol: so do those up to this part of the largest one; if None, max(m, n) times the dtype's epsilon,
            or 0 where atol is given. Both may be tensors of the shape of the batch.

    Returns:
        (..., n, m).
    """
    square(A, "A") if hermitian else matrices(A, "A")
    floats(A.dtype)
    if not A._meta.numel:
        return A.mH
    if hermitian:  # S has signs
        S, U = eigh(A.detach())
        Vh = U.mH
    else:
        U, S, Vh = svd(A.detach(), False)
    return _pseudo_inverse(A, U, S, Vh, _least(A, S.abs(), atol, rcond if rtol is None else rtol))


@function(
    exports="linalg",
    aten=("linalg_matrix_rank.default", "linalg_matrix_rank.tol_tensor",
          "linalg_matrix_rank.atol_rtol_float", "linalg_matrix_rank.atol_rtol_tensor"),
)  # fmt: skip
def matrix_rank(
    A: Tensor,
    tol: Tensor | float | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """How many singular values of matrices are not 0.

    Args:
        A: (..., m, n).
        tol: an older name of atol, beside which rtol is 0.
        hermitian, atol, rtol: as `linalg.pinv` takes them.

    Returns:
        int64, the shape of the batch.
    """
    batch, *_ = (*square(A, "A"), 0) if hermitian else matrices(A, "A")
    floats(A.dtype)
    if not A._meta.numel:
        return A.new_zeros(batch, dtype=dt.int64)
    if tol is not None:
        atol, rtol = tol, 0.0
    sizes = eigh(A.detach())[0].abs() if hermitian else svdvals(A.detach())
    return (sizes > _least(A, sizes, atol, rtol)).sum(-1)


@function(
    exports="linalg", aten="linalg_lstsq.default(self, b, rcond=None, *, driver=None)", node="LinalgLstsq"
)
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """The ``X`` for which ``|A X - B|`` is least, and of these the shortest; by the pseudo-inverse of A.

    Args:
        A: (..., m, n).
        B: (..., m, k), or vectors, the batch of A and m.
        rcond: singular values up to this part of the largest one count as 0; max(m, n) times the dtype's
            epsilon if None.
        driver: the routine of LAPACK whose results are given: "gelsy" (if None), "gels", "gelsd", "gelss".

    Returns:
        (solution, residuals, rank, singular_values): X, (..., n, k); the sums of squares of ``A X - B``,
        (..., k), not of "gelsy", and only where m > n and every matrix has rank n; the rank, int64, not of
        "gels"; the singular values, of "gelsd" and "gelss". What is not given has no elements.

    Raises:
        ShapeError: A and B have other rows.
        ArgumentError: another driver.
    """
    batch, rows, columns = matrices(A, "A")
    floats(A.dtype)
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise ArgumentError(f"driver is {driver!r}. It must be one of {', '.join(map(repr, _DRIVERS))}.")
    is_vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and tuple(B.shape) == (*batch, rows))
    if not 0 <= A.ndim - B.ndim <= 1:
        raise ShapeError(f"A has {A.ndim} axes and B {B.ndim}. B has as many, or one less of vectors.")
    B = B.unsqueeze(-1) if is_vector else B
    if B.ndim < 2 or B.shape[-2] != rows:
        raise ShapeError(f"A is {rows} by {columns} and B has shape {tuple(B.shape)}.")
    if not A._meta.numel:
        shape = broadcast_shapes(batch, tuple(B.shape[:-2]))
        X, rank = A.new_zeros((*shape, columns, B.shape[-1])), A.new_zeros(batch, dtype=dt.int64)
        S = A.new_zeros(0, dtype=A.dtype.to_real())
    else:
        U, S, Vh = svd(A.detach(), False)
        least = _least(A, S, None, rcond)
        X, rank = _pseudo_inverse(A, U, S, Vh, least) @ B, (least < S).sum(-1)
    none = A.new_empty(0, dtype=A.dtype.to_real())
    residuals = none
    if rows > columns and driver != "gelsy" and (driver == "gels" or bool((rank == columns).all())):
        residuals = (A @ X - B).abs().square().sum(-2)
        residuals = residuals.squeeze(-1) if is_vector else residuals
    return LeastSquares(
        X.squeeze(-1) if is_vector else X,
        residuals,
        none.to(dt.int64) if driver == "gels" else rank,
        S if driver in ("gelsd", "gelss") else none,
    )
