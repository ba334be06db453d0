"""Packed tensors as quantized weights, whose bits kernels unpack while they multiply."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...ops.shape.joining import cat
from ...quant.format import UNIT
from ...quant.weight import weight_from_planes
from ...tensors import dtypes
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from .numbers import precision
from .packing import PackedTensor, codes_of, packed_bytes, scales_of

Found = tuple[str, list[Tensor]] | None
ROWS = 0  # the columns that share a scale, of a scale for a row


def kernel_weight(packed: PackedTensor) -> Tensor | None:
    """Packed bits as a weight of the same shape that kernels unpack.

    Args:
        packed: of two axes or more; those after the first are the columns.

    Returns:
        A tensor in one of the weight formats, or None where there is none for these: kinds of 64 bits, groups
        of scales that do not lie in rows as units of 32 columns do (NVFP4: 16), and float32, which needs
        none.
    """
    planes = PLANES.get(packed.precision.name)
    if planes is None or len(packed.shape) < 2 or not prod(packed.shape):
        return None
    rows, columns = packed.shape[0], prod(packed.shape[1:])
    found = planes(packed, rows, columns)
    return None if found is None else weight_from_planes(found[1], found[0], packed.shape)


def _spans(packed: PackedTensor, columns: int) -> int | None:
    """How many columns share a scale, or ROWS; None where a group is of several rows."""
    group = packed.group
    if not isinstance(group, int) or group == columns:
        return ROWS
    return group if columns % group == 0 else None


def _of_rows(values: Tensor, rows: int) -> Tensor:
    """One number for each row."""
    return values.reshape(-1).expand(rows).contiguous()


def _of_units(values: Tensor, rows: int, columns: int, span: int) -> Tensor:
    """One number for each unit, of groups of whole units."""
    return values.reshape(rows, columns // span).repeat_interleave(span // UNIT, 1).contiguous()


def _padded(codes: Tensor, multiple: int = UNIT) -> Tensor:
    """(rows, columns) filled up with zeros; what lies there meets no input."""
    if missing := -codes.shape[1] % multiple:
        codes = cat([codes, codes.new_zeros((codes.shape[0], missing))], 1)
    return codes.contiguous()


def _numbers(packed: PackedTensor, rows: int, columns: int, plus: int = 0) -> Tensor:
    """Codes as the bytes of a plane, increased by a number first, in the numbers of their bits."""
    codes = codes_of(packed).reshape(rows, columns)
    if plus:
        codes = (codes + plus) & ((1 << packed.precision.bits) - 1)
    return packed_bytes(packed.precision, _padded(codes).reshape(-1))


def _steps(packed: PackedTensor) -> tuple[int, Tensor, Tensor]:
    """``weight = step * code + offset``: what is added to the codes first, and step and offset of groups."""
    p, scale = packed.precision, scales_of(packed)
    if packed.lows is not None:
        return 0, scale, packed.lows
    if p.kind == "binary":
        return 0, 2 * scale, -scale
    least = 1 if p.kind == "ternary" else 1 << (p.bits - 1)
    return least, scale, -least * scale


def _affine(packed: PackedTensor, rows: int, columns: int) -> Found:
    """Any integers; products of a step are exact, but where 8 bits have scales of more than 16."""
    bits, span = packed.precision.bits, _spans(packed, columns)
    if span is None or span % UNIT or (bits == 8 and packed.factor is not None):
        return None
    plus, step, offset = _steps(packed)
    quants = _numbers(packed, rows, columns, plus)
    if span == ROWS:
        return f"int{bits}_affine_rows", [quants, _of_rows(step, rows), _of_rows(offset, rows)]
    parts = [_of_units(part, rows, columns, span) for part in (step, offset)]
    return f"int{bits}_affine", [quants, *parts]


def _int8(packed: PackedTensor, rows: int, columns: int) -> Found:
    if _spans(packed, columns) != ROWS or packed.factor is not None:
        return _affine(packed, rows, columns)
    return "int8_rows", [_numbers(packed, rows, columns), _of_rows(scales_of(packed), rows)]


def _ternary(packed: PackedTensor, rows: int, columns: int) -> Found:
    if _spans(packed, columns) != ROWS:
        return _affine(packed, rows, columns)
    return "int2_rows", [_numbers(packed, rows, columns, 1), _of_rows(scales_of(packed), rows)]


def _float8(format: str) -> Callable[[PackedTensor, int, int], Found]:
    each = 4 * UNIT  # columns that share a scale

    def planes(packed: PackedTensor, rows: int, columns: int) -> Found:
        span = _spans(packed, columns)
        if span is None or span % each:
            return None
        scales, groups = scales_of(packed), -(-columns // each)
        if span == ROWS:
            scales = _of_rows(scales, rows).unsqueeze(1).expand(-1, groups)
        else:
            scales = scales.reshape(rows, -1).repeat_interleave(span // each, 1)
        return format, [_numbers(packed, rows, columns), scales.contiguous()]

    return planes


def _float4(packed: PackedTensor, rows: int, columns: int) -> Found:
    span = _spans(packed, columns)
    if span == 16 and packed.factor is not None and packed.scales is not None:
        scales = _padded(packed.scales.reshape(rows, -1), UNIT // 16)
        return "fp4_groups", [_numbers(packed, rows, columns), scales, packed.factor]
    if span is None or span % UNIT:
        return None
    quants, scales = _numbers(packed, rows, columns), scales_of(packed)
    if span == ROWS:
        return "fp4_rows", [quants, _of_rows(scales, rows)]
    book = tensor(precision("float4_e2m1fn").values(), device=scales.device)
    return "codebook4", [quants, _of_units(scales, rows, columns, span), book]


def _wide(packed: PackedTensor, rows: int, columns: int) -> Found:
    """Whole numbers of 16 and 32 bits; products of a step that is a power of two are exact."""
    p, span = packed.precision, _spans(packed, columns)
    if span is None or span % UNIT or (packed.lows is not None and packed.factor is not None):
        return None
    parts = [scales_of(packed), *([] if packed.lows is None else [packed.lows])]
    if span == ROWS:
        parts = [_of_rows(part, rows) for part in parts]
    else:
        parts = [_of_units(part, rows, columns, span) for part in parts]
    format = f"{p.name}_{'scaled' if packed.lows is None else 'affine'}{'_rows' if span == ROWS else ''}"
    return format, [_padded(packed.data.reshape(rows, -1), UNIT * p.bits // 8), *parts]


def _half(format: str) -> Callable[[PackedTensor, int, int], Found]:
    def planes(packed: PackedTensor, rows: int, columns: int) -> Found:
        return format, [_padded(packed.data.view(dtypes.int16).reshape(rows, columns))]

    return planes


PLANES: dict[str, Callable[[PackedTensor, int, int], Found]] = {
    "int8": _int8,
    "ternary": _ternary,
    **dict.fromkeys(("uint8", "int4", "uint4", "int2", "uint2", "binary"), _affine),
    "float8_e4m3fn": _float8("fp8_e4m3"),
    "float8_e5m2": _float8("fp8_e5m2"),
    "float4_e2m1fn": _float4,
    **{f"{sign}int{bits}": _wide for sign in ("", "u") for bits in (16, 32)},
    "float16": _half("f16"),
    "bfloat16": _half("bf16"),
}
"""What makes planes of packed bits, by the kind of number; None where its scales are of other groups."""
