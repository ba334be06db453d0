"""A zip archive, read by ranges: its directory first, then only what is asked for.

``torch.save``, ``torch.export.save`` and ``numpy.savez`` write such archives. Reading is steps
``(source, start, stop)`` for
`pellucid.weights.parsing`.

Source: APPNOTE.TXT of PKWARE (sections 4.3 and 4.4), and caffe2/serialize/inline_container.cc of PyTorch,
which aligns what it stores.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

from ...errors import FormatError
from ..fields import shown
from ..kind import BYTES, refuse
from ..place import LONGEST_FILE, whole
from ..source import MemorySource, Source

MAGIC, _CENTRAL, _END, _LOCATOR, _END64 = b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\7", b"PK\6\6"
_LONGEST_COMMENT = 1 << 16
_LONGEST_DIRECTORY = 1 << 26
# Where PyTorch begins what it stores: a multiple of this.
_ALIGNMENT = 64
# Bytes of a description behind an entry, by whether there is one: sizes of 32 bits, of 64 bits.
_DESCRIPTORS = {False: (0,), True: (16, 24)}
_DESCRIBED = 8  # a flag: a description follows
_FEWEST = 3  # entries of an archive of PyTorch
_DEFLATE = 8  # a method of compression
_FULL = 0xFFFFFFFF  # a number of 32 bits that stands in the part for 64 bits


class ArchiveEntry(NamedTuple):
    """A file of an archive.

    Attributes:
        name: with its folders.
        start: of its header in the archive.
        end: where the next header begins.
        size: its bytes.
        check: CRC-32 of them.
        packed: its bytes in the archive; other than ``size`` where it is deflated.
        deflated: whether it is compressed.
        described: whether a description of it lies between its bytes and the end.
    """

    name: str
    start: int
    end: int
    size: int
    check: int
    packed: int
    deflated: bool
    described: bool

    @property
    def aligned(self) -> int:
        """Where its bytes begin if the archive is as PyTorch writes it."""
        return -(-(self.start + 30 + len(self.name.encode()) + 4) // _ALIGNMENT) * _ALIGNMENT


class Archive:
    """The directory of a zip archive. Made by `read`.

    Attributes:
        source: the file.
        entries: by name.
    """

    def __init__(self, source: Source, entries: dict[str, ArchiveEntry]):
        self.source, self.entries = source, entries
        # Header, padding up to the alignment, bytes and a description fill the place up to the next entry: of
        # one that may be a coincidence, of all it is not.
        self._is_aligned = len(entries) >= _FEWEST and all(
            e.end - e.aligned - e.packed in _DESCRIPTORS[e.described] for e in entries.values()
        )

    def entry(self, name: str) -> ArchiveEntry:
        """The entry of a name.

        Raises:
            FormatError: there is none, or it is compressed.
        """
        entry = self.entries.get(name)
        if entry is None:
            raise FormatError(
                f"{self.source.name}: has no entry {shown(name)}. There are {len(self.entries)}: "
                f"{', '.join(list(self.entries)[:6])}, ..."
            )
        if entry.deflated:
            raise _packed(self.source.name, name, "compressed")
        return entry

    def document(self, name: str, longest: int):
        """Steps that read a small entry as a whole.

        Raises:
            FormatError: it is larger than ``longest``, missing, or not what its checksum says.
        """
        entry = self.entry(name)
        if entry.size > longest:
            raise FormatError(
                f"{self.source.name}: entry {shown(name)} has {entry.size:,} bytes; {longest:,} are "
                "allowed. The "
                "file is damaged or made to mislead."
            )
        begin = yield from self.locate(entry)
        data = yield from _bytes(self.source, begin, begin + entry.size)
        if crc32(data) != entry.check:
            raise FormatError(
                f"{self.source.name}: entry {shown(name)} has another checksum than the directory says. "
                "The file "
                "is damaged; download it again."
            )
        return data

    def locate(self, entry: ArchiveEntry):
        """Steps that find the first byte of an entry's content.

        In an archive of PyTorch that needs no read.
        """
        if self._is_aligned:
            return entry.aligned
        header = yield from _bytes(self.source, entry.start, entry.start + 30)
        if header[:4] != MAGIC:
            raise FormatError(
                f"{self.source.name}: at byte {entry.start:,}, where entry {shown(entry.name)} begins, "
                "there is "
                f"{header[:4]!r} and no header. The file is damaged."
            )
        begin = entry.start + 30 + sum(struct.unpack_from("<HH", header, 26))
        if begin + entry.packed > entry.end:
            raise FormatError(
                f"{self.source.name}: entry {shown(entry.name)} would end at byte {begin + entry.packed:,}, "
                "inside "
                f"what begins at {entry.end:,}. The file is damaged."
            )
        return begin


def read(source: Source, deflated: bool = False):
    """Steps that read the directory of an archive.

    Args:
        source: the file.
        deflated: whether entries may be compressed.

    Returns:
        An `Archive`.

    Raises:
        FormatError: the file is no zip archive, is cut short, or has encrypted entries, or compressed ones
        that may not be.
    """
    begin = yield source, 0, BYTES
    if begin[:4] != MAGIC:
        refuse(source.name, begin, "a zip archive")
        raise FormatError(
            f"{source.name}: begins with {bytes(begin[:4])!r}; a zip archive was expected. Give the address "
            "of the file itself, or download it again."
        )
    if source.ordered:  # a server that gives no ranges: the directory is at the end
        data = yield from whole(source, LONGEST_FILE)
        source = MemorySource(data, source.name)
    assert source.size is not None
    start, stop, count = yield from _find_directory(source, source.size)
    if stop - start > _LONGEST_DIRECTORY or count > (stop - start) // 46:
        raise FormatError(
            f"{source.name}: claims a directory of {count:,} entries in {stop - start:,} bytes. The file is "
            "damaged or made to mislead."
        )
    data = yield from _bytes(source, start, stop)
    return Archive(source, _entries(source.name, data, count, start, deflated))


def _bytes(source: Source, start: int, stop: int):
    """Steps that read exactly these bytes."""
    if stop > (source.size or 0) or start < 0:
        raise FormatError(
            f"{source.name}: refers to bytes {start:,} to {stop:,} but the file has {source.size or 0:,}. "
            "It is "
            "cut short or damaged; download it again."
        )
    data = (yield source, start, stop) if stop > start else b""
    if len(data) != stop - start:
        raise FormatError(f"{source.name}: ends at byte {start + len(data):,}. It is cut short.")
    return data


def _find_directory(source: Source, size: int):
    """Steps that find where the directory begins and ends, and how many entries it has."""
    base = max(size - 22 - _LONGEST_COMMENT, 0)
    tail = yield from _bytes(source, base, size)
    at = tail.rfind(_END)
    while at >= 0 and (
        at + 22 > len(tail) or at + 22 + struct.unpack_from("<H", tail, at + 20)[0] != len(tail)
    ):
        at = tail.rfind(_END, 0, at)
    if at < 0:
        raise FormatError(
            f"{source.name}: has no directory at its end, as a zip archive must. It is cut short; download "
            "it "
            "again."
        )
    _, disk, first, _, count, length, start, _ = struct.unpack_from("<4sHHHHIIH", tail, at)
    end = base + at
    if disk or first:
        raise FormatError(f"{source.name}: is a part of an archive of several files. Join them first.")
    if tail[at - 20 : at - 16] == _LOCATOR and at >= 20:
        (place,) = struct.unpack_from("<Q", tail, at - 12)
        record = yield from _bytes(source, place, place + 56)
        if record[:4] != _END64:
            raise FormatError(
                f"{source.name}: has no directory record at byte {place:,}. The file is damaged."
            )
        count, length, start = struct.unpack_from("<QQQ", record, 32)
        end = place
    if start + length > end:
        raise FormatError(
            f"{source.name}: says that its directory ends at byte {start + length:,}, behind its own end at "
            f"{end:,}. The file is damaged."
        )
    return start, start + length, count


def _entries(where: str, data: bytes, count: int, end: int, deflated: bool) -> dict[str, ArchiveEntry]:
    found: list[ArchiveEntry] = []
    at = 0
    for _ in range(count):
        if data[at : at + 4] != _CENTRAL or at + 46 > len(data):
            raise FormatError(
                f"{where}: its directory breaks off after {len(found):,} entries. It is damaged."
            )
        flags, method = struct.unpack_from("<HH", data, at + 8)
        check, packed, size, name_size, extra_size, comment_size = struct.unpack_from(
            "<IIIHHH", data, at + 16
        )
        (start,) = struct.unpack_from("<I", data, at + 42)
        behind = at + 46 + name_size
        raw = data[at + 46 : behind]
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            raise FormatError(f"{where}: the name of an entry is not UTF-8: {raw[:40]!r}.") from None
        if _FULL in (packed, size, start):
            size, packed, start = _long(where, name, data[behind : behind + extra_size], size, packed, start)
        is_stored = method == 0 and packed == size
        if flags & 1 or not (is_stored or (deflated and method == _DEFLATE)):
            raise _packed(where, name, "encrypted" if flags & 1 else "compressed")
        is_described = bool(flags & _DESCRIBED)
        found.append(ArchiveEntry(name, start, 0, size, check, packed, not is_stored, is_described))
        at = behind + extra_size + comment_size
    entries: dict[str, ArchiveEntry] = {}
    for entry in sorted(found, key=lambda e: -e.start):
        if entry.name in entries:
            raise FormatError(f"{where}: has two entries {shown(entry.name)}. The file is damaged.")
        if entry.start + 30 + entry.packed > end:
            raise FormatError(
                f"{where}: entry {shown(entry.name)} of {entry.packed:,} bytes at byte {entry.start:,} "
                "reaches into "
                f"what begins at {end:,}. The file is damaged."
            )
        entries[entry.name] = entry._replace(end=end)
        end = entry.start
    return dict(reversed(entries.items()))


def _packed(where: str, name: str, how: str) -> FormatError:
    return FormatError(
        f"{where}: entry {shown(name)} is {how}. Weights are read in place, so entries must be stored as "
        "they are, as torch.save and torch.export.save do; pack the archive again with method 'stored'."
    )


def _long(where: str, name: str, extra: bytes, *short: int) -> list[int]:
    """Size, packed size and start with those of 64 bits where they are too large for 32."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            missing = sum(n == _FULL for n in short)
            if length < 8 * missing or at + 4 + length > len(extra):
                break
            numbers = iter(struct.unpack_from(f"<{missing}Q", extra, at + 4))
            return [next(numbers) if n == _FULL else n for n in short]
        at += 4 + length
    raise FormatError(f"{where}: entry {shown(name)} lacks its sizes of 64 bits. The file is damaged.")
