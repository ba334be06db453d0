"""Functions of `pellucid.linalg`.

Written by `scripts/reference`; do not edit.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence

from ...ops.linalg.least_squares import LeastSquares
from ...ops.linalg.lu import PLU, LUFactor, LUFactorEx
from ...ops.linalg.orthogonal import QR
from ...ops.linalg.solvers import InverseEx, SignAndLog, SolveEx
from ...ops.linalg.spectral import SVD, Eigen
from ...ops.linalg.symmetric import LDL, LDLEx
from ...ops.linalg.triangular import CholeskyEx
from ...tensors.dtypes import DType
from ...tensors.tensor import Tensor

__all__: list[str]

def cholesky(input: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor:
    """Cholesky factorization ``A = L Lᴴ``, L lower triangular; with upper ``A = Uᴴ U``."""

def cholesky_ex(
    input: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: Tensor | None = None
) -> CholeskyEx:
    """Cholesky factorization that says in ``info`` where it fails; see `linalg.cholesky`."""

def cond(
    A: Tensor = ..., p: _float | str | None = None, *, out: Tensor | None = None, input: Tensor = ...
) -> Tensor:
    """The condition of matrices: ``|A| |A⁻¹|``, by which errors of a system's solution may grow."""

def cross(
    input: Tensor, other: Tensor, *, dim: _int = -1, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """Cross products of vectors of three elements along an axis."""

def det(A: Tensor = ..., *, out: Tensor | None = None, input: Tensor = ...) -> Tensor:
    """The determinant of matrices, by LU factorization."""

def diagonal(
    A: Tensor = ..., *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, input: Tensor = ...
) -> Tensor:
    """What lies on a diagonal of matrices, as a view; `diagonal` of the last two axes."""

def eig(A: Tensor = ..., *, out: Tensor | None = None, input: Tensor = ...) -> Eigen:
    """Eigenvalues and eigenvectors of matrices: ``A = V diag(L) V⁻¹``, complex numbers."""

def eigh(A: Tensor = ..., UPLO: str = "L", *, out: Tensor | None = None, input: Tensor = ...) -> Eigen:
    """Eigenvalues and eigenvectors of symmetric matrices: ``A = Q diag(L) Qᴴ``."""

def eigvals(A: Tensor = ..., *, out: Tensor | None = None, input: Tensor = ...) -> Tensor:
    """Eigenvalues of matrices, complex numbers; see `linalg.eig`."""

def eigvalsh(A: Tensor = ..., UPLO: str = "L", *, out: Tensor | None = None, input: Tensor = ...) -> Tensor:
    """Eigenvalues of symmetric matrices, in rising order; arguments as `linalg.eigh`."""

def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of Householder reflections ``I - tau v vᴴ``; the Q of `geqrf`."""

def inv(A: Tensor = ..., *, out: Tensor | None = None, input: Tensor = ...) -> Tensor:
    """The inverse of matrices, by LU factorization. To multiply with it, `linalg.solve` is quicker and
    more exact."""

def inv_ex(
    A: Tensor = ..., *, check_errors: _bool = False, out: Tensor | None = None, input: Tensor = ...
) -> InverseEx:
    """`linalg.inv` that says in ``info`` where A is singular."""

def ldl_factor(input: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> LDL:
    """LDL factorization as `linalg.ldl_solve` takes it: ``(LD, pivots)``; see `linalg.ldl_factor_ex`."""

def ldl_factor_ex(
    input: Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: Tensor | None = None
) -> LDLEx:
    """LDL factorization ``P A Pᵀ = L D Lᵀ`` as LAPACK has it; D has blocks of one or two rows. It runs
    on the cpu device, wherever the input is."""

def ldl_solve(
    LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _bool = False, out: Tensor | None = None
) -> Tensor:
    """The ``X`` of ``A X = B`` from the LDL factorization of A. It runs on the cpu device, wherever
    the input is."""

def lstsq(
    A: Tensor = ...,
    B: Tensor = ...,
    rcond: _float | None = None,
    *,
    driver: str | None = None,
    out: Tensor | None = None,
    input: Tensor = ...,
    other: Tensor = ...,
    b: Tensor = ...,
) -> LeastSquares:
    """The ``X`` for which ``|A X - B|`` is least, and of these the shortest; by the pseudo-inverse of
    A."""

def lu(A: Tensor = ..., *, pivot: _bool = True, out: Tensor | None = None, input: Tensor = ...) -> PLU:
    """LU factorization ``A = P L U``: a permutation, a lower triangle with ones on its diagonal, an
    upper one."""

def lu_factor(
    A: Tensor = ..., *, pivot: _bool = True, out: Tensor | None = None, input: Tensor = ...
) -> LUFactor:
    """LU factorization as `linalg.lu_solve` takes it: ``(LU, pivots)``; see `linalg.lu_factor_ex`."""

def lu_factor_ex(
    A: Tensor = ...,
    *,
    pivot: _bool = True,
    check_errors: _bool = False,
    out: Tensor | None = None,
    input: Tensor = ...,
) -> LUFactorEx:
    """LU factorization that says in ``info`` where U is singular; see `linalg.lu_factor`."""

def lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: _bool = True,
    adjoint: _bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The ``X`` of ``A X = B`` from the LU factorization of A."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Matrix product over the last two axes: ``out[..., i, j] = sum_l input[..., i, l] * other[..., l,
    j]``."""

def matrix_exp(A: Tensor = ..., *, input: Tensor = ...) -> Tensor:
    """The exponential of square matrices: ``I + A + A²/2 + A³/6 + ...``."""

def matrix_norm(
    A: Tensor = ...,
    ord: _float | str = "fro",
    dim: Sequence[_int] = (-2, -1),
    keepdim: _bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
    axis: Sequence[_int] = ...,
    keepdims: _bool = ...,
    input: Tensor = ...,
) -> Tensor:
    """Norm of matrices."""

def matrix_power(input: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """A power of square matrices, by squaring."""

def matrix_rank(
    A: Tensor = ...,
    tol: Tensor | _float | None = None,
    hermitian: _bool = False,
    *,
    atol: Tensor | _float | None = None,
    rtol: Tensor | _float | None = None,
    out: Tensor | None = None,
    input: Tensor = ...,
) -> Tensor:
    """How many singular values of matrices are not 0."""

def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order of multiplications that takes least work."""

def norm(
    A: Tensor = ...,
    ord=None,
    dim=None,
    keepdim: _bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
    axis=...,
    keepdims: _bool = ...,
    input: Tensor = ...,
) -> Tensor:
    """Norm of vectors or matrices."""

def pinv(
    A: Tensor = ...,
    rcond: Tensor | _float | None = None,
    hermitian: _bool = False,
    *,
    atol: Tensor | _float | None = None,
    rtol: Tensor | _float | None = None,
    out: Tensor | None = None,
    input: Tensor = ...,
) -> Tensor:
    """The pseudo-inverse (Moore-Penrose inverse) of matrices, by singular values."""

def qr(A: Tensor = ..., mode: str = "reduced", *, out: Tensor | None = None, input: Tensor = ...) -> QR:
    """QR factorization ``A = Q R``: orthonormal columns times an upper triangle."""

def slogdet(A: Tensor = ..., *, out: Tensor | None = None, input: Tensor = ...) -> SignAndLog:
    """The determinant of matrices as its sign and the logarithm of its size, which does not overflow."""

def solve(
    A: Tensor = ...,
    B: Tensor = ...,
    *,
    left: _bool = True,
    out: Tensor | None = None,
    input: Tensor = ...,
    other: Tensor = ...,
) -> Tensor:
    """The ``X`` of ``A X = B``, or of ``X A = B``, by LU factorization."""

def solve_ex(
    A: Tensor = ...,
    B: Tensor = ...,
    *,
    left: _bool = True,
    check_errors: _bool = False,
    out: Tensor | None = None,
    input: Tensor = ...,
    other: Tensor = ...,
) -> SolveEx:
    """`linalg.solve` that says in ``info`` where A is singular."""

def solve_triangular(
    A: Tensor = ...,
    B: Tensor = ...,
    *,
    upper: _bool,
    left: _bool = True,
    unitriangular: _bool = False,
    out: Tensor | None = None,
    input: Tensor = ...,
    other: Tensor = ...,
) -> Tensor:
    """The ``X`` of ``A X = B``, or of ``X A = B``, where A is triangular."""

def svd(
    A: Tensor = ...,
    full_matrices: _bool = True,
    *,
    driver: str | None = None,
    out: Tensor | None = None,
    input: Tensor = ...,
) -> SVD:
    """Singular value decomposition ``A = U diag(S) Vh``."""

def svdvals(
    A: Tensor = ..., *, driver: str | None = None, out: Tensor | None = None, input: Tensor = ...
) -> Tensor:
    """Singular values of matrices, in falling order; arguments as `linalg.svd`."""

def tensorinv(A: Tensor = ..., ind: _int = 2, *, out: Tensor | None = None, input: Tensor = ...) -> Tensor:
    """The inverse of a tensor as a map between tensors: `tensordot` with it undoes that with A."""

def tensorsolve(
    A: Tensor = ...,
    B: Tensor = ...,
    dims: Sequence[_int] | None = None,
    *,
    out: Tensor | None = None,
    input: Tensor = ...,
    other: Tensor = ...,
) -> Tensor:
    """The ``X`` of ``tensordot(A, X, X.ndim) = B``."""

def vander(x: Tensor = ..., *, N: _int | None = None, input: Tensor = ...) -> Tensor:
    """Vandermonde matrices: column ``j`` is ``x ** j``."""

def vecdot(
    x: Tensor = ...,
    y: Tensor = ...,
    *,
    dim: _int = -1,
    out: Tensor | None = None,
    axis: _int = ...,
    input: Tensor = ...,
) -> Tensor:
    """Products of vectors along an axis, the first conjugated: ``sum(conj(x) * y)``."""

def vector_norm(
    x: Tensor = ...,
    ord: _float = 2,
    dim=None,
    keepdim: _bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
    axis=...,
    keepdims: _bool = ...,
    input: Tensor = ...,
) -> Tensor:
    """Norm of vectors: ``(sum |x|^ord)^(1/ord)``; inf the largest, -inf the smallest, 0 how many are
    not 0."""
