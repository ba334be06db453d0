"""The geometry of convolutions from their arguments, and the references on it.

A convolution relates an image, a weight and a result, and makes the result. Its transpose, which is also its
derivative, makes the image from the other two, and its other derivative makes the weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...errors import ShapeError
from ...tensors.shape import index

Lengths = tuple[int, ...]
# (before, after) of each axis.
Pads = tuple[tuple[int, int], ...]


class Settings(NamedTuple):
    """Of a convolution: stride, padding and dilation of each axis, and groups."""

    stride: Lengths
    padding: Pads
    dilation: Lengths
    groups: int


@dataclass(frozen=True)
class Axis:
    """One axis: place ``q`` of the result meets with element ``t`` of the kernel the image at
    ``q * stride - before + t * dilation``."""

    image: int = 1
    kernel: int = 1
    result: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0

    @property
    def every(self) -> int:
        """Elements of the kernel from one that meets a place of the image to the next."""
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def is_padded(self) -> bool:
        """Whether windows reach past the image."""
        reach = (self.result - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return self.before > 0 or reach > self.image

    @property
    def settings(self) -> tuple[int, int, int, int]:
        """As the kernels read them."""
        return self.stride, self.dilation, self.before, self.every


@dataclass(frozen=True)
class Geometry:
    """An image, a weight and a result. ``channels`` and ``rows`` are those of a group."""

    batch: int
    groups: int
    channels: int
    rows: int
    y: Axis
    x: Axis

    @cached_property
    def image(self) -> tuple[int, ...]:
        """Shape of the image."""
        return self.batch, self.groups, self.channels, self.y.image, self.x.image

    @cached_property
    def weight(self) -> tuple[int, ...]:
        """Shape of the weight."""
        return self.groups, self.rows, self.channels, self.y.kernel, self.x.kernel

    @cached_property
    def result(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.batch, self.groups, self.rows, self.y.result, self.x.result

    @property
    def sizes(self) -> dict[str, Any]:
        """Parameters of every kernel that reads images."""
        return {
            "groups": self.groups, "rows": self.rows, "channels": self.channels,
            "in_height": self.y.image, "in_width": self.x.image,
            "out_height": self.y.result, "out_width": self.x.result,
            "vertical": self.y.settings, "horizontal": self.x.settings,
        }  # fmt: skip

    @property
    def kernel(self) -> dict[str, str]:
        """Holes of every kernel."""
        return {"KERNEL_Y": f"{self.y.kernel}u", "KERNEL_X": f"{self.x.kernel}u"}


# Arguments


def per_axis(name: str, value: Any, count: int, least: int) -> Lengths:
    """An argument that is one number for all axes, or one for each."""
    numbers = tuple([index(n, name) for n in (value if isinstance(value, (tuple, list)) else (value,))])
    if len(numbers) == 1:
        numbers *= count
    if len(numbers) != count:
        raise ShapeError(f"{name} is {value}; give one number, or one for each of the {count} axes.")
    if min(numbers) < least:
        raise ShapeError(f"{name} is {value}; it must be at least {least}.")
    return numbers


def _pads(padding: Any, stride: Lengths, dilation: Lengths, kernel: Lengths) -> Pads:
    """The padding of each axis. "same" adds what keeps the length, an odd one at the end."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if max(stride) > 1:
            raise ShapeError(f"padding='same' keeps the lengths, and stride {stride} does not. Give numbers.")
        reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((n // 2, n - n // 2) for n in reach)
    if isinstance(padding, str):
        raise ShapeError(f"padding is {padding!r}; there are 'valid', 'same' and numbers.")
    return tuple((n, n) for n in per_axis("padding", padding, len(kernel), 0))


def amounts(kernel: Lengths, stride: Any, padding: Any, dilation: Any, groups: int = 1) -> Settings:
    """What is given of each axis, or of all, checked."""
    given = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    # What is remembered holds no tensor, which would live as long.
    return _amounts(kernel, *[index(v, n) if hasattr(v, "_meta") else v for n, v in given.items()])


@lru_cache(1024, typed=True)
def _amounts(kernel: Lengths, stride: Any, padding: Any, dilation: Any, groups: int) -> Settings:
    strides = per_axis("stride", stride, len(kernel), 1)
    dilations = per_axis("dilation", dilation, len(kernel), 1)
    return Settings(strides, _pads(padding, strides, dilations, kernel), dilations, index(groups, "groups"))


def geometry_of(image: Lengths, weight: Lengths, result: Lengths, settings: Settings) -> Geometry:
    """Of an image (batch, channels, *lengths), perhaps without the batch, a weight (rows, channels of a
    group, *lengths) and the result's lengths."""
    count, (strides, pads, dilations, groups) = len(weight) - 2, settings
    axes = [
        Axis(length, k, made, s, d, before)
        for length, k, made, s, d, (before, _) in zip(
            image[-count:], weight[2:], result, strides, dilations, pads, strict=True
        )
    ]
    y, x = axes[-2] if count > 1 else Axis(), axes[-1]
    return Geometry(image[0] if len(image) == count + 2 else 1, groups, weight[1], weight[0] // groups, y, x)


def result_lengths(input: Lengths, weight: Lengths, stride: Any, padding: Any, dilation: Any) -> Lengths:
    """The lengths that a convolution makes."""
    strides, pads, dilations, _ = amounts(weight[2:], stride, padding, dilation)
    result = tuple(
        (n + sum(pad) - d * (k - 1) - 1) // s + 1
        for n, k, s, pad, d in zip(input[-len(pads) :], weight[2:], strides, pads, dilations, strict=True)
    )
    if min(result) < 1:
        raise ShapeError(
            f"input of shape {input} with padding {padding} is smaller than the kernel {weight[2:]} with "
            f"dilation {dilation}. Pad more, or take a smaller kernel."
        )
    return result


def image_lengths(
    input: Lengths, weight: Lengths, stride: Any, padding: Any, output_padding: Any, dilation: Any
) -> Lengths:
    """The lengths that a transposed convolution makes."""
    if isinstance(padding, str):
        raise TypeError(f"padding is {padding!r}; a transposed convolution takes numbers.")
    strides, pads, dilations, _ = amounts(weight[2:], stride, padding, dilation)
    count = len(pads)
    extra = per_axis("output_padding", output_padding, count, 0)
    if any(n >= max(s, d) for n, s, d in zip(extra, strides, dilations, strict=True)):
        raise ShapeError(
            f"output_padding is {output_padding}; it must be less than stride {stride} or dilation "
            f"{dilation}."
        )
    image = tuple(
        (n - 1) * s - sum(pad) + d * (k - 1) + more + 1
        for n, k, s, pad, d, more in zip(
            input[-count:], weight[2:], strides, pads, dilations, extra, strict=True
        )
    )
    if min(image) < 1:
        raise ShapeError(
            f"input of shape {input} with padding {padding} makes lengths {image}. Pad less: here padding "
            "takes from the result."
        )
    return image


def forward(
    input: Lengths, weight: Lengths, stride: Any, padding: Any, dilation: Any, groups: int
) -> Geometry:
    """Of a convolution whose shapes are checked."""
    result = result_lengths(input, weight, stride, padding, dilation)
    return geometry_of(input, weight, result, amounts(weight[2:], stride, padding, dilation, groups))


def transposed(
    input: Lengths,
    weight: Lengths,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Geometry:
    """Of the convolution that a transposed one turns around; its shapes are checked."""
    image = image_lengths(input, weight, stride, padding, output_padding, dilation)
    count = len(image)
    shape = (*input[: -count - 1], weight[1] * groups, *image)
    settings = amounts(weight[2:], stride, padding, dilation, groups)
    return geometry_of(shape, weight, input[-count:], settings)


# References


def _wide(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Floats are added in float64."""
    return x.reshape(shape).astype(np.float64 if x.dtype.kind == "f" else x.dtype, copy=False)


def met_by(
    padded: np.ndarray, kernel: Lengths, stride: Lengths, dilation: Lengths, made: Lengths
) -> np.ndarray:
    """What windows meet of the last axes of padded images, (..., *made, *kernel): a view."""
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = sliding_window_view(padded, reach, tuple(range(-len(kernel), 0)), writeable=True)
    begins = [slice(None, (m - 1) * s + 1, s) for m, s in zip(made, stride, strict=True)]
    return view[(..., *begins, *[slice(None, None, d) for d in dilation])]


def _padded(geometry: Geometry) -> tuple[int, ...]:
    """Shape of an image with what windows meet outside of it."""
    reach = [
        max(a.before + a.image, (a.result - 1) * a.stride + (a.kernel - 1) * a.dilation + 1)
        for a in (geometry.y, geometry.x)
    ]
    return *geometry.image[:3], *reach


def _inner(geometry: Geometry, padded: np.ndarray) -> np.ndarray:
    """The image in a padded one."""
    y, x = geometry.y, geometry.x
    return padded[..., y.before : y.before + y.image, x.before : x.before + x.image]


def _windows(geometry: Geometry, padded: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """Each element of the kernel with what the places of the result meet of a padded image."""
    settings = [(a.kernel, a.stride, a.dilation, a.result) for a in (geometry.y, geometry.x)]
    view = met_by(padded, *zip(*settings, strict=True))
    for i, j in np.ndindex(geometry.y.kernel, geometry.x.kernel):
        yield i, j, view[..., i, j]


def _flat(x: np.ndarray) -> np.ndarray:
    """(..., channels, pixels)."""
    return x.reshape(*x.shape[:3], x.shape[3] * x.shape[4])


def result_of(geometry: Geometry, image: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The convolution on the cpu device, shape `Geometry.result`."""
    image, weight = _wide(image, geometry.image), _wide(weight, geometry.weight)
    padded = np.zeros(_padded(geometry), image.dtype)
    _inner(geometry, padded)[...] = image
    out = np.zeros(geometry.result, image.dtype)
    for i, j, window in _windows(geometry, padded):
        out += (weight[..., i, j] @ _flat(window)).reshape(out.shape)
    return out


def image_of(geometry: Geometry, result: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The transposed convolution on the cpu device, shape `Geometry.image`."""
    result, weight = _wide(result, geometry.result), _wide(weight, geometry.weight)
    padded = np.zeros(_padded(geometry), result.dtype)
    for i, j, window in _windows(geometry, padded):
        window += (weight[..., i, j].swapaxes(1, 2) @ _flat(result)).reshape(window.shape)
    return _inner(geometry, padded)


def biased(out: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """A result, (batch, groups, channels, *lengths), plus a number for each channel."""
    return out if bias is None else out + bias.reshape(1, *out.shape[1:3], 1, 1)


def weight_of(geometry: Geometry, image: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The weight's derivative on the cpu device, shape `Geometry.weight`."""
    image, result = _wide(image, geometry.image), _wide(result, geometry.result)
    padded = np.zeros(_padded(geometry), image.dtype)
    _inner(geometry, padded)[...] = image
    out = np.zeros(geometry.weight, image.dtype)
    for i, j, window in _windows(geometry, padded):
        out[..., i, j] = (_flat(result) @ _flat(window).swapaxes(-1, -2)).sum(0)
    return out
