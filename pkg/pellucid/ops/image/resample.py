"""interpolate, upsample: images of another size. An axis after the other is resampled."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ...autograd.edges import labelled
from ...errors import DTypeError, RangeError, ShapeError
from ...op.arguments import number, text
from ...op.declaration import Call, function, op
from ...op.families import formed
from ...op.kernel import Launch, flag, per_line
from ...op.rules import float_only
from ...tensors import dtypes as dt
from ...tensors.shape import Size, index
from ...tensors.tensor import Tensor
from ..conv import pool
from ..shape.slicing import slice_dim
from .resampling import Resampling


def _resampled(input: np.ndarray, resampling: Resampling, axis: int) -> np.ndarray:
    places, weights = resampling.table()
    x = np.moveaxis(input, axis, -1).astype(np.float64)
    parts = [x[..., places[:, k]] * weights[:, k] for k in range(places.shape[1])]
    return np.moveaxis(np.sum(parts, 0), -1, axis)


def _spread(result: np.ndarray, resampling: Resampling, axis: int) -> np.ndarray:
    places, weights = resampling.table()
    g = np.moveaxis(result, axis, 0).astype(np.float64)
    out = np.zeros((resampling.length, *g.shape[1:]))
    for k in range(places.shape[1]):
        np.add.at(out, places[:, k], g * weights[:, k].reshape(-1, *(1,) * (g.ndim - 1)))
    return np.moveaxis(out, 0, axis)


def _of_axis(input: Tensor, resampling: Resampling, axis: int) -> Tensor: ...


def _map(name: str, made: str, reference: Callable, back: Callable, doc: str) -> Callable[..., Tensor]:
    """Declare a map of one axis, whose transpose ``back`` gives; it may be declared later."""

    def shape(call: Call) -> Size:
        given, axis = call["input"].shape, call["axis"]
        return Size((*given[:axis], getattr(call["resampling"], made), *given[axis + 1 :]))

    def launch(call: Call) -> Launch:
        given = call["input"].shape, call["axis"], call.out.numel
        return call["resampling"].launch(f"image/{name}", *given)

    return op(
        public="interpolate",
        dtype=float_only,
        shape=shape,
        kernel=launch,
        reference=reference,
        grad={"input": lambda g, resampling, axis: back()(g, resampling, axis)},
    )(formed(_of_axis, name, doc))


resample = _map(
    "resample", "made", _resampled, lambda: resample_gradient,
    "An axis with another length; see `nn.functional.interpolate`.",
)  # fmt: skip
resample_gradient = _map(
    "resample_gradient", "length", _spread, lambda: resample,
    "The derivative of `resample` at that of its result.",
)  # fmt: skip


def _planes_launch(call: Call) -> Launch:
    shape, down, across = call["input"].shape, call["down"], call["across"]
    params: dict[str, Any] = {
        "lines": call.out.numel // across.made, "in_height": shape[-2], "in_width": shape[-1],
        "out_height": down.made, "out_width": across.made, "down": down.scale, "across": across.scale,
    }  # fmt: skip
    holes = {"WIDTH": str(down.width), "HALF": flag(down.half)}
    is_halved = across.filter == "linear" and across.half and across.scale == 2
    in_pairs = is_halved and across.length == 2 * across.made and call["input"].dtype is dt.float32
    return per_line("image/resample_planes", params, holes, {"x": "input"}, in_pairs)


@op(
    public="interpolate",
    dtype=float_only,
    shape=lambda call: Size((*call["input"].shape[:-2], call["down"].made, call["across"].made)),
    kernel=_planes_launch,
    reference=lambda input, down, across: _resampled(
        _resampled(input, across, input.ndim - 1), down, input.ndim - 2
    ),
    grad={
        "input": lambda g, down, across: resample_gradient(
            resample_gradient(g, across, g.dim() - 1), down, g.dim() - 2
        )
    },
)
def resample_planes(input: Tensor, down: Resampling, across: Resampling) -> Tensor:
    """The last two axes with other lengths, by one filter that is no wider for smaller results; see
    `nn.functional.interpolate`."""


# By mode: the filter, and how many axes images may have.
_MODES = {
    "nearest": ("nearest", (1, 2, 3)),
    "nearest-exact": ("nearest-exact", (1, 2, 3)),
    "area": ("", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
}


def _each(name: str, value: Any, count: int, read: Callable) -> list[Any]:
    """A setting of each axis."""
    values = list(value) if isinstance(value, (tuple, list)) else [value] * count
    if len(values) != count:
        raise ShapeError(f"interpolate: {name} is {value}; give one number, or {count}.")
    return [read(v, f"interpolate: {name}") for v in values]


def _fits(mode: str, count: int, align_corners: Any, antialias: Any) -> None:
    """Refuse settings that a mode does not have."""
    text(mode, "interpolate: mode")
    if mode not in _MODES or count not in _MODES[mode][1]:
        known = ", ".join(m for m, (_, counts) in _MODES.items() if count in counts) or "none"
        raise NotImplementedError(
            f"interpolate: mode {mode!r} for an input of {count + 2} axes. For these there is {known}."
        )
    if align_corners is not None and not _is_smooth(mode):
        raise RangeError(f"interpolate: mode {mode!r} takes no align_corners. Leave it out.")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise RangeError(f"interpolate: mode {mode!r} takes no antialias; 'bilinear' and 'bicubic' do.")


def _is_smooth(mode: str) -> bool:
    return _MODES[mode][0] in ("linear", "cubic")


class _Plan(NamedTuple):
    """What `interpolate` does: the lengths of the result; slices of axes that it is, if it is; or else the
    resampling of each axis, or of the last two at once, in order."""

    made: tuple[int, ...]
    slices: list[tuple[int, Any]] | None
    resamplings: list[tuple[int, Any]]


def _is_plain(setting: Any, *kinds: type) -> bool:
    """Whether a setting is of plain classes, or several are, by which a plan can be kept."""
    return (
        setting is None
        or type(setting) in kinds
        or (type(setting) is tuple and all(type(each) in kinds for each in setting))
    )


def _plan(
    image: tuple[int, ...],
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool,
) -> _Plan:
    count = len(image)
    _fits(mode, count, align_corners, antialias)
    if (size is None) == (scale_factor is None):
        raise RangeError("interpolate: give size or scale_factor, and not both.")
    if size is not None and recompute_scale_factor:
        raise RangeError("interpolate: recompute_scale_factor needs a scale_factor, and size is given.")
    factors = None if scale_factor is None else _each("scale_factor", scale_factor, count, number)
    if factors is not None and not all(0 < factor < inf for factor in factors):
        raise RangeError(
            f"interpolate: scale factors are {tuple(factors)}; they must be positive and finite."
        )
    if factors is None:
        made = _each("size", size, count, index)
    else:
        made = [int(n * factor) for n, factor in zip(image, factors, strict=True)]
    if min(*image, *made) < 1:
        raise ShapeError(f"interpolate: images of {image} become {tuple(made)}; lengths must be at least 1.")
    if mode == "area":
        return _Plan(tuple(made), None, [])
    if recompute_scale_factor:
        factors = None
    plans = []
    for axis, (n, m) in enumerate(zip(image, made, strict=True)):
        # The places of a result of the same length are those of the axis, whatever the factor, and of images
        # those of twice the length; not so with cubic filters, and to the nearest of one or three axes.
        is_same = (m == n and (antialias or _MODES[mode][0] == "linear")) or (
            mode == "nearest" and count == 2 and m in (n, 2 * n)
        )
        if align_corners:
            scale = np.float32(n - 1) / np.float32(m - 1) if m > 1 else 0.0
        elif factors and not is_same:
            scale = 1 / factors[axis]
        else:
            scale = np.float32(n) / np.float32(m)
        half = not align_corners and mode != "nearest"
        plan = Resampling(n, m, float(np.float32(scale)), _MODES[mode][0], half, bool(antialias))
        if plan.changes:
            plans.append((m / n, axis + 2, plan))
    slices = [(axis, plan.places) for _, axis, plan in plans]
    last = count
    if not antialias and sum(axis >= last for _, axis, _ in plans) == 2:
        *plans, (rows, _, down), (columns, _, across) = plans
        plans.append((rows * columns, last, (down, across)))
    ordered = [(axis, plan) for _, axis, plan in sorted(plans, key=lambda each: each[0])]
    return _Plan(tuple(made), slices if all(places for _, places in slices) else None, ordered)


# To plan takes more Python than several ops.
_planned = lru_cache(256, typed=True)(_plan)


@function(exports="nn.functional", ours="PyTorch takes one of ATen's upsample operators by mode, in Python")
def interpolate(
    input: Tensor,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images of another size.

    Args:
        input: (batch, channels, length), (batch, channels, height, width) or (batch, channels, depth, height,
            width), floating point; uint8 too, to the nearest.
        size: lengths of the result: one number, or one for each axis.
        scale_factor: in its place, how many times as long as the input: one number, or one for each axis.
        mode: "nearest", "nearest-exact" or "area" (means of windows); "linear", "bilinear" and
            "trilinear" for one, two and three axes; "bicubic" for two.
        align_corners: whether the first and last places of the input and the result lie on each other, or
            else the ends of their cells do; of linear modes and "bicubic".
        recompute_scale_factor: whether distances follow from the lengths, or else from ``scale_factor``.
        antialias: whether each place of a smaller result takes in all that lies around it; of "bilinear" and
            "bicubic".

    Returns:
        (batch, channels, *lengths), each being ``floor(length * scale_factor)``, or as ``size`` says.

    Raises:
        ValueError: a setting does not fit the mode, or there is none or more than one size.
        NotImplementedError: the mode is not one for so many axes.

    Example:
        >>> import pellucid as torch
        >>> x = torch.tensor([[[1.0, 3.0]]], device="cpu")
        >>> torch.nn.functional.interpolate(x, scale_factor=2, mode="linear").tolist()
        [[[1.0, 1.5, 2.5, 3.0]]]
    """
    settings = (
        tuple(input.shape[2:]),
        size,
        scale_factor,
        mode,
        align_corners,
        recompute_scale_factor,
        antialias,
    )
    is_plain = _is_plain(size, int) and all(_is_plain(s, int, float, str, bool) for s in settings[2:])
    made, slices, resamplings = (_planned if is_plain else _plan)(*settings)
    if mode == "area":
        return getattr(pool, f"adaptive_avg_pool{len(made)}d")(input, made)
    # Bytes move without loss through floats.
    is_byte = input.dtype is dt.uint8 and not _is_smooth(mode)
    if not (is_byte or input.dtype.is_floating_point):
        raise DTypeError(
            f"interpolate: input has dtype {input.dtype}; it takes floating point, nearest modes uint8, too."
        )
    name = f"Upsample{''.join(map(str.capitalize, mode.split('-')))}{len(made)}D{'Aa' * antialias}Backward0"
    if slices is not None:
        for axis, places in slices:
            input = slice_dim(input, axis, *places)
        return labelled(name, input.clone())
    out = input.float() if is_byte else input
    for axis, found in resamplings:
        out = resample_planes(out, *found) if isinstance(found, tuple) else resample(out, found, axis)
    return out.to(input.dtype) if is_byte else labelled(name, out, (input,))


@function(exports="nn.functional", ours="another name of interpolate, in Python")
def upsample(
    input: Tensor,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate`, by its earlier name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@function(exports="nn.functional", ours="a form of interpolate, in Python")
def upsample_nearest(
    input: Tensor,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
) -> Tensor:
    """`interpolate` to the nearest."""
    return interpolate(input, size, scale_factor)


@function(exports="nn.functional", ours="a form of interpolate, in Python")
def upsample_bilinear(
    input: Tensor,
    size: int | tuple[int, ...] | None = None,
    scale_factor: float | tuple[float, ...] | None = None,
) -> Tensor:
    """`interpolate` with "bilinear" and the corners aligned."""
    return interpolate(input, size, scale_factor, "bilinear", True)
