"""Bits of integers and bools, element by element: and, or, exclusive or, not, shifts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import DTypeError
from ...op.call import Call
from ...op.elementwise import elementwise
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


def _shift(way: str, shift: np.ufunc, gone: Callable, sentence: str):
    """Declare a shift of bits; ``gone`` is what is left of a number that is shifted by all of its bits."""
    name = f"bitwise_{way}_shift"
    kernel = elementwise(
        f"shift_{way}_i32(input, other)", u32=f"shift_{way}_u32(input, other)",
        i64=f"i64_shift_{way}(input, i64_places(other))",
    )  # fmt: skip

    def reference(input, other):
        fits = (other >= 0) & (other < 8 * input.dtype.itemsize)
        return np.where(fits, shift(input, np.where(fits, other, 0)), gone(input))

    return binary(
        name, kernel, reference, None, sentence, dtype=_integer_only, takes=_INTEGERS, at=([7, -6], [2, 1]),
        aten=(f"{name}.Tensor", f"{name}.Tensor_Scalar", f"{name}.Scalar_Tensor"),
    )  # fmt: skip


bitwise_left_shift = _shift("left", np.left_shift, lambda input: 0, "Bits moved up by ``other`` places.")
bitwise_right_shift = _shift(
    "right", np.right_shift, lambda input: np.where(input < 0, -1, 0).astype(input.dtype),
    "Bits moved down by ``other`` places; signed numbers keep their sign.",
)  # fmt: skip
