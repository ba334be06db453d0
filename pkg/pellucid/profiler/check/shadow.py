"""What a buffer of the device should hold: its bytes as they lie there, and tensors in them as arrays."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

from ...device.storage import Storage
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...tensors.meta import Meta

_HELD = {dt.bool_: np.dtype(np.uint8), dt.bfloat16: np.dtype(np.uint16)}


class Shadow:
    """The bytes of one storage. They are replaced, never changed: who saw them may keep them.

    Args:
        storage: whose; it is not kept alive.
        data: its bytes.
    """

    __slots__ = ("data", "storage")

    def __init__(self, storage: Storage, data: np.ndarray):
        self.storage = weakref.ref(storage)
        self.data = data


def blank(nbytes: int) -> np.ndarray:
    """Bytes of a storage that is made: buffers end at whole 16 bytes."""
    return np.zeros(nbytes + 15 & ~15, np.uint8)


def padded(data) -> np.ndarray:
    """A copy of bytes with room for the last words."""
    view = memoryview(data).cast("B")
    made = blank(len(view))
    made[: len(view)] = np.frombuffer(view, np.uint8)
    return made


def _elements(data: np.ndarray, m: Meta, offset: int, d: DType) -> np.ndarray:
    kind = _HELD.get(d) or d.numpy
    assert kind is not None
    if 0 in m.shape:
        return np.empty(m.shape, kind)
    size = kind.itemsize
    return np.ndarray(m.shape, kind, data, offset * size, tuple([s * size for s in m.strides]))


def decode(data: np.ndarray, m: Meta, offset: int) -> np.ndarray:
    """A tensor's values, a copy, as the cpu device holds them; of a quantized weight all bytes."""
    if m.dtype.is_quantized:
        return data.copy()
    found = _elements(data, m, offset, m.dtype)
    if m.dtype is dt.bool_:
        return found != 0
    if m.dtype is dt.bfloat16:
        return (found.astype(np.uint32, order="C") << 16).view(np.float32)
    return found.copy()


def encode(data: np.ndarray, m: Meta, offset: int, values: np.ndarray) -> None:
    """Write a tensor's values, as the cpu device holds them, into bytes."""
    if m.dtype is dt.bfloat16:
        values = (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).reshape(values.shape)
    _elements(data, m, offset, m.dtype)[...] = values


@dataclass
class Snapshot:
    """A tensor as an op saw it or left it.

    Args:
        shadow: of its memory.
        data: the bytes of that memory, then.
        meta, offset: the tensor in it.
    """

    shadow: Shadow
    data: np.ndarray
    meta: Meta
    offset: int

    @property
    def values(self) -> np.ndarray:
        return decode(self.data, self.meta, self.offset)

    def __str__(self) -> str:
        return f"{self.meta.dtype.name}{list(self.meta.shape)}"
