"""Layers that take means, maxima and norms of windows, and that put maxima back. Kinds have settings; rows a
function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import RangeError
from ...op.arguments import integer_or_integers
from ...ops.conv import pool
from ...tensors.tensor import Tensor
from .module import Configured

Numbers = int | tuple[int, ...]


class _Pool(Configured):
    """A function of windows with fixed settings; ``shown`` are those that a printed model has."""

    function: Callable[..., Any]
    shown: tuple[str, ...] = ()

    def forward(self, input: Tensor) -> Any:
        return self.function(input, **{name: getattr(self, name) for name in self._settings})

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.shown)


def _each(value: Numbers, count: int) -> tuple[int, ...]:
    numbers = integer_or_integers(value, "a size of the pooling")
    return (numbers,) * count if isinstance(numbers, int) else numbers


class _MaxPool(_Pool):
    shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        stride = kernel_size if stride is None else stride
        self._set(
            kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation,
            return_indices=return_indices, ceil_mode=ceil_mode,
        )  # fmt: skip


class _AvgPool(_Pool):
    shown = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        stride = kernel_size if stride is None else stride
        self._set(
            kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode,
            count_include_pad=count_include_pad, divisor_override=divisor_override,
        )  # fmt: skip


class _AdaptiveAvgPool(_Pool):
    shown = ("output_size",)

    def __init__(self, output_size: int | tuple[int | None, ...]):
        self._set(output_size=output_size)


class _AdaptiveMaxPool(_Pool):
    shown = ("output_size",)

    def __init__(self, output_size: int | tuple[int | None, ...], return_indices: bool = False):
        self._set(output_size=output_size, return_indices=return_indices)


class _LPPool(_Pool):
    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False
    ):
        self._set(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)


class _MaxUnpool(_Pool):
    shown = ("kernel_size", "stride", "padding")
    axes: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]

    def __init__(self, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0):
        stride = kernel_size if stride is None else stride
        sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding}
        self._set(**{name: _each(value, self.axes) for name, value in sizes.items()})

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input: Tensor, indices: Tensor, output_size: tuple[int, ...] | None = None
    ) -> Tensor:
        return self.function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(_Pool):
    axes: int

    def __init__(
        self,
        kernel_size: Numbers,
        output_size: Numbers | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise RangeError(f"{name}: give output_size or output_ratio, and not both.")
        if output_ratio is not None:
            several = isinstance(output_ratio, (tuple, list))
            output_ratio = tuple(output_ratio) if several else (output_ratio,) * self.axes
            if not all(0 < ratio < 1 for ratio in output_ratio):
                raise RangeError(f"{name}: output_ratio is {output_ratio}; shares lie between 0 and 1.")
        self._set(
            kernel_size=_each(kernel_size, self.axes),
            output_size=None if output_size is None else _each(output_size, self.axes),
            output_ratio=output_ratio,
            return_indices=return_indices,
            _random_samples=_random_samples,
        )


class MaxPool1d(_MaxPool):
    """`max_pool1d` with fixed kernel_size, stride, padding, dilation, return_indices, ceil_mode."""

    function = staticmethod(pool.max_pool1d)


class MaxPool2d(_MaxPool):
    """`max_pool2d` with fixed kernel_size, stride, padding, dilation, return_indices, ceil_mode.

    Example:
        >>> import pellucid as torch
        >>> torch.nn.MaxPool2d(2)(torch.ones(1, 3, 6, 8, device="cpu")).shape
        Size([1, 3, 3, 4])
    """

    function = staticmethod(pool.max_pool2d)


class MaxPool3d(_MaxPool):
    """`max_pool3d` with fixed kernel_size, stride, padding, dilation, return_indices, ceil_mode."""

    function = staticmethod(pool.max_pool3d)


class AvgPool1d(_AvgPool):
    """`avg_pool1d` with fixed kernel_size, stride, padding, ceil_mode, count_include_pad."""

    function = staticmethod(pool.avg_pool1d)

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        stride = kernel_size if stride is None else stride
        self._set(
            kernel_size=_each(kernel_size, 1), stride=_each(stride, 1), padding=_each(padding, 1),
            ceil_mode=ceil_mode, count_include_pad=count_include_pad,
        )  # fmt: skip


class AvgPool2d(_AvgPool):
    """`avg_pool2d` of fixed kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override."""

    function = staticmethod(pool.avg_pool2d)


class AvgPool3d(_AvgPool):
    """`avg_pool3d` of fixed kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override."""

    function = staticmethod(pool.avg_pool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """`adaptive_avg_pool1d` with fixed output_size."""

    function = staticmethod(pool.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`adaptive_avg_pool2d` with fixed output_size."""

    function = staticmethod(pool.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """`adaptive_avg_pool3d` with fixed output_size."""

    function = staticmethod(pool.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """`adaptive_max_pool1d` with fixed output_size, return_indices."""

    function = staticmethod(pool.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """`adaptive_max_pool2d` with fixed output_size, return_indices."""

    function = staticmethod(pool.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """`adaptive_max_pool3d` with fixed output_size, return_indices."""

    function = staticmethod(pool.adaptive_max_pool3d)


class LPPool1d(_LPPool):
    """`lp_pool1d` with fixed norm_type, kernel_size, stride, ceil_mode."""

    function = staticmethod(pool.lp_pool1d)


class LPPool2d(_LPPool):
    """`lp_pool2d` with fixed norm_type, kernel_size, stride, ceil_mode."""

    function = staticmethod(pool.lp_pool2d)


class LPPool3d(_LPPool):
    """`lp_pool3d` with fixed norm_type, kernel_size, stride, ceil_mode."""

    function = staticmethod(pool.lp_pool3d)


class MaxUnpool1d(_MaxUnpool):
    """`max_unpool1d` with fixed kernel_size, stride, padding."""

    axes = 1
    function = staticmethod(pool.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """`max_unpool2d` with fixed kernel_size, stride, padding."""

    axes = 2
    function = staticmethod(pool.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """`max_unpool3d` with fixed kernel_size, stride, padding."""

    axes = 3
    function = staticmethod(pool.max_unpool3d)


class FractionalMaxPool2d(_FractionalMaxPool):
    """`fractional_max_pool2d` with fixed kernel_size, output_size, output_ratio, return_indices."""

    axes = 2
    function = staticmethod(pool.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """`fractional_max_pool3d` with fixed kernel_size, output_size, output_ratio, return_indices."""

    axes = 3
    function = staticmethod(pool.fractional_max_pool3d)


__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]
