"""Products made of matrix products: tensordot, inner, kron, cross, addr, addmv, addbmm, cov, cdist."""

from __future__ import annotations

from math import prod
from typing import Any

from ...errors import ArgumentError, DTypeError, RangeError, ShapeError
from ...op.arguments import any_number, integers, number
from ...op.call import written
from ...op.public import function
from ...op.rules import of_one_dtype, refuse_complex
from ...tensors import dtypes as dt
from ...tensors.shape import axis, broadcast_shapes, index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..elementwise.complex import complex as joined
from ..shape.joining import roll
from .dense import addmm, dot, matmul, outer

MODES = (
    "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@function(ours="`ops.aten` has ATen's form, which lists the axes of each operand")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sum of products over several axes of both.

    Args:
        a, b: the operands.
        dims: how many of the last axes of a and the first of b, or two lists of axes.

    Raises:
        ShapeError: the axes have other lengths.
    """
    found = _contracted(a, b, dims)
    return found if out is None else written("tensordot", out, found)


def _contracted(a: Tensor, b: Tensor, dims: Any) -> Tensor:
    ranks = a._meta.rank, b._meta.rank
    if isinstance(dims, (tuple, list)) and len(dims) != 2:
        raise ArgumentError(f"tensordot: dims must be a number or two lists of axes, not {dims}.")
    if isinstance(dims, (tuple, list)):
        first, second = [integers((d,) if isinstance(d, int) else d, "tensordot: dims") for d in dims]
    else:
        count = index(dims, "tensordot: dims")
        if not 0 <= count <= min(ranks):
            raise RangeError(f"tensordot: dims is {count}; the operands have {ranks[0]} and {ranks[1]} axes.")
        first, second = tuple(range(ranks[0] - count, ranks[0])), tuple(range(count))
    left, right = [axis(d, ranks[0]) for d in first], [axis(d, ranks[1]) for d in second]
    for p, q in zip(left, right, strict=False):  # an axis of length 1 is repeated: the other is summed
        if a._meta.shape[p] == 1:
            b = b.sum(q, keepdim=True, dtype=b.dtype)
        elif b._meta.shape[q] == 1:
            a = a.sum(p, keepdim=True, dtype=a.dtype)
    lengths = [[x._meta.shape[d] for d in own] for x, own in ((a, left), (b, right))]
    if lengths[0] != lengths[1]:
        raise ShapeError(
            f"tensordot: the axes {first} and {second} have lengths {lengths[0]} and {lengths[1]}."
        )
    rows = [k for k in range(ranks[0]) if k not in left]
    columns = [k for k in range(ranks[1]) if k not in right]
    heights, widths = [a._meta.shape[k] for k in rows], [b._meta.shape[k] for k in columns]
    depth = prod(lengths[0])
    first = a.permute(*rows, *left).reshape(prod(heights), depth)
    product = first @ b.permute(*right, *columns).reshape(depth, prod(widths))
    return product.reshape(heights + widths)


@function(method=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products of all vectors along the last axes: ``out[i, j] = sum(input[i] * other[j])``."""
    if not (input._meta.rank and other._meta.rank):
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(
            f"inner: last axes have lengths {input.shape[-1]} and {other.shape[-1]}. They must be equal."
        )
    return tensordot(input, other, ([-1], [-1]))


@function(method=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: every element of ``input`` times all of ``other``."""
    rank = max(input._meta.rank, other._meta.rank)
    a = (1,) * (rank - input._meta.rank) + tuple(input._meta.shape)
    b = (1,) * (rank - other._meta.rank) + tuple(other._meta.shape)
    left = input.reshape([n for length in a for n in (length, 1)])
    right = other.reshape([n for length in b for n in (1, length)])
    return (left * right).reshape([n * m for n, m in zip(a, b, strict=True)])


@function(method=True, node="LinalgCross")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Cross product of vectors of three elements.

    Args:
        input, other: of shapes that broadcast.
        dim: the axis of the vectors; the first of length 3 if not given.

    Raises:
        ShapeError: the axis has another length.
    """
    of_one_dtype(input, other)
    if input.dim() != other.dim():
        shapes = f"{tuple(input.shape)} and {tuple(other.shape)}"
        raise ShapeError(f"cross: shapes {shapes} have not as many axes. Unsqueeze one of them.")
    shape = broadcast_shapes(input._meta.shape, other._meta.shape)
    a, b = input.expand(shape), other.expand(shape)
    if dim is None and 3 not in shape:
        raise ShapeError(f"cross: no axis of shape {tuple(shape)} has length 3.")
    k = shape.index(3) if dim is None else axis(dim, len(shape))
    if shape[k] != 3:
        raise ShapeError(f"cross: axis {k} has length {shape[k]}; vectors have 3 elements.")
    return roll(a, -1, k) * roll(b, -2, k) - roll(a, -2, k) * roll(b, -1, k)


@function(method=True, node="Vdot")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Product of two vectors, the first conjugated."""
    return dot(input.conj() if input._meta.dtype.is_complex else input, other)


@function(method=True, in_place=True, node="Addr")
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float | complex = 1, alpha: float | complex = 1
) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``; ``input`` is not read where beta is 0."""
    alpha, beta = any_number(alpha, "addr: alpha"), any_number(beta, "addr: beta")
    product = outer(vec1, vec2)
    if input.dim() > 2:
        raise ShapeError(f"addr: input has shape {tuple(input.shape)}, and the result two axes.")
    d = dt.result_type([input.dtype, product.dtype], [], [])
    for name, factor in (("alpha", alpha), ("beta", beta)):
        refuse_complex(type(factor), d)
        if isinstance(factor, float) and not (d.is_floating_point or d.is_complex):
            raise ArgumentError(f"addr: {name} is {factor} for {d}. Give an integer, or convert the tensors.")
    if d is dt.bool_:
        return (product & bool(alpha)) | (input & bool(beta))
    product = product.to(d) if alpha == 1 else product.to(d) * alpha
    return product if beta == 0 else (input if beta == 1 else input * beta) + product


@function(method=True, in_place=True, node="Addmv")
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: float | complex = 1, alpha: float | complex = 1
) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``; ``input`` is not read where beta is 0."""
    if (mat._meta.rank, vec._meta.rank) != (2, 1):
        shapes = f"{tuple(mat._meta.shape)} and {tuple(vec._meta.shape)}"
        raise ShapeError(f"addmv: takes a matrix and a vector, not shapes {shapes}.")
    own = input.unsqueeze(-1) if input._meta.rank else input
    return addmm(own, mat, vec.unsqueeze(1), beta=beta, alpha=alpha).squeeze(1)


@function(method=True, in_place=True, node="Addbmm")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float | complex = 1, alpha: float | complex = 1
) -> Tensor:
    """``beta * input + alpha * sum(batch1[k] @ batch2[k])``; ``input`` is not read where beta is 0."""
    a, b = batch1._meta.shape, batch2._meta.shape
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise ShapeError(f"addbmm: batches of shapes {tuple(a)} and {tuple(b)} have no products.")
    rows, columns = batch1.transpose(0, 1).reshape(a[1], a[0] * a[2]), batch2.reshape(b[0] * b[1], b[2])
    return addmm(input, rows, columns, beta=beta, alpha=alpha)


@function(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariances of variables, which are rows; columns are observations.

    Args:
        input: at most two axes.
        correction: taken from the number of observations.
        fweights: how often each observation was made, integers.
        aweights: how much each observation counts.

    Raises:
        ShapeError: more than two axes, or weights of another length.
        DTypeError: fweights are not integers, or aweights no floats.
        RangeError: a weight is negative, which is read, and so waits for the device.
    """
    if input._meta.rank > 2:
        raise ShapeError(f"cov: takes at most two axes, not {input._meta.rank}.")
    x = input.reshape(1, -1) if input._meta.rank < 2 else input
    if x._meta.dtype.kind not in "fc":
        x = x.float()
    count = x._meta.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and weights._meta.shape != (count,):
            raise ShapeError(f"cov: {name} has shape {tuple(weights._meta.shape)} for {count} observations.")
    if fweights is not None and not fweights._meta.dtype.is_integer:
        raise DTypeError(f"cov: fweights are {fweights._meta.dtype}, not integers. Give them as aweights.")
    if aweights is not None and not aweights._meta.dtype.is_floating_point:
        raise DTypeError(f"cov: aweights are {aweights._meta.dtype}. Convert them with .float().")
    given = [weights for weights in (fweights, aweights) if weights is not None]
    if any((weights.detach() < 0).any().item() for weights in given):
        raise RangeError("cov: a weight is negative. Weights say how often something was seen, or how much.")
    weight = None if not given else given[0] if len(given) == 1 else given[0] * given[1]
    if weight is None:
        total, middle, norm = count, x.mean(1, True), max(count - index(correction, "cov: correction"), 0)
    else:
        total = weight.sum()
        middle = (x * weight).sum(1, True) / total
        norm = total - correction * (1 if aweights is None else (weight * aweights).sum() / total)
        norm = norm.clamp(min=0)
    off = x - middle
    return (matmul(off if weight is None else off * weight, off.t().conj()) / norm).squeeze()


@function(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Correlation coefficients of variables, which are rows; columns are observations."""
    if input._meta.rank > 2:
        raise ShapeError(f"corrcoef: takes at most two axes, not {input._meta.rank}.")
    found = cov(input)
    if not found._meta.rank:
        return found / found
    scale = found.diagonal().real.sqrt()
    found = found / scale.unsqueeze(1) / scale
    if not found._meta.dtype.is_complex:
        return found.clamp(-1, 1)
    return joined(found.real.clamp(-1, 1), found.imag.clamp(-1, 1))


@function(ours="`ops.aten` has ATen's form, whose modes are numbers", node="Cdist")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Distances of all pairs of rows: ``out[i, j] = norm(x1[i] - x2[j], p)``.

    Args:
        x1, x2: (..., n, d) and (..., m, d).
        p: of the norm, at least 0.
        compute_mode: Euclidean distances as ``|a|² + |b|² - 2ab``, which is quick and less exact:
            "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", or where there are more than 25 rows.

    Raises:
        ShapeError: fewer than two axes, or rows of other lengths.
        RangeError: p is negative.
    """
    of_one_dtype(x1, x2)
    a, b = x1._meta.shape, x2._meta.shape
    if min(len(a), len(b)) < 2 or a[-1] != b[-1]:
        raise ShapeError(f"cdist: shapes {tuple(a)} and {tuple(b)} are no rows of one length.")
    if not number(p, "cdist: p") >= 0:
        raise RangeError(f"cdist: p must not be negative, not {p}.")
    if compute_mode not in MODES:
        raise RangeError(f"cdist: compute_mode is one of {', '.join(MODES)}, not {compute_mode!r}.")
    many = compute_mode == "use_mm_for_euclid_dist_if_necessary" and max(a[-2], b[-2]) > 25
    if p == 2 and (many or compute_mode == "use_mm_for_euclid_dist"):
        squares = (x1 * x1).sum(-1, True) + (x2 * x2).sum(-1).unsqueeze(-2) - 2 * (x1 @ x2.mT)
        apart = squares > 0
        # Where rows are equal, the distance is 0 and so is its derivative.
        return where(apart, where(apart, squares, 1.0).sqrt(), 0.0)
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)
