"""Library of WGSL functions, ``wgsl/parts``: which part defines a function, which loop, what a text needs."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ...device.resources import path, read_text

_USES = re.compile(r"^// +uses +(.+)$", re.M)
_LOOP = re.compile(r"\b(?:for|while|loop)\b")
_CALLED = re.compile(r"\b(\w+)\(")
_DEFINED = re.compile(r"^fn (\w+)\(", re.M)


@cache
def _files_of_parts() -> dict[str, Path]:
    """The files of ``wgsl/parts`` by their names, by which headers say what they use."""
    return {file.stem: file for file in sorted(path("wgsl/parts").rglob("*.wgsl"))}


@cache
def _parts() -> dict[str, str]:
    """Function name -> the part that defines it, over all of ``wgsl/parts``: expressions and rewritten bodies
    name no part."""
    return {
        function: file.stem
        for file in _files_of_parts().values()
        for function in _DEFINED.findall(file.read_text(encoding="utf-8"))
    }


@cache
def _functions(part: str) -> dict[str, tuple[bool, frozenset[str]]]:
    """Whether each function of a part loops, and what it calls; few turns that are known do not count."""
    text = _text(part)
    if re.search(r"^// +turns +\d+$", text, re.M):
        return {}
    text = re.sub(r"//[^\n]*", "", text)
    bodies = re.finditer(r"^fn (\w+)\((.*?)(?=^fn |\Z)", text, re.M | re.S)
    return {m[1]: (_LOOP.search(m[2]) is not None, frozenset(_CALLED.findall(m[2]))) for m in bodies}


@cache
def _loops(function: str) -> bool:
    """Whether a function of ``wgsl/parts`` loops, or calls one that does."""
    part = _parts().get(function)
    is_loop, called = _functions(part).get(function, (False, ())) if part is not None else (False, ())
    return is_loop or any(_loops(name) for name in called)


def loops(expression: str) -> bool:
    """Whether a WGSL expression calls a function that loops."""
    return any(_loops(name) for name in _CALLED.findall(expression))


@cache
def _text(part: str) -> str:
    return read_text(f"wgsl/{part}.wgsl" if "/" in part else str(_files_of_parts()[part]))


def _named(text: str) -> list[str]:
    """The parts that a text names or calls."""
    names = {n.strip() for m in _USES.finditer(text) for n in m[1].split(",")}
    called, own = set(_CALLED.findall(text)), set(_DEFINED.findall(text))
    names |= {part for function in called - own if (part := _parts().get(function)) is not None}
    return sorted(names)


@cache
def _named_by(part: str) -> list[str]:
    return _named(_text(part))


def collect(text: str) -> dict[str, str]:
    """The parts that a text names or calls, and those that they do, by name."""
    parts: dict[str, str] = {}

    def add(names: list[str]) -> None:
        for name in names:
            if name not in parts:
                parts[name] = _text(name)
                add(_named_by(name))

    add(_named(text))
    return parts
