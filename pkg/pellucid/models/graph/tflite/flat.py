"""Reading a flatbuffer by ranges: tables by their offsets, pages as needed, long bytes left in the file.

Flatbuffers are made for files in memory. Here each offset is checked, and only pages that hold tables are
fetched: weights lie between them and stay where they are.

Source: https://flatbuffers.dev/internals/
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ....errors import FormatError
from ....weights.kind import BYTES, refuse
from ....weights.place import LONGEST_FILE, whole
from ....weights.source import MemorySource, Source
from .schema import TABLES, UNIONS, TableField, fields

_SMALL_FILE = 1 << 22  # read at once
_PAGE = 1 << 16
_PAGES = 128  # that are kept
_MOST_BYTES, _MOST_TABLES = 1 << 25, 300_000  # of a graph, without its weights
_SCALARS = {
    "bool": "<?", "int8": "<b", "uint8": "<B", "uint16": "<H", "int32": "<i", "uint32": "<I",
    "int64": "<q", "uint64": "<Q", "float32": "<f",
}  # fmt: skip
Steps = Generator[Any, Any, Any]


def read_flatbuffer(source: Source, mark: bytes, table: str) -> Steps:
    """Steps that read the root table of a file.

    Args:
        source: the file.
        mark: its four letters at byte 4.
        table: of `schema.TABLES`.

    Returns:
        The source, in memory where the file is small, and the table: an object with its fields.

    Raises:
        FormatError: the file is damaged, or of another format; names the field and the byte.
    """
    start = yield source, 0, BYTES
    if len(start) < 8 or start[4:8] != mark:
        refuse(source.name, start, "a TensorFlow Lite file")
        raise FormatError(
            f"{source.name}: begins with {bytes(start[:8])!r}, and {mark!r} was expected at byte 4. It is no "
            "TensorFlow Lite file, or damaged."
        )
    if source.ordered or source.size is None or source.size <= _SMALL_FILE:
        data = yield from whole(source, LONGEST_FILE)
        source = MemorySource(data, source.name)
    reader = _Reader(source)
    root = struct.unpack("<I", start[:4])[0]
    return source, (yield from reader.table(table, root, table))


class _Reader:
    """Pages of a file."""

    def __init__(self, source: Source):
        assert source.size is not None
        self.source, self.size = source, source.size
        self.pages: dict[int, bytes] = {}
        self.nbytes = self.tables = 0

    def refuse(self, path: str, at: int, what: str) -> FormatError:
        return FormatError(
            f"{self.source.name}: {path} at byte {at:,} {what}. It is damaged, or no TensorFlow Lite file."
        )

    def read(self, path: str, start: int, nbytes: int) -> Steps:
        """Steps that read bytes of the graph."""
        stop = start + nbytes
        if not 0 <= start <= stop <= self.size:
            raise self.refuse(path, start, f"reaches to byte {stop:,} of {self.size:,}")
        self.nbytes += nbytes
        if self.nbytes > _MOST_BYTES:
            raise self.refuse(path, start, f"is more than {_MOST_BYTES:,} bytes beside the weights")
        parts = []
        for page in range(start // _PAGE, -(-stop // _PAGE)):
            begin = page * _PAGE
            if page not in self.pages:
                if len(self.pages) >= _PAGES:
                    self.pages.pop(next(iter(self.pages)))
                self.pages[page] = yield self.source, begin, min(begin + _PAGE, self.size)
            parts.append(self.pages[page][max(start - begin, 0) : stop - begin])
        data = b"".join(parts)
        if len(data) < nbytes:
            raise self.refuse(path, start, "ends too early")
        return data

    def table(self, kind: str, at: int, path: str) -> Steps:
        """Steps that read a table."""
        self.tables += 1
        if self.tables > _MOST_TABLES:
            raise self.refuse(path, at, f"is one of more than {_MOST_TABLES:,} tables")
        (back,) = struct.unpack("<i", (yield from self.read(path, at, 4)))
        length, nbytes = struct.unpack("<HH", (yield from self.read(path, at - back, 4)))
        if length < 4 or nbytes < 4:
            raise self.refuse(path, at, f"has {length} bytes of places and {nbytes} of fields")
        places = np.frombuffer((yield from self.read(path, at - back, length & ~1)), "<u2")[2:].tolist()
        data = yield from self.read(path, at, nbytes)
        found: dict[str, Any] = {}
        for field in fields(kind):
            place = places[field.number] if field.number < len(places) else 0
            name = f"{path}.{field.name}"
            if field.kind == "union":
                kinds = UNIONS[field.name]
                field = field._replace(kind=kinds.get(found[f"{field.name}_type"], "Other"))
            if not place:
                found[field.name] = absent(field)
            elif field.kind in _SCALARS and not field.several:
                form = _SCALARS[field.kind]
                if place + struct.calcsize(form) > nbytes:
                    raise self.refuse(name, at + place, "lies behind its table")
                (found[field.name],) = struct.unpack_from(form, data, place)
            else:
                if place + 4 > nbytes:
                    raise self.refuse(name, at + place, "lies behind its table")
                target = at + place + struct.unpack_from("<I", data, place)[0]
                found[field.name] = yield from self.inner(field, target, name)
        return SimpleNamespace(**found)

    def inner(self, field: TableField, at: int, path: str) -> Steps:
        """Steps that read what a field refers to."""
        if field.kind in TABLES and not field.several:
            return (yield from self.table(field.kind, at, path))
        (count,) = struct.unpack("<I", (yield from self.read(path, at, 4)))
        at += 4
        if field.kind == "span":
            if at + count > self.size:
                raise self.refuse(path, at, f"has {count:,} bytes, of which {self.size - at:,} are there")
            return at, at + count
        if field.kind == "string":
            data = yield from self.read(path, at, count)
            try:
                return data.decode()
            except UnicodeDecodeError:
                raise self.refuse(path, at, "is not UTF-8") from None
        if field.kind in _SCALARS:
            dtype = np.dtype(field.kind)
            return np.frombuffer((yield from self.read(path, at, count * dtype.itemsize)), dtype).tolist()
        offsets = np.frombuffer((yield from self.read(path, at, count * 4)), "<u4").tolist()
        found = []
        for k, offset in enumerate(offsets):
            found.append((yield from self.table(field.kind, at + 4 * k + offset, f"{path}[{k}]")))
        return found


def absent(field: TableField) -> Any:
    """What a field is that a table leaves out."""
    if field.several:
        return []
    if field.kind == "string":
        return ""
    return field.default if field.kind in _SCALARS else None
