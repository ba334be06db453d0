"""Operators that work element by element, and those that convert elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from types import SimpleNamespace
from typing import Any

from .....errors import DTypeError
from .....nn import functional as F
from .....op.public import EXPORTS
from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...rows import axis_of, one_of
from ..constants import data_type
from ..table import operator, row

# The public functions of the op table, by PyTorch's names.
ops = SimpleNamespace(**EXPORTS["torch"])

for _name, _function in {
    "Abs": ops.abs, "Acos": ops.acos, "Acosh": ops.acosh, "Asin": ops.asin, "Asinh": ops.asinh,
    "Atan": ops.atan, "Atanh": ops.atanh, "BitwiseNot": ops.bitwise_not, "Ceil": ops.ceil, "Cos": ops.cos,
    "Cosh": ops.cosh, "Erf": ops.erf, "Exp": ops.exp, "Floor": ops.floor, "Identity": lambda x: x,
    "IsNaN": ops.isnan, "Log": ops.log, "Mish": F.mish, "Neg": ops.neg, "Not": ops.logical_not,
    "Reciprocal": ops.reciprocal, "Relu": ops.relu, "Round": ops.round, "Sigmoid": ops.sigmoid,
    "Sign": ops.sign, "Sin": ops.sin, "Sinh": ops.sinh, "Softplus": F.softplus, "Softsign": F.softsign,
    "Sqrt": ops.sqrt, "Tan": ops.tan, "Tanh": ops.tanh,
}.items():  # fmt: skip
    row(_name, _function, 1)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    return ops.div(a, b, rounding_mode="trunc") if a.dtype.is_integer else ops.div(a, b)


def _power(a: Tensor, b: Tensor) -> Tensor:
    return ops.pow(a, b).to(a.dtype)


_BINARY: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], int]] = {
    "Add": (ops.add, 7), "Sub": (ops.sub, 7), "Mul": (ops.mul, 7), "Div": (_quotient, 7),
    "Pow": (_power, 7), "And": (ops.logical_and, 7), "Or": (ops.logical_or, 7), "Xor": (ops.logical_xor, 7),
    "Equal": (ops.eq, 7), "Greater": (ops.gt, 7), "Less": (ops.lt, 7), "GreaterOrEqual": (ops.ge, 12),
    "LessOrEqual": (ops.le, 12), "BitwiseAnd": (ops.bitwise_and, 18), "BitwiseOr": (ops.bitwise_or, 18),
    "BitwiseXor": (ops.bitwise_xor, 18),
}  # fmt: skip


def _older(
    function: Callable, a: Tensor, b: Tensor, *, broadcast: int = 0, axis: int | None = None
) -> Tensor:
    """Before opset 7 the second input lies along axes of the first from ``axis`` on."""
    if broadcast and axis is not None:
        behind = len(a.shape) - axis_of(axis, len(a.shape)) - len(b.shape)
        b = b.reshape(*b.shape, *[1] * behind)
    return function(a, b)


def _aged(function: Callable) -> Callable:
    def run(a: Tensor, b: Tensor, *, broadcast: int = 0, axis: int | None = None, consumed_inputs=None):
        return _older(function, a, b, broadcast=broadcast, axis=axis)

    return run


for _name, (_function, _since) in _BINARY.items():
    row(_name, _function, 2, since=_since)
    if _since == 7:
        row(_name, _aged(_function))


def _folded(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def run(*inputs: Tensor):
        return reduce(function, inputs)

    return run


for _name, _function in {"Max": ops.maximum, "Min": ops.minimum, "Sum": ops.add}.items():
    row(_name, _folded(_function))


@operator("Mean")
def mean(*inputs: Tensor):
    return reduce(ops.add, inputs) / len(inputs)


@operator("Where", since=9)
def where(condition: Tensor, x: Tensor, y: Tensor):
    return ops.where(condition, x, y)


@operator("Mod", since=10)
def mod(a: Tensor, b: Tensor, *, fmod: int = 0):
    return ops.fmod(a, b) if fmod else ops.remainder(a, b)


@operator("BitShift", since=11)
def bit_shift(x: Tensor, y: Tensor, *, direction: str):
    shift = one_of("direction", direction, {"LEFT": ops.bitwise_left_shift, "RIGHT": ops.bitwise_right_shift})
    return shift(x, y)


@operator("BitCast", since=26)
def bit_cast(x: Tensor, *, to: int):
    return x.view(data_type("BitCast", to))


@operator("Clip", since=11)
@operator("Clip", since=1)
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None):
    return x if min is None and max is None else ops.clamp(x, min, max)


@operator("Cast", "CastLike")
def cast(x: Tensor, like: Tensor | None = None, *, to: int = 0, saturate: int = 1, round_mode: str = "up"):
    dtype = data_type("Cast", to) if like is None else like.dtype
    if to in (21, 22):
        raise DTypeError("Cast to four bits has no dtype here. Use 8 bits.")
    return x.to(dtype)


@operator("IsInf", since=10)
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1):
    if detect_negative and detect_positive:
        return ops.isinf(x)
    if not detect_negative and not detect_positive:
        return ops.zeros_like(x, dtype=dt.bool_)
    return ops.isposinf(x) if detect_positive else ops.isneginf(x)


@operator("Elu")
def elu(x: Tensor, *, alpha: float = 1.0):
    return F.elu(x, alpha)


@operator("Celu", since=12)
def celu(x: Tensor, *, alpha: float = 1.0):
    return ops.celu(x, alpha)


@operator("Selu")
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875):
    return gamma * F.elu(x, alpha)


@operator("Gelu", since=20)
def gelu(x: Tensor, *, approximate: str = "none"):
    return F.gelu(x, approximate=approximate)


@operator("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5):
    return ops.clamp(alpha * x + beta, 0, 1)


@operator("HardSwish", since=14)
def hard_swish(x: Tensor):
    return x * ops.clamp(x / 6 + 0.5, 0, 1)


@operator("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01):
    return F.leaky_relu(x, alpha)


@operator("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0):
    return ops.threshold(x, alpha, 0.0)


@operator("PRelu")
def prelu(x: Tensor, slope: Tensor):
    if 1 < len(slope.shape) + 1 == 2 and len(x.shape) > 2 and slope.shape[0] == x.shape[1] != x.shape[-1]:
        slope = slope.reshape(-1, *[1] * (len(x.shape) - 2))  # by channel, before opset 7
    return ops.where(x < 0, x * slope, x)


@operator("Shrink", since=9)
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5):
    return ops.where(x < -lambd, x + bias, ops.where(x > lambd, x - bias, ops.zeros_like(x))).to(x.dtype)


@operator("Swish", since=24)
def swish(x: Tensor, *, alpha: float = 1.0):
    return x * ops.sigmoid(alpha * x)


@operator("SwiGLU", since=26)
def swiglu(x: Tensor, gate: Tensor | None = None, *, alpha: float = 1.0, axis: int = -1):
    if gate is None:
        x, gate = ops.chunk(x, 2, axis)
    return x * ops.sigmoid(alpha * x) * gate


@operator("Dropout")
def dropout(
    x: Tensor, ratio: Tensor | None = None, training_mode: Tensor | None = None, *, seed: int = 0,
    is_test: int = 1, outputs: int = 1, consumed_inputs: Any = None,
):  # fmt: skip
    if training_mode is not None and bool(training_mode.item()):
        p = 0.5 if ratio is None else float(ratio.item() if isinstance(ratio, Tensor) else ratio)
        mask = ops.rand(x.shape, device=x.device) >= p
        return ops.where(mask, x / (1 - p), ops.zeros_like(x)) if p < 1 else ops.zeros_like(x), mask
    return (x, ops.ones_like(x, dtype=dt.bool_)) if outputs > 1 else x


__all__ = ["ops"]
