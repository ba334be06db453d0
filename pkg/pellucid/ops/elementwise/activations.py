"""Activations, element by element. `nn.functional` shows those that torch itself does not."""

from __future__ import annotations

from math import isfinite, pi
from math import sqrt as _root

import numpy as np

from ...autograd.composed import composed
from ...autograd.edges import labelled
from ...autograd.formulas import without
from ...errors import DTypeError, RangeError, ShapeError
from ...op.arguments import number
from ...op.declaration import elementwise, function, op
from ...op.families import activation, of_one_or_over, unary
from ...op.kernel.element_types import PHYSICAL, narrowed
from ...op.public import copied_over
from ...op.rules import float_only, float_or_complex, real
from ...tensors import dtypes as dt
from ...tensors.tensor import Tensor
from .comparison import where
from .functions import erf_of, stable_sigmoid


def with_slope(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor: ...
def with_alpha(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor: ...
def with_lambda(input: Tensor, lambd: float = 0.5) -> Tensor: ...
def with_value(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor: ...
def with_threshold(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor: ...


relu = unary(
    "relu",
    elementwise(
        "select(input, 0.0, input < 0.0 && !is_nan(input))", i32="max(input, 0)", u32="input",
        i64="i64_max(input, vec2<u32>(0u))",
    ),
    lambda input: np.where(input < 0, 0, input).astype(input.dtype), lambda g, out: without(g, out <= 0),
    "``max(input, 0)``.", dtype=real, at=-0.5,
)  # fmt: skip


def _silu_grad(g, input):
    s = input.sigmoid()
    return g * s * (1 + input * (1 - s))


silu = activation(
    "silu", elementwise("silu_of(input)", i32=False, c64="complex_silu(input)"),
    lambda input: input * stable_sigmoid(input), _silu_grad,
    "``input * sigmoid(input)``, also called swish.", form=of_one_or_over, dtype=float_or_complex,
)  # fmt: skip


def _gelu_reference(input, approximate):
    if approximate == "tanh":
        return 0.5 * input * (1 + np.tanh(_root(2 / pi) * (input + 0.044715 * input**3)))
    return (0.5 * input * (1 + erf_of(input / _root(2)))).astype(input.dtype)


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
    """


leaky_relu = activation(
    "leaky_relu", "select(negative_slope * input, input, input > 0.0)",
    lambda input, negative_slope: np.where(input > 0, input, negative_slope * input),
    lambda g, input, negative_slope: where(input > 0, g, g * negative_slope),
    "``input`` where positive, else ``negative_slope * input``.", form=with_slope,
)  # fmt: skip


def _exponential(input, size, inner=1.0):
    return np.where(input < 0, size * np.expm1(np.minimum(input, 0) * inner), input)


elu = activation(
    "elu", "select(input, alpha * expm1_of(input), input < 0.0)", _exponential,
    lambda g, input, alpha: where(input <= 0, g * alpha * input.where(input < 0, 0.0).exp(), g),
    "``input`` where positive, else ``alpha * (exp(input) - 1)``.", form=with_alpha,
    aten="elu.default(self, alpha=1.0, scale=1, input_scale=1)",
)  # fmt: skip


def _check_alpha(input, alpha, inplace):
    if alpha == 0:
        raise RangeError("celu: alpha must not be 0.")


celu = activation(
    "celu", "select(input, alpha * expm1_of(input / alpha), input < 0.0)",
    lambda input, alpha: np.where(input < 0, alpha * np.expm1(np.where(input < 0, input, 0) / alpha), input),
    lambda g, input, alpha: where(input <= 0, g * (input.where(input < 0, 0.0) / alpha).exp(), g),
    "``input`` where positive, else ``alpha * (exp(input / alpha) - 1)``.", form=with_alpha,
    check=_check_alpha, exports=("torch", "nn.functional"),
)  # fmt: skip

# Klambauer et al. 2017, "Self-normalizing neural networks": mean 0 and variance 1 stay as they are.
_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
selu = activation(
    "selu", f"{_SCALE} * select(input, {_ALPHA} * expm1_of(input), input < 0.0)",
    lambda input: _SCALE * _exponential(input, _ALPHA),
    lambda g, input: g * where(input <= 0, _SCALE * _ALPHA * input.where(input < 0, 0.0).exp(), _SCALE),
    f"``elu(input, {_ALPHA:.6})`` times {_SCALE:.6}.", form=of_one_or_over,
    exports=("torch", "nn.functional"),
)  # fmt: skip


def _shrunken(g, input, lambd):
    return g.where((input < -lambd) | (input > lambd), 0.0)


hardshrink = activation(
    "hardshrink", "select(input, 0.0, abs(input) <= lambd && !is_nan(input))",
    lambda input, lambd: np.where(np.abs(input) <= lambd, 0, input), _shrunken,
    "``input``, but 0 where it is at most ``lambd`` away from 0.", form=with_lambda,
    exports=("torch", "nn.functional"), method=True,
)  # fmt: skip


def _check_lambda(input, lambd):
    if not lambd >= 0:
        raise RangeError(f"softshrink: lambd must not be negative, but is {lambd}.")


softshrink = activation(
    "softshrink",
    "select(select(with_sign(0.0, input), input, is_nan(input)), input - sign(input) * lambd, "
    "abs(input) > lambd)",
    lambda input, lambd: np.where(np.abs(input) > lambd, input - np.sign(input) * lambd, input * 0),
    _shrunken,
    "``input`` moved toward 0 by ``lambd``, and 0 where that would pass it.", form=with_lambda,
    check=_check_lambda,
)  # fmt: skip


threshold = activation(
    "threshold",
    elementwise(
        "select(input, {value}, input <= threshold && !is_nan(input))",
        i32="select(input, {value}, input <= threshold)",
        i64="select({value}, input, i64_lt(threshold, input))",
    ),
    lambda input, threshold, value: np.where(input <= threshold, value, input).astype(input.dtype),
    lambda g, input, threshold: without(g, input <= threshold),
    "``input`` where it is above ``threshold``, else ``value``.", form=with_value, dtype=real,
    at=(0.5, 1.0, -1.0), exports=("torch", "nn.functional"),
)  # fmt: skip


@function(exports="nn.functional", ours="PyTorch computes it by a difference, in Python")
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - input.tanh()


@op(
    dtype=float_only,
    kernel=elementwise("select(weight * input, input, input > 0.0)", i32=False),
    reference=lambda input, weight: np.where(input > 0, input, weight * input),
    grad={
        "input": lambda g, input, weight: where(input > 0, g, g * weight),
        "weight": lambda g, input: (g * input).masked_fill(input > 0, 0.0),
    },
    exports=None,
    aten="_prelu_kernel.default",
)
def _prelu_kernel(input: Tensor, weight: Tensor) -> Tensor:
    """`prelu` of a weight that broadcasts."""


@function(exports=("torch", "nn.functional"), method=True)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """``input`` where positive, else ``weight * input``.

    Args:
        input: floating point; its second axis has the channels.
        weight: one number, or one for each channel; of the dtype of the input.
    """
    d = input.dtype
    if d is not weight.dtype:
        raise DTypeError(f"prelu: input is {d} and weight is {weight.dtype}. Convert one of them.")
    if not d.is_floating_point:
        raise DTypeError(f"prelu: takes floating-point tensors, not {d}. Convert with .float().")
    if weight.numel() == 1 and weight.dim() < 2:
        return _prelu_kernel(input, weight.reshape(()))
    channels = input.shape[1] if input.dim() > 1 else 1
    if weight.dim() != 1 or weight.numel() != channels:
        raise ShapeError(
            f"prelu: weight has shape {tuple(weight.shape)} and input {channels} channels. Give one number, "
            "or one for each."
        )
    return _prelu_kernel(input, weight.reshape(-1, *[1] * (input.dim() - 2)))


def _softplus_grad(g, input, beta, threshold):
    scaled = input * beta
    return where(scaled > threshold, g, g * scaled.sigmoid())


softplus = activation(
    "softplus", "select(softplus_of(beta * input) / beta, input, beta * input > threshold)",
    lambda input, beta, threshold: np.where(
        beta * input > threshold, input, np.logaddexp(0, beta * input) / beta
    ),
    _softplus_grad,
    "``log(1 + exp(beta * input)) / beta``, the input itself where ``beta * input`` exceeds the threshold.",
    form=with_threshold,
)  # fmt: skip


logsigmoid = activation(
    "logsigmoid", "min(input, 0.0) - log1p_of(exp_of(-abs(input)))",
    lambda input: np.minimum(input, 0) - np.log1p(np.exp(-np.abs(input))),
    lambda g, input: g * (-input).sigmoid(), "``log(sigmoid(input))``.", aten="log_sigmoid.default",
)  # fmt: skip


def _mish_grad(g, input):
    t = softplus(input).tanh()
    return g * (t + input * input.sigmoid() * (1 - t * t))


mish = activation(
    "mish", "mish_of(input)",
    lambda input: (input * np.tanh(np.logaddexp(0, input))).astype(input.dtype), _mish_grad,
    "``input * tanh(softplus(input))``.", form=of_one_or_over,
)  # fmt: skip


def _softsign_text(call):
    size = "1.0 + abs(input)"
    half = PHYSICAL[call.compute][1] > 1
    return f"ratio_of(input, {narrowed(call.compute, size) if half else size})"


def _softsign_reference(input, *, compute=None):
    size = 1 + np.abs(input)
    if compute is dt.bfloat16:
        size = dt.round_bfloat16(size)
    elif compute is dt.float16:
        size = size.astype(np.float16).astype(input.dtype)
    return input / size


def _softsign_grad(g, input):
    size = 1 + input.abs()
    return g / size - g * (input / size / size) * input.sgn()


@op(
    dtype=float_only,
    kernel=elementwise(_softsign_text, i32=False),
    reference=_softsign_reference,
    grad={"input": _softsign_grad},
    public="softsign",
)
def _softsign(input: Tensor) -> Tensor:
    """`softsign` of floats in one launch; halves are rounded in between, as PyTorch's are."""


@function(exports="nn.functional", ours="PyTorch computes it by a quotient, in Python")
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
    if not input.dtype.is_floating_point:
        return input / (1 + input.abs())
    return labelled("DivBackward0", _softsign(input))


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


@composed(name="hardtanh", input=lambda g, input, min_val, max_val: _inside(g, input, min_val, max_val))
def _hardtanh(input: Tensor, min_val: float, max_val: float) -> Tensor:
    return _bounded("hardtanh", input, min_val, max_val)


@function(exports="nn.functional", aten="hardtanh.default(self, min_val=-1, max_val=1)")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Values moved into ``[min_val, max_val]``.

    Args:
        input: any real dtype that holds both bounds.
        min_val, max_val: the bounds.
        inplace: write the result over the input.
    """
    return (copied_over(_hardtanh) if inplace else _hardtanh)(input, min_val, max_val)


@composed(name="relu6", input=lambda g, input: _inside(g, input, 0.0, 6.0))
def _clamped_to_6(input: Tensor) -> Tensor:
    return _bounded("relu6", input, 0.0, 6.0)


@function(exports="nn.functional", aten="relu6.default(self)")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``.

    Args:
        input: any real dtype.
        inplace: write the result over the input.
    """
    return (copied_over(_clamped_to_6) if inplace else _clamped_to_6)(input)


def _relu6(x):
    return np.minimum(np.maximum(x, 0), 6)


_RELU6 = "select(clamp(input + 3.0, 0.0, 6.0), input, is_nan(input))"  # of the input and 3

hardsigmoid = activation(
    "hardsigmoid", f"{_RELU6} / 6.0", lambda input: _relu6(input + 3) / 6,
    lambda g, input: where((input > -3.0) & (input < 3.0), g / 6.0, 0.0),
    "``relu6(input + 3) / 6``.", form=of_one_or_over,
)  # fmt: skip


def _hardswish_grad(g, input):
    slope = where(input < 3.0, input.clamp(min=-3.0) / 3.0 + 0.5, 1.0)
    return without(g * slope, input <= -3.0)


hardswish = activation(
    "hardswish", f"input * {_RELU6} / 6.0", lambda input: input * _relu6(input + 3) / 6, _hardswish_grad,
    "``input * relu6(input + 3) / 6``.", form=of_one_or_over,
)  # fmt: skip
