"""Quantized operators that onnxruntime adds (com.microsoft): blocks of 4 and 8 bits, 8-bit arithmetic.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from functools import partial

from .....errors import ArgumentError, ShapeError
from .....nn import functional as F
from .....quant.format import UNIT
from .....quant.weight import weight_from_planes
from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...rows import axis_of
from ..table import MICROSOFT, operator
from .elementwise import ops
from .quantized import (
    dequantize_linear,
    dynamic_quantize_linear,
    integer_product,
    quantize_linear,
    shifted,
    spread,
)
from .windows import average_pool

contributed = partial(operator, domain=MICROSOFT)

contributed("QuantizeLinear")(quantize_linear)
contributed("DequantizeLinear")(dequantize_linear)


def _unpacked(packed: Tensor, bits: int) -> Tensor:
    """Numbers of ``bits`` bits in the bytes of the last axis, the lowest bits first."""
    if bits == 8:
        return packed
    if bits not in (2, 4):
        raise ArgumentError(f"bits is {bits}; 2, 4 and 8 are computed here.")
    shifts = ops.arange(0, 8, bits, device=packed.device).to(packed.dtype)
    return (packed.unsqueeze(-1) >> shifts & (1 << bits) - 1).flatten(-2)


def _points(zero_points: Tensor | None, scales: Tensor, rows: int, blocks: int, bits: int) -> Tensor:
    """The zero point of each block, (rows, blocks)."""
    if zero_points is None:
        return ops.full((rows, blocks), 1 << bits - 1, dtype=dt.uint8, device=scales.device)
    if zero_points.dtype is not dt.uint8:
        return zero_points.reshape(rows, blocks)
    return _unpacked(zero_points.reshape(rows, -1), bits).narrow(1, 0, blocks)


@contributed("MatMulNBits")
def matmul_nbits(
    a: Tensor, b: Tensor, scales: Tensor, zero_points: Tensor | None = None, g_idx: Tensor | None = None,
    bias: Tensor | None = None, *, K: int, N: int, bits: int = 4, block_size: int, accuracy_level: int = 0,
    weight_prepacked: int = 0, kept: dict | None = None,
):  # fmt: skip
    """4 bits with scales in half precision and whole zero points multiply as they are, in `int4_groups`.
    What has other bits or scales is made float32 for the call."""
    if g_idx is not None or weight_prepacked:
        raise ArgumentError("g_idx and weight_prepacked are not computed here. Export without them.")
    blocks = -(-K // block_size)
    if b.numel() * 8 != N * blocks * block_size * bits or scales.numel() != N * blocks:
        raise ShapeError(
            f"B {tuple(b.shape)} and scales {tuple(scales.shape)} are not those of {N} rows of {K} columns "
            f"in blocks of {block_size} with {bits} bits."
        )
    points = _points(zero_points, scales, N, blocks, bits)
    whole = scales.dtype is dt.float16 and points.dtype is dt.uint8
    if bits == 4 and whole and not block_size % UNIT and not K % UNIT:
        store = {} if kept is None else kept
        if store.get("of") is not b:
            planes = [b.reshape(N, -1).narrow(1, 0, K // 2).contiguous()]
            for t in (scales, points):
                units = ops.repeat_interleave(t.reshape(N, blocks), block_size // UNIT, dim=1)
                planes.append(units.narrow(1, 0, K // UNIT).contiguous())
            store.update(of=b, weight=weight_from_planes(planes, "int4_groups", (N, K)))
        y = F.linear(a.to(dt.float32), store["weight"]).to(a.dtype)
    else:
        numbers = _unpacked(b.reshape(N, -1), bits).reshape(N, blocks, block_size).to(dt.float32)
        weight = (numbers - points.to(dt.float32).unsqueeze(-1)) * scales.reshape(N, blocks, 1).to(dt.float32)
        y = F.linear(a.to(dt.float32), weight.reshape(N, -1).narrow(1, 0, K)).to(a.dtype)
    return y if bias is None else y + bias


@contributed("GatherBlockQuantized")
def gather_block_quantized(
    data: Tensor, indices: Tensor, scales: Tensor, zero_points: Tensor | None = None, *, bits: int = 4,
    block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1,
):  # fmt: skip
    rank = len(data.shape)
    if rank != 2 or axis_of(gather_axis, 2) != 0 or axis_of(quantize_axis, 2) != 1:
        raise ArgumentError("rows of a matrix that is quantized along its columns are gathered here.")
    flat = indices.reshape(-1).to(dt.int64)
    chosen, scale = (ops.index_select(t, 0, flat) for t in (data, scales))
    zeros = None if zero_points is None else ops.index_select(zero_points, 0, flat)
    signed = chosen.dtype is dt.int8
    numbers = _unpacked(chosen, bits) if not signed else chosen
    blocks = scale.shape[1]
    points = 0.0
    if zeros is not None or not signed:
        points = _points(zeros, scale, len(flat), blocks, bits).to(dt.float32).unsqueeze(-1)
    columns = numbers.shape[1]
    wide = F.pad(numbers, (0, blocks * block_size - columns)).reshape(-1, blocks, block_size).to(dt.float32)
    y = ((wide - points) * scale.to(dt.float32).unsqueeze(-1)).flatten(1).narrow(1, 0, columns)
    return y.to(scale.dtype).reshape(*indices.shape, columns)


@contributed("MatMulIntegerToFloat")
def matmul_integer_to_float(
    a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, a_zero_point: Tensor | None = None,
    b_zero_point: Tensor | None = None, bias: Tensor | None = None,
):  # fmt: skip
    y = integer_product(shifted(a, a_zero_point, -2), shifted(b, b_zero_point, -1)).to(dt.float32)
    y = y * (a_scale * spread(b_scale, y, -1, 0))
    return y if bias is None else y + bias


@contributed("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, b_scale: Tensor, b_zero_point: Tensor | None = None, bias: Tensor | None = None
):
    quants, scale, zero = dynamic_quantize_linear(a)
    return matmul_integer_to_float(quants, b, scale, b_scale, zero, b_zero_point, bias)


@contributed("QLinearAdd")
def qlinear_add(
    a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
    scale: Tensor, zero: Tensor | None = None,
):  # fmt: skip
    y = dequantize_linear(a, a_scale, a_zero) + dequantize_linear(b, b_scale, b_zero)
    return quantize_linear(y, scale, _zero(zero, a))


@contributed("QLinearMul")
def qlinear_mul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor | None, b: Tensor, b_scale: Tensor, b_zero: Tensor | None,
    scale: Tensor, zero: Tensor | None = None,
):  # fmt: skip
    y = dequantize_linear(a, a_scale, a_zero) * dequantize_linear(b, b_scale, b_zero)
    return quantize_linear(y, scale, _zero(zero, a))


def _zero(zero: Tensor | None, like: Tensor) -> Tensor:
    return ops.zeros((), dtype=like.dtype, device=like.device) if zero is None else zero


@contributed("QLinearSigmoid")
def qlinear_sigmoid(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None
):
    return quantize_linear(ops.sigmoid(dequantize_linear(x, x_scale, x_zero)), scale, _zero(zero, x))


@contributed("QLinearLeakyRelu")
def qlinear_leaky_relu(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None, *,
    alpha: float = 0.01,
):  # fmt: skip
    return quantize_linear(F.leaky_relu(dequantize_linear(x, x_scale, x_zero), alpha), scale, _zero(zero, x))


@contributed("QLinearSoftmax")
def qlinear_softmax(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor, *, axis: int = -1,
    opset: int = 13,
):  # fmt: skip
    y = dequantize_linear(x, x_scale, x_zero)
    first = axis_of(axis, len(x.shape))
    if opset >= 13:
        return quantize_linear(ops.softmax(y, first), scale, zero)
    return quantize_linear(ops.softmax(y.flatten(first), -1).reshape(x.shape), scale, zero)


@contributed("QLinearConcat")
def qlinear_concat(scale: Tensor, zero: Tensor, *inputs: Tensor, axis: int):
    parts = [dequantize_linear(*inputs[k : k + 3]) for k in range(0, len(inputs), 3)]
    return quantize_linear(ops.cat(parts, axis), scale, zero)


@contributed("QLinearGlobalAveragePool")
def qlinear_global_average_pool(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor, *, channels_last: int = 0
):
    rank = len(x.shape)
    axes = list(range(1, rank - 1)) if channels_last else list(range(2, rank))
    return quantize_linear(ops.mean(dequantize_linear(x, x_scale, x_zero), axes, True), scale, zero)


@contributed("QLinearAveragePool")
def qlinear_average_pool(
    x: Tensor, x_scale: Tensor, x_zero: Tensor | None, scale: Tensor, zero: Tensor | None = None, *,
    kernel_shape: list, auto_pad: str = "NOTSET", ceil_mode: int = 0, channels_last: int = 0,
    count_include_pad: int = 0, pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    y = dequantize_linear(x, x_scale, x_zero)
    y = y.movedim(-1, 1) if channels_last else y
    y = average_pool(
        y, kernel_shape=kernel_shape, auto_pad=auto_pad, ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, pads=pads, strides=strides,
    )  # fmt: skip
    return quantize_linear(y.movedim(1, -1) if channels_last else y, scale, _zero(zero, x))
