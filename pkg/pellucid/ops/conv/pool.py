"""Means and maxima of windows that move over one or two axes."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod
from typing import Any

from ...errors import ShapeError
from ...kernel.launch import Launch, flag
from ...kernel.source import KernelSource, load
from ...kernel.turns import boxes
from ...op.arguments import boolean, integer_or_integers
from ...op.call import Call
from ...op.declaration import op
from ...op.public import function
from ...op.rules import float_only
from ...tensors import dtypes as dt
from ...tensors.shape import Size, index
from ...tensors.tensor import Tensor
from ..matmul.dense import floats
from ..matmul.launch import in_parts
from ..reduce.reductions import mean
from .geometry import Lengths
from .pool_windows import Windows, maxima_of, means_of, moving, spread_maxima, spread_means

# Means


def _average_shape(call: Call) -> Size:
    windows = call["windows"]
    return Size((*call["input"].shape[: -len(windows.image)], *windows.result))


def _average_gradient_shape(call: Call) -> Size:
    windows = call["windows"]
    return Size((*call["result"].shape[: -len(windows.image)], *windows.image))


def _average_launches(call: Call, file: str, x: str, outputs: Lengths) -> list[Launch]:
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call[x].shape), outputs)
    holes = {
        "ADAPTIVE": flag(not windows.kernel),
        "COUNT_PADDING": flag(windows.count_padding),
    }
    params["divisor"] = float(windows.divisor)
    spans = windows.spans() if file == "conv/pool_average" else windows.overlaps()
    return _in_boxes(call, load(file).fill(holes), params, spans, {"x": x})


def _in_boxes(
    call: Call, source: KernelSource, params: dict[str, Any], spans: tuple[int, int], bind: dict[str, str]
) -> list[Launch]:
    """A dispatch for as many places of each window as a loop may be long, and where there are several the one
    that adds them up.

    Args:
        call: binds `out`.
        source, params, bind: of each dispatch.
        spans: rows and columns of the largest window.
    """
    count, made = params["outputs"], []
    for k, box in enumerate(boxes(*spans)):
        own = {**params, "box": box, "out_start": k * count}
        made.append(Launch(source, -(-count // 64), own, bind=dict(bind)))
    return in_parts(call, made, len(made), call.out.dtype, None, count, count)


def _average_grad(g, windows) -> Tensor:
    return average_windows_gradient(g, windows)


@op(
    public="avg_pool",
    dtype=float_only,
    shape=_average_shape,
    kernel=lambda call: _average_launches(call, "conv/pool_average", "input", call["windows"].result),
    reference=means_of,
    grad={"input": _average_grad},
)
def average_windows(input: Tensor, windows: Windows) -> Tensor:
    """Means of windows over the last axes; see `avg_pool2d`."""


@op(
    public="avg_pool",
    dtype=float_only,
    shape=_average_gradient_shape,
    kernel=lambda call: _average_launches(
        call, "conv/pool_average_gradient", "result", call["windows"].image
    ),
    reference=spread_means,
    grad={"result": lambda g, windows: average_windows(g, windows)},
)
def average_windows_gradient(result: Tensor, windows: Windows) -> Tensor:
    """The derivative of `average_windows` at that of its result."""


# Maxima


def _max_shape(call: Call) -> tuple[Size, Size]:
    shape = _average_shape(call)
    return shape, shape


def _max_types(call: Call):
    d, _ = floats(call)
    return (d, dt.int32), d


def _max_launches(call: Call) -> list[Launch]:
    """A dispatch for as many taps as a loop may be long; each goes on with what the one before found."""
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call["input"].shape), windows.result)
    count, made = params["outputs"], []
    bind = {"x": "input", "known": "input", "places": "input"}
    pieces = boxes(*windows.taps())
    for k, box in enumerate(pieces):
        target = {"values": "values", "indices": "indices"}
        if k < len(pieces) - 1:
            target = {"values": f"values{k}", "indices": f"indices{k}"}
            call.temporary(target["values"], (count,))
            call.temporary(target["indices"], (count,), dt.int32)
        file = load("conv/pool_max").fill({"GOES_ON": flag(k > 0)})
        own: dict[str, Any] = {**params, "box": box}
        made.append(Launch(file, -(-count // 64), own, bind=bind | target))
        bind = {"x": "input", "known": target["values"], "places": target["indices"]}
    return made


def _max_gradient_launches(call: Call) -> list[Launch]:
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call["result"].shape), windows.image)
    return _in_boxes(call, load("conv/pool_max_gradient"), params, windows.taps(), {"x": "result"})


def _at_places(g, indices, windows) -> Tensor:
    """What lies where the maxima were found."""
    count = len(windows.image)
    flat = g.reshape(*g.shape[:-count], prod(windows.image))
    places = indices.reshape(*g.shape[:-count], prod(windows.result)).long()
    return flat.gather(-1, places).reshape(indices.shape)


@op(
    public="max_pool",
    dtype=_max_types,
    shape=_max_shape,
    kernel=_max_launches,
    reference=maxima_of,
    grad={"input": lambda g, indices, windows: max_windows_gradient(g, indices, windows)},
    outputs=("values", "indices"),
)
def max_windows(input: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """Maxima of windows over the last axes, and their places as int32; see `max_pool2d`."""


@op(
    public="max_pool",
    dtype=lambda call: (call["result"].dtype, call["result"].dtype),
    shape=lambda call: Size((*call["result"].shape[: -len(call["windows"].image)], *call["windows"].image)),
    kernel=_max_gradient_launches,
    reference=spread_maxima,
    grad={"result": _at_places},
)
def max_windows_gradient(result: Tensor, indices: Tensor, windows: Windows) -> Tensor:
    """The derivative of `max_windows` at that of its values."""


# Functions


def _image(name: str, input: Tensor, count: int) -> Lengths:
    """The lengths over which windows move.

    Raises:
        ShapeError: the input has other axes, or no elements but for an empty batch.
    """
    shape = tuple(input.shape)
    if len(shape) not in (count + 1, count + 2) or 0 in shape[-count - 1 :]:
        lengths = "length" if count == 1 else "height, width"
        raise ShapeError(
            f"{name}: input has shape {shape}; it must be (batch, channels, {lengths}), or that without the "
            "batch, and have elements."
        )
    return shape[-count:]


def _windows(
    name: str,
    count: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    count_padding: bool = False,
    divisor: int = 0,
) -> Windows:
    """The windows of a call: they are remembered by these values, so the values must be regular."""
    kernel = integer_or_integers(kernel_size, f"{name}: kernel_size")
    strides = None if stride is None else integer_or_integers(stride, f"{name}: stride")
    pads = integer_or_integers(padding, f"{name}: padding")
    steps = integer_or_integers(dilation, f"{name}: dilation")
    flags = boolean(ceil_mode, f"{name}: ceil_mode"), boolean(count_padding, f"{name}: count_include_pad")
    divisor = index(divisor, f"{name}: divisor_override")
    return moving(name, _image(name, input, count), kernel, strides, pads, steps, *flags, divisor)


def _max_pool(name: str, count: int, input: Tensor, return_indices: bool, *settings: Any) -> Any:
    windows = _windows(name, count, input, *settings)
    values, indices = max_windows(input, windows)
    return (values, indices.long()) if return_indices else values


def _avg_pool(name: str, count: int, input: Tensor, *settings: Any) -> Tensor:
    return average_windows(input, _windows(name, count, input, *settings))


def _adaptive_avg_pool(name: str, count: int, input: Tensor, output_size: Any) -> Tensor:
    image = _image(name, input, count)
    several = isinstance(output_size, (tuple, list))
    sizes = tuple(output_size) if several else (index(output_size, f"{name}: output_size"),) * count
    if len(sizes) != count:
        raise ShapeError(f"{name}: output_size is {output_size}; give one number, or {count}.")
    wanted = zip(sizes, image, strict=True)
    result = tuple(n if m is None else index(m, f"{name}: output_size") for m, n in wanted)
    if min(result) < 0:
        raise ShapeError(f"{name}: output_size is {output_size}; lengths must be at least 0.")
    if set(result) == {1}:
        return mean(input, tuple(range(-count, 0)), True)
    return average_windows(input, Windows(image, result))


@function(exports="nn.functional")
def max_pool1d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """`max_pool2d` over one axis, of (batch, channels, length) or (channels, length).

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.max_pool1d.html
    """
    settings = kernel_size, stride, padding, dilation, ceil_mode
    return _max_pool("max_pool1d", 1, input, return_indices, *settings)


@function(exports="nn.functional")
def max_pool2d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window; a NaN is larger than any number.

    Args:
        input: (batch, channels, height, width) or (channels, height, width).
        kernel_size: height and width of a window: one number, or both, as all that follow.
        stride: places from one window to the next; the kernel's size if None.
        padding: places outside of the image that windows may hold and pass over; at most half of a window.
        dilation: places from one element of a window to the next.
        ceil_mode: whether a last window may reach further than the padding.
        return_indices: whether to return places too.

    Returns:
        (batch, channels, height, width), each length being
        ``(length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``; or that and the int64 places
        of the elements in their plane, the first of equal ones.

    Raises:
        ShapeError: a window is larger than the padded image, or a setting does not fit.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.max_pool2d.html

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([[[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]]], device="cpu")
        >>> torch.nn.functional.max_pool2d(x, 2, stride=1).tolist()
        [[[5.0, 6.0]]]
    """
    settings = kernel_size, stride, padding, dilation, ceil_mode
    return _max_pool("max_pool2d", 2, input, return_indices, *settings)


@function(exports="nn.functional")
def avg_pool1d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """`avg_pool2d` over one axis, of (batch, channels, length) or (channels, length).

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool1d.html
    """
    settings = kernel_size, stride, padding, 1, ceil_mode, count_include_pad
    return _avg_pool("avg_pool1d", 1, input, *settings)


@function(exports="nn.functional")
def avg_pool2d(
    input: Tensor,
    kernel_size: int | tuple[int, ...],
    stride: int | tuple[int, ...] | None = None,
    padding: int | tuple[int, ...] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    Args:
        input: (batch, channels, height, width) or (channels, height, width), floating point; zero outside.
        kernel_size: height and width of a window: one number, or both, as all that follow.
        stride: places from one window to the next; the kernel's size if None.
        padding: places outside of the image where windows may begin; at most half of a window.
        ceil_mode: whether a last window may reach further than the padding.
        count_include_pad: whether places of the padding count in the mean.
        divisor_override: what sums are divided by, instead of the number of places.

    Returns:
        (batch, channels, height, width), each length being ``(length + 2 * padding - kernel) // stride + 1``.

    Raises:
        ShapeError: a window is larger than the padded image, or a setting does not fit.
        DTypeError: integers.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.avg_pool2d.html
    """
    divisor = None if divisor_override is None else index(divisor_override, "avg_pool2d: divisor_override")
    if divisor == 0:
        raise ShapeError("avg_pool2d: divisor_override is 0. Give another number, or None for the count.")
    settings = kernel_size, stride, padding, 1, ceil_mode, count_include_pad, divisor or 0
    return _avg_pool("avg_pool2d", 2, input, *settings)


@function(exports="nn.functional")
def adaptive_avg_pool1d(input: Tensor, output_size: int | tuple[int | None, ...]) -> Tensor:
    """`adaptive_avg_pool2d` over one axis, of (batch, channels, length) or (channels, length).

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool1d.html
    """
    return _adaptive_avg_pool("adaptive_avg_pool1d", 1, input, output_size)


@function(exports="nn.functional")
def adaptive_avg_pool2d(input: Tensor, output_size: int | tuple[int | None, ...]) -> Tensor:
    """Means of so many windows, as equal as they can be, which cover the image.

    Window ``q`` of ``m`` over a length ``n`` is from ``floor(q * n / m)`` to ``ceil((q + 1) * n / m)``.

    Args:
        input: (batch, channels, height, width) or (channels, height, width), floating point.
        output_size: (height, width), or one number for both; None among two leaves a length as it is.

    Returns:
        (batch, channels, *output_size).

    Raises:
        ShapeError: a length is negative, or there are not two.
        DTypeError: integers.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.adaptive_avg_pool2d.html
    """
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, input, output_size)
