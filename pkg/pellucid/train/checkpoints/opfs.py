"""Folders of the origin's private file system (OPFS), which stay when the page is closed.

Only this file of the room imports js and pyodide.
"""

from __future__ import annotations

from typing import Any

import js
from pyodide.ffi import JsException, to_js

from ...errors import SourceError
from ...weights.source_browser import wait


def _options(**settings: bool) -> Any:
    return to_js(settings, dict_converter=js.Object.fromEntries)


class OpfsFolder:
    """A folder of the private file system.

    The browser writes a file beside its place and puts it there when it is complete.

    Args:
        path: names with slashes; made when something is written.
    """

    def __init__(self, path: str):
        self.path = path.strip("/")

    def __str__(self) -> str:
        return f"opfs:{self.path}"

    async def _folder(self, below: str, create: bool = False) -> Any:
        handle = await js.navigator.storage.getDirectory()
        for name in filter(None, f"{self.path}/{below}".split("/")):
            handle = await handle.getDirectoryHandle(name, _options(create=create))
        return handle

    async def names_async(self, below: str = "") -> list[str]:
        """What lies in it, or in a folder below; nothing where it is not there."""
        try:
            handle = await self._folder(below)
        except JsException as error:
            if error.name in ("NotFoundError", "TypeMismatchError"):
                return []
            raise self._typed(below, error) from None
        entries = await js.Array.fromAsync(handle.keys())
        return sorted(entries.to_py())

    async def read_async(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            SourceError: it cannot be read.
        """
        below, _, last = name.rpartition("/")
        try:
            handle = await (await self._folder(below)).getFileHandle(last)
            file = await handle.getFile()
            return (await file.arrayBuffer()).to_bytes()
        except JsException as error:
            raise self._typed(name, error) from None

    async def write_async(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            SourceError: there is no room, or it is not allowed.
        """
        below, _, last = name.rpartition("/")
        try:
            handle = await (await self._folder(below, create=True)).getFileHandle(last, _options(create=True))
            writable = await handle.createWritable()
            try:
                await writable.write(to_js(data))
            except JsException:
                await writable.abort()
                raise
            await writable.close()
        except JsException as error:
            raise self._typed(name, error) from None

    async def remove_async(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        below, _, last = name.rpartition("/")
        try:
            await (await self._folder(below)).removeEntry(last, _options(recursive=True))
        except JsException as error:
            if error.name != "NotFoundError":
                raise self._typed(name, error) from None

    def _typed(self, name: str, error: JsException) -> SourceError:
        advice = " Free some of the origin's storage." if error.name == "QuotaExceededError" else ""
        return SourceError(f"{self}/{name}: {error.name}: {error.message}{advice}")

    def names(self, below: str = "") -> list[str]:
        """The blocking twin of `names_async`."""
        return wait(self.names_async(below), str(self))

    def read(self, name: str) -> bytes:
        """The blocking twin of `read_async`."""
        return wait(self.read_async(name), str(self))

    def write(self, name: str, data: bytes) -> None:
        """The blocking twin of `write_async`."""
        wait(self.write_async(name, data), str(self))

    def remove(self, name: str) -> None:
        """The blocking twin of `remove_async`."""
        wait(self.remove_async(name), str(self))


__all__ = ["OpfsFolder"]
