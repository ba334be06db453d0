"""The blocks of GGUF files as planes: F16, BF16, Q4_0 to Q8_0, Q4_K to Q6_K. Others are beside this.

Blocks of 18, 22, 34 or 210 bytes start anywhere; a kernel wants 16-byte words in a row. So the kernel
``wgsl/quant/repack.wgsl`` makes planes of them, as `split` does here.

Source: the block layouts of the PyPI package ``gguf`` (gguf.quants)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..format import ROW, UNIT, BlockFormat, Plane
from ..stored import Stored

# Types of tensors in a GGUF: number -> (our name, elements per block, bytes per block)
GGUF_TYPES = {
    0: ("float32", 1, 4),
    1: ("float16", 1, 2),
    2: ("q4_0", 32, 18),
    3: ("q4_1", 32, 20),
    6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24),
    8: ("q8_0", 32, 34),
    9: ("q8_1", 32, 36),
    10: ("q2_k", 256, 84),
    11: ("q3_k", 256, 110),
    12: ("q4_k", 256, 144),
    13: ("q5_k", 256, 176),
    14: ("q6_k", 256, 210),
    15: ("q8_k", 256, 292),
    16: ("iq2_xxs", 256, 66),
    17: ("iq2_xs", 256, 74),
    18: ("iq3_xxs", 256, 98),
    19: ("iq1_s", 256, 50),
    20: ("iq4_nl", 32, 18),
    21: ("iq3_s", 256, 110),
    22: ("iq2_s", 256, 82),
    23: ("iq4_xs", 256, 136),
    24: ("int8", 1, 1),
    25: ("int16", 1, 2),
    26: ("int32", 1, 4),
    27: ("int64", 1, 8),
    28: ("float64", 1, 8),
    29: ("iq1_m", 256, 56),
    30: ("bfloat16", 1, 2),
    34: ("tq1_0", 256, 54),
    35: ("tq2_0", 256, 66),
    39: ("mxfp4", 32, 17),
    40: ("nvfp4", 64, 36),
    41: ("q1_0", 128, 18),
}
_NUMBERS = {"f16": 1, "bf16": 30} | {name: number for number, (name, _, _) in GGUF_TYPES.items()}
_LOW = np.uint8(0x0F)


def block_format(
    name: str,
    planes: tuple[Plane, ...],
    split: Callable[[np.ndarray], list[np.ndarray]] | tuple[int, ...],
    values: Callable[..., np.ndarray],
    repack: str | None = None,
    codebook: bytes = b"",
    stored: tuple[Stored, ...] = (),
) -> BlockFormat:
    """A format with the numbers of `GGUF_TYPES`.

    Args:
        name: of the format.
        planes: what a buffer holds.
        split: blocks to planes, or where in a block each plane begins, if it is a range of its bytes.
        values: planes to values.
        repack: the WGSL file that splits; ``repack_<name>`` if not given, and for ranges the one of these.
        codebook: what planes point into; ``values`` takes it last.
        stored: how folders of other programs have such weights.
    """
    number = _NUMBERS[name]
    _, block, block_bytes = GGUF_TYPES[number]
    starts = split if isinstance(split, tuple) else ()
    ranges = [slice(at, at + p.row_bytes(block // UNIT)) for at, p in zip(starts, planes, strict=False)]
    shared = [Plane("codebook", len(codebook), ROW, shared=True)] if codebook else []
    books = [np.frombuffer(codebook, np.uint8) for _ in shared]
    return BlockFormat(
        name=name,
        planes=(*planes, *shared),
        values=values,
        gguf_type=number,
        block=block,
        block_bytes=block_bytes,
        split=(lambda b: [*(b[:, part] for part in ranges), *books]) if isinstance(split, tuple) else split,
        repack=repack or ("repack_ranges" if starts else f"repack_{name}"),
        starts=starts,
        codebook=codebook,
        stored=stored,
    )


# Planes of blocks


def pack_nibbles(q: np.ndarray) -> np.ndarray:
    """Quants (n, 32) of 4 bits as bytes (n, 16): column i low in byte i, column 16 + i high."""
    return q[:, :16] | q[:, 16:] << np.uint8(4)


def _transpose_fifths(b: np.ndarray) -> np.ndarray:
    """32 bits (n, 4 bytes), bit i of column i, as 32 bits in which column 4j + i is bit j of byte i."""
    bits = np.unpackbits(b, axis=1, bitorder="little").reshape(-1, 8, 4)
    return np.packbits(bits.transpose(0, 2, 1), axis=2, bitorder="little")


def _superblock_nibbles(b: np.ndarray) -> np.ndarray:
    """Bytes (n, 128): each 32 hold a unit in the low nibbles and the next unit in the high ones."""
    b = b.reshape(-1, 4, 1, 32)
    return pack_nibbles(np.concatenate([b & _LOW, b >> np.uint8(4)], axis=2).reshape(-1, 32))


def _superblock_fifths(b: np.ndarray) -> np.ndarray:
    """Bytes (n, 32), bit u of byte i the fifth bit of column i of unit u, for `_transpose_fifths`."""
    bits = np.unpackbits(b, axis=1, bitorder="little").reshape(-1, 32, 8)
    return _transpose_fifths(np.packbits(bits.transpose(0, 2, 1), axis=2, bitorder="little").reshape(-1, 4))


def _q6_k(b: np.ndarray) -> list[np.ndarray]:
    low = b[:, :128].reshape(-1, 2, 1, 2, 32)
    quants = pack_nibbles(np.concatenate([low & _LOW, low >> np.uint8(4)], axis=2).reshape(-1, 32))
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    tops = (b[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & np.uint8(3)
    # Column 16w + 4j + i of a unit is pair j of byte i of word w.
    tops = tops.reshape(-1, 2, 4, 4) << shifts.reshape(1, 1, 4, 1)
    return [quants, np.bitwise_or.reduce(tops, axis=2), b[:, 192:208], b[:, 208:210]]


# Values of planes


def nibbles(quants: np.ndarray) -> np.ndarray:
    """Inverse of `pack_nibbles`: uint8 (n, 32)."""
    b = quants.reshape(-1, 16)
    return np.concatenate([b & _LOW, b >> np.uint8(4)], axis=1)


def _with_fifths(quants: np.ndarray, fifths: np.ndarray) -> np.ndarray:
    bits = np.unpackbits(fifths.reshape(-1, 4, 1), axis=2, bitorder="little").transpose(0, 2, 1)
    return nibbles(quants) | bits.reshape(-1, 32) << np.uint8(4)


def halves(field: np.ndarray) -> np.ndarray:
    return field.reshape(-1).view(np.float16).astype(np.float32)


def signed(q: np.ndarray, zero: int) -> np.ndarray:
    return (q.view(np.int8) - np.int8(zero)).astype(np.float32)


def _affine(q: np.ndarray, scales: np.ndarray) -> np.ndarray:
    d, m = halves(scales).reshape(-1, 2).T
    return d[:, None] * q.astype(np.float32) + m[:, None]


def _superblock(q: np.ndarray, headers: np.ndarray) -> np.ndarray:
    h = headers.reshape(-1, 16)
    d, dmin = halves(np.ascontiguousarray(h[:, :4])).reshape(-1, 2).T
    a, b, c = (h[:, k : k + 4] for k in (4, 8, 12))
    top = np.uint8(0x30)
    scale = np.concatenate([a & 63, (c & _LOW) | (a >> np.uint8(2)) & top], axis=1).astype(np.float32)
    low = np.concatenate([b & 63, (c >> np.uint8(4)) | (b >> np.uint8(2)) & top], axis=1).astype(np.float32)
    return (d[:, None] * scale).reshape(-1, 1) * q.astype(np.float32) - (dmin[:, None] * low).reshape(-1, 1)


def _q6_k_values(quants: np.ndarray, tops: np.ndarray, scales: np.ndarray, supers: np.ndarray) -> np.ndarray:
    pairs = tops.reshape(-1, 2, 1, 4) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    q = nibbles(quants) | (pairs.reshape(-1, 32) & np.uint8(3)) << np.uint8(4)
    d = np.repeat(halves(supers), 16) * scales.reshape(-1).view(np.int8).astype(np.float32)
    return d[:, None] * signed(q, 32).reshape(-1, 16)


QUANTS, HALF, TWO_HALVES = Plane("quants", 16), Plane("scales", 2), Plane("scales", 4)
HEADERS, FIFTHS = Plane("headers", 16, 8), Plane("fifths", 4)

block_format("f16", (Plane("values", 64),), lambda b: [b], halves, "repack_half")
block_format(
    "bf16",
    (Plane("values", 64),),
    lambda b: [b],
    lambda values: (values.reshape(-1).view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32),
    "repack_half",
)
block_format(
    "q4_0",
    (QUANTS, HALF),
    (2, 0),
    lambda q, d: halves(d)[:, None] * signed(nibbles(q), 8),
)
block_format(
    "q4_1",
    (QUANTS, TWO_HALVES),
    (4, 0),
    lambda q, d: _affine(nibbles(q), d),
)
block_format(
    "q5_0",
    (QUANTS, HALF, FIFTHS),
    lambda b: [b[:, 6:], b[:, :2], _transpose_fifths(b[:, 2:6])],
    lambda q, d, f: halves(d)[:, None] * signed(_with_fifths(q, f), 16),
)
block_format(
    "q5_1",
    (QUANTS, TWO_HALVES, FIFTHS),
    lambda b: [b[:, 8:], b[:, :4], _transpose_fifths(b[:, 4:8])],
    lambda q, d, f: _affine(_with_fifths(q, f), d),
)
block_format(
    "q8_0",
    (Plane("quants", 32), HALF),
    (2, 0),
    lambda q, d: halves(d)[:, None] * signed(q, 0).reshape(-1, 32),
)
block_format(
    "q4_k",
    (QUANTS, HEADERS),
    lambda b: [_superblock_nibbles(b[:, 16:]), b[:, :16]],
    lambda q, h: _superblock(nibbles(q), h),
)
block_format(
    "q5_k",
    (QUANTS, HEADERS, FIFTHS),
    lambda b: [_superblock_nibbles(b[:, 48:]), b[:, :16], _superblock_fifths(b[:, 16:48])],
    lambda q, h, f: _superblock(_with_fifths(q, f), h),
)
block_format(
    "q6_k",
    (QUANTS, Plane("tops", 8), HALF, Plane("supers", 2, 8)),
    _q6_k,
    _q6_k_values,
)
