"""Convolutions by quantized weights: what the windows meet, times the weight, which products unpack.

The weight is never a float one. What the windows meet is held once for each place of the kernel.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...autograd.composed import composed
from ...errors import ArgumentError
from ...quant.rows import as_matrix
from ...tensors.tensor import Tensor
from ..matmul.dense import matmul
from ..matmul.linear import linear
from .geometry import amounts, image_lengths, per_axis, result_lengths
from .pool_windows import Windows, along_depth
from .window_ops import fold_windows, unfold_windows


@composed(name="view", weight=lambda g, weight_meta: g.reshape(weight_meta.shape))
def _matrix(weight: Tensor) -> Tensor:
    return as_matrix(weight)


def _one_group(groups: int) -> None:
    if groups != 1:
        raise ArgumentError(
            f"a convolution by a quantized weight has one group, not groups={groups}. Use dequantize()."
        )


def convolved(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    """A convolution over any number of axes, of shapes that are checked.

    Raises:
        ArgumentError: there are several groups.
    """
    _one_group(groups)
    kernel = tuple(weight.shape[2:])
    count = len(kernel)
    if input.dim() == count + 1:
        return convolved(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    made = result_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, dilation)
    strides, pads, apart = amounts(kernel, stride, padding, dilation)
    before = tuple(first for first, _ in pads)
    image = tuple(input.shape[2:])
    plane = Windows(image[-2:], made[-2:], kernel[-2:], strides[-2:], before[-2:], apart[-2:])
    if count < 3:
        met = unfold_windows(input, plane).flatten(1, 2)
    else:
        deep = along_depth(image[0], made[0], prod(image[1:]), kernel[0], strides[0], before[0], apart[0])
        planes = unfold_windows(input.flatten(3), deep).unflatten(-1, image[1:])
        met = unfold_windows(planes, plane).movedim(4, 3).flatten(1, 3)
    out = linear(met.flatten(2).transpose(1, 2), _matrix(weight), bias)
    return out.transpose(1, 2).reshape(input.shape[0], weight.shape[0], *made)


def spread(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    """A transposed convolution over any number of axes, of shapes that are checked.

    Raises:
        ArgumentError: there are several groups.
    """
    _one_group(groups)
    kernel = tuple(weight.shape[2:])
    count = len(kernel)
    settings = stride, padding, output_padding, groups, dilation
    if input.dim() == count + 1:
        return spread(input.unsqueeze(0), weight, bias, *settings).squeeze(0)
    more = per_axis("output_padding", output_padding, count, 0)
    image = image_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, more, dilation)
    strides, pads, apart = amounts(kernel, stride, padding, dilation)
    before, lengths = tuple(first for first, _ in pads), tuple(input.shape[2:])
    taps = matmul(input.flatten(2).transpose(1, 2), _matrix(weight)).transpose(1, 2)
    batch, makes = input.shape[0], weight.shape[1]
    plane = Windows(image[-2:], lengths[-2:], kernel[-2:], strides[-2:], before[-2:], apart[-2:])
    if count < 3:
        out = fold_windows(taps.reshape(batch, makes, prod(kernel), *lengths), plane)
    else:
        columns = taps.reshape(batch, makes, kernel[0], prod(kernel[1:]), *lengths).transpose(3, 4)
        planes = fold_windows(columns, plane).flatten(4)
        deep = along_depth(image[0], lengths[0], prod(image[1:]), kernel[0], strides[0], before[0], apart[0])
        out = fold_windows(planes, deep).unflatten(-1, image[1:])
    return out if bias is None else out + bias.reshape(-1, *(1,) * count)
