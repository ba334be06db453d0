"""Files of exported programs, damaged in their documents or in their bytes."""

from __future__ import annotations

import copy
import json
import random
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


ODD = (
    None,
    True,
    -1,
    0,
    3,
    1.5,
    "",
    "x",
    "Symbol('q')",
    [],
    {},
    [1],
    {"as_int": 2},
    {"as_tensor": {"name": "x"}},
)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """The paths of all values in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, part in inner for p in places(part, (*path, key)))]


def disturb(document: Any, rng: random.Random) -> None:
    """Replace, take out or exchange something in a document."""
    found = [p for p in places(document) if p]
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        path, other = rng.choice(found), rng.choice(found)
        try:
            holder, source = document, document
            for key in path[:-1]:
                holder = holder[key]
            for key in other:
                source = source[key]
            if rng.random() < 0.2:
                del holder[path[-1]]
            else:
                odd = rng.choice((*ODD, source, source, 1 << 62))
                holder[path[-1]] = copy.deepcopy(odd)
        except (LookupError, TypeError):  # what another change has taken away
            continue
