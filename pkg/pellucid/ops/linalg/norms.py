"""Norms of vectors and matrices, and the condition of matrices."""

from __future__ import annotations

from math import inf, prod

from ...autograd.composed import composed
from ...autograd.formulas import zeros
from ...errors import DTypeError, RangeError, ShapeError
from ...op.arguments import element_type, integers, number
from ...op.call import written
from ...op.families import called
from ...op.public import function
from ...tensors.dtypes import LARGEST_HALF, DType
from ...tensors.shape import axes, axis
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..reduce.extremum import amax, amin
from ..reduce.reductions import restore, spread, sum
from .matrices import floats, matrices, square
from .solvers import inv_ex
from .spectral import svdvals


def _norm_grad(g, input, p, dim, keepdim, out):
    """Where a norm is 0 its slope is taken as 0."""
    m = input._meta
    if p == 0:
        return zeros(spread(g, m, dim, keepdim))
    g, out = restore(g, m, dim, keepdim), restore(out, m, dim, keepdim)
    if p == 1:
        return g * input.sign()
    if p == 2:
        return g * (input / out).masked_fill(out == 0, 0.0)
    size = input.abs()
    if p in (inf, -inf):  # equal ones share it, and so do NaN
        chosen = ((size == out) | input.isnan()).to(g.dtype)
        return input.sign() * (g / sum(chosen, dim, True) * chosen)
    if p < 1:
        return input.sign() * (size ** (p - 1)).masked_fill(input == 0, 0.0) * g * out ** (1 - p)
    scale = (g / out ** (p - 1)).masked_fill(out == 0, 0.0)
    return (input.sign() * size ** (p - 1) if p < 2 else input * size ** (p - 2)) * scale


@composed(name="norm", input=_norm_grad)
def _norm(input: Tensor, p: float, dim, keepdim: bool) -> Tensor:
    if p == 2:
        return sum(input * input, dim, keepdim).sqrt()
    if p == 0:
        return sum((input != 0).to(input.dtype), dim, keepdim)
    size = input.abs()
    if p in (inf, -inf):
        return (amax if p > 0 else amin)(size, dim, keepdim)
    if p == 1:
        return sum(size, dim, keepdim)
    return sum(size**p, dim, keepdim) ** (1.0 / p)


@function(aten=("norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype", "norm.ScalarOpt_dtype"))
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim=None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """Vector norm over axes: ``(sum |x|^p)^(1/p)``; p = inf largest, -inf smallest, 0 the number of
    nonzero elements; or the nuclear norm of matrices.

    Args:
        input: floating point.
        p: the order; "fro" and None are 2; "nuc" the sum of singular values of the matrices in two axes.
        dim: axis or axes; all if None.
        dtype: type to convert to first.

    Raises:
        DTypeError: an integer tensor.
        RangeError: another string.
    """
    found = _any_norm(input, p, dim, keepdim, dtype)
    return found if out is None else written("norm", out, found)


def _any_norm(input: Tensor, p: float | str | None, dim, keepdim: bool, dtype: DType | None) -> Tensor:
    if dtype is not None:
        input = input.to(element_type(dtype))
    if input.dtype.is_complex and p != "nuc":
        input = input.abs()
    if input.dtype.kind not in "fc":
        raise DTypeError(f"norm: the input is {input.dtype}, not floating point. Convert it with .float().")
    if isinstance(p, str):
        if p == "nuc":
            return nuclear_norm(input, dim, keepdim)
        if p != "fro":
            raise RangeError(f"norm: p={p!r} is not a vector norm. Give a number, 'fro' or 'nuc'.")
        p = 2.0
    p = 2.0 if p is None else number(p, "norm: p")
    if p < 0 and not prod(input.shape[d] for d in axes(dim, input.dim())):
        raise ShapeError(f"norm: of no elements there is no norm of order {p}. Give a tensor with elements.")
    if input.dtype in LARGEST_HALF and p not in (0, 1, 2, inf, -inf):
        return _norm(input.float(), p, dim, keepdim).to(input.dtype)  # powers leave the range of halves
    return _norm(input, p, dim, keepdim)


def _method(
    input: Tensor, p: float | str | None = "fro", dim=None, keepdim: bool = False, dtype: DType | None = None
) -> Tensor:
    # PyTorch's method has no ``out``, and so another place for ``dtype``.
    return _any_norm(input, p, dim, keepdim, dtype)


_DOC = "Vector norm of this tensor over axes; `pellucid.norm` explains the arguments."
called("norm", _DOC, _method, exports=None, method=True, ours="a form of `norm`")


@function(aten="nuclear_norm.dim")
def nuclear_norm(input: Tensor, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices.

    Args:
        input: a matrix, or a tensor with matrices in two of its axes.
        dim: these axes; None for those of a matrix.

    Raises:
        ShapeError: dim is not given, and the tensor is no matrix.

    Source: https://pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
    """
    if dim is None and input.ndim != 2:
        raise ShapeError(f"takes a matrix where dim is None, not {input.ndim} axes.")
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


@function(ours="PyTorch computes it in Python")
def frobenius_norm(input: Tensor, dim: tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares over axes, all if dim is None.

    Source: https://pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html
    """
    return norm(input, 2.0, dim, keepdim)


@function(exports="linalg")
def vector_norm(
    x: Tensor, ord: float = 2, dim=None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Norm of vectors: ``(sum |x|^ord)^(1/ord)``; inf the largest, -inf the smallest, 0 how many are not 0.

    Args:
        x: floating point or complex.
        ord: the order.
        dim: axis or axes; all if None.
        dtype: type to convert to first.

    Raises:
        DTypeError: an integer tensor.
        ShapeError: there is no norm of that order of no elements.
    """
    ord = number(ord, "ord")
    return _any_norm(x.abs() if x.dtype.is_complex else x, ord, dim, keepdim, dtype)


# Sums along one of the two axes, of which the largest or the smallest is taken: which axis, counted from
# the end.
_SUMS = {1: (-2, amax), -1: (-2, amin), inf: (-1, amax), -inf: (-1, amin)}


@function(exports="linalg", aten=("linalg_matrix_norm.default", "linalg_matrix_norm.str_ord"))
def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: tuple[int, ...] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Norm of matrices.

    Args:
        A: floating point or complex, with matrices in two of its axes.
        ord: "fro": of all elements as a vector; "nuc": the sum of singular values; 2 or -2: the largest or
            smallest one; 1 or -1: the largest or smallest sum of a column's sizes; inf or -inf: of a row's.
        dim: the two axes.
        dtype: type to convert to first.

    Raises:
        RangeError: another order.
        ShapeError: dim does not name two axes.
    """
    if not A.dtype.is_floating_point:
        floats(A.dtype)
    pair = integers(dim, "dim")
    matrices(A, "A")
    if len(pair) != 2 or axis(pair[0], A.ndim) == axis(pair[1], A.ndim):
        raise ShapeError(f"dim must name two axes, not {dim}.")
    ord = ord if isinstance(ord, str) else number(ord, "ord")
    if ord == "fro":
        return vector_norm(A, 2, pair, keepdim, dtype=dtype)
    if ord not in ("nuc", 2, -2, *_SUMS):
        raise RangeError(
            f"there is no matrix norm of order {ord!r}. Give 'fro', 'nuc', 2, -2, 1, -1, inf or -inf."
        )
    A = (A if dtype is None else A.to(element_type(dtype))).movedim(pair, (-2, -1))
    if ord in _SUMS:
        along, choose = _SUMS[ord]
        sizes, least = A.abs().sum(along), ord in (-1, -inf)
    else:
        sizes, choose, least = svdvals(A), None if ord == "nuc" else amax if ord == 2 else amin, ord == -2
    found = sizes.sum(-1) if choose is None or (not sizes.shape[-1] and not least) else choose(sizes, -1)
    if not keepdim:
        return found
    first, second = sorted(axis(d, A.ndim) for d in pair)
    return found.unsqueeze(first).unsqueeze(second)


def _linalg_norm(
    A: Tensor, ord=None, dim=None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Norm of vectors or matrices.

    Args:
        A: floating point or complex.
        ord: of vectors a number, of matrices also "fro" and "nuc"; None for the square root of the sum of
            squares.
        dim: one axis for vectors, two for matrices; if None all, and with an order A must have one or two
            axes.
        keepdim: keep the axes, with length 1.
        dtype: type to convert to first.

    Raises:
        ShapeError: more axes than dim says something of.
    """
    named = None if dim is None else (dim,) if isinstance(dim, int) else integers(dim, "dim")
    ord = ord if ord is None or isinstance(ord, str) else number(ord, "ord")
    if ord is not None and named is None and A.ndim not in (1, 2):
        raise ShapeError(f"takes one or two axes where dim is None and ord is not, not {A.ndim}.")
    if ord is not None and named is not None and len(named) not in (1, 2):
        raise ShapeError(f"dim must name one axis or two, not {dim}.")
    if ord is None or (not isinstance(ord, str) and len(named or A.shape) == 1):
        return vector_norm(A, 2.0 if ord is None else ord, named, keepdim, dtype=dtype)
    return matrix_norm(A, ord, (-2, -1) if named is None else named, keepdim, dtype=dtype)


_OVERLOADS = "linalg_norm.default", "linalg_norm.ord_str"
called("norm", _linalg_norm.__doc__ or "", _linalg_norm, exports="linalg", aten=_OVERLOADS)


@function(exports="linalg", aten=("linalg_cond.default", "linalg_cond.p_str"))
def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition of matrices: ``|A| |A⁻¹|``, by which errors of a system's solution may grow.

    Args:
        A: (..., n, n); also (..., m, n) where p is None, 2 or -2.
        p: the norm, as `linalg.matrix_norm` takes it; None for 2.

    Returns:
        The shape of the batch; infinite of singular matrices.

    Raises:
        RangeError: there is no such norm.
    """
    matrices(A, "A")
    floats(A.dtype)
    p = p if p is None or isinstance(p, str) else number(p, "p")
    if p is not None and p not in (2, -2):
        square(A, "A")
    if not A._meta.numel:
        return A.new_zeros(A.shape[:-2])
    if p is None or p in (2, -2):
        sizes = svdvals(A)
        first, last = sizes[..., 0], sizes[..., -1]
        return last / first if p == -2 else first / last
    inverse, info = inv_ex(A)
    return where(info == 0, matrix_norm(A, p) * matrix_norm(inverse, p), inf)
