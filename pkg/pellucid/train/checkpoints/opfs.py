"""Folders of the origin's private file system (OPFS), which stay when the page is closed.

The work is done by web/runtime/files.js. Only this file of the room imports pyodide.
"""

from __future__ import annotations

from typing import Any

from pyodide.ffi import JsException, to_js

from ...device import javascript
from ...errors import SourceError
from ...weights.source_browser import wait


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

    async def _do(self, what: str, name: str, *given: Any) -> Any:
        files = await javascript.module("files.js")
        try:
            return await getattr(files, what)(f"{self.path}/{name}".strip("/"), *given)
        except JsException as error:
            raise self._typed(name, error) from None

    async def names_async(self, below: str = "") -> list[str]:
        """What lies in it, or in a folder below; nothing where it is not there."""
        return sorted((await self._do("names", below)).to_py())

    async def read_async(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            SourceError: it cannot be read.
        """
        return (await self._do("read", name)).to_bytes()

    async def write_async(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all.

        Raises:
            SourceError: there is no room, or it is not allowed.
        """
        await self._do("write", name, to_js(data))

    async def move_async(self, name: str, to: str) -> None:
        """Give a file another name, in the place of one that has it.

        Raises:
            SourceError: it is not there.
        """
        await self._do("move", name, f"{self.path}/{to}")

    async def remove_async(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        await self._do("remove", name)

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

    def move(self, name: str, to: str) -> None:
        """The blocking twin of `move_async`."""
        wait(self.move_async(name, to), str(self))

    def remove(self, name: str) -> None:
        """The blocking twin of `remove_async`."""
        wait(self.remove_async(name), str(self))


__all__ = ["OpfsFolder"]
