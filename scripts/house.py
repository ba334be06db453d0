"""Figures of the structure: children of folders, lengths of files, names of classes, cost of an addition.

`scripts/check --house` prints them; tests/unit/test_house.py holds their limits.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections import Counter
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


# Prints the public name of every declaration, then that of every function of `ops/` that users can call.
_TABLE = """
from importlib import import_module
from inspect import unwrap
for room in ("lens", "models", "nn", "optim", "quant"):
    import_module(f"pellucid.{room}")
from pellucid.op.public import EXPORTS, METHODS
from pellucid.op.schema import OPS
print(*(f"{name}={o.public}" for name, o in OPS.items()))
called = {unwrap(f) for names in (*EXPORTS.values(), METHODS) for f in names.values()}
print(*(f"{f.__module__}.{f.__qualname__}" for f in called if f.__module__.startswith("pellucid.ops.")))
"""


@cache
def _table() -> tuple[str, ...]:
    environ = {**environment(), "PYTHONPATH": str(ROOT / "pkg")}
    run = subprocess.run([PYTHON, "-c", _TABLE], env=environ, capture_output=True, text=True, check=True)
    return tuple(run.stdout.splitlines())


def ops() -> dict[str, str]:
    """The public name of every declared op, by the name of its declaration."""
    return dict(word.split("=") for word in _table()[0].split())


def public_ops() -> list[str]:
    """The functions of `ops/` that users can call, each once.

    A user calls them in `pellucid`, `nn.functional`, `special`, `linalg`, `fft` or `signal.windows`, or as
    methods. Not counted are: steps that only other ops call, further names of a function, its form in place,
    and functions that other rooms declare, such as losses, whose lines are not in `ops/` either.

    By the same count 209 functions had 10,364 lines at dc63eff, 49.6 each, of which 6,213 were code, 29.7
    each. Its page of ops had 267 rows, 38.8 lines a row, but 54 of these were internal and four in place.
    """
    paths = [(path, path.rpartition(".")[2]) for path in _table()[1].split()]
    names = {name for _, name in paths}
    return [p for p, name in paths if name[0] != "_" and not (name[-1] == "_" and name[:-1] in names)]


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


@cache
def line_kinds(*folders: str) -> Counter[str]:
    """How many lines of the Python files in these folders are code, docstring, comment or blank."""
    found: Counter[str] = Counter()
    for path in (p for folder in folders for p in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        docs: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            has_body = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            if has_body and ast.get_docstring(node) is not None:
                docs.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        for number, line in enumerate(text.splitlines(), 1):
            start = line.lstrip()[:1]
            found["docstring" if number in docs else {"": "blank", "#": "comment"}.get(start, "code")] += 1
    return found


def additions() -> list[tuple[str, list[str]]]:
    """The files of each diff that CONTRIBUTING.md shows, with the heading it stands under."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return [
        (part.splitlines()[0], re.findall(r"^\+\+\+ (\S+)", diff, flags=re.MULTILINE))
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]
        for diff in re.findall(r"^```diff\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
    ]


def _per(kinds: Counter[str], count: int) -> str:
    parts = ", ".join(f"{kind} {lines} ({lines / count:.1f})" for kind, lines in kinds.most_common())
    return f"{kinds.total()} ({kinds.total() / count:.1f} each): {parts}"


def figures() -> list[tuple[str, str]]:
    """All figures, each with its name."""
    sizes, count = lines(), len(public_ops())
    written, tested = line_kinds("pkg/pellucid/ops"), line_kinds(*OP_TESTS)
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
        (f"lines of ops/ for {count} public ops", _per(written, count)),
        ("lines of their tests", _per(tested, count)),
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
