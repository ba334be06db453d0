"""Order statistics, by sorting: median, kthvalue, mode, quantile, and those that leave NaN out."""

from __future__ import annotations

from collections.abc import Callable

from ...autograd.composed import composed
from ...errors import ArgumentError, DimensionError, DTypeError, RangeError
from ...op.arguments import boolean, describe, number
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..index.sort import ValuesAndIndices, sort
from ..shape.joining import cat
from .extremum import whole_grad

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _sorted_row(name: str, input: Tensor, dim: int, keepdim: bool) -> tuple[ValuesAndIndices, int, int]:
    """The sorted axis, which, and how long it is; one element is a row."""
    k = axis(dim, input._meta.rank)
    boolean(keepdim, f"{name}: keepdim")
    row = input if input._meta.rank else input.reshape(1)
    length = row._meta.shape[k]
    if not length:
        raise DimensionError(f"{name}: axis {k} has no elements to choose from.")
    return sort(row, k), k, length


def _at(found: ValuesAndIndices, k: int, places: Tensor, keepdim: bool, rank: int) -> ValuesAndIndices:
    """What stands at one place of each row."""
    there = [x.gather(k, places) for x in found]
    if not (rank and keepdim):
        there = [x.squeeze(k) for x in there]
    return ValuesAndIndices(*there)


def _middle(name: str, input: Tensor, dim: int, keepdim: bool, skips: bool) -> ValuesAndIndices:
    found, k, length = _sorted_row(name, input, dim, keepdim)
    if input._meta.dtype.is_floating_point:
        lost = found.values.detach().isnan().sum(k, True)
        places = (
            (length - 1 - lost).clamp(min=0) // 2
            if skips
            else where(lost > 0, length - lost, (length - 1) // 2)
        )
    else:
        places = found.indices.narrow(k, 0, 1) * 0 + (length - 1) // 2
    return _at(found, k, places, keepdim, input._meta.rank)


def _median_of(name: str, skips: bool, doc: str) -> Callable:
    """Declare a median of all elements, or along an axis."""

    @composed(name=name, input=whole_grad)
    def whole(input: Tensor) -> Tensor:
        return _middle(name, input.reshape(-1), 0, False, skips).values

    def call(input: Tensor, dim: int | None = None, keepdim: bool = False):
        if dim is not None:
            return _middle(name, input, dim, keepdim, skips)
        return whole(input) if input._meta.numel else input.new_full((), float("nan"))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return function(method=True, aten=(f"{name}.default", f"{name}.dim"))(call)


median = _median_of(
    "median",
    False,
    """The middle of the sorted values, the lower of two; NaN where there is one.

    Args:
        input: any real dtype.
        dim: the axis; without it the median of all elements.

    Returns:
        A tensor, or with ``dim`` values and their places.

    Raises:
        DimensionError: there are no elements along the axis.
    """,
)
nanmedian = _median_of("nanmedian", True, "`median` of what is not NaN.")


@function(method=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The ``k``-th smallest value of each row, counted from 1, and its place.

    Raises:
        RangeError: there is no such element.
    """
    found, along, length = _sorted_row("kthvalue", input, dim, keepdim)
    if not 1 <= index(k, "kthvalue: k") <= length:
        raise RangeError(f"kthvalue: k is {k}; axis {along} has elements 1 to {length}.")
    places = found.indices.narrow(along, 0, 1) * 0 + (k - 1)
    return _at(found, along, places, keepdim, input._meta.rank)


@function(method=True)
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent value of each row, the smallest of several, and the last place where it stands."""
    found, k, length = _sorted_row("mode", input, dim, keepdim)
    values = found.values.detach()
    begins = values.narrow(k, 1, length - 1) != values.narrow(k, 0, length - 1)
    first = found.indices.narrow(k, 0, 1) * 0
    runs = first if length == 1 else cat([first, begins.to(dt.int64).cumsum(k)], k)
    counts = (found.indices * 0).scatter_add(k, runs, found.indices * 0 + 1)
    best = counts.argmax(k, True)
    return _at(found, k, counts.cumsum(k).gather(k, best) - 1, keepdim, input._meta.rank)


def _quantile(name: str, input: Tensor, q, dim, keepdim: bool, interpolation: str, skips: bool) -> Tensor:
    d = input._meta.dtype
    if d not in (dt.float32, dt.float64):
        raise DTypeError(f"{name}: takes float32 or float64, not {d}. Convert with .float().")
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError(
            f"{name}: interpolation is one of {', '.join(_INTERPOLATIONS)}, not {interpolation!r}."
        )
    if not isinstance(q, Tensor):
        if not 0 <= number(q, f"{name}: q") <= 1:
            raise RangeError(f"{name}: q is {q}; it must lie between 0 and 1.")
        q = tensor(q, dtype=d, device=input.device)
    if q._meta.dtype is not d or q._meta.rank > 1:
        raise ArgumentError(
            f"{name}: q must be a number, or a vector of {d}, not {describe(q)} of {q._meta.dtype}."
        )
    whole = dim is None
    boolean(keepdim, f"{name}: keepdim")
    k = 0 if whole else axis(dim, input._meta.rank)
    row = input.reshape(-1) if whole or not input._meta.rank else input.movedim(k, -1)
    length = row._meta.shape[-1]
    if not length:
        raise RangeError(f"{name}: there are no elements to choose from.")
    values = sort(row, -1).values
    lost = values.detach().isnan().sum(-1, True)
    ranks = q.reshape(-1) * ((length - 1 - lost).clamp(min=0) if skips else length - 1)
    if not skips:
        ranks = where(lost > 0, float(length - 1), ranks)
    low = ranks.floor() if interpolation != "higher" else ranks.ceil()
    if interpolation == "nearest":
        low = ranks.round()
    out = values.gather(-1, low.to(dt.int64))
    if interpolation in ("linear", "midpoint"):
        upper = values.gather(-1, ranks.ceil().to(dt.int64))
        out = out.lerp(upper, 0.5 * (ranks != low).to(d) if interpolation == "midpoint" else ranks - low)
    if keepdim and input._meta.rank:
        shape = [1] * input._meta.rank
        out = out.reshape(*shape, -1) if whole else out.unsqueeze(k)
    out = out.movedim(-1, 0)
    return out if q._meta.rank else out.squeeze(0)


@function(method=True, aten=("quantile.default", "quantile.scalar"))
def quantile(
    input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Value below which a share ``q`` of the elements of each row lies; NaN where there is one.

    Args:
        input: float32 or float64.
        q: a share from 0 to 1, or a vector of them, which becomes the first axis.
        dim: the axis; without it all elements.
        interpolation: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Raises:
        RangeError: a share outside of 0 to 1, or no elements.
        DTypeError: another type.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@function(method=True, aten=("nanquantile.default", "nanquantile.scalar"))
def nanquantile(
    input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile` of what is not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


@function(method=True)
def msort(input: Tensor) -> Tensor:
    """The values sorted along the first axis."""
    return sort(input, 0).values
