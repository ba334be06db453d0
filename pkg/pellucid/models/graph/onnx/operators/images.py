"""Operators on images: other sizes, other grids, regions."""

from __future__ import annotations

from functools import lru_cache
from math import floor

import numpy as np

from .....errors import ArgumentError, ShapeError
from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.construct import tensor
from .....tensors.tensor import Tensor
from ...rows import Floats, Ints, axes_of, one_of
from ..table import operator
from .elementwise import ops
from .shapes import check_size

_MODES = ("nearest", "linear", "cubic")


@operator("Resize", since=11)
def resize(
    x: Tensor, roi: Floats | None = None, scales: Floats | None = None, sizes: Ints | None = None, *,
    antialias: int = 0, axes: list | None = None, coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
):  # fmt: skip
    """One axis after the other: each element of the result is a weighted sum of few of its line."""
    chosen = axes_of(range(len(x.shape)) if axes is None else axes, len(x.shape))
    one_of("mode", mode, _MODES)
    lengths = [x.shape[a] for a in chosen]
    if scales:
        if len(scales) != len(chosen):
            raise ShapeError(f"scales {scales} for {len(chosen)} axes. Give one for each.")
        crop = coordinate_transformation_mode == "tf_crop_and_resize" and roi
        spans = [roi[k + len(chosen)] - roi[k] if crop and roi else 1 for k in range(len(chosen))]
        wanted = [floor(n * s * span) for n, s, span in zip(lengths, scales, spans)]
        factors = list(scales)
    elif sizes:
        if len(sizes) != len(chosen):
            raise ShapeError(f"sizes {sizes} for {len(chosen)} axes. Give one for each.")
        wanted, factors = list(sizes), [s / n for s, n in zip(sizes, lengths)]
        if keep_aspect_ratio_policy != "stretch":
            pick = one_of(
                "keep_aspect_ratio_policy", keep_aspect_ratio_policy, {"not_larger": min, "not_smaller": max}
            )
            factors = [pick(factors)] * len(chosen)
            wanted = [floor(n * factors[0] + 0.5) for n in lengths]
    else:
        raise ArgumentError("neither scales nor sizes are given.")
    check_size(n if k not in chosen else wanted[chosen.index(k)] for k, n in enumerate(x.shape))
    kind = x.dtype
    y = x if kind.is_floating_point else x.to(dt.float32)
    for k, axis in enumerate(chosen):
        ends = (roi[k], roi[k + len(chosen)]) if roi and len(roi) == 2 * len(chosen) else (0.0, 1.0)
        if (
            wanted[k] == lengths[k]
            and factors[k] == 1
            and coordinate_transformation_mode != "tf_crop_and_resize"
        ):
            continue
        places, weights, outside = _taps(
            lengths[k], wanted[k], factors[k], ends, coordinate_transformation_mode, mode, nearest_mode,
            cubic_coeff_a, bool(exclude_outside), bool(antialias),
        )  # fmt: skip
        y = _line_sums(y, axis, places, weights)
        if outside is not None:
            shape = [-1 if a == axis else 1 for a in range(len(x.shape))]
            y = ops.where(tensor(outside, device=x.device).reshape(shape), extrapolation_value, y)
    if kind.is_floating_point:
        return y.to(kind)
    limits = np.iinfo(kind.numpy)
    return ops.clamp(ops.round(y), limits.min, limits.max).to(kind)


def _line_sums(x: Tensor, axis: int, places: np.ndarray, weights: np.ndarray) -> Tensor:
    """Along an axis, ``out[i] = sum(weights[i, t] * x[places[i, t]] for t)``."""
    shape = [-1 if a == axis else 1 for a in range(len(x.shape))]
    out = None
    for t in range(places.shape[1]):
        taken = ops.index_select(x, axis, tensor(places[:, t].copy(), device=x.device))
        if not (weights[:, t] == 1).all():
            taken = taken * tensor(weights[:, t].astype(np.float32), device=x.device).reshape(shape).to(
                x.dtype
            )
        out = taken if out is None else out + taken
    assert out is not None
    return out


@lru_cache(64)
def _taps(
    length: int, wanted: int, scale: float, ends: tuple[float, float], coordinates: str, mode: str,
    nearest: str, a: float, exclude_outside: bool, antialias: bool,
):  # fmt: skip
    """Places and weights of what each element of the result is made of, and where it is made of nothing."""
    at = np.arange(wanted, dtype=np.float64)
    start, end = ends
    whole = length * scale
    source = {
        "half_pixel": lambda: (at + 0.5) / scale - 0.5,
        "half_pixel_symmetric": lambda: length / 2 * (1 - wanted / whole) + (at + 0.5) / scale - 0.5,
        "pytorch_half_pixel": lambda: (at + 0.5) / scale - 0.5 if wanted > 1 else at * 0,
        "align_corners": lambda: at * (length - 1) / (wanted - 1) if wanted > 1 else at * 0,
        "asymmetric": lambda: at / scale,
        "tf_half_pixel_for_nn": lambda: (at + 0.5) / scale,
        "tf_crop_and_resize": lambda: (
            start * (length - 1) + at * (end - start) * (length - 1) / (wanted - 1)
            if wanted > 1
            else at * 0 + 0.5 * (start + end) * (length - 1)
        ),
    }
    x = one_of("coordinate_transformation_mode", coordinates, source)()
    outside = (x < 0) | (x > length - 1) if coordinates == "tf_crop_and_resize" else None
    if mode == "nearest":
        rounded = {
            "round_prefer_floor": lambda: np.ceil(x - 0.5),
            "round_prefer_ceil": lambda: np.floor(x + 0.5),
            "floor": lambda: np.floor(x),
            "ceil": lambda: np.ceil(x),
        }
        places = one_of("nearest_mode", nearest, rounded)()[:, None]
        weights = np.ones_like(places)
    else:
        wide = min(scale, 1.0) if antialias else 1.0
        reach = (1 if mode == "linear" else 2) / wide
        first = np.floor(x - reach).astype(np.int64)[:, None]
        places = (first + np.arange(int(2 * reach) + 3)).astype(np.float64)
        weights = _kernel((x[:, None] - places) * wide, mode, a)
        if exclude_outside:
            weights = np.where((places < 0) | (places > length - 1), 0, weights)
        if exclude_outside or antialias:
            weights = weights / weights.sum(1, keepdims=True)
        used = (weights != 0).any(0)
        places, weights = places[:, used], weights[:, used]
    return np.clip(places, 0, length - 1).astype(np.int64), weights, outside


def _kernel(distance: np.ndarray, mode: str, a: float) -> np.ndarray:
    t = np.abs(distance)
    if mode == "linear":
        return np.maximum(1 - t, 0)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


@operator("Resize", since=10)
@operator("Upsample", since=7)
def resize_by_scales(x: Tensor, scales: Floats | None = None, *, mode: str = "nearest"):
    kind = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    return resize(
        x, None, scales, coordinate_transformation_mode="asymmetric", mode=kind, nearest_mode="floor"
    )


@operator("GridSample", since=16)
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
):
    kinds = {
        "linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic",
        "bicubic": "bicubic",
    }  # fmt: skip
    return F.grid_sample(x, grid, one_of("mode", mode, kinds), padding_mode, bool(align_corners))


@operator("AffineGrid", since=20)
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0):
    check_size(size)
    return F.affine_grid(theta, tuple(size), bool(align_corners))


@operator("RoiAlign", since=10)
def roi_align(
    x: Tensor, rois: Tensor, batch_indices: Tensor, *, coordinate_transformation_mode: str | None = None,
    mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
):  # fmt: skip
    """Means or maxima over points of regions; reads the regions where their number of points follows from
    their size (``sampling_ratio=0``)."""
    half = 0.5 if (coordinate_transformation_mode or "half_pixel") == "half_pixel" else 0.0
    height, width = x.shape[2:]
    corners = rois.numpy().astype(np.float64) * spatial_scale - half
    outputs = []
    for corner, image in zip(corners, batch_indices.tolist()):
        spans = corner[2:] - corner[:2]
        spans = spans if half else np.maximum(spans, 1.0)
        # (x, y) of each region; lines of weights by axis, as bilinear samples clamp at the edges.
        sums, counts = [], []
        for k, (length, wanted) in enumerate(((width, output_width), (height, output_height))):
            count = sampling_ratio or max(int(np.ceil(spans[k] / wanted)), 1)
            step = spans[k] / wanted
            points = corner[k] + step * (np.arange(wanted)[:, None] + (np.arange(count) + 0.5) / count)
            sums.append(_bilinear_lines(points.reshape(-1), length))
            counts.append(count)
        taken = ops.index_select(x, 0, tensor(np.array([image], np.int64), device=x.device))
        wide, tall = (tensor(m.astype(np.float32), device=x.device).to(x.dtype) for m in sums)
        if mode == "max":
            y = _largest_of_corners(taken, tall, wide)
        else:
            y = ops.matmul(ops.matmul(tall, taken), wide.T)
        y = y.reshape(1, x.shape[1], output_height, counts[1], output_width, counts[0])
        outputs.append(ops.amax(y, [3, 5]) if mode == "max" else ops.mean(y, [3, 5]))
    if not outputs:
        return ops.zeros((0, x.shape[1], output_height, output_width), dtype=x.dtype, device=x.device)
    return ops.cat(outputs, 0)


def _bilinear_lines(points: np.ndarray, length: int) -> np.ndarray:
    """Weights of a line's elements at points; 0 for points that lie more than one element outside."""
    inside = (points >= -1) & (points <= length)
    at = np.clip(points, 0, length - 1)
    low = np.floor(at).astype(np.int64)
    lines = np.zeros((len(points), length))
    rows = np.arange(len(points))
    np.add.at(lines, (rows, low), 1 - (at - low))
    np.add.at(lines, (rows, np.minimum(low + 1, length - 1)), at - low)
    return lines * inside[:, None]


def _largest_of_corners(x: Tensor, tall: Tensor, wide: Tensor) -> Tensor:
    """At each point the largest of the four weighted neighbours, which ONNX takes for maxima."""
    best = None
    for rows in _neighbours(tall):
        for columns in _neighbours(wide):
            one = ops.matmul(ops.matmul(rows, x), columns.T)
            best = one if best is None else ops.maximum(best, one)
    assert best is not None
    return best


def _neighbours(lines: Tensor) -> list[Tensor]:
    """The lines with the first of their weights alone, and with the others."""
    first = ops.argmax((lines != 0).to(dt.int32), 1, True)
    places = ops.arange(lines.shape[1], device=lines.device)
    low = ops.where(places == first, lines, ops.zeros_like(lines))
    return [low, lines - low]
