"""4 bits with a scale and a zero point for a group of columns, as GPTQ and AWQ store them.

GPTQ packs 8 columns of a row into a word, AWQ ("gemm") 8 rows of a column, the even ones first. Version 1 of
GPTQ's files ("gptq") has zero points less by one, version 2 ("gptq_v2") and AWQ have them as they are.

Source: https://github.com/AutoGPTQ/AutoGPTQ, auto_gptq/nn_modules/qlinear;
https://github.com/casper-hansen/AutoAWQ, awq/modules/linear/gemm.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import uint8
from ...tensors.tensor import Tensor
from ..format import UNIT, Plane, QuantFormat
from ..stored import Expected, Settings, Shapes, Stored

_BITS = 4
_EACH = 32 // _BITS  # numbers of a word
_TENSORS = {"qweight": ("int32",), "qzeros": ("int32",), "scales": ("float16",)}


def is_version_1(settings: Settings) -> bool:
    """Whether zero points are less by one than what they stand for."""
    return settings.get("checkpoint_format") in (None, "gptq")


def group_index(settings: Settings, columns: int) -> np.ndarray:
    """The group of each column, where they are in order."""
    size = settings.get("group_size", -1)
    return np.arange(columns) // (columns if size == -1 else size)


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


def _shape(columns_each: int, rows_each: int) -> Callable:
    """What finds the weight's shape, where a word has so many columns and rows."""

    def shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
        words, zeros, scales = shapes["qweight"], shapes["qzeros"], shapes["scales"]
        if len(words) == 2:
            columns, rows = words[0] * columns_each, words[1] * rows_each
            groups = columns // _group(settings, columns)
            if scales == (groups, rows) and zeros == (groups, rows // _EACH) and not rows % _EACH:
                return rows, columns
        raise FormatError(
            f"qweight, qzeros and scales of shapes {words}, {zeros} and {scales} do not belong together."
        )

    return shape


def _numbers(words: Tensor) -> Tensor:
    """Words (n, m) as bytes (n, 8 m), the lowest bits of a word first."""
    pairs = words.view(uint8).unsqueeze(-1)
    return (pairs >> pairs.new_tensor([0, _BITS]) & 15).flatten(1)


def _even_first(words: Tensor) -> Tensor:
    """The same of words whose numbers are 0, 2, 4, 6, 1, 3, 5, 7 of eight."""
    return _numbers(words).unflatten(1, (-1, 2, _EACH // 2)).transpose(-1, -2).flatten(1)


def _of_units(columns: int, *tensors: Tensor) -> list[Tensor]:
    """Numbers of groups (groups, rows) as those of units (rows, units)."""
    return [t.t().repeat_interleave(columns // UNIT // t.shape[0], 1).contiguous() for t in tensors]


def _gptq(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    words, zeros = tensors["qweight"], _numbers(tensors["qzeros"])
    if is_version_1(settings):
        zeros = zeros + 1
    return [words.t().contiguous(), *_of_units(words.shape[0] * _EACH, tensors["scales"], zeros)]


def _awq(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    quants, zeros = _even_first(tensors["qweight"]).t(), _even_first(tensors["qzeros"])
    pairs = quants[:, ::2] | quants[:, 1::2] << _BITS
    return [pairs, *_of_units(quants.shape[1], tensors["scales"], zeros)]


def nibbles(quants: np.ndarray) -> np.ndarray:
    """uint8 (rows, units, 16) as the 32 numbers of each unit, the low one of a byte first."""
    return np.stack([quants & np.uint8(15), quants >> np.uint8(4)], -1).reshape(*quants.shape[:2], UNIT)


def _values(quants: np.ndarray, scales: np.ndarray, points: np.ndarray) -> np.ndarray:
    return scales.view(np.float16).astype(np.float32) * (nibbles(quants).astype(np.float32) - points)


def _in_order(index: np.ndarray, shape: tuple[int, int], settings: Settings) -> bool:
    return np.array_equal(index, group_index(settings, shape[1]))


GPTQ = {"checkpoint_format": (None, "gptq", "gptq_v2")}
IN_ORDER = Expected("int32", _in_order, "the groups of columns are not in order, though desc_act is not set")
# AutoGPTQ writes one for every layer, also where the architecture has none.
NO_BIAS = Expected("float16", lambda bias, shape, settings: not bias.any(), "the model has no bias here")
INT4_GROUPS = QuantFormat(
    name="int4_groups",
    planes=(Plane("quants", 16), Plane("scales", 2), Plane("zeros", 1)),
    values=_values,
    stored=(
        Stored(
            methods=("gptq",),
            tensors=_TENSORS,
            shape=_shape(_EACH, 1),
            planes=_gptq,
            when={**GPTQ, "bits": (_BITS,), "desc_act": (None, False)},
            expected={"g_idx": IN_ORDER, "bias": NO_BIAS},
        ),
        Stored(
            methods=("awq",),
            tensors=_TENSORS,
            shape=_shape(1, _EACH),
            planes=_awq,
            when={"bits": (_BITS,), "version": (None, "gemm")},
        ),
    ),
)
