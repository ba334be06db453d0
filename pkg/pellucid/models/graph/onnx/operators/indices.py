"""Operators that take elements by their places, and those that find places."""

from __future__ import annotations

from math import prod

import numpy as np

from .....errors import ShapeError
from .....tensors import dtypes as dt
from .....tensors.construct import tensor
from .....tensors.tensor import Tensor
from ...rows import Number, axis_of, one_of
from ..table import operator
from .elementwise import ops

_COMBINED = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _from_start(indices: Tensor, length: int) -> Tensor:
    """Indices as int64 from 0: negative ones count from the end."""
    indices = indices.to(dt.int64)
    return ops.where(indices < 0, indices + length, indices)


@operator("Gather")
def gather(data: Tensor, indices: Tensor, *, axis: int = 0):
    axis = axis_of(axis, len(data.shape))
    places = _from_start(indices, data.shape[axis])
    taken = ops.index_select(data, axis, places.reshape(-1))
    return taken.reshape(*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])


@operator("GatherElements", since=11)
def gather_elements(data: Tensor, indices: Tensor, *, axis: int = 0):
    axis = axis_of(axis, len(data.shape))
    return ops.gather(data, axis, _from_start(indices, data.shape[axis]))


def _rows(data: Tensor, indices: Tensor, batch: int) -> tuple[Tensor, int, tuple[int, ...]]:
    """Numbers of the rows that index tuples name, how many rows there are, and the shape of a row."""
    count = indices.shape[-1]
    lengths = data.shape[batch : batch + count]
    if batch + count > len(data.shape):
        raise ShapeError(f"{count} indices for {len(data.shape) - batch} axes of shape {tuple(data.shape)}.")
    groups = prod(data.shape[:batch])
    flat = indices.reshape(groups, -1, count)
    rows = ops.arange(groups, device=data.device).reshape(-1, 1)
    for k, length in enumerate(lengths):
        # The index is looked at by itself: out of range it must not name another row.
        one = _checked(_from_start(flat.select(2, k), length), length)
        rows = rows * length + one
    return rows.reshape(-1), groups * prod(lengths), tuple(data.shape[batch + count :])


def _checked(indices: Tensor, length: int) -> Tensor:
    return ops.index_select(ops.arange(length, device=indices.device), 0, indices.reshape(-1)).reshape(
        indices.shape
    )


@operator("GatherND", since=11)
def gather_nd(data: Tensor, indices: Tensor, *, batch_dims: int = 0):
    rows, count, inner = _rows(data, indices, batch_dims)
    taken = ops.index_select(data.reshape(count, prod(inner)), 0, rows)
    return taken.reshape(*indices.shape[:-1], *inner)


@operator("ScatterElements", "Scatter", since=9)
def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
):
    axis = axis_of(axis, len(data.shape))
    places = _from_start(indices, data.shape[axis])
    if one_of("reduction", reduction, ("none", *_COMBINED)) == "none":
        return ops.scatter(data, axis, places, updates)
    return ops.scatter_reduce(data, axis, places, updates, _COMBINED[reduction])


@operator("ScatterND", since=11)
def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none"):
    rows, count, inner = _rows(data, indices, 0)
    flat, new = data.reshape(count, prod(inner)), updates.reshape(-1, prod(inner))
    places = rows.unsqueeze(1).expand(*new.shape)
    if one_of("reduction", reduction, ("none", *_COMBINED)) == "none":
        return ops.scatter(flat, 0, places, new).reshape(data.shape)
    return ops.scatter_reduce(flat, 0, places, new, _COMBINED[reduction]).reshape(data.shape)


@operator("TensorScatter", since=24)
def tensor_scatter(
    past: Tensor, update: Tensor, write_indices: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
):
    axis = axis_of(axis, len(past.shape))
    length, count = past.shape[axis], update.shape[axis]
    places = ops.arange(count, device=past.device).reshape(
        [-1 if k == axis else 1 for k in range(len(past.shape))]
    )
    if write_indices is not None:
        places = places + write_indices.to(dt.int64).reshape([-1] + [1] * (len(past.shape) - 1))
    if one_of("mode", mode, ("linear", "circular")) == "circular":
        places = ops.remainder(places, length)
    return ops.scatter(past, axis, places.expand(*update.shape), update)


@operator("NonZero", since=9)
def non_zero(x: Tensor):
    return ops.nonzero(x if x.shape else x.reshape(1)).T


@operator("Compress", since=9)
def compress(data: Tensor, condition: Tensor, *, axis: int | None = None):
    places = ops.nonzero(condition).reshape(-1)
    if axis is None:
        return ops.index_select(data.reshape(-1), 0, places)
    return ops.index_select(data, axis_of(axis, len(data.shape)), places)


@operator("Unique", since=11)
def unique(x: Tensor, *, axis: int | None = None, sorted: int = 1):
    values, inverse, counts = ops.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=axis)
    along = 0 if axis is None else axis_of(axis, len(x.shape))
    inverse, number = inverse.reshape(-1), counts.shape[0]
    count = inverse.shape[0]
    first = ops.full((number,), count, dtype=dt.int64, device=x.device)
    first = ops.scatter_reduce(first, 0, inverse, ops.arange(count, device=x.device), "amin")
    if not sorted:
        order = ops.argsort(first)
        ranks = ops.scatter(ops.zeros_like(order), 0, order, ops.arange(number, device=x.device))
        values = ops.index_select(values, along, order)
        first, counts = ops.index_select(first, 0, order), ops.index_select(counts, 0, order)
        inverse = ops.index_select(ranks, 0, inverse)
    return values, first, inverse, counts


@operator("NonMaxSuppression", since=10, fixed=False)
def non_max_suppression(
    boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Number = 0, iou_threshold: Number = 0.0,
    score_threshold: Number = None, *, center_point_box: int = 0,
):  # fmt: skip
    """Boxes that overlap a better one go. Reads boxes and scores, and decides on the cpu device: each
    decision waits for the one before."""
    place, count = boxes.device, int(max_output_boxes_per_class or 0)
    corners = boxes.numpy().astype(np.float64)
    if center_point_box:
        middle, half = corners[..., :2], corners[..., 2:] / 2
        corners = np.concatenate([middle - half, middle + half], -1)
    low = np.minimum(corners[..., :2], corners[..., 2:])
    high = np.maximum(corners[..., :2], corners[..., 2:])
    chosen = []
    for (batch, kind), row in zip(np.ndindex(*scores.shape[:2]), scores.numpy().reshape(-1, scores.shape[2])):
        kept = np.argsort(-row, kind="stable")
        if score_threshold is not None:
            kept = kept[row[kept] > score_threshold]
        taken = 0
        while kept.size and taken < count:
            best, kept = kept[0], kept[1:]
            chosen.append((batch, kind, best))
            taken += 1
            sides = np.minimum(high[batch, kept], high[batch, best]) - np.maximum(
                low[batch, kept], low[batch, best]
            )
            shared = np.prod(np.maximum(sides, 0), -1)
            areas = np.prod(high[batch] - low[batch], -1)
            union = areas[kept] + areas[best] - shared
            kept = kept[shared <= iou_threshold * union]
    return tensor(np.array(chosen, np.int64).reshape(-1, 3), device=place)
