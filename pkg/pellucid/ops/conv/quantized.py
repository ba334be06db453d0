"""Convolutions by quantized weights, whose bits the kernels of convolutions unpack as they read them."""

# A form has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...autograd.composed import composed
from ...op.call import Call
from ...op.declaration import op
from ...op.families import formed
from ...op.kernel.launch import Launch
from ...quant.rows import as_matrix
from ...tensors.meta import Meta, meta
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..quant.products import as_input, dequantized
from ..reduce.reductions import sum as total
from .derivatives import convolution_weight, lengths_of
from .geometry import Geometry, Lengths, Pads, geometry_of, image_of, result_of
from .kernels import window_launches


def _of_matrix(
    input: Tensor,
    weight: list[Tensor],
    bias: Tensor | None,
    kernel: Lengths,
    size: Lengths,
    stride: Lengths,
    padding: Pads,
    dilation: Lengths,
    groups: int,
) -> Tensor: ...


def _weight_shape(matrix: Meta, kernel: Lengths) -> Lengths:
    return matrix.shape[0], matrix.shape[1] // prod(kernel), *kernel


def _map(name: str, reference: Callable, doc: str) -> Callable[..., Tensor]:
    """Declare a convolution by a quantized matrix, or its transpose."""
    is_transposed = reference is image_of

    def made_shape(input: Lengths, weight: Lengths, size: Lengths, groups: int) -> Lengths:
        channels = weight[1] * groups if is_transposed else weight[0]
        return *input[: -len(size) - 1], channels, *size

    def geometry(input: Lengths, matrix: Meta, kernel: Lengths, size: Lengths, *settings) -> Geometry:
        weight = _weight_shape(matrix, kernel)
        image = made_shape(input, weight, size, settings[-1]) if is_transposed else input
        result = input[-len(size) :] if is_transposed else size
        return geometry_of(image, weight, result, *settings)

    def shape(call: Call) -> Size:
        weight = _weight_shape(call["weight"][0], call["kernel"])
        return Size(made_shape(tuple(call["input"].shape), weight, call["size"], call["groups"]))

    def launches(call: Call) -> list[Launch]:
        settings = [call[n] for n in ("kernel", "size", "stride", "padding", "dilation", "groups")]
        made = geometry(tuple(call["input"].shape), call["weight"][0], *settings)
        bias = "bias" if call["bias"] is not None else None
        return window_launches(call, made, "input", "weight[0]", bias, transposed=is_transposed)

    def on_cpu(input, weight, bias, *settings):
        made = reference(geometry(input.shape, weight[0]._meta, *settings), input, dequantized(weight))
        return made if bias is None else made + bias.reshape(1, *made.shape[1:3], 1, 1)

    return op(
        dtype=as_input,
        shape=shape,
        kernel=launches,
        reference=on_cpu,
        grad=None,
        exports=None,
        ours="PyTorch's convolutions by quantized weights take quantized inputs",
    )(formed(_of_matrix, name, doc))


_SETTINGS = "``kernel`` has the lengths of the weight's kernel, the others are as of `convolution`."
quant_convolution = _map(
    "quant_convolution",
    result_of,
    "`convolution` by a quantized matrix: what makes a channel of the result is a row, with a bias. "
    + _SETTINGS,
)
quant_convolution_input = _map(
    "quant_convolution_input",
    image_of,
    f"The transpose of `quant_convolution`, which is also its derivative. {_SETTINGS}",
)


def _weight_slope(image, result, weight_meta, *settings):
    return convolution_weight(image, result, tuple(weight_meta.shape[2:]), *settings)


def _image_slope(g, image_meta, weight, stride, padding, dilation, groups) -> Tensor:
    size = lengths_of(image_meta, len(stride))
    return transposed(g, weight, None, size, stride, padding, dilation, groups)


def _bias_slope(g, stride):
    """The sum over all axes but the channels, which lie before the lengths."""
    channels = g.dim() - len(stride) - 1
    return total(g, tuple(k for k in range(g.dim()) if k != channels))


@composed(
    name="convolution",
    image=_image_slope,
    weight=lambda g, image, weight_meta, stride, padding, dilation, groups: _weight_slope(
        image, g, weight_meta, stride, padding, dilation, groups
    ),
    bias=_bias_slope,
)
def convolved(
    image: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    size: Lengths,
    stride: Lengths,
    padding: Pads,
    dilation: Lengths,
    groups: int,
) -> Tensor:
    """`convolution` by a quantized weight of all its axes, perhaps one that stands for a float one, which
    has the gradient."""
    rows, kernel = [as_matrix(weight.detach())], tuple(weight.shape[2:])
    return quant_convolution(image, rows, bias, kernel, size, stride, padding, dilation, groups)


@composed(
    name="convolution_input",
    result=lambda g, result_meta, weight, stride, padding, dilation, groups: convolved(
        g, weight, None, lengths_of(result_meta, len(stride)), stride, padding, dilation, groups
    ),
    weight=lambda g, result, weight_meta, stride, padding, dilation, groups: _weight_slope(
        g, result, weight_meta, stride, padding, dilation, groups
    ),
    bias=_bias_slope,
)
def transposed(
    result: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    size: Lengths,
    stride: Lengths,
    padding: Pads,
    dilation: Lengths,
    groups: int,
) -> Tensor:
    """The transpose of `convolved`."""
    rows, kernel = [as_matrix(weight.detach())], tuple(weight.shape[2:])
    return quant_convolution_input(result, rows, bias, kernel, size, stride, padding, dilation, groups)


@composed(name="flatten", weight=lambda g, weight_meta: g.reshape(weight_meta.shape))
def planes_of(weight: Tensor) -> Tensor:
    """A weight over depth, height and width as one over planes, whose channels are those of all depths."""
    m = weight._meta
    if not m.dtype.is_quantized:
        return weight.flatten(1, 2)
    shape = m.shape[0], m.shape[1] * m.shape[2], *m.shape[3:]
    return Tensor(weight._storage, meta(shape, m.dtype, m.device), weight._offset)
