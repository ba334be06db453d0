"""The beginning of a file, as far as a reader has asked for it. Claimed counts allocate nothing."""

from __future__ import annotations

from ..errors import FormatError
from .source import Source

FIRST_READ = 1 << 18
LARGEST_READ = 8_000_000  # bytes in one request


class Header:
    """A growing prefix of a source.

    ``bytes`` is what has been read. A parser asks for more by ``yield from header.need(stop)``, and keeps
    what lies behind the header's end for whoever reads the tensors. ``longest`` is the most that the parser's
    format allows.
    """

    def __init__(self, source: Source):
        self.source = source
        self.longest = FIRST_READ  # until a parser has recognised its format
        self.bytes = bytearray()

    def need(self, stop: int, what: str):
        """Steps that make the first ``stop`` bytes available: in few requests, none of them large.

        Raises:
            FormatError: the file, or a header of the longest allowed size, ends before.
        """
        if stop > self.longest:
            raise FormatError(
                f"{self.source.name}: {what} would end at byte {stop:,}, and a header of this format is at "
                f"most {self.longest:,} bytes. "
                "The file is damaged or made to mislead."
            )
        while len(self.bytes) < stop:
            at = len(self.bytes)
            size = self.source.size
            if size is not None and stop > size:
                found = f"has {size:,}" if size else "is empty"
                raise FormatError(
                    f"{self.source.name}: {what} needs bytes up to {stop:,} but the file {found}. It is cut "
                    "short; download it again."
                )
            wanted = at + min(LARGEST_READ, max(FIRST_READ, at, stop - at))
            data = yield self.source, at, wanted if size is None else min(wanted, size)
            if not data:
                raise FormatError(
                    f"{self.source.name}: ends at byte {at:,}, inside {what}. It is cut short; download it "
                    "again."
                )
            self.bytes += data

    def finish(self, end: int) -> None:
        """The header ends at ``end``: hand what was read behind it back to the source, forget the rest."""
        self.source.keep(end, bytes(self.bytes[end:]))
        self.bytes = bytearray()
