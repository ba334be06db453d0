"""What LU factorization solves: systems of equations, inverses, determinants."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from ...autograd.composed import composed
from ...autograd.grad_mode import is_grad_enabled
from ...errors import DTypeError, ShapeError
from ...op.call import results
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..shape.creation import arange
from .lu import SINGULAR, LUFactorEx, eliminate, lu_solve
from .matrices import checked, one_batch, square
from .triangular import identity


@results("linalg_solve_ex")
class SolveEx(NamedTuple):
    """A solution, and 0 where there is one."""

    result: Tensor
    info: Tensor


@results("linalg_inv_ex")
class InverseEx(NamedTuple):
    """An inverse, and 0 where there is one."""

    inverse: Tensor
    info: Tensor


@results("linalg_slogdet")
class SignAndLog(NamedTuple):
    """A determinant as its sign and the logarithm of its size."""

    sign: Tensor
    logabsdet: Tensor


def _adjoint_solution(g: Tensor, A: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """The gradient of B; A is factored anew where a graph of it is wanted."""
    return solve_ex(A.mH, g).result if is_grad_enabled() else lu_solve(LU, pivots, g, adjoint=True)


@composed(
    name="linalg.solve",
    A=lambda g, A, LU, pivots, out: -_adjoint_solution(g, A, LU, pivots) @ out.mH,
    B=lambda g, A, LU, pivots: _adjoint_solution(g, A, LU, pivots),
)
def _solution(A: Tensor, LU: Tensor, pivots: Tensor, B: Tensor) -> Tensor:
    return lu_solve(LU, pivots, B)


@function(exports="linalg")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """`linalg.solve` that says in ``info`` where A is singular.

    Args:
        A, B, left: as `linalg.solve` takes them.
        check_errors: read ``info`` and raise.

    Returns:
        (result, info); info is int32, 0 or the number of the first pivot that is 0.

    Raises:
        LinAlgError: with check_errors, where info is not 0.
    """
    batch, rows = square(A, "A")
    is_vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and tuple(B.shape) == (*batch, rows))
    if is_vector:
        if not left:
            raise ShapeError("left=False takes a B of matrices, not of vectors. Unsqueeze it.")
        B = B.unsqueeze(-1)
    if B.dtype is not A.dtype:
        raise DTypeError(f"A is {A.dtype} and B {B.dtype}. Convert one of them.")
    if not B.ndim:
        raise ShapeError("B is a tensor without axes. Give vectors or matrices.")
    if B.shape[-2 if left else -1] != rows:
        raise ShapeError(f"A is {rows} by {rows} and B is {B.shape[-2]} by {B.shape[-1]}.")
    if not left:
        found, info = solve_ex(A.mT, B.mT, check_errors=check_errors)
        return SolveEx(found.mT, info)
    LU, pivots, info = checked(eliminate(A.detach(), True), SINGULAR, check_errors)
    A, B = one_batch(A, B)
    X = _solution(A, LU, pivots, B)
    return SolveEx(X.squeeze(-1) if is_vector else X, info)


@function(exports="linalg")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The ``X`` of ``A X = B``, or of ``X A = B``, by LU factorization.

    Args:
        A: (..., n, n).
        B: (..., n, k), or (..., k, n) if not left; or vectors, (n,) or the batch of A and n.
        left: whether A stands to the left of X.

    Returns:
        The shape of B, batches broadcast.

    Raises:
        ShapeError: A is not square, or B has other rows.
        LinAlgError: A is singular; to know it, the call waits for the device.

    Example:
        >>> import pellucid as torch
        >>> A = torch.tensor([[0.0, 2.0], [1.0, 1.0]], device="cpu")
        >>> torch.linalg.solve(A, torch.tensor([4.0, 5.0], device="cpu")).tolist()
        [3.0, 2.0]
    """
    return solve_ex(A, B, left=left, check_errors=True).result


@composed(name="linalg.inv", A=lambda g, out: -out.mH @ g @ out.mH)
def _inverse(A: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    return lu_solve(LU, pivots, identity(A))


@function(exports="linalg")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InverseEx:
    """`linalg.inv` that says in ``info`` where A is singular.

    Args:
        A: (..., n, n).
        check_errors: read ``info`` and raise.

    Returns:
        (inverse, info); info is int32, 0 or the number of the first pivot that is 0.

    Raises:
        LinAlgError: with check_errors, where info is not 0.
    """
    square(A, "A")
    LU, pivots, info = checked(eliminate(A.detach(), True), SINGULAR, check_errors)
    return InverseEx(_inverse(A, LU, pivots), info)


@function(exports="linalg")
def inv(A: Tensor) -> Tensor:
    """The inverse of matrices, by LU factorization. To multiply with it, `linalg.solve` is quicker and
    more exact.

    Args:
        A: (..., n, n).

    Raises:
        ShapeError: matrices that are not square.
        LinAlgError: one is singular; to know it, the call waits for the device.

    Example:
        >>> import pellucid as torch
        >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]], device="cpu")).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return inv_ex(A, check_errors=True).inverse


def _pivots(A: Tensor) -> tuple[Tensor, Tensor, LUFactorEx]:
    """(the diagonal of U, 1 or -1 for the rows exchanged, the factorization)."""
    found = eliminate(A, True)
    own = arange(1, A.shape[-1] + 1, dtype=dt.int32, device=A.device)
    odd = (found.pivots != own).sum(-1) % 2
    return found.LU.diagonal(dim1=-2, dim2=-1), (1 - 2 * odd).to(A.dtype), LUFactorEx(*found)


def _det_grad(g, A):
    """``g conj(det(A)) A⁻ᴴ``. Where U has a 0 a tiny number stands for it, which gives the cofactors."""
    diagonal, sign, (LU, pivots, _) = _pivots(A)
    raised = where(diagonal == 0, float(np.finfo(A.dtype.numpy).eps), diagonal)
    LU = LU + (raised - diagonal).diag_embed()
    scale = (g * (raised.prod(-1) * sign).conj()).unsqueeze(-1).unsqueeze(-1)
    return lu_solve(LU, pivots, identity(A) * scale, adjoint=True)


@function(exports="linalg")
@composed(name="linalg.det", A=_det_grad)
def det(A: Tensor) -> Tensor:
    """The determinant of matrices, by LU factorization.

    Args:
        A: (..., n, n).

    Returns:
        The shape of the batch. It overflows and vanishes early; see `linalg.slogdet`.

    Raises:
        ShapeError: matrices that are not square.

    Example:
        >>> import pellucid as torch
        >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 4.0]], device="cpu")).item()
        8.0
    """
    square(A, "A")
    diagonal, sign, _ = _pivots(A)
    return diagonal.prod(-1) * sign


def _log_grad(g, A):
    _, _, (LU, pivots, _) = _pivots(A)
    return lu_solve(LU, pivots, identity(A) * g.unsqueeze(-1).unsqueeze(-1), adjoint=True)


@composed(name="linalg.slogdet", A=_log_grad)
def _logabsdet(A: Tensor, diagonal: Tensor) -> Tensor:
    return diagonal.abs().log().sum(-1)


def _sign_grad(g, A, out):
    """``i Im(g conj(sign)) A⁻ᴴ``: the angle turns with the imaginary part of the logarithm."""
    return _log_grad((g * out.conj()).imag * 1j, A)


@composed(name="linalg.slogdet", A=_sign_grad)
def _turning_sign(A: Tensor, diagonal: Tensor, sign: Tensor) -> Tensor:
    return diagonal.sgn().prod(-1) * sign


@function(exports="linalg")
def slogdet(A: Tensor) -> SignAndLog:
    """The determinant of matrices as its sign and the logarithm of its size, which does not overflow.

    Args:
        A: (..., n, n).

    Returns:
        (sign, logabsdet): 0 and -inf of a singular matrix. The sign of complex matrices is a number of
        length 1, which has a gradient.

    Raises:
        ShapeError: matrices that are not square.
    """
    square(A, "A")
    diagonal, sign, _ = _pivots(A.detach())
    turning = _turning_sign(A if A.is_complex() else A.detach(), diagonal, sign)
    return SignAndLog(turning, _logabsdet(A, diagonal))


@function(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant of matrices: -inf where it is 0, NaN where it is negative. That of
    complex matrices is complex."""
    sign, logabsdet = slogdet(input)
    if sign.is_complex():
        return logabsdet + sign.log()
    return where(sign == -1, nan, logabsdet)
