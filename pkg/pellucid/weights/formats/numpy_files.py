"""NumPy's files as checkpoints: an array (``.npy``), or several by name in a zip (``.npz``).

Arrays of ``numpy.savez`` are streamed from their place; of ``savez_compressed`` unpacked one by one.

Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from math import prod

import numpy as np

from ...errors import FormatError
from ..checkpoint import MOST_DIMENSIONS, Checkpoint, TensorInfo, check_name
from ..derived import DerivedSource
from ..fields import shown
from ..header import Header
from ..source import Source
from .archive import Archive, ArchiveEntry

MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 14
_FIRST = 2048  # bytes, in which a header ends as a rule
_LONGEST_NAME = 1 << 16
# Types of elements, whose names of numpy are ours.
_KINDS = {
    np.dtype(name).str: name
    for name in (
        "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
        "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip
_LONGEST_NUMBER = 18  # digits of a length
_VERSIONS = ((1, 0), (2, 0))
# What numpy writes, which is Python's text of a dict; numpy itself runs Python's own parser on it.
_HEADER = re.compile(
    r"\{'descr': '([<>|=]\w{1,8})', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), *\}\s*", re.ASCII
)


def read_npy(header: Header):
    """Steps that open a ``.npy``, whose array is called as the file is.

    Returns:
        A `Checkpoint`.

    Raises:
        FormatError: the header is damaged, or elements are objects, texts or big endian.
    """
    source = header.source
    header.longest = _LONGEST_HEADER
    assert source.size is not None
    yield from header.need(min(_FIRST, source.size), "the array's header")
    yield from header.need(min(_end(source.name, bytes(header.bytes)), source.size), "the array's header")
    name = source.name.replace("\\", "/").rpartition("/")[2].removesuffix(".npy")
    found = _Array(source.name, bytes(header.bytes), source.size)
    header.finish(found.begin)
    shards: list[Source] = [source]
    return Checkpoint(source.name, "npy", [found.info(name, 0, shards)], {}, shards)


def read_npz(packed: Archive):
    """Steps that open a ``.npz``.

    Returns:
        A `Checkpoint`.

    Raises:
        FormatError: as `read_npy`, or the archive holds other files.
    """
    where = packed.source.name
    found = yield [_read_entry(packed, entry) for entry in packed.entries.values()]
    shards: list[Source] = [packed.source]
    infos = []
    for entry, (begin, head) in zip(packed.entries.values(), found, strict=True):
        name = check_name(where, entry.name.removesuffix(".npy"), _LONGEST_NAME)
        array = _Array(f"{where}: {shown(name)}", head, entry.size)
        if entry.deflated:
            make = _unpacked(entry, array)
            shards.append(DerivedSource(packed.source, begin, begin + entry.packed, array.nbytes, make))
            infos.append(TensorInfo(name, array.shape, array.dtype, 0, array.nbytes, len(shards) - 1))
        else:
            infos.append(array.info(name, begin, shards))
    return Checkpoint(where, "npz", infos, {}, shards)


def _read_entry(packed: Archive, entry: ArchiveEntry):
    """Steps that find an entry's first byte, and read its array's header."""
    where = f"{packed.source.name}: {shown(entry.name)}"
    begin = yield from packed.locate(entry)
    head = b""
    # A second time where names of fields make the header long. What is compressed has a table before it.
    for span in (_FIRST, 2 * _LONGEST_HEADER):
        raw = yield packed.source, begin, begin + min(entry.packed, span)
        head = _inflated(where, raw, _LONGEST_HEADER) if entry.deflated else raw
        if _end(where, head) <= len(head):
            break
    return begin, head


def _inflated(where: str, raw: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, most)
    except zlib.error as error:
        raise FormatError(f"{where}: cannot be unpacked ({error}). The file is damaged.") from None


def _unpacked(entry: ArchiveEntry, array: _Array) -> Callable[[bytes], bytes]:
    """What unpacks an entry and leaves out its header."""

    def make(raw: bytes) -> bytes:
        # One byte more than announced shows that there is more.
        data = _inflated(array.where, raw, entry.size + 1)
        if len(data) != entry.size or zlib.crc32(data) != entry.check:
            raise FormatError(f"{array.where}: has another size or checksum than the directory says.")
        return array.in_order(data[array.begin :])

    return make


def _end(where: str, head: bytes) -> int:
    """Where an array's header ends."""
    if head[: len(MAGIC)] != MAGIC or len(head) < 12:
        raise FormatError(f"{where}: begins with {head[:6]!r}; an array of numpy was expected.")
    if tuple(head[6:8]) not in _VERSIONS:
        raise FormatError(f"{where}: version {head[6]}.{head[7]} of numpy's format is not read.")
    width = 2 if head[6] == 1 else 4
    end = 8 + width + int.from_bytes(head[8 : 8 + width], "little")
    if end > _LONGEST_HEADER:
        raise FormatError(f"{where}: its header has {end:,} bytes; {_LONGEST_HEADER:,} are allowed.")
    return end


class _Array:
    """What the header of an array says.

    Args:
        where: for messages.
        head: the beginning of the file.
        size: the file's bytes.
    """

    def __init__(self, where: str, head: bytes, size: int):
        self.where, self.begin = where, _end(where, head)
        if self.begin > len(head):
            raise FormatError(f"{where}: ends inside the array's header. It is cut short.")
        text = head[8 + (2 if head[6] == 1 else 4) : self.begin].decode("latin1")
        found = _HEADER.fullmatch(text)
        lengths = [] if found is None else [n for n in re.split(r"[, ]+", found[3]) if n]
        if found is None or any(len(n) > _LONGEST_NUMBER for n in lengths):
            raise FormatError(
                f"{where}: the array's header is {shown(text)}. It must say numbers, an order and a "
                "shape. Objects and records are not read."
            )
        kind = _KINDS.get(found[1])
        if kind is None or len(lengths) > MOST_DIMENSIONS:
            raise FormatError(
                f"{where}: {len(lengths)} axes of {found[1]!r} are not read. Give numbers in little endian: "
                f"{', '.join(_KINDS)}."
            )
        shape, d = tuple(map(int, lengths)), np.dtype(kind)
        self.columns = found[2] == "True" and len(shape) > 1
        self.shape, self.dtype, self.width = shape, d.name, d.itemsize
        self.nbytes = prod(shape) * d.itemsize
        if self.begin + self.nbytes != size:
            raise FormatError(
                f"{where}: an array of shape {shown(self.shape)} of {d.name} needs {self.nbytes:,} bytes; "
                f"the file has {size - self.begin:,}. It is damaged."
            )

    def in_order(self, data: bytes) -> bytes:
        """The elements row by row."""
        if not self.columns:
            return data
        elements = np.frombuffer(data, np.dtype(f"V{self.width}"))
        return elements.reshape(self.shape[::-1]).T.tobytes()

    def info(self, name: str, at: int, shards: list[Source]) -> TensorInfo:
        """The array as a tensor of a file that has it from ``at`` on."""
        start = at + self.begin
        if not self.columns:
            return TensorInfo(name, self.shape, self.dtype, start, start + self.nbytes)
        shards.append(DerivedSource(shards[0], start, start + self.nbytes, self.nbytes, self.in_order))
        return TensorInfo(name, self.shape, self.dtype, 0, self.nbytes, len(shards) - 1)
