"""split, chunk and unbind: all parts of an axis as views. Where ops record, the parts hang below one node,
which joins their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.edges import LEAF, edge, note_view
from ...autograd.grad_mode import grad_enabled
from ...autograd.nodes import Node
from ...errors import ArgumentError, DimensionError, ShapeError
from ...op.arguments import integers
from ...op.families import called
from ...op.public import function
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from .joining import cat, stack
from .movement import copy_
from .slicing import select, slice_dim


class _Parting:
    """What the graph needs to know of a call that makes several parts."""

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


@function(
    method=True,
    aten=(
        "split.Tensor(self, split_size, dim=0)",
        "split.sizes(self, split_size, dim=0)",
        "unsafe_split_with_sizes.default(self, split_sizes, dim=0)",
    ),
)
def split(tensor: Tensor, split_size_or_sections, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts of an axis.

    Args:
        tensor: any tensor.
        split_size_or_sections: the length of each part (the last may be shorter), or a list of lengths.

    Raises:
        ShapeError: listed lengths do not add up.
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


@function(method=True, aten="unsafe_split.Tensor(self, split_size, dim=0)")
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` in parts of one length. PyTorch does not see writes into them; they are views here."""
    return split(tensor, split_size, dim)


@function(method=True)
def split_with_sizes(input: Tensor, split_sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` with a list of lengths."""
    return split(input, list(integers(split_sizes, "split_sizes")), dim)


@function(method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal length (the last may be shorter)."""
    chunks = index(chunks, "chunks")
    if chunks < 1:
        raise ShapeError(f"chunk: chunks must be positive, not {chunks}.")
    if not input._meta.rank:
        raise ShapeError("chunk: a tensor without axes has no parts. Unsqueeze it.")
    total = input._meta.shape[axis(dim, input._meta.rank)]
    size = -(-total // chunks)
    return split(input, size, dim) if size else tuple(split(input, [0] * chunks, dim))


@function(
    method=True,
    aten=(
        "tensor_split.indices(self, indices, dim=0)",
        "tensor_split.sections(self, sections, dim=0)",
        "tensor_split.tensor_indices_or_sections(self, tensor_indices_or_sections, dim=0)",
    ),
)
def tensor_split(
    input: Tensor,
    indices_or_sections=None,
    dim: int = 0,
    *,
    indices: tuple[int, ...] | None = None,
    sections: int | None = None,
) -> tuple[Tensor, ...]:
    """Views of parts of an axis: so many, of lengths that differ by at most one, or cut at given positions.

    Args:
        input: at least one axis.
        indices_or_sections: how many parts, or where each but the first begins. A tensor is read.
        indices, sections: the same, where it is one of them.

    Raises:
        ShapeError: no axes, or no parts.
        ArgumentError: both are given, or none.
    """
    indices_or_sections = _how("tensor_split", indices_or_sections, indices, sections)
    if not input._meta.rank:
        raise ShapeError("tensor_split: takes at least one axis, not a tensor without axes.")
    k = axis(dim, input._meta.rank)
    total = input._meta.shape[k]
    given = indices_or_sections
    if isinstance(given, Tensor):
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        cuts = [slice(place).indices(total)[1] for place in integers(given, "indices")]
    else:
        count = index(given, "sections")
        if count < 1:
            raise ShapeError(f"tensor_split: sections must be positive, not {count}.")
        short, more = divmod(total, count)
        cuts = [j * short + min(j, more) for j in range(1, count)]
    bounds = zip([0, *cuts], [*cuts, total], strict=True)
    return tuple([slice_dim(input, k, begin, max(begin, end), 1) for begin, end in bounds])


def _how(name: str, given, indices, sections):
    """What says how to split, by whichever of its names."""
    found = [value for value in (given, indices, sections) if value is not None]
    if len(found) != 1:
        raise ArgumentError(f"{name}: takes one of indices and sections, not {len(found) or 'none'} of them.")
    if sections is not None:
        return index(sections, "sections")
    return found[0] if indices is None else list(integers(indices, "indices"))


def _split_along(name: str, dim: int, least: int, sentence: str) -> Callable:
    """An op that splits an axis into parts of one length: ``dim``, or the last of a tensor of fewer axes,
    which may have ``least``."""

    def split_along(
        input: Tensor,
        indices_or_sections=None,
        *further: int,
        indices: tuple[int, ...] | None = None,
        sections: int | None = None,
    ) -> tuple[Tensor, ...]:
        if further:  # indices one by one
            indices_or_sections = indices_or_sections, *further
        how, rank = _how(name, indices_or_sections, indices, sections), input._meta.rank
        if rank < least:
            raise ShapeError(f"{name}: takes at least {least} axes, not {rank}. Use tensor_split.")
        along = min(dim, rank - 1)
        if not isinstance(how, (tuple, list)):
            count, total = index(how, "sections"), input._meta.shape[along]
            if count < 1 or total % count:
                raise ShapeError(
                    f"{name}: {count} parts of one length do not make {total}, the length of axis {along}. "
                    "Use tensor_split."
                )
        return tensor_split(input, how, along)

    aten = (f"{name}.int(self, sections)", f"{name}.array(self, indices)")
    return called(name, sentence, split_along, method=True, aten=aten)


hsplit = _split_along(
    "hsplit", 1, 1, "`tensor_split` along axis 1, or 0 of a vector, into parts of one length."
)
vsplit = _split_along("vsplit", 0, 2, "`tensor_split` along axis 0 of at least two into parts of one length.")
dsplit = _split_along("dsplit", 2, 3, "`tensor_split` along axis 2 into parts of one length.")


@function(method=True, aten="unbind.int")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Every position of an axis, as views without it."""
    k = axis(dim, input._meta.rank)
    if not input._meta.rank:
        raise DimensionError("unbind: a tensor without axes has no positions.")
    return _below_one_node(_UNBIND, _positions, input, k)
