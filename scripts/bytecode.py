"""Adds bytecode for Pyodide's Python to a wheel, so that the browser compiles nothing at import.

The sources stay beside it: tracebacks and `inspect` show them. The bytecode carries the hash of its source,
not a date (PEP 552).

Run as a program by a Python whose bytecode matches: bytecode.py IN.whl OUT.whl
"""

import base64
import csv
import hashlib
import importlib.util
import io
import marshal
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PYTHON_VERSION = (3, 13)


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


def compile_wheel(source: Path, target: Path) -> bool:
    """Write `target`, the wheel with bytecode; False, and nothing written, when no Python matches."""
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


def _add(source: Path, target: Path) -> None:
    lines: list[list[str]] = []
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:

        def write(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name)  # a fixed date: the same sources give the same wheel
            entry.external_attr = 0o644 << 16
            new.writestr(entry, data, zipfile.ZIP_DEFLATED)
            lines.append(_record_line(name, data))

        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        for name in old.namelist():
            if name == record or name.endswith("/"):
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
    _add(Path(sys.argv[1]), Path(sys.argv[2]))
