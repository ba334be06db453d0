"""4 bits with a scale and an offset in floats for a group of columns, as torchao stores them (`Int4Tensor`).

A weight is ``scale * q + zero_point`` with q from -8 to 7: ``zero_point`` is no number of steps, but what the
weight is where q is 0. Two columns share a byte, the first one in the low bits; scales and zero points lie as
(groups, rows).

`Int4TilePackedTo4dTensor` has the same numbers, from 0 to 15, in the order in which a product on CUDA reads
them: words (rows / 8, columns / 16 tiles, 32 lanes, tiles / 2), of matrices that are filled up with zeros to
8 rows and 1024 columns; scales and zero points lie as (groups, rows, 2). Lane ``4 r + q`` has row r of 8; its
word j has of 32 columns those numbered ``8 m + 2 q`` in bits 4 m on, and the next ones in bits 16 + 4 m on.

Source: https://github.com/pytorch/ao, torchao/quantization/quantize_/workflows/int4/int4_tensor.py and
int4_tile_packed_to_4d_tensor.py; https://github.com/pytorch/pytorch, aten/src/ATen/native/cuda/int4mm.cu;
https://github.com/pytorch/MSLK, mslk/quantize/shuffle.py, int4_row_quantize_zp and pack_int4
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import FormatError
from ...tensors.dtypes import uint8
from ...tensors.tensor import Tensor
from ..format import UNIT, Plane, QuantFormat
from ..stored import WANTED, Expected, Settings, Shapes, Stored
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


_TILE = 16  # columns
_LANES = 32


def _tiled_shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    words, groups = shapes["_weight_qdata"], shapes["_weight_scale_and_zero"]
    if len(words) == 4 and words[2] == _LANES and words[3] in (1, 2, 4) and len(groups) == 3:
        rows, columns = 8 * words[0], words[1] * words[3] * 2 * _TILE
        if groups[0] and groups[1:] == (rows, 2) and columns % (groups[0] * UNIT) == 0:
            wanted = settings.get(WANTED, (rows, columns))
            if len(wanted) == 2 and rows - 8 < wanted[0] <= rows and columns - 1024 < wanted[1] <= columns:
                return wanted[0], wanted[1]
    raise FormatError(
        f"_weight_qdata and _weight_scale_and_zero of shapes {words} and {groups} are not tiles of a matrix "
        f"{'x'.join(map(str, settings.get(WANTED, ())))} and numbers of groups of whole {UNIT} columns."
    )


def _tiled_planes(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    words, groups = tensors["_weight_qdata"], tensors["_weight_scale_and_zero"]
    tiles, wide, _, each = words.shape
    rows, columns = settings.get(WANTED, (8 * tiles, wide * each * 2 * _TILE))
    units = -(-columns // UNIT)
    # Bytes 0 and 1 of a word have the low numbers of four bytes, bytes 2 and 3 the high ones.
    parts = words.contiguous().view(uint8).reshape(tiles, wide, 8, 4, each, 4)
    low, high = (part.unsqueeze(-1) for part in parts.chunk(2, -1))
    shifts = low.new_tensor([0, 4])
    # By tile of rows, of columns, r, q, j, and m as two axes.
    pairs = (low >> shifts & 15) | ((high >> shifts & 15) << 4)
    quants = pairs.flatten(-2).permute(0, 2, 1, 4, 5, 3).reshape(8 * tiles, -1)[:rows, : 16 * units]
    times = wide * each * 2 * _TILE // UNIT // groups.shape[0]
    numbers = (groups[:, :rows, k].float().t().repeat_interleave(times, 1)[:, :units] for k in range(2))
    return [quants.contiguous(), *(t.contiguous() for t in numbers)]


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
        Stored(
            methods=("torchao",),
            tensors={"_weight_qdata": ("int32",), "_weight_scale_and_zero": _FLOATS},
            shape=_tiled_shape,
            planes=_tiled_planes,
            expected={"_weight_act_pre_scale": _ONES},
        ),
    ),
)
