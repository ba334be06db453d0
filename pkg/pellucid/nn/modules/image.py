"""Layers that rearrange: images of other sizes, shuffles of pixels, patches, joined and split axes."""

from __future__ import annotations

from ...op.arguments import integers, number
from ...ops.image import resample, shuffle
from ...tensors.tensor import Tensor
from .module import Configured, Module

Numbers = int | tuple[int, ...]


class Upsample(Module):
    """`interpolate` with fixed settings.

    Args:
        size, scale_factor, mode, align_corners, recompute_scale_factor: as in `interpolate`.
    """

    def __init__(
        self,
        size: Numbers | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        what = f"{self.name}: scale_factor"
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(float(number(factor, what)) for factor in scale_factor)
        self.scale_factor = (
            float(number(scale_factor, what)) if isinstance(scale_factor, int) else scale_factor
        )
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return resample.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        wanted = "size" if self.scale_factor is None else "scale_factor"
        return f"{wanted}={getattr(self, wanted)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images to the nearest.

    Args:
        size, scale_factor: as in `interpolate`.
    """

    def __init__(
        self, size: Numbers | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images, "bilinear" with the corners aligned.

    Args:
        size, scale_factor: as in `interpolate`.
    """

    def __init__(
        self, size: Numbers | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class _Settings(Configured):
    """A function with fixed settings, all of which a printed model has."""

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._settings)


class PixelShuffle(_Settings):
    """`pixel_shuffle` with a fixed factor.

    Args:
        upscale_factor: how many pixels a channel becomes along each axis.
    """

    upscale_factor: int

    def __init__(self, upscale_factor: int):
        self._set(upscale_factor=upscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return shuffle.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(_Settings):
    """`pixel_unshuffle` with a fixed factor.

    Args:
        downscale_factor: how many pixels of each axis become channels.
    """

    downscale_factor: int

    def __init__(self, downscale_factor: int):
        self._set(downscale_factor=downscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return shuffle.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(_Settings):
    """`channel_shuffle` with a fixed number of groups.

    Args:
        groups: how many groups the channels are in.
    """

    groups: int

    def __init__(self, groups: int):
        self._set(groups=groups)

    def forward(self, input: Tensor) -> Tensor:
        return shuffle.channel_shuffle(input, self.groups)


class Unfold(_Settings):
    """`unfold` with fixed settings.

    Args:
        kernel_size, dilation, padding, stride: as in `unfold`.
    """

    kernel_size: Numbers
    dilation: Numbers
    padding: Numbers
    stride: Numbers

    def __init__(
        self, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1
    ):
        self._set(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)

    def forward(self, input: Tensor) -> Tensor:
        return shuffle.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Settings):
    """`fold` with fixed settings.

    Args:
        output_size, kernel_size, dilation, padding, stride: as in `fold`.
    """

    output_size: Numbers
    kernel_size: Numbers
    dilation: Numbers
    padding: Numbers
    stride: Numbers

    def __init__(
        self,
        output_size: Numbers,
        kernel_size: Numbers,
        dilation: Numbers = 1,
        padding: Numbers = 0,
        stride: Numbers = 1,
    ):
        self._set(
            output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding,
            stride=stride,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        settings = self.dilation, self.padding, self.stride
        return shuffle.fold(input, self.output_size, self.kernel_size, *settings)


class Flatten(Module):
    """Axes ``start_dim`` to ``end_dim`` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Axis ``dim`` as several.

    Args:
        dim: the axis.
        unflattened_size: their lengths.
    """

    def __init__(self, dim: int, unflattened_size):
        super().__init__()
        self.dim = dim
        self.unflattened_size = integers(unflattened_size, "Unflatten: unflattened_size")

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


__all__ = [
    "ChannelShuffle",
    "Flatten",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]
