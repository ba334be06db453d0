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
# In one line, or up to the brace at a line's beginning.
_FUNCTION = re.compile(r"^fn (\w+)(?:.*\} *$|.*\n[\s\S]*?^\})", re.M)
_COMMENT = re.compile(r"//[^\n]*")
_TURNS = re.compile(r"^// +turns +\d+$", re.M)


@cache
def _files_of_parts() -> dict[str, str]:
    """The files of ``wgsl/parts`` by their names, by which headers say what they use."""
    # Walked by os, which takes a third of pathlib's time in a page.
    root = str(path("wgsl/parts"))
    return {
        name.removesuffix(".wgsl"): f"wgsl/parts{folder.removeprefix(root)}/{name}"
        for folder, _, names in sorted(os.walk(root))
        for name in sorted(names)
        if name.endswith(".wgsl")
    }


class _Part(NamedTuple):
    """One file, without comments: the texts of its functions by name, in order; its other declarations; the
    parts that its header says it uses; whether its functions count as loops if they have one."""

    functions: dict[str, str]
    others: str
    uses: tuple[str, ...]
    counts: bool


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
    plain = _COMMENT.sub("", text)
    others = "\n".join(filter(str.strip, _FUNCTION.sub("", plain).split("\n")))
    # Few turns that are known do not count.
    counts = not _TURNS.search(text)
    return _Part({m[1]: m[0] for m in _FUNCTION.finditer(plain)}, others, _used(text), counts)


def _used(text: str) -> tuple[str, ...]:
    """The parts that a text names."""
    return tuple(name.strip() for m in _USES.finditer(text) for name in m[1].split(","))


@cache
def _called(part: str, function: str) -> frozenset[str]:
    """What a function of a part calls, and itself; "" stands for the part's other declarations."""
    found = _part(part)
    return frozenset(_CALLED.findall(found.functions[function] if function else found.others))


@cache
def _loops(function: str) -> bool:
    """Whether a function of ``wgsl/parts`` loops, or calls one that does."""
    name = _parts().get(function)
    if name is None:
        return False
    part = _part(name)
    is_loop = part.counts and _LOOP.search(part.functions[function]) is not None
    return is_loop or any(_loops(other) for other in _called(name, function) - {function})


def loops(expression: str) -> bool:
    """Whether a WGSL expression calls a function that loops."""
    return any(_loops(name) for name in _CALLED.findall(expression))


def collect(text: str) -> str:
    """The functions of the parts that a text calls, and those that they do, with the other declarations of
    their parts. A compiler reads all that it is given, and few functions of a part are called."""
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
        left.update(_called(name, ""))
        for other in part.uses:
            use(other)

    for name in _used(text):
        use(name)
    while found := {f: p for f in left - needed - defined if (p := where.get(f) or _parts().get(f))}:
        for function, name in found.items():
            use(name)
            needed.add(function)
            left.update(_called(name, function))
    # In one order, whatever that of a set: browsers keep what they have compiled by the text.
    lines: list[str] = []
    for _, part in sorted(parts.items()):
        lines += [part.others, *[written for name, written in part.functions.items() if name in needed]]
    return "\n".join(filter(None, lines))
