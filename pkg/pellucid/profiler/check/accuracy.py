"""How close a kernel's result is to its reference's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from .entry import Entry
from .reference import on_cpu
from .shadow import Snapshot

# Of a result's last place: what the numbers of a format leave open, twice.
_STEP = {dt.float32: 2.0**-22, dt.float64: 2.0**-22, dt.float16: 2.0**-9, dt.bfloat16: 2.0**-6}
_TINY = 1.1754944e-38  # numbers below may be taken as zero


@dataclass
class Difference:
    """Where two results differ.

    Args:
        index: of the first element.
        found: its value on the device.
        wanted: what it should be.
        count: elements that differ.
        size: all elements.
    """

    index: tuple[int, ...]
    found: object
    wanted: object
    count: int
    size: int

    def __str__(self) -> str:
        return f"at {list(self.index)} ({self.count} of {self.size} elements differ)"


def flushed(values: np.ndarray) -> np.ndarray:
    """Zeros of the same sign in the place of subnormal numbers, for which WGSL lets a device take them."""
    return np.where(np.abs(values) < _TINY, np.copysign(values.dtype.type(0), values), values)


def as_floats(values: np.ndarray) -> np.ndarray:
    """Complex numbers as floats along a last axis; others as they are."""
    if values.dtype.kind != "c":
        return values
    return np.stack([np.real(values), np.imag(values)], -1)


def peak(values: np.ndarray) -> float:
    """The largest finite magnitude."""
    values = as_floats(values)
    if values.dtype.kind not in "fiu" or not values.size:
        return 1.0
    magnitudes = np.abs(values.astype(np.float64))
    return float(np.max(magnitudes, initial=0.0, where=np.isfinite(magnitudes)))


def difference(found: np.ndarray, wanted: np.ndarray, d: DType, relative: float, absolute: float):
    """The first element by which results differ; None where they agree.

    Args:
        found: values from the device.
        wanted: values of the reference.
        d: their dtype.
        relative: error that is allowed for each, beside what the dtype leaves open.
        absolute: the same, of all.
    """
    if not d.is_floating_point:
        wrong = found != wanted
    else:
        with np.errstate(all="ignore"):
            a, b = flushed(found.astype(np.float64)), flushed(wanted.astype(np.float64))
            allowed = absolute + (relative + _STEP[d]) * np.abs(b)
            wrong = ~((a == b) | (np.abs(a - b) <= allowed) | (np.isnan(a) & np.isnan(b)))
            wrong |= np.isinf(b) & (a != b)
    if not wrong.any():
        return None
    index = tuple(int(k) for k in np.argwhere(wrong)[0])
    return Difference(index, found[index], wanted[index], int(wrong.sum()), wrong.size)


# Of elements: relative, and of the largest.
_USUAL = 1e-5, 1e-6
# Sums of many, in whatever order.
_SUMS = {
    "matmul", "linear", "quant_linear", "quant_product", "sum", "mean", "conv1d", "conv2d",
    "conv_transpose1d", "conv_transpose2d", "convolution", "convolution_input", "convolution_weight",
    "quant_convolution", "quant_convolution_input", "fold_windows", "resample", "resample_gradient",
    "add_rows", "scatter_add", "norm_gradient", "rms_norm", "layer_norm", "average_windows",
    "average_windows_gradient", "cumsum", "scaled_dot_product_attention", "cached_attention",
    "scan_states", "scan_gradient",
}  # fmt: skip
# Exponentials of sums, and factors of matrices, in which errors of these grow.
_ROUGH = {
    "scaled_dot_product_attention", "cached_attention", "softmax", "log_softmax", "cholesky_factor",
    "eliminate", "geqrf", "qr", "solve_triangular",
}  # fmt: skip
# Waves of a wide range, whose error is one of their largest value.
_WAVES = {"airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "transform"}
# A choice by random numbers, one of two neighbours, and signs of vectors: where rounding decides.
_CHOICES = {
    "binomial_block", "draw", "draw_nucleus", "eigh", "log_gamma_block", "poisson_block", "svd",
}  # fmt: skip


def close(
    entry: Entry, found: np.ndarray, wanted: np.ndarray, d: DType, more: float = 0.0
) -> Difference | None:
    """Where a result of an op is further from the reference's than the op allows; None where it is not.

    Args:
        entry: the op, with what it was given.
        found: values from the device.
        wanted: what the reference made.
        d: their dtype.
        more: error that is allowed beside the op's own, of the largest element.
    """
    name = entry.op.name
    if name in _CHOICES:
        return None
    relative, spread = (1e-4, 1e-4) if name in _ROUGH else (1e-5, 1e-5) if name in _WAVES else _USUAL
    absolute = 0.0
    if d.is_complex:
        found, wanted, d = as_floats(found), as_floats(wanted), dt.float32
    if d.is_floating_point:
        # What is added to what was there may leave little of it.
        before = [seen.values for seen in entry.seen] if entry.written or entry.op.mutates else ()
        absolute = (spread + more) * max(map(peak, [wanted, *before]))
    if name in _SUMS and d.is_floating_point:
        absolute += _of_sums(entry, wanted)
    return difference(found, wanted, dt.uint8 if d.is_quantized else d, relative, absolute)


def _of_sums(entry: Entry, wanted: np.ndarray) -> float:
    """The error of sums that were added up one by one, by how many there are and how large they are."""
    given = [found for value in entry.values if (found := _numbers(value)) is not None and found.size > 1]
    given = sorted(given, key=lambda v: v.size)[-2:]
    if not given:
        return 0.0
    # Of a product of matrices this is the depth.
    count = np.prod([float(v.size) for v in given]) ** (1 / len(given)) / max(wanted.size, 1) ** (
        1 / len(given)
    )
    if entry.op.name == "cumsum":
        count = given[-1].shape[-1]
    elif entry.op.name == "convolution_weight":  # all positions of all examples, for each tap of the kernel
        count = min(v.size / v.shape[1] for v in given)
    count = max(count, 2.0)
    sizes = float(np.prod([min(_root_mean_square(v), 1e30) for v in given]))
    largest = float(np.prod([min(peak(v), 1e30) for v in given]))
    return sizes * min(2.0**-23 * count**1.5 / 4, 1e-3 * count**0.5) + 2.0**-23 * largest


def _numbers(value: Any) -> np.ndarray | None:
    """The values of a floating-point argument, those of chunks of a weight together; None of another."""
    if isinstance(value, list):
        parts = [part for part in map(_numbers, value) if part is not None]
        return np.concatenate([part.ravel() for part in parts]) if parts else None
    if not isinstance(value, Snapshot):
        return None
    d = value.meta.dtype
    if d.is_quantized:
        return on_cpu(value.values, value.meta.shape, d).dequantize().numpy()
    return as_floats(value.values) if d.is_floating_point or d.is_complex else None


def _root_mean_square(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.sqrt(np.mean(finite * finite))) if finite.size else 0.0
