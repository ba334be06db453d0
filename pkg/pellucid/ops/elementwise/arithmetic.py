"""Arithmetic, element by element: sums, products, powers. Quotients are in division.py."""

from __future__ import annotations

import cmath
import math

import numpy as np

from ...autograd.formulas import without, zeros
from ...errors import DTypeError
from ...op.declaration import Call, elementwise, function, op
from ...op.families import binary, unary
from ...op.rules import floating, of_one_dtype, promote, refuse_complex
from ...tensors import dtypes as dt
from ...tensors.meta import Meta
from ...tensors.tensor import Tensor


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
    kernel=elementwise(
        "input + alpha * other",
        i64="i64_add(input, i64_mul(alpha, other))",
        boolean="input || (alpha && other)",
        c64="input + complex_times(alpha, other)",
    ),
    reference=lambda input, other, alpha: np.add(
        input, other if alpha == 1 else np.multiply(alpha, other, dtype=np.asarray(other).dtype)
    ),
    grad={"input": lambda g: g, "other": lambda g, alpha: g if alpha == 1 else g * alpha},
    fits=("alpha",),
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

    Example:
        >>> import pellucid as torch
        >>> torch.add(torch.tensor([1, 2], device="cpu"), 10).tolist()
        [11, 12]
    """


@op(
    dtype=_no_bool,
    kernel=elementwise(
        "input - alpha * other",
        i64="i64_sub(input, i64_mul(alpha, other))",
        c64="input - complex_times(alpha, other)",
    ),
    reference=lambda input, other, alpha: np.subtract(
        input, other if alpha == 1 else np.multiply(alpha, other, dtype=np.asarray(other).dtype)
    ),
    grad={"input": lambda g: g, "other": lambda g, alpha: g * -alpha},
    fits=("alpha",),
    in_place=True,
    aten=("sub.Tensor", "sub.Scalar(self, other, alpha=1)"),
)
def sub(input: Tensor | float, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Difference: ``out = input - alpha * other``."""


@function(aten=("rsub.Tensor", "rsub.Scalar(self, other, alpha=1)"))
def rsub(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """``other - alpha * input``."""
    return sub(other, input, alpha=alpha)


mul = binary(
    "mul",
    elementwise(
        "input * other", i64="i64_mul(input, other)", boolean="input && other",
        c64="complex_mul(input, other)", wide=("other",),
    ),
    np.multiply, {"input": lambda g, other: g * other, "other": lambda g, input: g * input},
    "Product: ``out = input * other``.",
)  # fmt: skip


def _power_grad_exponent(g, input, exponent, out):
    if not isinstance(input, (int, float, complex)):
        return g * without(out * input.log(), (input == 0) & (exponent.real >= 0))
    if isinstance(input, complex) or out.is_complex():
        slope = out * (cmath.log(input) if input else -math.inf)
    else:
        slope = out * (math.log(input) if input > 0 else math.nan if input < 0 else -math.inf)
    return g * (without(slope, exponent.real >= 0) if input == 0 else slope)


def _power_grad_input(g, input, exponent):
    if isinstance(exponent, (int, float)):
        return zeros(g) if exponent == 0 else g * (exponent * input ** (exponent - 1))
    return without(g * (exponent * input ** (exponent - 1)), exponent == 0)


def _check_exponent(input, exponent):
    is_negative = isinstance(exponent, int) and exponent < 0
    if is_negative and not (type(input) is float or input._meta.dtype.kind in "fc"):
        raise DTypeError(
            "pow: integers to negative integer powers are not allowed. Convert with .float() first."
        )


# In float16 PyTorch computes powers of numbers as those of tensors; in all others half of one is a root.
def _power_text(call: Call) -> str:
    is_number = not isinstance(call["exponent"], Meta) and call.compute is not dt.float16
    return f"{'power_of_number' if is_number else 'power'}(input, exponent)"


def _power_types(call: Call):
    """The common type. PyTorch has powers of bools with a number for the exponent only."""
    found = promote(call)
    if found[0] is dt.bool_ and isinstance(call["exponent"], Meta):
        raise DTypeError("bool tensors have no bool tensors as exponents. Convert one of them with .int().")
    return found


def _power_reference(input, exponent, *, compute=None):
    if np.asarray(exponent).dtype.kind != "i":
        if isinstance(exponent, np.ndarray) or abs(exponent) != 0.5 or compute is dt.float16:
            power = np.power(input, exponent)
            if power.dtype.kind != "f":
                # numpy multiplies infinities for whole exponents, which makes NaN.
                return np.where(np.isinf(input), np.exp(exponent * np.log(input)), power)
            # numpy takes the root where one exponent is for all: it keeps the sign of -0.0, and -inf is NaN.
            rooted = (np.abs(exponent) == 0.5) & ((input == 0) | np.isinf(input))
            return np.where(rooted, np.where(exponent > 0, np.abs(input), 1 / np.abs(input)), power)
        root = np.sqrt(input)
        return root if exponent > 0 else 1 / root
    # The power of an integer to a negative one rounds to 0 but for 1 and -1.
    value = np.power(input, np.maximum(exponent, 0))
    unit = np.where(input == 1, 1, np.where(input == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, unit, value)


@op(
    dtype=_power_types,
    kernel=elementwise(
        _power_text,
        i32="power_i32(input, exponent)",
        u32="power_u32(input, exponent)",
        i64="i64_power(input, exponent)",
        boolean="input || !exponent",
        c64="complex_power(input, exponent)",
    ),
    reference=_power_reference,
    check=_check_exponent,
    fits=("exponent",),
    grad={"input": _power_grad_input, "exponent": _power_grad_exponent},
    in_place=True,
    aten=("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar"),
)
def pow(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Power: ``out = input ** exponent``.

    Args:
        input: the base.
        exponent: tensor or number; integers to negative integer powers are refused, and bools to powers that
            are tensors of bools.
    """


@function(method=True, aten=("float_power.Tensor_Tensor", "float_power.Tensor_Scalar", "float_power.Scalar"))
def float_power(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """`pow` in float64, of complex numbers in complex128.

    Raises:
        DTypeError: on the webgpu device, unless `webgpu.set_float64_precision` lets these types in.
    """
    both = input, exponent
    whole = any(v.is_complex() if isinstance(v, Tensor) else isinstance(v, complex) for v in both)
    d = dt.complex128 if whole else dt.float64
    return pow(*[v.to(d) if isinstance(v, Tensor) else v for v in both])


@function(exports=None, method=True, ours="an in-place form, as those of declarations")
def float_power_(input: Tensor, exponent: Tensor | float) -> Tensor:
    """In-place form of `float_power`, of tensors that have its dtype.

    Raises:
        DTypeError: the tensor is neither float64 nor complex128.
    """
    out = float_power(input.clone() if input.requires_grad else input, exponent)
    if out.dtype is not input.dtype:
        raise DTypeError(f"float_power_: the result is {out.dtype}, the tensor {input.dtype}. Use pow_.")
    return input.copy_(out)


neg = unary(
    "neg", elementwise("-input", u32="0u - input", i64="i64_neg(input)", c64="-input"), np.negative,
    lambda g: -g,
    "Negative: ``out = -input``.", dtype=_no_bool, takes="any dtype but bool",
)  # fmt: skip


@function(method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself.

    Raises:
        DTypeError: it is bool.
    """
    if input._meta.dtype.kind == "b":
        raise DTypeError("positive: bool tensors have no sign. Convert with .int() first.")
    return input


def _lerp_types(call: Call):
    """Both ends have one floating-point dtype."""
    d = call["input"].dtype
    weight = call["weight"]
    of_one_dtype(call["input"], call["end"], weight if isinstance(weight, Meta) and weight.rank else None)
    if not (d.is_floating_point or d.is_complex):
        raise DTypeError(f"takes floating-point tensors, not {d}. Convert with .float().")
    refuse_complex(call["weight"], d)
    return d, d


# From the nearer end: exact at both, and what is infinite there stays so.
def _lerp(input, end, weight):
    near = np.abs(weight) < 0.5
    return np.where(near, input + weight * (end - input), end - (end - input) * (1 - weight))


# Compilers know this form and leave one end out where both are the same value, also where that is infinite.
# An index has no highest bit, which they do not know.
_END = "bitcast<f32>(bitcast<u32>(end) ^ (index >> 31u))"


@op(
    dtype=_lerp_types,
    kernel=elementwise(
        f"select(end - ({_END} - input) * (1.0 - weight), input + weight * ({_END} - input), "
        "abs(weight) < 0.5)",
        i32=False,
        c64="input + complex_mul(weight, end - input)",
        wide=("weight",),
    ),
    reference=_lerp,
    grad={
        "input": lambda g, weight: g * (1 - weight),
        "end": lambda g, weight: g * weight,
        "weight": lambda g, input, end: g * (end - input),
    },
    exact=("weight",),
    in_place=True,
    aten=("lerp.Scalar", "lerp.Tensor"),
)
def lerp(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Linear interpolation: ``out = input + weight * (end - input)``."""


@op(
    kernel=elementwise(
        "input + {value} * tensor1 * tensor2",
        i64="i64_add(input, i64_mul({value}, i64_mul(tensor1, tensor2)))",
        c64="input + complex_mul({value}, complex_mul(tensor1, tensor2))",
    ),
    reference=lambda input, tensor1, tensor2, value: input + value * tensor1 * tensor2,
    grad={
        "input": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * tensor2 * value,
        "tensor2": lambda g, tensor1, value: g * tensor1 * value,
    },
    exact=("value",),
    in_place=True,
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``out = input + value * tensor1 * tensor2``."""


def _quotient_types(call: Call):
    """The common type; of two integers PyTorch leaves open which quotient is meant."""
    if not any(call[name].dtype.kind in "fc" for name in ("tensor1", "tensor2")):
        raise DTypeError("tensor1 and tensor2 are integers or bools. Convert one of them with .float().")
    return floating(call)


@op(
    dtype=_quotient_types,
    kernel=elementwise(
        "input + {value} * ratio_of(tensor1, tensor2)",
        i32=False,
        c64="input + complex_mul({value}, complex_div(tensor1, tensor2))",
    ),
    reference=lambda input, tensor1, tensor2, value: input + value * (tensor1 / tensor2),
    grad={
        "input": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * value / tensor2,
        "tensor2": lambda g, tensor1, tensor2, value: -g * value * tensor1 / (tensor2 * tensor2),
    },
    in_place=True,
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``out = input + value * tensor1 / tensor2``."""
