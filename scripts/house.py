"""Figures of the structure: children of folders, lengths of files, names of classes, cost of an addition.

`scripts/check --house` prints them; tests/unit/test_house.py holds their limits.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from functools import cache
from pathlib import Path

from paths import PYTHON, ROOT, environment

PACKAGE = ROOT / "pkg" / "pellucid"
# Folders of siblings of one kind, which may be many.
SIBLINGS = ("models", "quant")
# Folders with the tests of ops: natively, the samples, and in the page.
OP_TESTS = ("tests/ops", "tests/samples", "tests/browser/op_page")


@cache
def modules() -> dict[Path, str]:
    """The text of each module of the package, by its path from the package."""
    return {p.relative_to(PACKAGE): p.read_text(encoding="utf-8") for p in sorted(PACKAGE.rglob("*.py"))}


def lines() -> dict[Path, int]:
    """How many lines each module has."""
    return {path: text.count("\n") for path, text in modules().items()}


def children() -> int:
    """Files and folders directly in the package, but for `__init__`."""
    return sum(not path.name.startswith("__") for path in PACKAGE.iterdir())


def crowded(limit: int = 20) -> dict[str, int]:
    """Folders of the package and of kernels with more files than the limit."""
    found = {}
    for base in (PACKAGE, ROOT / "wgsl"):
        for folder in (base, *(p for p in base.rglob("*") if p.is_dir() and p.name != "__pycache__")):
            count = sum(p.is_file() and not p.name.startswith("__") for p in folder.iterdir())
            if count > limit and folder.name not in SIBLINGS:
                found[str(folder.relative_to(ROOT))] = count
    return found


def classes() -> dict[str, list[Path]]:
    """Where each public class is defined."""
    found: dict[str, list[Path]] = {}
    for path, text in modules().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path)
    return found


def parsers() -> list[str]:
    """Files that take the code out of a command's word by themselves, in Python and in JavaScript."""
    python = [f"pkg/pellucid/{path}" for path, text in modules().items() if "& CODE_MASK" in text]
    runtime = sorted((ROOT / "web" / "runtime").glob("*.js"))
    return python + [
        str(p.relative_to(ROOT)) for p in runtime if "& CODE_MASK" in p.read_text(encoding="utf-8")
    ]


@cache
def ops() -> dict[str, str]:
    """The public name of every declared op, by the name of its declaration."""
    program = (
        "from importlib import import_module\n"
        "for room in ('lens', 'models', 'nn', 'optim', 'quant'):\n"
        "    import_module(f'pellucid.{room}')\n"
        "from pellucid.op.schema import OPS\n"
        "print(*(f'{name}={o.public}' for name, o in OPS.items()))"
    )
    run = subprocess.run(
        [PYTHON, "-c", program],
        env={**environment(), "PYTHONPATH": str(ROOT / "pkg")},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(word.split("=") for word in run.stdout.split())


def internal() -> dict[str, str]:
    """Declarations under another name than the public one, with the last part of that."""
    return {name: public.split(".")[-1] for name, public in ops().items() if name != public}


def twins() -> list[str]:
    """Internal declarations that one function alone calls, which has their public name: what it does beside
    might be their ``prepare=``. Others are steps that several functions share, or the steps of optimizers."""
    names, callers = internal(), {}
    for text in modules().values():
        for node in ast.parse(text).body:
            own = getattr(node, "name", "")
            named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & names.keys() - {own}
            for name in named:
                callers.setdefault(name, set()).add(own)
    return [name for name, public in names.items() if callers.get(name, set()) - {""} == {public}]


def public_ops() -> int:
    """How many functions docs/reference.md lists."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    return sum(line.startswith("| `") for line in text.splitlines())


def lines_of(*folders: str) -> int:
    """Lines of all Python files in these folders."""
    files = [p for folder in folders for p in (ROOT / folder).rglob("*.py")]
    return sum(p.read_text(encoding="utf-8").count("\n") for p in files)


def docstring_lines(room: str) -> int:
    """Lines of docstrings in a room."""
    count = 0
    for path, text in modules().items():
        if path.parts[0] == room:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                    body = node.body[:1]
                    if body and ast.get_docstring(node) is not None:
                        count += (body[0].end_lineno or 0) - body[0].lineno + 1
    return count


def additions() -> list[tuple[str, list[str]]]:
    """The files of each diff that CONTRIBUTING.md shows, with the heading it stands under."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return [
        (part.splitlines()[0], re.findall(r"^\+\+\+ (\S+)", diff, flags=re.MULTILINE))
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]
        for diff in re.findall(r"^```diff\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
    ]


def figures() -> list[tuple[str, str]]:
    """All figures, each with its name."""
    sizes, count = lines(), public_ops()
    written, tested = lines_of("pkg/pellucid/ops"), lines_of(*OP_TESTS)
    documented = docstring_lines("ops")
    largest = max(sizes, key=sizes.__getitem__)
    rooms: dict[str, int] = {}
    for path, size in sizes.items():
        rooms[path.parts[0]] = rooms.get(path.parts[0], 0) + size
    return [
        ("children of pkg/pellucid", str(children())),
        ("folders of more than 20 files", ", ".join(f"{k} {n}" for k, n in crowded().items()) or "none"),
        (
            "files",
            f"median {statistics.median(sizes.values()):.0f} lines, largest {largest} {sizes[largest]}",
        ),
        ("public class names twice", str(sum(len(where) > 1 for where in classes().values()))),
        ("parsers of command words", ", ".join(parsers())),
        (
            "internal twins",
            f"{len(twins())} of {len(ops())} declarations, and {len(internal()) - len(twins())} shared steps",
        ),
        (
            "lines of ops/ per public op",
            f"{written / count:.1f}, {documented / count:.1f} of them docstrings ({count} ops)",
        ),
        (
            "lines of op tests per public op",
            f"{tested / count:.1f}, with those of ops/ {(written + tested) / count:.1f}",
        ),
        *((f"files for: {name}", f"{len(files)}: {', '.join(files)}") for name, files in additions()),
        ("lines by room", ", ".join(f"{k} {n}" for k, n in sorted(rooms.items(), key=lambda r: -r[1]))),
    ]


def main() -> int:
    """Print the figures."""
    for name, figure in figures():
        print(f"{name:36} {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
