"""Operators that make, move, join, cut and pick elements."""

from __future__ import annotations

from math import prod

from .....errors import ArgumentError, ShapeError
from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.construct import tensor
from .....tensors.tensor import Tensor
from ...onnx.operators.elementwise import ops
from ...rows import Ints, Number, axes_of, axis_of, one_of
from ..layout import first, last
from ..table import operator


@operator("RESHAPE", options="Reshape", moves=True)
def reshape(x: Tensor, shape: Ints | None = None, *, new_shape: list | None = None):
    return x.reshape(tuple(new_shape or ()) if shape is None else tuple(shape))


@operator("SQUEEZE", options="Squeeze", moves=True)
def squeeze(x: Tensor, *, squeeze_dims: list | None = None):
    axes = axes_of(squeeze_dims or [k for k, n in enumerate(x.shape) if n == 1], len(x.shape))
    if any(x.shape[k] != 1 for k in axes):
        raise ShapeError(f"axes {axes} of shape {tuple(x.shape)} are not all of length 1.")
    return x.reshape([n for k, n in enumerate(x.shape) if k not in axes])


@operator("EXPAND_DIMS", moves=True)
def expand_dims(x: Tensor, axis: Number):
    return ops.unsqueeze(x, axis_of(axis, len(x.shape) + 1))


@operator("TRANSPOSE", moves=True)
def transpose(x: Tensor, order: Ints):
    return x.permute(*axes_of(order, len(x.shape)))


def _ends(x: Tensor, paddings: list[int]) -> list[int]:
    """Paddings of all axes, as `F.pad` takes them.

    Raises:
        ShapeError: there are not two for each axis.
    """
    if len(paddings) != 2 * len(x.shape) or min(paddings, default=0) < 0:
        raise ShapeError(f"paddings {paddings} for {len(x.shape)} axes. Give two for each, from 0 on.")
    ends = [n for k in reversed(range(len(x.shape))) for n in paddings[2 * k : 2 * k + 2]]
    while ends and not any(ends[-2:]):
        del ends[-2:]
    return ends


@operator("PAD")
def pad(x: Tensor, paddings: Ints):
    return padv2(x, paddings, 0)


@operator("PADV2")
def padv2(x: Tensor, paddings: Ints, value: Number):
    ends = _ends(x, paddings)
    if len(x.shape) == 4:
        up, left, channels = paddings[2:4], paddings[4:6], paddings[6:8]
        order = [*left, *up, *channels, *paddings[:2]]
        return last(F.pad(first(x), order, value=value))
    return F.pad(x, ends, value=value) if ends else x


@operator("MIRROR_PAD", options="MirrorPad")
def mirror_pad(x: Tensor, paddings: Ints, *, mode: int = 0):
    _ends(x, paddings)
    kept = one_of("mode", mode, {0: 1, 1: 0})  # REFLECT leaves the edge out
    for axis, n in enumerate(x.shape):
        before, after = paddings[2 * axis : 2 * axis + 2]
        if max(before, after) > n - kept:
            raise ShapeError(f"paddings {paddings} mirror more than shape {tuple(x.shape)} has.")
        places = [*range(before - 1 + kept, kept - 1, -1), *range(n)]
        places += range(n - 1 - kept, n - 1 - kept - after, -1)
        if before or after:
            x = ops.index_select(x, axis, tensor(places, dtype=dt.int32, device=x.device))
    return x


@operator("CONCATENATION", options="Concatenation", moves=True)
def concatenation(*inputs: Tensor, axis: int = 0):
    rank = len(inputs[0].shape)
    axis = axis_of(axis, rank)
    if rank == 4 and all(len(x.shape) == 4 for x in inputs):
        return last(ops.cat([first(x) for x in inputs], (0, 2, 3, 1)[axis]))
    return ops.cat(list(inputs), axis)


@operator("PACK", options="Pack", moves=True)
def pack(*inputs: Tensor, values_count: int = 0, axis: int = 0):
    return ops.stack(list(inputs), axis_of(axis, len(inputs[0].shape) + 1))


@operator("UNPACK", options="Unpack", moves=True)
def unpack(x: Tensor, *, num: int = 0, axis: int = 0):
    return list(ops.unbind(x, axis_of(axis, len(x.shape))))


@operator("SPLIT", options="Split", moves=True)
def split(axis: Number, x: Tensor, *, num_splits: int = 0):
    n = x.shape[axis_of(axis, len(x.shape))]
    if num_splits < 1 or n % num_splits:
        raise ShapeError(f"{n} elements do not split into {num_splits} parts.")
    return list(ops.split(x, max(n // num_splits, 1), axis))


@operator("SPLIT_V", options="SplitV", moves=True)
def split_v(x: Tensor, sizes: Ints, axis: Number, *, num_splits: int = 0):
    n = x.shape[axis_of(axis, len(x.shape))]
    rest = n - sum(s for s in sizes if s != -1)
    return list(ops.split(x, [rest if s == -1 else s for s in sizes], axis))


@operator("SLICE", moves=True)
def slice_(x: Tensor, begin: Ints, size: Ints):
    if len(begin) != len(x.shape) or len(size) != len(x.shape):
        raise ShapeError(f"begin {begin} and size {size} for shape {tuple(x.shape)}.")
    for axis, (start, count) in enumerate(zip(begin, size)):
        n = x.shape[axis]
        count = n - start if count == -1 else count
        if not 0 <= start <= start + count <= n:
            raise ShapeError(f"begin {begin} and size {size} do not lie in shape {tuple(x.shape)}.")
        x = x.narrow(axis, start, count) if count != n else x
    return x


@operator("STRIDED_SLICE", options="StridedSlice", moves=True)
def strided_slice(
    x: Tensor, begin: Ints, end: Ints, strides: Ints, *, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0, offset: bool = False,
):  # fmt: skip
    if not len(begin) == len(end) == len(strides):
        raise ShapeError(f"begin {begin}, end {end} and strides {strides} are not of one length.")
    if offset:
        end = [a + b for a, b in zip(begin, end)]
    index: list = []
    for k, (start, stop, step) in enumerate(zip(begin, end, strides)):
        bit = 1 << k
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(start)
        elif step == 0:
            raise ShapeError("a stride is 0.")
        else:
            part = slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step)
            if step < 0:  # turned round, then cut
                axis = _axis(index, x, len(begin) - k, ellipsis_mask >> k)
                n = x.shape[axis]
                picked = range(n)[part]
                x = ops.index_select(x, axis, tensor(list(picked), dtype=dt.int32, device=x.device))
                part = slice(None)
            index.append(part)
    return x[tuple(index)]


def _axis(index: list, x: Tensor, behind: int, ellipsis: int) -> int:
    """The axis of ``x`` that the next part of an index is about."""
    if Ellipsis in index and not ellipsis:
        return len(x.shape) - behind
    return sum(part is not None for part in index)


@operator("TILE", moves=True)
def tile(x: Tensor, multiples: Ints):
    return ops.tile(x, tuple(multiples))


@operator("BROADCAST_TO", moves=True)
def broadcast_to(x: Tensor, shape: Ints):
    return ops.broadcast_to(x, tuple(shape))


@operator("SHAPE")
def shape_of(x: Tensor, *, kind: dt.DType = dt.int32):
    return tensor(list(x.shape), dtype=kind, device="cpu")


@operator("RANK")
def rank(x: Tensor, *, kind: dt.DType = dt.int32):
    return tensor(len(x.shape), dtype=kind, device="cpu")


@operator("RANGE")
def range_(start: Number, limit: Number, delta: Number, *, kind: dt.DType):
    if not delta:
        raise ArgumentError("the step is 0.")
    return ops.arange(start, limit, delta, dtype=kind, device="cpu")


@operator("FILL")
def fill(shape: Ints, value: Tensor):
    return ops.broadcast_to(value.reshape(()), tuple(shape))


@operator("REVERSE_V2", moves=True)
def reverse(x: Tensor, axes: Ints):
    return ops.flip(x, axes_of(axes, len(x.shape)))


@operator("SPACE_TO_DEPTH", options="SpaceToDepth", moves=True)
def space_to_depth(x: Tensor, *, block_size: int):
    b, h, w, c = x.shape
    s = block_size
    if s < 1 or h % s or w % s:
        raise ShapeError(f"blocks of {s} do not fill shape {tuple(x.shape)}.")
    y = x.reshape(b, h // s, s, w // s, s, c).permute(0, 1, 3, 2, 4, 5)
    return y.reshape(b, h // s, w // s, s * s * c)


@operator("DEPTH_TO_SPACE", options="DepthToSpace", moves=True)
def depth_to_space(x: Tensor, *, block_size: int):
    b, h, w, c = x.shape
    s = block_size
    if s < 1 or c % (s * s):
        raise ShapeError(f"{c} channels do not fill blocks of {s}.")
    y = x.reshape(b, h, w, s, s, c // (s * s)).permute(0, 1, 3, 2, 4, 5)
    return y.reshape(b, h * s, w * s, c // (s * s))


@operator("SPACE_TO_BATCH_ND")
def space_to_batch(x: Tensor, block: Ints, paddings: Ints):
    m = len(block)
    rest = len(x.shape) - 1 - m
    if rest < 0 or len(paddings) != 2 * m or min(block, default=1) < 1:
        raise ShapeError(f"block {block} and paddings {paddings} for shape {tuple(x.shape)}.")
    y = F.pad(x, _ends(x, [0, 0, *paddings, *[0, 0] * rest]) or [0, 0])
    b, lengths, tail = y.shape[0], y.shape[1 : 1 + m], y.shape[1 + m :]
    y = y.reshape(b, *[n for length, s in zip(lengths, block) for n in (length // s, s)], *tail)
    inner, outer = [2 + 2 * k for k in range(m)], [1 + 2 * k for k in range(m)]
    y = y.permute(*inner, 0, *outer, *range(1 + 2 * m, len(y.shape)))
    return y.reshape(b * prod(block), *[length // s for length, s in zip(lengths, block)], *tail)


@operator("BATCH_TO_SPACE_ND", moves=True)
def batch_to_space(x: Tensor, block: Ints, crops: Ints):
    m = len(block)
    if len(x.shape) < 1 + m or len(crops) != 2 * m or min(block, default=1) < 1:
        raise ShapeError(f"block {block} and crops {crops} for shape {tuple(x.shape)}.")
    b, lengths, tail = x.shape[0] // prod(block), x.shape[1 : 1 + m], x.shape[1 + m :]
    y = x.reshape(*block, b, *lengths, *tail)
    order = [n for k in range(m) for n in (m + 1 + k, k)]
    y = y.permute(m, *order, *range(2 * m + 1, len(y.shape)))
    y = y.reshape(b, *[n * s for n, s in zip(lengths, block)], *tail)
    for k, (n, s) in enumerate(zip(lengths, block)):
        y = y.narrow(k + 1, crops[2 * k], n * s - crops[2 * k] - crops[2 * k + 1])
    return y


@operator("GATHER", options="Gather", moves=True)
def gather(x: Tensor, indices: Tensor, *, axis: int = 0, batch_dims: int = 0):
    axis, count = axis_of(axis, len(x.shape)), len(indices.shape)
    if not 0 <= batch_dims <= min(axis, count) or x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ShapeError(f"batch_dims {batch_dims} for shapes {tuple(x.shape)} and {tuple(indices.shape)}.")
    if not batch_dims:
        y = ops.index_select(x, axis, indices.reshape(-1))
        return y.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    batch = x.shape[:batch_dims]
    rows = x.reshape(prod(batch), *x.shape[batch_dims:])
    picks = indices.reshape(prod(batch), -1)
    at = axis - batch_dims
    parts = [ops.index_select(rows.select(0, k), at, picks.select(0, k)) for k in range(prod(batch))]
    return ops.stack(parts).reshape(*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :])


@operator("EMBEDDING_LOOKUP", moves=True)
def embedding_lookup(indices: Tensor, x: Tensor):
    return gather(x, indices)


@operator("GATHER_ND", moves=True)
def gather_nd(x: Tensor, indices: Tensor):
    depth = indices.shape[-1]
    if depth > len(x.shape):
        raise ShapeError(f"indices of {depth} axes for shape {tuple(x.shape)}.")
    flat = _flat(indices, x.shape[:depth])
    y = ops.index_select(x.reshape(-1, *x.shape[depth:]), 0, flat.reshape(-1))
    return y.reshape(*indices.shape[:-1], *x.shape[depth:])


def _flat(indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    """One index for those of several axes, which are the last axis."""
    flat = None
    for k, n in enumerate(shape):
        part = indices.select(-1, k)
        flat = part if flat is None else flat * n + part
    return ops.zeros(indices.shape[:-1], dtype=indices.dtype, device=indices.device) if flat is None else flat


@operator("SCATTER_ND")
def scatter_nd(indices: Tensor, updates: Tensor, shape: Ints):
    depth = indices.shape[-1]
    tail = tuple(shape[depth:])
    zeros = ops.zeros((prod(shape[:depth]), *tail), dtype=updates.dtype, device=updates.device)
    flat = _flat(indices, tuple(shape[:depth])).reshape(-1)
    return ops.index_add(zeros, 0, flat, updates.reshape(-1, *tail)).reshape(tuple(shape))


@operator("ONE_HOT", options="OneHot")
def one_hot(indices: Tensor, depth: Number, on: Tensor, off: Tensor, *, axis: int = 0):
    at = len(indices.shape) if axis == -1 else axis_of(axis, len(indices.shape) + 1)
    shape = [depth if k == at else 1 for k in range(len(indices.shape) + 1)]
    classes = ops.arange(depth, dtype=indices.dtype, device=indices.device).reshape(shape)
    return ops.where(ops.unsqueeze(indices, at) == classes, on, off)


@operator("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(x: Tensor, update: Tensor, start: Ints):
    y = x.clone()
    part = y
    for axis, (at, n) in enumerate(zip(start, update.shape)):
        part = part.narrow(axis, max(min(at, x.shape[axis] - n), 0), n)
    part.copy_(update)
    return y


@operator("REVERSE_SEQUENCE", options="ReverseSequence")
def reverse_sequence(x: Tensor, lengths: Tensor, *, seq_dim: int = 0, batch_dim: int = 0):
    rank = len(x.shape)
    n = x.shape[axis_of(seq_dim, rank)]
    along = [-1 if k == seq_dim else 1 for k in range(rank)]
    across = [-1 if k == batch_dim else 1 for k in range(rank)]
    at = ops.arange(n, dtype=lengths.dtype, device=x.device).reshape(along)
    count = lengths.reshape(across)
    index = ops.where(at < count, count - 1 - at, at).to(dt.int64)
    return ops.gather(x, seq_dim, index.expand(x.shape))


@operator("DENSIFY", moves=True)
def densify(x: Tensor):
    """Sparse weights are dense from the beginning here."""
    return x


@operator("VAR_HANDLE", "CALL_ONCE", options="")
def handle():
    """Variables are buffers of the module; see `graph`."""
    raise ArgumentError("is no step of a graph.")


@operator("READ_VARIABLE", fixed=False, moves=True)
def read_variable(variable: Tensor):
    return variable.clone()


@operator("ASSIGN_VARIABLE", fixed=False, moves=True)
def assign_variable(variable: Tensor, value: Tensor):
    variable.copy_(value)
    return ()
