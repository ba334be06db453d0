"""Where a text outlives the process: the user's measurements (`pellucid.op.kernel.autotune.measured`)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Change = Callable[[str | None], str | None]


class Table(Protocol):
    """A text that later processes find; as text, where it lies.

    ``kept`` gives it, None where there is none, and never waits: in a page it was read while the device was
    opened. ``keep`` lets a function make the next text of the one that is there now, or None to leave it, and
    ``keep_async`` is its awaitable twin. All raise OSError where the text cannot be read or written.
    """

    def kept(self) -> str | None: ...
    def keep(self, change: Change) -> None: ...
    async def keep_async(self, change: Change) -> None: ...


def cache_folder() -> Path | None:
    """Where programs of this user keep what they could make again; None where a user has no folder."""
    folder = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    found = Path(os.path.expanduser(folder or usual))
    return found if found.is_absolute() else None


class TableFile:
    """A text in a file, which is made with its folder, and always replaced as a whole."""

    def __init__(self, path: Path):
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def kept(self) -> str | None:
        """The text of the file, whatever bytes that has; None where there is none."""
        if not self.path.is_file():
            if self.path.exists():  # a folder, or a device such as /dev/null, which must not be replaced
                raise OSError(errno.EINVAL, "it is no regular file")
            return None
        return self.path.read_text(encoding="utf-8", errors="replace")

    def keep(self, change: Change) -> None:
        """Write what a function makes of the text."""
        text = change(self.kept())
        if text is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    async def keep_async(self, change: Change) -> None:
        """The awaitable twin of `keep`."""
        self.keep(change)
