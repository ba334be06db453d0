"""Sparse weights: levels of a tree, each dense or with the indices that are there, made dense at load.

Source: "Format abstraction for sparse tensor algebra compilers", Chou, Kjolstad and Amarasinghe (2018), whose
formats TensorFlow Lite's ``SparsityParameters`` describe.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....errors import FormatError

_LARGEST, _SPARSEST = 1 << 28, 1024  # elements; elements for each that is stored


def dense(where: str, sparsity: Any, shape: tuple[int, ...], values: np.ndarray) -> np.ndarray:
    """The tensor that a sparse one stands for.

    Args:
        where: the file and the tensor.
        sparsity: its table.
        shape: of the dense tensor.
        values: what is stored.

    Raises:
        FormatError: levels, shape and values contradict each other.
    """
    refused = FormatError(
        f"{where}: is sparse, with levels that do not fit its shape {shape} and values. It is damaged."
    )
    order, blocks, levels = sparsity.traversal_order, sparsity.block_map, sparsity.dim_metadata
    rank, count = len(shape), prod(shape)
    if sorted(order) != list(range(rank + len(blocks))) or len(levels) != len(order):
        raise refused
    if not all(0 <= axis < rank for axis in blocks) or len(set(blocks)) < len(blocks):
        raise refused
    if count > min(_LARGEST, _SPARSEST * (values.size + 1)):
        raise refused
    nodes = np.zeros(1, np.int64)
    places = np.zeros((rank + len(blocks), 1), np.int64)
    sizes = [1] * rank  # of the blocks along each axis
    for axis, level in zip(order, levels):
        if axis >= rank:
            sizes[blocks[axis - rank]] = level.dense_size
        if level.format == 0:
            each = np.full(nodes.size, level.dense_size, np.int64)
            starts, along = nodes * level.dense_size, None
        else:
            bounds, along = _vector(level.array_segments), _vector(level.array_indices)
            if nodes.size and int(nodes.max()) + 1 >= bounds.size:
                raise refused
            starts, each = bounds[nodes], bounds[nodes + 1] - bounds[nodes]
            if each.size and (each.min() < 0 or starts.min() < 0 or (starts + each).max() > along.size):
                raise refused
        total = int(each.sum()) if each.size and each.min() >= 0 and each.max() <= count else -1
        if not 0 <= total <= count:
            raise refused
        each = each.astype(np.intp)  # of 32 bits in a page
        within = np.arange(total) - np.repeat(np.cumsum(each) - each, each)
        nodes = np.repeat(starts, each) + within
        places = np.repeat(places, each, axis=1)
        places[axis] = within if along is None else along[nodes]
    for k, axis in enumerate(blocks):
        places[axis] = places[axis] * sizes[axis] + places[rank + k]
    places = places[:rank]
    limits = np.array(shape, np.int64)[:, None]
    if (places < 0).any() or (places >= limits).any() or (nodes.size and nodes.max() >= values.size):
        raise refused
    out = np.zeros(shape, values.dtype)
    out[tuple(places)] = values[nodes]
    return out


def _vector(table: Any) -> np.ndarray:
    return np.array(getattr(table, "values", []), np.int64)
