"""Operators on signals, and random numbers."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from .....errors import ShapeError
from .....op.public import EXPORTS
from .....tensors import dtypes as dt
from .....tensors.construct import tensor
from .....tensors.tensor import Tensor
from ...rows import Number, axis_of
from ..constants import data_type
from ..table import operator
from .elementwise import ops

fft = EXPORTS["fft"]


def _complex(x: Tensor) -> Tensor:
    """Signals whose last axis is (real) or (real, imaginary)."""
    if x.shape[-1] not in (1, 2):
        raise ShapeError(f"the last axis of shape {tuple(x.shape)} holds one or two parts.")
    return ops.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)


def _transform(x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    axis = axis_of(axis, len(x.shape))
    if axis == len(x.shape) - 1:
        raise ShapeError("the axis of a transform is not that of the parts, which is the last.")
    signal = _complex(x)
    count = signal.shape[axis] if length is None else int(length)
    if onesided and inverse:
        return fft["irfft"](signal, count if length is not None else 2 * (count - 1), axis).unsqueeze(-1)
    if onesided:
        return ops.view_as_real(fft["rfft"](signal, count, axis))
    return ops.view_as_real(fft["ifft" if inverse else "fft"](signal, count, axis))


@operator("DFT", since=20)
def dft(x: Tensor, dft_length: Number = None, axis: Number = None, *, inverse: int = 0, onesided: int = 0):
    return _transform(x, dft_length, -2 if axis is None else int(axis), inverse, onesided)


@operator("DFT", since=17)
def dft_by_attribute(
    x: Tensor, dft_length: Number = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
):
    return _transform(x, dft_length, axis, inverse, onesided)


@operator("STFT", since=17)
def stft(
    signal: Tensor, frame_step: Number, window: Tensor | None = None, frame_length: Number = None, *,
    onesided: int = 1,
):  # fmt: skip
    x = _complex(signal) if len(signal.shape) == 3 else signal
    length = (
        int(frame_length)
        if frame_length is not None
        else window.shape[0]
        if window is not None
        else x.shape[1]
    )
    frames = x.unfold(1, length, int(frame_step))
    if window is not None:
        frames = frames * window
    run = fft["rfft"] if onesided and not frames.dtype.is_complex else fft["fft"]
    return ops.view_as_real(run(frames, length, -1))


def _window(first: float, second: float, third: float):
    def run(size: Number, *, output_datatype: int = 1, periodic: int = 1):
        count = int(size) if periodic else int(size) - 1
        angle = np.arange(int(size)) * (2 * pi / max(count, 1))
        values = first - second * np.cos(angle) + third * np.cos(2 * angle)
        return tensor(values, device="cpu").to(data_type("output", output_datatype))

    return run


operator("HannWindow", since=17)(_window(0.5, 0.5, 0.0))
operator("HammingWindow", since=17)(_window(25 / 46, 21 / 46, 0.0))
operator("BlackmanWindow", since=17)(_window(0.42, 0.5, 0.08))


@operator("MelWeightMatrix", since=17)
def mel_weight_matrix(
    num_mel_bins: Number, dft_length: Number, sample_rate: Number, lower_edge_hertz: Number,
    upper_edge_hertz: Number, *, output_datatype: int = 1,
):  # fmt: skip
    bins, rows = int(num_mel_bins), int(dft_length) // 2 + 1
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (lower_edge_hertz, upper_edge_hertz))
    edges = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    places = np.floor((int(dft_length) + 1) * (700 * (10 ** (edges / 2595) - 1)) / sample_rate).astype(
        np.int64
    )
    out = np.zeros((rows, bins))
    for k in range(bins):
        start, middle, stop = places[k : k + 3]
        if middle == start:
            out[middle, k] = 1
        else:
            out[start : middle + 1, k] = (np.arange(start, middle + 1) - start) / (middle - start)
        if stop > middle:
            out[middle:stop, k] = (stop - np.arange(middle, stop)) / (stop - middle)
    return tensor(out, device="cpu").to(data_type("output", output_datatype))


def _like(x: Tensor, dtype: int | None) -> dt.DType:
    return data_type("dtype", dtype) if dtype is not None else x.dtype


@operator("Bernoulli", since=15, fixed=False)
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float = 0.0):
    return ops.bernoulli(x).to(_like(x, dtype))


@operator("RandomUniformLike", fixed=False)
def random_uniform_like(
    x: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float = 0.0
):
    return (ops.rand(x.shape, device=x.device) * (high - low) + low).to(_like(x, dtype))


@operator("RandomNormalLike", fixed=False)
def random_normal_like(
    x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float = 0.0
):
    return (ops.randn(x.shape, device=x.device) * scale + mean).to(_like(x, dtype))


@operator("RandomUniform", fixed=False)
def random_uniform(*, shape: list, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float = 0.0):
    return (ops.rand(shape, device="cpu") * (high - low) + low).to(data_type("dtype", dtype))


@operator("RandomNormal", fixed=False)
def random_normal(*, shape: list, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float = 0.0):
    return (ops.randn(shape, device="cpu") * scale + mean).to(data_type("dtype", dtype))
