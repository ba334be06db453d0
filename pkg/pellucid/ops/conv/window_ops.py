"""Ops of windows over one or two axes: means, maxima and what the windows meet, and their derivatives."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from math import prod
from typing import Any

from ...op.call import Call
from ...op.declaration import op
from ...op.kernel.element_types import register_type
from ...op.kernel.launch import Launch, flag, per_element
from ...op.kernel.source import KernelSource, load
from ...op.kernel.turns import boxes
from ...op.rules import float_only, refusing, same
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..elementwise.complex import complex as joined
from ..elementwise.complex import imag, real
from ..matmul.dense import floats
from ..matmul.launch import in_parts
from .geometry import Lengths
from .pool_windows import Windows, folded, maxima_of, means_of, spread_maxima, spread_means, unfolded

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
    holes = {"ADAPTIVE": flag(not windows.kernel), "COUNT_PADDING": flag(windows.count_padding)}
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
        made.append(per_element(source, count, own, bind=dict(bind)))
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
    pieces = boxes(*windows.spans())
    for k, box in enumerate(pieces):
        target = {"values": "values", "indices": "indices"}
        if k < len(pieces) - 1:
            target = {"values": f"values{k}", "indices": f"indices{k}"}
            call.temporary(target["values"], (count,))
            call.temporary(target["indices"], (count,), dt.int32)
        file = load("conv/pool_max").fill({"GOES_ON": flag(k > 0), "ADAPTIVE": flag(not windows.kernel)})
        own: dict[str, Any] = {**params, "box": box}
        made.append(per_element(file, count, own, bind=bind | target))
        bind = {"x": "input", "known": target["values"], "places": target["indices"]}
    return made


def _max_gradient_launches(call: Call) -> list[Launch]:
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call["result"].shape), windows.image)
    file = load("conv/pool_max_gradient").fill({"ADAPTIVE": flag(not windows.kernel)})
    spans = windows.spans() if windows.kernel else windows.overlaps()
    return _in_boxes(call, file, params, spans, {"x": "result"})


def _at_places(g, indices, windows) -> Tensor:
    """What lies where the maxima were found."""
    count = len(windows.image)
    flat = g.reshape(*g.shape[:-count], prod(windows.image))
    places = indices.reshape(*g.shape[:-count], prod(windows.result)).long()
    return flat.gather(-1, places).reshape(indices.shape)


@op(
    public="max_pool",
    dtype=refusing(_max_types, "c"),
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


# What windows meet


def _unfold_launches(call: Call) -> Launch:
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call["input"].shape), (*windows.kernel, *windows.result))
    holes = {"T": register_type(call.out.dtype)}
    return per_element("conv/unfold", params["outputs"], params, holes, {"x": "input"})


def _fold_launches(call: Call) -> list[Launch]:
    windows: Windows = call["windows"]
    params = windows.params(prod(call["columns"].shape[: -len(windows.image) - 1]), windows.image)
    return _in_boxes(call, load("conv/fold"), params, windows.spans(), {"x": "columns"})


def _unfold_shape(call: Call) -> Size:
    windows: Windows = call["windows"]
    return Size((*call["input"].shape[: -len(windows.image)], prod(windows.kernel), *windows.result))


def _fold_shape(call: Call) -> Size:
    windows: Windows = call["windows"]
    return Size((*call["columns"].shape[: -len(windows.image) - 1], *windows.image))


def _unfold_grad(g, windows) -> Tensor:
    return fold_windows(g, windows)


@op(
    public="unfold",
    dtype=same,
    shape=_unfold_shape,
    kernel=_unfold_launches,
    reference=unfolded,
    grad={"input": _unfold_grad},
)
def unfold_windows(input: Tensor, windows: Windows) -> Tensor:
    """What windows over the last axes meet, (..., taps, *windows); see `nn.functional.unfold`."""


def _of_parts(columns, windows) -> Tensor | None:
    """Complex numbers are folded part by part."""
    if not columns._meta.dtype.is_complex:
        return None
    return joined(*[fold_windows(part.contiguous(), windows) for part in (real(columns), imag(columns))])


@op(
    public="fold",
    dtype=float_only,
    shape=_fold_shape,
    kernel=_fold_launches,
    reference=folded,
    grad={"columns": lambda g, windows: unfold_windows(g, windows)},
    prepare=_of_parts,
)
def fold_windows(columns: Tensor, windows: Windows) -> Tensor:
    """The transpose of `unfold_windows`: of each place what windows have of it, added up."""
