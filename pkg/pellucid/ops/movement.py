"""Views (new strides, no launch) and the copies that move elements: clone, cast, copy_, cat, triangles."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..autograd import is_grad_enabled
from ..dtypes import DType
from ..elementwise import elementwise, launch_copy
from ..errors import DimensionError, DTypeError, ShapeError
from ..inplace import show
from ..kernel import Launch, register_type
from ..meta import meta
from ..op import Call, as_input, in_place, op, same
from ..shape import Size, axis, broadcast_shapes, broadcast_strides, index, infer, sizes, view_strides

if TYPE_CHECKING:
    from ..tensor import Tensor

# Views


def _view(call: Call):
    m = call["input"]
    shape = infer(call["size"], m.numel)
    strides = view_strides(m.shape, m.strides, shape)
    if strides is None:
        raise ShapeError(
            f"shape {tuple(shape)} cannot show a tensor of shape {tuple(m.shape)} and strides {m.strides} "
            "without a copy. Use reshape."
        )
    return shape, strides, 0


@op(view=_view, grad={"input": lambda g, input_meta: g.reshape(input_meta.shape)})
def view_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """The same elements in another shape, sharing storage (`Tensor.view` with a shape)."""


def view(input: Tensor, *size) -> Tensor:
    """The same elements in another shape, sharing storage.

    Args:
        input: any tensor whose strides allow the shape.
        size: lengths; one may be -1. A dtype of the same size reads the bits as that type instead.

    Raises:
        ShapeError: the shape needs a copy or has another number of elements.

    Source: https://pytorch.org/docs/stable/generated/torch.Tensor.view.html

    Example:
        >>> import pellucid as torch
        >>> torch.arange(6, device="cpu").view(2, 3).shape
        Size([2, 3])
    """
    if len(size) == 1 and isinstance(size[0], DType):
        return _view_dtype(input, size[0])
    return view_size(input, sizes(size))


def _view_dtype(input: Tensor, d: DType) -> Tensor:
    m = input._meta
    if d.itemsize != m.dtype.itemsize:
        raise DTypeError(
            f"view: {m.dtype} and {d} have elements of {m.dtype.itemsize} and {d.itemsize} bytes. Choose a "
            "type of the same size, or use .to()."
        )
    return type(input.detach())(input._storage, meta(m.shape, d, m.device, m.strides), input._offset)


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.view(other.shape)``."""
    return view_size(input, other._meta.shape)


def reshape(input: Tensor, *shape) -> Tensor:
    """The same elements in another shape: a view where strides allow it, else a copy.

    Args:
        input: any tensor.
        shape: lengths; one may be -1.

    Raises:
        ShapeError: the shape has another number of elements.

    Source: https://pytorch.org/docs/stable/generated/torch.reshape.html

    Example:
        >>> import pellucid as torch
        >>> torch.arange(6, device="cpu").reshape(2, 3).t().reshape(-1).tolist()
        [0, 3, 1, 4, 2, 5]
    """
    wanted = sizes(shape)
    m = input._meta
    if not m.is_contiguous:
        full = infer(wanted, m.numel)
        if view_strides(m.shape, m.strides, full) is None:
            input = clone(input)
    return view_size(input, wanted)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes ``start_dim`` to ``end_dim`` as one.

    Source: https://pytorch.org/docs/stable/generated/torch.flatten.html
    """
    shape = input._meta.shape
    if not shape:
        return input.reshape(1)
    first, last = axis(start_dim, len(shape)), axis(end_dim, len(shape))
    if first > last:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}. Exchange them.")
    return reshape(input, *shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])


def unflatten(input: Tensor, dim: int, sizes: tuple[int, ...]) -> Tensor:
    """One axis as several.

    Source: https://pytorch.org/docs/stable/generated/torch.unflatten.html
    """
    shape = input._meta.shape
    k = axis(dim, len(shape))
    return reshape(input, *shape[:k], *infer(tuple(sizes), shape[k]), *shape[k + 1 :])


def _permute(call: Call):
    m = call["input"]
    dims = tuple(axis(d, m.rank) for d in call["dims"])
    if sorted(dims) != list(range(m.rank)):
        raise ShapeError(
            f"dims {tuple(call['dims'])} are not a permutation of the {m.rank} axes. Name each once."
        )
    return tuple(m.shape[d] for d in dims), tuple(m.strides[d] for d in dims), 0


def _unpermute(g, dims):
    order = [axis(d, len(dims)) for d in dims]
    return g.permute(*[order.index(k) for k in range(len(order))])


@op(view=_permute, grad={"input": _unpermute})
def permute_dims(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Axes in another order, sharing storage."""


def permute(input: Tensor, *dims) -> Tensor:
    """Axes in another order, sharing storage.

    Args:
        input: any tensor.
        dims: each axis once.

    Raises:
        ShapeError: not a permutation.

    Source: https://pytorch.org/docs/stable/generated/torch.permute.html

    Example:
        >>> import pellucid as torch
        >>> torch.zeros(2, 3, 4, device="cpu").permute(2, 0, 1).shape
        Size([4, 2, 3])
    """
    return permute_dims(input, sizes(dims))


def _transpose(call: Call):
    m = call["input"]
    shape, strides = list(m.shape), list(m.strides)
    a, b = axis(call["dim0"], m.rank), axis(call["dim1"], m.rank)
    if m.rank:
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
    return tuple(shape), tuple(strides), 0


@op(view=_transpose, grad={"input": lambda g, dim0, dim1: g.transpose(dim0, dim1)})
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged, sharing storage.

    Args:
        input: any tensor.
        dim0, dim1: the axes.

    Raises:
        DimensionError: an axis does not exist.

    Source: https://pytorch.org/docs/stable/generated/torch.transpose.html

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([[1, 2], [3, 4]], device="cpu").transpose(0, 1).tolist()
        [[1, 3], [2, 4]]
    """


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer axes as they are.

    Raises:
        ShapeError: more than two axes.
    """
    if input._meta.rank > 2:
        raise ShapeError(f"t: takes at most two axes, not {input._meta.rank}. Use transpose(dim0, dim1).")
    return transpose(input, 0, 1) if input._meta.rank == 2 else input


def movedim(input: Tensor, source, destination) -> Tensor:
    """Axes moved to new places, the others keeping their order.

    Source: https://pytorch.org/docs/stable/generated/torch.movedim.html
    """
    rank = input._meta.rank
    origin = [axis(s, rank) for s in (source if isinstance(source, (tuple, list)) else (source,))]
    target = [
        axis(d, rank) for d in (destination if isinstance(destination, (tuple, list)) else (destination,))
    ]
    order: list[int | None] = [None] * rank
    for s, d in zip(origin, target, strict=True):
        order[d] = s
    rest = iter(k for k in range(rank) if k not in origin)
    return permute_dims(input, tuple(next(rest) if o is None else o for o in order))


def _expand(call: Call):
    m, size = call["input"], call["size"]
    lead = len(size) - m.rank
    if lead < 0:
        raise ShapeError(
            f"size {tuple(size)} has fewer axes than the tensor of shape {tuple(m.shape)}. Give at least "
            f"{m.rank}."
        )
    shape = []
    for k, wanted in enumerate(size):
        have = m.shape[k - lead] if k >= lead else 1
        if wanted == -1 and k < lead:
            raise ShapeError(
                f"size {tuple(size)}: -1 stands for an axis that the tensor of shape {tuple(m.shape)} does "
                "not have. Give its length."
            )
        shape.append(have if wanted == -1 else wanted)
        if shape[k] != have and have != 1:
            raise ShapeError(
                f"size {tuple(size)}: axis {k} of length {have} cannot become {wanted}; only axes of "
                f"length 1 expand. Shape is {tuple(m.shape)}."
            )
    return tuple(shape), broadcast_strides(m.shape, m.strides, shape), 0


@op(view=_expand, grad={"input": lambda g: g})
def expand_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """Axes of length 1 repeated without a copy."""


def expand(input: Tensor, *size) -> Tensor:
    """Axes of length 1 repeated without a copy (their stride becomes 0).

    Args:
        input: any tensor.
        size: lengths; -1 keeps one.

    Raises:
        ShapeError: an axis of another length would have to change.

    Source: https://pytorch.org/docs/stable/generated/torch.Tensor.expand.html

    Example:
        >>> import pellucid as torch
        >>> torch.tensor([[1], [2]], device="cpu").expand(-1, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
    """
    return expand_size(input, sizes(size))


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.expand(other.shape)``."""
    return expand_size(input, other._meta.shape)


def broadcast_to(input: Tensor, size) -> Tensor:
    """``input.expand(size)``."""
    return expand_size(input, tuple(size))


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*[x._meta.shape for x in tensors])
    return tuple(expand_size(x, shape) for x in tensors)


def _squeeze(call: Call):
    m, dim = call["input"], call["dim"]
    dims = (
        range(m.rank)
        if dim is None
        else [axis(d, m.rank) for d in (dim if isinstance(dim, tuple) else (dim,))]
    )
    drop = {d for d in dims if m.rank and m.shape[d] == 1}
    keep = [k for k in range(m.rank) if k not in drop]
    return tuple(m.shape[k] for k in keep), tuple(m.strides[k] for k in keep), 0


@op(view=_squeeze, grad={"input": lambda g, input_meta: g.reshape(input_meta.shape)})
def squeeze(input: Tensor, dim: int | tuple[int, ...] | None = None) -> Tensor:
    """Without axes of length 1 (all, or those of ``dim``), sharing storage.

    Source: https://pytorch.org/docs/stable/generated/torch.squeeze.html
    """


def _unsqueeze(call: Call):
    m = call["input"]
    k = axis(call["dim"], m.rank + 1)
    stride = m.shape[k] * m.strides[k] if k < m.rank else 1
    return (*m.shape[:k], 1, *m.shape[k:]), (*m.strides[:k], stride, *m.strides[k:]), 0


@op(view=_unsqueeze, grad={"input": lambda g, dim: g.squeeze(dim)})
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a new axis of length 1 at ``dim``, sharing storage.

    Source: https://pytorch.org/docs/stable/generated/torch.unsqueeze.html
    """


def _as_strided(call: Call):
    size, stride = call["size"], call["stride"]
    if len(size) != len(stride):
        raise ShapeError(f"size {tuple(size)} and stride {tuple(stride)} must have the same number of axes.")
    return tuple(size), tuple(stride), 0


@op(view=_as_strided, grad=None)
def _strided_view(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
    """The same storage with given strides, from the tensor's own start."""


def as_strided(input: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """A view of the storage with given shape, strides and offset, all in elements.

    Args:
        input: any tensor.
        size, stride: lengths and strides.
        storage_offset: where the first element lies; the tensor's own start if not given.

    Raises:
        ShapeError: the view would reach outside the storage.

    Source: https://pytorch.org/docs/stable/generated/torch.as_strided.html
    """
    size, stride = tuple(size), tuple(stride)
    start = input._offset if storage_offset is None else storage_offset
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


def _slice(call: Call):
    m, dim = call["input"], call["dim"]
    k = axis(dim, m.rank)
    start, stop, step = slice(call["start"], call["end"], call["step"]).indices(m.shape[k])
    count = len(range(start, stop, step))
    shape, strides = list(m.shape), list(m.strides)
    shape[k], strides[k] = count, m.strides[k] * step
    return tuple(shape), tuple(strides), start * m.strides[k] if count else 0


def _place_slice(g, input_meta, dim, start, end, step):
    out = g.new_zeros(input_meta.shape)
    copy_(slice_dim(out, dim, start, end, step), g)
    return out


@op(view=_slice, grad={"input": _place_slice})
def slice_dim(
    input: Tensor, dim: int, start: int | None = None, end: int | None = None, step: int | None = None
) -> Tensor:
    """``input[..., start:end:step, ...]`` along one axis, sharing storage; the step may be negative."""


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
    begin = start + total if start < 0 else start
    if begin < 0 or length < 0 or begin + length > total:
        raise DimensionError(
            f"narrow: start {start} and length {length} do not lie within axis {dim} of length {total}."
        )
    return slice_dim(input, k, begin, begin + length, 1)


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


def _place_select(g, input_meta, dim, index):
    out = g.new_zeros(input_meta.shape)
    copy_(select(out, dim, index), g)
    return out


@op(view=_select, grad={"input": _place_select})
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One position of an axis, which disappears; shares storage.

    Source: https://pytorch.org/docs/stable/generated/torch.select.html
    """


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


# Copies


@op(
    dtype=same,
    shape=as_input,
    kernel=elementwise("input", i64="input", boolean="input"),
    reference=lambda input: input,
    grad={"input": lambda g: g},
)
def clone(input: Tensor) -> Tensor:
    """A contiguous copy.

    Source: https://pytorch.org/docs/stable/generated/torch.clone.html
    """


def contiguous(input: Tensor) -> Tensor:
    """The tensor itself if its elements lie in row-major order, else a copy that does."""
    return input if input._meta.is_contiguous else clone(input)


def _cast_types(call: Call):
    return call["dtype"], call["input"].dtype


@op(
    dtype=_cast_types,
    shape=as_input,
    kernel=elementwise("input", i64="input", boolean="input"),
    reference=lambda input, dtype: input,
    grad={"input": lambda g: g},
)
def cast(input: Tensor, dtype: DType) -> Tensor:
    """The values as another element type; floats are truncated toward zero when they become integers."""


def _copy_types(call: Call):
    return call["input"].dtype, call["src"].dtype


def _copy_shape(call: Call):
    target, source = call["input"].shape, call["src"].shape
    tail = target[len(target) - len(source) :]
    if len(source) > len(target) or any(n not in (1, m) for n, m in zip(source, tail, strict=True)):
        raise ShapeError(
            f"src of shape {tuple(source)} does not broadcast to {tuple(target)}. Reshape it so that its "
            "lengths "
            "agree, counted from the right, or are 1."
        )
    return target


@op(
    dtype=_copy_types,
    shape=_copy_shape,
    kernel=elementwise("src", i64="src", boolean="src"),
    reference=lambda input, src: np.broadcast_to(src, input.shape),
    grad={"src": lambda g: g},
)
def copy(input: Tensor, src: Tensor) -> Tensor:
    """``src`` broadcast to the shape of ``input`` and converted to its dtype."""


copy_ = in_place(copy.op)


def _fill_types(call: Call):
    return call["input"].dtype, call["input"].dtype


@op(
    dtype=_fill_types,
    shape=as_input,
    kernel=elementwise("{value}", i64="{value}", boolean="{value}"),
    reference=lambda input, value: np.broadcast_to(value, input.shape),
    grad={"value": lambda g: g},
)
def fill(input: Tensor, value: Tensor | float) -> Tensor:
    """One value in the shape and dtype of ``input``."""


fill_ = in_place(fill.op)


def copy_into(target: Tensor, source: Tensor) -> None:
    """Overwrite ``target``, which may be a view, outside the graph."""
    copy_(target.detach(), source.detach())


# Joining


def _cat_types(call: Call):
    from ..dtypes import result_type

    d = result_type([m.dtype for m in call["tensors"]], [], [])
    return d, d


def _cat_shape(call: Call):
    metas = [m for m in call["tensors"] if m.shape != (0,)] or call["tensors"]
    first = metas[0]
    if first.rank == 0:
        raise ShapeError("tensors without axes cannot be joined. Use stack, or unsqueeze(0) first.")
    k = axis(call["dim"], first.rank)
    for m in metas:
        if m.rank != first.rank or any(
            a != b for j, (a, b) in enumerate(zip(m.shape, first.shape, strict=True)) if j != k
        ):
            shapes = ", ".join(str(tuple(m.shape)) for m in call["tensors"])
            raise ShapeError(f"shapes {shapes} must agree in every axis but {k}.")
    return Size((*first.shape[:k], sum(m.shape[k] for m in metas), *first.shape[k + 1 :]))


def _cat_launches(call: Call) -> list[Launch]:
    out = call.out
    k = axis(call["dim"], out.rank)
    launches, at = [], 0
    for j, m in enumerate(call["tensors"]):
        if m.numel:
            part = meta(m.shape, out.dtype, out.device, out.strides)
            launches.append(launch_copy(f"tensors[{j}]", m, "out", part, at * out.strides[k]))
            at += m.shape[k]
    return launches


def _cat_reference(tensors, dim):
    return np.concatenate([t for t in tensors if t.shape != (0,)] or tensors, dim)


def _cat_grad(g, tensors_meta, dim):
    parts, at = [], 0
    for m in tensors_meta:
        if m.shape == (0,):
            parts.append(g.new_zeros((0,)))
            continue
        k = axis(dim, m.rank)
        parts.append(slice_dim(g, k, at, at + m.shape[k], 1))
        at += m.shape[k]
    return parts


@op(
    dtype=_cat_types,
    shape=_cat_shape,
    kernel=_cat_launches,
    reference=_cat_reference,
    grad={"tensors": _cat_grad},
    strided=("tensors",),
)
def cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after the other along an axis.

    Args:
        tensors: equal shapes but for axis ``dim``; empty ones of shape (0,) are left out.
        dim: the axis.

    Returns:
        A tensor of the common dtype.

    Raises:
        ShapeError: other axes differ.

    Source: https://pytorch.org/docs/stable/generated/torch.cat.html

    Example:
        >>> import pellucid as torch
        >>> torch.cat([torch.zeros(1, device="cpu"), torch.ones(2, device="cpu")]).tolist()
        [0.0, 1.0, 1.0]
    """


concat = concatenate = cat


def stack(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new axis.

    Raises:
        ShapeError: shapes differ.

    Source: https://pytorch.org/docs/stable/generated/torch.stack.html
    """
    shapes = {tuple(x._meta.shape) for x in tensors}
    if len(shapes) > 1:
        raise ShapeError(f"stack: shapes {sorted(shapes)} must be equal.")
    return cat([unsqueeze(x, dim) for x in tensors], axis(dim, len(next(iter(shapes), ())) + 1))


def hstack(tensors: list[Tensor]) -> Tensor:
    """Tensors side by side: along axis 1, or 0 for tensors of one axis."""
    tensors = [x.reshape(1) if x._meta.rank == 0 else x for x in tensors]
    return cat(tensors, 0 if tensors[0]._meta.rank == 1 else 1)


def vstack(tensors: list[Tensor]) -> Tensor:
    """Tensors below one another."""
    return cat([x.reshape(1, -1) if x._meta.rank < 2 else x for x in tensors], 0)


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
        lengths = list(split_size_or_sections)
        if sum(lengths) != total or any(n < 0 for n in lengths):
            raise ShapeError(f"split: lengths {lengths} must add up to {total}, the length of axis {dim}.")
    else:
        size = index(split_size_or_sections, "split_size")
        if size < 0 or (size == 0 and total):
            raise ShapeError(f"split: split_size {size} must be positive.")
        lengths = [min(size, total - at) for at in range(0, total, size or 1)] or [0]
    parts, at = [], 0
    for n in lengths:
        parts.append(slice_dim(tensor, k, at, at + n, 1))
        at += n
    return tuple(parts)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` views of equal length (the last may be shorter).

    Source: https://pytorch.org/docs/stable/generated/torch.chunk.html
    """
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
    return tuple(select(input, k, j) for j in range(input._meta.shape[k]))


def repeat(input: Tensor, *repeats) -> Tensor:
    """The tensor copied several times along each axis.

    Source: https://pytorch.org/docs/stable/generated/torch.Tensor.repeat.html
    """
    counts = sizes(repeats)
    shape = input._meta.shape
    if len(counts) < len(shape):
        raise ShapeError(f"repeat: {len(counts)} counts for {len(shape)} axes. Give at least as many.")
    shape = (1,) * (len(counts) - len(shape)) + tuple(shape)
    spread = [v for n in shape for v in (1, n)]
    wide = [v for c, n in zip(counts, shape, strict=True) for v in (c, n)]
    out = expand_size(reshape(input, *spread), tuple(wide))
    return _copied(reshape(out, *[c * n for c, n in zip(counts, shape, strict=True)]), input)


def _copied(out: Tensor, input: Tensor) -> Tensor:
    """The result of what promises a copy, also where there was nothing to move."""
    return clone(out) if out._storage is input._storage else out


def tile(input: Tensor, dims) -> Tensor:
    """`repeat` with missing leading counts taken as 1."""
    dims = tuple(dims)
    return repeat(input, *(1,) * (input._meta.rank - len(dims)), *dims)


def repeat_interleave(input: Tensor, repeats: int, dim: int | None = None) -> Tensor:
    """Every element of an axis repeated in place.

    Args:
        input: any tensor.
        repeats: how often.
        dim: the axis; without it the flat tensor.

    Source: https://pytorch.org/docs/stable/generated/torch.repeat_interleave.html
    """
    if dim is None:
        input, dim = flatten(input), 0
    k = axis(dim, input._meta.rank)
    shape = input._meta.shape
    wide = expand_size(unsqueeze(input, k + 1), (*shape[: k + 1], repeats, *shape[k + 1 :]))
    return _copied(reshape(wide, *shape[:k], shape[k] * repeats, *shape[k + 1 :]), input)


def flip(input: Tensor, *dims) -> Tensor:
    """A copy with the order of some axes reversed.

    Source: https://pytorch.org/docs/stable/generated/torch.flip.html
    """
    for d in sizes(dims):
        input = slice_dim(input, d, None, None, -1)
    return clone(input)


def roll(input: Tensor, shifts, dims=None) -> Tensor:
    """Elements moved along axes; those that leave at one end come in at the other.

    Source: https://pytorch.org/docs/stable/generated/torch.roll.html
    """
    if dims is None:
        return reshape(roll(flatten(input), shifts, 0), *input._meta.shape)
    shifts = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    dims = dims if isinstance(dims, (tuple, list)) else (dims,)
    out = input
    for s, d in zip(shifts, dims, strict=True):
        total = input._meta.shape[axis(d, input._meta.rank)]
        cut = -s % total if total else 0
        if cut:
            out = cat([slice_dim(out, d, cut, None, 1), slice_dim(out, d, 0, cut, 1)], d)
    return _copied(out, input)


# Triangles


def _triangle_shape(call: Call) -> Size:
    shape = call["input"].shape
    if len(shape) < 2:
        raise ShapeError(f"takes at least two axes, not shape {tuple(shape)}.")
    return shape


def _triangle(keep: str):
    def launches(call: Call) -> Launch:
        m = call.out
        rows, columns = m.shape[-2:]
        params = {"count": m.numel, "rows": rows, "columns": columns, "diagonal": call["diagonal"]}
        return Launch(
            "movement/triangle", -(-m.numel // 64), params, {"keep": keep, "T": register_type(m.dtype)}
        )

    return launches


@op(
    dtype=same,
    shape=_triangle_shape,
    kernel=_triangle("column <= row + params.diagonal"),
    reference=lambda input, diagonal: np.tril(input, diagonal),
    grad={"input": lambda g, diagonal: g.tril(diagonal)},
)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two axes; zero above the diagonal.

    Source: https://pytorch.org/docs/stable/generated/torch.tril.html
    """


@op(
    dtype=same,
    shape=_triangle_shape,
    kernel=_triangle("column >= row + params.diagonal"),
    reference=lambda input, diagonal: np.triu(input, diagonal),
    grad={"input": lambda g, diagonal: g.triu(diagonal)},
)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two axes; zero below the diagonal.

    Source: https://pytorch.org/docs/stable/generated/torch.triu.html
    """


METHODS = (
    "view view_as reshape flatten unflatten permute transpose t movedim expand expand_as broadcast_to "
    "squeeze unsqueeze as_strided narrow select diagonal clone contiguous split chunk unbind repeat tile "
    "repeat_interleave flip roll tril triu"
)
