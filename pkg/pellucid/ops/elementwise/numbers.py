"""How numbers are made, element by element: signs, exponents, neighbours, divisors; and what NaN becomes."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable

import numpy as np

from ...autograd.formulas import refused, without, zeros
from ...errors import DTypeError
from ...op.arguments import number
from ...op.call import results
from ...op.declaration import Call, elementwise, function, op
from ...op.families import binary, of_tensor, of_tensors, unary
from ...op.public import EXPORTS
from ...op.rules import alike, boolean, broadcast, float_only, ordered, promote, real_floating, refusing
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor
from .arithmetic import pow

signbit = unary(
    "signbit",
    elementwise(
        "(bitcast<u32>(input) >> 31u) != 0u", i32="input < 0", u32="false", i64="i64_is_negative(input)",
        boolean="false", result="bool"
    ),
    lambda input: np.signbit(input) if input.dtype.kind == "f" else input < 0, None,
    "Whether the sign is that of a negative number, also of -0.0 and NaN.",
    dtype=refusing(boolean, "c"), takes="any real dtype", at=-0.5, in_place=False,
)  # fmt: skip


copysign = binary(
    "copysign", "bitcast<f32>((bitcast<u32>(input) & 0x7fffffffu) | (bitcast<u32>(other) & 0x80000000u))",
    np.copysign, {"input": lambda g, input, out: g * without(out / input, input == 0), "other": zeros},
    "``|input|`` with the sign of ``other``.",
    form=of_tensor, dtype=real_floating, at=(1.5, -0.0),
)  # fmt: skip


def _no_halves(call: Call):
    found = float_only(call)
    if found[0].itemsize < 4:
        raise DTypeError(f"takes float32 and float64 tensors, not {found[0]}. Convert with .float().")
    return found


nextafter = binary(
    "nextafter", "next_after(input, other)", np.nextafter,
    {"input": lambda g, input, other: g.masked_fill(input == other, 0.0), "other": zeros},
    "The number next to ``input`` toward ``other``.", form=of_tensors, dtype=_no_halves,
    takes="float32 or float64", at=([1.0, -2.0], [2.0, -2.0]),
)  # fmt: skip


def at_zero(input: Tensor, values: Tensor) -> Tensor: ...


heaviside = binary(
    "heaviside",
    elementwise(
        "select(select(0.0, 1.0, input > 0.0 && !is_nan(input)), values, input == 0.0 && !is_nan(input))",
        i32="select(select(0, 1, input > 0), values, input == 0)", u32="select(1u, values, input == 0u)",
        i64="select(i64_max(i64_sign(input), vec2<u32>(0u)), values, all(input == vec2<u32>(0u)))",
        boolean="input || values",
    ),
    lambda input, values: np.where(input == 0, values, input > 0).astype(input.dtype),
    dict.fromkeys(("input", "values"), refused("heaviside", "Detach what it is given.")),
    "0 of negative numbers and NaN, 1 of positive ones, ``values`` at 0.", form=at_zero,
    dtype=alike(ordered, "input", "values"), takes="one real dtype",
)  # fmt: skip


_MANTISSA = "A number from 0.5 to 1, or its negative, that times ``2 ** exponent`` is the input."
frexp_exponent = unary(
    "frexp_exponent", elementwise("exponent_of(input)", i32=False, result="i32"),
    lambda input: np.where(np.isfinite(input), np.frexp(input)[1], 0), None,
    "The exponent that `frexp` gives.", takes="floating point", public="frexp",
    dtype=lambda call: (dt.int32, float_only(call)[0]),
)  # fmt: skip
frexp_mantissa = unary(
    "frexp_mantissa", "mantissa_of(input)", lambda input: np.frexp(input)[0],
    lambda g, input: g / frexp_exponent(input).exp2(), _MANTISSA, dtype=float_only, public="frexp",
)  # fmt: skip
Frexp = results("frexp")(namedtuple("frexp", ("mantissa", "exponent")))


@function(method=True, aten="frexp.Tensor")
def frexp(input: Tensor) -> tuple[Tensor, Tensor]:
    """(mantissa, exponent) with ``input == mantissa * 2 ** exponent`` and mantissas from 0.5 to 1."""
    return Frexp(frexp_mantissa(input), frexp_exponent(input))


def _shifted(g: Tensor, other: Tensor) -> Tensor:
    return times_power_of_2(g, other)


@op(
    dtype=lambda call: (call["input"].dtype,) * 2, shape=broadcast,
    kernel=elementwise("times_power_of_2(input, other)", i32=False, own={"other": "f32"}),
    reference=lambda input, other: np.ldexp(input, other.clip(-9999, 9999).astype(np.int32)),
    grad={"input": _shifted}, public="ldexp",
)  # fmt: skip
def times_power_of_2(input: Tensor, other: Tensor) -> Tensor:
    """A floating-point ``input`` times ``2 ** other``, also where that power leaves its dtype."""


@function(method=True, in_place=True, aten="ldexp.Tensor")
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """``input * 2 ** other``.

    Args:
        input: any dtype.
        other: any dtype. With integers and a floating-point input the result has the input's dtype, and is
            right where the power itself would be infinite or 0.
    """
    if input.is_floating_point() and other._meta.dtype.is_integer:
        return times_power_of_2(input, other)
    return input * pow(2.0, other)


def _of_integers(name: str, reference: Callable, sentence: str):
    """Declare an op of two integers."""
    kernel = elementwise(
        None, i32=f"{name}_i32(input, other)", u32=f"{name}_u32(input, other)",
        i64=f"i64_{name}(input, other)",
    )  # fmt: skip
    return binary(
        name, kernel, reference, None, sentence, dtype=refusing(promote, "bfc"), takes="integers",
        form=of_tensors, at=([12, 7], [18, 0]),
    )  # fmt: skip


gcd = _of_integers("gcd", np.gcd, "The greatest divisor of both; of 0 and a number the number's size.")


def _lcm(input, other):
    wide = input.astype(np.promote_types(input.dtype, np.int32))
    return np.abs(wide // np.maximum(np.gcd(input, other), 1) * other)


lcm = _of_integers("lcm", _lcm, "The least multiple of both that is not negative; 0 where one is 0.")
_IS_INFINITE = "(bitcast<u32>(input) & 0x7fffffffu) == 0x7f800000u"


@op(
    dtype=float_only,
    kernel=elementwise(
        f"select(select(input, select(posinf, neginf, input < 0.0), {_IS_INFINITE}), nan, is_nan(input))",
        i32=False,
    ),
    reference=lambda input, nan, posinf, neginf: np.nan_to_num(input, nan=nan, posinf=posinf, neginf=neginf),
    grad={"input": lambda g, input: g * input.isfinite()},
    public="nan_to_num",
)
def with_numbers(input: Tensor, nan: float, posinf: float, neginf: float) -> Tensor:
    """A floating-point tensor with these in the place of NaN, infinity and its negative."""


@function(method=True, in_place=True)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """The tensor with numbers in the place of NaN and infinity.

    Args:
        input: any dtype; integers and bools are copied, of complex numbers both parts are changed.
        nan: for NaN; 0 if None.
        posinf, neginf: for infinity and its negative; the dtype's largest number and its negative if None.
    """
    if input.dtype.is_complex:
        parts = (nan_to_num(part, nan, posinf, neginf) for part in (input.real, input.imag))
        return EXPORTS["torch"]["complex"](*parts)
    if not input.dtype.is_floating_point:
        return input.clone()
    most = input.dtype.largest
    high = most if posinf is None else number(posinf, "nan_to_num: posinf")
    low = -most if neginf is None else number(neginf, "nan_to_num: neginf")
    return with_numbers(input, 0.0 if nan is None else number(nan, "nan_to_num: nan"), high, low)
