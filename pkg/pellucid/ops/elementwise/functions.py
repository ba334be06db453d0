"""Functions of one number, element by element: exponentials, roots, trigonometry, rounding, activations."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import erf as _erf_of
from math import erfc as _erfc_of
from math import isfinite, pi
from math import sqrt as _root

import numpy as np

from ...autograd.composed import composed
from ...autograd.formulas import without, zeros
from ...errors import DTypeError, RangeError
from ...op.arguments import number
from ...op.call import Call
from ...op.declaration import op
from ...op.elementwise import elementwise
from ...op.families import activation, binary, of_tensors, unary
from ...op.public import function
from ...op.rules import as_input, float_only, floating, ordered, promote, real, refusing
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor
from .comparison import where

_erf = np.vectorize(_erf_of, otypes=[np.float64])
_erfc = np.vectorize(_erfc_of, otypes=[np.float64])
_SQRT_PI = _root(pi)
# Of real numbers only.
_REAL = refusing(floating, "c")
_ANY_REAL = "any real dtype; integers and bools become the default float"


def _size_types(call: Call):
    """The type of the input; complex numbers have a size that is a float."""
    d, compute = refusing(promote, "b")(call)
    return {dt.complex64: dt.float32, dt.complex128: dt.float64}.get(d, d), compute


def _size_grad(g, input):
    if input._meta.dtype.is_complex:
        return g * (input / input.abs()).masked_fill(input == 0, 0.0)
    return g * input.sign()


abs = unary(
    "abs", elementwise("abs(input)", u32="input", i64="i64_abs(input)"), np.abs, _size_grad,
    "Absolute value.", dtype=_size_types, takes="any dtype but bool; of complex numbers the result is real",
    at=-0.5,
)  # fmt: skip

sign = unary(
    "sign",
    elementwise(
        "select(sign(input), 0.0, is_nan(input))",
        i32="sign(input)",
        u32="min(input, 1u)",
        i64="i64_sign(input)",
        boolean="input",
    ),
    lambda input: (input > 0).astype(input.dtype) - (input < 0) if input.dtype.kind != "b" else input,
    zeros,
    "-1, 0 or 1 by the sign of the value; 0 for NaN.",
    dtype=ordered,
    takes="any real dtype",
    at=-0.5,
)

sqrt = unary("sqrt", "sqrt(input)", np.sqrt, lambda g, out: g * 0.5 / out, "Square root.")

rsqrt = unary(
    "rsqrt", "1.0 / sqrt(input)", lambda input: 1 / np.sqrt(input),
    lambda g, out: g * -0.5 * out * out * out, "``1 / sqrt(input)``.",
)  # fmt: skip

reciprocal = unary(
    "reciprocal", "1.0 / input", lambda input: 1 / input, lambda g, out: -g * out * out, "``1 / input``."
)


def _square_types(call: Call):
    """The power of an integer: bools become int64."""
    d = dt.result_type([call["input"].dtype], [], [int])
    return d, d


square = unary(
    "square", elementwise("input * input", i64="i64_mul(input, input)", boolean="input"), np.square,
    lambda g, input: g * 2 * input, "``input * input``.", dtype=_square_types,
    takes="any dtype; bools become int64",
)  # fmt: skip

exp = unary("exp", "exp_of(input)", np.exp, lambda g, out: g * out, "``e ** input``.")
exp2 = unary(
    "exp2", "exp2_of(input)", np.exp2, lambda g, out: g * out * 0.6931471805599453, "``2 ** input``."
)
expm1 = unary(
    "expm1", "expm1_of(input)", np.expm1, lambda g, out: g * (out + 1),
    "``e ** input - 1``, accurate near zero.",
)  # fmt: skip

log = unary("log", "log_of(input)", np.log, lambda g, input: g / input, "Natural logarithm.")
log2 = unary(
    "log2", "log2_of(input)", np.log2, lambda g, input: g / (input * 0.6931471805599453),
    "Logarithm to base 2.",
)  # fmt: skip
log10 = unary(
    "log10", "log10_of(input)", np.log10, lambda g, input: g / (input * 2.302585092994046),
    "Logarithm to base 10.",
)  # fmt: skip
log1p = unary(
    "log1p", "log1p_of(input)", np.log1p, lambda g, input: g / (input + 1),
    "``log(1 + input)``, accurate near zero.",
)  # fmt: skip

sin = unary("sin", "sin_of(input)", np.sin, lambda g, input: g * input.cos(), "Sine of an angle in radians.")
cos = unary(
    "cos", "cos_of(input)", np.cos, lambda g, input: -g * input.sin(), "Cosine of an angle in radians."
)
tan = unary(
    "tan", "tan_of(input)", np.tan, lambda g, out: g * (out * out + 1), "Tangent of an angle in radians."
)
asin = unary(
    "asin", "asin_of(input)", np.arcsin, lambda g, input: g * (1 - input * input).rsqrt(),
    "Angle in radians whose sine is the value.",
)  # fmt: skip
acos = unary(
    "acos", "acos_of(input)", np.arccos, lambda g, input: -g * (1 - input * input).rsqrt(),
    "Angle in radians whose cosine is the value.",
)  # fmt: skip
atan = unary(
    "atan", "atan_of(input)", np.arctan, lambda g, input: g / (input * input + 1),
    "Angle in radians whose tangent is the value.",
)  # fmt: skip


def _inverse_square(a, b):
    """One over the square of the distance from the origin, where it is taken as 0."""
    return (a * a + b * b).reciprocal().masked_fill((a == 0) & (b == 0), 0.0)


atan2 = binary(
    "atan2",
    elementwise("atan2_of(input, other)", i32=False),
    np.arctan2,
    {
        "input": lambda g, input, other: g * (other * _inverse_square(input, other)),
        "other": lambda g, input, other: g * (-input * _inverse_square(input, other)),
    },
    "Angle in radians of the point (``other``, ``input``).",
    form=of_tensors,
    dtype=_REAL,
    takes=_ANY_REAL,
    at=(1.0, 1.0),
)

sinh = unary("sinh", "sinh_of(input)", np.sinh, lambda g, input: g * input.cosh(), "Hyperbolic sine.")
cosh = unary("cosh", "cosh_of(input)", np.cosh, lambda g, input: g * input.sinh(), "Hyperbolic cosine.")
tanh = unary(
    "tanh", "tanh_of(input)", np.tanh, lambda g, out: g * (1 - out * out), "Hyperbolic tangent.",
    exports=("torch", "nn.functional"),
)  # fmt: skip
asinh = unary(
    "asinh", "asinh_of(input)", np.arcsinh, lambda g, input: g * (input * input + 1).rsqrt(),
    "Inverse hyperbolic sine.",
)  # fmt: skip
acosh = unary(
    "acosh", "acosh_of(input)", np.arccosh, lambda g, input: g * (input * input - 1).rsqrt(),
    "Inverse hyperbolic cosine.", at=1.5,
)  # fmt: skip
atanh = unary(
    "atanh", "atanh_of(input)", np.arctanh, lambda g, input: g / (1 - input * input),
    "Inverse hyperbolic tangent.",
)  # fmt: skip

erf = unary(
    "erf", "erf_of(input)", lambda input: _erf(input).astype(input.dtype),
    lambda g, input: g * (2 / _SQRT_PI) * (-input * input).exp(),
    "Error function: ``2 / sqrt(pi) * integral of exp(-t^2) from 0 to input``.", dtype=_REAL,
    takes=_ANY_REAL,
)  # fmt: skip
erfc = unary(
    "erfc", "erfc_of(input)", lambda input: _erfc(input).astype(input.dtype),
    lambda g, input: g * (-2 / _SQRT_PI) * (-input * input).exp(),
    "``1 - erf(input)``, accurate for large values.", dtype=_REAL, takes=_ANY_REAL,
)  # fmt: skip


def _stable_sigmoid(input):
    e = np.exp(-np.abs(input))
    return np.where(input < 0, e, 1) / (1 + e)


sigmoid = unary(
    "sigmoid", "sigmoid_of(input)", _stable_sigmoid, lambda g, out: g * out * (1 - out),
    "``1 / (1 + exp(-input))``.", dtype=_REAL, takes=_ANY_REAL, exports=("torch", "nn.functional"),
)  # fmt: skip


def _rounding(name: str, reference, sentence: str):
    """Declare a rounding, which leaves integers as they are."""
    return unary(
        name,
        elementwise(f"{name}(input)", i32="input", i64="input"),
        lambda input: input if input.dtype.kind in "iu" else reference(input),
        zeros,
        sentence,
        dtype=real,
        at=-1.5,
    )


floor = _rounding("floor", np.floor, "Rounded down.")
ceil = _rounding("ceil", np.ceil, "Rounded up.")
round = _rounding("round", np.round, "Rounded to the nearest integer, halves to even.")
trunc = _rounding("trunc", np.trunc, "Rounded toward zero.")

frac = unary(
    "frac", "input - trunc(input)", lambda input: input - np.trunc(input), lambda g: g,
    "The part after the point: ``input - trunc(input)``.", dtype=float_only, at=1.75,
)  # fmt: skip


# Activations (torch.nn.functional shows those that torch itself does not)

relu = unary(
    "relu",
    elementwise(
        "select(input, 0.0, input < 0.0 && !is_nan(input))",
        i32="max(input, 0)",
        u32="input",
        i64="i64_max(input, vec2<u32>(0u))",
    ),
    lambda input: np.where(input < 0, 0, input).astype(input.dtype),
    lambda g, out: without(g, out <= 0),
    "``max(input, 0)``.",
    dtype=real,
    at=-0.5,
)


def _silu_grad(g, input):
    s = input.sigmoid()
    return g * s * (1 + input * (1 - s))


silu = activation(
    "silu", "silu_of(input)", lambda input: input * _stable_sigmoid(input), _silu_grad,
    "``input * sigmoid(input)``, also called swish.",
)  # fmt: skip


def _gelu_reference(input, approximate):
    if approximate == "tanh":
        return 0.5 * input * (1 + np.tanh(_root(2 / pi) * (input + 0.044715 * input**3)))
    return (0.5 * input * (1 + _erf(input / _root(2)))).astype(input.dtype)


def _gelu_grad(g, input, approximate):
    if approximate == "tanh":
        inner = _root(2 / pi) * (input + 0.044715 * input * input * input)
        t = inner.tanh()
        slope = _root(2 / pi) * (1 + 3 * 0.044715 * input * input)
        return g * (0.5 * (1 + t) + 0.5 * input * (1 - t * t) * slope)
    return g * (
        0.5 * (1 + (input / _root(2)).erf()) + input * (-0.5 * input * input).exp() * (1 / _root(2 * pi))
    )


def _gelu_types(call):
    if call["approximate"] not in ("none", "tanh"):
        raise RangeError(f"gelu: approximate must be 'none' or 'tanh', not {call['approximate']!r}.")
    return float_only(call)


def _gelu_text(call):
    if call["approximate"] == "tanh":
        return "0.5 * input * (1.0 + tanh_of(0.7978845608 * (input + 0.044715 * input * input * input)))"
    return "0.5 * input * erfc_of(input * -0.7071067812)"


@op(
    dtype=_gelu_types,
    shape=as_input,
    kernel=elementwise(_gelu_text, i32=False),
    reference=_gelu_reference,
    grad={"input": _gelu_grad},
    exports="nn.functional",
)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * Phi(input)`` with the normal distribution function Phi.

    Args:
        input: floating point.
        approximate: "none" for the exact form, "tanh" for the approximation that GPT-2 uses.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html
    """


@op(
    dtype=float_only,
    shape=as_input,
    kernel=elementwise("select(negative_slope * input, input, input > 0.0)", i32=False),
    reference=lambda input, negative_slope: np.where(input > 0, input, negative_slope * input),
    grad={"input": lambda g, input, negative_slope: where(input > 0, g, g * negative_slope)},
    exports="nn.functional",
)
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``input`` where positive, else ``negative_slope * input``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.leaky_relu.html
    """


@op(
    dtype=float_only,
    shape=as_input,
    kernel=elementwise("select(input, alpha * expm1_of(input), input < 0.0)", i32=False),
    reference=lambda input, alpha: np.where(input < 0, alpha * np.expm1(np.minimum(input, 0)), input),
    grad={
        "input": lambda g, input, alpha: where(input <= 0, g * alpha * input.where(input < 0, 0.0).exp(), g)
    },
    exports="nn.functional",
    aten="elu.default(self, alpha=1.0, scale=1, input_scale=1)",
)
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``input`` where positive, else ``alpha * (exp(input) - 1)``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.elu.html
    """


def _softplus_grad(g, input, beta, threshold):
    scaled = input * beta
    return where(scaled > threshold, g, g * scaled.sigmoid())


@op(
    dtype=float_only,
    shape=as_input,
    kernel=elementwise(
        "select(softplus_of(beta * input) / beta, input, beta * input > threshold)", i32=False
    ),
    reference=lambda input, beta, threshold: np.where(
        beta * input > threshold, input, np.logaddexp(0, beta * input) / beta
    ),
    grad={"input": _softplus_grad},
    exports="nn.functional",
)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, the input itself where ``beta * input`` exceeds the threshold.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.softplus.html
    """


logsigmoid = activation(
    "logsigmoid", "min(input, 0.0) - log1p_of(exp_of(-abs(input)))",
    lambda input: np.minimum(input, 0) - np.log1p(np.exp(-np.abs(input))),
    lambda g, input: g * (-input).sigmoid(), "``log(sigmoid(input))``.", aten="log_sigmoid.default",
)  # fmt: skip


def _mish_grad(g, input):
    t = softplus(input).tanh()
    return g * (t + input * input.sigmoid() * (1 - t * t))


@function(exports="nn.functional")
@composed(input=_mish_grad)
def mish(input: Tensor) -> Tensor:
    """``input * tanh(softplus(input))``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.mish.html
    """
    return input * softplus(input).tanh()


@function(exports="nn.functional", ours="PyTorch computes it by a quotient, in Python")
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.softsign.html
    """
    return input / (1 + input.abs())


def _inside(g, input, low, high):
    """The gradient between two corners; at them and beyond them it is 0."""
    return without(g, (input <= low) | (input >= high))


def _bounded(name: str, input: Tensor, low: float, high: float) -> Tensor:
    """`clamp` in the dtype of the input: bounds of integers are cut to integers."""
    low, high = number(low, f"{name}: min_val"), number(high, f"{name}: max_val")
    if low > high:
        raise RangeError(f"{name}: min_val {low} is greater than max_val {high}. Exchange them.")
    d = input.dtype
    if d.kind == "b" or (d.kind == "u" and low < 0):
        raise DTypeError(
            f"{name}: takes no {d} tensors with bounds {low} and {high}. Convert with .int() first."
        )
    if d.is_integer and not (isfinite(low) and isfinite(high)):
        raise RangeError(f"{name}: {d} does not hold bounds {low} and {high}. Give finite ones.")
    return input.clamp(int(low), int(high)) if d.is_integer else input.clamp(low, high)


def _float_input(name: str, input: Tensor) -> Tensor:
    if not input.dtype.is_floating_point:
        raise DTypeError(f"{name}: takes floating-point tensors, not {input.dtype}. Convert with .float().")
    return input


@function(exports="nn.functional")
@composed(input=lambda g, input, min_val, max_val: _inside(g, input, min_val, max_val))
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Values moved into ``[min_val, max_val]``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.hardtanh.html
    """
    return _bounded("hardtanh", input, min_val, max_val)


@function(exports="nn.functional")
@composed(input=lambda g, input: _inside(g, input, 0.0, 6.0))
def relu6(input: Tensor) -> Tensor:
    """``min(max(input, 0), 6)``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.relu6.html
    """
    return _bounded("relu6", input, 0.0, 6.0)


@function(exports="nn.functional")
@composed(input=lambda g, input: where((input > -3.0) & (input < 3.0), g / 6.0, 0.0))
def hardsigmoid(input: Tensor) -> Tensor:
    """``relu6(input + 3) / 6``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.hardsigmoid.html
    """
    return (_float_input("hardsigmoid", input) + 3.0).clamp(0.0, 6.0) / 6.0


def _hardswish_grad(g, input):
    slope = where(input < 3.0, input.clamp(min=-3.0) / 3.0 + 0.5, 1.0)
    return without(g * slope, input <= -3.0)


@function(exports="nn.functional")
@composed(input=_hardswish_grad)
def hardswish(input: Tensor) -> Tensor:
    """``input * relu6(input + 3) / 6``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.hardswish.html
    """
    return input * hardsigmoid(_float_input("hardswish", input))
