"""FP8 (E4M3) with a scale for 128 columns of a row, as compressed-tensors, fbgemm and DeepSeek store it.

A scale for a whole row, a whole weight or a tile of 128 x 128 is repeated.

Source: Micikevicius et al. 2022, "FP8 formats for deep learning"
"""

from __future__ import annotations

import numpy as np

from ...errors import FormatError
from ..format import UNIT, Plane, QuantFormat
from ..stored import Settings, Shapes, Stored
from .int8_rows import planes as row_planes
from .int8_rows import shape as row_shape

_GROUP = 4  # units that share a scale
_TILE = _GROUP * UNIT


def _e4m3() -> np.ndarray:
    """The value of each byte."""
    bits = np.arange(128)
    exponent, mantissa = bits >> 3, bits & 7
    size = np.where(exponent > 0, np.ldexp(1 + mantissa / 8, exponent - 7), np.ldexp(mantissa, -9))
    size[127] = np.nan
    return np.concatenate([size, -size]).astype(np.float32)


_VALUES = _e4m3()


def _values(quants: np.ndarray, scales: np.ndarray) -> np.ndarray:
    each = np.repeat(scales.view(np.float32), _GROUP, axis=1)[:, : quants.shape[1]]
    return each * _VALUES[quants]


def _planes(tensors, settings: Settings) -> list:
    """Bytes in whole units, and a float32 scale for each 128 columns of a row."""
    weight, scale = row_planes(tensors, settings)
    groups = -(-tensors["weight"].shape[1] // _TILE)
    return [weight, scale.unsqueeze(1).expand(-1, groups).contiguous()]


def _tile_shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    weight, scale = shapes["weight"], shapes["weight_scale_inv"]
    tile = settings.get("weight_block_size")
    if tile != [_TILE, _TILE]:
        raise FormatError(f"weight_block_size is {str(tile)[:80]}; [{_TILE}, {_TILE}] is read.")
    if len(weight) != 2 or scale != (-(-weight[0] // _TILE), -(-weight[1] // _TILE)):
        raise FormatError(
            f"weight_scale_inv of shape {scale} for a weight of shape {weight} is not one scale for each "
            f"{_TILE} x {_TILE}."
        )
    return weight[0], weight[1]


def _tile_planes(tensors, settings: Settings) -> list:
    weight, scale = tensors["weight"], tensors["weight_scale_inv"].float()
    quants, _ = row_planes({"weight": weight, "weight_scale": scale[:1, :1]}, settings)
    return [quants, scale.repeat_interleave(_TILE, 0)[: weight.shape[0]].contiguous()]


FP8 = QuantFormat(
    name="fp8_e4m3",
    planes=(Plane("quants", 32), Plane("scales", 4, _GROUP)),
    values=_values,
    stored=(
        Stored(
            methods=("compressed-tensors", "fbgemm_fp8"),
            tensors={"weight": ("float8_e4m3fn",), "weight_scale": ("float32", "float16", "bfloat16")},
            shape=row_shape,
            planes=_planes,
            ignored=("input_scale", "input_scale_ub"),  # of activations, which stay floats here
        ),
        Stored(
            methods=("fp8",),
            tensors={"weight": ("float8_e4m3fn",), "weight_scale_inv": ("float32", "bfloat16")},
            shape=_tile_shape,
            planes=_tile_planes,
        ),
    ),
)
