"""Finds the files that are not Python: ``wgsl/`` and ``web/runtime/``, in a wheel, an editable install and
Pyodide."""

import os
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_ROOTS = str(_PACKAGE), str(_PACKAGE.parent.parent)


@cache
def path(name: str) -> Path:
    """Path of a resource such as ``"wgsl/parts/number/half.wgsl"``.

    A wheel carries the resources inside the package; a checkout has them two folders above it.
    """
    return Path(_found(name))


def _found(name: str) -> str:
    # As strings: with pathlib the first use of a kernel takes a millisecond longer in a page.
    for root in _ROOTS:
        candidate = os.path.join(root, name)
        if os.path.exists(candidate):
            return candidate
    raise FileNotFoundError(
        f"pellucid: {name} is neither inside the package {_PACKAGE} nor beside its checkout. "
        "Write it, if it is new; else reinstall pellucid."
    )


_ADDED: dict[str, str] = {}


def add_text(name: str, text: str) -> None:
    """Have a text stand for a resource that is no file, such as the WGSL of a program's own format.

    Raises:
        FileExistsError: there is a resource of that name.
    """
    if name in _ADDED or any(os.path.exists(os.path.join(root, name)) for root in _ROOTS):
        raise FileExistsError(f"pellucid: there is a {name} already. Choose another name.")
    _ADDED[name] = text


def read_text(name: str) -> str:
    """Text of a resource."""
    if name in _ADDED:
        return _ADDED[name]
    with open(_found(name), encoding="utf-8") as file:
        return file.read()
