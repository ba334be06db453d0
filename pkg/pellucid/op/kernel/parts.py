"""Library of WGSL functions, ``wgsl/parts``: which part defines a function, which loop, what a text calls."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import NamedTuple

from ...device.resources import path, read_text

_USES = re.compile(r"^// +uses +(.+)$", re.M)
_LOOP = re.compile(r"\b(?:for|while|loop)\b")
_CALLED = re.compile(r"\b(\w+)\(")
_DEFINED = re.compile(r"^fn (\w+)\(", re.M)
_COMMENT = re.compile(r"//[^\n]*")
_TURNS = re.compile(r"^// +turns +\d+$", re.M)


@cache
def _files_of_parts() -> dict[str, str]:
    """The files of ``wgsl/parts`` by their names, by which headers say what they use."""
    # Walked by os, which takes a third of pathlib's time in a page.
    root = str(path("wgsl/parts"))
    return {
        name.removesuffix(".wgsl"): f"wgsl/parts{folder.removeprefix(root)}/{name}"
        for folder, _, names in os.walk(root)
        for name in names
        if name.endswith(".wgsl")
    }


class _Function(NamedTuple):
    """One function: its text, whether it loops, and the names that it calls."""

    text: str
    loops: bool
    called: frozenset[str]


class _Part(NamedTuple):
    """One file: its functions by name, in order; its other declarations, and what these call; the parts that
    its header says it uses."""

    functions: dict[str, _Function]
    others: str
    called: frozenset[str]
    uses: frozenset[str]


@cache
def _parts() -> dict[str, str]:
    """Function name -> the part that defines it, over all of ``wgsl/parts``: expressions and rewritten bodies
    name no part."""
    return {function: part for part in _files_of_parts() for function in _DEFINED.findall(_text(part))}


@cache
def _text(part: str) -> str:
    return read_text(f"wgsl/{part}.wgsl" if "/" in part else _files_of_parts()[part])


@cache
def _part(part: str) -> _Part:
    text = _text(part)
    # Few turns that are known do not count.
    counts = not _TURNS.search(text)
    pieces: list[list[str]] = []
    others: list[str] = []
    into = others
    for line in _COMMENT.sub("", text).split("\n"):
        if line.startswith("fn "):
            pieces.append(into := [])
        if line.strip():
            into.append(line)
        if line.endswith("}") and line.startswith(("fn ", "}")):
            into = others
    functions = {}
    for piece in pieces:
        written = "\n".join(piece)
        name, *called = _CALLED.findall(written)
        loops = counts and _LOOP.search(written) is not None
        functions[name] = _Function(written, loops, frozenset(called))
    rest = "\n".join(others)
    return _Part(functions, rest, frozenset(_CALLED.findall(rest)), _used(text))


def _used(text: str) -> frozenset[str]:
    """The parts that a text names."""
    return frozenset(name.strip() for m in _USES.finditer(text) for name in m[1].split(","))


@cache
def _loops(function: str) -> bool:
    """Whether a function of ``wgsl/parts`` loops, or calls one that does."""
    part = _parts().get(function)
    if part is None:
        return False
    found = _part(part).functions[function]
    return found.loops or any(_loops(name) for name in found.called)


def loops(expression: str) -> bool:
    """Whether a WGSL expression calls a function that loops."""
    return any(_loops(name) for name in _CALLED.findall(expression))


def collect(text: str) -> str:
    """What a text needs of the parts: the functions that it calls, those that they do, and the other
    declarations of their parts. A compiler reads all that it is given, and few functions of a part are called."""
    defined = set(_DEFINED.findall(text))
    parts: dict[str, _Part] = {}
    # Where functions of used parts are that no expression names by themselves: those of formats.
    where: dict[str, str] = {}
    needed: set[str] = set()
    left = set(_CALLED.findall(text)) - defined

    def use(name: str) -> None:
        if name in parts:
            return
        part = parts[name] = _part(name)
        where.update(dict.fromkeys(part.functions, name))
        left.update(part.called)
        for other in part.uses:
            use(other)

    for name in _used(text):
        use(name)
    while found := {f: p for f in left - needed - defined if (p := where.get(f) or _parts().get(f))}:
        for function, name in found.items():
            use(name)
            needed.add(function)
            left.update(parts[name].functions[function].called)
    # In one order, whatever that of a set: browsers keep what they have compiled by the text.
    lines: list[str] = []
    for _, part in sorted(parts.items()):
        lines += [part.others, *[f.text for name, f in part.functions.items() if name in needed]]
    return "\n".join(filter(None, lines))
