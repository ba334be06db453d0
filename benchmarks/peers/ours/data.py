"""Inputs, samples and checksums: the same numbers as page/data.js."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np


def scramble(x: np.ndarray) -> np.ndarray:
    """Every input bit reaches every output bit: two rounds of shift and multiply, on uint32."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def bits(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """24 random bits for each element, a function of its index and the seed."""
    salt = np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    return scramble(np.arange(np.prod(shape), dtype=np.uint32) + salt).reshape(shape) >> np.uint32(8)


def uniform(shape: tuple[int, ...], seed: int, scale: float = 1.0, offset: float = 0.0) -> np.ndarray:
    """Floats of [offset - scale, offset + scale)."""
    return (offset + scale * (bits(shape, seed) / (1 << 23) - 1)).astype(np.float32)


def integers(shape: tuple[int, ...], seed: int, limit: int) -> np.ndarray:
    """Integers of [0, limit)."""
    return (bits(shape, seed) % np.uint32(limit)).astype(np.int64)


# How far the input of a unit lies behind that of the unit before in the sequence that both are cut from.
STEP = 4099


def series(
    units: int, shape: tuple[int, ...], seed: int, scale: float = 1.0, offset: float = 0.0
) -> Iterator[np.ndarray]:
    """Inputs for several units: parts of one sequence, each beginning further on than the one before, for it
    takes long to make hundreds of large inputs from nothing."""
    n = int(np.prod(shape))
    sequence = uniform((n + (units - 1) * STEP,), seed, scale, offset)
    for i in range(units):
        yield sequence[i * STEP : i * STEP + n].reshape(shape)


def sample(k: int, checked: int, seed: int, shared: int | None = None) -> list[int]:
    """Which of k outputs are compared: so many by chance, in order; all if there are no more.

    Half are among the first ``shared``, which every library has; of the others those come first that come
    first for another k, too.
    """
    if k <= checked:
        return list(range(k))
    order = np.argsort(bits((k,), seed + 1), kind="stable").tolist()
    near = [i for i in order if shared is None or i < shared][: checked // 2]
    others = [i for i in order if i not in near][: checked - len(near)]
    return sorted(near + others)


FACTORS = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)


def permutation(n: int) -> np.ndarray:
    """The integers of [0, n) in an order that a function of their index gives: a bijection of the next power
    of two, cut off."""
    width = max(1, (n - 1).bit_length())
    mask, half = np.uint32((1 << width) - 1), np.uint32((width + 1) >> 1)
    x = np.arange(1 << width, dtype=np.uint32)
    for factor in FACTORS:
        x ^= x >> half
        x = (x * np.uint32(factor)) & mask
    x ^= x >> half
    return x[x < n].astype(np.int64)


# So many places at either end of a large output are compared, and so many in all.
ENDS, PLACES = 64, 4096


def places(n: int) -> np.ndarray:
    """Which of n numbers are compared: all, or those at both ends and others by chance, a function of n."""
    if n <= PLACES:
        return np.arange(n)
    found = bits((PLACES,), 0).astype(np.int64) * n >> 24
    found[:ENDS], found[-ENDS:] = np.arange(ENDS), np.arange(n - ENDS, n)
    return found


@lru_cache(maxsize=8)
def weights(n: int) -> np.ndarray:
    """What the elements of an output are weighted with."""
    return bits((n,), 0) / (1 << 23) - 1


def checksum(values: np.ndarray) -> list[float]:
    """Sum of magnitudes, Euclidean norm and weighted sum, in float64."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    return [float(np.abs(flat).sum()), float(np.sqrt(flat @ flat)), float(flat @ weights(flat.size))]
