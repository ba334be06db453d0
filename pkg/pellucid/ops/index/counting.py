"""Search and counting: searchsorted, bucketize, isin, bincount, histc, unique."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import numpy as np

from ...device.stream import stream
from ...errors import ArgumentError, DTypeError, RangeError, ShapeError
from ...op.arguments import boolean, number, text
from ...op.declaration import Call, elementwise, function, op
from ...op.kernel import Launch, Params, flag, is_direct, load, per_element, physical
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.shape import Size, axis, index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..reduce.extremum import extremes, extremes_later, order_holes
from ..reduce.reductions import no_complex
from ..shape.creation import zeros
from ..shape.joining import cat
from .selection import chosen_rows, running_count, true_places
from .sort import sort

# Bins that a workgroup counts in its own memory.
_LOCAL = 2048
# Keys of a row that a workgroup holds, values from which on it does, and those that occupy a GPU.
_HELD, _SEVERAL, _WAVE = 2048, 4096, 1 << 18


def _places_of(rows, input, out_int32, right, side, sorter) -> Tensor | None:
    """The search in sorted rows, for values of their dtype."""
    behind = boolean(right, "right") or side == "right"
    if side is not None and (text(side, "side") not in ("left", "right") or (right and side == "left")):
        raise ArgumentError(
            f"searchsorted: side is 'left' or 'right', and 'right' with right=True, not {side!r}."
        )
    boolean(out_int32, "out_int32")
    if sorter is not None:
        if sorter._meta.shape != rows._meta.shape or sorter._meta.dtype is not dt.int64:
            raise ShapeError("searchsorted: sorter must be int64 and have the shape of sorted_sequence.")
        rows = rows.gather(-1, sorter)
    x = input if isinstance(input, Tensor) else tensor(input, device=rows.device)
    d = dt.promote_types(rows._meta.dtype, x._meta.dtype)
    if sorter is not None or x is not input or side is not None or rows.dtype is not x.dtype:
        return searchsorted(rows.to(d), x.to(d), out_int32=out_int32, right=behind)


def _search_types(call: Call):
    d = call["sorted_sequence"].dtype
    if d.is_complex:
        raise DTypeError("complex numbers have no order. Search for their .real or .abs().")
    return dt.int32 if call["out_int32"] else dt.int64, d


def _search_shape(call: Call) -> Size:
    rows, own = call["sorted_sequence"].shape, call["input"].shape
    if not rows or (rows[:-1] and own[:-1] != rows[:-1]):
        raise ShapeError(
            f"sorted_sequence has shape {tuple(rows)} and input {tuple(own)}; all axes but the last must be "
            "equal."
        )
    return own


def _search_launch(call: Call) -> Launch:
    rows, x = call["sorted_sequence"], call["input"]
    columns, per = rows.shape[-1], x.shape[-1] if rows.rank > 1 else x.numel
    holes = {**order_holes(rows.dtype, False), "RIGHT": flag(call["right"])}
    if call["out_int32"]:
        holes |= {"PLACE": "i32", "placed": "i32(place)"}
    params: Params = {"count": x.numel, "columns": columns}
    bind = {"rows": "sorted_sequence"}
    is_short = rows.rank == 1 and columns < _HELD and holes["T"] != "vec2<u32>"
    if is_short and x.numel >= _SEVERAL and not is_direct():
        each = max(8, min(x.numel // _WAVE // 8 * 8, 32))
        holes |= {"LEVELS": f"{max(columns.bit_length(), 1)}u", "PER": f"{each}u"}
        return Launch(load("index/search").fill(holes), -(-x.numel // (256 * each)), params, bind=bind)
    params["per"] = max(per, 1)
    return per_element(load("index/search_direct").fill(holes), x.numel, params, bind=bind)


def _search_reference(rows, input, out_int32, right, side, sorter):
    # As PyTorch bisects, which passes a NaN that it meets.
    columns = rows.shape[-1]
    lines = np.broadcast_to(rows, (*input.shape[:-1], columns)) if rows.ndim > 1 else rows
    low = np.zeros(input.shape, np.int64)
    high = low + columns
    for _ in range(columns.bit_length()):
        middle = (low + high) // 2
        places = np.minimum(middle, columns - 1)
        found = np.take_along_axis(lines, places, -1) if rows.ndim > 1 else lines[places]
        is_before = (low < high) & ~(found > input if right else found >= input)
        low, high = np.where(is_before, middle + 1, low), np.where(is_before, high, middle)
    return low.astype(np.int32 if out_int32 else np.int64)


@op(
    dtype=_search_types,
    shape=_search_shape,
    kernel=_search_launch,
    reference=_search_reference,
    grad=None,
    aten=("searchsorted.Tensor", "searchsorted.Scalar"),
    prepare=_places_of,
)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Places where values would be inserted into sorted rows so that these stay sorted.

    Args:
        sorted_sequence: (n,), or (..., n): rows in ascending order.
        input: a number, any tensor for one row, or (..., m) for as many rows.
        out_int32: whether the places are int32, not int64.
        right: whether behind values that are equal, not before them.
        side: "left" or "right", the same in words.
        sorter: the order of the rows, as `argsort` gives it, where they are not sorted.

    Raises:
        ShapeError: the rows do not fit.
        DTypeError: complex numbers, which have no order.
        ArgumentError: side and right say different things.
    """


@function(aten=("bucketize.Tensor", "bucketize.Scalar"))
def bucketize(
    input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The bucket of each value, between sorted boundaries: `searchsorted` with its arguments exchanged.

    Raises:
        ShapeError: boundaries are no vector.
    """
    if boundaries._meta.rank != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, not {boundaries._meta.rank} axes.")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@function(
    aten=(
        "isin.Tensor_Tensor",
        "isin.Tensor_Scalar(elements, test_element, *, assume_unique=False, invert=False)",
        "isin.Scalar_Tensor(element, test_elements, *, assume_unique=False, invert=False)",
    )
)
def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Whether each element is one of others; ``invert`` whether it is none."""
    both = elements, test_elements
    device = next((x.device for x in both if isinstance(x, Tensor)), None)
    if device is None:
        raise ArgumentError("isin: elements or test_elements must be a Tensor.")
    given, known = [x if isinstance(x, Tensor) else tensor(x, device=device) for x in both]
    if not known._meta.numel:
        found = zeros(*given._meta.shape, dtype=dt.bool_, device=device)
    else:
        d = dt.promote_types(given._meta.dtype, known._meta.dtype)
        x, rows = given.to(d), known.reshape(-1).to(d)
        some: Any = True
        if d.is_floating_point:
            # NaN is equal to nothing, and no order finds what is sorted before it: the largest number, which
            # is there anyway, stands in its place.
            none = rows.isnan()
            rows = where(none, where(none, -inf, rows).amax(), rows)
            some = ~none.all()
        rows = sort(rows).values
        found = (rows[searchsorted(rows, x).clamp(max=known._meta.numel - 1)] == x) & some
    return ~found if invert else found


def _occurrence_launches(call: Call) -> list[Launch]:
    count, bins = call["index"].numel, call["length"]
    none = load("index/segment_base").fill({"T": "vec2<u32>", "HAS_BASE": "false"})
    file = load("index/occurrences").fill({"LOCAL": flag(bins <= _LOCAL), "BINS": f"{_LOCAL}u"})
    return [
        per_element(none, -(-bins // 4), {"count": bins}, bind={"x": "index"}),
        Launch(file, -(-count // (256 * 64)), {"count": count, "bins": bins}),
    ]


@op(
    public="bincount",
    dtype=lambda call: (dt.int64, dt.int64),
    shape=lambda call: Size((call["length"],)),
    kernel=_occurrence_launches,
    reference=lambda index, length: np.bincount(
        index[(index >= 0) & (index < length)], minlength=length
    ).astype(np.int64),
    grad=None,
)
def occurrences(index: Tensor, length: int) -> Tensor:
    """How often each integer below ``length`` occurs in a vector of integers; others do not count."""


# How many integers the last call counted on webgpu, and into how many bins.
_last = [(0, 0)]
# More bins are not made ahead: those that one large integer asked for would cost memory at each later call.
_MOST_AHEAD = 1 << 20


def _counted_ahead(input: Tensor, least: int) -> Tensor | None:
    """The result of `bincount` if it is as long as that of the last call of as many integers; None where
    nothing is known. The device counts while the largest is on its way."""
    numel, length = _last[0]
    if not input.is_webgpu or getattr(input, "is_batched", False) or numel != input._meta.numel:
        return None
    if length > _MOST_AHEAD:
        return None
    counted = occurrences(input, max(length, least))
    stream().submit()
    return counted


@function(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs, or the sum of its weights. Waits for the largest.

    Args:
        input: a vector of integers that are not negative.
        weights: as many numbers.
        minlength: the least length of the result.

    Raises:
        ShapeError: no vector, or weights of another length.
        RangeError: a negative integer.
    """
    if input._meta.rank != 1 or (weights is not None and weights._meta.shape != input._meta.shape):
        raise ShapeError("bincount: takes a vector, and weights of its length.")
    if not input._meta.dtype.is_integer:
        raise DTypeError(f"bincount: takes integers, not {input._meta.dtype}.")
    length = index(minlength, "bincount: minlength")
    if length < 0:
        raise RangeError(f"bincount: minlength must not be negative, not {length}.")
    counted = None
    if numel := input._meta.numel:
        later = extremes_later(input)
        counted = _counted_ahead(input, length) if weights is None else None
        least, most = later.result()
        if least < 0:
            raise RangeError(f"bincount: takes no negative integers, and one is {least}.")
        length = max(length, most + 1)
    if weights is None:
        if input.is_webgpu:
            _last[0] = numel, length
        if counted is None or counted._meta.numel < length:
            return occurrences(input, length)
        return counted if counted._meta.numel == length else counted[:length].clone()
    d = weights._meta.dtype if weights._meta.dtype in (dt.float32, dt.float64) else dt.float64
    if input.device.type == "webgpu":
        physical(d)  # refuses float64 in the name of this function
    return zeros(length, dtype=d, device=input.device).scatter_add(0, input, weights.detach().to(d))


def _part_of(input, low, high, span, bins):
    kind = input.dtype.type
    with np.errstate(all="ignore"):
        places = np.floor((input - kind(low)) * kind(bins) / kind(span)).clip(0, bins - 1)
    return np.where((input >= low) & (input <= high), places, -1).astype(np.int32)


@op(
    public="histc",
    dtype=lambda call: (dt.int32, call["input"].dtype),
    kernel=elementwise(
        "select(-1, i32(clamp(floor((input - low) * bins / span), 0.0, bins - 1.0)), "
        "!is_nan(input) && input >= low && input <= high)",
        i32=False, result="i32",
    ),
    reference=_part_of,
    grad=None,
)  # fmt: skip
def parts_of(input: Tensor, low: float, high: float, span: float, bins: float) -> Tensor:
    """Which of equal parts of a range, which is ``span`` long, each number lies in; -1 for what lies out."""


@function(method=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of ``bins`` equal parts of ``[min, max]``; others do not count.

    Args:
        input: floating point; on ``webgpu`` also integers, as PyTorch takes them on GPUs, counted in float32.
        bins: how many parts.
        min, max: the range; that of the elements if both are equal, which is read.

    Raises:
        RangeError: no parts, or max is less than min, or the range is not finite.
    """
    if input._meta.dtype.is_integer and input.is_webgpu:
        return histc(input.to(dt.float32), bins, min, max).to(input._meta.dtype)
    if not input._meta.dtype.is_floating_point:
        raise DTypeError(f"histc: takes floating point, not {input._meta.dtype}. Convert with .float().")
    count, low, high = index(bins, "histc: bins"), number(min, "histc: min"), number(max, "histc: max")
    if low == high and input._meta.numel:
        low, high = extremes(input)
    if low == high:
        low, high = low - 1, high + 1
    if count < 1 or not (isfinite(low) and isfinite(high)) or high < low:
        raise RangeError(f"histc: takes bins > 0 and a finite range min <= max, not {bins}, {low} to {high}.")
    x = input.detach().reshape(-1)
    wide = x.float() if x._meta.dtype in dt.LARGEST_HALF else x
    if high - low > wide._meta.dtype.largest:
        raise RangeError(
            f"histc: the range from {low} to {high} is longer than {wide._meta.dtype} holds. Give min and "
            "max, or scale the numbers."
        )
    return occurrences(parts_of(wide, low, high, high - low, count), count).to(x.dtype)


def _unique_elements(input: Tensor, inverse: bool, counts: bool, is_sorted: bool) -> list[Tensor]:
    """The elements that differ from the one before, on the device."""
    flat = input.reshape(-1)
    values, order = sort(flat) if is_sorted else (flat, None)
    begins = values != values.roll(1)
    begins[0] = True
    ends = running_count(begins)
    count = int(ends[-1].item())
    out = [chosen_rows(values, ends, count)]
    if inverse:
        numbers = ends.to(dt.int64) - 1
        if order is not None:
            numbers = numbers.scatter(0, order, numbers)
        out.append(numbers.reshape(input._meta.shape))
    if counts:
        first = true_places(ends, count, (flat._meta.numel,)).reshape(-1)
        out.append(cat([first[1:], first.new_full((1,), flat._meta.numel)]) - first)
    return out


def _unique(name: str, input: Tensor, dim: int | None, inverse: bool, counts: bool, is_sorted: bool) -> Any:
    no_complex(name, input)
    input = input.detach()
    if input.is_webgpu and dim is None and input._meta.numel:
        out = _unique_elements(input, inverse, counts, is_sorted)
        return tuple(out) if len(out) > 1 else out[0]
    k = 0 if dim is None else axis(dim, input.dim())
    rows = np.moveaxis(np.atleast_1d(input.numpy()), k, 0)  # what is compared, at last without other axes
    rows = rows.reshape(-1, 1) if dim is None else rows.reshape(len(rows), -1)
    order = np.lexsort(rows.T[::-1]) if is_sorted and rows.shape[1] else np.arange(len(rows))
    ordered = rows[order]
    begins = np.ones(len(rows), bool)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(1)
    first = order[begins]
    device = input.device
    kept = tensor(first.astype(np.int64), device=device)
    out = [input.reshape(-1)[kept] if dim is None else input.index_select(k, kept)]
    if inverse:
        numbers = np.empty(len(rows), np.int64)
        numbers[order] = np.cumsum(begins) - 1
        out.append(tensor(numbers.reshape(input._meta.shape if dim is None else -1), device=device))
    if counts:
        ends = np.append(np.flatnonzero(begins), len(rows))
        out.append(tensor(np.diff(ends).astype(np.int64), device=device))
    return tuple(out) if len(out) > 1 else out[0]


@function(method=True, ours="ATen's _unique2 and unique_dim are what PyTorch's Python calls")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements, or slices of an axis, in ascending order. Waits: their number is data.

    Args:
        input: any tensor of real numbers.
        sorted: PyTorch sorts in any case, too.
        return_inverse: also the place in the result of each element.
        return_counts: also how often each occurs.
        dim: the axis whose slices are compared; without it all elements.

    Returns:
        The elements, or a tuple of them and what else was asked for.
    """
    return _unique("unique", input, dim, return_inverse, return_counts, True)


@function(method=True, ours="PyTorch's Python takes what ATen gives of it apart")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or slices of an axis, that differ from the one before. Waits: their number is data."""
    return _unique("unique_consecutive", input, dim, return_inverse, return_counts, False)
