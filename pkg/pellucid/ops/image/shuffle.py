"""Elements that change between channels and pixels: pixel_shuffle, channel_shuffle, unfold, fold."""

from __future__ import annotations

from math import prod
from typing import Any

from ...errors import ShapeError
from ...op.public import function
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..conv.geometry import amounts, per_axis, result_lengths
from ..conv.pool_windows import Windows
from ..conv.window_ops import fold_windows, unfold_windows

_BOTH = ("torch", "nn.functional")


def _factor(name: str, input: Tensor, value: Any) -> int:
    """How many pixels a channel becomes along each axis, or channels a pixel."""
    factor = index(value, f"{name}: the factor")
    if input.dim() < 3 or factor < 1:
        raise ShapeError(
            f"{name}: input has {input.dim()} axes and the factor is {factor}; there must be three axes at "
            "least, and a positive factor."
        )
    return factor


@function(exports=_BOTH, node="PixelShuffle")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become pixels: (..., c * r * r, height, width) to (..., c, height * r, width * r).

    Args:
        input: three axes or more.
        upscale_factor: r.

    Raises:
        ShapeError: the channels are no multiple of r * r.
    """
    r = _factor("pixel_shuffle", input, upscale_factor)
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise ShapeError(f"pixel_shuffle: {channels} channels are no multiple of {r} * {r}.")
    parts = input.reshape(*batch, channels // (r * r), r, r, height, width)
    parts = parts.movedim((-4, -3), (-3, -1))
    return parts.reshape(*batch, channels // (r * r), height * r, width * r)


@function(exports=_BOTH, node="PixelUnshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels become channels: the inverse of `pixel_shuffle`.

    Args:
        input: three axes or more.
        downscale_factor: r.

    Raises:
        ShapeError: height or width are no multiple of r.
    """
    r = _factor("pixel_unshuffle", input, downscale_factor)
    *batch, channels, height, width = input.shape
    if height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: height {height} and width {width} must be multiples of {r}.")
    parts = input.reshape(*batch, channels, height // r, r, width // r, r).movedim((-3, -1), (-4, -3))
    return parts.reshape(*batch, channels * r * r, height // r, width // r)


@function(exports=_BOTH, node="ChannelShuffle")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels in another order: of each group the first, then of each the second, and so on.

    Args:
        input: (batch, channels, ...), three axes or more.
        groups: how many groups the channels are in.

    Raises:
        ShapeError: groups do not divide the channels.
    """
    groups = _factor("channel_shuffle", input, groups)
    if input.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: groups is {groups}; it must divide {input.shape[1]} channels.")
    return input.unflatten(1, (groups, input.shape[1] // groups)).transpose(1, 2).reshape(input.shape)


def _patches(image: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> Windows:
    kernel = per_axis("kernel_size", kernel_size, 2, 1)
    given = {"stride": stride, "padding": padding, "dilation": dilation}
    numbers = {name: per_axis(name, value, 2, 0) for name, value in given.items()}
    strides, pads, apart, _ = amounts(kernel, **numbers, groups=1)
    made = result_lengths(image, (1, 1, *kernel), **numbers)
    return Windows(image, made, kernel, strides, tuple(before for before, _ in pads), apart)


@function(
    exports="nn.functional",
    aten="im2col.default(self, kernel_size, dilation, padding, stride)",
    node="Im2Col",
)
def unfold(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    dilation: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    stride: int | tuple[int, ...] = 1,
) -> Tensor:
    """The elements that windows hold, one window a column: im2col.

    Args:
        input: (batch, channels, height, width) or (channels, height, width), floating point; zero outside.
        kernel_size: height and width of a window: one number, or both, as all that follow.
        dilation: places from one element of a window to the next.
        padding: zeros at both ends.
        stride: places from one window to the next.

    Returns:
        (batch, channels * kernel height * kernel width, windows).

    Raises:
        ShapeError: a window is larger than the padded input, or a setting does not fit.
    """
    if input.dim() not in (3, 4) or 0 in input.shape[-3:]:
        raise ShapeError(
            f"unfold: input has shape {tuple(input.shape)}; it must be (batch, channels, height, width), or "
            "that without the batch, and have elements."
        )
    windows = _patches(tuple(input.shape[-2:]), kernel_size, stride, padding, dilation)
    return unfold_windows(input, windows).flatten(-2).flatten(-3, -2)


@function(
    exports="nn.functional",
    aten="col2im.default(self, output_size, kernel_size, dilation, padding, stride)",
    node="Col2Im",
)
def fold(
    input: Tensor,
    output_size: int | tuple[int, ...],
    kernel_size: int | tuple[int, ...],
    dilation: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    stride: int | tuple[int, ...] = 1,
) -> Tensor:
    """The sums of what windows hold of each place: col2im, the transpose of `unfold`.

    Args:
        input: (batch, channels * kernel height * kernel width, windows), or that without the batch.
        output_size: (height, width) of the result.
        kernel_size, dilation, padding, stride: as in `unfold`.

    Returns:
        (batch, channels, *output_size).

    Raises:
        ShapeError: the input has other lengths than `unfold` of such a result makes.
    """
    windows = _patches(per_axis("output_size", output_size, 2, 1), kernel_size, stride, padding, dilation)
    taps, made = prod(windows.kernel), prod(windows.result)
    if input.dim() not in (2, 3) or input.shape[-2] % taps or input.shape[-1] != made:
        raise ShapeError(
            f"fold: input has shape {tuple(input.shape)}; its last lengths must be a multiple of {taps}, the "
            f"places of a window, and {made}, the number of windows."
        )
    columns = input.unflatten(-2, (input.shape[-2] // taps, taps)).unflatten(-1, windows.result)
    return fold_windows(columns, windows)
