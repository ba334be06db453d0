"""Convolutions over one to three axes, and their transposes."""

from __future__ import annotations

from functools import partial
from inspect import signature
from math import prod
from typing import Any

from ...errors import ShapeError
from ...op.arguments import integer_or_integers
from ...op.declaration import Call, docstring, function, op
from ...op.families import formed
from ...op.kernel import Launch
from ...op.schema import OPS
from ...tensors.shape import Size, index
from ...tensors.tensor import Tensor
from ..matmul.dense import are_complex, by_parts, floats
from . import quantized
from .derivatives import convolution, convolution_input, convolution_weight, lengths_of
from .geometry import (
    Geometry,
    Lengths,
    amounts,
    biased,
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


def _check(count: int, is_transposed: bool, *given: Any, groups: Any) -> None:
    """Refuse shapes of input, weight and bias that do not fit each other."""
    shapes: list[Lengths] = [() if x is None else tuple(x.shape) for x in given]
    (input, weight, bias), groups = shapes, index(groups, "groups")
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
    if given[2] is not None and bias != (makes,):
        raise ShapeError(f"bias has shape {bias}, weight makes {makes} channels. Give ({makes},).")


# Rules


def _prepared(count: int, is_transposed: bool, input, weight, bias, *given) -> Tensor | None:
    """What kernels do not convolve: complex numbers, part by part, integers, and quantized weights."""
    if are_complex(input, weight):
        convolves = OPS[f"conv{'_transpose' * is_transposed}{count}d"].call
        out = by_parts(lambda x, w: convolves(x, w, None, *given), input, weight)
        return out if bias is None else out + bias.reshape(-1, *[1] * count)
    if weight.dtype.is_quantized or (input.device.type == "webgpu" and are_whole(input, weight, bias)):
        return _made_of_ops(count, is_transposed, input, weight, bias, *given)


def _made_of_ops(count: int, is_transposed: bool, input, weight, bias, stride, padding, *rest) -> Tensor:
    """The convolution of integers, or by a quantized weight."""
    more, groups, dilation = rest if is_transposed else (0, *rest[::-1])
    _check(count, is_transposed, input, weight, bias, groups=groups)
    shapes = tuple(input.shape), tuple(weight.shape)
    if is_transposed:
        size = image_lengths(*shapes, stride, padding, more, dilation)
    else:
        size = result_lengths(*shapes, stride, padding, dilation)
    settings = amounts(shapes[1][2:], stride, padding, dilation, groups)
    if weight.dtype.is_quantized:
        make = quantized.transposed if is_transposed else quantized.convolved
        return make(input, weight, bias, size, settings)
    if is_transposed:
        return spread(input, weight, bias, settings, per_axis("output_padding", more, count, 0))
    return convolved(input, weight, bias, settings)


def _convolution(count: int, is_transposed: bool) -> dict[str, Any]:
    """What declares a convolution over ``count`` axes, or its transpose."""
    relate = transposed if is_transposed else forward
    names = [n for n in signature(relate).parameters if n not in ("input", "weight")]

    def geometry(call: Call) -> Geometry:
        shapes = tuple(call["input"].shape), tuple(call["weight"].shape)
        return relate(*shapes, *[call[name] for name in names])

    def shape(call: Call) -> Size:
        given = [call[name] for name in ("input", "weight", "bias")]
        _check(count, is_transposed, *given, groups=call["groups"])
        made = geometry(call)
        lengths = made.image if is_transposed else made.result
        channels = made.groups * (made.channels if is_transposed else made.rows)
        return Size((*call["input"].shape[: -count - 1], channels, *lengths[-count:]))

    def launches(call: Call) -> list[Launch]:
        bias = "bias" if call["bias"] is not None else None
        return window_launches(call, geometry(call), "input", "weight", bias, transposed=is_transposed)

    def reference(input, weight, bias, *settings):
        make = image_of if is_transposed else result_of
        return biased(make(relate(input.shape, weight.shape, *settings), input, weight), bias)

    def input_grad(g, input_meta, weight, stride, padding, dilation, groups):
        make = convolution if is_transposed else convolution_input
        settings = amounts(lengths_of(weight, count), stride, padding, dilation, groups)
        return make(g, weight, lengths_of(input_meta, count), settings)

    def weight_grad(g, input, weight_meta, stride, padding, dilation, groups):
        kernel = lengths_of(weight_meta, count)
        both = (g, input) if is_transposed else (input, g)
        return convolution_weight(*both, kernel, amounts(kernel, stride, padding, dilation, groups))

    return {
        "dtype": floats, "shape": shape, "kernel": launches, "reference": reference,
        "prepare": partial(_prepared, count, is_transposed),
        "grad": {
            "input": input_grad, "weight": weight_grad, "bias": lambda g: quantized.over_channels(g, count)
        },
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
    _check(3, False, input, weight, bias, groups=groups)
    stride, padding, dilation = _regular(stride=stride, padding=padding, dilation=dilation)
    if are_whole(input, weight, bias):
        return _made_of_ops(3, False, input, weight, bias, stride, padding, dilation, groups)
    if input.dim() == 4:
        return conv3d(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    kernel = lengths_of(weight, 3)
    made = result_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, dilation)
    strides, pads, apart, _ = amounts(kernel, stride, padding, dilation)
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
    _check(3, True, input, weight, bias, groups=groups)
    stride, padding, dilation = _regular(stride=stride, padding=padding, dilation=dilation)
    settings = stride, padding, output_padding, groups, dilation
    if are_whole(input, weight, bias):
        return _made_of_ops(3, True, input, weight, bias, *settings)
    if input.dim() == 4:
        return conv_transpose3d(input.unsqueeze(0), weight, bias, *settings).squeeze(0)
    kernel = lengths_of(weight, 3)
    image = image_lengths(tuple(input.shape), tuple(weight.shape), stride, padding, output_padding, dilation)
    strides, pads, apart, _ = amounts(kernel, stride, padding, dilation)
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
    1, False,
    "``out[n, o, p] = bias[o] + sum(weight[o, c, t] * input[n, c, p * stride + t * dilation - padding]\n    "
    "for c, t)``.",
    "(batch, out, (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1).",
    example=""">>> import pellucid as torch
>>> x = torch.tensor([[1.0, 2.0, 4.0, 8.0]], device="cpu")
>>> torch.conv1d(x, torch.tensor([[[1.0, -1.0]]], device="cpu")).tolist()
[[-1.0, -2.0, -4.0]]""",
)  # fmt: skip
conv2d = _conv(
    2, False, "`conv1d` over height and width.",
    "(batch, out, height, width), with the lengths that `conv1d` gives.",
)  # fmt: skip
conv3d = _conv(
    3, False,
    "`conv1d` over depth, height and width. Holds the input once for each place of the kernel's depth.",
    "(batch, out, depth, height, width), with the lengths that `conv1d` gives.",
)  # fmt: skip

conv_transpose1d = _conv(
    1, True,
    "The transpose of `conv1d` as a linear map: ``out[n, c, p * stride + t * dilation - padding] +=\n    "
    "weight[o, c, t] * input[n, o, p]``, plus the bias.",
    "(batch, out, (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1).",
)  # fmt: skip
conv_transpose2d = _conv(
    2, True, "`conv_transpose1d` over height and width.",
    "(batch, out, height, width), with the lengths that `conv_transpose1d` gives.", "conv_transpose2d.input",
)  # fmt: skip
conv_transpose3d = _conv(
    3, True,
    "`conv_transpose1d` over depth, height and width. Holds the output once for each place of the kernel's\n"
    "    depth that a stride leaves.",
    "(batch, out, depth, height, width), with the lengths that `conv_transpose1d` gives.",
    "conv_transpose3d.input",
)  # fmt: skip
