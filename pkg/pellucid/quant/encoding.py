"""From floats to the blocks of GGUF files: rounding to the nearest number that a format can hold.

Q4_0 to Q8_0, BF16, MXFP4 and the ternary formats are encoded as the package ``gguf`` does, bit for bit.
Superblocks try a few scales for each part of a row, and keep the one with the least squared error.

Source: gguf.quants of the PyPI package ``gguf``
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import ArgumentError, DTypeError, ShapeError
from .format import BLOCK_FORMATS
from .formats.blocks import pack_nibbles
from .formats.low_bits import E2M1, LEVELS

_LARGEST = 65_504
_PIECE = 1 << 20  # numbers that are encoded at once
_SHRINK = np.linspace(1, 0.8, 9, dtype=np.float32)


def _inverse(d: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(d == 0, 0, 1 / d)


def _nearest(x: np.ndarray) -> np.ndarray:
    """Rounded, halves away from zero."""
    size = np.abs(x)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5), x)


def _half(d: np.ndarray) -> np.ndarray:
    """Bytes of binary16."""
    return d.astype(np.float16).view(np.uint8)


def _largest(x: np.ndarray) -> np.ndarray:
    """The number of each row that is farthest from zero, with its sign."""
    return np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1)


def _fifths(q: np.ndarray) -> np.ndarray:
    return np.packbits(q >> np.uint8(4), axis=1, bitorder="little")


def _signed(x: np.ndarray, zero: int) -> tuple[np.ndarray, np.ndarray]:
    """Scale, and quants from 0 to 2 * zero - 1 that stand for numbers less by zero."""
    d = _largest(x) / np.float32(-zero)
    q = np.trunc(x * _inverse(d) + np.float32(zero + 0.5)).astype(np.uint8).clip(0, 2 * zero - 1)
    return d, q


def _affine(x: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale, least number, and quants from 0 to most."""
    low = x.min(-1, keepdims=True)
    d = (x.max(-1, keepdims=True) - low) / np.float32(most)
    q = np.trunc((x - low) * _inverse(d) + np.float32(0.5)).astype(np.uint8).clip(0, most)
    return d, low, q


def _bf16(x: np.ndarray) -> np.ndarray:
    """To the nearest, halves to even; NaN stays NaN."""
    bits = x.view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    return np.where(np.isnan(x), bits >> 16 | 64, rounded).astype(np.uint16).view(np.uint8)


def _q4_0(x: np.ndarray) -> list[np.ndarray]:
    d, q = _signed(x, 8)
    return [_half(d), pack_nibbles(q)]


def _q4_1(x: np.ndarray) -> list[np.ndarray]:
    d, low, q = _affine(x, 15)
    return [_half(d), _half(low), pack_nibbles(q)]


def _q5_0(x: np.ndarray) -> list[np.ndarray]:
    d, q = _signed(x, 16)
    return [_half(d), _fifths(q), pack_nibbles(q & 15)]


def _q5_1(x: np.ndarray) -> list[np.ndarray]:
    d, low, q = _affine(x, 31)
    return [_half(d), _half(low), _fifths(q), pack_nibbles(q & 15)]


def _q8_0(x: np.ndarray) -> list[np.ndarray]:
    d = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    return [_half(d), _nearest(x * _inverse(d)).astype(np.int8).view(np.uint8)]


def _levels(x: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The number of the nearest level, the first one of equals."""
    return np.abs(levels - x[..., None]).argmin(-1).astype(np.uint8)


def _iq4_nl(x: np.ndarray) -> list[np.ndarray]:
    d = (_largest(x) / LEVELS[0]).astype(np.float16).astype(np.float32)
    return [_half(d), pack_nibbles(_levels(x * _inverse(d), LEVELS))]


def _mxfp4(x: np.ndarray) -> list[np.ndarray]:
    d = np.abs(x).max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        e = np.where(d > 0, np.floor(np.log2(d)) + 125, 0).astype(np.uint8)
    scale = np.ldexp(np.float32(1), e.astype(np.int32) - 128)
    q = np.abs(scale[..., None] * E2M1 - x[..., None]).argmin(-1).astype(np.uint8)
    return [e, pack_nibbles(q)]


def _ternary(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d = np.abs(x).max(-1, keepdims=True)
    return d, (_nearest(x * _inverse(d)) + 1).astype(np.uint8)


def _tq1_0(x: np.ndarray) -> list[np.ndarray]:
    d, q = _ternary(x)
    powers = np.array([81, 27, 9, 3, 1], np.uint16)[:, None]
    parts = (q[:, :160].reshape(-1, 5, 32), q[:, 160:240].reshape(-1, 5, 16), q[:, 240:].reshape(-1, 4, 4))
    numbers = np.concatenate([(p * powers[: p.shape[1]]).sum(1) for p in parts], axis=1)
    return [((numbers * 256 + 242) // 243).astype(np.uint8), _half(d)]


def _pairs(q: np.ndarray) -> np.ndarray:
    """Bytes (n, 64) of quants of 2 bits, (n, 256): pair j of 32 bytes is 32 columns in a row."""
    shifted = q.reshape(-1, 2, 4, 32) << np.array([0, 2, 4, 6], np.uint8)[:, None]
    return np.bitwise_or.reduce(shifted, axis=2).reshape(-1, 64)


def _tq2_0(x: np.ndarray) -> list[np.ndarray]:
    d, q = _ternary(x)
    return [_pairs(q), _half(d)]


def _best(x: np.ndarray, scale: np.ndarray, low: np.ndarray, least: int, most: int) -> np.ndarray:
    """Of a few scales the one whose multiples, from a low, are nearest: (n, parts, 1)."""
    found, error = scale, np.full_like(scale, np.inf)
    for factor in _SHRINK:
        d = scale * factor
        q = _nearest((x - low) * _inverse(d)).clip(least, most)
        e = np.square(d * q + low - x).sum(-1, keepdims=True)
        found, error = np.where(e < error, d, found), np.minimum(e, error)
    return found


def _multiples(numbers: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of at least 0, (n, parts, 1), as whole multiples of a half: its bytes, multiples, products."""
    d = (numbers.max(1) / np.float32(most)).astype(np.float16)
    m = _nearest(numbers[..., 0] * _inverse(d.astype(np.float32))).clip(0, most)
    return d.view(np.uint8), m.astype(np.uint8), (d * m.astype(np.float32))[..., None]


def _superblock(x: np.ndarray, parts: int, most: int, scale_most: int) -> tuple[np.ndarray, ...]:
    """Halves d and dmin, multiples of d and of dmin for each part, quants from 0 to most."""
    x = x.reshape(-1, parts, 256 // parts)
    low = np.minimum(x.min(-1, keepdims=True), 0)
    scale = _best(x, (x.max(-1, keepdims=True) - low) / np.float32(most), low, 0, most)
    d, scales, scale = _multiples(scale, scale_most)
    dmin, lows, low = _multiples(-low, scale_most)
    q = _nearest((x + low) * _inverse(scale)).clip(0, most).astype(np.uint8)
    return np.concatenate([d, dmin], axis=1), scales, lows, q.reshape(-1, 256)


def _signed_parts(x: np.ndarray, zero: int, scale_zero: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A half d, signed multiples of it for 16 columns, quants that stand for numbers less by zero."""
    x = x.reshape(-1, 16, 16)
    scale = _best(x, _largest(x) / np.float32(-zero), np.zeros_like(x[..., :1]), -zero, zero - 1)
    d = (_largest(scale[..., 0]) / np.float32(-scale_zero)).astype(np.float16)
    multiples = _nearest(scale[..., 0] * _inverse(d.astype(np.float32))).clip(-scale_zero, scale_zero - 1)
    scale = (d * multiples.astype(np.float32))[..., None]
    q = (_nearest(x * _inverse(scale)).clip(-zero, zero - 1) + zero).astype(np.uint8)
    return d.view(np.uint8), multiples.astype(np.int8), q.reshape(-1, 256)


def _six_bits(scales: np.ndarray, lows: np.ndarray) -> np.ndarray:
    """Twelve bytes of 8 scales and 8 lows of 6 bits."""
    first = scales[:, :4] | (scales[:, 4:] & 48) << np.uint8(2)
    second = lows[:, :4] | (lows[:, 4:] & 48) << np.uint8(2)
    return np.concatenate([first, second, scales[:, 4:] & 15 | (lows[:, 4:] & 15) << np.uint8(4)], axis=1)


def _unit_nibbles(q: np.ndarray) -> np.ndarray:
    """Bytes (n, 128): each 32 hold a unit in the low nibbles and the next unit in the high ones."""
    q = q.reshape(-1, 4, 2, 32) & 15
    return (q[:, :, 0] | q[:, :, 1] << np.uint8(4)).reshape(-1, 128)


def _bits_of_units(bits: np.ndarray) -> np.ndarray:
    """Bytes (n, 32), bit u of byte i that of column i of unit u."""
    return np.packbits(bits.reshape(-1, 8, 32), axis=1, bitorder="little").reshape(-1, 32)


def _q2_k(x: np.ndarray) -> list[np.ndarray]:
    supers, scales, lows, q = _superblock(x, 16, 3, 15)
    return [scales | lows << np.uint8(4), _pairs(q), supers]


def _q3_k(x: np.ndarray) -> list[np.ndarray]:
    d, multiples, q = _signed_parts(x, 4, 32)
    s = (multiples + 32).astype(np.uint8)
    high = (s >> np.uint8(4)).reshape(-1, 4, 4) << np.array([0, 2, 4, 6], np.uint8)[:, None]
    scales = [s[:, :8] & 15 | (s[:, 8:] & 15) << np.uint8(4), np.bitwise_or.reduce(high, axis=1)]
    return [_bits_of_units(q >> np.uint8(2)), _pairs(q & 3), *scales, d]


def _q4_k(x: np.ndarray) -> list[np.ndarray]:
    supers, scales, lows, q = _superblock(x, 8, 15, 63)
    return [supers, _six_bits(scales, lows), _unit_nibbles(q)]


def _q5_k(x: np.ndarray) -> list[np.ndarray]:
    supers, scales, lows, q = _superblock(x, 8, 31, 63)
    return [supers, _six_bits(scales, lows), _bits_of_units(q >> np.uint8(4)), _unit_nibbles(q)]


def _q6_k(x: np.ndarray) -> list[np.ndarray]:
    d, multiples, q = _signed_parts(x, 32, 128)
    halves = q.reshape(-1, 2, 2, 64) & 15
    low = (halves[:, :, 0] | halves[:, :, 1] << np.uint8(4)).reshape(-1, 128)
    return [low, _pairs(q >> np.uint8(4)), multiples.view(np.uint8), d]


ENCODERS: dict[str, Callable[[np.ndarray], list[np.ndarray]]] = {
    "f16": lambda x: [x.astype(np.float16).view(np.uint8)],
    "bf16": lambda x: [_bf16(x)],
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q5_0": _q5_0,
    "q5_1": _q5_1,
    "q8_0": _q8_0,
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
    "iq4_nl": _iq4_nl,
    "mxfp4": _mxfp4,
    "tq1_0": _tq1_0,
    "tq2_0": _tq2_0,
}
"""Floats, float32 (blocks, columns of a block), to the fields of blocks, by format."""


def encode_blocks(values: np.ndarray, format: str) -> np.ndarray:
    """The blocks of a matrix, each number as near as the format's scales allow.

    Args:
        values: (rows, columns), float32.
        format: a name of `ENCODERS`.

    Returns:
        uint8 (rows, bytes of a row), as a GGUF file has them.

    Raises:
        DTypeError: there is no encoder of that name.
        ShapeError: it is no matrix, or its columns are not whole blocks.
        ArgumentError: a number is not finite, or larger than a scale of binary16 can say.

    Example:
        >>> encode_blocks(np.ones((2, 32), np.float32), "q8_0").shape
        (2, 34)
    """
    encoder, fmt = ENCODERS.get(format), BLOCK_FORMATS.get(format)
    if encoder is None or fmt is None:
        raise DTypeError(f"floats are not encoded to {format!r}. There are {', '.join(ENCODERS)}.")
    if values.ndim != 2:
        raise ShapeError(f"{format}: values of shape {values.shape} are no matrix. Reshape them to rows.")
    fmt.units(values.shape[1])
    blocks = np.ascontiguousarray(values, np.float32).reshape(-1, fmt.block)
    if format != "bf16" and blocks.size and not np.abs(blocks).max() <= _LARGEST:
        raise ArgumentError(
            f"{format}: a value is not finite or beyond {_LARGEST:,}. Keep the matrix in float32."
        )
    out = np.empty((len(blocks), fmt.block_bytes), np.uint8)
    step = _PIECE // fmt.block
    for at in range(0, len(blocks), step):
        with np.errstate(over="ignore", invalid="ignore"):
            fields = encoder(blocks[at : at + step])
        np.concatenate(fields, axis=1, out=out[at : at + step])
    return out.reshape(len(values), -1)
