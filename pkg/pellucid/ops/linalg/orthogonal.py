"""QR factorization, and products of Householder reflections."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from ...errors import ArgumentError, DTypeError, GradientError, ShapeError
from ...op.call import results
from ...op.declaration import Call, function, op
from ...op.kernel import Launch
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..shape.creation import eye
from ..shape.joining import cat
from .matrices import lanes, matrices, of_reals, steps, typed
from .triangular import solve_triangular


@results("linalg_qr")
class QR(NamedTuple):
    """The factors of ``A = Q R``."""

    Q: Tensor
    R: Tensor


@results("geqrf")
class Reflections(NamedTuple):
    """Householder vectors below the diagonal of a, R from it on, and the factors of the reflections."""

    a: Tensor
    tau: Tensor


_MODES = ("reduced", "complete", "r")


def _qr_shapes(call: Call):
    batch, rows, columns = matrices(call["A"], "A")
    if call["mode"] not in _MODES:
        raise ArgumentError(f"mode is {call['mode']!r}. It must be one of {', '.join(map(repr, _MODES))}.")
    n = rows if call["mode"] == "complete" else min(rows, columns)
    return Size((0,) if call["mode"] == "r" else (*batch, rows, n)), Size((*batch, n, columns))


def reflect(bind: dict[str, str], count: int, rows: int, columns: int) -> list[Launch] | None:
    """The dispatches that find the reflections of matrices, or None; see wgsl/linalg/reflect.wgsl."""
    least, width = min(rows, columns), lanes(columns * columns)
    params = {"count": count, "rows": rows, "columns": columns, "steps": least}
    launch = Launch("linalg/reflect", count, params, {"WORKGROUP": f"{width}u"}, bind)
    each = rows // width + 2 * rows + 2 * rows * (columns // width + 1) + columns * rows // width + 5
    return steps(launch, least, each)


def unreflect(
    bind: dict[str, str], count: int, rows: int, columns: int, wide: int, tall: int, holes: dict[str, str]
) -> list[Launch] | None:
    """The dispatches that multiply reflections, or None; see wgsl/linalg/unreflect.wgsl."""
    least, sizes = min(rows, columns), {"count": count, "rows": rows, "columns": columns}
    params = {**sizes, "steps": least, "wide": wide, "tall": tall}
    launch = Launch("linalg/unreflect", -(-count * max(wide, columns) // 64), params, holes, bind)
    return steps(launch, least, 2 * rows + 1)


def _qr_launches(call: Call) -> list[Launch] | None:
    batch, rows, columns = matrices(call["A"])
    call.temporary("a", call["A"].shape)
    call.temporary("tau", (*batch, min(rows, columns)))
    Q, R = call.outputs
    wide = 0 if call["mode"] == "r" else Q.shape[-1]
    found = reflect({}, prod(batch), rows, columns)
    made = unreflect({}, prod(batch), rows, columns, wide, R.shape[-2], {})
    return found + made if found and made else None


def _diagonal(x, part):
    """A part of the diagonal, as a matrix."""
    along = x.diagonal(dim1=-2, dim2=-1)
    return (getattr(along, part) if x.is_complex() else along).diag_embed()


def _qr_grad(grads, mode, Q, R):
    gQ, gR = grads
    rows, columns = Q.shape[-2], R.shape[-1]
    if mode == "r" or (mode == "complete" and rows > columns):
        raise GradientError(
            f"linalg.qr: has no derivative of mode {mode!r}"
            + ("." if mode == "r" else " for more rows than columns.")
            + " Use mode='reduced'."
        )
    inner = -Q.mH @ gQ if gR is None else gR @ R.mH
    if gR is not None and gQ is not None:
        inner = inner - Q.mH @ gQ
    if rows >= columns:
        upper = inner.triu()
        found = Q @ (upper.triu(1) + upper.triu(1).mH + _diagonal(upper, "real"))
        found = found if gQ is None else found + gQ
        return solve_triangular(R.mH, found, upper=False, left=False)
    skew = (inner.mH - inner).tril(-1)
    if inner.is_complex():  # R has a real diagonal, so the phases of Q's columns are defined
        skew = skew - 1j * _diagonal(inner, "imag")
    found = solve_triangular(R[..., :rows].mH, Q @ skew, upper=False, left=False)
    found = cat([found, found.new_zeros(*found.shape[:-1], columns - rows)], -1)
    return found if gR is None else found + Q @ gR


@op(
    dtype=typed("own", "own"),
    shape=_qr_shapes,
    kernel=of_reals(_qr_launches),
    reference=lambda A, mode: (A[:0], np.linalg.qr(A, "r")) if mode == "r" else np.linalg.qr(A, mode),
    grad={"A": _qr_grad},
    outputs=("Q", "R"),
    exports="linalg",
)
def qr(A: Tensor, mode: str = "reduced") -> QR:
    """QR factorization ``A = Q R``: orthonormal columns times an upper triangle.

    Args:
        A: (..., m, n).
        mode: "reduced": Q (..., m, k) and R (..., k, n), where k is the smaller of m and n; "complete":
            (..., m, m) and (..., m, n); "r": R of "reduced", and a Q without elements.

    Returns:
        (Q, R), unique but for signs where A has full rank. Gradients are those of "reduced", and of
        "complete" where there are no more rows than columns.

    Raises:
        ArgumentError: another mode.

    Example:
        >>> import pellucid as torch
        >>> Q, R = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]], device="cpu"))
        >>> [[round(x, 3) for x in row] for row in (Q @ R).tolist()]
        [[3.0, 1.0], [4.0, 2.0]]
    """


def _geqrf(input):
    h, tau = np.linalg.qr(input, "raw")
    return h.swapaxes(-1, -2), tau


def _geqrf_shapes(call: Call):
    batch, rows, columns = matrices(call["input"])
    return call["input"].shape, Size((*batch, min(rows, columns)))


@op(
    dtype=typed("own", "own"),
    shape=_geqrf_shapes,
    kernel=of_reals(lambda call: reflect({"A": "input"}, prod(call.out.shape[:-2]), *call.out.shape[-2:])),
    reference=_geqrf,
    grad=None,
    outputs=("a", "tau"),
    method=True,
)
def geqrf(input: Tensor) -> Reflections:
    """QR factorization as LAPACK has it: ``(a, tau)``, from which `linalg.householder_product` makes Q.

    Args:
        input: (..., m, n).

    Returns:
        a: R from the diagonal on, and below it the Householder vectors, whose first elements are ones; tau:
        (..., min(m, n)).
    """


def _reflect(a: Tensor, tau: Tensor, C: Tensor, forward: bool, adjoint: bool = False) -> Tensor:
    """Reflections ``I - tau v vᴴ`` applied to C, the last one first or the other way round."""
    rows, count = a.shape[-2], tau.shape[-1]
    V = a[..., :count].tril(-1) + eye(rows, count, dtype=a.dtype, device=a.device)
    for k in range(count) if forward else reversed(range(count)):
        v = V[..., k : k + 1]
        t = tau[..., k, None, None]
        C = C - (t.conj() if adjoint else t) * v @ (v.mH @ C)
    return C


def _fits(a: Tensor, tau: Tensor, is_tall: bool) -> tuple[int, int]:
    batch, rows, columns = matrices(a)
    most = min(rows, columns)
    if tau.dtype is not a.dtype:
        raise DTypeError(f"the vectors are {a.dtype} and tau {tau.dtype}. Convert one of them.")
    fits = tau.dim() and tuple(tau.shape[:-1]) == batch and tau.shape[-1] <= most
    if not fits or (is_tall and rows < columns):
        raise ShapeError(
            f"{rows} by {columns} Householder vectors and tau of shape {tuple(tau.shape)}: tau has at most "
            f"{most} elements, in the same batch{', and there are no fewer rows than columns' * is_tall}."
        )
    return rows, columns


@function(exports="linalg", node="LinalgHouseholderProduct")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of Householder reflections ``I - tau v vᴴ``; the Q of `geqrf`.

    Args:
        input: (..., m, n) with m >= n; the vectors stand below the diagonal, their first elements are ones.
        tau: (..., k) with n >= k.

    Returns:
        (..., m, n). It takes four dispatches for each reflection.

    Raises:
        ShapeError: the shapes do not fit.
    """
    rows, columns = _fits(input, tau, True)
    unit = eye(rows, columns, dtype=input.dtype, device=input.device)
    return _reflect(input, tau, unit.expand(*input.shape[:-2], rows, columns), False)


@function(method=True, aten="ormqr.default(self, input2, input3, left=True, transpose=False)")
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of Q, as `geqrf` has it, with a matrix.

    Args:
        input, tau: (..., m, k) and (..., k).
        other: (..., m, n), or (..., n, m) if not left.
        left: whether Q stands to the left of it.
        transpose: take the conjugate transpose of Q.

    Raises:
        ShapeError: the shapes do not fit.
    """
    _fits(input, tau, False)
    if not left:
        return ormqr(input, tau, other.mH, True, not transpose).mH
    if matrices(other, "other")[1] != input.shape[-2]:
        raise ShapeError(f"Q has {input.shape[-2]} rows and other {other.shape[-2]}.")
    return _reflect(input, tau, other, transpose, transpose)
