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
        "Reinstall pellucid."
    )


def read_text(name: str) -> str:
    """Text of a resource."""
    return path(name).read_text(encoding="utf-8")
