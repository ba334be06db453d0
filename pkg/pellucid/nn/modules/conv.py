"""Convolutional layers, and those that turn them around."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from ...errors import RangeError
from ...op.arguments import integer_or_integers
from ...ops.conv.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ...ops.conv.geometry import amounts
from ...ops.shape.creation import empty
from ...ops.shape.padding import pad
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module

_MODES = ("zeros", "reflect", "replicate", "circular")

Numbers = int | tuple[int, ...]


def _each(value: Numbers, count: int) -> tuple[int, ...]:
    numbers = integer_or_integers(value, "a setting of the convolution")
    return (numbers,) * count if isinstance(numbers, int) else numbers


class _ConvNd(Module):
    """What all of them have: settings, a weight and a bias. ``axes`` is the number of axes."""

    axes: int
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers,
        padding: Numbers | str,
        dilation: Numbers,
        groups: int,
        bias: bool,
        padding_mode: str,
        device,
        dtype: DType | None,
        transposed: bool = False,
        output_padding: Numbers = 0,
    ):
        super().__init__()
        name = type(self).__name__
        in_channels, out_channels, groups = (
            index(n, f"{name}: {what}")
            for n, what in ((in_channels, "in_channels"), (out_channels, "out_channels"), (groups, "groups"))
        )
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise RangeError(
                f"{name}: groups is {groups}; it must be positive and divide {in_channels} and "
                f"{out_channels}."
            )
        if padding_mode not in (_MODES[:1] if transposed else _MODES):
            known = "'zeros' only" if transposed else ", ".join(_MODES)
            raise RangeError(f"{name}: padding_mode is {padding_mode!r}; there is {known}.")
        if isinstance(padding, str) and (transposed or padding not in ("valid", "same")):
            known = "numbers only" if transposed else "'valid', 'same' and numbers"
            raise RangeError(f"{name}: padding is {padding!r}; there are {known}.")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _each(kernel_size, self.axes)
        self.stride = _each(stride, self.axes)
        self.padding = padding if isinstance(padding, str) else _each(padding, self.axes)
        self.dilation = _each(dilation, self.axes)
        self.transposed = transposed
        self.output_padding = _each(output_padding, self.axes)
        self.groups = groups
        self.padding_mode = padding_mode
        if padding == "same" and max(self.stride) > 1:
            raise RangeError(
                f"{name}: padding='same' keeps the lengths, and stride {self.stride} does not. Give numbers."
            )
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        init.kaiming_uniform_(self.weight, a=sqrt(5))
        if self.bias is not None:
            inputs, _ = init.fans(self.weight)
            bound = 1 / sqrt(inputs) if inputs else 0.0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        shown = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        plain = (0,) * self.axes
        shown += [f"padding={self.padding}"] if self.padding != plain else []
        shown += [f"dilation={self.dilation}"] if self.dilation != (1,) * self.axes else []
        shown += [f"output_padding={self.output_padding}"] if self.output_padding != plain else []
        shown += [f"groups={self.groups}"] if self.groups != 1 else []
        shown += ["bias=False"] if self.bias is None else []
        shown += [f"padding_mode={self.padding_mode}"] if self.padding_mode != "zeros" else []
        return ", ".join(shown)


class _Forward(_ConvNd):
    """A convolution: the input padded by its mode, then the function.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: lengths of a window: one number, or one for each axis.
        stride, padding, dilation, groups: as in the function.
        bias: whether there is one.
        padding_mode: "zeros", or what `pad` adds: "reflect", "replicate" or "circular".
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        weight: (out_channels, in_channels / groups, *kernel_size), uniform within ``1 / sqrt(fan)``, the fan
            being the product of all lengths but the first.
        bias: (out_channels,) likewise, or None.

    Raises:
        RangeError: groups do not divide the channels, or a setting has no such value.
    """

    function: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers | str = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            pads = amounts(self.kernel_size, self.stride, padding, self.dilation).padding
            input = pad(input, [n for pair in reversed(pads) for n in pair], self.padding_mode)
            padding = 0
        return self.function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _Transposed(_ConvNd):
    """A transposed convolution: the output's lengths, where they are given, then the function.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: lengths of a window: one number, or one for each axis.
        stride, padding, output_padding, groups, dilation: as in the function. A call may name
            ``output_size``, lengths that the stride allows, instead of ``output_padding``.
        bias: whether there is one.
        padding_mode: "zeros".
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        weight: (in_channels, out_channels / groups, *kernel_size), uniform within ``1 / sqrt(fan)``, the fan
            being the product of all lengths but the first.
        bias: (out_channels,) likewise, or None.

    Raises:
        RangeError: groups do not divide the channels, or a setting has no such value.
    """

    function: Callable[..., Tensor]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        output_padding: Numbers = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Numbers = 1,
        padding_mode: str = "zeros",
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
            device, dtype, True, output_padding,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._extra(input, tuple(output_size))
        return self.function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, input: Tensor, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """The output padding that makes these lengths, given alone or behind the batch and the channels."""
        name = type(self).__name__
        lengths = wanted[-self.axes :]
        if len(wanted) not in (self.axes, input.dim()):
            raise RangeError(
                f"{name}: output_size is {wanted}; give {self.axes} lengths, or {input.dim()} with those of "
                "all axes."
            )
        pads = amounts(self.kernel_size, self.stride, self.padding, self.dilation).padding
        least = [
            (n - 1) * s - sum(p) + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[-self.axes :], self.stride, pads, self.dilation, self.kernel_size, strict=True
            )
        ]
        extra = tuple(w - n for w, n in zip(lengths, least, strict=True))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
            raise RangeError(f"{name}: output_size is {wanted}; lengths from {least} to {most} can be made.")
        return extra


class Conv1d(_Forward):
    """`conv1d` with weights of its own, over (batch, channels, length) or (channels, length)."""

    axes = 1
    function = staticmethod(conv1d)


class Conv2d(_Forward):
    """`conv2d` with weights of its own, over (batch, channels, height, width) or without the batch.

    Example:
        >>> import pellucid as torch
        >>> torch.nn.Conv2d(3, 8, 3, padding=1, device="cpu")(torch.ones(2, 3, 5, 5, device="cpu")).shape
        Size([2, 8, 5, 5])
    """

    axes = 2
    function = staticmethod(conv2d)


class Conv3d(_Forward):
    """`conv3d` with weights of its own, over (batch, channels, depth, height, width) or without the batch."""

    axes = 3
    function = staticmethod(conv3d)


class ConvTranspose1d(_Transposed):
    """`conv_transpose1d` with weights of its own, over (batch, channels, length) or (channels, length)."""

    axes = 1
    function = staticmethod(conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """`conv_transpose2d` with weights of its own, over (batch, channels, height, width) or without the
    batch."""

    axes = 2
    function = staticmethod(conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """`conv_transpose3d` with weights of its own, over (batch, channels, depth, height, width) or without the
    batch."""

    axes = 3
    function = staticmethod(conv_transpose3d)


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
