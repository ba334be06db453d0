"""Bytes at a distance. A `Source` is one file, wherever it is; formats never know where the bytes come
from."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

from ..errors import SourceError

IN_PAGE = sys.platform == "emscripten"
CHUNK = 1 << 18  # bytes that a source hands out at a time


class MissingFile(SourceError, FileNotFoundError):
    """There is no file at this address."""


class Source:
    """One file as bytes that can be read from any position.

    Attributes:
        name: a URL, a path, or another name for messages.
        size: bytes in the file; None until the first contact with a server.
        etag: what the server says identifies this version of the file, if it says so.
        ordered: True when bytes only come from the beginning on (a server without Range): one reader then
        reads all.
        remote: True when a byte read costs network traffic, so bytes read ahead are kept for their next
        reader.
    """

    name: str
    size: int | None = None
    etag: str | None = None
    ordered = False
    remote = False

    def read(self, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop`` (exclusive); fewer only where the file ends.

        Args:
            start: first byte, from 0.
            stop: one past the last byte.

        Raises:
            SourceError: the bytes cannot be had; MissingFile where the file does not exist.
        """
        return b"".join(self.chunks(start, stop))

    async def read_async(self, start: int, stop: int) -> bytes:
        """`read` for a caller that must not block."""
        return await asyncio.to_thread(self.read, start, stop)

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        """The same bytes in pieces of at most a few hundred kilobytes, as they come."""
        raise NotImplementedError

    def keep(self, start: int, data: bytes) -> None:
        """Remember bytes that were read ahead, so that none is fetched twice. Local sources need not."""

    def sibling(self, name: str) -> Source:
        """The file of that name in the same folder.

        Raises:
            SourceError: this source lies in no folder.
        """
        raise SourceError(
            f"{self.name}: stands alone, so {name} cannot be found beside it. Give a folder, a URL or a hub "
            "id."
        )

    def close(self) -> None:
        """Give up connections that are still open."""

    def __repr__(self) -> str:
        size = "size unknown" if self.size is None else f"{self.size:,} bytes"
        return f"<{type(self).__name__} {self.name}, {size}>"


class MemorySource(Source):
    """Bytes that are already here."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "bytes"):
        self._data = memoryview(data).cast("B")
        self.name = name
        self.size = len(self._data)

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        stop = min(stop, len(self._data))
        for at in range(start, stop, CHUNK):
            yield bytes(self._data[at : min(at + CHUNK, stop)])

    async def read_async(self, start: int, stop: int) -> bytes:
        return self.read(start, stop)


class LocalSource(Source):
    """A file of this computer (in a page: of Pyodide's own file system). Read, never mapped."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.name = str(path)

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                self._check_version(file)
                file.seek(start)
                while start < stop and (data := file.read(min(CHUNK, stop - start))):
                    start += len(data)
                    yield data
        except FileNotFoundError:
            raise MissingFile(f"{self.name}: there is no such file. Check the path.") from None
        except SourceError:
            raise
        except (OSError, ValueError) as error:  # ValueError: characters that no path has
            raise SourceError(
                f"{self.name[:200]!r}: cannot be read ({getattr(error, 'strerror', None) or error}). Check "
                "the path and its permissions."
            ) from error

    def _check_version(self, file) -> None:
        file.seek(0, 2)
        size = file.tell()
        version = f"{size}-{self.path.stat().st_mtime_ns}"
        if self.etag not in (None, version):
            raise SourceError(f"{self.name}: the file changed while it was being read. Open it again.")
        self.etag, self.size = version, size

    async def read_async(self, start: int, stop: int) -> bytes:
        return self.read(start, stop) if IN_PAGE else await super().read_async(start, stop)

    def sibling(self, name: str) -> Source:
        return LocalSource(self.path.parent / name)
