"""Convolutions over one or two axes, their transposes, and the derivatives of both."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...kernel.launch import Launch
from ...op.call import Call
from ...op.declaration import docstring, op
from ...op.families import formed
from ...tensors.shape import Size, index
from ...tensors.tensor import Tensor
from ..matmul.dense import floats
from ..reduce.reductions import sum as total
from .geometry import (
    Geometry,
    Lengths,
    Pads,
    amounts,
    forward,
    geometry_of,
    image_of,
    result_of,
    transposed,
    weight_of,
)
from .kernels import weight_launches, window_launches


def _check(call: Call, count: int, is_transposed: bool) -> None:
    """Refuse shapes that do not fit each other."""
    input, weight = tuple(call["input"].shape), tuple(call["weight"].shape)
    bias = None if call["bias"] is None else tuple(call["bias"].shape)
    groups = index(call["groups"], "groups")
    if len(weight) != count + 2 or len(input) not in (count + 1, count + 2):
        lengths = "length" if count == 1 else "height, width"
        raise ShapeError(
            f"input has shape {input} and weight {weight}; they must be (batch, channels, {lengths}), or "
            f"that without the batch, and a weight of {count + 2} axes."
        )
    if groups < 1 or weight[0] % groups or 0 in (weight[0], *weight[2:]):
        raise ShapeError(
            f"weight has shape {weight} and groups is {groups}; groups must divide the first length, and a "
            "kernel must have elements."
        )
    takes, makes = weight[1] * groups, weight[0]
    if is_transposed:
        takes, makes = makes, takes
    if input[-count - 1] != takes:
        raise ShapeError(
            f"input of shape {input} has {input[-count - 1]} channels, weight of shape {weight} with "
            f"groups={groups} takes {takes}."
        )
    if 0 in input[-count:]:
        raise ShapeError(f"input has shape {input}: its images have no elements.")
    if bias is not None and bias != (makes,):
        raise ShapeError(f"bias has shape {bias}, weight makes {makes} channels. Give ({makes},).")


# Rules


def _lengths(m: Any, count: int) -> Lengths:
    """The last lengths of a tensor's shape, or of its metadata."""
    return tuple(m.shape[-count:])


def _bias_grad(count: int):
    """The sum over all axes but the channels, which lie before ``count`` lengths."""

    def grad(g):
        channels = g.dim() - count - 1
        return total(g, tuple(k for k in range(g.dim()) if k != channels))

    return grad


def _with_bias(out: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """A reference's result, (batch, groups, channels, *lengths), plus a number for each channel."""
    return out if bias is None else out + bias.reshape(1, *out.shape[1:3], 1, 1)


def _convolution(count: int) -> dict[str, Any]:
    """What declares a convolution over ``count`` axes."""

    def geometry(call: Call) -> Geometry:
        shapes = tuple(call["input"].shape), tuple(call["weight"].shape)
        return forward(*shapes, call["stride"], call["padding"], call["dilation"], call["groups"])

    def shape(call: Call) -> Size:
        _check(call, count, False)
        made = geometry(call).result[-count:]
        return Size((*call["input"].shape[: -count - 1], call["weight"].shape[0], *made))

    def launches(call: Call) -> list[Launch]:
        bias = "bias" if call["bias"] is not None else None
        return window_launches(call, geometry(call), "input", "weight", bias, transposed=False)

    def reference(input, weight, bias, stride, padding, dilation, groups):
        made = forward(input.shape, weight.shape, stride, padding, dilation, groups)
        return _with_bias(result_of(made, input, weight), bias)

    def input_grad(g, input_meta, weight, stride, padding, dilation, groups):
        settings = amounts(_lengths(weight, count), stride, padding, dilation)
        return convolution_input(g, weight, _lengths(input_meta, count), *settings, groups)

    def weight_grad(g, input, weight_meta, stride, padding, dilation, groups):
        kernel = _lengths(weight_meta, count)
        settings = amounts(kernel, stride, padding, dilation)
        return convolution_weight(input, g, kernel, *settings, groups)

    return {
        "dtype": floats, "shape": shape, "kernel": launches, "reference": reference,
        "grad": {"input": input_grad, "weight": weight_grad, "bias": _bias_grad(count)},
    }  # fmt: skip


def _transpose(count: int) -> dict[str, Any]:
    """What declares a transposed convolution over ``count`` axes."""

    def geometry(call: Call) -> Geometry:
        settings = [call[name] for name in ("stride", "padding", "output_padding", "groups", "dilation")]
        return transposed(tuple(call["input"].shape), tuple(call["weight"].shape), *settings)

    def shape(call: Call) -> Size:
        _check(call, count, True)
        made = geometry(call)
        channels = made.groups * made.channels
        return Size((*call["input"].shape[: -count - 1], channels, *made.image[-count:]))

    def launches(call: Call) -> list[Launch]:
        bias = "bias" if call["bias"] is not None else None
        return window_launches(call, geometry(call), "input", "weight", bias, transposed=True)

    def reference(input, weight, bias, stride, padding, output_padding, groups, dilation):
        made = transposed(input.shape, weight.shape, stride, padding, output_padding, groups, dilation)
        return _with_bias(image_of(made, input, weight), bias)

    def input_grad(g, input_meta, weight, stride, padding, groups, dilation):
        settings = amounts(_lengths(weight, count), stride, padding, dilation)
        return convolution(g, weight, _lengths(input_meta, count), *settings, groups)

    def weight_grad(g, input, weight_meta, stride, padding, groups, dilation):
        kernel = _lengths(weight_meta, count)
        settings = amounts(kernel, stride, padding, dilation)
        return convolution_weight(g, input, kernel, *settings, groups)

    return {
        "dtype": floats, "shape": shape, "kernel": launches, "reference": reference,
        "grad": {"input": input_grad, "weight": weight_grad, "bias": _bias_grad(count)},
    }  # fmt: skip


# Words of the docstrings, by the number of axes.
_AXES = {1: "length", 2: "height, width"}
_KERNEL = {1: "kernel", 2: "kernel height, kernel width"}
_NUMBERS = {1: "", 2: "; one number, or (vertical, horizontal), as all that follow"}
_SETTINGS = {
    "bias": "(out,) or None.",
    "dilation": "places from one element of the kernel to the next.",
    "groups": "in how many parts the channels are cut; each makes its own part of the output.",
}


def _images(count: int) -> str:
    return f"(batch, in, {_AXES[count]}) or (in, {_AXES[count]})"


def _convolves(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor: ...


def _conv(count: int, sentence: str, returns: str, example: str = ""):
    """Declare a convolution over ``count`` axes."""
    name = f"conv{count}d"
    known = _SETTINGS | {
        "input": f"{_images(count)}; zero outside.",
        "weight": f"(out, in / groups, {_KERNEL[count]}), same dtype.",
        "stride": f"places from one window to the next{_NUMBERS[count]}.",
        "padding": 'zeros at both ends; "valid" for none, "same" for as many as keep the lengths.',
    }
    sections: dict[str, dict[str, str] | str] = {
        "Args": {k: known[k] for k in signature(_convolves).parameters},
        "Returns": returns,
        "Raises": {
            "ShapeError": "shapes do not fit, or the kernel is longer than the padded input.",
            "DTypeError": "dtypes differ.",
        },
    }
    doc = docstring(sentence, sections, f"nn.functional.{name}", example)
    aten = f"{name}.default", f"{name}.padding"
    return op(**_convolution(count), exports=("torch", "nn.functional"), aten=aten)(
        formed(_convolves, name, doc)
    )


conv1d = _conv(
    1,
    "``out[n, o, p] = bias[o] + sum(weight[o, c, t] * input[n, c, p * stride + t * dilation - padding]\n    "
    "for c, t)``.",
    "(batch, out, (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1).",
    """>>> import pellucid as torch
>>> x = torch.tensor([[1.0, 2.0, 4.0, 8.0]], device="cpu")
>>> torch.conv1d(x, torch.tensor([[[1.0, -1.0]]], device="cpu")).tolist()
[[-1.0, -2.0, -4.0]]""",
)
conv2d = _conv(
    2, "`conv1d` over height and width.", "(batch, out, height, width), with the lengths that `conv1d` gives."
)


def _spreads(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor: ...


def _conv_transpose(count: int, sentence: str, returns: str, aten: str | None = None):
    """Declare a transposed convolution over ``count`` axes."""
    name = f"conv_transpose{count}d"
    known = _SETTINGS | {
        "input": f"{_images(count)}.",
        "weight": f"(in, out / groups, {_KERNEL[count]}), same dtype.",
        "stride": f"places from one window to the next{_NUMBERS[count]}.",
        "padding": "places that the output lacks at both ends.",
        "output_padding": "places that it has more at its end; less than the stride or the dilation.",
    }
    sections: dict[str, dict[str, str] | str] = {
        "Args": {k: known[k] for k in signature(_spreads).parameters},
        "Returns": returns,
        "Raises": {
            "ShapeError": "shapes do not fit, or nothing would be left.",
            "DTypeError": "dtypes differ.",
        },
    }
    doc = docstring(sentence, sections, f"nn.functional.{name}")
    return op(**_transpose(count), exports=("torch", "nn.functional"), aten=aten)(formed(_spreads, name, doc))


conv_transpose1d = _conv_transpose(
    1,
    "The transpose of `conv1d` as a linear map: ``out[n, c, p * stride + t * dilation - padding] +=\n    "
    "weight[o, c, t] * input[n, o, p]``, plus the bias.",
    "(batch, out, (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1).",
)
conv_transpose2d = _conv_transpose(
    2,
    "`conv_transpose1d` over height and width.",
    "(batch, out, height, width), with the lengths that `conv_transpose1d` gives.",
    "conv_transpose2d.input",
)


# Derivatives: three maps that are linear in two tensors. The derivatives of each are the other two. Stride,
# padding (before, after) and dilation are those of the convolution, one for each axis.


def _result_shape(image: Lengths, weight: Lengths, size: Lengths, groups: int) -> Lengths:
    return *image[: -len(size) - 1], weight[0], *size


def _image_shape(result: Lengths, weight: Lengths, size: Lengths, groups: int) -> Lengths:
    return *result[: -len(size) - 1], weight[1] * groups, *size


def _weight_shape(image: Lengths, result: Lengths, size: Lengths, groups: int) -> Lengths:
    channels = -len(size) - 1
    return result[channels], image[channels] // groups, *size


def _to_result(image, weight, size, *settings) -> Geometry:
    return geometry_of(image, weight, size, *settings)


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
    lengths = _lengths(input_meta, len(size))
    return convolution_input(g, weight, lengths, stride, padding, dilation, groups)


def _weight_grad(g, input, weight_meta, size, stride, padding, dilation, groups) -> Tensor:
    lengths = _lengths(weight_meta, len(size))
    return convolution_weight(input, g, lengths, stride, padding, dilation, groups)


@op(
    **_map(_result_shape, _to_result, partial(window_launches, transposed=False), result_of),
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
    lengths = _lengths(result_meta, len(size))
    return convolution(g, weight, lengths, stride, padding, dilation, groups)


def _weight_grad_of_input(g, result, weight_meta, size, stride, padding, dilation, groups) -> Tensor:
    lengths = _lengths(weight_meta, len(size))
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
    lengths = _lengths(input_meta, len(size))
    return convolution_input(result, g, lengths, stride, padding, dilation, groups)


def _result_grad_of_weight(g, input, result_meta, size, stride, padding, dilation, groups) -> Tensor:
    lengths = _lengths(result_meta, len(size))
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
