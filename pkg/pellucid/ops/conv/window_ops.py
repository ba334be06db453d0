"""Ops of windows over one or two axes: means, maxima and what the windows meet, and their derivatives."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ...op.declaration import Call, op
from ...op.families import formed
from ...op.kernel import KernelSource, Launch, flag, load, per_element, per_line, register_type
from ...op.kernel.turns import boxes
from ...op.rules import as_input, float_only, refusing, same
from ...tensors import dtypes as dt
from ...tensors.shape import Size
from ...tensors.tensor import Tensor
from ..elementwise.complex import complex as joined
from ..elementwise.complex import imag, real
from ..matmul.dense import floats
from ..matmul.launch import in_parts
from .geometry import Lengths
from .pool_windows import Windows, folded, maxima_of, means_of, spread_maxima, spread_means, unfolded


def _lengths(made: str, lost: int = 0) -> Callable:
    """The first tensor's shape with other lengths, "image" or "result", in the place of the last axes and of
    ``lost`` before them."""

    def rule(call: Call) -> Size:
        windows = call["windows"]
        return Size((*as_input(call)[: -len(windows.image) - lost], *getattr(windows, made)))

    return rule


def _in_boxes(
    call: Call, source: KernelSource, params: dict[str, Any], spans: tuple[int, int]
) -> list[Launch]:
    """A dispatch for as many places of each window as a loop may be long, and where there are several the one
    that adds them up; ``spans`` are rows and columns of the largest window."""
    count, made, x = params["outputs"], [], call.tensors()[0][0]
    for k, box in enumerate(boxes(*spans)):
        own = {**params, "box": box, "out_start": k * count}
        made.append(per_element(source, count, own, bind={"x": x}))
    return in_parts(call, made, len(made), call.out.dtype, None, count, count)


# Means, and what windows meet: maps that are linear in their input


def _of_windows(input: Tensor, windows: Windows) -> Tensor: ...


def _map(
    name: str, public: str, kernel: Callable, shape: Callable, reference: Callable, back: Callable,
    sentence: str, dtype: Callable = float_only, prepare: Callable | None = None,
) -> Callable[..., Tensor]:  # fmt: skip
    """Declare such a map; ``back`` gives its transpose, which may be declared later."""
    return op(
        public=public,
        dtype=dtype,
        shape=shape,
        kernel=kernel,
        reference=reference,
        grad={"input": lambda g, windows: back()(g, windows)},
        prepare=prepare,
    )(formed(_of_windows, name, sentence))


def _average_launches(call: Call, file: str, outputs: Lengths) -> list[Launch]:
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call["input"].shape), outputs)
    holes = {"ADAPTIVE": flag(not windows.kernel), "COUNT_PADDING": flag(windows.count_padding)}
    params["divisor"] = float(windows.divisor)
    spans = windows.spans() if file == "conv/pool_average" else windows.overlaps()
    return _in_boxes(call, load(file).fill(holes), params, spans)


def _unfold_launches(call: Call) -> Launch:
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call["input"].shape), (*windows.kernel, *windows.result))
    holes = {"T": register_type(call.out.dtype)}
    return per_element("conv/unfold", params["outputs"], params, holes, {"x": "input"})


def _fold_launches(call: Call) -> list[Launch]:
    windows: Windows = call["windows"]
    params = windows.params(prod(call["input"].shape[: -len(windows.image) - 1]), windows.image)
    return _in_boxes(call, load("conv/fold"), params, windows.spans())


def _unfold_shape(call: Call) -> Size:
    windows: Windows = call["windows"]
    return Size((*call["input"].shape[: -len(windows.image)], prod(windows.kernel), *windows.result))


def _of_parts(input, windows) -> Tensor | None:
    """Complex numbers are folded part by part."""
    if not input._meta.dtype.is_complex:
        return None
    return joined(*[fold_windows(part.contiguous(), windows) for part in (real(input), imag(input))])


average_windows = _map(
    "average_windows", "avg_pool",
    lambda call: _average_launches(call, "conv/pool_average", call["windows"].result), _lengths("result"),
    means_of, lambda: average_windows_gradient, "Means of windows over the last axes; see `avg_pool2d`.",
)  # fmt: skip
average_windows_gradient = _map(
    "average_windows_gradient", "avg_pool",
    lambda call: _average_launches(call, "conv/pool_average_gradient", call["windows"].image),
    _lengths("image"), spread_means, lambda: average_windows,
    "The derivative of `average_windows` at that of its result.",
)  # fmt: skip
unfold_windows = _map(
    "unfold_windows", "unfold", _unfold_launches, _unfold_shape, unfolded, lambda: fold_windows,
    "What windows over the last axes meet, (..., taps, *windows); see `nn.functional.unfold`.", same,
)  # fmt: skip
fold_windows = _map(
    "fold_windows", "fold", _fold_launches, _lengths("image", 1), folded, lambda: unfold_windows,
    "The transpose of `unfold_windows`: of each place what windows have of it, added up.", prepare=_of_parts,
)  # fmt: skip


# Maxima


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
    return _in_boxes(call, file, params, spans)


def _at_places(g, indices, windows) -> Tensor:
    """What lies where the maxima were found."""
    count = len(windows.image)
    flat = g.reshape(*g.shape[:-count], prod(windows.image))
    places = indices.reshape(*g.shape[:-count], prod(windows.result)).long()
    return flat.gather(-1, places).reshape(indices.shape)


@op(
    public="max_pool",
    dtype=refusing(_max_types, "c"),
    shape=lambda call: (_lengths("result")(call),) * 2,
    kernel=_max_launches,
    reference=maxima_of,
    grad={"input": lambda g, indices, windows: max_windows_gradient(g, indices, windows)},
    outputs=("values", "indices"),
)
def max_windows(input: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """Maxima of windows over the last axes, and their places as int32; see `max_pool2d`."""


def _value_launch(call: Call) -> Launch:
    windows: Windows = call["windows"]
    params = windows.params(windows.planes(call["input"].shape), windows.result)
    params["lines"] = params.pop("outputs") // params["out_width"]
    tall, wide = windows.spans()
    holes = {"TALL": f"{tall}u", "WIDE": f"{wide}u", "PADDED": flag(any(windows.margins()))}
    _, stride, padding, _ = params["horizontal"]
    is_plain = (wide, stride, padding, params["in_width"] % 2) == (2, 2, 0, 0)
    in_pairs = is_plain and call["input"].dtype is dt.float32
    return per_line("conv/pool_values", params, holes, {"x": "input"}, in_pairs)


@op(
    public="max_pool",
    dtype=refusing(floats, "c"),
    shape=_lengths("result"),
    kernel=_value_launch,
    reference=lambda input, windows: maxima_of(input, windows)[0],
    grad=None,
)
def max_window_values(input: Tensor, windows: Windows) -> Tensor:
    """Maxima of windows that are dense, without their places, which a derivative would need."""


@op(
    public="max_pool",
    dtype=same,
    shape=_lengths("image"),
    kernel=_max_gradient_launches,
    reference=spread_maxima,
    grad={"result": _at_places},
)
def max_windows_gradient(result: Tensor, indices: Tensor, windows: Windows) -> Tensor:
    """The derivative of `max_windows` at that of its values."""
