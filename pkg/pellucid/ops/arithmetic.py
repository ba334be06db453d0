"""Arithmetic, element by element: sums, products, powers, divisions, extremes, bits."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..call import Call
from ..elementwise import elementwise
from ..errors import DTypeError
from ..meta import Meta
from ..op import op
from ..rules import broadcast, floating, promote

if TYPE_CHECKING:
    from ..tensor import Tensor


def _no_bool(call: Call):
    """The common type; bool operands are refused, as in PyTorch."""
    if any(a is bool or (isinstance(a, Meta) and a.dtype.kind == "b") for _, a in call.operands()):
        raise DTypeError(
            "bool tensors have no subtraction or negation. Use logical_xor (^) or logical_not (~)."
        )
    return _whole_alpha(call)


def _whole_alpha(call: Call):
    """The common type; integers take no fractional alpha."""
    found = promote(call)
    if call.args.get("alpha") is float and not found[0].is_floating_point:
        raise DTypeError(f"alpha must be an integer for {found[0]}. Convert a tensor with .float() first.")
    return found


@op(
    dtype=_whole_alpha,
    shape=broadcast,
    kernel=elementwise(
        "input + alpha * other",
        i64="i64_add(input, i64_mul(alpha, other))",
        boolean="input || (alpha && other)",
    ),
    reference=lambda input, other, alpha: np.add(
        input, other if alpha == 1 else np.multiply(alpha, other, dtype=np.asarray(other).dtype)
    ),
    grad={"input": lambda g: g, "other": lambda g, alpha: g if alpha == 1 else g * alpha},
)
def add(input: Tensor | float, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Sum: ``out = input + alpha * other``.

    Args:
        input, other: tensors of shapes that broadcast, or numbers.
        alpha: factor of ``other``.

    Returns:
        A tensor of the broadcast shape and the promoted dtype.

    Raises:
        ShapeError: shapes do not broadcast.

    Source: https://pytorch.org/docs/stable/generated/torch.add.html

    Example:
        >>> import pellucid as torch
        >>> torch.add(torch.tensor([1, 2], device="cpu"), 10).tolist()
        [11, 12]
    """


@op(
    dtype=_no_bool,
    shape=broadcast,
    kernel=elementwise("input - alpha * other", i64="i64_sub(input, i64_mul(alpha, other))"),
    reference=lambda input, other, alpha: np.subtract(
        input, other if alpha == 1 else np.multiply(alpha, other, dtype=np.asarray(other).dtype)
    ),
    grad={"input": lambda g: g, "other": lambda g, alpha: g * -alpha},
)
def sub(input: Tensor | float, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Difference: ``out = input - alpha * other``.

    Source: https://pytorch.org/docs/stable/generated/torch.sub.html
    """


def rsub(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """``other - alpha * input``."""
    return sub(other, input, alpha=alpha)


@op(
    shape=broadcast,
    kernel=elementwise("input * other", i64="i64_mul(input, other)", boolean="input && other"),
    reference=np.multiply,
    grad={"input": lambda g, other: g * other, "other": lambda g, input: g * input},
)
def mul(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Product: ``out = input * other``.

    Source: https://pytorch.org/docs/stable/generated/torch.mul.html
    """


@op(
    dtype=floating,
    shape=broadcast,
    kernel=elementwise("input / other", i32=False),
    reference=np.true_divide,
    # From the inputs, as in PyTorch: the result may be changed in place afterwards.
    grad={
        "input": lambda g, other: g / other,
        "other": lambda g, input, other: -g * ((input / other) / other),
    },
)
def true_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient: ``out = input / other``, floating point for integers too.

    Source: https://pytorch.org/docs/stable/generated/torch.true_divide.html
    """


def div(input: Tensor | float, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient: ``out = input / other``.

    Args:
        input, other: tensors or numbers that broadcast.
        rounding_mode: None for the true quotient, "trunc" to round toward zero, "floor" to round down.

    Source: https://pytorch.org/docs/stable/generated/torch.div.html
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return trunc_divide(input, other)
    raise ValueError(f"div: rounding_mode must be None, 'trunc' or 'floor', not {rounding_mode!r}.")


@op(
    shape=broadcast,
    kernel=elementwise(
        "floor_divide_of(input, other)",
        i32="floor_divide_i32(input, other)",
        u32="divide_u32(input, other)",
        i64="i64_floor_divide(input, other)",
    ),
    reference=np.floor_divide,
    grad=None,
)
def floor_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient rounded down: ``out = floor(input / other)``.

    Source: https://pytorch.org/docs/stable/generated/torch.floor_divide.html
    """


def _trunc_reference(input, other):
    if np.asarray(input).dtype.kind == "f":
        return np.trunc(np.divide(input, other))
    quotient = np.floor_divide(input, other)
    return quotient + ((quotient < 0) & (quotient * other != input)).astype(quotient.dtype)


@op(
    public="div",
    shape=broadcast,
    kernel=elementwise(
        "trunc_divide_of(input, other)",
        i32="trunc_divide_i32(input, other)",
        u32="divide_u32(input, other)",
        i64="i64_trunc_divide(input, other)",
    ),
    reference=_trunc_reference,
    grad=None,
)
def trunc_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient rounded toward zero, what ``div(..., rounding_mode="trunc")`` computes."""


@op(
    shape=broadcast,
    kernel=elementwise(
        "remainder_of(input, other)",
        i32="remainder_i32(input, other)",
        u32="remainder_u32(input, other)",
        i64="i64_remainder(input, other)",
    ),
    reference=np.remainder,
    grad={"input": lambda g: g, "other": lambda g, input, other: -g * floor_divide(input, other)},
)
def remainder(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Remainder with the sign of ``other``, as Python's ``%``.

    Source: https://pytorch.org/docs/stable/generated/torch.remainder.html
    """


@op(
    shape=broadcast,
    kernel=elementwise(
        "fmod_of(input, other)",
        i32="fmod_i32(input, other)",
        u32="remainder_u32(input, other)",
        i64="i64_fmod(input, other)",
    ),
    reference=np.fmod,
    grad={"input": lambda g: g, "other": lambda g, input, other: -g * trunc_divide(input, other)},
)
def fmod(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Remainder with the sign of ``input``, as C's ``fmod``.

    Source: https://pytorch.org/docs/stable/generated/torch.fmod.html
    """


def _power_grad_exponent(g, input, exponent, out):
    from .comparison import where

    if isinstance(input, (int, float)):
        return g * out * math.log(input) if input > 0 else g * (0.0 if input == 0 else math.nan)
    return where((input == 0) & (exponent >= 0), g * 0, g * out * input.log())


def _power_grad_input(g, input, exponent):
    if isinstance(exponent, (int, float)):
        return g * 0 if exponent == 0 else g * (exponent * input ** (exponent - 1))
    from .comparison import where

    return where(exponent == 0, g * 0, g * (exponent * input ** (exponent - 1)))


def _check_exponent(input, exponent):
    if type(exponent) is int and exponent < 0 and not (type(input) is float or _is_floating(input)):
        raise DTypeError(
            "pow: integers to negative integer powers are not allowed. Convert with .float() first."
        )


def _is_floating(x) -> bool:
    return x._meta.dtype.kind in "fc"


def _power_reference(input, exponent):
    if np.asarray(exponent).dtype.kind != "i":
        return np.power(input, exponent)
    # The power of an integer to a negative one rounds to 0 but for 1 and -1.
    value = np.power(input, np.maximum(exponent, 0))
    unit = np.where(input == 1, 1, np.where(input == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, unit, value)


@op(
    shape=broadcast,
    kernel=elementwise(
        "power(input, exponent)",
        i32="power_i32(input, exponent)",
        u32="power_u32(input, exponent)",
        i64="i64_power(input, exponent)",
    ),
    reference=_power_reference,
    check=_check_exponent,
    grad={"input": _power_grad_input, "exponent": _power_grad_exponent},
)
def pow(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Power: ``out = input ** exponent``.

    Args:
        input: the base.
        exponent: tensor or number; integers to negative integer powers are refused.

    Source: https://pytorch.org/docs/stable/generated/torch.pow.html
    """


@op(
    dtype=_no_bool,
    shape=broadcast,
    kernel=elementwise("-input", u32="0u - input", i64="i64_neg(input)"),
    reference=np.negative,
    grad={"input": lambda g: -g},
)
def neg(input: Tensor) -> Tensor:
    """Negative: ``out = -input``.

    Source: https://pytorch.org/docs/stable/generated/torch.neg.html
    """


def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    return input


def _share(g, chosen, tie):
    return g * (chosen.to(g.dtype) + tie.to(g.dtype) * 0.5)


@op(
    shape=broadcast,
    kernel=elementwise(
        "nan_max(input, other)",
        i32="max(input, other)",
        u32="max(input, other)",
        i64="select(input, other, i64_lt(input, other))",
        boolean="input || other",
    ),
    reference=np.maximum,
    grad={
        "input": lambda g, input, other: _share(g, input > other, input == other),
        "other": lambda g, input, other: _share(g, other > input, input == other),
    },
)
def maximum(input: Tensor | float, other: Tensor | float) -> Tensor:
    """The larger of two, element by element; NaN if one is NaN.

    Source: https://pytorch.org/docs/stable/generated/torch.maximum.html
    """


@op(
    shape=broadcast,
    kernel=elementwise(
        "nan_min(input, other)",
        i32="min(input, other)",
        u32="min(input, other)",
        i64="select(other, input, i64_lt(input, other))",
        boolean="input && other",
    ),
    reference=np.minimum,
    grad={
        "input": lambda g, input, other: _share(g, input < other, input == other),
        "other": lambda g, input, other: _share(g, other < input, input == other),
    },
)
def minimum(input: Tensor | float, other: Tensor | float) -> Tensor:
    """The smaller of two, element by element; NaN if one is NaN.

    Source: https://pytorch.org/docs/stable/generated/torch.minimum.html
    """


def _clamp_text(low: str, high: str):
    def text(call: Call) -> str:
        expression = "input"
        if call["min"] is not type(None):
            expression = low.format(expression)
        if call["max"] is not type(None):
            expression = high.format(expression)
        return expression

    return text


def _clamp_types(call: Call):
    if call["min"] is type(None) and call["max"] is type(None):
        raise ValueError("clamp: at least one of min and max must be given.")
    return promote(call)


def _clamp_reference(input, min, max):
    out = input
    if min is not None:
        out = np.maximum(out, min)
    if max is not None:
        out = np.minimum(out, max)
    return out


def _clamp_grad(g, input, min, max):
    if min is not None:
        g = g * (input >= min).to(g.dtype)
    return g if max is None else g * (input <= max).to(g.dtype)


@op(
    dtype=_clamp_types,
    shape=broadcast,
    kernel=elementwise(
        _clamp_text("nan_max({}, {{min}})", "nan_min({}, {{max}})"),
        i32=_clamp_text("max({}, {{min}})", "min({}, {{max}})"),
        i64=_clamp_text("i64_max({}, {{min}})", "i64_min({}, {{max}})"),
    ),
    reference=_clamp_reference,
    grad={
        "input": _clamp_grad,
        "min": lambda g, input, min: g * (input < min).to(g.dtype),
        "max": lambda g, input, max: g * (input > max).to(g.dtype),
    },
)
def clamp(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Values moved into ``[min, max]``.

    Args:
        input: any tensor.
        min, max: numbers or tensors; at least one.

    Source: https://pytorch.org/docs/stable/generated/torch.clamp.html
    """


clip = clamp


def _integer_only(call: Call):
    found = promote(call)
    if found[0].is_floating_point:
        raise DTypeError(f"bitwise operations take integers and bools, not {found[0]}. Convert first.")
    return found


@op(
    dtype=_integer_only,
    shape=broadcast,
    kernel=elementwise("input & other", i64="input & other", boolean="input && other"),
    reference=np.bitwise_and,
    grad=None,
)
def bitwise_and(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Bitwise and; logical for bools."""


@op(
    dtype=_integer_only,
    shape=broadcast,
    kernel=elementwise("input | other", i64="input | other", boolean="input || other"),
    reference=np.bitwise_or,
    grad=None,
)
def bitwise_or(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Bitwise or; logical for bools."""


@op(
    dtype=_integer_only,
    shape=broadcast,
    kernel=elementwise("input ^ other", i64="input ^ other", boolean="input != other"),
    reference=np.bitwise_xor,
    grad=None,
)
def bitwise_xor(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Bitwise exclusive or; logical for bools."""


@op(
    dtype=_integer_only,
    shape=broadcast,
    kernel=elementwise("~input", i64="~input", boolean="!input"),
    reference=np.invert,
    grad=None,
)
def bitwise_not(input: Tensor) -> Tensor:
    """Every bit inverted; logical not for bools."""


def _left_shift(input, other):
    bits = 8 * input.dtype.itemsize
    fits = (other >= 0) & (other < bits)
    return np.where(fits, np.left_shift(input, np.where(fits, other, 0)), 0)


def _right_shift(input, other):
    bits = 8 * input.dtype.itemsize
    fits = (other >= 0) & (other < bits)
    gone = np.where(input < 0, -1, 0).astype(input.dtype)
    return np.where(fits, np.right_shift(input, np.where(fits, other, 0)), gone)


@op(
    dtype=_integer_only,
    shape=broadcast,
    kernel=elementwise(
        "shift_left_i32(input, other)",
        u32="shift_left_u32(input, other)",
        i64="i64_shift_left(input, i64_places(other))",
    ),
    reference=_left_shift,
    grad=None,
)
def bitwise_left_shift(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Bits moved up by ``other`` places."""


@op(
    dtype=_integer_only,
    shape=broadcast,
    kernel=elementwise(
        "shift_right_i32(input, other)",
        u32="shift_right_u32(input, other)",
        i64="i64_shift_right(input, i64_places(other))",
    ),
    reference=_right_shift,
    grad=None,
)
def bitwise_right_shift(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Bits moved down by ``other`` places; signed numbers keep their sign."""


def _lerp_grad_weight(g, input, end):
    return g * (end - input)


@op(
    dtype=floating,
    shape=broadcast,
    kernel=elementwise("input + weight * (end - input)", i32=False),
    reference=lambda input, end, weight: input + weight * (end - input),
    grad={
        "input": lambda g, weight: g * (1 - weight),
        "end": lambda g, weight: g * weight,
        "weight": _lerp_grad_weight,
    },
)
def lerp(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Linear interpolation: ``out = input + weight * (end - input)``.

    Source: https://pytorch.org/docs/stable/generated/torch.lerp.html
    """


@op(
    shape=broadcast,
    kernel=elementwise(
        "input + {value} * tensor1 * tensor2",
        i64="i64_add(input, i64_mul({value}, i64_mul(tensor1, tensor2)))",
    ),
    reference=lambda input, tensor1, tensor2, value: input + value * tensor1 * tensor2,
    grad={
        "input": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * tensor2 * value,
        "tensor2": lambda g, tensor1, value: g * tensor1 * value,
    },
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``out = input + value * tensor1 * tensor2``.

    Source: https://pytorch.org/docs/stable/generated/torch.addcmul.html
    """


@op(
    dtype=floating,
    shape=broadcast,
    kernel=elementwise("input + {value} * (tensor1 / tensor2)", i32=False),
    reference=lambda input, tensor1, tensor2, value: input + value * (tensor1 / tensor2),
    grad={
        "input": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * value / tensor2,
        "tensor2": lambda g, tensor1, tensor2, value: -g * value * tensor1 / (tensor2 * tensor2),
    },
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``out = input + value * tensor1 / tensor2``.

    Source: https://pytorch.org/docs/stable/generated/torch.addcdiv.html
    """


METHODS = (
    "add sub mul div true_divide floor_divide remainder fmod pow neg positive maximum minimum clamp clip "
    "lerp addcmul addcdiv bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift "
    "bitwise_right_shift"
)
IN_PLACE = (
    "add sub mul true_divide floor_divide remainder fmod pow neg clamp lerp addcmul addcdiv bitwise_and "
    "bitwise_or bitwise_xor bitwise_not"
)
