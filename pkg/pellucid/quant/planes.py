"""Numpy twins of ``wgsl/quant``: GGUF blocks to planes, planes to float32.

The ``cpu`` device runs them, and the kernels are tested against them.
"""

from __future__ import annotations

import numpy as np

from ..errors import FormatError
from .formats import UNIT, QuantFormat

_LOW = np.uint8(0x0F)


def repack_blocks(raw: np.ndarray, format: QuantFormat, rows: int, columns: int) -> np.ndarray:
    """Planes of a weight from the blocks of a GGUF file.

    Args:
        raw: uint8, ``format.raw_bytes(rows, columns)`` bytes.
        format: a row of `FORMATS`.
        rows, columns: logical shape.

    Returns:
        uint32 words, ``format.layout(rows, columns).nbytes / 4`` of them.

    Raises:
        FormatError: the number of bytes is not that of the shape.

    Example:
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
    layout = format.layout(rows, columns)
    if format.block == 1:
        padded = np.zeros((rows, layout.units * UNIT), np.uint16)
        padded[:, :columns] = raw.view(np.uint16).reshape(rows, columns)
        planes = [padded]
    else:
        planes = _PLANES[format.name](raw.reshape(-1, format.block_bytes))
    words = np.zeros(layout.nbytes // 4, np.uint32)
    for start, plane in zip(layout.starts, planes, strict=True):
        flat = np.ascontiguousarray(plane).reshape(-1).view(np.uint8)
        words.view(np.uint8)[4 * start : 4 * start + flat.size] = flat
    return words


def _pack_nibbles(q: np.ndarray) -> np.ndarray:
    """Quants (n, 32) of 4 bits as bytes (n, 16): column i low in byte i, column 16 + i high."""
    return q[:, :16] | q[:, 16:] << np.uint8(4)


def _transpose_fifths(b: np.ndarray) -> np.ndarray:
    """32 bits (n, 4 bytes), bit i of column i, as 32 bits in which column 4j + i is bit j of byte i."""
    bits = np.unpackbits(b, axis=1, bitorder="little").reshape(-1, 8, 4)
    return np.packbits(bits.transpose(0, 2, 1), axis=2, bitorder="little")


def _superblock_nibbles(b: np.ndarray) -> np.ndarray:
    """Bytes (n, 128): each 32 hold a unit in the low nibbles and the next unit in the high ones."""
    b = b.reshape(-1, 4, 1, 32)
    return _pack_nibbles(np.concatenate([b & _LOW, b >> np.uint8(4)], axis=2).reshape(-1, 32))


def _superblock_fifths(b: np.ndarray) -> np.ndarray:
    """Bytes (n, 32), bit u of byte i the fifth bit of column i of unit u, for `_transpose_fifths`."""
    bits = np.unpackbits(b, axis=1, bitorder="little").reshape(-1, 32, 8)
    return _transpose_fifths(np.packbits(bits.transpose(0, 2, 1), axis=2, bitorder="little").reshape(-1, 4))


def _q6_k(b: np.ndarray) -> list[np.ndarray]:
    low = b[:, :128].reshape(-1, 2, 1, 2, 32)
    quants = _pack_nibbles(np.concatenate([low & _LOW, low >> np.uint8(4)], axis=2).reshape(-1, 32))
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    tops = (b[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & np.uint8(3)
    # Column 16w + 4j + i of a unit is pair j of byte i of word w.
    tops = tops.reshape(-1, 2, 4, 4) << shifts.reshape(1, 1, 4, 1)
    return [quants, np.bitwise_or.reduce(tops, axis=2), b[:, 192:208], b[:, 208:210]]


_PLANES = {
    "q4_0": lambda b: [b[:, 2:], b[:, :2]],
    "q4_1": lambda b: [b[:, 4:], b[:, :4]],
    "q5_0": lambda b: [b[:, 6:], b[:, :2], _transpose_fifths(b[:, 2:6])],
    "q5_1": lambda b: [b[:, 8:], b[:, :4], _transpose_fifths(b[:, 4:8])],
    "q8_0": lambda b: [b[:, 2:], b[:, :2]],
    "q4_k": lambda b: [_superblock_nibbles(b[:, 16:]), b[:, :16]],
    "q5_k": lambda b: [_superblock_nibbles(b[:, 48:]), b[:, :16], _superblock_fifths(b[:, 16:48])],
    "q6_k": _q6_k,
}


def dequantize_planes(words: np.ndarray, format: QuantFormat, rows: int, columns: int) -> np.ndarray:
    """float32 values of a weight's planes, bit for bit what the format defines.

    Args:
        words: uint32, as `repack_blocks` returns.
        format: a row of `FORMATS`.
        rows, columns: logical shape.

    Returns:
        float32 (rows, columns).

    Example:
        >>> dequantize_planes(np.zeros(12, np.uint32), FORMATS["q4_1"], 1, 64).shape
        (1, 64)
    """
    layout = format.layout(rows, columns)
    count = rows * layout.units
    fields = []
    for start, plane in zip(layout.starts, format.planes, strict=True):
        groups = -(-count // plane.units)
        fields.append(words.view(np.uint8)[4 * start : 4 * start + groups * plane.nbytes])
    values = _VALUES[format.name](count, *fields)
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
            nbytes = layout.units * plane.nbytes // plane.units
            at = 4 * start + row * nbytes
            target[k, 4 * small_start : 4 * small_start + nbytes] = source[at : at + nbytes]
        out[k] = dequantize_planes(chosen[k], format, 1, columns)
    return out


def _nibbles(quants: np.ndarray) -> np.ndarray:
    """Inverse of `_pack_nibbles`: uint8 (n, 32)."""
    b = quants.reshape(-1, 16)
    return np.concatenate([b & _LOW, b >> np.uint8(4)], axis=1)


def _with_fifths(quants: np.ndarray, fifths: np.ndarray) -> np.ndarray:
    bits = np.unpackbits(fifths.reshape(-1, 4, 1), axis=2, bitorder="little").transpose(0, 2, 1)
    return _nibbles(quants) | bits.reshape(-1, 32) << np.uint8(4)


def _halves(field: np.ndarray) -> np.ndarray:
    return field.view(np.float16).astype(np.float32)


def _signed(q: np.ndarray, zero: int) -> np.ndarray:
    return (q.view(np.int8) - np.int8(zero)).astype(np.float32)


def _affine(q: np.ndarray, scales: np.ndarray) -> np.ndarray:
    d, m = _halves(scales).reshape(-1, 2).T
    return d[:, None] * q.astype(np.float32) + m[:, None]


def _superblock(q: np.ndarray, headers: np.ndarray) -> np.ndarray:
    h = headers.reshape(-1, 16)
    d, dmin = _halves(np.ascontiguousarray(h[:, :4])).reshape(-1, 2).T
    a, b, c = (h[:, k : k + 4] for k in (4, 8, 12))
    top = np.uint8(0x30)
    scale = np.concatenate([a & 63, (c & _LOW) | (a >> np.uint8(2)) & top], axis=1).astype(np.float32)
    low = np.concatenate([b & 63, (c >> np.uint8(4)) | (b >> np.uint8(2)) & top], axis=1).astype(np.float32)
    return (d[:, None] * scale).reshape(-1, 1) * q.astype(np.float32) - (dmin[:, None] * low).reshape(-1, 1)


def _q6_k_values(
    count: int, quants: np.ndarray, tops: np.ndarray, scales: np.ndarray, supers: np.ndarray
) -> np.ndarray:
    pairs = tops.reshape(-1, 2, 1, 4) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    q = _nibbles(quants) | (pairs.reshape(-1, 32) & np.uint8(3)) << np.uint8(4)
    d = np.repeat(_halves(supers), 16)[: 2 * count] * scales.view(np.int8).astype(np.float32)
    return d[:, None] * _signed(q, 32).reshape(-1, 16)


_VALUES = {
    "f16": lambda n, values: _halves(values),
    "bf16": lambda n, values: (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32),
    "q4_0": lambda n, q, d: _halves(d)[:, None] * _signed(_nibbles(q), 8),
    "q4_1": lambda n, q, d: _affine(_nibbles(q), d),
    "q5_0": lambda n, q, d, h: _halves(d)[:, None] * _signed(_with_fifths(q, h), 16),
    "q5_1": lambda n, q, d, h: _affine(_with_fifths(q, h), d),
    "q8_0": lambda n, q, d: _halves(d)[:, None] * _signed(q, 0).reshape(-1, 32),
    "q4_k": lambda n, q, h: _superblock(_nibbles(q), h),
    "q5_k": lambda n, q, h, f: _superblock(_with_fifths(q, f), h),
    "q6_k": _q6_k_values,
}
