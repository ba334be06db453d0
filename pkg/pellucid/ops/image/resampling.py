"""Resampling of one axis: which places of it each place of the result takes in, and their weights."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import numpy as np

from ...op.kernel import Launch, flag, per_element
from ...tensors.shape import Size

# How many places a filter spans.
_WIDTHS = {"nearest": 1, "nearest-exact": 1, "linear": 2, "cubic": 4}


@dataclass(frozen=True)
class Resampling:
    """An axis with another length.

    Args:
        length, made: before and after.
        scale: places of the axis from one place of the result to the next, a float32.
        filter: "nearest", "nearest-exact", "linear" or "cubic".
        half: whether places are the middles of cells, or else points.
        antialias: whether the filter is at least as wide as a place of the result.
    """

    length: int
    made: int
    scale: float
    filter: str
    half: bool
    antialias: bool = False

    @property
    def width(self) -> int:
        """Places that the filter spans."""
        return _WIDTHS[self.filter]

    @property
    def taps(self) -> int:
        """Places that one of the result takes in, at most."""
        return ceil(self.width * max(self.scale, 1.0)) + 2 if self.antialias else self.width

    @property
    def changes(self) -> bool:
        """Whether the result is another than the axis."""
        return self.made != self.length or self.scale != 1

    @property
    def places(self) -> tuple[int, int, int] | None:
        """The slice of the axis that a result to the nearest is, where distances are whole."""
        step = int(self.scale)
        first = int(0.5 * step) if self.half else 0
        end = first + (self.made - 1) * step + 1
        is_slice = self.width == 1 and step == self.scale > 0 and end <= min(self.length, 1 << 23)
        return (first, end, step) if is_slice else None

    def launch(self, file: str, shape: Size, axis: int, outputs: int) -> Launch:
        """The dispatch of a kernel that reads an input of this shape."""
        params: dict[str, Any] = {
            "outputs": outputs, "length": self.length, "made": self.made, "inner": prod(shape[axis + 1 :]),
            "scale": self.scale, "taps": self.taps,
        }  # fmt: skip
        if file == "image/resample_gradient":
            reach = self.width * (max(self.scale, 1.0) if self.antialias else 1.0) + 3
            most = self.made if self.scale <= 0 else min(ceil(reach / self.scale) + 6, self.made)
            params["places"] = max(most, 1)
        holes = {"WIDTH": str(self.width), "HALF": flag(self.half), "ANTIALIAS": flag(self.antialias)}
        return per_element(file, outputs, params, holes, {"x": "input"})

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """The places that each of the result takes in and their weights, (made, taps), in float32 as PyTorch
        computes them."""
        one = np.float32
        scale, q = one(self.scale), np.arange(self.made, dtype=one)
        if self.antialias:
            wide = max(scale, one(1))
            middle, reach = scale * (q + one(0.5)), one(self.width / 2) * wide
            first = np.maximum((middle - reach + one(0.5)).astype(np.int64), 0)
            end = np.minimum((middle + reach + one(0.5)).astype(np.int64), self.length)
            places = first[:, None] + np.arange(self.taps)
            weights = self._filter((places - middle[:, None] + one(0.5)) / wide)
            weights = np.where(places < end[:, None], weights, 0)
            return np.minimum(places, self.length - 1), weights / weights.sum(1, keepdims=True)
        if self.width == 1:
            at = ((q + one(0.5) if self.half else q) * scale).astype(np.int64)
            return np.minimum(at, self.length - 1)[:, None], np.ones((self.made, 1), one)
        at = (q + one(0.5)) * scale - one(0.5) if self.half else q * scale
        at = np.maximum(at, 0) if self.width == 2 else at
        below = np.minimum(np.floor(at).astype(np.int64), self.length - 1)
        beside = np.arange(self.width) - (self.width // 2 - 1)
        weights = self._filter(beside - np.clip(at - below, 0, 1)[:, None])
        return np.clip(below[:, None] + beside, 0, self.length - 1), weights

    def _filter(self, at: np.ndarray) -> np.ndarray:
        x = np.abs(at)
        if self.width == 2:
            return np.maximum(1 - x, 0)
        a = -0.5 if self.antialias else -0.75
        near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
        return np.where(x < 1, near, np.where(x < 2, far, 0))
