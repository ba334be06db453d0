"""The planes of a weight in numpy: from the blocks of a GGUF file, and to float32.

The ``cpu`` device runs this, and the kernels of ``wgsl/quant`` are tested against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from ..errors import FormatError
from .format import BLOCK_FORMATS, UNIT, BlockFormat, QuantFormat


def repack_blocks(raw: np.ndarray, format: BlockFormat, rows: int, columns: int) -> np.ndarray:
    """Planes of a weight from the blocks of a GGUF file.

    Args:
        raw: uint8, ``format.raw_bytes(rows, columns)`` bytes.
        format: of `FORMATS`, with blocks.
        rows, columns: logical shape.

    Returns:
        uint32 words, ``format.layout(rows, columns).nbytes / 4`` of them.

    Raises:
        FormatError: the number of bytes is not that of the shape.

    Example:
        >>> from pellucid.quant import FORMATS
        >>> repack_blocks(np.zeros(40, np.uint8), FORMATS["q4_1"], 1, 64).shape
        (12,)
    """
    raw = np.ascontiguousarray(raw).reshape(-1).view(np.uint8)
    expected = format.raw_bytes(rows, columns)
    if raw.size != expected:
        raise FormatError(
            f"{format.name}: a weight of shape ({rows}, {columns}) takes {expected} bytes, "
            f"and {raw.size} are given. Give exactly the tensor's bytes."
        )
    if format.block > 1:
        return join_planes(format.split(raw.reshape(-1, format.block_bytes)), format, rows, columns)
    padded = np.zeros((rows, format.units(columns) * UNIT), np.uint16)
    padded[:, :columns] = raw.view(np.uint16).reshape(rows, columns)
    return join_planes([padded], format, rows, columns)


def join_planes(planes: Sequence[np.ndarray], format: QuantFormat, rows: int, columns: int) -> np.ndarray:
    """The buffer of a weight: its planes behind each other, as uint32 words."""
    layout = format.layout(rows, columns)
    words = np.zeros(layout.nbytes // 4, np.uint32)
    for start, plane in zip(layout.starts, planes, strict=True):
        flat = np.ascontiguousarray(plane).reshape(-1).view(np.uint8)
        words.view(np.uint8)[4 * start : 4 * start + flat.size] = flat
    return words


def split_planes(words: np.ndarray, format: QuantFormat, rows: int, columns: int) -> list[np.ndarray]:
    """The planes of a weight's buffer, without a copy: uint8 (rows, fields of a row, bytes of a field)."""
    layout = format.layout(rows, columns)
    planes = []
    for start, plane in zip(layout.starts, format.planes, strict=True):
        shape = (plane.rows(rows), plane.row_bytes(layout.units) // plane.nbytes, plane.nbytes)
        planes.append(words.view(np.uint8)[4 * start : 4 * start + prod(shape)].reshape(shape))
    return planes


def join_blocks(planes: Sequence[np.ndarray], format: BlockFormat, columns: int) -> np.ndarray:
    """The blocks of a GGUF file from the planes of some rows: what `repack_blocks` undoes, bit for bit.

    Args:
        planes: of `split_planes`, or rows of them.
        format: of `FORMATS`, with blocks.
        columns: of a row.

    Returns:
        uint8 (rows, bytes of a row).

    Example:
        >>> from pellucid.quant import FORMATS, encode_blocks
        >>> fmt, blocks = FORMATS["q4_1"], encode_blocks(np.arange(64, dtype=np.float32)[None], "q4_1")
        >>> planes = split_planes(repack_blocks(blocks, fmt, 1, 64), fmt, 1, 64)
        >>> np.array_equal(join_blocks(planes, fmt, 64), blocks)
        True
    """
    rows = len(planes[0])
    if format.block == 1:
        return np.ascontiguousarray(planes[0].reshape(rows, -1)[:, : 2 * columns])
    own = [plane for plane, kind in zip(planes, format.planes, strict=True) if not kind.shared]
    count = columns // format.block
    fields = np.concatenate([plane.reshape(rows * count, -1) for plane in own], axis=1)
    order = _bits(format.name)
    if not (order % 8 - np.arange(8)).any():  # whole bytes stay together
        return np.ascontiguousarray(fields[:, order[:, 0] // 8]).reshape(rows, -1)
    out, step = np.empty((len(fields), format.block_bytes), np.uint8), max((1 << 23) // format.block_bytes, 1)
    for at in range(0, len(fields), step):
        bits = np.unpackbits(fields[at : at + step], axis=1, bitorder="little")
        out[at : at + step] = np.packbits(bits[:, order.reshape(-1)], axis=1, bitorder="little")
    return out.reshape(rows, -1)


@cache
def _bits(name: str) -> np.ndarray:
    """Which bit of a block's planes each bit of its bytes is: (bytes, 8). Splitting moves bits alone."""
    fmt = BLOCK_FORMATS[name]
    n = 8 * fmt.block_bytes
    blocks = np.packbits(np.eye(n, dtype=np.uint8), axis=1, bitorder="little")
    own = [p for p, kind in zip(fmt.split(blocks), fmt.planes, strict=True) if not kind.shared]
    fields = np.concatenate([np.ascontiguousarray(p).reshape(n, -1) for p in own], axis=1)
    return np.unpackbits(fields, axis=1, bitorder="little").argmax(axis=1).reshape(-1, 8)


def dequantize_planes(words: np.ndarray, format: QuantFormat, rows: int, columns: int) -> np.ndarray:
    """float32 values of a weight's planes, bit for bit what the format defines.

    Args:
        words: uint32, as `repack_blocks` returns.
        format: a row of `FORMATS`.
        rows, columns: logical shape.

    Returns:
        float32 (rows, columns).

    Example:
        >>> from pellucid.quant import FORMATS
        >>> dequantize_planes(np.zeros(12, np.uint32), FORMATS["q4_1"], 1, 64).shape
        (1, 64)
    """
    values = format.values(*split_planes(words, format, rows, columns))
    return np.ascontiguousarray(values.reshape(rows, -1)[:, :columns])


def dequantize_rows(
    words: np.ndarray, format: QuantFormat, rows: int, columns: int, indices: np.ndarray
) -> np.ndarray:
    """float32 values of some rows of a weight, without unpacking the others.

    Args:
        words: uint32, as `repack_blocks` returns.
        format: a row of `FORMATS`.
        rows, columns: logical shape.
        indices: int (count,), each below ``rows``.

    Returns:
        float32 (count, columns).
    """
    layout = format.layout(rows, columns)
    small = format.layout(1, columns)
    chosen = np.zeros((len(indices), small.nbytes // 4), np.uint32)
    source, target = words.view(np.uint8), chosen.view(np.uint8)
    out = np.empty((len(indices), columns), np.float32)
    for k, row in enumerate(np.asarray(indices).tolist()):
        for start, small_start, plane in zip(layout.starts, small.starts, format.planes, strict=True):
            nbytes = plane.row_bytes(layout.units)
            at = 4 * start + (0 if plane.shared else row * nbytes)
            target[k, 4 * small_start : 4 * small_start + nbytes] = source[at : at + nbytes]
        out[k] = dequantize_planes(chosen[k], format, 1, columns)
    return out
