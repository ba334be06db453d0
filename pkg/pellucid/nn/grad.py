"""Gradients of convolutions by themselves: PyTorch's ``torch.nn.grad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import grad
from ..autograd.grad_mode import under
from ..tensors.tensor import Tensor
from . import functional

_SETTINGS = ("stride", "padding", "dilation", "groups")


def _gradient(convolution: Callable, sizes: list[Any], wanted: int, g: Tensor, settings: tuple) -> Any:
    """The gradient of a convolution's input (0) or weight (1). It is linear in both: values do not count.

    Args:
        convolution: the function.
        sizes: the input and the weight, of which the one that is wanted is a size.
        wanted: its place.
        g: the gradient of the result.
        settings: stride, padding, dilation, groups.
    """
    given = [
        g.new_zeros(tuple(x)).requires_grad_() if k == wanted else x.detach() for k, x in enumerate(sizes)
    ]
    out = under(True, convolution, *given, **dict(zip(_SETTINGS, settings, strict=True)))
    return grad(out, given[wanted], g)[0]


def conv1d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """The gradient of `conv1d` with respect to its input.

    Args:
        input_size: the shape of the input.
        weight: the weight.
        grad_output: the gradient of the result.
        stride, padding, dilation, groups: as of the convolution.
    """
    settings = stride, padding, dilation, groups
    return _gradient(functional.conv1d, [input_size, weight], 0, grad_output, settings)


def conv1d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """The gradient of `conv1d` with respect to its weight, of shape ``weight_size``; see `conv1d_input`."""
    settings = stride, padding, dilation, groups
    return _gradient(functional.conv1d, [input, weight_size], 1, grad_output, settings)


def conv2d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """The gradient of `conv2d` with respect to its input; see `conv1d_input`."""
    settings = stride, padding, dilation, groups
    return _gradient(functional.conv2d, [input_size, weight], 0, grad_output, settings)


def conv2d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """The gradient of `conv2d` with respect to its weight; see `conv1d_weight`."""
    settings = stride, padding, dilation, groups
    return _gradient(functional.conv2d, [input, weight_size], 1, grad_output, settings)


def conv3d_input(
    input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """The gradient of `conv3d` with respect to its input; see `conv1d_input`."""
    settings = stride, padding, dilation, groups
    return _gradient(functional.conv3d, [input_size, weight], 0, grad_output, settings)


def conv3d_weight(
    input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1
) -> Tensor:
    """The gradient of `conv3d` with respect to its weight; see `conv1d_weight`."""
    settings = stride, padding, dilation, groups
    return _gradient(functional.conv3d, [input, weight_size], 1, grad_output, settings)


__all__ = [
    "conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight",
]  # fmt: skip
