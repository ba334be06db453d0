"""Folders that checkpoints go to: of the machine, or of the page's private file system (OPFS).

Both write a file whole or not at all.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ...errors import SourceError


class LocalFolder:
    """A folder of the machine's file system.

    Args:
        path: of the folder; made when something is written.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    def names(self, below: str = "") -> list[str]:
        """What lies in it, or in a folder below; nothing where it is not there."""
        where = self.path / below
        return sorted(p.name for p in where.iterdir()) if where.is_dir() else []

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            SourceError: it cannot be read.
        """
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise SourceError(f"{self.path / name}: cannot be read: {error.strerror or error}.") from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file: beside its place first, then all of it is there at once.

        Raises:
            SourceError: there is no room, or it is not allowed. What was there stays.
        """
        place = self.path / name
        beside = place.with_name(f".{place.name}.partial")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(place)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise SourceError(f"{place}: cannot be written: {error.strerror or error}.") from None

    def move(self, name: str, to: str) -> None:
        """Give a file another name, in the place of one that has it.

        Raises:
            SourceError: it is not there, or it is not allowed.
        """
        try:
            (self.path / name).replace(self.path / to)
        except OSError as error:
            raise SourceError(f"{self.path / to}: cannot be written: {error.strerror or error}.") from None

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        place = self.path / name
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)

    async def names_async(self, below: str = "") -> list[str]:
        """The awaitable twin of `names`."""
        return self.names(below)

    async def read_async(self, name: str) -> bytes:
        """The awaitable twin of `read`."""
        return self.read(name)

    async def write_async(self, name: str, data: bytes) -> None:
        """The awaitable twin of `write`."""
        self.write(name, data)

    async def move_async(self, name: str, to: str) -> None:
        """The awaitable twin of `move`."""
        self.move(name, to)

    async def remove_async(self, name: str) -> None:
        """The awaitable twin of `remove`."""
        self.remove(name)


def folder_of(place: Any) -> Any:
    """The folder of a path, or of ``"opfs:NAME"`` in a page.

    Args:
        place: a path, a text that begins with "opfs:", or a folder as it is.

    Raises:
        SourceError: there is no private file system here.
    """
    if hasattr(place, "write") and hasattr(place, "names"):
        return place
    text = os.fspath(place)
    if not text.startswith("opfs:"):
        return LocalFolder(text)
    if sys.platform != "emscripten":
        raise SourceError(f"{text}: the origin's private file system is in a page. Give a folder's path.")
    from .opfs import OpfsFolder

    return OpfsFolder(text.removeprefix("opfs:"))


__all__ = ["LocalFolder", "folder_of"]
