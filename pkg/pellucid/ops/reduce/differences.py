"""Differences and sums of neighbours: diff, trapezoid, gradient, and the distance of two tensors."""

from __future__ import annotations

from typing import Any

from ...errors import DimensionError, RangeError, ShapeError
from ...op.arguments import by_name, number
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.shape import axes, axis, index, sizes
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..shape.joining import cat


def _neighbours(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """All elements of an axis but the first, and all but the last."""
    rest = max(x._meta.shape[k] - 1, 0)
    return x.narrow(k, min(1, x._meta.shape[k]), rest), x.narrow(k, 0, rest)


@function(method=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Differences of neighbours: ``out[i] = input[i + 1] - input[i]``; of bools whether they differ.

    Args:
        input: at least one axis.
        n: how often.
        prepend, append: what comes before and after it.

    Raises:
        ShapeError: no axes.
        RangeError: n is negative.
    """
    if not input._meta.rank:
        raise ShapeError("diff: takes at least one axis, not a tensor without axes.")
    if index(n, "diff: n") < 0:
        raise RangeError(f"diff: n must not be negative, not {n}.")
    k = axis(dim, input._meta.rank)
    if not n:
        return input.clone()  # alone, as in PyTorch
    parts = [x for x in (prepend, input, append) if x is not None]
    out = cat(parts, k) if len(parts) > 1 else input
    for _ in range(min(n, out._meta.shape[k])):  # then nothing is left
        after, before = _neighbours(out, k)
        out = after ^ before if out._meta.dtype is dt.bool_ else after - before
    return out


def _areas(name: str, y: Tensor, x: Tensor | None, dx, dim: int) -> tuple[Tensor, int]:
    """The area between each two neighbours, and the axis."""
    if not y._meta.rank:
        raise DimensionError(f"{name}: values without axes have none to integrate along.")
    k = axis(dim, y._meta.rank)
    after, before = _neighbours(y, k)
    if x is None:
        return (after + before) * (number(dx, f"{name}: dx") / 2), k
    if x._meta.rank == 1:
        if x._meta.numel != y._meta.shape[k]:
            raise ShapeError(f"{name}: x has {x._meta.numel} elements for {y._meta.shape[k]} along axis {k}.")
        x = x.reshape([-1 if j == k else 1 for j in range(y._meta.rank)])
    right, left = _neighbours(x, axis(dim, x._meta.rank))
    return (after + before) * (right - left) / 2, k


@function(aten=("trapezoid.x", "trapezoid.dx(y, *, dx=1, dim=-1)"))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Integral along an axis by the trapezoidal rule.

    Args:
        y: values.
        x: where they lie: of the shape of y, or a vector along the axis.
        dx: how far apart they lie, without x.

    Raises:
        ShapeError: x does not fit.
    """
    areas, k = _areas("trapezoid", y, x, dx, dim)
    return areas.sum(k)


@function(aten=("cumulative_trapezoid.x", "cumulative_trapezoid.dx(y, *, dx=1, dim=-1)"))
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Integrals from the first element to each other, by the trapezoidal rule."""
    areas, k = _areas("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(k)


def _gaps(spacing: Any, rank: int, k: int, length: int) -> tuple[Any, ...]:
    """How far apart neighbours lie: left and right of each inner point, the first two, the last and the one
    before it."""
    if not isinstance(spacing, Tensor):
        return (float(number(spacing, "gradient: spacing")),) * 6
    gaps = spacing.diff().reshape([-1 if j == k else 1 for j in range(rank)])
    ends = [gaps.narrow(k, at, 1) if 0 <= at < length - 1 else None for at in (0, 1, length - 2, length - 3)]
    return gaps.narrow(k, 0, length - 2), gaps.narrow(k, 1, length - 2), *ends


def _slope(x: Tensor, k: int, spacing: Any, edge_order: int) -> Tensor:
    """The derivative along an axis whose points lie so far apart, or at these places."""
    length = x._meta.shape[k]
    if length <= edge_order:
        raise ShapeError(f"gradient: axis {k} has {length} elements; at least {edge_order + 1} are needed.")

    def part(begin: int, count: int) -> Tensor:
        return x.narrow(k, begin, count)

    left, right, first, second, last, before = _gaps(spacing, x._meta.rank, k, length)
    middle = (
        part(0, length - 2) * (-right / (left * (left + right)))
        + part(1, length - 2) * ((right - left) / (left * right))
        + part(2, length - 2) * (left / (right * (left + right)))
    )
    if edge_order == 1:
        ends = (part(1, 1) - part(0, 1)) / first, (part(length - 1, 1) - part(length - 2, 1)) / last
    else:
        ends = (
            part(0, 1) * (-(2 * first + second) / (first * (first + second)))
            + part(1, 1) * ((first + second) / (first * second))
            - part(2, 1) * (first / (second * (first + second))),
            part(length - 1, 1) * ((2 * last + before) / (last * (last + before)))
            - part(length - 2, 1) * ((last + before) / (last * before))
            + part(length - 3, 1) * (last / (before * (last + before))),
        )
    return cat([ends[0], middle, ends[1]], k)


@function(ours="ATen has an overload for every way to give the spacing")
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Derivatives along axes by differences, second order exact inside.

    Args:
        input: values.
        spacing: how far apart they lie: one number, a list of one for each axis, or of vectors of places.
        dim: the axes; all if not given.
        edge_order: 1 or 2, how exact it is at both ends.

    Raises:
        ShapeError: an axis is too short, or there are not as many spacings as axes.
        RangeError: edge_order is neither 1 nor 2.
        DimensionError: an axis is named twice.
    """
    if edge_order not in (1, 2):
        raise RangeError(f"gradient: edge_order is 1 or 2, not {edge_order}.")
    dims = [axis(d, input._meta.rank) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))] if (
        dim is not None
    ) else list(axes(None, input._meta.rank))  # fmt: skip
    if len({*dims}) < len(dims):
        raise DimensionError(f"gradient: axes {tuple(dims)} name one twice. Name each once.")
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise ShapeError(f"gradient: {len(spacings)} spacings for {len(dims)} axes. Give one for each.")
    x = input if input._meta.dtype.kind in "fc" else input.float()
    return tuple([_slope(x, k, s, edge_order) for k, s in zip(dims, spacings, strict=True)])


@function(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Norm of a difference: ``(input - other).norm(p)``."""
    return (input - other).norm(p)


@function(method=True, in_place=True, node="Renorm")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Parts along an axis scaled down so that the norm of none is above ``maxnorm``.

    Raises:
        ShapeError: fewer than two axes.
        RangeError: p is not positive, or maxnorm is negative.
    """
    if input._meta.rank < 2:
        raise ShapeError(f"renorm: takes at least two axes, not {input._meta.rank}.")
    if not number(p, "renorm: p") > 0 or not number(maxnorm, "renorm: maxnorm") >= 0:
        raise RangeError(f"renorm: p must be positive and maxnorm not negative, not {p} and {maxnorm}.")
    k = axis(dim, input._meta.rank)
    sizes_of = input.norm(p, tuple([j for j in range(input._meta.rank) if j != k]), True)
    return input * where(sizes_of > maxnorm, maxnorm / (sizes_of + 1e-7), 1.0)


@function(exports=None, method=True)
@by_name
def sum_to_size(input: Tensor, *given, size=None) -> Tensor:
    """The sum over axes that a broadcast from ``size`` would have made.

    Raises:
        ShapeError: the size does not broadcast to the tensor's.
    """
    wanted, shape = sizes(given if size is None else (size,)), input._meta.shape
    if not wanted:
        return input.sum()
    lead = len(shape) - len(wanted)
    if lead < 0 or any(n not in (1, m) for n, m in zip(wanted, shape[lead:], strict=True)):
        raise ShapeError(f"sum_to_size: size {wanted} does not broadcast to shape {tuple(shape)}.")
    dims = [*range(lead), *[lead + j for j, n in enumerate(wanted) if n == 1 != shape[lead + j]]]
    return input.sum(tuple(dims), True).reshape(wanted) if dims else input
