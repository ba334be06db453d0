"""INT8 with a scale per row (per output channel), as compressed-tensors stores it.

Source: https://github.com/vllm-project/compressed-tensors, format int-quantized
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from ...errors import FormatError
from ..activations import DynamicQuantization, of_compressed_tensors, of_torchao
from ..format import ROW, UNIT, Plane, QuantFormat
from ..stored import Expected, Settings, Shapes, Stored


def shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    """The weight's; scales are one for each row or one for all."""
    weight, scale = shapes["weight"], shapes["weight_scale"]
    if settings.get("transform_config"):
        raise FormatError("transform_config is set: weights were turned, which is not undone here.")
    if len(weight) != 2 or scale not in ((weight[0], 1), (weight[0],), (1, 1), (1,), ()):
        raise FormatError(
            f"weight_scale of shape {scale} for a weight of shape {weight} is not one scale for each row, or "
            "one for all. Scales of groups are not read."
        )
    return weight[0], weight[1]


def planes(tensors, settings: Settings) -> list:
    """Quants in whole units, and a float32 scale for each row."""
    weight, scale = tensors["weight"], tensors["weight_scale"].float()
    rows, columns = weight.shape
    if columns % UNIT:
        padded = weight.new_zeros(rows, -(-columns // UNIT) * UNIT)
        padded[:, :columns] = weight
        weight = padded
    return [weight, scale.reshape(-1).expand(rows).contiguous()]


def plain_names(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a weight of torchao by the names that compressed-tensors has for them."""
    return {name.removeprefix("_").replace("_qdata", ""): part for name, part in parts.items()}


def _vector_shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    return shape({"weight": shapes["weight"], "weight_scale": shapes["SCB"]}, settings)


def _vector_planes(tensors, settings: Settings) -> list:
    """SCB is the largest magnitude of a row (Dettmers et al. 2022, "LLM.int8()"); bitsandbytes multiplies by
    this number, too."""
    return planes({"weight": tensors["weight"], "weight_scale": tensors["SCB"] * (1 / 127)}, settings)


def _vector_activations(settings: Settings) -> DynamicQuantization:
    """Rounded but for columns with outliers (LLM.int8(), section 3.2)."""
    threshold = settings.get("llm_int8_threshold", 6.0)
    if type(threshold) not in (int, float) or not threshold >= 0:
        raise FormatError(f"llm_int8_threshold {threshold!r} is not read; 0 and more can be.")
    return DynamicQuantization("int8", 127.0, threshold=threshold or inf)


NO_ZEROS = Expected("int8", lambda zeros, shape, settings: not zeros.any(), "zero points are not zero")
INT8 = QuantFormat(
    name="int8_rows",
    planes=(Plane("quants", 32), Plane("scales", 4, ROW)),
    values=lambda quants, scales: scales.view(np.float32) * quants.view(np.int8).astype(np.float32),
    stored=(
        Stored(
            methods=("compressed-tensors",),
            when={
                "format": (None, "int-quantized", "naive-quantized"),
                "strategy": (None, "tensor", "channel"),
                "symmetric": (None, True),
            },
            tensors={"weight": ("int8",), "weight_scale": ("float32", "float16", "bfloat16")},
            shape=shape,
            planes=planes,
            expected={"weight_zero_point": NO_ZEROS},
            ignored=("input_scale", "input_zero_point"),  # of activations; those that are fixed are not read
            activations=of_compressed_tensors,
        ),
        Stored(
            methods=("bitsandbytes",),
            tensors={"weight": ("int8",), "SCB": ("float32",)},
            shape=_vector_shape,
            planes=_vector_planes,
            expected={
                "weight_format": Expected(
                    "uint8", lambda kind, shape, settings: not kind.any(), "rows are not in order"
                )
            },
            activations=_vector_activations,
        ),
        Stored(
            methods=("torchao",),
            tensors={"_weight_qdata": ("int8",), "_weight_scale": ("float32", "float16", "bfloat16")},
            shape=lambda shapes, settings: shape(plain_names(shapes), settings),
            planes=lambda tensors, settings: planes(plain_names(tensors), settings),
            ignored=("_weight_act_quant_scale", "_weight_act_quant_zero_point"),
            activations=of_torchao,
        ),
    ),
)
