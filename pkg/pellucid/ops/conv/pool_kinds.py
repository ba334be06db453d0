"""Pooling over any number of axes: means, maxima, norms, maxima put back, windows at pseudo-random places.

Each function makes one for a number of axes, which `pool` names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ...autograd.edges import labelled
from ...autograd.grad_mode import is_grad_enabled
from ...errors import DTypeError, RangeError, ShapeError
from ...op.arguments import boolean, integer_or_integers, number, wrong
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..elementwise.activations import relu
from ..random.distributions import rand
from ..reduce.reductions import mean
from ..shape.creation import arange
from ..shape.padding import pad
from .geometry import Lengths, per_axis
from .pool_windows import Windows, counts_of, moving
from .window_ops import average_windows, max_window_values, max_windows, unfold_windows

Numbers = int | tuple[int, ...]
AXES = {1: "length", 2: "height, width", 3: "depth, height, width"}


def image_of(name: str, input: Tensor, count: int) -> Lengths:
    """The lengths over which windows move.

    Raises:
        ShapeError: the input has other axes, or no elements but for an empty batch.
    """
    shape = tuple(input.shape)
    if len(shape) not in (count + 1, count + 2) or 0 in shape[-count - 1 :]:
        raise ShapeError(
            f"{name}: input has shape {shape}; it must be (batch, channels, {AXES[count]}), or that without "
            "the batch, and have elements."
        )
    return shape[-count:]


def _windows(
    name: str,
    count: int,
    input: Tensor,
    *lengths: Any,
    ceil_mode: bool,
    counts: bool = False,
    divisor: int = 0,
) -> Windows:
    """The windows of a call: they are remembered by these values, so the values must be regular. ``lengths``
    are kernel_size, stride, padding and dilation."""
    named = zip(("kernel_size", "stride", "padding", "dilation"), lengths, strict=True)
    regular = [
        None if value is None and word == "stride" else integer_or_integers(value, f"{name}: {word}")
        for word, value in named
    ]
    flags = boolean(ceil_mode, f"{name}: ceil_mode"), boolean(counts, f"{name}: count_include_pad")
    return moving(name, image_of(name, input, count), *regular, *flags, divisor)


def _adapted(name: str, count: int, input: Tensor, output_size: Any) -> Windows:
    """Windows of which there are so many."""
    image = image_of(name, input, count)
    several = isinstance(output_size, (tuple, list))
    sizes = tuple(output_size) if several else (index(output_size, f"{name}: output_size"),) * count
    if len(sizes) != count:
        raise ShapeError(f"{name}: output_size is {output_size}; give one number, or {count}.")
    wanted = zip(sizes, image, strict=True)
    result = tuple(n if m is None else index(m, f"{name}: output_size") for m, n in wanted)
    if min(result) < 0:
        raise ShapeError(f"{name}: output_size is {output_size}; lengths must be at least 0.")
    return Windows(image, result)


# Of any number of axes


def _in_turn(step: Callable[[Tensor, Windows], Tensor], input: Tensor, windows: Windows) -> Tensor:
    """A step over the last two axes, then over the one before them."""
    shape = *input.shape[: -len(windows.image)], *windows.result
    for k, part in enumerate(windows.in_turn()):
        input = step(input.flatten(-2) if k else input, part)
    return input.reshape(shape)


def _sums(input: Tensor, windows: Windows) -> Tensor:
    """Sums of integers."""
    return unfold_windows(input, windows).sum(-1 - len(windows.image))


def _means(input: Tensor, windows: Windows) -> Tensor:
    if input.dtype is dt.int64 and windows.kernel:
        counts = tensor(counts_of(windows).astype(np.int64), device=input.device)
        return _in_turn(_sums, input, windows).div(counts, rounding_mode="trunc")
    if not windows.kernel and set(windows.result) == {1}:
        return mean(input, tuple(range(-len(windows.image), 0)), True)
    return _in_turn(average_windows, input, windows)


def _whole_maxima(input: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """Maxima of integers and their places: the first of equal ones that lie in the image."""
    around, axis = windows.margins(), input.dim() - len(windows.image)
    padded = pad(input, around, value=np.iinfo(input.dtype.numpy).min)
    places = pad(arange(prod(windows.image), device=input.device).reshape(windows.image), around, value=-1)
    inner = replace(windows, image=tuple(places.shape), padding=(0,) * len(windows.image))
    met = unfold_windows(padded, inner)
    seen = unfold_windows(places, inner).expand(met.shape)
    values = met.amax(axis)
    taps = ((met == values.unsqueeze(axis)) & (seen >= 0)).int().argmax(axis, True)
    return values, seen.gather(axis, taps).squeeze(axis)


def _maxima(input: Tensor, windows: Windows, wants_places: bool) -> Any:
    """Maxima, with their places where they are wanted."""
    is_whole = input.dtype.is_integer and input.device.type == "webgpu"
    # What is recorded has its places for its derivative.
    if not (wants_places or is_whole or (is_grad_enabled() and input.requires_grad)) and windows.is_dense:
        return _in_turn(max_window_values, input, windows)
    step = _whole_maxima if is_whole and windows.kernel else max_windows
    first, *rest = windows.in_turn()
    values, places = step(input, first)
    for part in rest:
        # Of the planes' maxima the largest; its place in its plane, and that plane's.
        values, found = step(values.flatten(-2), part)
        values = values.unflatten(-1, windows.result[1:])
        if wants_places:
            at = found.long().clamp(min=0)
            plane = at // part.image[1]
            places = places.flatten(-3).gather(-1, at.flatten(-2)).reshape(at.shape)
            places = (places + plane * prod(first.image)).reshape(values.shape)
    return (values, places.long()) if wants_places else values


# The kinds, each for a number of axes


def max_pool(name: str, count: int, always: bool = False) -> Callable:
    def call(
        input: Tensor,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        lengths = kernel_size, stride, padding, dilation
        windows = _windows(name, count, input, *lengths, ceil_mode=ceil_mode)
        return _maxima(input, windows, always or return_indices)

    return call


def adaptive_max_pool(name: str, count: int, always: bool = False) -> Callable:
    def call(input: Tensor, output_size: int | tuple[int | None, ...], return_indices: bool = False) -> Any:
        return _maxima(input, _adapted(name, count, input, output_size), always or return_indices)

    return call


def avg_pool(name: str, count: int) -> Callable:
    def plain(
        input: Tensor,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Tensor:
        return call(input, kernel_size, stride, padding, ceil_mode, count_include_pad)

    def call(
        input: Tensor,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        divisor = None if divisor_override is None else index(divisor_override, "divisor_override")
        if divisor == 0:
            raise ShapeError(f"{name}: divisor_override is 0. Give another number, or None for the count.")
        lengths, counts = (kernel_size, stride, padding, 1), count_include_pad
        return _means(
            input,
            _windows(name, count, input, *lengths, ceil_mode=ceil_mode, counts=counts, divisor=divisor or 0),
        )

    return plain if count == 1 else call


def adaptive_avg_pool(name: str, count: int) -> Callable:
    def call(input: Tensor, output_size: int | tuple[int | None, ...]) -> Tensor:
        windows = _adapted(name, count, input, output_size)
        out = _means(input, windows)
        # The mean of whole images is one, in PyTorch, too.
        is_mean = count == 1 or set(windows.result) == {1}
        return out if is_mean else labelled(f"AdaptiveAvgPool{count}DBackward0", out, (input,))

    return call


def lp_pool(name: str, count: int) -> Callable:
    def call(
        input: Tensor,
        norm_type: int | float,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        windows = _windows(name, count, input, kernel_size, stride, 0, 1, ceil_mode=ceil_mode)
        power = number(norm_type, f"{name}: norm_type")
        out = _means(input.pow(power), windows)
        return (out.sign() * relu(out.abs())).mul(prod(windows.kernel)).pow(1.0 / power)

    return call


def max_unpool(name: str, count: int) -> Callable:
    def call(
        input: Tensor,
        indices: Tensor,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        output_size: tuple[int, ...] | None = None,
    ) -> Tensor:
        image = image_of(name, input, count)
        if indices.dtype is not dt.int64:
            raise DTypeError(f"{name}: indices are {indices.dtype}; they must be int64.")
        if tuple(indices.shape) != tuple(input.shape):
            raise ShapeError(
                f"{name}: indices have shape {tuple(indices.shape)}, input {tuple(input.shape)}. They belong "
                "to each other."
            )
        kernel = per_axis(f"{name}: kernel_size", kernel_size, count, 1)
        strides = kernel if stride is None else per_axis(f"{name}: stride", stride, count, 1)
        pads = per_axis(f"{name}: padding", padding, count, 0)
        along = list(zip(image, kernel, strides, pads, strict=True))
        lengths = [(n - 1) * s + k - 2 * p for n, k, s, p in along]
        if output_size is not None:
            wanted = [index(n, f"{name}: output_size") for n in output_size][-count:]
            fits = (abs(w - n) < s for w, n, s in zip(wanted, lengths, strides, strict=False))
            if len(output_size) not in (count, count + 2) or not all(fits):
                raise RangeError(
                    f"{name}: output_size is {tuple(output_size)}; its last {count} lengths must be closer "
                    f"to {lengths} than the strides {strides}."
                )
            lengths = wanted
        out = input.new_zeros((*input.shape[:-count], prod(lengths)))
        flat = input.flatten(-count), indices.flatten(-count)
        return out.scatter(-1, flat[1], flat[0]).unflatten(-1, tuple(lengths))

    return call


def _starts(samples: Tensor, length: int, made: int, kernel: int) -> Tensor:
    """Where windows begin along an axis: apart by two neighbouring integers, as the samples say; the last one
    ends with the axis."""
    if made == 1:
        return (samples * 0).long().unsqueeze(-1) + (length - kernel)
    steps = samples.unsqueeze(-1) + arange(made, device=samples.device).to(samples.dtype)
    apart = float(np.float32(length - kernel) / np.float32(made - 1))
    begins = (steps * apart).long() - (samples * apart).long().unsqueeze(-1)
    return pad(begins.narrow(-1, 0, made - 1), (0, 1), value=length - kernel)


def fractional_max_pool(name: str, count: int, always: bool = False) -> Callable:
    def call(
        input: Tensor,
        kernel_size: int | tuple[int, ...],
        output_size: int | tuple[int, ...] | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        image = image_of(name, input, count)
        kernel = per_axis(f"{name}: kernel_size", kernel_size, count, 1)
        if (output_size is None) == (output_ratio is None):
            raise RangeError(f"{name}: give output_size or output_ratio, and not both.")
        if output_size is None:
            ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * count
            output_size = tuple(
                int(n * number(r, "output_ratio")) for n, r in zip(image, ratios, strict=True)
            )
        made = per_axis(f"{name}: output_size", output_size, count, 1)
        # Of volumes PyTorch wants one place more.
        if any(m + k - 1 + (count == 3) > n for m, k, n in zip(made, kernel, image, strict=True)):
            raise ShapeError(
                f"{name}: {made} windows of {kernel} do not begin at different places of {image}. Take fewer."
            )
        x = input.reshape(-1, input.shape[-count - 1], *image)
        samples = _random_samples
        if samples is not None and not isinstance(samples, Tensor):
            raise wrong(f"{name}: _random_samples", "Tensor", samples)
        if samples is None:
            samples = rand(*x.shape[:2], count, dtype=input.dtype, device=input.device)
        # The samples of two axes come in the order of x and y.
        order = (1, 0) if count == 2 else range(count)
        places = x.new_zeros((*x.shape[:2], *(1,) * (2 * count)), dtype=dt.int64)
        for k, at in enumerate(order):
            begins = _starts(samples.select(-1, at), image[k], made[k], kernel[k]).unsqueeze(-1)
            along = begins + arange(kernel[k], device=input.device)
            shape = [1] * (2 * count)
            shape[k], shape[count + k] = made[k], kernel[k]
            places = places * image[k] + along.reshape(*x.shape[:2], *shape)
        places = places.flatten(2 + count)
        met = x.flatten(2).gather(2, places.flatten(2)).reshape(places.shape)
        values, taps = met.max(-1)
        shape = (*input.shape[:-count], *made)
        if not (always or return_indices):
            return values.reshape(shape)
        return values.reshape(shape), places.gather(-1, taps.unsqueeze(-1)).reshape(shape)

    return call
