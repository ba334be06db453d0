"""Layers that take means and maxima of windows."""

from __future__ import annotations

from typing import Any

from ...op.arguments import integers
from ...ops.conv import pool
from ...tensors.tensor import Tensor
from .module import Module

Numbers = int | tuple[int, ...]


class _MaxPool(Module):
    """What both of them have: settings."""

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """`max_pool1d` with fixed settings.

    Args:
        kernel_size, stride, padding, dilation, return_indices, ceil_mode: as in `max_pool1d`.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.MaxPool1d.html
    """

    def forward(self, input: Tensor) -> Any:
        return pool.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class MaxPool2d(_MaxPool):
    """`max_pool2d` with fixed settings.

    Args:
        kernel_size, stride, padding, dilation, return_indices, ceil_mode: as in `max_pool2d`.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html

    Example:
        >>> import pellucid as torch
        >>> torch.nn.MaxPool2d(2)(torch.ones(1, 3, 6, 8, device="cpu")).shape
        Size([1, 3, 3, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return pool.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip


class AvgPool1d(Module):
    """`avg_pool1d` with fixed settings.

    Args:
        kernel_size, stride, padding, ceil_mode, count_include_pad: as in `avg_pool1d`.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.AvgPool1d.html
    """

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__()
        values = (kernel_size, kernel_size if stride is None else stride, padding)
        self.kernel_size, self.stride, self.padding = (
            (value,) if isinstance(value, int) else integers(value, "AvgPool1d: a size") for value in values
        )
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        settings = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return pool.avg_pool1d(input, *settings)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """`avg_pool2d` with fixed settings.

    Args:
        kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: as in `avg_pool2d`.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.AvgPool2d.html
    """

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return pool.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveAvgPool(Module):
    """What both of them have: the output's lengths."""

    def __init__(self, output_size: int | tuple[int | None, ...]):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """`adaptive_avg_pool1d` with a fixed length.

    Args:
        output_size: the length.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool1d.html
    """

    def forward(self, input: Tensor) -> Tensor:
        return pool.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`adaptive_avg_pool2d` with fixed lengths.

    Args:
        output_size: (height, width), or one number for both; None among two leaves a length as it is.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html
    """

    def forward(self, input: Tensor) -> Tensor:
        return pool.adaptive_avg_pool2d(input, self.output_size)


__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AvgPool1d", "AvgPool2d", "MaxPool1d", "MaxPool2d"]
