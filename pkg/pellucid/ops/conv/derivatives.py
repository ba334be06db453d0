"""The derivatives of convolutions: three maps that are linear in two tensors.

The derivatives of each are the other two. Stride, padding (before, after) and dilation are those of the
convolution, one for each axis.
"""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...op.call import Call
from ...op.declaration import op
from ...op.kernel.launch import Launch
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..matmul.dense import floats
from .geometry import Geometry, Lengths, Pads, geometry_of, image_of, result_of, weight_of
from .kernels import weight_launches, window_launches


def lengths_of(m: Any, count: int) -> Lengths:
    """The last lengths of a tensor's shape, or of its metadata."""
    return tuple(m.shape[-count:])


def _result_shape(image: Lengths, weight: Lengths, size: Lengths, groups: int) -> Lengths:
    return *image[: -len(size) - 1], weight[0], *size


def _image_shape(result: Lengths, weight: Lengths, size: Lengths, groups: int) -> Lengths:
    return *result[: -len(size) - 1], weight[1] * groups, *size


def _weight_shape(image: Lengths, result: Lengths, size: Lengths, groups: int) -> Lengths:
    channels = -len(size) - 1
    return result[channels], image[channels] // groups, *size


def _to_image(result, weight, size, *settings) -> Geometry:
    image = _image_shape(result, weight, size, settings[-1])
    return geometry_of(image, weight, result[-len(size) :], *settings)


def _to_weight(image, result, size, *settings) -> Geometry:
    weight = _weight_shape(image, result, size, settings[-1])
    return geometry_of(image, weight, result[-len(size) :], *settings)


def _map(shape: Callable, relate: Callable, launches: Callable, reference: Callable) -> dict[str, Any]:
    """What declares one of the three maps."""

    def shapes(call: Call) -> list[Lengths]:
        return [tuple(m.shape) for _, m in call.tensors()]

    def dispatches(call: Call) -> list[Launch]:
        names = [name for name, _ in call.tensors()]
        settings = [call[name] for name in ("size", "stride", "padding", "dilation", "groups")]
        return launches(call, relate(*shapes(call), *settings), *names)

    return {
        "dtype": floats,
        "shape": lambda call: Size(shape(*shapes(call), call["size"], call["groups"])),
        "kernel": dispatches,
        "reference": lambda a, b, *settings: reference(relate(a.shape, b.shape, *settings), a, b),
    }


def _input_grad(g, input_meta, weight, size, stride, padding, dilation, groups) -> Tensor:
    lengths = lengths_of(input_meta, len(size))
    return convolution_input(g, weight, lengths, stride, padding, dilation, groups)


def _weight_grad(g, input, weight_meta, size, stride, padding, dilation, groups) -> Tensor:
    lengths = lengths_of(weight_meta, len(size))
    return convolution_weight(input, g, lengths, stride, padding, dilation, groups)


@op(
    **_map(_result_shape, geometry_of, partial(window_launches, transposed=False), result_of),
    grad={"input": _input_grad, "weight": _weight_grad},
    exports=None,
    ours="lengths of the result are given; `ops.aten` has ATen's form, of conv2d and its like",
)
def convolution(
    input: Tensor,
    weight: Tensor,
    size: Lengths,
    stride: Lengths,
    padding: Pads,
    dilation: Lengths,
    groups: int,
) -> Tensor:
    """The convolution whose result has lengths ``size``; see `conv2d`."""


def _result_grad(g, result_meta, weight, size, stride, padding, dilation, groups) -> Tensor:
    lengths = lengths_of(result_meta, len(size))
    return convolution(g, weight, lengths, stride, padding, dilation, groups)


def _weight_grad_of_input(g, result, weight_meta, size, stride, padding, dilation, groups) -> Tensor:
    lengths = lengths_of(weight_meta, len(size))
    return convolution_weight(g, result, lengths, stride, padding, dilation, groups)


@op(
    **_map(_image_shape, _to_image, partial(window_launches, transposed=True), image_of),
    grad={"result": _result_grad, "weight": _weight_grad_of_input},
    exports=None,
    ours="one of the three results of ATen's convolution_backward",
)
def convolution_input(
    result: Tensor,
    weight: Tensor,
    size: Lengths,
    stride: Lengths,
    padding: Pads,
    dilation: Lengths,
    groups: int,
) -> Tensor:
    """The derivative of `convolution` by its input of lengths ``size``, at that of its result."""


def _input_grad_of_weight(g, input_meta, result, size, stride, padding, dilation, groups) -> Tensor:
    lengths = lengths_of(input_meta, len(size))
    return convolution_input(result, g, lengths, stride, padding, dilation, groups)


def _result_grad_of_weight(g, input, result_meta, size, stride, padding, dilation, groups) -> Tensor:
    lengths = lengths_of(result_meta, len(size))
    return convolution(input, g, lengths, stride, padding, dilation, groups)


@op(
    **_map(_weight_shape, _to_weight, weight_launches, weight_of),
    grad={"input": _input_grad_of_weight, "result": _result_grad_of_weight},
    exports=None,
    ours="one of the three results of ATen's convolution_backward",
)
def convolution_weight(
    input: Tensor,
    result: Tensor,
    size: Lengths,
    stride: Lengths,
    padding: Pads,
    dilation: Lengths,
    groups: int,
) -> Tensor:
    """The derivative of `convolution` by its weight of lengths ``size``, at that of its result."""
