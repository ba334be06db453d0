"""Adds bytecode for Pyodide's Python to a wheel, or to the standard library, so that the browser compiles
nothing at import.

The sources stay beside it: tracebacks and `inspect` show them. The bytecode carries the hash of its source,
not a date (PEP 552).

Run as a program by a Python whose bytecode matches: bytecode.py IN.whl OUT.whl, or of a .zip
"""

import base64
import csv
import hashlib
import importlib.util
import io
import marshal
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PYTHON_VERSION = (3, 13)
# Where Pyodide has its library, for tracebacks.
LIBRARY = "/lib/python313.zip/"
# What of the library Pyodide, numpy and Pellucid import: more would be fetched for nothing.
IMPORTED = re.compile(
    r"""(
    (_pyodide|asyncio|collections|importlib|json|pathlib|pyodide|re|zipfile)/.+
    | (concurrent|concurrent/futures|ctypes|email|encodings|html|logging)/__init__
    | concurrent/futures/_base | ctypes/_endian | encodings/(aliases|cp437|utf_8) | html/entities
    | __future__ | _colorize | _compat_pickle | _compression | _opcode_metadata | _weakrefset | ast | base64
    | bisect | bz2 | contextlib | contextvars | copy | copyreg | dataclasses | datetime | difflib | dis | enum
    | fnmatch | functools | glob | hashlib | heapq | hmac | inspect | keyword | linecache | numbers | opcode
    | operator | pickle | pkgutil | platform | random | reprlib | secrets | selectors | shutil | signal
    | socket | string | struct | subprocess | tarfile | tempfile | textwrap | threading | token | tokenize
    | traceback | types | typing | warnings | weakref
    )\.py""",
    re.VERBOSE,
)

# What numpy's wheel has for compilers and type checkers, which no page has.
FOR_COMPILERS = re.compile(r"numpy/(f2py/|.+\.(a|h|pxd|pyi)$)")
SMALLEST = 9  # of zlib's levels


def matching_python() -> str | None:
    """A Python with Pyodide's bytecode, from PELLUCID_PYTHON313, PATH or pyenv; `None` when there is none."""
    name = "python" + ".".join(map(str, PYTHON_VERSION))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [os.environ.get("PELLUCID_PYTHON313"), sys.executable, shutil.which(name)]
    candidates += [str(folder / "bin" / name) for folder in sorted(pyenv.glob("3.13.*"), reverse=True)]
    probe = "import sys; print(sys.version_info[:2], sys.version_info.releaselevel, sys.implementation.name)"
    for candidate in filter(None, candidates):
        try:
            done = subprocess.run([candidate, "-c", probe], capture_output=True, text=True)
        except OSError:
            continue
        if done.stdout.strip() == f"{PYTHON_VERSION} final cpython":
            return candidate
    return None


def compile_archive(source: Path, target: Path) -> bool:
    """Write `target`, the same with bytecode; False, and nothing written, when no Python matches."""
    python = matching_python()
    if python is None:
        return False
    partial = target.with_suffix(".partial")
    subprocess.run([python, "-I", __file__, source, partial], check=True)
    partial.rename(target)
    return True


def _record_line(name: str, data: bytes) -> list[str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return [name, f"sha256={digest}", str(len(data))]


def _bytecode(name: str, source: bytes) -> bytes:
    code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    unchecked_hash = (1).to_bytes(4, "little")
    return (
        importlib.util.MAGIC_NUMBER
        + unchecked_hash
        + importlib.util.source_hash(source)
        + marshal.dumps(code)
    )


def _add_to_library(source: Path, target: Path) -> None:
    """Python looks for `x.pyc` beside `x.py` in the archive of its library."""
    shutil.copy(source, target)
    with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as library:
        for name in library.namelist():
            if IMPORTED.fullmatch(name):
                code = _bytecode(LIBRARY + name, library.read(name))
                library.writestr(zipfile.ZipInfo(f"{name}c"), code, zipfile.ZIP_DEFLATED, SMALLEST)


def _add_to_wheel(source: Path, target: Path) -> None:
    lines: list[list[str]] = []
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:

        def write(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name)  # a fixed date: the same sources give the same wheel
            entry.external_attr = 0o644 << 16
            new.writestr(entry, data, zipfile.ZIP_DEFLATED, SMALLEST)
            lines.append(_record_line(name, data))

        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        for name in old.namelist():
            if name == record or name.endswith("/") or FOR_COMPILERS.match(name):
                continue
            data = old.read(name)
            write(name, data)
            if name.endswith(".py"):
                try:
                    bytecode = _bytecode(name, data)
                except SyntaxError as error:
                    print(f"build: no bytecode for {name}, whose import will fail: {error}", flush=True)
                    continue
                folder, _, stem = name[:-3].rpartition("/")
                write(f"{folder}/__pycache__/{stem}.cpython-313.pyc".lstrip("/"), bytecode)
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows([*lines, [record, "", ""]])
        write(record, table.getvalue().encode())


if __name__ == "__main__":
    given, made = map(Path, sys.argv[1:])
    (_add_to_wheel if given.suffix == ".whl" else _add_to_library)(given, made)
