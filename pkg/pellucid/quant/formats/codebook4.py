"""4 bits that point into a codebook, with a scale for a block of columns: NF4 and FP4 of bitsandbytes.

Blocks are of numbers one after another, and may reach from a row into the next one. With double quantization
their scales are bytes that point into another codebook, with a scale for 256 of them and an offset.

Source: Dettmers et al. 2023, "QLoRA"; https://github.com/bitsandbytes-foundation/bitsandbytes, functional.py
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from ...errors import FormatError
from ...tensors.tensor import Tensor
from ..format import ROW, UNIT, Plane, QuantFormat
from ..stored import Settings, Shapes, Stored
from .int4_groups import nibbles

_BOOK = 16


def _shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
    shape, block = settings.get("shape"), settings.get("blocksize")
    if not isinstance(shape, list) or len(shape) != 2 or any(type(n) is not int or n < 1 for n in shape):
        raise FormatError(f"shape {str(shape)[:80]} of quant_state is not that of a matrix.")
    rows, columns = shape
    if columns % UNIT or type(block) is not int or block < UNIT or block % UNIT:
        raise FormatError(
            f"blocksize {str(block)[:80]} of {columns} columns is not read; both must be multiples of {UNIT}."
        )
    blocks = -(-rows * columns // block)
    fit = 2 * prod(shapes["weight"]) == rows * columns and shapes["weight.quant_map"] == (_BOOK,)
    nested = "weight.nested_absmax" in shapes
    if nested:
        each, offset = settings.get("nested_blocksize"), settings.get("nested_offset")
        if type(each) is not int or each < 1 or type(offset) is not float or not np.isfinite(offset):
            raise FormatError(
                f"nested_blocksize {str(each)[:80]} and nested_offset {str(offset)[:80]} of quant_state are "
                "not a positive integer and a number."
            )
        fit = fit and shapes["weight.nested_absmax"] == (-(-blocks // each),)
        fit = fit and shapes["weight.nested_quant_map"] == (256,)
    if not fit or shapes["weight.absmax"] != (blocks,):
        raise FormatError(
            f"tensors of shapes {', '.join(map(str, shapes.values()))} are not those of a weight of shape "
            f"({rows}, {columns}) in blocks of {block}."
        )
    return rows, columns


def _repeated(numbers: Tensor, each: int, count: int) -> Tensor:
    """So many numbers, each of those given ``each`` times."""
    return numbers.repeat_interleave(min(each, count))[:count]


def _planes(tensors: Mapping[str, Tensor], settings: Settings) -> list[Tensor]:
    pairs = tensors["weight"].reshape(-1)
    scales = tensors["weight.absmax"]
    if "weight.nested_absmax" in tensors:
        each = _repeated(tensors["weight.nested_absmax"], settings["nested_blocksize"], scales.shape[0])
        values = tensors["weight.nested_quant_map"][scales.long()] * each
        scales = values + settings["nested_offset"]
    units = _repeated(scales, settings["blocksize"] // UNIT, 2 * pairs.shape[0] // UNIT)
    # The first number of a byte is the high one there.
    return [(pairs & 15) << 4 | pairs >> 4, units, tensors["weight.quant_map"]]


def _values(quants: np.ndarray, scales: np.ndarray, book: np.ndarray) -> np.ndarray:
    return scales.view(np.float32) * book.view(np.float32).reshape(-1)[nibbles(quants)]


_PARTS = {"weight": ("uint8",), "weight.absmax": ("float32",), "weight.quant_map": ("float32",)}
_NESTED = {"weight.nested_absmax": ("float32",), "weight.nested_quant_map": ("float32",)}
CODEBOOK4 = QuantFormat(
    name="codebook4",
    planes=(Plane("quants", 16), Plane("scales", 4), Plane("book", 4 * _BOOK, ROW, shared=True)),
    values=_values,
    stored=tuple(
        Stored(
            methods=("bitsandbytes",),
            tensors=parts,
            shape=_shape,
            planes=_planes,
            state=f"weight.quant_state.bitsandbytes__{kind}",
        )
        for kind in ("nf4", "fp4")
        for parts in (_PARTS, {**_PARTS, "weight.absmax": ("uint8",), **_NESTED})
    ),
)
