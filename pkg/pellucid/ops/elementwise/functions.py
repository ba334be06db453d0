"""Functions of one number, element by element: exponentials, roots, trigonometry."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import nan, pi
from math import sqrt as _root

import numpy as np

from ...autograd.formulas import zeros
from ...op.declaration import Call, elementwise, op
from ...op.families import binary, elementary, of_tensors, unary
from ...op.rules import float_only, float_or_complex, ordered, promote, real_floating, real_result, refusing
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor

erf_of = np.vectorize(math.erf, otypes=[np.float64])
erfc_of = np.vectorize(math.erfc, otypes=[np.float64])
_SQRT_PI = _root(pi)


abs = unary(
    "abs", elementwise(
        "abs(input)", u32="input", i64="i64_abs(input)", c64="hypot_of(input.x, input.y)", result="real"
    ), np.abs, lambda g, input: g * input.sgn(),
    "Absolute value.", dtype=real_result(refusing(promote, "b")), at=-0.5,
    takes="any dtype but bool; of complex numbers the result is real",
)  # fmt: skip

sign = unary(
    "sign", elementwise(
        "select(sign(input), 0.0, is_nan(input))", i32="sign(input)", u32="min(input, 1u)",
        i64="i64_sign(input)", boolean="input",
    ), lambda input: (input > 0).astype(input.dtype) - (input < 0) if input.dtype.kind != "b" else input,
    zeros, "-1, 0 or 1 by the sign of the value; 0 for NaN.", dtype=ordered, at=-0.5,
)  # fmt: skip

sqrt = unary(
    "sqrt", "sqrt(input)", np.sqrt, lambda g, out: g * 0.5 / out, "Square root.", c64="complex_sqrt(input)"
)

rsqrt = unary(
    "rsqrt", "1.0 / sqrt(input)", lambda input: 1 / np.sqrt(input),
    lambda g, out: g * -0.5 * out * out * out, "``1 / sqrt(input)``.",
    c64="complex_div(vec2<f32>(1.0, 0.0), complex_sqrt(input))",
)  # fmt: skip

reciprocal = unary(
    "reciprocal", "1.0 / input", lambda input: 1 / input, lambda g, out: -g * out * out, "``1 / input``.",
    c64="complex_div(vec2<f32>(1.0, 0.0), input)",
)  # fmt: skip


def _square_types(call: Call):
    """The power of an integer: bools become int64."""
    d = dt.result_type([call["input"].dtype], [], [int])
    return d, d


square = unary(
    "square", elementwise(
        "input * input", i64="i64_mul(input, input)", boolean="input", c64="complex_mul(input, input)"
    ), np.square,
    lambda g, input: g * 2 * input, "``input * input``.", dtype=_square_types,
    takes="any dtype; bools become int64",
)  # fmt: skip

exp = elementary("exp", lambda g, out: g * out, "``e ** input``.")
exp2 = elementary("exp2", lambda g, out: g * out * 0.6931471805599453, "``2 ** input``.")
expm1 = elementary("expm1", lambda g, out: g * (out + 1), "``e ** input - 1``, accurate near zero.")
log = elementary("log", lambda g, input: g / input, "Natural logarithm.")
log2 = elementary(
    "log2", lambda g, input: g / (input * 0.6931471805599453), "Logarithm to base 2.",
    c64="1.44269504 * complex_log(input)",
)  # fmt: skip
log10 = elementary(
    "log10", lambda g, input: g / (input * 2.302585092994046), "Logarithm to base 10.",
    c64="0.43429448 * complex_log(input)",
)  # fmt: skip
log1p = elementary("log1p", lambda g, input: g / (input + 1), "``log(1 + input)``, accurate near zero.")

sin = elementary("sin", lambda g, input: g * input.cos(), "Sine of an angle in radians.")
cos = elementary("cos", lambda g, input: -g * input.sin(), "Cosine of an angle in radians.")
tan = elementary("tan", lambda g, out: g * (out * out + 1), "Tangent of an angle in radians.")
asin = elementary(
    "asin", lambda g, input: g * (1 - input * input).rsqrt(), "Angle in radians whose sine is the value."
)
acos = elementary(
    "acos", lambda g, input: -g * (1 - input * input).rsqrt(), "Angle in radians whose cosine is the value."
)
atan = elementary(
    "atan", lambda g, input: g / (input * input + 1), "Angle in radians whose tangent is the value."
)
deg2rad = unary(
    "deg2rad", f"input * {pi / 180}", np.deg2rad, lambda g: g * (pi / 180), "Degrees as radians.",
    dtype=real_floating, at=90.0,
)  # fmt: skip
rad2deg = unary(
    "rad2deg", f"input * {180 / pi}", np.rad2deg, lambda g: g * (180 / pi), "Radians as degrees.",
    dtype=real_floating,
)  # fmt: skip


def _sinc_grad(g, input):
    angle, square = input * pi, input * input * pi
    return (g * ((angle * angle.cos() - angle.sin()) / square)).masked_fill(square == 0, 0.0)


sinc = unary(
    "sinc", f"select(sin_of(input * {pi}) / (input * {pi}), 1.0, input == 0.0)", np.sinc, _sinc_grad,
    "``sin(pi * input) / (pi * input)``, 1 at 0.", c64="complex_sinc(input)",
)  # fmt: skip


def _inverse_square(a, b):
    """One over the square of the distance from the origin, where it is taken as 0."""
    return (a * a + b * b).reciprocal().masked_fill((a == 0) & (b == 0), 0.0)


atan2 = binary(
    "atan2", elementwise("atan2_of(input, other)", i32=False), np.arctan2,
    {
        "input": lambda g, input, other: g * (other * _inverse_square(input, other)),
        "other": lambda g, input, other: g * (-input * _inverse_square(input, other)),
    },
    "Angle in radians of the point (``other``, ``input``).", form=of_tensors, dtype=real_floating,
    at=(1.0, 1.0),
)  # fmt: skip

hypot = binary(
    "hypot", "hypot_of(input, other)", np.hypot,
    {"input": lambda g, input, out: g * (input / out), "other": lambda g, other, out: g * (other / out)},
    "``sqrt(input^2 + other^2)``, without overflow.", form=of_tensors, dtype=float_only,
    takes="floating point", at=(3.0, 4.0),
)  # fmt: skip


def log_sum(input, other):
    """The logarithm of the sum of two exponentials; the imaginary part stays near that of the larger one."""
    if input.dtype.kind != "c":
        return np.logaddexp(input, other)
    high = np.where(input.real < other.real, other, input)
    low = np.where(input.real < other.real, input, other)
    near = np.log1p(np.exp(low - high)) + high
    far = np.where(high.real < 0, high, np.log(np.exp(input) + np.exp(other)))
    ends = np.isinf(high.real) & (high.real == low.real)
    return np.where(np.isnan(input) | np.isnan(other), np.nan, np.where(ends, far, near)).astype(input.dtype)


def _sum_of_powers(name: str, reference, power: Callable, sentence: str, c64: str | None = None):
    """Declare a logarithm of a sum of two powers."""
    whole = c64 is not None
    return binary(
        name, elementwise(f"{name}_of(input, other)", i32=False, c64=c64), reference,
        {
            "input": lambda g, input, other: g / (1 + power(other - input)),
            "other": lambda g, input, other: g / (1 + power(input - other)),
        },
        sentence, form=of_tensors, dtype=float_or_complex if whole else float_only, in_place=False,
        takes="floating point or complex" if whole else "floating point", at=(1.0, 2.0),
    )  # fmt: skip


logaddexp = _sum_of_powers(
    "logaddexp", log_sum, exp, "``log(exp(input) + exp(other))``.", "complex_log_sum(input, other)"
)
logaddexp2 = _sum_of_powers("logaddexp2", np.logaddexp2, exp2, "``log2(2^input + 2^other)``.")


def _times_log(name: str, logarithm: Callable, slope: Callable, sentence: str, **options):
    """Declare a product with a logarithm that is 0 where ``input`` is 0, but for NaN."""

    def reference(input, other):
        return np.where((input == 0) & ~np.isnan(other), 0, input * logarithm(other))

    return binary(
        name, f"{name}_of(input, other)", reference, {"input": slope, "other": options.pop("other")},
        sentence, dtype=real_floating, at=(2.0, 0.5), **options,
    )  # fmt: skip


xlogy = _times_log(
    "xlogy", np.log, lambda g, input, other: xlogy(g, other).masked_fill((input == 0) & (other <= 0), 0.0),
    "``input * log(other)``, 0 where ``input`` is 0.", other=lambda g, input, other: g * input / other,
    aten=("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other"),
)  # fmt: skip
xlog1py = _times_log(
    "xlog1py", np.log1p,
    lambda g, input, other: xlog1py(g, other).masked_fill((input == 0) & (other <= -1), 0.0),
    "``input * log(1 + other)``, 0 where ``input`` is 0.",
    other=lambda g, input, other: g * input / (other + 1), exports="special",
    aten=("special_xlog1py.default", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar"),
)  # fmt: skip

sinh = elementary("sinh", lambda g, input: g * input.cosh(), "Hyperbolic sine.")
cosh = elementary("cosh", lambda g, input: g * input.sinh(), "Hyperbolic cosine.")
tanh = elementary(
    "tanh", lambda g, out: g * (1 - out * out), "Hyperbolic tangent.", exports=("torch", "nn.functional")
)
asinh = elementary("asinh", lambda g, input: g * (input * input + 1).rsqrt(), "Inverse hyperbolic sine.")
acosh = elementary(
    "acosh",
    # Two roots have the branch of the function; of real numbers one says the same.
    lambda g, input: g * (
        (input + 1).rsqrt() * (input - 1).rsqrt() if input.is_complex() else (input * input - 1).rsqrt()
    ),
    "Inverse hyperbolic cosine.", at=1.5,
)  # fmt: skip
atanh = elementary("atanh", lambda g, input: g / (1 - input * input), "Inverse hyperbolic tangent.")
erf = unary(
    "erf", "erf_of(input)", lambda input: erf_of(input).astype(input.dtype),
    lambda g, input: g * (2 / _SQRT_PI) * (-input * input).exp(),
    "Error function: ``2 / sqrt(pi) * integral of exp(-t^2) from 0 to input``.", dtype=real_floating,
)  # fmt: skip
erfc = unary(
    "erfc", "erfc_of(input)", lambda input: erfc_of(input).astype(input.dtype),
    lambda g, input: g * (-2 / _SQRT_PI) * (-input * input).exp(),
    "``1 - erf(input)``, accurate for large values.", dtype=real_floating,
)  # fmt: skip


def stable_sigmoid(input):
    below = input.real < 0
    e = np.exp(np.where(below, input, -input))
    return np.where(below, e, 1) / (1 + e)


sigmoid = unary(
    "sigmoid", "sigmoid_of(input)", stable_sigmoid, lambda g, out: g * out * (1 - out),
    "``1 / (1 + exp(-input))``.", c64="complex_sigmoid(input)", exports=("torch", "nn.functional"),
)  # fmt: skip


def _bounds(eps: float | None) -> tuple[float, float] | None:
    """Between what `logit` takes its input; None where everywhere."""
    return None if eps is None or not eps >= 0 else (eps, 1 - eps)


def _logit_text(call: Call) -> str:
    # Outside (0, 1) the quotient is negative, but for divisors above 2^126, of which WGSL says nothing.
    if (bounds := _bounds(call["eps"])) is None:
        return "logit_of(input)"
    low, high = (np.float32(bound).item() for bound in bounds)
    # Drivers make a minimum of a comparison and a choice, which loses NaN.
    inside = f"select(select(input, {high!r}, input > {high!r}), {low!r}, input < {low!r})"
    return f"logit_of(select({inside}, input, is_nan(input)))"


def _logit_reference(input: np.ndarray, eps: float | None) -> np.ndarray:
    if (bounds := _bounds(eps)) is not None:
        low, high = map(input.dtype.type, bounds)
        input = np.where(input < low, low, np.where(input > high, high, input))
    return np.log(input / (1 - input))


def _logit_grad(g: Tensor, input: Tensor, eps: float | None) -> Tensor:
    """As PyTorch's 0 outside of bounds, and NaN where there are none."""
    low, high = _bounds(eps) or (0, 1)
    outside = (input < low) | (input > high)
    return (g / (input * (1 - input))).masked_fill(outside, nan if _bounds(eps) is None else 0.0)


@op(
    dtype=real_floating,
    kernel=elementwise(_logit_text, i32=False),
    reference=_logit_reference,
    grad={"input": _logit_grad},
    in_place=True,
    aten="logit.default(self, eps=None)",
)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(input / (1 - input))``.

    Args:
        input: any real dtype; integers and bools become the default float.
        eps: keep the input between this and ``1 - eps``.

    Example:
        >>> import pellucid as torch
        >>> torch.logit(torch.tensor([0.0, 0.5], device="cpu"), 0.5).tolist()
        [0.0, 0.0]
    """
