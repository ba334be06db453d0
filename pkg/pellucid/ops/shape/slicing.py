"""Views of parts of a tensor: slices, positions and diagonals. A part's gradient lies in zeros; those of all
parts are joined."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...autograd.edges import LEAF, edge, note_view
from ...autograd.grad_mode import grad_enabled
from ...autograd.nodes import Node
from ...errors import DimensionError, ShapeError
from ...op.arguments import integers
from ...op.call import Call
from ...op.declaration import call_slowly, op
from ...op.symbols import SYMBOLS, followed, settled
from ...tensors.shape import axis, index
from .movement import copy_

if TYPE_CHECKING:
    from ...tensors.tensor import Tensor


def _slice(call: Call):
    m, dim = call["input"], call["dim"]
    k = axis(dim, m.rank)
    start, stop, step = slice(call["start"], call["end"], call["step"]).indices(m.shape[k])
    count = len(range(start, stop, step))
    shape, strides = list(m.shape), list(m.strides)
    shape[k], strides[k] = count, m.strides[k] * step
    return tuple(shape), tuple(strides), start * m.strides[k] if count else 0


def _follow_slice(input, dim, start, end, step) -> tuple:
    """A slice may begin anywhere; how long it is makes another plan."""
    dim, step = settled(dim), settled(step)
    if input._meta.device.type != "webgpu" or (step or 1) < 0:
        return input, dim, settled(start), settled(end), step
    length = input._meta.shape[axis(dim, input._meta.rank)]
    first, last = _bound(start, 0, length), _bound(end, length, length)
    settled(last - first)
    return input, dim, followed(first), followed(last), step


def _bound(value, default: int, length: int):
    """Where a slice begins or ends, counted from the front and within the axis."""
    if value is None:
        return default
    if value < 0:
        value = value + length
    return 0 if value < 0 else length if value > length else value


def _place_slice(g, input_meta, dim, start, end, step):
    out = g.new_zeros(input_meta.shape)
    copy_(slice_dim(out, dim, start, end, step), g)
    return out


@op(public="slice", view=_slice, follow=_follow_slice, grad={"input": _place_slice})
def slice_dim(
    input: Tensor, dim: int, start: int | None = None, end: int | None = None, step: int | None = None
) -> Tensor:
    """``input[..., start:end:step, ...]`` along one axis, sharing storage; the step may be negative."""


def slice_at(input: Tensor, dim: int, start, end, step) -> Tensor:
    """`slice_dim`, where bounds may be symbols."""
    if type(start) in SYMBOLS or type(end) in SYMBOLS:
        return call_slowly(slice_dim.op, (input, dim, start, end, step))
    return slice_dim(input, dim, start, end, step)


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Part of one axis, sharing storage.

    Args:
        input: any tensor.
        dim: the axis.
        start: first position; negative ones count from the end.
        length: how many.

    Raises:
        DimensionError: the part does not lie within the axis.

    Source: https://pytorch.org/docs/stable/generated/torch.narrow.html
    """
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


def _follow_select(input, dim, index) -> tuple:
    """A position within the axis; one outside is refused by the view."""
    m, dim = input._meta, settled(dim)
    length = m.shape[axis(dim, m.rank)] if m.rank else 0
    if m.device.type != "webgpu" or not -length <= index < length:
        return input, dim, settled(index)
    return input, dim, followed(index + length if index < 0 else index)


def _place_select(g, input_meta, dim, index):
    out = g.new_zeros(input_meta.shape)
    copy_(select(out, dim, index), g)
    return out


@op(view=_select, follow=_follow_select, grad={"input": _place_select})
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One position of an axis, which disappears; shares storage.

    Source: https://pytorch.org/docs/stable/generated/torch.select.html
    """


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


@op(view=_diagonal, grad={"input": _place_diagonal})
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes as the last axis, sharing storage.

    Source: https://pytorch.org/docs/stable/generated/torch.diagonal.html
    """


class _Parting:
    """What the graph needs to know of a call that makes several parts.

    Args:
        name: of the call.
    """

    arguments = ()
    outputs = ("out",)
    grad: dict = {}

    def __init__(self, name: str):
        self.name = name


_SPLIT, _SPLIT_WITH_SIZES, _UNBIND = _Parting("split"), _Parting("split_with_sizes"), _Parting("unbind")


class _Parts(Node):
    """The node of all parts of a tensor: their gradients are joined, or lie in zeros where parts have none.

    It saves nothing, so the parts may be walked through one after the other.
    """

    __slots__ = ("dim",)

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        from .joining import cat, stack

        whole, dim = self.edges["input"][1], self.dim
        has_axis = self.op is not _UNBIND
        used = [g for g in grads if g is not None]
        if len(used) == len(grads):
            return {"input": cat(used, dim) if has_axis else stack(used, dim)}
        out = used[0].new_zeros(whole.shape)
        at = 0
        for g, m in zip(grads, self.outputs, strict=True):
            length = m.shape[dim] if has_axis else 1
            if g is not None:
                copy_(slice_dim(out, dim, at, at + length, 1) if has_axis else select(out, dim, at), g)
            at += length
        return {"input": out}


def _below_one_node(parting: _Parting, take: Callable, tensor: Tensor, dim: int, *how) -> tuple:
    """The parts that ``take(tensor, dim, *how)`` makes; where ops record, they hang below one node."""
    if tensor._node is None or not grad_enabled.get():
        return take(tensor, dim, *how)
    before = grad_enabled.set(False)
    try:
        parts = take(tensor, dim, *how)
    finally:
        grad_enabled.reset(before)
    node = _Parts(parting, {"input": (edge(tensor), tensor._meta)}, {})
    node.outputs = tuple([part._meta for part in parts])
    node.dim = dim
    base = tensor if tensor._base is None else tensor._base
    for k, part in enumerate(parts):
        part._node, part._index = node, k
        if base._node is not LEAF:
            note_view(base, part)
    return parts


def _slices(tensor: Tensor, dim: int, lengths: list[int]) -> tuple[Tensor, ...]:
    parts, at = [], 0
    for n in lengths:
        parts.append(slice_dim(tensor, dim, at, at + n, 1))
        at += n
    return tuple(parts)


def _positions(tensor: Tensor, dim: int) -> tuple[Tensor, ...]:
    return tuple([select(tensor, dim, k) for k in range(tensor._meta.shape[dim])])


def split(tensor: Tensor, split_size_or_sections, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts of an axis.

    Args:
        tensor: any tensor.
        split_size_or_sections: the length of each part (the last may be shorter), or a list of lengths.
        dim: the axis.

    Raises:
        ShapeError: listed lengths do not add up.

    Source: https://pytorch.org/docs/stable/generated/torch.split.html
    """
    k = axis(dim, tensor._meta.rank)
    total = tensor._meta.shape[k]
    if isinstance(split_size_or_sections, (list, tuple)):
        parting, lengths = _SPLIT_WITH_SIZES, list(integers(split_size_or_sections, "lengths"))
        if sum(lengths) != total or any(n < 0 for n in lengths):
            raise ShapeError(f"split: lengths {lengths} must add up to {total}, the length of axis {dim}.")
    else:
        size = index(split_size_or_sections, "split_size")
        if size < 0 or (size == 0 and total):
            raise ShapeError(f"split: split_size {size} must be positive.")
        parting, lengths = _SPLIT, [min(size, total - at) for at in range(0, total, size or 1)] or [0]
    return _below_one_node(parting, _slices, tensor, k, lengths)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal length (the last may be shorter).

    Source: https://pytorch.org/docs/stable/generated/torch.chunk.html
    """
    chunks = index(chunks, "chunks")
    if chunks < 1:
        raise ShapeError(f"chunk: chunks must be positive, not {chunks}.")
    total = input._meta.shape[axis(dim, input._meta.rank)]
    size = -(-total // chunks)
    return split(input, size, dim) if size else tuple(split(input, [0] * chunks, dim))


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Every position of an axis, as views without it.

    Source: https://pytorch.org/docs/stable/generated/torch.unbind.html
    """
    k = axis(dim, input._meta.rank)
    if not input._meta.rank:
        raise DimensionError("unbind: a tensor without axes has no positions.")
    return _below_one_node(_UNBIND, _positions, input, k)


METHODS = "narrow select diagonal split chunk unbind"
