"""1, 2, 4 or 8 bits with a scale and an offset in floats, for a group of columns or a row.

A weight is ``scale * q + offset`` with q from 0 on: ``offset`` is the least weight of a group. Numbers lie
one behind another in words, the first one in the lowest bits; scales and offsets lie as (rows, groups).
Those of groups, but for 1 bit, are transformers' ``MetalConfig``.

Source: https://github.com/huggingface/transformers, src/transformers/integrations/metal_quantization.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import uint8
from ...tensors.tensor import Tensor
from ..format import ROW, UNIT, Plane, QuantFormat
from ..stored import Settings, Shapes, Stored

_FLOATS = ("bfloat16", "float16", "float32")
_GROUP = 64  # columns of a group, where the settings do not say


def _shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    words, scales, offsets = shapes["weight"], shapes["scales"], shapes["qbiases"]
    group = settings.get("group_size", _GROUP)
    if type(group) is not int or group < 1 or group % UNIT:
        raise FormatError(f"group_size {str(group)[:80]} is not read; a multiple of {UNIT} is.")
    if len(words) == 2:
        rows, columns = words[0], words[1] * 32 // settings["bits"]
        if columns % group == 0 and scales == offsets == (rows, columns // group):
            return rows, columns
    raise FormatError(
        f"weight, scales and qbiases of shapes {words}, {scales} and {offsets} do not belong together, with "
        f"groups of {group} columns."
    )


def _planes(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    times = settings.get("group_size", _GROUP) // UNIT
    groups = (tensors[part].float().repeat_interleave(times, 1) for part in ("scales", "qbiases"))
    return [tensors["weight"].view(uint8), *groups]


def _values(bits: int) -> Callable:
    def values(quants: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        places = np.arange(0, 8, bits, dtype=np.uint8)
        q = (quants[..., None] >> places & np.uint8((1 << bits) - 1)).reshape(*quants.shape[:2], UNIT)
        return scales.view(np.float32) * q.astype(np.float32) + offsets.view(np.float32)

    return values


def _stored(bits: int) -> tuple[Stored, ...]:
    return (
        Stored(
            methods=("metal",),
            tensors={"weight": ("uint32",), "scales": _FLOATS, "qbiases": _FLOATS},
            shape=_shape,
            planes=_planes,
            when={"bits": (bits,)},
        ),
    )


for _bits in (1, 2, 4, 8):
    QuantFormat(
        name=f"int{_bits}_affine",
        planes=(Plane("quants", 4 * _bits), Plane("scales", 4), Plane("offsets", 4)),
        values=_values(_bits),
        stored=_stored(_bits) if _bits > 1 else (),
    )
    QuantFormat(
        name=f"int{_bits}_affine_rows",
        planes=(Plane("quants", 4 * _bits), Plane("scales", 4, ROW), Plane("offsets", 4, ROW)),
        values=_values(_bits),
    )
