"""Activations, element by element. `nn.functional` shows those that torch itself does not."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import isfinite, pi
from math import sqrt as _root

import numpy as np

from ...autograd.composed import composed
from ...autograd.formulas import without
from ...errors import DTypeError, RangeError
from ...op.arguments import number
from ...op.declaration import op
from ...op.elementwise import elementwise
from ...op.families import activation, unary
from ...op.public import function
from ...op.rules import as_input, float_only, real
from ...tensors.tensor import Tensor
from .comparison import where
from .functions import erf_of, stable_sigmoid

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
    "silu", "silu_of(input)", lambda input: input * stable_sigmoid(input), _silu_grad,
    "``input * sigmoid(input)``, also called swish.",
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
