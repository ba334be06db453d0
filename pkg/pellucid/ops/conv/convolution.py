"""Convolutions over one to three axes, and their transposes."""

from __future__ import annotations

from functools import partial
from inspect import signature
from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...op.arguments import integer_or_integers
from ...op.call import Call
from ...op.declaration import docstring, op
from ...op.families import formed
from ...op.kernel.launch import Launch
from ...op.public import function
from ...op.schema import OPS
from ...tensors.shape import Size, index
from ...tensors.tensor import Tensor
from ..matmul.dense import are_complex, by_parts, floats
from ..reduce.reductions import sum as total
from . import quantized
from .derivatives import convolution, convolution_input, convolution_weight, lengths_of
from .geometry import (
    Geometry,
    amounts,
    forward,
    image_lengths,
    image_of,
    per_axis,
    result_lengths,
    result_of,
    transposed,
)
from .integers import are_whole, convolved, spread
from .kernels import window_launches
from .pool_windows import along_depth
from .window_ops import fold_windows, unfold_windows


def _check(call: Any, count: int, is_transposed: bool) -> None:
    """Refuse shapes that do not fit each other."""
    input, weight = tuple(call["input"].shape), tuple(call["weight"].shape)
    bias = None if call["bias"] is None else tuple(call["bias"].shape)
    groups = index(call["groups"], "groups")
    if len(weight) != count + 2 or len(input) not in (count + 1, count + 2):
        raise ShapeError(
            f"input has shape {input} and weight {weight}; they must be (batch, channels, {_AXES[count]}), "
            f"or that without the batch, and a weight of {count + 2} axes."
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


def _bias_grad(count: int):
    """The sum over all axes but the channels, which lie before ``count`` lengths."""

    def grad(g):
        channels = g.dim() - count - 1
        return total(g, tuple(k for k in range(g.dim()) if k != channels))

    return grad


def _with_bias(out: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """A reference's result, (batch, groups, channels, *lengths), plus a number for each channel."""
    return out if bias is None else out + bias.reshape(1, *out.shape[1:3], 1, 1)


def _prepared(count: int, is_transposed: bool, input, weight, bias, *settings) -> Tensor | None:
    """What kernels do not convolve: complex numbers, part by part, integers, and quantized weights."""
    if weight.dtype.is_quantized:
        call = {"input": input, "weight": weight, "bias": bias, "groups": settings[3]}
        _check(call, count, is_transposed)
        return _unpacked(is_transposed, input, weight, bias, *settings)
    if are_complex(input, weight):
        convolves = OPS[f"conv{'_transpose' * is_transposed}{count}d"].call
        out = by_parts(lambda x, w: convolves(x, w, None, *settings), input, weight)
        return out if bias is None else out + bias.reshape(-1, *[1] * count)
    whole = _whole_spread if is_transposed else _whole
    return whole(count, input, weight, bias, *settings) if input.device.type == "webgpu" else None


def _unpacked(is_transposed: bool, input, weight, bias, *settings) -> Tensor:
    """The convolution by a quantized weight, whose shapes are checked."""
    shapes = tuple(input.shape), tuple(weight.shape)
    if is_transposed:
        stride, padding, more, groups, dilation = settings
        size = image_lengths(*shapes, stride, padding, more, dilation)
    else:
        stride, padding, dilation, groups = settings
        size = result_lengths(*shapes, stride, padding, dilation)
    make = quantized.transposed if is_transposed else quantized.convolved
    return make(input, weight, bias, size, *amounts(shapes[1][2:], stride, padding, dilation), groups)


def _whole(count, input, weight, bias, stride, padding, dilation, groups) -> Tensor | None:
    """The convolution of integers; None of floats."""
    if not are_whole(input, weight, bias):
        return None
    _check({"input": input, "weight": weight, "bias": bias, "groups": groups}, count, False)
    result_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, dilation)
    return convolved(
        input, weight, bias, *amounts(lengths_of(weight, count), stride, padding, dilation), groups
    )


def _whole_spread(
    count, input, weight, bias, stride, padding, output_padding, groups, dilation
) -> Tensor | None:
    """The transposed convolution of integers; None of floats."""
    if not are_whole(input, weight, bias):
        return None
    _check({"input": input, "weight": weight, "bias": bias, "groups": groups}, count, True)
    image_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, output_padding, dilation)
    settings = amounts(lengths_of(weight, count), stride, padding, dilation)
    more = per_axis("output_padding", output_padding, count, 0)
    return spread(input, weight, bias, *settings, more, groups)


def _convolution(count: int, is_transposed: bool) -> dict[str, Any]:
    """What declares a convolution over ``count`` axes, or its transpose."""
    relate = transposed if is_transposed else forward
    names = [n for n in signature(relate).parameters if n not in ("input", "weight")]

    def geometry(call: Call) -> Geometry:
        shapes = tuple(call["input"].shape), tuple(call["weight"].shape)
        return relate(*shapes, *[call[name] for name in names])

    def shape(call: Call) -> Size:
        _check(call, count, is_transposed)
        made = geometry(call)
        lengths = made.image if is_transposed else made.result
        channels = made.groups * (made.channels if is_transposed else made.rows)
        return Size((*call["input"].shape[: -count - 1], channels, *lengths[-count:]))

    def launches(call: Call) -> list[Launch]:
        bias = "bias" if call["bias"] is not None else None
        return window_launches(call, geometry(call), "input", "weight", bias, transposed=is_transposed)

    def reference(input, weight, bias, *settings):
        make = image_of if is_transposed else result_of
        return _with_bias(make(relate(input.shape, weight.shape, *settings), input, weight), bias)

    def input_grad(g, input_meta, weight, stride, padding, dilation, groups):
        make = convolution if is_transposed else convolution_input
        settings = amounts(lengths_of(weight, count), stride, padding, dilation)
        return make(g, weight, lengths_of(input_meta, count), *settings, groups)

    def weight_grad(g, input, weight_meta, stride, padding, dilation, groups):
        kernel = lengths_of(weight_meta, count)
        both = (g, input) if is_transposed else (input, g)
        return convolution_weight(*both, kernel, *amounts(kernel, stride, padding, dilation), groups)

    return {
        "dtype": floats, "shape": shape, "kernel": launches, "reference": reference,
        "prepare": partial(_prepared, count, is_transposed),
        "grad": {"input": input_grad, "weight": weight_grad, "bias": _bias_grad(count)},
    }  # fmt: skip


# Words of the docstrings, by the number of axes.
_AXES = {1: "length", 2: "height, width", 3: "depth, height, width"}
_KERNEL = {1: "kernel", 2: "kernel height, kernel width", 3: "kernel depth, kernel height, kernel width"}
_NUMBERS = {
    1: "",
    2: "; one number, or (vertical, horizontal), as all that follow",
    3: "; one number, or one for each of the three axes, as all that follow",
}
_SETTINGS = {
    "bias": "(out,) or None.",
    "dilation": "places from one element of the kernel to the next.",
    "groups": "in how many parts the channels are cut; each makes its own part of the output.",
}


def _regular(**settings: Any) -> list[Any]:
    """Numbers or tuples of them, which tables of geometries know calls by."""
    return [v if isinstance(v, str) else integer_or_integers(v, name) for name, v in settings.items()]


def _convolves_volumes(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    # The form of all; its body is that of `conv3d`. What a window meets over the depth are channels of
    # planes: one convolution over these.
    _check({"input": input, "weight": weight, "bias": bias, "groups": groups}, 3, False)
    stride, padding, dilation = _regular(stride=stride, padding=padding, dilation=dilation)
    whole = _whole(3, input, weight, bias, stride, padding, dilation, groups)
    if whole is not None:
        return whole
    if input.dim() == 4:
        return conv3d(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    kernel = lengths_of(weight, 3)
    made = result_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, dilation)
    strides, pads, apart = amounts(kernel, stride, padding, dilation)
    batch, channels, depth, *plane = input.shape
    windows = along_depth(depth, made[0], prod(plane), kernel[0], strides[0], pads[0][0], apart[0])
    met = unfold_windows(input.flatten(3), windows).permute(0, 3, 1, 2, 4)
    planes = met.reshape(batch * made[0], channels * kernel[0], *plane)
    around = padding if isinstance(padding, str) else tuple(before for before, _ in pads[1:])
    out = conv2d(planes, quantized.planes_of(weight), bias, strides[1:], around, apart[1:], groups)
    return out.reshape(batch, made[0], *out.shape[1:]).transpose(1, 2).contiguous()


def _spreads_volumes(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    output_padding: int | tuple[int, ...] = 0,
    groups: int = 1,
    dilation: int | tuple[int, ...] = 1,
) -> Tensor:
    # The form of all; its body is the transpose of what `conv3d` does, step by step.
    _check({"input": input, "weight": weight, "bias": bias, "groups": groups}, 3, True)
    stride, padding, dilation = _regular(stride=stride, padding=padding, dilation=dilation)
    settings = stride, padding, output_padding, groups, dilation
    whole = _whole_spread(3, input, weight, bias, *settings)
    if whole is not None:
        return whole
    if input.dim() == 4:
        return conv_transpose3d(input.unsqueeze(0), weight, bias, *settings).squeeze(0)
    kernel = lengths_of(weight, 3)
    image = image_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, output_padding, dilation)
    strides, pads, apart = amounts(kernel, stride, padding, dilation)
    batch, channels, depth, *plane = input.shape
    planes = input.transpose(1, 2).reshape(batch * depth, channels, *plane)
    around, more = tuple(before for before, _ in pads), per_axis("output_padding", output_padding, 3, 0)
    taps = conv_transpose2d(
        planes, quantized.planes_of(weight), None, strides[1:], around[1:], more[1:], groups, apart[1:]
    )
    columns = taps.reshape(batch, depth, weight.shape[1] * groups, kernel[0], prod(image[1:]))
    windows = along_depth(image[0], depth, prod(image[1:]), kernel[0], strides[0], around[0], apart[0])
    out = fold_windows(columns.permute(0, 2, 3, 1, 4), windows).unflatten(-1, image[1:])
    return out if bias is None else out + bias.reshape(-1, 1, 1, 1)


# What a convolution and its transpose say of their arguments besides.
_OWN = {
    False: {
        "input": "; zero outside.",
        "weight": "(out, in / groups, {}), same dtype.",
        "padding": 'zeros at both ends; "valid" for none, "same" for as many as keep the lengths.',
    },
    True: {
        "input": ".",
        "weight": "(in, out / groups, {}), same dtype.",
        "padding": "places that the output lacks at both ends.",
        "output_padding": "places that it has more at its end; less than the stride or the dilation.",
    },
}
_WRONG = {
    False: "shapes do not fit, or the kernel is longer than the padded input.",
    True: "shapes do not fit, or nothing would be left.",
}


def _conv(
    count: int, is_transposed: bool, sentence: str, returns: str, aten: Any = None, example: str = ""
) -> Any:
    """Declare a convolution over ``count`` axes, or its transpose."""
    name = f"conv{'_transpose' * is_transposed}{count}d"
    volumes, own = _spreads_volumes if is_transposed else _convolves_volumes, _OWN[is_transposed]
    known = _SETTINGS | own | {
        "input": f"(batch, in, {_AXES[count]}) or (in, {_AXES[count]}){own['input']}",
        "weight": own["weight"].format(_KERNEL[count]),
        "stride": f"places from one window to the next{_NUMBERS[count]}.",
    }  # fmt: skip
    sections: dict[str, dict[str, str] | str] = {
        "Args": {k: known[k] for k in signature(volumes).parameters},
        "Returns": returns,
        "Raises": {"ShapeError": _WRONG[is_transposed], "DTypeError": "dtypes differ."},
    }
    form = formed(volumes, name, docstring(sentence, sections, example))
    if not is_transposed:
        aten = f"{name}.default", f"{name}.padding"
    public: dict[str, Any] = {"exports": ("torch", "nn.functional"), "aten": aten}
    if count == 3:
        return function(**public)(form)
    return op(**_convolution(count, is_transposed), **public)(form)


conv1d = _conv(
    1,
    False,
    "``out[n, o, p] = bias[o] + sum(weight[o, c, t] * input[n, c, p * stride + t * dilation - padding]\n    "
    "for c, t)``.",
    "(batch, out, (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1).",
    example=""">>> import pellucid as torch
>>> x = torch.tensor([[1.0, 2.0, 4.0, 8.0]], device="cpu")
>>> torch.conv1d(x, torch.tensor([[[1.0, -1.0]]], device="cpu")).tolist()
[[-1.0, -2.0, -4.0]]""",
)
conv2d = _conv(
    2,
    False,
    "`conv1d` over height and width.",
    "(batch, out, height, width), with the lengths that `conv1d` gives.",
)
conv3d = _conv(
    3,
    False,
    "`conv1d` over depth, height and width. Holds the input once for each place of the kernel's depth.",
    "(batch, out, depth, height, width), with the lengths that `conv1d` gives.",
)

conv_transpose1d = _conv(
    1,
    True,
    "The transpose of `conv1d` as a linear map: ``out[n, c, p * stride + t * dilation - padding] +=\n    "
    "weight[o, c, t] * input[n, o, p]``, plus the bias.",
    "(batch, out, (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1).",
)
conv_transpose2d = _conv(
    2,
    True,
    "`conv_transpose1d` over height and width.",
    "(batch, out, height, width), with the lengths that `conv_transpose1d` gives.",
    "conv_transpose2d.input",
)
conv_transpose3d = _conv(
    3,
    True,
    "`conv_transpose1d` over depth, height and width. Holds the output once for each place of the kernel's\n"
    "    depth that a stride leaves.",
    "(batch, out, depth, height, width), with the lengths that `conv_transpose1d` gives.",
    "conv_transpose3d.input",
)
