"""Convolutions of integers, which have no kernel of their own: products with what the windows meet."""

from __future__ import annotations

from math import prod

from ...errors import DTypeError
from ...tensors.tensor import Tensor
from ..shape.padding import pad
from .geometry import Lengths, Settings


def are_whole(input: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether a convolution is one of integers.

    Raises:
        DTypeError: dtypes differ.
    """
    if not input.dtype.is_integer:
        return False
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype is not input.dtype:
            raise DTypeError(f"'input' is {input.dtype} and '{name}' is {other.dtype}. Convert one of them.")
    return True


def convolved(input: Tensor, weight: Tensor, bias: Tensor | None, settings: Settings) -> Tensor:
    """A convolution over any number of axes, of shapes that are checked."""
    kernel, (strides, pads, apart, groups) = tuple(weight.shape[2:]), settings
    count = len(kernel)
    if input.dim() == count + 1:
        return convolved(input.unsqueeze(0), weight, bias, settings).squeeze(0)
    x = pad(input, [n for pair in reversed(pads) for n in pair])
    for k, (n, stride, step) in enumerate(zip(kernel, strides, apart, strict=True)):
        x = x.unfold(2 + k, step * (n - 1) + 1, stride)[..., ::step]
    made = tuple(x.shape[2 : 2 + count])
    met = x.unflatten(1, (groups, -1)).movedim(tuple(range(3, 3 + count)), tuple(range(-count, 0)))
    batch, channels, makes = x.shape[0], weight.shape[1] * prod(kernel), weight.shape[0] // groups
    out = weight.reshape(groups, makes, channels) @ met.reshape(batch, groups, channels, prod(made))
    out = out.reshape(batch, weight.shape[0], *made)
    return out if bias is None else out + bias.reshape(-1, *(1,) * count)


def spread(input: Tensor, weight: Tensor, bias: Tensor | None, settings: Settings, more: Lengths) -> Tensor:
    """A transposed one: that of the input with zeros between its places, by the weight turned around."""
    kernel, (strides, pads, apart, groups) = tuple(weight.shape[2:]), settings
    count = len(kernel)
    lengths = [(n - 1) * s + 1 for n, s in zip(input.shape[-count:], strides, strict=True)]
    apart_input = input.new_zeros((*input.shape[:-count], *lengths))
    apart_input[(..., *[slice(None, None, s) for s in strides])] = input
    turned = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1).flip(*range(2, 2 + count))
    around = tuple(
        (d * (k - 1) - before, d * (k - 1) - before + extra)
        for k, d, (before, _), extra in zip(kernel, apart, pads, more, strict=True)
    )
    return convolved(apart_input, turned, bias, Settings((1,) * count, around, apart, groups))
