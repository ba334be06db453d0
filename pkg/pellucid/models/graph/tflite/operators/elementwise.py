"""Operators that work element by element, and those that convert elements."""

from __future__ import annotations

from functools import reduce

from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...onnx.operators.elementwise import ops
from ..layout import planes
from ..table import operator, row

for _name, _function in {
    "ABS": ops.abs, "CEIL": ops.ceil, "COS": ops.cos, "ELU": F.elu, "EXP": ops.exp, "FLOOR": ops.floor,
    "HARD_SWISH": F.hardswish, "LOG": ops.log, "LOGICAL_NOT": ops.logical_not, "LOGISTIC": ops.sigmoid,
    "NEG": ops.neg, "RELU": ops.relu, "RELU6": F.relu6, "RELU_0_TO_1": lambda x: ops.clamp(x, 0.0, 1.0),
    "RELU_N1_TO_1": lambda x: ops.clamp(x, -1.0, 1.0), "ROUND": ops.round, "RSQRT": ops.rsqrt,
    "SIGN": ops.sign, "SIN": ops.sin, "SQRT": ops.sqrt, "SQUARE": ops.square, "TANH": ops.tanh,
    "ZEROS_LIKE": ops.zeros_like,
    # Numbers that are not quantized on one side: `quantized` converts.
    "DEQUANTIZE": lambda x: x if x.dtype is dt.float32 else x.to(dt.float32), "QUANTIZE": lambda x: x,
}.items():  # fmt: skip
    row(_name, planes(_function), 1)


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    return ops.div(a, b, rounding_mode="trunc") if a.dtype.is_integer else ops.div(a, b)


def _squared_difference(a: Tensor, b: Tensor) -> Tensor:
    return ops.square(a - b)


for _name, _function, _options in (
    ("ADD", ops.add, "Add"), ("SUB", ops.sub, "Sub"), ("MUL", ops.mul, "Mul"), ("DIV", _quotient, "Div"),
    ("ATAN2", ops.atan2, ""), ("BITWISE_XOR", ops.bitwise_xor, ""), ("EQUAL", ops.eq, ""),
    ("FLOOR_DIV", ops.floor_divide, ""), ("FLOOR_MOD", ops.remainder, ""), ("GREATER", ops.gt, ""),
    ("GREATER_EQUAL", ops.ge, ""), ("LESS", ops.lt, ""), ("LESS_EQUAL", ops.le, ""),
    ("LOGICAL_AND", ops.logical_and, ""), ("LOGICAL_OR", ops.logical_or, ""), ("MAXIMUM", ops.maximum, ""),
    ("MINIMUM", ops.minimum, ""), ("NOT_EQUAL", ops.ne, ""), ("POW", ops.pow, ""),
    ("RIGHT_SHIFT", ops.bitwise_right_shift, ""), ("SQUARED_DIFFERENCE", _squared_difference, ""),
    ("PRELU", lambda x, slope: ops.where(x > 0, x, x * slope), ""),
):  # fmt: skip
    row(_name, planes(_function), 2, options=_options)
row("SELECT_V2", planes(ops.where), 3)


@operator("SELECT")
def select(condition: Tensor, x: Tensor, y: Tensor):
    """A condition of fewer axes chooses rows."""
    return ops.where(condition.reshape(*condition.shape, *[1] * (len(x.shape) - len(condition.shape))), x, y)


@operator("ADD_N")
def add_n(*inputs: Tensor):
    return reduce(planes(ops.add), inputs)


@operator("LEAKY_RELU", options="LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.0):
    return planes(lambda x: F.leaky_relu(x, alpha))(x)


@operator("GELU", options="Gelu")
def gelu(x: Tensor, *, approximate: bool = False):
    return planes(lambda x: F.gelu(x, approximate="tanh" if approximate else "none"))(x)


@operator("CAST")
def cast(x: Tensor, *, kind: dt.DType):
    if x.dtype.is_complex and not kind.is_complex:
        x = ops.real(x)
    return planes(lambda x: x.to(kind))(x)
