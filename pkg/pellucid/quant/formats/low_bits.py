"""GGUF's Q2_K and Q3_K; IQ4_NL, IQ4_XS, MXFP4 and NVFP4, whose 4 bits point into 16 numbers; TQ1_0 and TQ2_0,
which are ternary.

Source: gguf.quants of the PyPI package ``gguf``; Open Compute Project 2023, "OCP Microscaling Formats (MX)"
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.tensor import Tensor
from ..format import UNIT, Plane
from ..stored import Settings, Shapes, Stored
from .blocks import HALF, QUANTS, block_format, halves, nibbles, signed

_PAIRS = np.array([0, 2, 4, 6], np.uint8)[:, None]
_BITS = np.arange(8, dtype=np.uint8)[:, None]
_POWERS = np.array([1, 3, 9, 27, 81], np.uint8)[:, None]
LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
# E2M1, twice its value.
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)
# Unsigned E4M3 by bits, half its value, whose highest bit says nothing; the one that would be NaN is zero.
_E4M3 = np.ldexp(np.where(_E := np.arange(256) >> 3 & 15, 8, 0) + np.arange(256) % 8, np.maximum(_E, 1) - 11)
_E4M3 = np.where(np.arange(256) == 0x7F, 0, _E4M3).astype(np.float32)

SUPERS = Plane("supers", 2, 8)


def pairs(quants: np.ndarray) -> np.ndarray:
    """Quants of 2 bits, uint8 (n, 256), from bytes (n, 64): pair j of 32 bytes is 32 columns in a row."""
    return (quants.reshape(-1, 2, 1, 32) >> _PAIRS & np.uint8(3)).reshape(-1, 256)


def in_order(field: np.ndarray) -> np.ndarray:
    """The nibbles of bytes (n, k) in order, the low one first: uint8 (n, 2 * k)."""
    return np.stack([field & 15, field >> np.uint8(4)], axis=2).reshape(len(field), -1)


def _q2_k(quants: np.ndarray, scales: np.ndarray, supers: np.ndarray) -> np.ndarray:
    d, dmin = halves(supers).reshape(-1, 2, 1).transpose(1, 0, 2)
    scales = scales.reshape(-1, 16)
    scale, low = (d * (scales & 15).astype(np.float32), dmin * (scales >> np.uint8(4)).astype(np.float32))
    return scale[..., None] * pairs(quants).reshape(-1, 16, 16).astype(np.float32) - low[..., None]


def _q3_k(quants: np.ndarray, tops: np.ndarray, scales: np.ndarray, supers: np.ndarray) -> np.ndarray:
    top = (tops.reshape(-1, 1, 32) >> _BITS & np.uint8(1)).reshape(-1, 256)
    s = scales.reshape(-1, 12)
    low = np.concatenate([s[:, :8] & 15, s[:, :8] >> np.uint8(4)], axis=1)
    high = (s[:, None, 8:] >> _PAIRS & np.uint8(3)).reshape(-1, 16)
    scale = halves(supers)[:, None] * signed(low | high << np.uint8(4), 32)
    return scale[..., None] * signed(pairs(quants) | top << np.uint8(2), 4).reshape(-1, 16, 16)


def _iq4_xs(quants: np.ndarray, headers: np.ndarray) -> np.ndarray:
    h = headers.reshape(-1, 8)
    high = (h[:, 2:4].reshape(-1, 2, 1) >> _PAIRS[:, 0] & np.uint8(3)).reshape(-1, 8)
    scale = signed(in_order(h[:, 4:]) | high << np.uint8(4), 32)
    d = halves(np.ascontiguousarray(h[:, :2]))[:, None] * scale
    return d.reshape(-1, 1) * LEVELS[nibbles(quants)]


def _mxfp4(quants: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        d = np.ldexp(np.float32(1), exponents.reshape(-1, 1).astype(np.int32) - 128)
        return d * E2M1[nibbles(quants)]


def _pairs_shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    packed, scales = shapes["weight_packed"], shapes["weight_scale"]
    if len(packed) != 2 or packed[1] * 2 % UNIT or scales != (packed[0], packed[1] * 2 // UNIT):
        raise FormatError(
            f"weight_packed and weight_scale of shapes {packed} and {scales} are not a scale for each {UNIT} "
            "columns."
        )
    return packed[0], packed[1] * 2


def _stack_shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    blocks, scales = shapes["blocks"], shapes["scales"]
    if len(blocks) != 4 or blocks[3] != UNIT // 2 or scales != blocks[:3]:
        raise FormatError(
            f"blocks and scales of shapes {blocks} and {scales} are not (experts, rows, groups, "
            f"{UNIT // 2}) and (experts, rows, groups)."
        )
    return blocks[0] * blocks[1], blocks[2] * UNIT


def _split_halves(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    """Planes of bytes that have columns 2i and 2i + 1: those of a GGUF have columns i and 16 + i."""
    packed = tensors["weight_packed"].unsqueeze(-1)
    each = (packed >> packed.new_tensor([0, 4]) & 15).flatten(1).unflatten(1, (-1, 2, UNIT // 2))
    return [(each[:, :, 0] | each[:, :, 1] << 4).flatten(1), tensors["weight_scale"]]


def _stack_planes(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    packed, scales = tensors["blocks"].flatten(0, 1).flatten(1), tensors["scales"].flatten(0, 1)
    return _split_halves({"weight_packed": packed, "weight_scale": scales}, settings)


def _nvfp4(quants: np.ndarray, scales: np.ndarray) -> np.ndarray:
    q = quants.reshape(-1, 8)
    return _E4M3[scales.reshape(-1, 1)] * E2M1[np.concatenate([q & 15, q >> np.uint8(4)], axis=1)]


def _tq1_0(quants: np.ndarray, tails: np.ndarray, supers: np.ndarray) -> np.ndarray:
    """Five digits of base 3 in a byte, as a fraction: three times it, the digit comes out at the top."""
    q, tail = quants.reshape(-1, 1, 48), tails.reshape(-1, 1, 4)
    parts = (q[..., :32] * _POWERS, q[..., 32:] * _POWERS, tail * _POWERS[:4])
    fractions = np.concatenate([part.reshape(len(q), -1) for part in parts], axis=1)
    digits = (fractions.astype(np.uint16) * 3 >> 8).astype(np.uint8)
    return halves(supers)[:, None] * signed(digits, 1)


block_format(
    "q2_k", (Plane("quants", 64, 8), Plane("scales", 16, 8), Plane("supers", 4, 8)), (16, 0, 80), _q2_k
)
block_format(
    "q3_k",
    (Plane("quants", 64, 8), Plane("tops", 32, 8), Plane("scales", 12, 8), SUPERS),
    (32, 0, 96, 108),
    _q3_k,
)
block_format("iq4_nl", (QUANTS, HALF), (2, 0), lambda q, d: halves(d)[:, None] * LEVELS[nibbles(q)])
block_format("iq4_xs", (QUANTS, Plane("headers", 8, 8)), (8, 0), _iq4_xs)
block_format(
    "mxfp4",
    (QUANTS, Plane("exponents", 1)),
    (1, 0),
    _mxfp4,
    stored=(
        Stored(
            methods=("compressed-tensors",),
            when={"format": ("mxfp4-pack-quantized",), "transform_config": (None, {})},
            tensors={"weight_packed": ("uint8",), "weight_scale": ("uint8", "float8_e8m0fnu")},
            shape=_pairs_shape,
            planes=_split_halves,
        ),
        Stored(
            methods=("mxfp4",),
            tensors={"blocks": ("uint8",), "scales": ("uint8",)},
            shape=_stack_shape,
            planes=_stack_planes,
            separator="_",
        ),
    ),
)
block_format("nvfp4", (QUANTS, HALF), (4, 0), _nvfp4)
block_format("tq1_0", (Plane("quants", 48, 8), Plane("tails", 4, 8), SUPERS), (0, 48, 52), _tq1_0)
block_format(
    "tq2_0",
    (Plane("quants", 64, 8), SUPERS),
    (0, 64),
    lambda q, d: halves(d)[:, None] * signed(pairs(q), 1),
)
