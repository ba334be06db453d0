"""Operators that rearrange elements, and those that make tensors of shapes."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import numpy as np

from .....errors import ShapeError
from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.construct import tensor
from .....tensors.tensor import Tensor
from ...rows import Ints, Number, axes_of, axis_of, one_of
from ..constants import data_type
from ..table import operator
from .elementwise import ops

_MOST = 1 << 31  # elements that a shape may ask for


@operator("Reshape")
def reshape(data: Tensor, shape: Ints, *, allowzero: int = 0, consumed_inputs: Any = None):
    sizes = [n if n or allowzero or k >= len(data.shape) else data.shape[k] for k, n in enumerate(shape)]
    return data.reshape(sizes)


@operator("Transpose")
def transpose(data: Tensor, *, perm: list | None = None):
    return data.permute(*(perm if perm is not None else range(len(data.shape))[::-1]))


@operator("Squeeze")
def squeeze(data: Tensor, axes: Ints | None = None):
    rank = len(data.shape)
    chosen = axes_of(axes, rank) if axes is not None else [k for k, n in enumerate(data.shape) if n == 1]
    if any(data.shape[k] != 1 for k in chosen):
        raise ShapeError(f"axes {axes} of shape {tuple(data.shape)} are not all of length 1.")
    return data.reshape([n for k, n in enumerate(data.shape) if k not in chosen])


@operator("Unsqueeze")
def unsqueeze(data: Tensor, axes: Ints):
    rank = len(data.shape) + len(axes)
    chosen, lengths = axes_of(axes, rank), iter(data.shape)
    return data.reshape([1 if k in chosen else next(lengths) for k in range(rank)])


@operator("Flatten")
def flatten(data: Tensor, *, axis: int = 1):
    rank = len(data.shape)
    if not -rank <= axis <= rank:
        raise ShapeError(f"axis {axis} of shape {tuple(data.shape)}. Give one from {-rank} to {rank}.")
    axis += rank if axis < 0 else 0
    return data.reshape(prod(data.shape[:axis]), prod(data.shape[axis:]))


@operator("Concat")
def concat(*inputs: Tensor, axis: int = 1):
    return ops.cat(list(inputs), axis_of(axis, len(inputs[0].shape)))


@operator("Split")
def split(data: Tensor, split: Ints | None = None, *, axis: int = 0, num_outputs: int = 0, outputs: int = 1):
    axis = axis_of(axis, len(data.shape))
    length, parts = data.shape[axis], outputs
    if num_outputs not in (0, outputs):
        raise ShapeError(f"num_outputs is {num_outputs}, and there are {outputs} outputs.")
    if split is None:
        step = -(-length // parts)
        split = [min(step, max(length - k * step, 0)) for k in range(parts)]
    if sum(split) != length or min(split, default=0) < 0:
        raise ShapeError(f"parts {split} do not make the length {length} of axis {axis}.")
    return tuple(ops.split_with_sizes(data, list(split), axis))


@operator("Slice")
def slice_(data: Tensor, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None):
    axes = axes_of(range(len(starts)) if axes is None else axes, len(data.shape))
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ShapeError(f"starts {starts}, ends {ends}, axes {axes} and steps {steps} do not fit together.")
    for start, end, axis, step in zip(starts, ends, axes, steps):
        length = data.shape[axis]
        places = range(*slice(start, end, step).indices(length))
        if step < 0 and end < -length:
            places = range(*slice(start, None, step).indices(length))
        if step < 0:
            data = ops.flip(data, [axis])
            places = range(length - 1 - places.start, length - 1 - places.stop, -step)
        index = [slice(None)] * axis
        data = data[(*index, slice(places.start, max(places.stop, places.start), places.step))]
    return data


@operator("Expand", since=8)
def expand(data: Tensor, shape: Ints):
    return data.expand(*ops.broadcast_shapes(tuple(data.shape), tuple(shape)))


@operator("Tile", since=6)
def tile(data: Tensor, repeats: Ints):
    if len(repeats) != len(data.shape):
        raise ShapeError(f"repeats {repeats} for shape {tuple(data.shape)}. Give one for each axis.")
    check_size(n * r for n, r in zip(data.shape, repeats))
    return data.repeat(*repeats) if repeats else data


def check_size(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape)
    if any(n < 0 for n in sizes) or prod(sizes) > _MOST:
        raise ShapeError(f"shape {sizes} is no shape of a tensor, or takes more than {_MOST:,} elements.")
    return sizes


@operator("Shape")
def shape(data: Tensor, *, start: int = 0, end: int | None = None):
    return tensor(np.array(data.shape[start:end], np.int64), device="cpu")


@operator("Size")
def size(data: Tensor):
    return tensor(np.array(prod(data.shape), np.int64), device="cpu")


@operator("ConstantOfShape", since=9)
def constant_of_shape(shape: Ints, *, value: np.ndarray | None = None):
    fill = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return ops.expand_copy(tensor(fill.reshape(()), device="cpu"), list(check_size(shape)))


@operator("Range", since=11)
def range_(start: Tensor, limit: Tensor, delta: Tensor):
    first, last, step = start.item(), limit.item(), delta.item()
    if not step:
        raise ShapeError("delta is 0. Give a step that reaches the limit.")
    (count,) = check_size([max(ceil((last - first) / step), 0)])
    return (ops.arange(count, device=start.device) * step + first).to(start.dtype)


@operator("EyeLike", since=9)
def eye_like(data: Tensor, *, dtype: int | None = None, k: int = 0):
    rows, columns = data.shape
    found = data.dtype if dtype is None else data_type("EyeLike", dtype)
    ones = ops.arange(columns, device=data.device) - ops.arange(rows, device=data.device).unsqueeze(1) == k
    return ones.to(found)


@operator("Trilu", since=14)
def trilu(data: Tensor, k: Number = None, *, upper: int = 1):
    number = 0 if k is None else max(min(k, max(data.shape)), -max(data.shape))
    rows, columns = (ops.arange(n, device=data.device) for n in data.shape[-2:])
    places = columns - rows.unsqueeze(1)
    return ops.where(places >= number if upper else places <= number, data, ops.zeros_like(data))


@operator("Pad")
def pad(
    data: Tensor, pads: Ints, constant_value: Tensor | None = None, axes: Ints | None = None, *,
    mode: str = "constant", value: float = 0.0, paddings: list | None = None,
):  # fmt: skip
    pads = paddings if paddings is not None else pads
    chosen = axes_of(range(len(data.shape)) if axes is None else axes, len(data.shape))
    if len(pads) != 2 * len(chosen):
        raise ShapeError(f"pads {pads} for {len(chosen)} axes. Give one for each end of an axis.")
    check_size(data.shape[a] + pads[k] + pads[k + len(chosen)] for k, a in enumerate(chosen))
    if mode == "constant":
        ends = {a: (pads[k], pads[k + len(chosen)]) for k, a in enumerate(chosen)}
        flat = [n for a in reversed(range(len(data.shape))) for n in ends.get(a, (0, 0))]
        number = value if constant_value is None else constant_value.item()
        return F.pad(data, flat, value=number) if any(flat) else data
    one_of("mode", mode, ("reflect", "edge", "wrap"))
    for k, axis in enumerate(chosen):
        before, after = pads[k], pads[k + len(chosen)]
        if before or after:
            data = ops.index_select(data, axis, _padded_places(data, axis, before, after, mode))
    return data


def _padded_places(data: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    length = data.shape[axis]
    if not length:
        raise ShapeError(f"mode {mode} along axis {axis}, which is empty. Use mode constant.")
    places = np.arange(-before, length + after)
    if mode == "edge":
        places = np.clip(places, 0, length - 1)
    elif mode == "wrap":
        places %= length
    else:
        places = (
            np.abs((places + length - 1) % max(2 * length - 2, 1) - length + 1) if length > 1 else places * 0
        )
    return tensor(places.astype(np.int64), device=data.device)


@operator("DepthToSpace")
def depth_to_space(data: Tensor, *, blocksize: int, mode: str = "DCR"):
    n, c, h, w = data.shape
    b, inner = blocksize, c // blocksize**2
    if one_of("mode", mode, ("DCR", "CRD")) == "DCR":
        return data.reshape(n, b, b, inner, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, inner, h * b, w * b)
    return data.reshape(n, inner, b, b, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, inner, h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(data: Tensor, *, blocksize: int, mode: str = "DCR"):
    n, c, h, w = data.shape
    b = blocksize
    order = one_of("mode", mode, {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)})
    return data.reshape(n, c, h // b, b, w // b, b).permute(*order).reshape(n, c * b * b, h // b, w // b)


@operator("CenterCropPad", since=18)
def center_crop_pad(data: Tensor, shape: Ints, *, axes: list | None = None):
    chosen = axes_of(range(len(data.shape)) if axes is None else axes, len(data.shape))
    for axis, wanted in zip(chosen, check_size(shape)):
        length = data.shape[axis]
        if wanted <= length:
            data = data.narrow(axis, (length - wanted) // 2, wanted)
        else:
            before = (wanted - length) // 2
            ends = [0, 0] * (len(data.shape) - 1 - axis) + [before, wanted - length - before]
            data = F.pad(data, ends)
    return data


@operator("ReverseSequence", since=10)
def reverse_sequence(data: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0):
    x = data.movedim((batch_axis, time_axis), (0, 1))
    places = ops.arange(x.shape[1], device=x.device).unsqueeze(0)
    lengths = sequence_lens.to(dt.int64).unsqueeze(1)
    index = ops.where(places < lengths, lengths - 1 - places, places)
    index = index.reshape(*index.shape, *[1] * (len(x.shape) - 2)).expand(*x.shape)
    return ops.gather(x, 1, index).movedim((0, 1), (batch_axis, time_axis))


@operator("Col2Im", since=18)
def col2im(
    data: Tensor, image_shape: Ints, block_shape: Ints, *, dilations: list | None = None,
    pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    rank = len(image_shape)
    pads = pads or [0] * 2 * rank
    dilations, strides = dilations or [1] * rank, strides or [1] * rank
    padded = [n + pads[k] + pads[k + rank] for k, n in enumerate(image_shape)]
    check_size(padded)
    # Where each element of a column goes, in the padded image.
    places = np.zeros((1, 1), np.int64)
    for n, block, dilation, stride in zip(padded, block_shape, dilations, strides):
        windows = (n - dilation * (block - 1) - 1) // stride + 1
        own = dilation * np.arange(block)[:, None] + stride * np.arange(windows)[None]
        places = places[:, None, :, None] * n + own[None, :, None]
        places = places.reshape(places.shape[0] * block, -1)
    batch, rows, columns = data.shape
    if rows % places.shape[0] or columns != places.shape[1]:
        raise ShapeError(
            f"shape {tuple(data.shape)} holds no blocks {block_shape} of an image {image_shape}."
        )
    channels = rows // places.shape[0]
    index = tensor(places.reshape(-1), device=data.device).expand(batch, channels, places.size)
    image = ops.zeros((batch, channels, prod(padded)), dtype=data.dtype, device=data.device)
    image = ops.scatter_add(image, 2, index, data.reshape(batch, channels, -1))
    image = image.reshape(batch, channels, *padded)
    for k, n in enumerate(image_shape):
        image = image.narrow(k + 2, pads[k], n)
    return image


@operator("OneHot", since=9)
def one_hot(indices: Tensor, depth: Number, values: Tensor, *, axis: int = -1):
    (count,) = check_size([int(depth)])
    rank = len(indices.shape) + 1
    places = indices.to(dt.int64)
    places = ops.where(places < 0, places + count, places).unsqueeze(axis_of(axis, rank))
    row = ops.arange(count, device=places.device).reshape(
        *[-1 if k == axis_of(axis, rank) else 1 for k in range(rank)]
    )
    return ops.where(places == row, values[1], values[0])
