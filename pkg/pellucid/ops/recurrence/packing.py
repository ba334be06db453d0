"""Sequences of different lengths: from rows without padding to (time, batch, *), and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..shape.creation import full
from ..shape.joining import cat


def _places(sizes: Sequence[int], device: Any) -> Tensor:
    """Where the rows of packed data are in padded ones, step by step."""
    batch = sizes[0]
    places = np.concatenate([t * batch + np.arange(size) for t, size in enumerate(sizes)])
    return tensor(places.astype(np.int64), device=device)


def packed(padded: Tensor, sizes: Sequence[int]) -> Tensor:
    """The rows that count of (time, batch, *), sorted by length."""
    return padded.flatten(0, 1).index_select(0, _places(sizes, padded.device))


def padded(data: Tensor, sizes: Sequence[int], value: float = 0.0, time: int | None = None) -> Tensor:
    """Packed data as (time, batch, *), with a value where a sequence has no step."""
    time, batch = time or len(sizes), sizes[0]
    table = np.full(time * batch, len(data))
    for t, (size, start) in enumerate(zip(sizes, np.cumsum([0, *sizes[:-1]]), strict=True)):
        table[t * batch : t * batch + size] = start + np.arange(size)
    blank = full((1, *data.shape[1:]), value, dtype=data.dtype, device=data.device)
    rows = cat([data, blank]).index_select(0, tensor(table.astype(np.int64), device=data.device))
    return rows.reshape(time, batch, *data.shape[1:])
