"""Tensors of an ONNX file: their types, and their values or the place of these in the file or beside it."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import FormatError, SourceError
from ....tensors import dtypes as dt
from ....tensors.dtypes import DType
from ....weights.checkpoint import TensorInfo
from ....weights.fields import shown
from ....weights.source import LocalSource, Source
from .skim import LONG

# By TensorProto.DataType; None for what no tensor holds here. Four-bit numbers are held in bytes.
TYPES: dict[int, tuple[str, DType | None]] = {
    1: ("float", dt.float32), 2: ("uint8", dt.uint8), 3: ("int8", dt.int8), 4: ("uint16", dt.uint16),
    5: ("int16", dt.int16), 6: ("int32", dt.int32), 7: ("int64", dt.int64), 8: ("string", None),
    9: ("bool", dt.bool_), 10: ("float16", dt.float16), 11: ("double", dt.float64), 12: ("uint32", dt.uint32),
    13: ("uint64", None), 14: ("complex64", dt.complex64), 15: ("complex128", dt.complex128),
    16: ("bfloat16", dt.bfloat16), 17: ("float8e4m3fn", None), 18: ("float8e4m3fnuz", None),
    19: ("float8e5m2", None), 20: ("float8e5m2fnuz", None), 21: ("uint4", dt.uint8), 22: ("int4", dt.int8),
    23: ("float4e2m1", None), 24: ("float8e8m0", None), 25: ("uint2", None), 26: ("int2", None),
}  # fmt: skip
_HALF_BYTES = {21: 0, 22: 8}
# The field of values where they are not raw bytes, and how its numbers hold a value.
_LISTS = {1: "float_data", 11: "double_data", 7: "int64_data", 12: "uint64_data"}
_PAIRS = {14: "float_data", 15: "double_data"}
_LARGEST = 1 << 40  # elements that a tensor may claim


def data_type(where: str, number: int) -> DType:
    """The dtype that stands for a number of TensorProto.DataType.

    Raises:
        FormatError: there is none, or no tensor of it is held here.
    """
    name, found = TYPES.get(number, (f"number {number}", None))
    if found is None:
        raise FormatError(f"{where}: the data type {name} is not taken. Export the model with another type.")
    return found


class Constants:
    """Makes constants of TensorProtos, and remembers which files hold their bytes.

    Args:
        source: the model's file.
    """

    def __init__(self, source: Source):
        self.name = source.name
        self.shards = [source]
        self._beside: dict[str, int] = {}

    def read(self, message: Any, where: str) -> np.ndarray | TensorInfo:
        """The values of a TensorProto, or where its bytes lie.

        Raises:
            FormatError: type, shape and bytes contradict each other; names the tensor.
        """
        name = message.name
        where = f"{self.name}: {where}"
        number, shape = message.data_type, tuple(message.dims)
        dtype = data_type(where, number)
        if any(n < 0 for n in shape) or prod(shape) > _LARGEST or len(shape) > 64:
            raise self._refuse(where, f"has dims {shown(list(shape))}")
        count = prod(shape)
        nbytes = -(-count // 2) if number in _HALF_BYTES else count * dtype.itemsize
        if message.data_location == 1:
            return self._external(message, where, dtype, shape, nbytes)
        if message.span:
            if len(message.span) != 2 or not 0 <= message.span[0] <= message.span[1] <= (
                self.shards[0].size or 0
            ):
                raise self._refuse(where, "has no place in the file")
            start, stop = message.span
            self._check(where, shape, dtype, stop - start, nbytes)
            if number in _HALF_BYTES:
                raise self._refuse(where, f"has more than {LONG} bytes of half bytes, which is not taken")
            return TensorInfo(name, shape, dtype.name, start, stop)
        if message.raw_data:
            self._check(where, shape, dtype, len(message.raw_data), nbytes)
            data = np.frombuffer(message.raw_data, np.uint8)
            return (
                _unpacked(data, number, count).reshape(shape)
                if number in _HALF_BYTES
                else _array(data, dtype).reshape(shape)
            )
        return self._listed(message, where, dtype, shape)

    def _refuse(self, where: str, what: str) -> FormatError:
        return FormatError(f"{where} {what}. The file is damaged.")

    def _check(self, where: str, shape: tuple, dtype: DType, found: int, nbytes: int) -> None:
        if found != nbytes:
            raise self._refuse(
                where, f"has {found:,} bytes, and {nbytes:,} are needed for {dtype.name} of shape {shape}"
            )

    def _listed(self, message: Any, where: str, dtype: DType, shape: tuple) -> np.ndarray:
        number = message.data_type
        field = _PAIRS.get(number) or _LISTS.get(number, "int32_data")
        values = getattr(message, field)
        count = len(values) // 2 if number in _PAIRS else len(values)
        wanted = -(-prod(shape) // 2) if number in _HALF_BYTES else prod(shape)
        if count != wanted or (number in _PAIRS and len(values) % 2):
            raise self._refuse(
                where, f"has {len(values):,} values in {field}, and {wanted:,} are needed for shape {shape}"
            )
        try:
            if number in _PAIRS:
                assert dtype.numpy is not None
                half = np.float32 if number == 14 else np.float64
                return np.array(values, half).view(dtype.numpy).reshape(shape)
            if number in _HALF_BYTES:
                return _unpacked(np.array(values, np.uint8), number, prod(shape)).reshape(shape)
            if dtype in (dt.float16, dt.bfloat16):
                return _array(np.array(values, np.uint16).view(np.uint8), dtype).reshape(shape)
            return np.array(values, dtype.numpy).reshape(shape)
        except OverflowError:
            raise self._refuse(where, f"has a value that no {dtype.name} holds") from None

    def _external(self, message: Any, where: str, dtype: DType, shape: tuple, nbytes: int) -> TensorInfo:
        entries = {entry.key: entry.value for entry in message.external_data}
        location = entries.get("location", "")
        if message.data_type in _HALF_BYTES:
            raise self._refuse(where, "has half bytes in another file, which is not taken")
        numbers = []
        for key, default in (("offset", "0"), ("length", str(nbytes))):
            text = entries.get(key, default)
            if not (text.isascii() and text.isdigit() and len(text) < 16):
                raise self._refuse(where, f"has external_data {key} {shown(text)}")
            numbers.append(int(text))
        start, length = numbers
        self._check(where, shape, dtype, length, nbytes)
        if location not in self._beside:
            self._beside[location] = len(self.shards)
            self.shards.append(self._sibling(where, location))
        return TensorInfo(message.name, shape, dtype.name, start, start + length, self._beside[location])

    def _sibling(self, where: str, location: str) -> Source:
        parts = location.split("/")
        if not location.isprintable() or "\\" in location or ":" in location or {"", ".", ".."} & set(parts):
            raise FormatError(
                f"{where} has external_data location {shown(location)}, which is no file in the model's "
                "folder. The file is damaged or made to mislead."
            )
        try:
            beside = self.shards[0].sibling(location)
        except SourceError as error:
            raise SourceError(f"{where} lies in another file. {error}") from None
        if isinstance(beside, LocalSource):
            folder = Path(self.shards[0].name).parent.resolve()
            if not beside.path.resolve().is_relative_to(folder):
                raise FormatError(
                    f"{where} has external_data location {shown(location)}, a link out of the model's "
                    "folder. Put the file itself there."
                )
        return beside


def _array(data: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements of bytes; those of bfloat16 as float32, as the cpu device has them."""
    if dtype is dt.bfloat16:
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert dtype.numpy is not None
    return np.frombuffer(data.tobytes(), dtype.numpy)


def _unpacked(data: np.ndarray, number: int, count: int) -> np.ndarray:
    """Four-bit numbers, the lower half of a byte first."""
    halves = np.stack([data & 15, data >> 4], -1).reshape(-1)[:count]
    sign = _HALF_BYTES[number]
    return (halves ^ sign).astype(np.int8) - np.int8(sign) if sign else halves
