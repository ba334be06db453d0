"""FP8 (E4M3, E5M2) with a scale for 128 columns of a row, as compressed-tensors and others have it.

A scale for a whole row, a whole weight, a group of columns or a tile of rows and columns is repeated.

Source: Micikevicius et al. 2022, "FP8 formats for deep learning"
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import float32, int32, uint8
from ...tensors.tensor import Tensor
from ..activations import DynamicQuantization, of_compressed_tensors, of_torchao
from ..float8 import LARGEST
from ..format import UNIT, Plane, QuantFormat
from ..stored import Settings, Shapes, Stored
from .int8_rows import plain_names
from .int8_rows import planes as row_planes
from .int8_rows import shape as row_shape

_GROUP = 4  # units that share a scale
_COLUMNS = _GROUP * UNIT
_SCALES = ("float32", "float16", "bfloat16", "float8_e8m0fnu")


def _e4m3() -> np.ndarray:
    """The value of each byte."""
    bits = np.arange(128)
    exponent, mantissa = bits >> 3, bits & 7
    size = np.where(exponent > 0, np.ldexp(1 + mantissa / 8, exponent - 7), np.ldexp(mantissa, -9))
    size[127] = np.nan
    return np.concatenate([size, -size]).astype(np.float32)


def _e5m2() -> np.ndarray:
    """The value of each byte: the high one of a binary16."""
    return (np.arange(256, dtype=np.uint16) << np.uint16(8)).view(np.float16).astype(np.float32)


E4M3 = _e4m3()


def _values(table: np.ndarray) -> Callable:
    def values(quants: np.ndarray, scales: np.ndarray) -> np.ndarray:
        each = np.repeat(scales.view(np.float32), _GROUP, axis=1)[:, : quants.shape[1]]
        return each * table[quants]

    return values


def _planes(tensors, settings: Settings) -> list:
    """Bytes in whole units, and a float32 scale for each 128 columns of a row."""
    weight, scale = row_planes(tensors, settings)
    groups = -(-tensors["weight"].shape[1] // _COLUMNS)
    return [weight, scale.unsqueeze(1).expand(-1, groups).contiguous()]


def _tile(settings: Settings) -> tuple[int, int] | None:
    """Rows and columns of a tile; None where there is one scale for the weight.

    Raises:
        FormatError: the columns are no multiple of 128.
    """
    group = settings.get("group_size")
    tile = settings.get("weight_block_size") or settings.get("block_structure") or (group and [1, group])
    if tile is None:
        return None
    if not isinstance(tile, list) or len(tile) != 2 or any(type(n) is not int or n < 1 for n in tile):
        raise FormatError(f"tiles of {str(tile)[:80]} are not read; those of two positive integers are.")
    if tile[1] % _COLUMNS:
        raise FormatError(f"tiles of {tile} are not read; their columns must be multiples of {_COLUMNS}.")
    return tile[0], tile[1]


def _tile_shape(scales: str) -> Callable:
    def shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
        weight, scale, tile = shapes["weight"], shapes[scales], _tile(settings)
        if tile is None:
            return row_shape({"weight": weight, "weight_scale": scale}, settings)
        if len(weight) != 2 or scale != (-(-weight[0] // tile[0]), -(-weight[1] // tile[1])):
            raise FormatError(
                f"{scales} of shape {scale} for a weight of shape {weight} is not one scale for each "
                f"{tile[0]} x {tile[1]}."
            )
        return weight[0], weight[1]

    return shape


def _tile_planes(scales: str) -> Callable:
    def planes(tensors, settings: Settings) -> list:
        weight, scale, tile = tensors["weight"], _as_floats(tensors[scales]), _tile(settings)
        if tile is None:
            return _planes({"weight": weight, "weight_scale": scale}, settings)
        quants, _ = row_planes({"weight": weight, "weight_scale": scale[:1, :1]}, settings)
        rows, groups = weight.shape[0], -(-weight.shape[1] // _COLUMNS)
        each = scale.repeat_interleave(min(tile[0], rows), 0)[:rows]
        return [quants, each.repeat_interleave(min(tile[1] // _COLUMNS, groups), 1)[:, :groups].contiguous()]

    return planes


def _as_floats(scales: Tensor) -> Tensor:
    """Scales as float32; bytes are powers of two (E8M0), of which 255 is NaN and 0 subnormal."""
    if scales.dtype is not uint8:
        return scales.float()
    bits = scales.to(int32) << 23
    bits = bits.masked_fill(scales == 0, 0x400000).masked_fill(scales == 255, 0x7FC00000)
    return bits.view(float32)


def _activations(settings: Settings) -> DynamicQuantization | None:
    """Of compressed-tensors what it says; of fbgemm each token by its largest magnitude, up to a bound."""
    if settings.get("quant_method") != "fbgemm_fp8":
        return of_compressed_tensors(settings)
    bound = settings.get("activation_scale_ub", 1200.0)
    if type(bound) not in (int, float) or not bound > 0:
        raise FormatError(f"activation_scale_ub {bound!r} is not read; a positive number is.")
    return DynamicQuantization("fp8_e4m3", LARGEST["fp8_e4m3"], most=float(bound))


def _tile_activations(settings: Settings) -> DynamicQuantization | None:
    """A scale for the columns of a tile, or for a token; None where the file has one."""
    if settings.get("activation_scheme", "dynamic") != "dynamic":
        return None
    tile = _tile(settings)
    is_power = settings.get("scale_fmt") == "ue8m0"
    columns = None if tile is None else tile[1]
    return DynamicQuantization("fp8_e4m3", LARGEST["fp8_e4m3"], columns=columns, powers_of_two=is_power)


def _ways(kind: str) -> tuple[Stored, ...]:
    """A scale is of tiles for which settings give a size, else of a row or of all."""
    return (
        Stored(
            methods=("compressed-tensors", "fbgemm_fp8"),
            when={"format": (None, "float-quantized", "naive-quantized"), "transform_config": (None, {})},
            tensors={"weight": (kind,), "weight_scale": _SCALES},
            shape=_tile_shape("weight_scale"),
            planes=_tile_planes("weight_scale"),
            ignored=("input_scale", "input_scale_ub"),  # of activations; those that are fixed are not read
            activations=_activations,
        ),
        Stored(
            methods=("fp8",),
            tensors={"weight": (kind,), "weight_scale_inv": _SCALES},
            shape=_tile_shape("weight_scale_inv"),
            planes=_tile_planes("weight_scale_inv"),
            ignored=("activation_scale",),
            activations=_tile_activations,
        ),
        Stored(
            methods=("modelopt",),
            when={"quant_algo": ("FP8",)},
            tensors={"weight": (kind,), "weight_scale": _SCALES},
            shape=row_shape,
            planes=_planes,
            ignored=("input_scale",),
        ),
        Stored(
            methods=("torchao",),
            tensors={"_weight_qdata": (kind,), "_weight_scale": _SCALES},
            shape=lambda shapes, settings: row_shape(plain_names(shapes), settings),
            planes=lambda tensors, settings: _planes(plain_names(tensors), settings),
            activations=of_torchao,
        ),
    )


for _name, _kind, _table in (("fp8_e4m3", "float8_e4m3fn", E4M3), ("fp8_e5m2", "float8_e5m2", _e5m2())):
    QuantFormat(
        name=_name,
        planes=(Plane("quants", 32), Plane("scales", 4, _GROUP)),
        values=_values(_table),
        stored=_ways(_kind),
    )
