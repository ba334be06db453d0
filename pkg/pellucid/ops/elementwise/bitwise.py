"""Bits of integers and bools, element by element: and, or, exclusive or, not, shifts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError
from ...op.call import Call
from ...op.elementwise import Elementwise, elementwise
from ...op.families import binary, unary
from ...op.rules import promote

_INTEGERS = "integers or bools"


def _integer_only(call: Call):
    found = promote(call)
    if not (found[0].is_integer or found[0].kind == "b"):
        raise DTypeError(f"bitwise operations take integers and bools, not {found[0]}. Convert first.")
    return found


def _bitwise(name: str, sign: str, bools: str, reference, sentence: str):
    """Declare an op of the bits of two."""
    whole = f"input {sign} other"
    kernel = elementwise(whole, i64=whole, boolean=bools)
    aten = f"{name}.Tensor", f"{name}.Scalar", f"{name}.Scalar_Tensor"
    return binary(name, kernel, reference, None, sentence, dtype=_integer_only, takes=_INTEGERS, aten=aten)


bitwise_and = _bitwise(
    "bitwise_and", "&", "input && other", np.bitwise_and, "Bitwise and; logical for bools."
)
bitwise_or = _bitwise("bitwise_or", "|", "input || other", np.bitwise_or, "Bitwise or; logical for bools.")
bitwise_xor = _bitwise(
    "bitwise_xor", "^", "input != other", np.bitwise_xor, "Bitwise exclusive or; logical for bools."
)
bitwise_not = unary(
    "bitwise_not", elementwise("~input", i64="~input", boolean="!input"), np.invert, None,
    "Every bit inverted; logical not for bools.", dtype=_integer_only, takes=_INTEGERS, at=5,
)  # fmt: skip


def _left_shift(input, other):
    bits = 8 * input.dtype.itemsize
    fits = (other >= 0) & (other < bits)
    return np.where(fits, np.left_shift(input, np.where(fits, other, 0)), 0)


def _right_shift(input, other):
    bits = 8 * input.dtype.itemsize
    fits = (other >= 0) & (other < bits)
    gone = np.where(input < 0, -1, 0).astype(input.dtype)
    return np.where(fits, np.right_shift(input, np.where(fits, other, 0)), gone)


def _shift(name: str, kernel: Elementwise, reference, sentence: str):
    """Declare a shift of bits."""
    options: dict[str, Any] = {"dtype": _integer_only, "takes": _INTEGERS, "at": ([7, -6], [2, 1])}
    options["aten"] = f"{name}.Tensor", f"{name}.Tensor_Scalar", f"{name}.Scalar_Tensor"
    return binary(name, kernel, reference, None, sentence, **options)


bitwise_left_shift = _shift(
    "bitwise_left_shift",
    elementwise(
        "shift_left_i32(input, other)", u32="shift_left_u32(input, other)",
        i64="i64_shift_left(input, i64_places(other))",
    ),
    _left_shift, "Bits moved up by ``other`` places.",
)  # fmt: skip
bitwise_right_shift = _shift(
    "bitwise_right_shift",
    elementwise(
        "shift_right_i32(input, other)", u32="shift_right_u32(input, other)",
        i64="i64_shift_right(input, i64_places(other))",
    ),
    _right_shift, "Bits moved down by ``other`` places; signed numbers keep their sign.",
)  # fmt: skip
