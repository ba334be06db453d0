"""Bytes that are made of a range of another file: unpacked, or in another order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from ..errors import FormatError
from .source import CHUNK, Source


class DerivedSource(Source):
    """One tensor's bytes where the file has them otherwise: made as a whole at their first read, and
    forgotten with their last one.

    Args:
        base: the file.
        start, stop: the range of it that is read.
        size: bytes that come of it.
        make: the range's bytes to those.
    """

    def __init__(self, base: Source, start: int, stop: int, size: int, make: Callable[[bytes], bytes]):
        self.name, self.size, self.ordered = base.name, size, True
        self._base, self._start, self._stop, self._make = base, start, stop, make
        self._made: bytes | None = None
        self._lock = threading.Lock()

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        with self._lock:
            if self._made is None:
                self._keep(self._base.read(self._start, self._stop))
            made = self._taken(stop)
        for at in range(start, min(stop, len(made)), CHUNK):
            yield made[at : min(at + CHUNK, stop)]

    async def read_async(self, start: int, stop: int) -> bytes:
        if self._made is None:
            self._keep(await self._base.read_async(self._start, self._stop))
        return self._taken(stop)[start:stop]

    def _keep(self, data: bytes) -> None:
        if len(data) != self._stop - self._start:
            raise FormatError(f"{self.name}: ends at byte {self._start + len(data):,}. It is cut short.")
        made = self._make(data)
        if len(made) != self.size:
            raise FormatError(
                f"{self.name}: bytes {self._start:,} to {self._stop:,} make {len(made):,} bytes, and "
                f"{self.size:,} were announced. The file is damaged."
            )
        self._made = made

    def _taken(self, stop: int) -> bytes:
        made = self._made
        assert made is not None
        assert self.size is not None
        if stop >= self.size:
            self._made = None
        return made

    def close(self) -> None:
        self._made = None
        self._base.close()
