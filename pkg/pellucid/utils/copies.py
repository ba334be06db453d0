"""Copies of weights in the browser's own storage (OPFS): a second visit reads nothing from the network.

With ``pellucid.settings.keep_copies = True`` the bytes of files from URLs are written there as they stream to
the GPU, without passing Python. Every piece is compared with its SHA-256 before it is used; a damaged copy is
removed, and the server is asked again. Files that need a token are not kept.
"""

# pyright: reportMissingImports=false
# js and the pyodide modules exist inside Pyodide only.

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ..errors import SourceError
from ..weights import settings


@dataclass(frozen=True)
class WeightCopy:
    """A file that is kept.

    Args:
        url: where it came from.
        size: its bytes.
        sha256: of the digests of its pieces of 4 MiB, in hexadecimal: equal for equal content.
        kept: when, in UTC.
    """

    url: str
    size: int
    sha256: str
    kept: str = ""


async def _runtime() -> Any:
    if sys.platform != "emscripten":
        raise SourceError("utils.copies: there are copies in pages only. Natively give a path to a file.")
    from ..device import javascript

    return await javascript.module("fetch.js")


async def finish_async() -> list[WeightCopy]:
    """Complete the copies of files that were read as a whole since the last call.

    Call it when a model is loaded. What no tensor needs, such as padding, is read now. A copy is left out
    where the disk is full or another tab writes it.

    Returns:
        Those that are whole now.

    Raises:
        SourceError: this is no page.
    """
    runtime = await _runtime()
    found = await runtime.finishCopies(settings.network_timeout * 1000, settings.network_retries)
    return [WeightCopy(one.url, one.size, one.sha256) for one in found]


async def list_async() -> list[WeightCopy]:
    """All copies of this origin, by address. What was begun and cut off is removed.

    Raises:
        SourceError: this is no page.
    """
    found = await (await _runtime()).listCopies()
    return [WeightCopy(one.url, one.size, one.sha256, one.kept) for one in found]


async def remove_async(url: str) -> None:
    """Remove the copy of an address, if there is one.

    Raises:
        SourceError: this is no page.
    """
    await (await _runtime()).removeCopy(url)
