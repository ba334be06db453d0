"""Files of exported programs, damaged in their documents or in their bytes."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def parts(path: Path) -> dict[str, bytes]:
    """The entries of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(entries: dict[str, bytes], path: Path, method: int = zipfile.ZIP_STORED) -> Path:
    """An archive of entries."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def changed(path: Path, folder: Path, change: Callable[[dict], Any], end: str = "models/model.json") -> Path:
    """A copy with a document that was changed."""
    entries = parts(path)
    name = next(n for n in entries if n.endswith(end))
    document = json.loads(entries[name])
    change(document)
    entries[name] = json.dumps(document).encode()
    return packed(entries, folder / "changed.pt2")
