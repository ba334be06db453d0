"""Windows that move over one to three axes, and the references of what is taken of them over one or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...errors import ShapeError
from .geometry import Lengths, met_by, per_axis

# Places of a window up to which a kernel is written for it.
_SMALL = 64


@dataclass(frozen=True)
class Windows:
    """Windows along each of the last axes.

    Args:
        image: lengths of what the windows move over.
        result: how many windows there are.
        kernel, stride, padding, dilation: of each axis; empty where windows adapt to their number.
        count_padding: whether places of the padding count in a mean.
        divisor: what a sum is divided by instead; 0 for the count.
    """

    image: Lengths
    result: Lengths
    kernel: Lengths = ()
    stride: Lengths = ()
    padding: Lengths = ()
    dilation: Lengths = ()
    count_padding: bool = False
    divisor: int = 0

    def params(self, planes: int, outputs: Lengths) -> dict[str, Any]:
        """Parameters that all kernels have. Of two axes; where there is one, the other has one window."""
        in_height, in_width = (1, *self.image)[-2:]
        out_height, out_width = (1, *self.result)[-2:]
        settings = list(zip(self.kernel, self.stride, self.padding, self.dilation, strict=True))
        vertical, horizontal = [(1, 1, 0, 1), *(settings or [(0, 0, 0, 1)] * len(self.image))][-2:]
        return {
            "outputs": planes * prod(outputs), "in_height": in_height, "in_width": in_width,
            "out_height": out_height, "out_width": out_width, "vertical": vertical, "horizontal": horizontal,
        }  # fmt: skip

    def spans(self) -> tuple[int, int]:
        """Rows and columns of places that the largest window holds."""
        along = zip(self.image, self.result, strict=True)
        return _two(self.kernel or [-(-n // max(m, 1)) + 1 for n, m in along])

    @property
    def is_dense(self) -> bool:
        """Whether windows have one size, which is small, and no gaps."""
        return bool(self.kernel) and prod(self.kernel) <= _SMALL and set(self.dilation) == {1}

    def overlaps(self) -> tuple[int, int]:
        """Rows and columns of windows that a place is in at most."""
        if self.kernel:
            return _two([-(-k // s) + 1 for k, s in zip(self.kernel, self.stride, strict=True)])
        return _two([-(-m // max(n, 1)) + 2 for n, m in zip(self.image, self.result, strict=True)])

    def in_turn(self) -> list[Windows]:
        """The same over two axes at most: of three first over the last two, then over the one before them and
        the windows that those made, as one axis."""
        if len(self.image) < 3:
            return [self]
        plane, own = prod(self.result[1:]), {}
        if self.kernel:
            own = {
                "kernel": (self.kernel[0], 1), "stride": (self.stride[0], 1),
                "padding": (self.padding[0], 0), "dilation": (self.dilation[0], 1),
                "divisor": 1 if self.divisor else 0,
            }  # fmt: skip
        names = ("image", "result", "kernel", "stride", "padding", "dilation")
        return [
            replace(self, **{name: getattr(self, name)[1:] for name in names}),
            replace(self, image=(self.image[0], plane), result=(self.result[0], plane), **own),
        ]

    def margins(self) -> list[int]:
        """What `pad` puts around an image so that every window lies in it."""
        along = zip(
            self.image, self.result, self.kernel, self.stride, self.padding, self.dilation, strict=True
        )
        return [
            count
            for n, m, k, s, p, d in reversed(list(along))
            for count in (p, max((m - 1) * s + d * (k - 1) + 1 - p - n, 0))
        ]

    def planes(self, shape: Lengths) -> int:
        """How many images a tensor has."""
        return prod(shape[: -len(self.image)])

    def bounds(self, axis: int, q: int) -> tuple[int, int, int]:
        """(first place, the one behind the last, what a mean is divided by) of a window along an axis."""
        length, windows = self.image[axis], self.result[axis]
        if not self.kernel:
            first, end = q * length // windows, -(-(q + 1) * length // windows)
            return first, end, end - first
        before = self.padding[axis]
        begin = q * self.stride[axis] - before
        last = min(begin + self.kernel[axis], length + before)
        first, end = max(begin, 0), min(last, length)
        return first, end, last - begin if self.count_padding else end - first


def along_depth(
    image: int, made: int, plane: int, kernel: int, stride: int, before: int, dilation: int
) -> Windows:
    """Windows over the depth of volumes whose planes are flat."""
    return Windows((image, plane), (made, plane), (kernel, 1), (stride, 1), (before, 0), (dilation, 1))


def _two(along: Sequence[int]) -> tuple[int, int]:
    """One number for each of two axes."""
    tall, wide = (1, *along)[-2:]
    return tall, wide


@lru_cache(1024, typed=True)
def moving(
    name: str,
    image: Lengths,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    count_padding: bool = False,
    divisor: int = 0,
) -> Windows:
    """Windows of one size that move by strides."""
    count = len(image)
    kernel = per_axis(f"{name}: kernel_size", kernel_size, count, 1)
    strides = kernel if stride is None or stride == () else per_axis(f"{name}: stride", stride, count, 1)
    pads = per_axis(f"{name}: padding", padding, count, 0)
    dilations = per_axis(f"{name}: dilation", dilation, count, 1)
    result = []
    for n, k, s, p, d in zip(image, kernel, strides, pads, dilations, strict=True):
        reach = d * (k - 1) + 1
        if 2 * p > reach:
            raise ShapeError(
                f"{name}: padding is {padding}; it must be at most half of the {reach} places that a window "
                "spans."
            )
        room = n + 2 * p - reach
        windows = (-(-room // s) if ceil_mode else room // s) + 1
        # A last window that is not full must begin in the image or before it.
        result.append(windows - (ceil_mode and (windows - 1) * s >= n + p))
    if min(result) < 1:
        raise ShapeError(
            f"{name}: images of {image} with padding {padding} are smaller than windows of {kernel} with "
            f"dilation {dilation}. Pad more, or take smaller windows."
        )
    return Windows(image, tuple(result), kernel, strides, pads, dilations, count_padding, divisor)


# References


def counts_of(windows: Windows) -> np.ndarray:
    """What the sum of each window is divided by."""
    if windows.divisor:
        return np.full(windows.result, float(windows.divisor))
    counts = np.ones(())
    for axis, length in enumerate(windows.result):
        along = np.array([windows.bounds(axis, q)[2] for q in range(length)], np.float64)
        counts = counts[..., None] * along
    return counts


def means_of(input: np.ndarray, windows: Windows) -> np.ndarray:
    """Means of windows on the cpu device."""
    out = input.astype(np.float64)
    for axis in range(len(windows.image)):
        dim = axis - len(windows.image)
        parts = [windows.bounds(axis, q)[:2] for q in range(windows.result[axis])]
        sums = [out.take(range(*part), dim).sum(dim) for part in parts]
        out = np.stack(sums, dim) if sums else out.take([], dim)
    return out / counts_of(windows)


def spread_means(result: np.ndarray, windows: Windows) -> np.ndarray:
    """The derivative of `means_of`, from that of its result."""
    out = result.astype(np.float64) / counts_of(windows)
    for axis, length in enumerate(windows.image):
        dim = axis - len(windows.image)
        parts = np.moveaxis(out, dim, 0)
        whole = np.zeros((length, *parts.shape[1:]))
        for q, part in enumerate(parts):
            whole[slice(*windows.bounds(axis, q)[:2])] += part
        out = np.moveaxis(whole, 0, dim)
    return out


def _around(windows: Windows) -> list[tuple[int, int]]:
    """What is added before and behind each axis of images, (images, *lengths)."""
    margins = windows.margins()
    return [(0, 0), *zip(margins[-2::-2], margins[-1::-2], strict=True)]


def _met(padded: np.ndarray, windows: Windows) -> np.ndarray:
    """What each window meets of padded images, (images, *result, *kernel): a view."""
    return met_by(padded, windows.kernel, windows.stride, windows.dilation, windows.result)


def unfolded(input: np.ndarray, windows: Windows) -> np.ndarray:
    """What each window meets, tap by tap, on the cpu device: (..., taps, *result)."""
    count = len(windows.image)
    met = _met(np.pad(input.reshape(-1, *windows.image), _around(windows)), windows)
    taps_first = np.moveaxis(met, range(-count, 0), range(1, 1 + count))
    return taps_first.reshape(*input.shape[:-count], prod(windows.kernel), *windows.result)


def folded(input: np.ndarray, windows: Windows) -> np.ndarray:
    """The transpose of `unfolded`."""
    x, around = input.reshape(-1, *windows.kernel, *windows.result), _around(windows)[1:]
    parts = list(zip(windows.image, around, strict=True))
    out = np.zeros((len(x), *[before + n + behind for n, (before, behind) in parts]))
    met = _met(out, windows)
    for tap in np.ndindex(*windows.kernel):
        met[(..., *tap)] += x[(slice(None), *tap)]
    image = out[(..., *[slice(before, before + n) for n, (before, _) in parts])]
    return image.reshape(*input.shape[: -len(parts) - 1], *windows.image)


def _adapted_maxima(x: np.ndarray, windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    """`maxima_of` of windows that adapt to their number: the first of equal elements, or the last NaN."""
    result = (1, *windows.result)[-2:]
    values, indices = np.zeros((len(x), *result), x.dtype), np.zeros((len(x), *result), np.int64)
    places = np.arange(x[0].size).reshape(x.shape[1:])
    pairs = Windows(x.shape[1:], result)
    for y in range(result[0]):
        rows = slice(*pairs.bounds(0, y)[:2])
        for k in range(result[1]):
            columns = slice(*pairs.bounds(1, k)[:2])
            seen = x[:, rows, columns].reshape(len(x), -1)
            nans = np.isnan(seen)
            last = nans.shape[1] - 1 - nans[:, ::-1].argmax(1)
            at = np.where(nans.any(1), last, np.where(nans, -np.inf, seen).argmax(1))
            values[:, y, k] = seen[np.arange(len(x)), at]
            indices[:, y, k] = places[rows, columns].ravel()[at]
    return values, indices


def maxima_of(input: np.ndarray, windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    """Maxima of windows and their places on the cpu device."""
    shape = (*input.shape[: -len(windows.image)], *windows.result)
    if not windows.kernel:
        values, indices = _adapted_maxima(input.reshape(-1, *(1, *windows.image)[-2:]), windows)
        return values.reshape(shape), indices.reshape(shape)
    # A plane of places beside the images, both with what windows meet outside: there are no places.
    x, places = input.reshape(-1, *windows.image), np.arange(prod(windows.image)).reshape(1, *windows.image)
    around = _around(windows)
    met, seen = _met(np.pad(x, around), windows), _met(np.pad(places, around, constant_values=-1), windows)
    values = np.full((len(x), *windows.result), -np.inf if input.dtype.kind == "f" else 0, input.dtype)
    indices = np.full(values.shape, -1)
    for tap in np.ndindex(*windows.kernel):
        value, place = met[(..., *tap)], seen[(..., *tap)]
        # Comparisons with NaN are false: a NaN is taken always, and nothing but another after it.
        taken = (place >= 0) & ((indices < 0) | (value > values) | (value != value))
        values[taken] = value[taken]
        indices[taken] = np.broadcast_to(place, taken.shape)[taken]
    return values.reshape(shape), indices.reshape(shape)


def spread_maxima(result: np.ndarray, indices: np.ndarray, windows: Windows) -> np.ndarray:
    """The derivative of `maxima_of`, from that of its values."""
    planes, count = windows.planes(result.shape), prod(windows.result)
    flat, places = result.reshape(planes, count), indices.reshape(planes, count)
    out = np.zeros((planes, prod(windows.image)), np.float64)
    plane, at = np.nonzero(places >= 0)
    np.add.at(out, (plane, places[plane, at]), flat[plane, at])
    return out
