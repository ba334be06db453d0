"""Views of parts of a tensor: slices, positions and diagonals. A part's gradient lies in zeros."""

from __future__ import annotations

from math import prod
from typing import Any

from ...autograd.grad_mode import is_grad_enabled
from ...errors import DimensionError, RangeError, ShapeError
from ...op.arguments import integers
from ...op.declaration import Call, function, op
from ...op.inplace import show
from ...op.slow_path import call_slowly
from ...op.symbols import SYMBOLS, settled
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from .movement import copy_


def _slice(call: Call):
    m, dim = call["input"], call["dim"]
    k = axis(dim, m.rank)
    if call["step"] == 0:
        raise RangeError("slice step cannot be zero. Give another.")
    start, stop, step = slice(call["start"], call["end"], call["step"]).indices(m.shape[k])
    count = len(range(start, stop, step))
    shape, strides = list(m.shape), list(m.strides)
    shape[k], strides[k] = count, m.strides[k] * step
    return tuple(shape), tuple(strides), start * m.strides[k] if count else 0


def _follow_slice(input, dim, start, end, step) -> tuple[tuple, Any]:
    """A slice may begin anywhere; how long it is makes another plan."""
    dim, step = settled(dim), settled(step)
    if input._meta.device.type != "webgpu" or (step or 1) < 0:
        return (input, dim, settled(start), settled(end), step), 0
    k = axis(dim, input._meta.rank)
    length = input._meta.shape[k]
    first, last = _bound(start, 0, length), _bound(end, length, length)
    settled(last - first)
    return (input, dim, first, last, step), first * input._meta.strides[k]


def _bound(value, default: int, length: int):
    """Where a slice begins or ends, counted from the front and within the axis."""
    if value is None:
        return default
    if value < 0:
        value = value + length
    return 0 if value < 0 else length if value > length else value


def _place_slice(g, input_meta, dim, start, end, step):
    out = g.new_zeros(input_meta.shape)
    copy_(slice_at(out, dim, start, end, step), g)
    return out


@op(
    public="slice",
    view=_slice,
    follow=_follow_slice,
    grad={"input": _place_slice},
    aten="slice.Tensor(self, dim=0, start=None, end=None, step=1)",
)
def slice_dim(
    input: Tensor, dim: int, start: int | None = None, end: int | None = None, step: int | None = None
) -> Tensor:
    """``input[..., start:end:step, ...]`` along one axis, sharing storage; the step may be negative."""


def slice_at(input: Tensor, dim: int, start, end, step) -> Tensor:
    """`slice_dim`, where bounds may be symbols."""
    if type(start) in SYMBOLS or type(end) in SYMBOLS:
        return call_slowly(slice_dim.op, (input, dim, start, end, step))
    return slice_dim(input, dim, start, end, step)


@function(method=True)
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Part of one axis, sharing storage.

    Args:
        input: any tensor.
        start: first position; negative ones count from the end.
        length: how many.

    Raises:
        DimensionError: the part does not lie within the axis, or there is no axis.
    """
    if not input._meta.rank:
        raise DimensionError("narrow: a tensor without axes has no part. Give it one with unsqueeze(0).")
    k = axis(dim, input._meta.rank)
    total = input._meta.shape[k]
    if type(start) is not int and type(start) not in SYMBOLS:
        start = index(start, "start")
    if type(length) is not int and type(length) not in SYMBOLS:
        length = index(length, "length")
    begin = start + total if start < 0 else start
    if begin < 0 or length < 0 or begin + length > total:
        raise DimensionError(
            f"narrow: start {start} and length {length} do not lie within axis {dim} of length {total}."
        )
    if type(begin) is int and type(length) is int:
        return slice_dim(input, k, begin, begin + length, 1)
    return slice_at(input, k, begin, begin + length, 1)


def _select(call: Call):
    m = call["input"]
    if not m.rank:
        raise DimensionError("a tensor without axes has nothing to select.")
    k = axis(call["dim"], m.rank)
    at = index(call["index"], "index")
    if not -m.shape[k] <= at < m.shape[k]:
        raise DimensionError(f"index {at} is out of range for axis {k} of length {m.shape[k]}.")
    at %= m.shape[k]
    return (*m.shape[:k], *m.shape[k + 1 :]), (*m.strides[:k], *m.strides[k + 1 :]), at * m.strides[k]


def _follow_select(input, dim, index) -> tuple[tuple, Any]:
    """A position within the axis; one outside is refused by the view."""
    m, dim = input._meta, settled(dim)
    k = axis(dim, m.rank) if m.rank else 0
    length = m.shape[k] if m.rank else 0
    if m.device.type != "webgpu" or not -length <= index < length:
        return (input, dim, settled(index)), 0
    at = index + length if index < 0 else index
    return (input, dim, at), at * m.strides[k]


def _place_select(g, input_meta, dim, index):
    out = g.new_zeros(input_meta.shape)
    copy_(select_at(out, dim, index), g)
    return out


@op(view=_select, follow=_follow_select, grad={"input": _place_select}, method=True, aten="select.int")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One position of an axis, which disappears; shares storage."""


def select_at(input: Tensor, dim: int, index) -> Tensor:
    """`select`, where the index may be a symbol."""
    if type(index) in SYMBOLS:
        return call_slowly(select.op, (input, dim, index))
    return select(input, dim, index)


def _diagonal(call: Call):
    m = call["input"]
    a, b = axis(call["dim1"], m.rank), axis(call["dim2"], m.rank)
    if a == b:
        raise ShapeError(f"dim1 and dim2 are both axis {a}. Name two.")
    k = call["offset"]
    rows, columns = m.shape[a] - max(-k, 0), m.shape[b] - max(k, 0)
    length = max(min(rows, columns), 0)
    delta = (k * m.strides[b] if k >= 0 else -k * m.strides[a]) if length else 0
    keep = [j for j in range(m.rank) if j not in (a, b)]
    return (
        (*[m.shape[j] for j in keep], length),
        (*[m.strides[j] for j in keep], m.strides[a] + m.strides[b]),
        delta,
    )


def _place_diagonal(g, input_meta, offset, dim1, dim2):
    out = g.new_zeros(input_meta.shape)
    copy_(diagonal(out, offset, dim1, dim2), g)
    return out


@op(view=_diagonal, grad={"input": _place_diagonal}, method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes as the last axis, sharing storage."""


def _unfold(call: Call):
    m, size, step = call["input"], call["size"], call["step"]
    if not m.rank:
        axis(call["dimension"], 1)
    k = axis(call["dimension"], m.rank) if m.rank else 0
    length, stride = (m.shape[k], m.strides[k]) if m.rank else (1, 1)
    if not 0 <= size <= length or step < 1:
        raise ShapeError(
            f"takes windows of 0 to {length} elements, the length of axis {k}, and steps of at least 1, not "
            f"size {size} and step {step}."
        )
    shape, strides = list(m.shape), list(m.strides)
    if m.rank:
        shape[k], strides[k] = (length - size) // step + 1, stride * step
    return (*shape, size), (*strides, stride), 0


def _add_windows(g, input_meta, dimension, size, step):
    if not input_meta.rank:
        return g.sum()
    return overlap_add(g, input_meta.shape, dimension, step)


def overlap_add(windows: Tensor, shape, dimension: int, step: int) -> Tensor:
    """Windows, which are the last axis, added where they lie, in zeros of a shape: what `unfold` takes apart
    along ``dimension``, where one begins every ``step`` elements."""
    k = axis(dimension, len(shape))
    count, size = windows._meta.shape[k], windows._meta.shape[-1]
    # Pieces of one step each: window t adds its piece r to the piece t + r of the result.
    parts = -(-size // step)
    rows = windows.movedim(k, -2)
    lead = rows._meta.shape[:-2]
    pieces = windows.new_zeros(*lead, count, parts * step)
    copy_(slice_dim(pieces, -1, 0, size, 1), rows)
    pieces = pieces.reshape(*lead, count, parts, step)
    added = windows.new_zeros(*lead, count + parts - 1, step)
    for r in range(parts):
        slice_dim(added, -2, r, r + count, 1).add_(select(pieces, -2, r))
    added = added.reshape(*lead, (count + parts - 1) * step)
    out = windows.new_zeros(*lead, shape[k])
    length = min(shape[k], added._meta.shape[-1])
    copy_(slice_dim(out, -1, 0, length, 1), slice_dim(added, -1, 0, length, 1))
    return out.movedim(-1, k)


@op(view=_unfold, grad={"input": _add_windows}, exports=None, method=True)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Windows of an axis that begin every ``step`` elements, along a new last axis, sharing storage.

    Args:
        input: any tensor.
        dimension: the axis.
        size: elements of a window.
        step: elements from one window's start to the next.

    Raises:
        ShapeError: the axis is shorter than a window, or the step is not positive.

    Example:
        >>> import pellucid as torch
        >>> torch.arange(5, device="cpu").unfold(0, 3, 2).tolist()
        [[0, 1, 2], [2, 3, 4]]
    """


@op(public="as_strided", view=lambda call: (call["size"], call["stride"], 0), grad=None)
def _strided_view(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
    """The same storage with given strides, from the tensor's own start."""


@function(method=True)
def as_strided(input: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """A view of the storage with given shape, strides and offset, all in elements.

    Args:
        input: any tensor.
        size, stride: lengths and strides.
        storage_offset: where the first element lies; the tensor's own start if not given.

    Raises:
        ShapeError: the view would reach outside the storage.
    """
    size, stride = integers(size, "size"), integers(stride, "stride")
    start = input._offset if storage_offset is None else index(storage_offset, "storage_offset")
    if len(size) != len(stride):
        raise ShapeError(f"as_strided: size {size} and stride {stride} must have equally many entries.")
    if getattr(input, "is_batched", False):
        return input.strided(size, stride, start)  # type: ignore[attr-defined]
    reach = [(n - 1) * s for n, s in zip(size, stride, strict=True)]
    entries = input._storage.nbytes // max(input._meta.nbytes // max(input._meta.numel, 1), 1)
    low, high = start + sum(min(r, 0) for r in reach), start + sum(max(r, 0) for r in reach)
    if prod(size) and (low < 0 or high >= entries):
        raise ShapeError(
            f"as_strided: size {size}, stride {stride} from {start} reach elements {low} to {high} of "
            f"{entries}. Choose smaller ones."
        )
    out = _strided_view(input, size, stride)
    out._offset = start
    if input._node is not None and is_grad_enabled():
        show(out, input)
    return out
