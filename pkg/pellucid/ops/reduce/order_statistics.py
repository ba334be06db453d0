"""Order statistics, by selection and by sorting: median, kthvalue, mode, quantile, and those without NaN."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...autograd.composed import composed
from ...autograd.edges import labelled
from ...errors import ArgumentError, DimensionError, DTypeError, RangeError
from ...op.arguments import describe, number
from ...op.declaration import Call, function, op
from ...op.families import called
from ...op.kernel import Launch, load, register_type
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.shape import Size, axis, index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..index.sort import SORTED_AT_ONCE, ValuesAndIndices, numpy_order, sort, values_and_indices
from ..shape.joining import cat
from .extremum import order_holes, pair_types, whole_grad

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _row(name: str, input: Tensor, dim: int) -> tuple[Tensor, int, int]:
    """What has the axis, which that is, and how long; one element is a row."""
    k = axis(dim, input._meta.rank)
    row = input if input._meta.rank else input.reshape(1)
    length = row._meta.shape[k]
    if not length:
        raise DimensionError(f"{name}: axis {k} has no elements to choose from.")
    return row, k, length


def _at(
    name: str, found: ValuesAndIndices, k: int, places: Tensor, keepdim: bool, rank: int
) -> ValuesAndIndices:
    """What stands at one place of each row."""
    there = [x.gather(k, places) for x in found]
    if not (rank and keepdim):
        there = [x.squeeze(k) for x in there]
    return values_and_indices(name)(*there)


# Ranks that follow the number of NaN: of the middle, which is the first NaN where there is one, and of the
# middle of the others.
_MIDDLE, _MIDDLE_OF_NUMBERS = -1, -2
# Entries that a workgroup counts.
_BLOCK = 16384


def _statistic_launches(call: Call) -> list[Launch]:
    """For each digit of the keys, and then of the places, one dispatch that counts and one that chooses."""
    m, rank = call["input"], call["rank"]
    rows, columns = prod(m.shape[:-1]), m.shape[-1]
    blocks, holes = -(-columns // _BLOCK), order_holes(m.dtype, False)
    words = {0: 4, 1: 4 if m.dtype.itemsize == 8 else 0, 2: -(-(columns - 1).bit_length() // 8)}
    for name, each in (("known", 4), ("counts", 257), ("places", 1)):
        call.temporary(name, (each * rows,), dt.uint32)
    count = load("reduce/select_count").fill(holes)
    choose = load("reduce/select_digit").fill({"RANK": f"{max(-rank, 0)}u"})

    def chosen(word: int, shift: int, begins: int) -> Launch:
        params = {"columns": columns, "word": word, "shift": shift, "rank": max(rank, 0), "begins": begins}
        return Launch(choose, rows, {"groups": rows, **params})

    made = [chosen(0, 0, 1)]
    for word, shift in [
        (word, 8 * k) for word, digits in words.items() for k in range(4)[::-1][-digits or 4 :]
    ]:
        params = {"groups": rows * blocks, "columns": columns, "blocks": blocks, "word": word, "shift": shift}
        made += [Launch(count, rows * blocks, params, bind={"x": "input"}), chosen(word, shift, 0)]
    params = {"count": rows, "columns": columns, "entries": 1, "keep": 1}
    finish = load("index/sort/finish").fill({"T": register_type(m.dtype)})
    return [*made, Launch(finish, -(-rows // 64), params, bind={"x": "input", "order": "places"})]


def _statistic_reference(input, rank):
    order = numpy_order(input, False)
    columns = input.shape[-1]
    places = np.full((*input.shape[:-1], 1), rank)
    if rank < 0:
        lost = (input != input).sum(-1, keepdims=True)
        others = np.maximum(columns - lost - 1, 0) // 2
        places = others if rank == _MIDDLE_OF_NUMBERS else np.where(lost > 0, columns - lost, others)
    found = np.take_along_axis(order, places, -1)
    return np.take_along_axis(input, found, -1)[..., 0], found[..., 0]


@op(
    dtype=pair_types,
    shape=lambda call: (Size(call["input"].shape[:-1]),) * 2,
    kernel=_statistic_launches,
    reference=_statistic_reference,
    grad={
        "input": lambda g, indices, input_meta: g.new_zeros(input_meta.shape).scatter(
            -1, indices.unsqueeze(-1), g.unsqueeze(-1)
        )
    },
    outputs=("values", "indices"),
    exports=None,
    public="kthvalue",
)
def order_statistic(input: Tensor, rank: int) -> ValuesAndIndices:
    """The entry of a rank, from 0, in the stable order of each row; -1 for `median`, -2 for `nanmedian`."""


def _statistic(name: str, input: Tensor, dim: int, keepdim: bool, rank: int) -> ValuesAndIndices:
    """The entry of a rank: short rows are sorted at once."""
    row, k, length = _row(name, input, dim)
    if length > SORTED_AT_ONCE:
        there: Any = order_statistic(row.movedim(k, -1), rank)
        return values_and_indices(name)(*[x.unsqueeze(k) if keepdim else x for x in there])
    found = sort(row, k)
    places = found.indices.narrow(k, 0, 1) * 0 + (rank if rank >= 0 else (length - 1) // 2)
    if rank < 0 and input._meta.dtype.is_floating_point:
        lost = found.values.detach().isnan().sum(k, True)
        if rank == _MIDDLE_OF_NUMBERS:
            places = (length - 1 - lost).clamp(min=0) // 2
        else:
            places = where(lost > 0, length - lost, places)
    return _at(name, found, k, places, keepdim, input._meta.rank)


def _median_of(name: str, rank: int, doc: str) -> Callable:
    """Declare a median of all elements, or along an axis."""

    @composed(name=name, input=whole_grad)
    def whole(input: Tensor) -> Tensor:
        return _statistic(name, input.reshape(-1), 0, False, rank).values

    def call(input: Tensor, dim: int | None = None, keepdim: bool = False):
        if dim is not None:
            return labelled(f"{name.capitalize()}Backward1", _statistic(name, input, dim, keepdim, rank))
        return whole(input) if input._meta.numel else input.new_full((), float("nan"))

    return called(name, doc, call, method=True, aten=(f"{name}.default", f"{name}.dim"))


median = _median_of(
    "median",
    _MIDDLE,
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
nanmedian = _median_of("nanmedian", _MIDDLE_OF_NUMBERS, "`median` of what is not NaN.")


@function(method=True, node="Kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The ``k``-th smallest value of each row, counted from 1, and its place.

    Raises:
        RangeError: there is no such element.
    """
    _, along, length = _row("kthvalue", input, dim)
    if not 1 <= index(k, "kthvalue: k") <= length:
        raise RangeError(f"kthvalue: k is {k}; axis {along} has elements 1 to {length}.")
    return _statistic("kthvalue", input, dim, keepdim, k - 1)


@function(method=True, node="Mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent value of each row, the smallest of several, and the last place where it stands."""
    row, k, length = _row("mode", input, dim)
    found = sort(row, k)
    values = found.values.detach()
    begins = values.narrow(k, 1, length - 1) != values.narrow(k, 0, length - 1)
    first = found.indices.narrow(k, 0, 1) * 0
    runs = first if length == 1 else cat([first, begins.to(dt.int64).cumsum(k)], k)
    counts = (found.indices * 0).scatter_add(k, runs, found.indices * 0 + 1)
    best = counts.argmax(k, True)
    return _at("mode", found, k, counts.cumsum(k).gather(k, best) - 1, keepdim, input._meta.rank)


def _taken(name: str, input: Tensor, q, dim, keepdim: bool, interpolation: str, skips: bool) -> Tensor:
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


def _quantile(name: str, skips: bool, doc: str) -> Callable:
    """Declare the quantiles of all elements, or of what is not NaN."""

    def call(
        input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        return _taken(name, input, q, dim, keepdim, interpolation, skips)

    return called(name, doc, call, method=True, aten=(f"{name}.default", f"{name}.scalar"))


quantile = _quantile(
    "quantile", False,
    """Value below which a share ``q`` of the elements of each row lies; NaN where there is one.

    Args:
        input: float32 or float64.
        q: a share from 0 to 1, or a vector of them, which becomes the first axis.
        dim: the axis; without it all elements.
        interpolation: between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    Raises:
        RangeError: a share outside of 0 to 1, or no elements.
        DTypeError: another type.
    """,
)  # fmt: skip
nanquantile = _quantile("nanquantile", True, "`quantile` of what is not NaN.")


@function(method=True, node="Sort")
def msort(input: Tensor) -> Tensor:
    """The values sorted along the first axis."""
    return sort(input, 0).values
