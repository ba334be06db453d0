"""The cpu device: storages are numpy bytes, ops run their numpy reference at once."""

from __future__ import annotations

import numpy as np

from ..tensors.dtypes import DType, bfloat16, float16, round_bfloat16


class CpuStorage:
    """Bytes in host memory, freed by reference count as any Python object.

    Args:
        data: a contiguous array; its memory becomes the storage's.
    """

    __slots__ = ("__weakref__", "data", "kind", "nbytes", "version")

    def __init__(self, data: np.ndarray, kind: str = "activation"):
        self.data = data.reshape(-1).view(np.uint8)
        self.nbytes = data.nbytes
        self.version = 0
        self.kind = kind

    def set_kind(self, kind: str) -> None:
        """Account it as something else."""
        self.kind = kind

    def grow(self, nbytes: int) -> None:
        """Make it longer; its bytes stay, in memory of its own."""
        self.data = np.concatenate([self.data, np.zeros(nbytes - self.nbytes, np.uint8)])
        self.nbytes = nbytes


def as_array(storage: CpuStorage, d: DType, shape, strides, offset: int) -> np.ndarray:
    """A numpy view of a tensor's elements; writing into it writes into the tensor."""
    assert d.numpy is not None  # a quantized weight has no elements of its own
    size = d.numpy.itemsize
    if 0 in shape:
        return np.empty(shape, d.numpy)
    return np.ndarray(shape, d.numpy, storage.data, offset * size, tuple(s * size for s in strides))


def rounded(array: np.ndarray, d: DType) -> np.ndarray:
    """Values as dtype ``d`` holds them: bfloat16 lives in float32 arrays, rounded; of complex numbers reals
    hold the real part.
    """
    if np.iscomplexobj(array) and (d.is_floating_point or d.is_integer):
        array = np.real(array)
    if d is bfloat16:
        return round_bfloat16(np.asarray(array, np.float32))
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(d.numpy, copy=False)


def widened(array: np.ndarray, d: DType) -> np.ndarray:
    """Half precision as float32, in which references compute."""
    return array.astype(np.float32) if d is float16 else array
