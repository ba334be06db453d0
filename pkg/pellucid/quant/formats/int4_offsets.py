"""4 bits with a scale and an offset in floats for a group of columns, as torchao stores them (`Int4Tensor`).

A weight is ``scale * q + zero_point`` with q from -8 to 7: ``zero_point`` is no number of steps, but what the
weight is where q is 0. Two columns share a byte, the first one in the low bits; scales and zero points lie as
(groups, rows).

Source: https://github.com/pytorch/ao, torchao/quantization/quantize_/workflows/int4/int4_tensor.py;
https://github.com/pytorch/MSLK, mslk/quantize/shuffle.py, int4_row_quantize_zp and pack_int4
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import uint8
from ...tensors.tensor import Tensor
from ..format import UNIT, Plane, QuantFormat
from ..stored import Expected, Settings, Shapes, Stored
from .int4_groups import nibbles

_FLOATS = ("bfloat16", "float16", "float32")
_MIDDLE = 0x88  # of both numbers of a byte: from signed numbers to those from 0 to 15


def _shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    quants, scales, zeros = (shapes[f"_weight_{part}"] for part in ("qdata", "scale", "zero_point"))
    if len(quants) == len(scales) == 2 and zeros == scales:
        rows, columns = quants[0], 2 * quants[1]
        if scales[1] == rows and scales[0] and columns % (scales[0] * UNIT) == 0:
            return rows, columns
    raise FormatError(
        f"_weight_qdata, _weight_scale and _weight_zero_point of shapes {quants}, {scales} and {zeros} are "
        f"not numbers of a matrix and those of groups of whole {UNIT} columns."
    )


def _planes(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    quants = tensors["_weight_qdata"].view(uint8)
    groups = tensors["_weight_scale"], tensors["_weight_zero_point"]
    times = 2 * quants.shape[1] // UNIT // groups[0].shape[0]
    return [quants ^ _MIDDLE, *(t.float().t().repeat_interleave(times, 1).contiguous() for t in groups)]


def _values(quants: np.ndarray, scales: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return scales.view(np.float32) * (nibbles(quants).astype(np.float32) - 8) + offsets.view(np.float32)


_ONES = Expected("float32", lambda factors, shape, settings: (factors == 1).all(), "inputs have factors")
INT4_OFFSETS = QuantFormat(
    name="int4_offsets",
    planes=(Plane("quants", 16), Plane("scales", 4), Plane("offsets", 4)),
    values=_values,
    stored=(
        Stored(
            methods=("torchao",),
            tensors={
                "_weight_qdata": ("int8", "uint8"),
                "_weight_scale": _FLOATS,
                "_weight_zero_point": _FLOATS,
            },
            shape=_shape,
            planes=_planes,
            expected={"_weight_act_pre_scale": _ONES},
        ),
    ),
)
