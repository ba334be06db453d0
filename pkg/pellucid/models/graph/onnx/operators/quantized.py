"""Quantized numbers: a scale and a zero point for a tensor, an axis or blocks of one."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...rows import axis_of
from ..constants import data_type
from ..table import operator
from .elementwise import ops
from .windows import conv

# What an int32 holds and a float32 does not: products of more elements are summed in parts of this many.
_EXACT = 256


def spread(t: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """A scale or zero point so that it broadcasts to ``x``."""
    if not t.shape or (t.shape == (1,) and not block):
        return t.reshape(())
    axis = axis_of(axis, len(x.shape))
    if block:
        wide = ops.repeat_interleave(t, block, dim=axis)
        return wide.narrow(axis, 0, x.shape[axis]) if wide.shape[axis] > x.shape[axis] else wide
    if len(t.shape) != 1:
        return t
    return t.reshape([-1 if k == axis else 1 for k in range(len(x.shape))])


@operator("QuantizeLinear", since=10)
def quantize_linear(
    x: Tensor, y_scale: Tensor, y_zero_point: Tensor | None = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0, precision: int = 0, saturate: int = 1,
):  # fmt: skip
    kind = y_zero_point.dtype if y_zero_point is not None else data_type("output", output_dtype or 2)
    limits = np.iinfo(kind.numpy)
    scale = spread(y_scale, x, axis, block_size)
    y = ops.round(x.to(dt.float32) / scale.to(dt.float32))
    if y_zero_point is not None:
        y = y + spread(y_zero_point, x, axis, block_size).to(dt.float32)
    return ops.clamp(y, limits.min, limits.max).to(kind)


@operator("DequantizeLinear", since=10)
def dequantize_linear(
    x: Tensor, x_scale: Tensor, x_zero_point: Tensor | None = None, *, axis: int = 1, block_size: int = 0,
    output_dtype: int = 0,
):  # fmt: skip
    kind = data_type("output", output_dtype) if output_dtype else x_scale.dtype
    y = x.to(dt.int32)
    if x_zero_point is not None:
        y = y - spread(x_zero_point, x, axis, block_size).to(dt.int32)
    return (y.to(dt.float32) * spread(x_scale, x, axis, block_size).to(dt.float32)).to(kind)


@operator("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(x: Tensor):
    low = ops.clamp(ops.amin(x), max=0.0)
    high = ops.clamp(ops.amax(x), min=0.0)
    scale = (high - low) / 255
    safe = ops.where(scale == 0, ops.ones_like(scale), scale)
    zero = ops.clamp(ops.round(-low / safe), 0, 255)
    y = ops.clamp(ops.round(x / safe) + zero, 0, 255)
    return y.to(dt.uint8), scale, zero.to(dt.uint8)


def shifted(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """The integers less their zero point, as floats, which hold them exactly."""
    y = x.to(dt.int32)
    return (y if zero is None else y - spread(zero, x, axis, 0).to(dt.int32)).to(dt.float32)


def integer_product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of whole numbers below 512, exact in int32: float32 sums of `_EXACT` products are exact."""
    total = None
    for at in range(0, max(a.shape[-1], 1), _EXACT):
        count = min(_EXACT, a.shape[-1] - at)
        depth = -2 if len(b.shape) > 1 else -1
        part = ops.matmul(a.narrow(-1, at, count), b.narrow(depth, at, count)).to(dt.int32)
        total = part if total is None else total + part
    assert total is not None
    return total


@operator("MatMulInteger", since=10)
def matmul_integer(
    a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None
):
    return integer_product(shifted(a, a_zero_point, -2), shifted(b, b_zero_point, -1))


def _integer_conv(
    x: Tensor, w: Tensor, x_zero: Tensor | None, w_zero: Tensor | None, settings: Any
) -> Tensor:
    """A convolution of whole numbers, exact in int32: channels are summed in parts that float32 holds."""
    y, v = shifted(x, x_zero, 1), shifted(w, w_zero, 0)
    group, each = settings.pop("group", 1), w.shape[1]
    step = max(_EXACT // max(prod(w.shape[2:]), 1), 1)
    if each <= step:
        return conv(y, v, None, group=group, **settings).to(dt.int32)
    if group != 1:
        y = y.reshape(y.shape[0], group, each, *y.shape[2:])
    total = None
    for at in range(0, each, step):
        count = min(step, each - at)
        part = y.narrow(1, at, count) if group == 1 else y.narrow(2, at, count).flatten(1, 2)
        one = conv(part, v.narrow(1, at, count), None, group=group, **settings).to(dt.int32)
        total = one if total is None else total + one
    assert total is not None
    return total


@operator("ConvInteger", since=10)
def conv_integer(
    x: Tensor, w: Tensor, x_zero_point: Tensor | None = None, w_zero_point: Tensor | None = None, *,
    auto_pad: str = "NOTSET", dilations: list | None = None, group: int = 1,
    kernel_shape: list | None = None, pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    return _integer_conv(x, w, x_zero_point, w_zero_point, _settings(locals()))


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return {name: given[name] for name in names}


def _requantized(y: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    limits = np.iinfo(zero.dtype.numpy)
    y = ops.round(y.to(dt.float32) * scale) + zero.to(dt.float32)
    return ops.clamp(y, limits.min, limits.max).to(zero.dtype)


@operator("QLinearConv", since=10)
def qlinear_conv(
    x: Tensor, x_scale: Tensor, x_zero_point: Tensor, w: Tensor, w_scale: Tensor, w_zero_point: Tensor,
    y_scale: Tensor, y_zero_point: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: list | None = None, group: int = 1, kernel_shape: list | None = None,
    pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    y = _integer_conv(x, w, x_zero_point, w_zero_point, _settings(locals()))
    if b is not None:
        y = y + b.reshape(-1, *[1] * (len(x.shape) - 2))
    return _requantized(y, x_scale * spread(w_scale, y, 1, 0) / y_scale, y_zero_point)


@operator("QLinearMatMul", since=10)
def qlinear_matmul(
    a: Tensor, a_scale: Tensor, a_zero_point: Tensor, b: Tensor, b_scale: Tensor, b_zero_point: Tensor,
    y_scale: Tensor, y_zero_point: Tensor,
):  # fmt: skip
    y = integer_product(shifted(a, a_zero_point, -2), shifted(b, b_zero_point, -1))
    scale = spread(a_scale, y, -2, 0).to(dt.float32) * spread(b_scale, y, -1, 0).to(dt.float32)
    return _requantized(y, scale / y_scale.to(dt.float32), y_zero_point)
