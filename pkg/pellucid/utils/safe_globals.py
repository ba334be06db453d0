"""add_safe_globals, safe_globals: functions and classes that files may ask for, as a program allows them.

Source: https://pytorch.org/docs/stable/notes/serialization.html#weights-only
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, FormatError
from ..op.arguments import describe
from ..tensors.absent import public
from ..weights.formats.unpickler import NEVER, full_path, names

_allowed: set[Any] = set()


def _path_of(one: Any) -> str:
    """Where a function or class is found, as files name it."""
    if isinstance(one, tuple):
        if len(one) != 2 or not isinstance(one[1], str):
            raise ArgumentError(f"add_safe_globals: {one!r} is not a function or class and its full path.")
        return one[1]
    if not hasattr(one, "__module__") or not hasattr(one, "__qualname__"):
        raise ArgumentError(f"add_safe_globals: {describe(one)} is no function or class. Give its class.")
    return f"{one.__module__}.{one.__qualname__}"


def add_safe_globals(safe_globals: list[Callable | tuple[Callable, str]]) -> None:
    """Let `load` call functions that files name, and make objects of classes.

    What a file gives to them is up to who wrote it: allow only what does no harm whatever it is given.
    Nothing of the modules ``os``, ``posix``, ``nt`` and ``sys`` can be allowed. Layers count under PyTorch's
    names, too. Files of PyTorch before 1.6 hold tensors and containers only.

    Args:
        safe_globals: functions and classes, or pairs of one and the full path by which files name it.

    Raises:
        ArgumentError: something else.

    Source: https://pytorch.org/docs/stable/notes/serialization.html#torch.serialization.add_safe_globals

    Example:
        >>> import io, pathlib
        >>> import pellucid as torch
        >>> file = io.BytesIO()
        >>> torch.save({"run": pathlib.PurePosixPath("runs/3")}, file)
        >>> with torch.serialization.safe_globals([pathlib.PurePosixPath]):
        ...     torch.load(file)["run"].name
        '3'
    """
    for one in safe_globals:
        _path_of(one)
    _allowed.update(safe_globals)


def get_safe_globals() -> list[Callable | tuple[Callable, str]]:
    """What was allowed.

    Source: https://pytorch.org/docs/stable/notes/serialization.html#torch.serialization.get_safe_globals
    """
    return list(_allowed)


def clear_safe_globals() -> None:
    """Allow nothing any more.

    Source: https://pytorch.org/docs/stable/notes/serialization.html#torch.serialization.clear_safe_globals
    """
    _allowed.clear()


class safe_globals:
    """A context in which some functions and classes are allowed; see `add_safe_globals`.

    Args:
        safe_globals: as there.

    Source: https://pytorch.org/docs/stable/notes/serialization.html#torch.serialization.safe_globals
    """

    def __init__(self, safe_globals: list[Callable | tuple[Callable, str]]):
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception: object) -> None:
        _allowed.difference_update(self.safe_globals)


def allowed() -> dict[str, Any]:
    """What is allowed, by the paths under which files may name it."""
    found: dict[str, Any] = {}
    for one in _allowed:
        path, what = _path_of(one), one[0] if isinstance(one, tuple) else one
        module, _, name = path.rpartition(".")
        found[full_path(module, name)] = what
        if path.startswith("pellucid.nn.modules.") and name in public()["torch.nn"]:
            found[f"torch.nn.{name}"] = what  # as `save` writes it
    return found


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """What a file of `save` asks for that `load` does not know and that is not allowed. Nothing is executed.

    Args:
        f: a path, or a file that is open for reading.

    Raises:
        FormatError: it is no such file.

    Source: https://pytorch.org/docs/stable/notes/serialization.html#torch.serialization.get_unsafe_globals_in_checkpoint
    """
    try:
        with zipfile.ZipFile(f) as archive:
            inside = {name.partition("/")[2]: name for name in archive.namelist()}
            data = archive.read(inside["data.pkl"])
        asked = {str(arg) for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise FormatError(f"{f}: is no file as torch.save writes it ({error!s:.100}).") from None
    known, more = names(str, str), allowed()
    unknown = [name.split(" ", 1) for name in asked - known.keys()]
    return sorted(
        f"{module}.{name}"
        for module, name in unknown
        if (path := full_path(module, name)) not in more or path.partition(".")[0] in NEVER
    )
