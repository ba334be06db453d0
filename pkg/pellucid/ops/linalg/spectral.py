"""Eigenvalues and singular values, and what is made of them: pseudo-inverse, rank, least squares."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError, GradientError, LinAlgError
from ...op.call import results
from ...op.declaration import Call, function, op
from ...op.rules import on_cpu
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from .jacobi import eigh_launches, svd_launches
from .matrices import REAL, floats, matrices, of_reals, square, typed
from .solvers import solve

_COMPLEX = {d: dt.complex64 if REAL[d] is dt.float32 else dt.complex128 for d in REAL}


@results("linalg_eigh")
class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@results("linalg_svd")
class SVD(NamedTuple):
    """The factors of ``A = U diag(S) Vh``."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _converged(function, *args) -> Any:
    """What a function of numpy finds.

    Raises:
        LinAlgError: its iteration did not end, as where there are NaN.
    """
    try:
        return function(*args)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"{error}. Look for NaN and infinity in the input.") from None


def _eigh_shapes(call: Call):
    batch, rows = square(call["A"], "A")
    if call["UPLO"].upper() not in ("L", "U"):
        raise ArgumentError(f"UPLO is {call['UPLO']!r}. It must be 'L' or 'U'.")
    return Size((*batch, rows)), call["A"].shape


def _inverse_gaps(values: Tensor) -> Tensor:
    """``1 / (values[j] - values[i])``, 0 on the diagonal."""
    return _inverse(values.unsqueeze(-2) - values.unsqueeze(-1))


def _inverse(gaps: Tensor) -> Tensor:
    unit = gaps.new_ones(gaps.shape[-1]).diag_embed()
    return (1 / (gaps + unit)).masked_fill(unit != 0, 0.0)


def _eigh_grad(grads, eigenvalues, eigenvectors):
    g, gV = grads
    V, inner = eigenvectors, 0
    if gV is not None:
        skew = V.mH @ gV
        _check_phases(skew)
        inner = (skew - skew.mH) * 0.5 * _inverse_gaps(eigenvalues)
    if g is not None:
        inner = inner + g.diag_embed().to(V.dtype)
    return V @ inner @ V.mH


def _check_phases(turns: Tensor) -> None:
    """Complex eigenvectors have phases that nothing defines: no loss may depend on them, as in PyTorch."""
    if turns.is_complex() and not turns.is_meta:
        along = turns.detach().diagonal(0, -2, -1).imag
        if not along.allclose(along.new_zeros(()), 1e-2, 1e-2):
            raise GradientError(
                "linalg: the loss depends on the phases of eigenvectors, which nothing defines. Make it of "
                "what a factor of length 1 does not change, such as abs()."
            )


@op(
    dtype=typed("real", "own"),
    shape=_eigh_shapes,
    kernel=of_reals(eigh_launches),
    reference=lambda A, UPLO: _converged(np.linalg.eigh, A, UPLO.upper()),
    grad={"A": _eigh_grad},
    outputs=("eigenvalues", "eigenvectors"),
    exports="linalg",
)
def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """Eigenvalues and eigenvectors of symmetric matrices: ``A = Q diag(L) Qᴴ``.

    Args:
        A: (..., n, n); only one triangle is read.
        UPLO: which: "L" the lower one, "U" the upper one.

    Returns:
        (eigenvalues, eigenvectors): (..., n) real, in rising order, and (..., n, n), orthonormal columns,
        whose signs are not defined. Gradients through the vectors are infinite where eigenvalues are equal.

    Raises:
        ShapeError: matrices that are not square.
        ArgumentError: another UPLO.

    Example:
        >>> import pellucid as torch
        >>> L = torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]], device="cpu")).eigenvalues
        >>> [round(x, 3) for x in L.tolist()]
        [1.0, 3.0]
    """


@function(exports="linalg")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric matrices, in rising order; arguments as `linalg.eigh`."""
    return eigh(A, UPLO)[0]


def _eig_grad(grads, A, eigenvalues, eigenvectors):
    g, gV = grads
    V = eigenvectors
    Vh = V.mH
    inner = 0 if g is None else g.diag_embed()
    if gV is not None:
        angles = Vh @ gV
        _check_phases(angles)
        turned = angles - Vh @ (V * angles.diagonal(0, -2, -1).real.unsqueeze(-2))
        inner = inner + turned * _inverse_gaps(eigenvalues).conj()
    out = solve(Vh, inner @ Vh)
    return out if A.is_complex() else out.real


@op(
    dtype=lambda call: ((_COMPLEX[floats(call["A"].dtype)],) * 2, call["A"].dtype),
    shape=lambda call: (call["A"].shape[:-1] if square(call["A"], "A") else None, call["A"].shape),
    kernel=on_cpu,
    reference=lambda A: _converged(np.linalg.eig, A),
    grad={"A": _eig_grad},
    outputs=("eigenvalues", "eigenvectors"),
    exports="linalg",
)
def eig(A: Tensor) -> Eigen:
    """Eigenvalues and eigenvectors of matrices: ``A = V diag(L) V⁻¹``, complex numbers.

    Args:
        A: (..., n, n).

    Returns:
        (eigenvalues, eigenvectors): complex64 of float32. They are found on the cpu device, wherever A is.
        Eigenvectors have length 1, and phases that are not defined. Gradients through them are infinite
        where eigenvalues are equal.

    Raises:
        ShapeError: matrices that are not square.
        LinAlgError: the iteration did not end.
    """


@function(exports="linalg")
def eigvals(A: Tensor) -> Tensor:
    """Eigenvalues of matrices, complex numbers; see `linalg.eig`."""
    return eig(A)[0]


_DRIVERS = ("gesvd", "gesvdj", "gesvda")


def _svd_shapes(call: Call):
    batch, rows, columns = matrices(call["A"], "A")
    if call["driver"] is not None and (call["driver"] not in _DRIVERS or call.device.type != "webgpu"):
        raise ArgumentError(
            f"driver is {call['driver']!r}. It is None, or on webgpu one of {', '.join(map(repr, _DRIVERS))}."
        )
    n = min(rows, columns)
    left, right = (rows, columns) if call["full_matrices"] else (n, n)
    return Size((*batch, rows, left)), Size((*batch, n)), Size((*batch, right, columns))


def _svd(A, full_matrices, driver):
    if not np.isfinite(A).all():
        raise LinAlgError("the input has NaN or infinity, so the iteration does not end.")
    return _converged(np.linalg.svd, A, full_matrices)


def _svd_grad(grads, U, S, Vh):
    gU, g, gVh = grads
    rows, columns, n = U.shape[-2], Vh.shape[-1], S.shape[-1]
    U, Vh = U[..., :n], Vh[..., :n, :]
    if gU is None and gVh is None:
        return (U * g.unsqueeze(-2)) @ Vh
    row, column = S.unsqueeze(-2), S.unsqueeze(-1)
    weights = _inverse((row - column) * (row + column))
    inner, turns = 0, S.new_zeros(())
    if gU is not None:
        gU = gU[..., :n]
        skew = U.mH @ gU
        inner, turns = (skew - skew.mH) * weights * row, turns + skew
        if skew.is_complex():
            inner = inner + (1j * skew.diagonal(0, -2, -1).imag / S).diag_embed()
    if gVh is not None:
        gVh = gVh[..., :n, :]
        skew = Vh @ gVh.mH
        inner, turns = inner + (skew - skew.mH) * weights * column, turns + skew
    _check_phases(turns)
    if g is not None:
        inner = inner + g.diag_embed()
    found = U @ inner
    if gU is not None and rows > n:
        left = gU / row
        found = found + left - U @ (U.mH @ left)
    found = found @ Vh
    if gVh is not None and columns > n:
        right = gVh / column
        found = found + U @ (right - right @ Vh.mH @ Vh)
    return found


@op(
    dtype=typed("own", "real", "own"),
    shape=_svd_shapes,
    kernel=of_reals(svd_launches),
    reference=_svd,
    grad={"A": _svd_grad},
    outputs=("U", "S", "Vh"),
    exports="linalg",
)
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """Singular value decomposition ``A = U diag(S) Vh``.

    Args:
        A: (..., m, n).
        full_matrices: give all of the m and n singular vectors, not only the first k = min(m, n).
        driver: None, or what cuSOLVER would run: accepted on webgpu, without effect.

    Returns:
        (U, S, Vh): (..., m, m or k), (..., k) in falling order, (..., n or k, n). Signs of the vectors are
        not defined. Gradients through them are infinite where singular values are equal.

    Raises:
        ArgumentError: another driver.
        LinAlgError: there are NaN or infinity, on the cpu device; kernels, which nobody waits for, give NaN.

    Example:
        >>> import pellucid as torch
        >>> S = torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]], device="cpu")).S
        >>> [round(x, 3) for x in S.tolist()]
        [4.0, 3.0]
    """


@function(exports="linalg")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values of matrices, in falling order; arguments as `linalg.svd`."""
    return svd(A, False, driver=driver)[1]
