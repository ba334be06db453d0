"""Convolutions by quantized weights, whose bits the kernels of convolutions unpack as they read them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...autograd.composed import composed
from ...op.declaration import Call, op
from ...op.families import formed
from ...op.kernel import Launch
from ...quant.rows import as_matrix
from ...tensors.meta import Meta, meta
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..quant.products import as_input, dequantized
from ..reduce.reductions import sum as total
from .derivatives import convolution_weight, lengths_of
from .geometry import Geometry, Lengths, Settings, biased, geometry_of, image_of, result_of
from .kernels import window_launches


def _of_matrix(
    input: Tensor,
    weight: list[Tensor],
    bias: Tensor | None,
    kernel: Lengths,
    size: Lengths,
    settings: Settings,
) -> Tensor: ...


def _weight_shape(matrix: Meta, kernel: Lengths) -> Lengths:
    return matrix.shape[0], matrix.shape[1] // prod(kernel), *kernel


def _map(name: str, reference: Callable, doc: str) -> Callable[..., Tensor]:
    """Declare a convolution by a quantized matrix, or its transpose."""
    is_transposed = reference is image_of

    def made_shape(input: Lengths, weight: Lengths, size: Lengths, groups: int) -> Lengths:
        channels = weight[1] * groups if is_transposed else weight[0]
        return *input[: -len(size) - 1], channels, *size

    def geometry(
        input: Lengths, matrix: Meta, kernel: Lengths, size: Lengths, settings: Settings
    ) -> Geometry:
        weight = _weight_shape(matrix, kernel)
        image = made_shape(input, weight, size, settings.groups) if is_transposed else input
        return geometry_of(image, weight, input[-len(size) :] if is_transposed else size, settings)

    def shape(call: Call) -> Size:
        weight = _weight_shape(call["weight"][0], call["kernel"])
        return Size(made_shape(tuple(call["input"].shape), weight, call["size"], call["settings"].groups))

    def launches(call: Call) -> list[Launch]:
        given = [call[name] for name in ("kernel", "size", "settings")]
        made = geometry(tuple(call["input"].shape), call["weight"][0], *given)
        bias = "bias" if call["bias"] is not None else None
        return window_launches(call, made, "input", "weight[0]", bias, transposed=is_transposed)

    def on_cpu(input, weight, bias, *given):
        made = geometry(input.shape, weight[0]._meta, *given)
        return biased(reference(made, input, dequantized(weight)), bias)

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
    "quant_convolution", result_of,
    "`convolution` by a quantized matrix: what makes a channel of the result is a row, with a bias. "
    + _SETTINGS,
)  # fmt: skip
quant_convolution_input = _map(
    "quant_convolution_input", image_of,
    f"The transpose of `quant_convolution`, which is also its derivative. {_SETTINGS}",
)  # fmt: skip


def over_channels(g: Tensor, count: int) -> Tensor:
    """The sum over all axes but the channels, which lie before ``count`` lengths."""
    channels = g.dim() - count - 1
    return total(g, tuple(k for k in range(g.dim()) if k != channels))


def _by_weight(is_transposed: bool) -> Callable[..., Tensor]:
    """The convolution by a quantized weight of all its axes, perhaps one that stands for a float one, which
    has the gradient; or its transpose."""

    def input_slope(g, input_meta, weight, settings):
        back = convolved if is_transposed else transposed
        return back(g, weight, None, lengths_of(input_meta, len(settings.stride)), settings)

    def weight_slope(g, input, weight_meta, settings):
        both = (g, input) if is_transposed else (input, g)
        return convolution_weight(*both, tuple(weight_meta.shape[2:]), settings)

    @composed(
        name="convolution_input" if is_transposed else "convolution",
        input=input_slope,
        weight=weight_slope,
        bias=lambda g, settings: over_channels(g, len(settings.stride)),
    )
    def call(input: Tensor, weight: Tensor, bias: Tensor | None, size: Lengths, settings: Settings) -> Tensor:
        make = quant_convolution_input if is_transposed else quant_convolution
        return make(input, [as_matrix(weight.detach())], bias, tuple(weight.shape[2:]), size, settings)

    return call


convolved, transposed = _by_weight(False), _by_weight(True)


@composed(name="flatten", weight=lambda g, weight_meta: g.reshape(weight_meta.shape))
def planes_of(weight: Tensor) -> Tensor:
    """A weight over depth, height and width as one over planes, whose channels are those of all depths."""
    m = weight._meta
    if not m.dtype.is_quantized:
        return weight.flatten(1, 2)
    shape = m.shape[0], m.shape[1] * m.shape[2], *m.shape[3:]
    return Tensor(weight._storage, meta(shape, m.dtype, m.device), weight._offset)
