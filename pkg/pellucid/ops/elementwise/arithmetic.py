"""Arithmetic, element by element: sums, products, powers, divisions, extremes, bits."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...autograd.formulas import refused, without, zeros
from ...errors import DTypeError, RangeError
from ...op.arguments import named, wrong
from ...op.call import Call
from ...op.declaration import op
from ...op.elementwise import elementwise
from ...op.families import binary, of_tensor, of_tensors, unary
from ...op.public import function
from ...op.rules import broadcast, floating, ordered, promote
from ...tensors import dtypes as dt
from ...tensors.meta import Meta
from ...tensors.tensor import Tensor
from .comparison import where

_ANY_REAL, _INTEGERS = "any real dtype", "integers or bools"


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
    if call.args.get("alpha") is bool and found[0].kind != "b":
        raise DTypeError(f"alpha is a bool and the result is {found[0]}. Give a number.")
    if call.args.get("alpha") is float and not (found[0].is_floating_point or found[0].is_complex):
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
    fits=("alpha",),
    method=True,
    in_place=True,
    aten=("add.Tensor", "add.Scalar(self, other, alpha=1)"),
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
    fits=("alpha",),
    method=True,
    in_place=True,
    aten=("sub.Tensor", "sub.Scalar(self, other, alpha=1)"),
)
def sub(input: Tensor | float, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Difference: ``out = input - alpha * other``.

    Source: https://pytorch.org/docs/stable/generated/torch.sub.html
    """


@function(aten=("rsub.Tensor", "rsub.Scalar(self, other, alpha=1)"))
def rsub(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """``other - alpha * input``."""
    if not hasattr(input, "_meta"):
        raise named("rsub", wrong("input", "Tensor", input))
    return sub(other, input, alpha=alpha)


mul = binary(
    "mul",
    elementwise("input * other", i64="i64_mul(input, other)", boolean="input && other", wide=("other",)),
    np.multiply, {"input": lambda g, other: g * other, "other": lambda g, input: g * input},
    "Product: ``out = input * other``.",
)  # fmt: skip


@op(
    dtype=floating,
    shape=broadcast,
    kernel=elementwise("input / other", i32=False, wide=("other",)),
    reference=np.true_divide,
    # From the inputs, as in PyTorch: the result may be changed in place afterwards.
    grad={
        "input": lambda g, other: g / other,
        "other": lambda g, input, other: -g * ((input / other) / other),
    },
    method=True,
    in_place=("true_divide_", "div_"),
    aten=("true_divide.Tensor", "true_divide.Scalar"),
)
def true_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient: ``out = input / other``, floating point for integers too.

    Source: https://pytorch.org/docs/stable/generated/torch.true_divide.html
    """


@function(method=True, aten=("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode"))
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
        return floor_quotient(input, other)
    if rounding_mode == "trunc":
        return trunc_divide(input, other)
    raise ValueError(f"div: rounding_mode must be None, 'trunc' or 'floor', not {rounding_mode!r}.")


_FLOOR_DIVIDE = elementwise(
    "floor_divide_of(input, other)",
    i32="floor_divide_i32(input, other)",
    u32="divide_u32(input, other)",
    i64="i64_floor_divide(input, other)",
    wide=("other",),
)
_NO_FLOOR_DIVIDE = refused(
    "floor_divide", "Use div(rounding_mode='floor'), whose derivative is 0, or detach what is divided."
)
_STEPS = dict.fromkeys(("input", "other"), zeros)


floor_divide = binary(
    "floor_divide", _FLOOR_DIVIDE, np.floor_divide, dict.fromkeys(("input", "other"), _NO_FLOOR_DIVIDE),
    "Quotient rounded down: ``out = floor(input / other)``.", dtype=ordered, takes=_ANY_REAL,
    aten=("floor_divide.default", "floor_divide.Scalar"),
)  # fmt: skip


@op(public="div", shape=broadcast, kernel=_FLOOR_DIVIDE, reference=np.floor_divide, grad=_STEPS)
def floor_quotient(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient rounded down, what ``div(..., rounding_mode="floor")`` computes: its derivative is 0."""


def _trunc_reference(input, other):
    if np.asarray(input).dtype.kind == "f":
        return np.trunc(np.divide(input, other))
    quotient = np.floor_divide(input, other)
    return quotient + ((quotient < 0) & (quotient * other != input)).astype(quotient.dtype)


@op(
    dtype=ordered,
    public="div",
    shape=broadcast,
    kernel=elementwise(
        "trunc_divide_of(input, other)",
        i32="trunc_divide_i32(input, other)",
        u32="divide_u32(input, other)",
        i64="i64_trunc_divide(input, other)",
        wide=("other",),
    ),
    reference=_trunc_reference,
    grad=_STEPS,
)
def trunc_divide(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Quotient rounded toward zero, what ``div(..., rounding_mode="trunc")`` computes."""


remainder = binary(
    "remainder",
    elementwise(
        "remainder_of(input, other)",
        i32="remainder_i32(input, other)",
        u32="remainder_u32(input, other)",
        i64="i64_remainder(input, other)",
    ),
    np.remainder,
    {"input": lambda g: g, "other": lambda g, input, other: -g * floor_quotient(input, other)},
    "Remainder with the sign of ``other``, as Python's ``%``.",
    dtype=ordered,
    takes=_ANY_REAL,
    aten=("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor"),
)

fmod = binary(
    "fmod",
    elementwise(
        "fmod_of(input, other)",
        i32="fmod_i32(input, other)",
        u32="remainder_u32(input, other)",
        i64="i64_fmod(input, other)",
    ),
    np.fmod,
    {"input": lambda g: g, "other": lambda g, input, other: -g * trunc_divide(input, other)},
    "Remainder with the sign of ``input``, as C's ``fmod``.",
    form=of_tensor,
    dtype=ordered,
    takes=_ANY_REAL,
)


def _power_grad_exponent(g, input, exponent, out):
    if isinstance(input, (int, float)):
        slope = out * (math.log(input) if input > 0 else math.nan if input < 0 else -math.inf)
        return g * (without(slope, exponent >= 0) if input == 0 else slope)
    return g * without(out * input.log(), (input == 0) & (exponent >= 0))


def _power_grad_input(g, input, exponent):
    if isinstance(exponent, (int, float)):
        return zeros(g) if exponent == 0 else g * (exponent * input ** (exponent - 1))
    return without(g * (exponent * input ** (exponent - 1)), exponent == 0)


def _check_exponent(input, exponent):
    if isinstance(exponent, int) and exponent < 0 and not (type(input) is float or _is_floating(input)):
        raise DTypeError(
            "pow: integers to negative integer powers are not allowed. Convert with .float() first."
        )


def _is_floating(x) -> bool:
    return x._meta.dtype.kind in "fc"


# In float16 PyTorch computes powers of numbers as those of tensors; in all others half of one is a root.
def _power_text(call: Call) -> str:
    is_number = not isinstance(call["exponent"], Meta) and call.compute is not dt.float16
    return f"{'power_of_number' if is_number else 'power'}(input, exponent)"


def _power_reference(input, exponent):
    if np.asarray(exponent).dtype.kind != "i":
        if isinstance(exponent, np.ndarray) or abs(exponent) != 0.5:
            return np.power(input, exponent)
        root = np.sqrt(input)
        return root if exponent > 0 else 1 / root
    # The power of an integer to a negative one rounds to 0 but for 1 and -1.
    value = np.power(input, np.maximum(exponent, 0))
    unit = np.where(input == 1, 1, np.where(input == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, unit, value)


@op(
    shape=broadcast,
    kernel=elementwise(
        _power_text,
        i32="power_i32(input, exponent)",
        u32="power_u32(input, exponent)",
        i64="i64_power(input, exponent)",
    ),
    reference=_power_reference,
    check=_check_exponent,
    fits=("exponent",),
    grad={"input": _power_grad_input, "exponent": _power_grad_exponent},
    method=True,
    in_place=True,
    aten=("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar"),
)
def pow(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Power: ``out = input ** exponent``.

    Args:
        input: the base.
        exponent: tensor or number; integers to negative integer powers are refused.

    Source: https://pytorch.org/docs/stable/generated/torch.pow.html
    """


neg = unary(
    "neg", elementwise("-input", u32="0u - input", i64="i64_neg(input)"), np.negative, lambda g: -g,
    "Negative: ``out = -input``.", dtype=_no_bool, takes="any dtype but bool",
)  # fmt: skip


@function(method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself.

    Raises:
        DTypeError: it is bool.
    """
    if input.dtype.kind == "b":
        raise DTypeError("positive: bool tensors have no sign. Convert with .int() first.")
    return input


def _share(g, input, other, beaten):
    """The gradient of what was chosen; equal ones have half of it, NaN and what it hides all."""
    return without(where(input == other, g / 2, g), beaten)


maximum = binary(
    "maximum",
    elementwise(
        "nan_max(input, other)",
        i32="max(input, other)",
        u32="max(input, other)",
        i64="select(input, other, i64_lt(input, other))",
        boolean="input || other",
    ),
    np.maximum,
    {
        "input": lambda g, input, other: _share(g, input, other, input < other),
        "other": lambda g, input, other: _share(g, input, other, other < input),
    },
    "The larger of two, element by element; NaN if one is NaN.",
    form=of_tensors,
    dtype=ordered,
    takes=_ANY_REAL,
    in_place=False,
)

minimum = binary(
    "minimum",
    elementwise(
        "nan_min(input, other)",
        i32="min(input, other)",
        u32="min(input, other)",
        i64="select(other, input, i64_lt(input, other))",
        boolean="input && other",
    ),
    np.minimum,
    {
        "input": lambda g, input, other: _share(g, input, other, input > other),
        "other": lambda g, input, other: _share(g, input, other, other > input),
    },
    "The smaller of two, element by element; NaN if one is NaN.",
    form=of_tensors,
    dtype=ordered,
    takes=_ANY_REAL,
    in_place=False,
)


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
        raise RangeError("at least one of min and max must be given.")
    return ordered(call)


def _clamp_reference(input, min, max):
    out = input
    if min is not None:
        out = np.maximum(out, min)
    if max is not None:
        out = np.minimum(out, max)
    return out


def _clamp_grad(g, input, min, max):
    """Also at the bounds the gradient is that of the input; where they cross, the upper one counts."""
    inside = None if min is None else input >= min
    if max is not None:
        inside = input <= max if inside is None else inside & (input <= max)
    return where(inside, g, 0.0)


def _clamp_grad_min(g, input, min, max):
    below = input < min
    return where(below if max is None else below & (min < max), g, 0.0)


def _clamp_grad_max(g, input, min, max):
    above = input > max
    return where(above if min is None else above | (max < min), g, 0.0)


@op(
    dtype=_clamp_types,
    shape=broadcast,
    kernel=elementwise(
        _clamp_text("nan_max({}, {{min}})", "nan_min({}, {{max}})"),
        i32=_clamp_text("max({}, {{min}})", "min({}, {{max}})"),
        i64=_clamp_text("i64_max({}, {{min}})", "i64_min({}, {{max}})"),
    ),
    reference=_clamp_reference,
    grad={"input": _clamp_grad, "min": _clamp_grad_min, "max": _clamp_grad_max},
    exact=("min", "max"),
    fits=("min", "max"),
    method=True,
    aliases=("clip",),
    in_place=True,
    aten=("clamp.default", "clamp.Tensor"),
)
def clamp(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Values moved into ``[min, max]``.

    Args:
        input: any tensor.
        min, max: numbers or tensors; at least one.

    Source: https://pytorch.org/docs/stable/generated/torch.clamp.html
    """


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


def _shift(name: str, to: str, reference, sentence: str):
    """Declare a shift of bits."""
    kernel = elementwise(
        f"shift_{to}_i32(input, other)",
        u32=f"shift_{to}_u32(input, other)",
        i64=f"i64_shift_{to}(input, i64_places(other))",
    )
    options: dict[str, Any] = {"dtype": _integer_only, "takes": _INTEGERS, "at": ([7, -6], [2, 1])}
    options |= {
        "in_place": False,
        "aten": (f"{name}.Tensor", f"{name}.Tensor_Scalar", f"{name}.Scalar_Tensor"),
    }
    return binary(name, kernel, reference, None, sentence, **options)


bitwise_left_shift = _shift("bitwise_left_shift", "left", _left_shift, "Bits moved up by ``other`` places.")
bitwise_right_shift = _shift(
    "bitwise_right_shift",
    "right",
    _right_shift,
    "Bits moved down by ``other`` places; signed numbers keep their sign.",
)


def _lerp_types(call: Call):
    """Both ends have one floating-point dtype."""
    d, end = call["input"].dtype, call["end"].dtype
    if d is not end:
        raise DTypeError(f"input is {d} and end is {end}. They must be equal; convert one of them.")
    if not (d.is_floating_point or d.is_complex):
        raise DTypeError(f"takes floating-point tensors, not {d}. Convert with .float().")
    return d, d


def _lerp_grad_weight(g, input, end):
    return g * (end - input)


# From the nearer end: exact at both, and what is infinite there stays so.
def _lerp(input, end, weight):
    near = np.abs(weight) < 0.5
    return np.where(near, input + weight * (end - input), end - (end - input) * (1 - weight))


# Compilers know this form and leave one end out where both are the same value, also where that is infinite.
# An index has no highest bit, which they do not know.
_END = "bitcast<f32>(bitcast<u32>(end) ^ (index >> 31u))"


@op(
    dtype=_lerp_types,
    shape=broadcast,
    kernel=elementwise(
        f"select(end - ({_END} - input) * (1.0 - weight), input + weight * ({_END} - input), "
        "abs(weight) < 0.5)",
        i32=False,
        wide=("weight",),
    ),
    reference=_lerp,
    grad={
        "input": lambda g, weight: g * (1 - weight),
        "end": lambda g, weight: g * weight,
        "weight": _lerp_grad_weight,
    },
    exact=("weight",),
    method=True,
    in_place=True,
    aten=("lerp.Scalar", "lerp.Tensor"),
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
    exact=("value",),
    method=True,
    in_place=True,
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``out = input + value * tensor1 * tensor2``.

    Source: https://pytorch.org/docs/stable/generated/torch.addcmul.html
    """


def _quotient_types(call: Call):
    """The common type; of two integers PyTorch leaves open which quotient is meant."""
    if not any(call[name].dtype.kind in "fc" for name in ("tensor1", "tensor2")):
        raise DTypeError("tensor1 and tensor2 are integers or bools. Convert one of them with .float().")
    return floating(call)


@op(
    dtype=_quotient_types,
    shape=broadcast,
    kernel=elementwise("input + {value} * (tensor1 / tensor2)", i32=False),
    reference=lambda input, tensor1, tensor2, value: input + value * (tensor1 / tensor2),
    grad={
        "input": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * value / tensor2,
        "tensor2": lambda g, tensor1, tensor2, value: -g * value * tensor1 / (tensor2 * tensor2),
    },
    method=True,
    in_place=True,
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``out = input + value * tensor1 / tensor2``.

    Source: https://pytorch.org/docs/stable/generated/torch.addcdiv.html
    """
