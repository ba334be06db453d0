"""GGUF's IQ1, IQ2 and IQ3: each 8 columns are one or two entries of a codebook, with signs.

Source: gguf.quants of the PyPI package ``gguf``
"""

from __future__ import annotations

import numpy as np

from ..format import Plane
from .blocks import block_format, halves
from .grids import GRIDS
from .low_bits import SUPERS, in_order

# Seven signs for eight columns: those that are negative are even in number.
_EVEN = np.array([bits | bits.bit_count() % 2 << 7 for bits in range(128)], np.uint8)


def _part(field: np.ndarray, kind: type, *shifts: int) -> np.ndarray:
    """Bytes (n, k) as little-endian integers, each by all shifts: (n, integers, shifts)."""
    return np.ascontiguousarray(field).view(kind)[..., None] >> np.array(shifts, kind)


def _signed(magnitudes: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Eight columns a row; bit i of a byte of ``signs`` is the sign of column i."""
    negative = np.unpackbits(signs.reshape(-1, 1), axis=1, bitorder="little")
    return np.where(negative, np.float32(-1), np.float32(1)) * magnitudes.reshape(-1, 8).astype(np.float32)


def _scaled(scales: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Columns, 256 for each row of scales, times the scale of their part of the row."""
    return scales[..., None] * columns.reshape(*scales.shape, -1)


def _iq2_xxs(quants: np.ndarray, supers: np.ndarray, book: np.ndarray) -> np.ndarray:
    q = quants.reshape(-1, 8, 8)
    words = _part(q[..., 4:], np.uint32, 0, 7, 14, 21)[..., 0, :]
    signs = _EVEN[words & np.uint32(127)]
    scales = halves(supers)[:, None] * ((words[..., 0] >> np.uint32(28)).astype(np.float32) + 0.5) / 4
    return _scaled(scales, _signed(book.reshape(-1, 8)[q[..., :4]], signs))


def _iq2_xs(quants: np.ndarray, scales: np.ndarray, supers: np.ndarray, book: np.ndarray) -> np.ndarray:
    q = quants.reshape(-1, 64).view(np.uint16)
    d = halves(supers)[:, None] * (in_order(scales.reshape(-1, 8)).astype(np.float32) + 0.5) / 4
    return _scaled(d, _signed(book.reshape(-1, 8)[q & np.uint16(511)], _EVEN[q >> np.uint16(9)]))


def _iq2_s(quants: np.ndarray, scales: np.ndarray, supers: np.ndarray, book: np.ndarray) -> np.ndarray:
    q, s = quants.reshape(-1, 64), scales.reshape(-1, 16)
    tops = (_part(s[:, :8], np.uint8, 0, 2, 4, 6) & np.uint8(3)).reshape(-1, 32)
    d = halves(supers)[:, None] * (in_order(s[:, 8:]).astype(np.float32) + 0.5) / 4
    entries = book.reshape(-1, 8)[q[:, :32] | tops.astype(np.uint16) << 8]
    return _scaled(d, _signed(entries, q[:, 32:]))


def _iq3_xxs(quants: np.ndarray, supers: np.ndarray, book: np.ndarray) -> np.ndarray:
    q = quants.reshape(-1, 96)
    words = _part(q[:, 64:], np.uint32, 0, 7, 14, 21)
    scales = halves(supers)[:, None] * ((words[..., 0] >> np.uint32(28)).astype(np.float32) + 0.5) / 2
    return _scaled(scales, _signed(book.reshape(-1, 4)[q[:, :64]], _EVEN[words & np.uint32(127)]))


def _iq3_s(quants: np.ndarray, supers: np.ndarray, book: np.ndarray) -> np.ndarray:
    q = quants.reshape(-1, 108)
    tops = np.unpackbits(q[:, 64:72], axis=1, bitorder="little").astype(np.uint16) << 8
    scales = halves(supers)[:, None] * (1 + 2 * in_order(q[:, 104:]).astype(np.float32))
    return _scaled(scales, _signed(book.reshape(-1, 4)[q[:, :64] | tops], np.ascontiguousarray(q[:, 72:104])))


def _iq1(entries: np.ndarray, scales: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Entries of -1, 0 and 1, moved by an eighth: up, or down where ``negative``."""
    delta = np.where(negative, np.float32(-1.125), np.float32(-0.875))
    return _scaled(scales, entries.astype(np.float32) + delta[..., None])


def _iq1_s(quants: np.ndarray, supers: np.ndarray, book: np.ndarray) -> np.ndarray:
    q = quants.reshape(-1, 48)
    tops = _part(q[:, 32:], np.uint16, 0, 3, 6, 9, 12)
    indices = q[:, :32].reshape(-1, 8, 4) | (tops[..., :4] & np.uint16(7)) << np.uint16(8)
    scales = halves(supers)[:, None] * (2 * (tops[..., 4] & np.uint16(7)) + 1).astype(np.float32)
    return _iq1(book.reshape(-1, 8)[indices], scales, tops[..., 4:] & np.uint16(8))


def _iq1_m(quants: np.ndarray, book: np.ndarray) -> np.ndarray:
    """The half that scales 256 columns lies in the highest bits of four others."""
    q = quants.reshape(-1, 56)
    tops = in_order(q[:, 32:48])
    parts = _part(q[:, 48:], np.uint16, 0, 3, 6, 9, 12)
    d = np.bitwise_or.reduce(parts[..., 4] << np.array([0, 4, 8, 12], np.uint16), axis=1)
    scales = halves(d)[:, None] * (2 * (parts[..., :4] & np.uint16(7)) + 1).astype(np.float32).reshape(-1, 16)
    indices = q[:, :32] | (tops & np.uint8(7)).astype(np.uint16) << 8
    return _iq1(book.reshape(-1, 8)[indices], scales, tops & np.uint8(8))


QUANTS = Plane("quants", 64, 8)


for _name, _planes, _starts, _values in (
    ("iq2_xxs", (QUANTS, SUPERS), (2, 0), _iq2_xxs),
    ("iq2_xs", (QUANTS, Plane("scales", 8, 8), SUPERS), (2, 66, 0), _iq2_xs),
    ("iq2_s", (QUANTS, Plane("scales", 16, 8), SUPERS), (2, 66, 0), _iq2_s),
    ("iq3_xxs", (Plane("quants", 96, 8), SUPERS), (2, 0), _iq3_xxs),
    ("iq3_s", (Plane("quants", 108, 8), SUPERS), (2, 0), _iq3_s),
    ("iq1_s", (Plane("quants", 48, 8), SUPERS), (2, 0), _iq1_s),
    ("iq1_m", (Plane("quants", 56, 8),), (0,), _iq1_m),
):
    _codebook = GRIDS["iq1_s" if _name == "iq1_m" else _name].tobytes()
    block_format(_name, _planes, _starts, _values, codebook=_codebook)
