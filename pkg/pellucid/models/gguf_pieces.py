"""The bytes of a weight as a GGUF has them, some rows at a time: repacked, reordered, encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..quant.encoding import encode_blocks
from ..quant.format import FORMATS, BlockFormat
from ..quant.planes import join_blocks
from ..quant.weight import planes_of
from ..tensors.tensor import Tensor
from .gguf_changes import TensorChange

_PIECE = 1 << 20  # numbers that are made at once

Rows = slice | np.ndarray


def pieces(value: Tensor, change: TensorChange, kind: str) -> Iterator[np.ndarray]:
    """The bytes of a tensor of the file, in order. Waits for the device.

    Args:
        value: a parameter.
        change: what becomes of it.
        kind: dtype in the file: "float32", or a format of blocks.
    """
    own = value.dtype.name
    read = _quantized(value, kind == own and change.keeps_rows) if value.dtype.is_quantized else _plain(value)
    if kind == own and change.keeps_rows and value.dtype.is_quantized:
        for rows in _ranges(value.shape[0], value.shape[1], change.rows):
            yield read(rows)
        return
    for floats in _changed(read, value, change):
        if change.columns is not None:
            floats = floats[:, change.columns]
        if change.values is not None:
            floats = change.values(floats)
        floats = np.ascontiguousarray(floats, np.float32)
        yield floats if kind == "float32" else encode_blocks(floats, kind)


def _ranges(count: int, columns: int, order: np.ndarray | None, first: int = 0) -> Iterator[Rows]:
    """Rows of so many columns that are made at once, in an order."""
    step = max(_PIECE // max(columns, 1), 1)
    if order is not None:
        count = len(order)
    for at in range(0, count, step):
        end = min(at + step, count)
        yield slice(first + at, first + end) if order is None else order[at:end]


def _changed(read: Callable[[Rows], np.ndarray], value: Tensor, change: TensorChange) -> Iterator[np.ndarray]:
    """Rows of floats in the file's order."""
    count = value.shape[0]
    if not change.parts:
        table = change.rows is not None and value.ndim == 2 and change.path.endswith(".bias")
        if table:  # a row for each expert, of whose columns some are chosen
            assert change.rows is not None
            yield read(slice(0, count)).reshape(-1)[change.rows].reshape(count, -1)
            return
        columns = value.numel() // count if count else 1
        for rows in _ranges(count, columns, change.rows):
            yield read(rows)
        return
    high, wide = count // change.parts, value.shape[1]
    order = np.arange(change.parts * wide) if change.rows is None else change.rows
    for k, chosen in enumerate(order.reshape(change.parts, -1)):
        matrix = read(slice(k * high, (k + 1) * high))
        for rows in _ranges(len(chosen), high, chosen - k * wide):
            yield matrix[:, rows].T


def _plain(value: Tensor) -> Callable[[Rows], np.ndarray]:
    """Reads rows of numbers; a vector is a matrix of one column."""
    matrix = value.detach().reshape(value.shape[0], -1)
    whole: list[np.ndarray] = []

    def read(rows: Rows) -> np.ndarray:
        if isinstance(rows, slice):
            return matrix[rows].float().numpy()
        if not whole:
            whole.append(matrix.float().numpy())
        return whole[0][rows]

    return read


def _quantized(value: Tensor, as_blocks: bool) -> Callable[[Rows], np.ndarray]:
    """Reads rows of a weight's planes: as blocks, or as floats."""
    fmt, columns = FORMATS[value.dtype.name], value.shape[1]
    planes = planes_of(value)

    def read(rows: Rows) -> np.ndarray:
        own = [p if kind.shared else p[rows] for kind, p in zip(fmt.planes, planes, strict=True)]
        if as_blocks and isinstance(fmt, BlockFormat):
            return join_blocks(own, fmt, columns)
        count = len(next(p for kind, p in zip(fmt.planes, own, strict=True) if not kind.shared))
        return fmt.values(*own).reshape(count, -1)[:, :columns]

    return read
