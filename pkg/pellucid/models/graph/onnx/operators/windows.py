"""Operators over windows of images and signals: convolutions, pools and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, prod

import numpy as np

from .....errors import ShapeError
from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.construct import tensor
from .....tensors.tensor import Tensor
from ...rows import Ints, one_of
from ..table import operator
from .elementwise import ops

_CONV = {1: ops.conv1d, 2: ops.conv2d, 3: ops.conv3d}
_CONV_TRANSPOSE = {1: ops.conv_transpose1d, 2: ops.conv_transpose2d, 3: ops.conv_transpose3d}
_MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


class WindowPlaces:
    """Where windows lie: kernel, strides, dilations and pads of the axes behind the channels.

    Args:
        shape: lengths of these axes.
        kernel: lengths of a window.
        strides, dilations: by axis, 1 if not given.
        pads: all beginnings, then all ends.
        auto_pad: as in ONNX.
        ceil_mode: a last window may reach beyond the end, if it begins before it.
    """

    def __init__(
        self, shape: Sequence[int], kernel: Sequence[int], strides: Sequence[int] | None,
        dilations: Sequence[int] | None, pads: Sequence[int] | None, auto_pad: str, ceil_mode: int = 0,
    ):  # fmt: skip
        rank = len(shape)
        self.kernel = tuple(kernel)
        self.strides = tuple(strides or [1] * rank)
        self.dilations = tuple(dilations or [1] * rank)
        pads = tuple(pads or [0] * 2 * rank)
        if not len(self.kernel) == len(self.strides) == len(self.dilations) == len(pads) // 2 == rank:
            raise ShapeError(
                f"kernel {self.kernel}, strides {self.strides}, dilations {self.dilations} and pads {pads} "
                f"do not fit {rank} axes."
            )
        if min((*self.kernel, *self.strides, *self.dilations), default=1) < 1:
            raise ShapeError("kernel, strides and dilations must be at least 1.")
        one_of("auto_pad", auto_pad, ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", ""))
        self.starts, self.stops = list(pads[:rank]), list(pads[rank:])
        self.extra = [0] * rank
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel)]
        for k, (n, span, stride) in enumerate(zip(shape, spans, self.strides)):
            if auto_pad == "VALID":
                self.starts[k] = self.stops[k] = 0
            elif auto_pad.startswith("SAME"):
                missing = max((ceil(n / stride) - 1) * stride + span - n, 0)
                less, more = missing // 2, missing - missing // 2
                self.starts[k], self.stops[k] = (less, more) if auto_pad == "SAME_UPPER" else (more, less)
            if ceil_mode:
                padded = n + self.starts[k] + self.stops[k]
                count = ceil((padded - span) / stride) + 1
                if (count - 1) * stride >= n + self.starts[k]:
                    count -= 1
                self.extra[k] = max((count - 1) * stride + span - padded, 0)

    @property
    def even(self) -> bool:
        """Whether pads are the same at both ends."""
        return self.starts == self.stops and not any(self.extra)

    def ends(self, extra: bool = True) -> list[int]:
        """The pads as `F.pad` takes them."""
        more = self.extra if extra else [0] * len(self.extra)
        rows = list(zip(self.starts, self.stops, more))
        return [n for start, stop, e in reversed(rows) for n in (start, stop + e)]


def conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: list | None = None, group: int = 1, kernel_shape: list | None = None,
    pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    """The convolution of ONNX, also of quantized values as floats."""
    at = WindowPlaces(x.shape[2:], kernel_shape or w.shape[2:], strides, dilations, pads, auto_pad)
    if at.kernel != tuple(w.shape[2:]):
        raise ShapeError(f"kernel_shape {at.kernel} is not that of the weight, {tuple(w.shape)}.")
    run = one_of("number of axes", len(at.kernel), _CONV)
    if not at.even:
        x = F.pad(x, at.ends())
    return run(x, w, b, at.strides, tuple(at.starts) if at.even else 0, at.dilations, group)


operator("Conv")(conv)


@operator("ConvTranspose")
def conv_transpose(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: list | None = None, group: int = 1, kernel_shape: list | None = None,
    output_padding: list | None = None, output_shape: list | None = None, pads: list | None = None,
    strides: list | None = None,
):  # fmt: skip
    lengths = x.shape[2:]
    at = WindowPlaces(lengths, w.shape[2:], strides, dilations, pads, "NOTSET")
    rank = len(lengths)
    more = list(output_padding or [0] * rank)
    spans = [d * (k - 1) + 1 for d, k in zip(at.dilations, at.kernel)]
    full = [s * (n - 1) + e + m for s, n, e, m in zip(at.strides, lengths, spans, more)]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * s for n, s in zip(lengths, at.strides)]
    if output_shape is not None:
        for k, wanted in enumerate(output_shape[-rank:]):
            total = full[k] - wanted
            if total < 0:  # the end that no window reaches is 0, but for the bias
                more[k], full[k], total = more[k] - total, wanted, 0
            less, rest = total // 2, total - total // 2
            at.starts[k], at.stops[k] = (rest, less) if auto_pad == "SAME_LOWER" else (less, rest)
            if auto_pad not in ("SAME_LOWER", "SAME_UPPER"):
                at.starts[k], at.stops[k] = (rest, less)
    run = one_of("number of axes", rank, _CONV_TRANSPOSE)
    y = run(x, w, None, at.strides, 0, 0, group, at.dilations)
    if any(more):
        y = F.pad(y, [n for m in reversed(more) for n in (0, m)])
    for k, (n, start, stop) in enumerate(zip(full, at.starts, at.stops)):
        y = y.narrow(k + 2, start, n - start - stop)
    return y if b is None else y + b.reshape(-1, *[1] * rank)


@operator("MaxPool")
def max_pool(
    x: Tensor, *, kernel_shape: list, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list | None = None, pads: list | None = None, storage_order: int = 0,
    strides: list | None = None, outputs: int = 1,
):  # fmt: skip
    lengths = x.shape[2:]
    at = WindowPlaces(lengths, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    kept = x.dtype
    y = x if kept.is_floating_point else x.to(dt.float32)
    y = F.pad(y, at.ends(), value=float("-inf")) if any(at.ends()) else y
    run = one_of("number of axes", len(lengths), _MAX_POOL)
    if outputs == 1:
        return run(y, at.kernel, at.strides, 0, at.dilations).to(kept)
    values, places = run(y, at.kernel, at.strides, 0, at.dilations, return_indices=True)
    # From places in the padded image to places in the whole input.
    axes = []
    for n, start in reversed(list(zip(y.shape[2:], at.starts))):
        axes.append(ops.remainder(places, n) - start)
        places = ops.floor_divide(places, n)
    images = ops.arange(prod(x.shape[:2]), device=x.device).reshape(*x.shape[:2], *[1] * len(lengths))
    order = list(zip(reversed(axes), lengths))
    flat = images
    for one, n in reversed(order) if storage_order else order:
        flat = flat * n + one
    return values.to(kept), flat


def _window_sums(x: Tensor, at: WindowPlaces) -> Tensor:
    """The sum of each window over zeros beyond the ends: a convolution with ones, channel by channel."""
    y = x.reshape(-1, 1, *x.shape[2:])
    y = F.pad(y, at.ends()) if any(at.ends()) else y
    ones = ops.ones((1, 1, *at.kernel), dtype=x.dtype, device=x.device)
    y = one_of("number of axes", len(at.kernel), _CONV)(y, ones, None, at.strides, 0, at.dilations)
    return y.reshape(*x.shape[:2], *y.shape[2:])


@operator("AveragePool")
def average_pool(
    x: Tensor, *, kernel_shape: list, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    count_include_pad: int = 0, dilations: list | None = None, pads: list | None = None,
    strides: list | None = None,
):  # fmt: skip
    at = WindowPlaces(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    sums = _window_sums(x, at)
    if not any(at.ends()):
        return sums / prod(at.kernel)
    counted = ops.ones((1, 1, *x.shape[2:]), dtype=x.dtype, device=x.device)
    if count_include_pad:
        counted = F.pad(counted, at.ends(extra=False), value=1.0)
        at.starts = [0] * len(at.kernel)
        at.stops = [0] * len(at.kernel)
    return sums / _window_sums(counted, at)


@operator("LpPool")
def lp_pool(
    x: Tensor, *, kernel_shape: list, auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list | None = None, p: float = 2, pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    at = WindowPlaces(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    return ops.pow(_window_sums(ops.pow(ops.abs(x), p), at), 1 / p)


def _globally(fold: Callable[[Tensor, list[int]], Tensor]) -> Callable:
    def run(x: Tensor, *, p: float = 2):
        return fold(x, list(range(2, len(x.shape))))

    return run


operator("GlobalAveragePool")(_globally(lambda x, axes: ops.mean(x, axes, True)))
operator("GlobalMaxPool")(_globally(lambda x, axes: ops.amax(x, axes, True)))


@operator("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: float = 2):
    return ops.pow(ops.sum(ops.pow(ops.abs(x), p), list(range(2, len(x.shape))), True), 1 / p)


@operator("MaxUnpool", since=9)
def max_unpool(
    x: Tensor, indices: Tensor, output_shape: Ints | None = None, *, kernel_shape: list,
    pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    at = WindowPlaces(x.shape[2:], kernel_shape, strides, None, pads, "NOTSET")
    own = [
        (n - 1) * s + k - a - b
        for n, s, k, a, b in zip(x.shape[2:], at.strides, at.kernel, at.starts, at.stops)
    ]
    inner = tuple(x.shape[:2]) + tuple(own)
    shape = inner if output_shape is None else tuple(output_shape)
    flat = ops.zeros((prod(inner),), dtype=x.dtype, device=x.device)
    y = ops.scatter(flat, 0, indices.reshape(-1), x.reshape(-1)).reshape(inner)
    ends = [n for a, b in reversed(list(zip(inner, shape))) for n in (0, b - a)]
    return F.pad(y, ends) if any(ends) else y


@operator("DeformConv", since=19)
def deform_conv(
    x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None, mask: Tensor | None = None, *,
    dilations: list | None = None, group: int = 1, kernel_shape: list | None = None, offset_group: int = 1,
    pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    at = WindowPlaces(x.shape[2:], w.shape[2:], strides, dilations, pads, "NOTSET")
    if len(at.kernel) != 2:
        raise ShapeError(f"{len(at.kernel)} axes. Deformable convolutions are of images here.")
    batch, channels, height, width = x.shape
    rows, columns = offset.shape[2:]
    taps = prod(at.kernel)
    # Where each tap of each window looks: (1, 1, taps, rows, columns).
    places = []
    for axis, windows in enumerate((rows, columns)):
        own = np.arange(at.kernel[axis]) * at.dilations[axis] - at.starts[axis]
        own = own.reshape((-1, 1) if axis == 0 else (1, -1)) + np.zeros(at.kernel)
        steps = np.arange(windows) * at.strides[axis]
        steps = steps.reshape((-1, 1) if axis == 0 else (1, -1))
        places.append(own.reshape(1, 1, taps, 1, 1) + steps)
    moved = offset.reshape(batch, offset_group, taps, 2, rows, columns)
    y, z = (moved.select(3, k) + tensor(p.astype(np.float32), device=x.device) for k, p in enumerate(places))
    grid = ops.stack([(2 * z + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    images = x.reshape(batch * offset_group, channels // offset_group, height, width)
    grid = grid.reshape(batch * offset_group, taps * rows, columns, 2)
    seen = F.grid_sample(images, grid, "bilinear", "zeros", False)
    seen = seen.reshape(batch, offset_group, channels // offset_group, taps, rows, columns)
    if mask is not None:
        seen = seen * mask.reshape(batch, offset_group, 1, taps, rows, columns)
    seen = seen.reshape(batch, group, channels // group * taps, rows * columns)
    out = ops.matmul(w.reshape(group, w.shape[0] // group, -1), seen)
    out = out.reshape(batch, w.shape[0], rows, columns)
    return out if b is None else out + b.reshape(-1, 1, 1)
