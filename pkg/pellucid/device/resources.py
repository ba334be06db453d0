"""Finds the files that are not Python: ``wgsl/`` and ``web/runtime/``, in a wheel, an editable install and
Pyodide."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def path(name: str) -> Path:
    """Path of a resource such as ``"wgsl/parts/number/half.wgsl"``.

    A wheel carries the resources inside the package; a checkout has them two folders above it.
    """
    for root in (_PACKAGE, _PACKAGE.parent.parent):
        candidate = root / name
        if candidate.exists():
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
    if name in _ADDED or any((root / name).exists() for root in (_PACKAGE, _PACKAGE.parent.parent)):
        raise FileExistsError(f"pellucid: there is a {name} already. Choose another name.")
    _ADDED[name] = text


def read_text(name: str) -> str:
    """Text of a resource."""
    return _ADDED[name] if name in _ADDED else path(name).read_text(encoding="utf-8")
