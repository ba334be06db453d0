"""Tensors of a TensorFlow Lite file: types, quantization, and their values or the place of these."""

from __future__ import annotations

from collections.abc import Generator
from math import isfinite, prod
from typing import Any

import numpy as np

from ....errors import FormatError
from ....tensors import dtypes as dt
from ....tensors.dtypes import DType
from ....weights.checkpoint import TensorInfo
from ....weights.source import Source
from .quantized import Quantization
from .sparse import dense

# By the enum TensorType; None for what no tensor holds here. Four-bit numbers are held in bytes.
TYPES: tuple[tuple[str, DType | None], ...] = (
    ("FLOAT32", dt.float32), ("FLOAT16", dt.float16), ("INT32", dt.int32), ("UINT8", dt.uint8),
    ("INT64", dt.int64), ("STRING", None), ("BOOL", dt.bool_), ("INT16", dt.int16),
    ("COMPLEX64", dt.complex64), ("INT8", dt.int8), ("FLOAT64", dt.float64), ("COMPLEX128", dt.complex128),
    ("UINT64", None), ("RESOURCE", None), ("VARIANT", None), ("UINT32", dt.uint32), ("UINT16", dt.uint16),
    ("INT4", dt.int8), ("BFLOAT16", dt.bfloat16),
)  # fmt: skip
_INT4 = 17
_SHORT = 1024  # bytes that are read with the graph
_LARGEST = 1 << 40  # elements that a tensor may claim
_LARGEST_STATE = 1 << 24  # elements of all variables
_QUANTIZED = ("int8", "uint8", "int16", "int32")


def data_type(where: str, number: int) -> DType:
    """The dtype that stands for a number of TensorType.

    Raises:
        FormatError: there is none, or no tensor of it is held here.
    """
    name, found = TYPES[number] if 0 <= number < len(TYPES) else (f"number {number}", None)
    if found is None:
        raise FormatError(f"{where}: the type {name} is not taken. Convert the model with another type.")
    return found


def shape_of(where: str, t: Any) -> tuple[int, ...]:
    """The shape of a tensor's table.

    Raises:
        FormatError: it is none.
    """
    shape = tuple(t.shape)
    if any(n < 0 for n in shape) or len(shape) > 64 or prod(shape) > _LARGEST:
        raise FormatError(f"{where}: has shape {list(shape)[:8]}. The file is damaged.")
    return shape


def quantization(where: str, t: Any, constant: bool) -> Quantization | None:
    """How a tensor's integers stand for floats; None where they stand for themselves.

    Args:
        where: the file and the tensor.
        t: its table.
        constant: it is a weight or bias.

    Raises:
        FormatError: scales, zero points and shape do not fit each other.
    """
    q = t.quantization
    if q is None or not q.scale:
        return None
    dtype = data_type(where, t.type)
    if dtype.name not in _QUANTIZED or (dtype is dt.int32 and not constant):
        return None
    scales, zeros, shape, axis = tuple(q.scale), tuple(q.zero_point), shape_of(where, t), 0
    if not zeros:
        zeros = (0,) * len(scales)
    if len(scales) > 1:
        axis = q.quantized_dimension
        if not 0 <= axis < len(shape) or len(scales) != shape[axis]:
            raise FormatError(
                f"{where}: has {len(scales)} scales along axis {axis} of shape {shape}. The file is damaged."
            )
    if len(zeros) == 1 and len(scales) > 1:
        zeros *= len(scales)
    if len(zeros) != len(scales) or q.details_type or not all(s > 0 and isfinite(s) for s in scales):
        raise FormatError(
            f"{where}: has a quantization that is not affine: {len(scales)} scales (the least is "
            f"{min(scales)}), {len(zeros)} zero points. The file is damaged, or made with custom numbers."
        )
    if dtype is dt.int32 and any(zeros):
        raise FormatError(f"{where}: is an int32 bias with a zero point. The file is damaged.")
    if len(set(zip(scales, zeros))) == 1:
        scales, zeros = scales[:1], zeros[:1]
    return Quantization(dtype, scales, zeros, axis, len(shape))


def exactly(source: Source, start: int, stop: int) -> Generator[Any, Any, bytes]:
    """Steps that read these bytes, all of them."""
    data = (yield source, start, stop) if stop > start else b""
    if len(data) != stop - start:
        raise FormatError(f"{source.name}: ends at byte {start + len(data):,}. It is cut short.")
    return data


class TensorTables:
    """Makes constants of the tensors of a file.

    Args:
        source: the file.
        buffers: their tables.
    """

    def __init__(self, source: Source, buffers: list[Any]):
        self.source, self.buffers = source, buffers
        self._types: dict[tuple[int, int], DType] = {}
        self._state = 0  # elements of all variables

    def place(self, where: str, t: Any) -> tuple[int, int] | None:
        """Where the bytes of a tensor lie; None if it is no constant.

        Raises:
            FormatError: its buffer is not in the file.
        """
        if t.external_buffer:
            raise FormatError(f"{where}: lies in another file, which is not taken. Convert to one file.")
        if not 0 <= t.buffer < len(self.buffers):
            raise FormatError(f"{where}: has buffer {t.buffer} of {len(self.buffers)}. The file is damaged.")
        buffer = self.buffers[t.buffer]
        if buffer.offset > 1:  # of a file of more than 2 GB, whose weights lie behind the flatbuffer
            start, stop = buffer.offset, buffer.offset + buffer.size
        else:
            start, stop = buffer.data or (0, 0)
        if stop > (self.source.size or 0):
            raise FormatError(
                f"{where}: its bytes end at {stop:,}, and the file has {self.source.size or 0:,}. It is cut "
                "short or damaged; download it again."
            )
        return (start, stop) if stop > start or (t.buffer and 0 in t.shape) else None

    def zeros(self, where: str, t: Any) -> np.ndarray:
        """The first value of a tensor that outlives a call.

        Raises:
            FormatError: it is larger than any state.
        """
        dtype, shape = data_type(where, t.type), shape_of(where, t)
        self._state += prod(shape)
        if self._state > _LARGEST_STATE or dtype.numpy is None:
            raise FormatError(f"{where}: is a variable of shape {shape} and too large. The file is damaged.")
        return np.zeros(shape, dtype.numpy)

    def read(self, where: str, t: Any, name: str) -> Generator[Any, Any, np.ndarray | TensorInfo | None]:
        """Steps that give the values of a constant, or where its bytes lie; None if it is none.

        Raises:
            FormatError: type, shape and bytes contradict each other.
        """
        place = self.place(where, t)
        if place is None:
            return None
        start, stop = place
        dtype, shape = data_type(where, t.type), shape_of(where, t)
        count = prod(shape)
        nbytes = -(-count // 2) if t.type == _INT4 else count * dtype.itemsize
        if t.sparsity is not None and t.type != _INT4:
            if dtype.numpy is None or dtype is dt.bfloat16 or (stop - start) % dtype.itemsize:
                raise FormatError(f"{where}: is sparse and of {dtype.name}, which is not taken.")
            data = yield from exactly(self.source, start, stop)
            return dense(where, t.sparsity, shape, np.frombuffer(data, dtype.numpy))
        if stop - start != nbytes:
            raise FormatError(
                f"{where}: has {stop - start:,} bytes, and {nbytes:,} are needed for {dtype.name} of shape "
                f"{shape}. The file is damaged."
            )
        alone = self._types.setdefault(place, dtype) is dtype
        if nbytes > _SHORT and t.type != _INT4 and alone:
            return TensorInfo(name, shape, dtype.name, start, stop)
        data = np.frombuffer((yield from exactly(self.source, start, stop)), np.uint8)
        if t.type == _INT4:
            halves = np.stack([data & 15, data >> 4], -1).reshape(-1)[:count]
            return ((halves ^ 8).astype(np.int8) - np.int8(8)).reshape(shape)
        if dtype is dt.bfloat16:
            return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
        assert dtype.numpy is not None
        return np.frombuffer(data.tobytes(), dtype.numpy).reshape(shape)
