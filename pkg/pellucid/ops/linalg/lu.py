"""LU factorization with partial pivoting."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import ShapeError
from ...op.call import results
from ...op.declaration import Call, function, op
from ...op.kernel import Launch, flag
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..shape.creation import eye
from ..shape.joining import cat
from .matrices import checked, lanes, matrices, of_reals, one_batch, square, steps, typed
from .triangular import solve_triangular

SINGULAR = "the matrix is singular: element {} of the diagonal of U is 0."


@results("linalg_lu_factor")
class LUFactor(NamedTuple):
    """L and U in one matrix, and the rows that were exchanged."""

    LU: Tensor
    pivots: Tensor


@results("linalg_lu_factor_ex")
class LUFactorEx(NamedTuple):
    """L and U in one matrix, the rows that were exchanged, and 0 or the number of the first pivot that is
    0."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@results("linalg_lu")
class PLU(NamedTuple):
    """The factors of ``A = P L U``."""

    P: Tensor
    L: Tensor
    U: Tensor


def size_of(x: Any) -> np.ndarray:
    """How large numbers are when a pivot is chosen: of complex ones LAPACK adds both parts."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def _eliminate(A, pivot):
    *batch, rows, columns = A.shape
    count = prod(batch)
    LU = np.array(A, order="C").reshape(count, rows, columns)
    least, each = min(rows, columns), np.arange(count)
    pivots, info = np.empty((count, least), np.int32), np.zeros(count, np.int32)
    for k in range(least):
        p = k + size_of(LU[:, k:, k]).argmax(1) if pivot else np.full(count, k)
        pivots[:, k] = p + 1
        LU[each, p], LU[:, k] = LU[:, k].copy(), LU[each, p]
        head = LU[:, k, k]
        info = np.where((info == 0) & (head == 0), k + 1, info)
        LU[:, k + 1 :, k] /= np.where(head == 0, 1, head)[:, None]
        LU[:, k + 1 :, k + 1 :] -= LU[:, k + 1 :, k, None] * LU[:, k, None, k + 1 :]
    return LU.reshape(A.shape), pivots.reshape(*batch, least), info.reshape(batch)


def _lu_shapes(call: Call):
    batch, rows, columns = matrices(call["A"], "A")
    return call["A"].shape, Size((*batch, min(rows, columns))), Size(batch)


def _lu_grad(g, LU, pivots):
    rows, columns = LU.shape[-2:]
    n = min(rows, columns)
    head = LU[..., :n, :n]
    L, U = _unit_lower(head), head.triu()
    gL, gU = g[..., :, :n].tril(-1), g[..., :n, :].triu()
    low, high = L.mT @ gL[..., :n, :], gU[..., :n] @ U.mT
    if columns > n:
        low = low - gU[..., n:] @ LU[..., n:].mT
    elif rows > n:
        high = high - LU[..., n:, :].mT @ gL[..., n:, :]
    found = solve_triangular(U.mT, low.tril(-1) + high.triu(), upper=False, left=False)
    found = solve_triangular(L.mT, found, upper=True, unitriangular=True)
    if columns > n:
        more = solve_triangular(L.mT, gU[..., n:], upper=True, unitriangular=True)
        found = cat([found, more], -1)
    elif rows > n:
        found = cat([found, solve_triangular(U.mT, gL[..., n:, :], upper=False, left=False)], -2)
    return found.gather(-2, _columns(_order(pivots, rows).argsort(-1), found))


def _lu_launches(call: Call) -> list[Launch] | None:
    m = call["A"]
    rows, columns = m.shape[-2:]
    width, count, least = lanes(rows * columns), prod(m.shape[:-2]), min(rows, columns)
    holes = {"WORKGROUP": f"{width}u", "PIVOT": flag(call["pivot"])}
    params = {"count": count, "rows": rows, "columns": columns, "steps": least}
    launch = Launch("linalg/eliminate", count, params, holes)
    return steps(launch, least, rows * columns // width + (rows + columns) // width + rows + 6)


@op(
    public="linalg.lu_factor",
    dtype=typed("own", dt.int32, dt.int32),
    shape=_lu_shapes,
    kernel=of_reals(_lu_launches),
    reference=_eliminate,
    grad={"A": _lu_grad},
    outputs=("LU", "pivots", "info"),
)
def eliminate(A: Tensor, pivot: bool) -> LUFactorEx:
    """Gaussian elimination with partial pivoting."""


def _order_of(pivots, rows):
    flat = pivots.reshape(prod(pivots.shape[:-1]), pivots.shape[-1])
    order, each = np.tile(np.arange(rows), (len(flat), 1)), np.arange(len(flat))
    for k, p in enumerate(flat.T - 1):
        order[each, p], order[:, k] = order[:, k].copy(), order[each, p]
    return order.reshape(*pivots.shape[:-1], rows)


def _order_launch(call: Call) -> Launch:
    *batch, least = call["pivots"].shape
    count = prod(batch)
    params = {"count": count, "rows": call["rows"], "steps": least}
    return Launch("linalg/order", -(-count // 64), params, bind={"order": "out"})


@op(
    public="linalg.lu",
    dtype=lambda call: (dt.int64, dt.int64),
    shape=lambda call: Size((*call["pivots"].shape[:-1], call["rows"])),
    kernel=_order_launch,
    reference=_order_of,
    grad=None,
)
def _order(pivots: Tensor, rows: int) -> Tensor:
    """The rows of A in the order in which pivots have them."""


def _columns(order: Tensor, like: Tensor) -> Tensor:
    """Row numbers for every column, as `gather` takes them."""
    return order.unsqueeze(-1).expand(*order.shape, like.shape[-1])


def _unit_lower(x: Tensor) -> Tensor:
    """The lower triangle with ones on the diagonal."""
    return x.tril(-1) + eye(*x.shape[-2:], dtype=x.dtype, device=x.device)


@function(exports="linalg")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """LU factorization that says in ``info`` where U is singular; see `linalg.lu_factor`.

    Args:
        A: (..., m, n).
        pivot: exchange rows.
        check_errors: read ``info`` and raise.

    Returns:
        (LU, pivots, info): L below the diagonal (its own are ones) and U from it on; pivots int32, the row
        that row k was exchanged with, counted from 1; info int32, 0 or the number of the first pivot that
        is 0.

    Raises:
        LinAlgError: with check_errors, where info is not 0.
    """
    return checked(LUFactorEx(*eliminate(A, pivot)), SINGULAR, check_errors)


@function(exports="linalg")
def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """LU factorization as `linalg.lu_solve` takes it: ``(LU, pivots)``; see `linalg.lu_factor_ex`.

    Raises:
        LinAlgError: U is singular; to know it, the call waits for the device.
    """
    return LUFactor(*lu_factor_ex(A, pivot=pivot, check_errors=True)[:2])


@function()
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> PLU:
    """The factors of ``A = P L U`` from `linalg.lu_factor`.

    Args:
        LU_data: (..., m, n).
        LU_pivots: (..., min(m, n)), int32.
        unpack_data: give L and U; else they have no elements.
        unpack_pivots: give P; else it has no elements.

    Returns:
        (P, L, U): (..., m, m), (..., m, k) and (..., k, n), where k is the smaller of m and n.
    """
    _, rows, columns = matrices(LU_data, "LU_data")
    n = min(rows, columns)
    P = L = U = LU_data.new_empty(0)
    if unpack_pivots:
        # Column k of P has its one in the row that the order names.
        P = eye(rows, dtype=LU_data.dtype, device=LU_data.device)[_order(LU_pivots, rows)].mT
    if unpack_data:
        L, U = _unit_lower(LU_data[..., :n]), LU_data[..., :n, :].triu()
    return PLU(P, L, U)


@function(exports="linalg", node="LinalgLu")
def lu(A: Tensor, *, pivot: bool = True) -> PLU:
    """LU factorization ``A = P L U``: a permutation, a lower triangle with ones on its diagonal, an upper
    one.

    Args:
        A: (..., m, n).
        pivot: exchange rows, which keeps errors small; else P has no elements.

    Returns:
        (P, L, U), as `lu_unpack` gives them.
    """
    LU, pivots, _ = eliminate(A, pivot)
    return lu_unpack(LU, pivots, True, pivot)


@function(exports="linalg")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The ``X`` of ``A X = B`` from the LU factorization of A.

    Args:
        LU, pivots: of `linalg.lu_factor`, (..., n, n) and (..., n).
        B: (..., n, k), or (..., k, n) if not left.
        left: whether A stands to the left of X.
        adjoint: solve with the conjugate transpose of A.

    Raises:
        ShapeError: LU is not square, or B has other rows.
    """
    _, rows = square(LU, "LU")
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    if matrices(B, "B")[1] != rows:
        raise ShapeError(f"LU is {rows} by {rows} and B is {B.shape[-2]} by {B.shape[-1]}.")
    order = _order(pivots, rows)
    LU, B = one_batch(LU, B)
    order = order.expand(*B.shape[:-2], rows)
    if adjoint:
        X = solve_triangular(LU.mH, B, upper=False)
        X = solve_triangular(LU.mH, X, upper=True, unitriangular=True)
        return X.gather(-2, _columns(order.argsort(-1), X))
    X = solve_triangular(LU, B.gather(-2, _columns(order, B)), upper=False, unitriangular=True)
    return solve_triangular(LU, X, upper=True)
