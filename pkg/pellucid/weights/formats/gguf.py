"""The GGUF format, versions 2 and 3: metadata of typed keys, descriptions of tensors, their aligned bytes.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from ...errors import FormatError
from ...quant.formats.blocks import GGUF_TYPES
from ..checkpoint import Checkpoint, TensorInfo, check_layout, check_name
from ..fields import shown
from ..header import Header

MAGIC = b"GGUF"
LONGEST_HEADER = 256_000_000
_MOST_ENTRIES = 1 << 17  # tensors, and keys
_MOST_ELEMENTS = 1 << 22  # of all arrays of the metadata together
_MOST_ARRAYS = 1 << 16  # within arrays
_DEEPEST = 4  # arrays within arrays
_MOST_DIMENSIONS = 4
_LONGEST_KEY = 65_535
_LONGEST_NAME = 255
_ALIGNMENT = 32
_COUNTED = 24  # bytes before the keys
_LARGEST_ALIGNMENT = 1 << 20

# Metadata types: number -> struct letter; strings (8) and arrays (9) have lengths of their own.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_BYTE, _BOOL, _STRING, _ARRAY, _UINT32 = 0, 7, 8, 9, 4

_REMOVED = {4, 5, 31, 32, 33, 36, 37, 38}

_SPLIT = re.compile(r"(.*-)(\d{5})-of-(\d{5})\.gguf")


class _Short(Exception):
    """The parser needs the header's bytes up to ``stop`` before it can go on."""

    def __init__(self, stop: int, what: str):
        self.stop, self.what = stop, what


class _Cursor:
    """A position in a header that is still arriving. An item is parsed anew when its bytes were short.

    Of an array what has been parsed is kept: else one that arrives in many pieces would take quadratic time.
    """

    def __init__(self, header: Header):
        self.header = header
        self.where = header.source.name
        self.at = 0
        self.elements = 0
        self.arrays = 0
        self._begun: dict[
            int, tuple[list, int, int, int]
        ] = {}  # by place: elements, and the state behind them

    def take(self, nbytes: int, what: str) -> int:
        """Step over ``nbytes``; where they begin."""
        start, stop = self.at, self.at + nbytes
        size = self.header.source.size
        if size is not None and stop > size:
            raise FormatError(
                f"{self.where}: {what} at byte {start:,} claims {nbytes:,} bytes but the file has {size:,}. "
                "It is damaged or cut short; download it again."
            )
        if stop > len(self.header.bytes):
            raise _Short(stop, what)
        self.at = stop
        return start

    def unpack(self, letter: str, what: str):
        start = self.take(struct.calcsize(f"<{letter}"), what)
        return struct.unpack_from(f"<{letter}", self.header.bytes, start)[0]

    def string(self, what: str) -> str:
        nbytes = self.unpack("Q", what)
        start = self.take(nbytes, what)
        try:
            return self.header.bytes[start : start + nbytes].decode()
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{self.where}: {what} at byte {start:,} is not UTF-8 ({error.reason}). The file is damaged."
            ) from None

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        if kind == _BOOL:
            number = self.unpack("B", what)
            if number > 1:
                raise FormatError(
                    f"{self.where}: {what} before byte {self.at:,} is the bool {number}; 0 or 1 was "
                    "expected. The file is damaged."
                )
            return bool(number)
        if kind in _SCALARS:
            return self.unpack(_SCALARS[kind], what)
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            return self.array(what, depth + 1)
        raise FormatError(
            f"{self.where}: {what} before byte {self.at:,} has the unknown type {kind}. The file is damaged "
            "or newer than GGUF v3."
        )

    def array(self, what: str, depth: int) -> list | bytes:
        if depth > _DEEPEST:
            raise FormatError(
                f"{self.where}: {what} nests arrays deeper than {_DEEPEST} levels. The file is damaged or "
                "made to mislead."
            )
        kind, count = self.unpack("I", what), self.unpack("Q", what)
        self.elements += count
        self.arrays += count if kind == _ARRAY else 0
        if self.arrays > _MOST_ARRAYS:
            raise FormatError(
                f"{self.where}: {what} before byte {self.at:,} claims {count:,} arrays; there may be "
                f"{_MOST_ARRAYS:,} arrays within arrays. The file is damaged."
            )
        if self.elements > _MOST_ELEMENTS:
            raise FormatError(
                f"{self.where}: {what} before byte {self.at:,} claims {count:,} elements; all arrays may "
                f"have {_MOST_ELEMENTS:,}. The file is damaged."
            )
        if kind == _BYTE:
            start = self.take(count, what)
            return bytes(self.header.bytes[start : start + count])
        if kind in _SCALARS and kind != _BOOL:
            form = f"<{count}{_SCALARS[kind]}"
            start = self.take(struct.calcsize(form), what)
            return list(struct.unpack_from(form, self.header.bytes, start))
        if kind == _BOOL:
            start = self.take(count, what)
            found = bytes(self.header.bytes[start : start + count])
            if found.strip(b"\0\1"):
                self.at = start + len(found) - len(found.lstrip(b"\0\1"))
                self.value(_BOOL, what)  # finds the fault and raises
            return list(map(bool, found))
        if kind == _STRING:
            return self.listed(count, lambda result: self.strings(result, count, what))
        return self.listed(count, lambda result: self.values(result, count, kind, what, depth))

    def listed(self, count: int, fill: Callable[[list], None]) -> list:
        """The elements of an array, by ``fill``, which goes on behind what an earlier attempt parsed."""
        place = self.at
        if place in self._begun:
            result, self.at, self.elements, self.arrays = self._begun.pop(place)
        else:
            result = []
        try:
            fill(result)
        except _Short:
            self._begun[place] = result, self.at, self.elements, self.arrays
            raise
        return result

    def values(self, result: list, count: int, kind: int, what: str, depth: int) -> None:
        while len(result) < count:
            before = self.at, self.elements, self.arrays
            try:
                result.append(self.value(kind, what, depth))
            except _Short:
                self.at, self.elements, self.arrays = before
                raise

    def strings(self, result: list[str], count: int, what: str) -> None:
        """`string` many times, without its calls: a vocabulary has hundreds of thousands."""
        data, at = self.header.bytes, self.at
        have, length_at = len(data), struct.Struct("<Q").unpack_from
        for _ in range(count - len(result)):
            start = stop = at + 8
            if stop <= have:
                stop += length_at(data, at)[0]
            if stop <= have:
                try:
                    result.append(data[start:stop].decode())
                    at = stop
                    continue
                except UnicodeDecodeError:
                    pass
            self.at = at
            try:
                self.string(what)  # finds the same fault and raises
            finally:
                self.at = at
        self.at = at


def read(header: Header):
    """Steps that open one GGUF file, and its further parts if it is the first of a split model.

    Returns:
        A `Checkpoint`; shapes are PyTorch's (GGUF lists dimensions fastest first), quantized formats are
        dtype names.

    Raises:
        FormatError: the file is not GGUF v2 or v3, or its header does not fit the file.
    """
    tensors, metadata, pairs = yield from _read_file(header, 0)
    source = header.source
    shards = [source]
    count = metadata.get("split.count", 1)
    if type(count) is int and count > 1:
        split = _SPLIT.fullmatch(source.name.rsplit("/", 1)[-1])
        if split is None or int(split[2]) != 1 or int(split[3]) != count:
            raise FormatError(
                f"{source.name}: is part of a model split into {count} files. Open the first, whose name "
                f"ends in -00001-of-{count:05}.gguf."
            )
        shards += [
            source.sibling(f"{split[1]}{number:05}-of-{split[3]}.gguf") for number in range(2, count + 1)
        ]
        for more, _, _ in (yield [_read_file(Header(shard), k) for k, shard in enumerate(shards) if k]):
            tensors += more
        _refuse_repeats(source.name, tensors)
    return Checkpoint(source.name, "gguf", tensors, metadata, shards, pairs)


def _read_file(header: Header, shard: int):
    source = header.source
    header.longest = LONGEST_HEADER
    cursor = _Cursor(header)
    tensor_count, key_count = yield from _item(cursor, _counts)
    metadata: dict[str, Any] = {}
    kinds: dict[str, int] = {}
    for _ in range(key_count):
        key, kind, value = yield from _item(cursor, _pair)
        if key in metadata:
            raise FormatError(f"{source.name}: the key {shown(key)} occurs twice. The file is damaged.")
        metadata[key], kinds[key] = value, kind
    pairs = bytes(header.bytes[_COUNTED : cursor.at])
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if (
        kinds.get("general.alignment", _UINT32) != _UINT32
        or not 0 < alignment <= _LARGEST_ALIGNMENT
        or alignment & (alignment - 1)
    ):
        raise FormatError(
            f"{source.name}: general.alignment is {shown(alignment)}; a uint32 power of two was expected. "
            "The "
            "file is damaged."
        )
    described = []
    for _ in range(tensor_count):
        described.append((yield from _item(cursor, _description)))
    begin = -(-cursor.at // alignment) * alignment
    tensors = []
    for name, shape, dtype, offset, nbytes in described:
        if offset % alignment:
            raise FormatError(
                f"{source.name}: tensor {shown(name)} has the offset {offset:,}, no multiple of the "
                "alignment "
                f"{alignment}. The file is damaged."
            )
        tensors.append(TensorInfo(name, shape, dtype, begin + offset, begin + offset + nbytes, shard))
    _refuse_repeats(source.name, tensors)
    assert source.size is not None
    check_layout(source.name, tensors, begin, max(begin, source.size), gaps=True)
    header.finish(cursor.at)
    return tensors, metadata, pairs


def _item(cursor: _Cursor, parse):
    """Steps that parse one item, asking for more bytes as often as it takes."""
    start = cursor.at, cursor.elements, cursor.arrays
    while True:
        try:
            return parse(cursor)
        except _Short as short:
            cursor.at, cursor.elements, cursor.arrays = start
            yield from cursor.header.need(short.stop, short.what)


def _counts(cursor: _Cursor) -> tuple[int, int]:
    start = cursor.take(4, "the magic")
    magic = bytes(cursor.header.bytes[start : start + 4])
    if magic != MAGIC:
        raise FormatError(
            f"{cursor.where}: begins with {magic!r} instead of {MAGIC!r}. This is not a GGUF file."
        )
    version = cursor.unpack("I", "the version")
    if version & 0xFFFF == 0 and version:
        raise FormatError(
            f"{cursor.where}: is written in big-endian order, which is not read here. Convert it to "
            "little-endian."
        )
    if version not in (2, 3):
        raise FormatError(
            f"{cursor.where}: has GGUF version {version}; 2 and 3 are read. Convert it with a current "
            "llama.cpp."
        )
    tensors, keys = cursor.unpack("Q", "the tensor count"), cursor.unpack("Q", "the key count")
    if tensors > _MOST_ENTRIES or keys > _MOST_ENTRIES:
        raise FormatError(
            f"{cursor.where}: claims {tensors:,} tensors and {keys:,} keys; {_MOST_ENTRIES:,} of each are "
            "allowed. The file is damaged."
        )
    return tensors, keys


def _pair(cursor: _Cursor) -> tuple[str, int, Any]:
    key = check_name(cursor.where, cursor.string("a key"), _LONGEST_KEY)
    kind = cursor.unpack("I", f"the type of {shown(key)}")
    return key, kind, cursor.value(kind, f"the value of {shown(key)}")


def _description(cursor: _Cursor) -> tuple[str, tuple[int, ...], str, int, int]:
    name = check_name(cursor.where, cursor.string("a tensor's name"), _LONGEST_NAME)
    what = f"tensor {shown(name)}"
    rank = cursor.unpack("I", what)
    if rank > _MOST_DIMENSIONS:
        raise FormatError(
            f"{cursor.where}: {what} claims {rank:,} dimensions; {_MOST_DIMENSIONS} are allowed. The file is "
            "damaged."
        )
    shape = tuple(cursor.unpack("Q", what) for _ in range(rank))[::-1]
    kind, offset = cursor.unpack("I", what), cursor.unpack("Q", what)
    if kind not in GGUF_TYPES:
        state = "was removed from the format" if kind in _REMOVED else "is unknown"
        raise FormatError(
            f"{cursor.where}: {what} has the type {kind}, which {state}. Convert the model with a current "
            "llama.cpp."
        )
    dtype, block, block_bytes = GGUF_TYPES[kind]
    row = shape[-1] if shape else 1
    if row % block:
        raise FormatError(
            f"{cursor.where}: {what} of shape {shape} and type {dtype} needs rows of a multiple of {block} "
            "elements. The file is damaged."
        )
    nbytes = row // block * block_bytes
    for length in shape[:-1]:
        nbytes *= length
    if nbytes >= 1 << 63 or offset >= 1 << 63:
        raise FormatError(
            f"{cursor.where}: {what} of shape {shape} at offset {offset:,} is more than 64 bits can count. "
            "The file is damaged."
        )
    return name, shape, dtype, offset, nbytes


def _refuse_repeats(where: str, tensors: list[TensorInfo]) -> None:
    seen: set[str] = set()
    for t in tensors:
        if t.name in seen:
            raise FormatError(f"{where}: the tensor {shown(t.name)} occurs twice. The file is damaged.")
        seen.add(t.name)
