"""FP4 (E2M1) with an FP8 scale for 16 columns and a float32 factor for the weight: NVFP4 of safetensors.

compressed-tensors divides by the factor, ModelOpt multiplies; here the first is its reciprocal, rounded once.

Source: https://github.com/vllm-project/compressed-tensors, format nvfp4-pack-quantized; NVIDIA ModelOpt
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.tensor import Tensor
from ..format import ROW, UNIT, Plane, QuantFormat
from ..stored import Settings, Shapes, Stored
from .fp8 import E4M3
from .low_bits import E2M1, in_order

_GROUP = 16
_COMPRESSED = {"format": ("nvfp4-pack-quantized",), "transform_config": (None, {})}
_PACKED, _SCALE = ("uint8",), ("float8_e4m3fn",)


def _shape(weight: str, factor: str) -> Callable:
    def shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
        packed, scale = shapes[weight], shapes["weight_scale"]
        if len(packed) == 2 and shapes[factor] in ((), (1,)):
            rows, columns = packed[0], 2 * packed[1]
            if columns % UNIT == 0 and scale == (rows, columns // _GROUP):
                return rows, columns
        raise FormatError(
            f"{weight}, weight_scale and {factor} of shapes {packed}, {scale} and {shapes[factor]} do not "
            f"belong together, or columns are not in units of {UNIT}."
        )

    return shape


def _planes(weight: str, factor: str) -> Callable:
    def planes(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
        whole = tensors[factor].reshape(1)
        return [tensors[weight], tensors["weight_scale"], whole if weight == "weight" else 1 / whole]

    return planes


def _values(quants: np.ndarray, scales: np.ndarray, factor: np.ndarray) -> np.ndarray:
    scale = E4M3[scales.reshape(-1, 1)] * factor.view(np.float32).reshape(())
    return scale * (E2M1[in_order(quants.reshape(-1, _GROUP // 2))] / 2)


FP4 = QuantFormat(
    name="fp4_groups",
    planes=(Plane("quants", 16), Plane("scales", 2), Plane("factor", 4, ROW, shared=True)),
    values=_values,
    stored=tuple(
        Stored(
            methods=methods,
            when=when,
            tensors={weight: _PACKED, "weight_scale": _SCALE, factor: ("float32",)},
            shape=_shape(weight, factor),
            planes=_planes(weight, factor),
            ignored=("input_scale", "input_global_scale"),  # of activations, which stay floats here
        )
        for methods, when, weight, factor in (
            (("compressed-tensors",), _COMPRESSED, "weight_packed", "weight_global_scale"),
            (("modelopt",), {"quant_algo": ("NVFP4",)}, "weight", "weight_scale_2"),
        )
    ),
)
