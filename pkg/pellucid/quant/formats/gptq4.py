"""GPTQ of 4 bits, with a scale and a zero point for a group of columns, as AutoGPTQ and GPTQModel store it.

Version 1 of such files ("gptq") has zero points less by one, version 2 ("gptq_v2") has them as they are.

Source: https://github.com/AutoGPTQ/AutoGPTQ, auto_gptq/nn_modules/qlinear
"""

from __future__ import annotations

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import uint8
from ..format import UNIT, Plane, QuantFormat
from ..stored import Expected, Settings, Shapes, Stored

_BITS = 4
_EACH = 32 // _BITS  # numbers of a word


def _group(settings: Settings, columns: int) -> int:
    """Columns that share a scale."""
    size = settings.get("group_size", -1)
    group = columns if size == -1 else size
    if type(group) is not int or group < 1 or group % UNIT or columns % group:
        raise FormatError(
            f"group_size {str(size)[:80]} of {columns} columns is not read; a multiple of {UNIT} that "
            "divides them is, or -1."
        )
    return group


def _shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    if settings.get("bits") != _BITS:
        raise FormatError(f"bits is {str(settings.get('bits'))[:80]}; {_BITS} is read.")
    if settings.get("checkpoint_format", "gptq") not in ("gptq", "gptq_v2"):
        kind = str(settings["checkpoint_format"])[:80]
        raise FormatError(f"checkpoint_format {kind} is not read; gptq and gptq_v2 are.")
    words, zeros, scales = shapes["qweight"], shapes["qzeros"], shapes["scales"]
    if len(words) == 2:
        columns, rows = words[0] * _EACH, words[1]
        groups = columns // _group(settings, columns)
        if scales == (groups, rows) and zeros == (groups, rows // _EACH) and not rows % _EACH:
            return rows, columns
    raise FormatError(
        f"qweight, qzeros and scales of shapes {words}, {zeros} and {scales} do not belong together."
    )


def _planes(tensors, settings: Settings) -> list:
    """Words of 8 columns row by row; a half and a byte for each unit."""
    words, zeros, scales = tensors["qweight"], tensors["qzeros"], tensors["scales"]
    columns = words.shape[0] * _EACH
    units = _group(settings, columns) // UNIT
    places = zeros.new_tensor([16**i for i in range(_EACH)])
    # Floor division and remainder take the bits of a negative word, too.
    points = (zeros.unsqueeze(-1) // places % 16).flatten(1)
    if settings.get("checkpoint_format", "gptq") == "gptq":
        points = points + 1
    return [
        words.t().contiguous(),
        scales.t().repeat_interleave(units, 1).contiguous(),
        points.to(uint8).t().repeat_interleave(units, 1).contiguous(),
    ]


def _values(quants: np.ndarray, scales: np.ndarray, points: np.ndarray) -> np.ndarray:
    columns = np.stack([quants & np.uint8(15), quants >> np.uint8(4)], -1).reshape(*quants.shape[:2], UNIT)
    return scales.view(np.float16).astype(np.float32) * (columns.astype(np.float32) - points)


def _in_order(index: np.ndarray, shape: tuple[int, int], settings: Settings) -> bool:
    return np.array_equal(index, np.arange(shape[1]) // _group(settings, shape[1]))


GPTQ4 = QuantFormat(
    name="gptq4",
    planes=(Plane("quants", 16), Plane("scales", 2), Plane("zeros", 1)),
    values=_values,
    stored=(
        Stored(
            methods=("gptq",),
            tensors={"qweight": ("int32",), "qzeros": ("int32",), "scales": ("float16",)},
            shape=_shape,
            planes=_planes,
            expected={
                "g_idx": Expected(
                    "int32",
                    _in_order,
                    "the groups of columns are not in order. Weights that were quantized with desc_act "
                    "(act_order) are not read",
                ),
                # AutoGPTQ writes one for every layer, also where the architecture has none.
                "bias": Expected(
                    "float16", lambda bias, shape, settings: not bias.any(), "the model has no bias here"
                ),
            },
        ),
    ),
)
