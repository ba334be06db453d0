"""What a case is, and the arrays that cases are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

RANDOM = np.random.default_rng(5)
LAYOUTS = ("contiguous", "strided")
# Both zeros, infinities, NaN, halves that round to even, large and small numbers.
EDGES = np.array([
    0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.1, 3, -3, 2.5, -2.5, 1e30, -1e30, 6, 0.5, 2**24, 88.5, -104,
], np.float32)  # fmt: skip
WHOLE = {
    "int64": [0, 1, -1, 7, -7, 100, 2**31 - 1, -(2**31), 2**40, -(2**40), 63, 31],
    "int32": [0, 1, -1, 7, -7, 100, 2**31 - 1, -(2**31), 63, 31, 8, 5],
    "int16": [0, 1, -1, 7, -7, 100, 2**15 - 1, -(2**15), 63, 31, 8, 5],
    "int8": [0, 1, -1, 7, -7, 100, 127, -128, 63, 31, 8, 5],
    "uint8": [0, 1, 255, 7, 9, 100, 127, 128, 63, 31, 8, 5],
    "bool": [0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0],
}


@dataclass(frozen=True)
class Case:
    """One call that both devices make: ``call(torch, *tensors)`` gives a tensor or several."""

    name: str
    call: Callable
    arrays: tuple[np.ndarray, ...] = ()
    rtol: float = 1e-5
    atol: float = 1e-5
    # Whether gradients of the float32 arrays are compared too.
    grad: bool = True
    layouts: tuple[str, ...] = LAYOUTS


def normal(*shape: int) -> np.ndarray:
    """Standard normal float32 numbers."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    """float32 numbers from 0.1 to 2."""
    return RANDOM.uniform(0.1, 2, shape).astype(np.float32)


def unit(*shape: int) -> np.ndarray:
    """float32 numbers inside (-1, 1)."""
    return RANDOM.uniform(-0.9, 0.9, shape).astype(np.float32)


def apart(*shape: int) -> np.ndarray:
    """float32 numbers no two of which are close, so that their order is the same on every device."""
    count = int(np.prod(shape))
    return (RANDOM.permutation(count).astype(np.float32) / 4 - count / 8).reshape(shape)


def whole(dtype: str) -> np.ndarray:
    """The edge values of an integer type."""
    return np.array(WHOLE[dtype], dtype)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every value beside every other."""
    return values.repeat(values.size), np.tile(values, values.size)


def below(limit: int, *shape: int) -> np.ndarray:
    """int64 indices from 0 to limit - 1."""
    return RANDOM.integers(0, limit, shape, dtype=np.int64)
