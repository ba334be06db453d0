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
def _looping() -> frozenset[str]:
    """Functions of ``wgsl/parts`` that loop, or call one that does; few turns that are known do not count."""
    bodies: dict[str, str] = {}
    for file in _files_of_parts().values():
        text = file.read_text(encoding="utf-8")
        if not re.search(r"^// +turns +\d+$", text, re.M):
            text = re.sub(r"//[^\n]*", "", text)
            bodies |= {m[1]: m[2] for m in re.finditer(r"^fn (\w+)\((.*?)(?=^fn |\Z)", text, re.M | re.S)}
    found = {name for name, body in bodies.items() if _LOOP.search(body)}
    while more := {n for n, body in bodies.items() if n not in found and found & set(_CALLED.findall(body))}:
        found |= more
    return frozenset(found)


def loops(expression: str) -> bool:
    """Whether a WGSL expression calls a function that loops."""
    return not _looping().isdisjoint(_CALLED.findall(expression))


def collect(text: str, parts: dict[str, str]) -> None:
    """Add the parts that a text names or calls, and those that they do, by name."""
    names = {n.strip() for m in _USES.finditer(text) for n in m[1].split(",")}
    called, own = set(_CALLED.findall(text)), set(_DEFINED.findall(text))
    names |= {part for function in called - own if (part := _parts().get(function)) is not None}
    for name in sorted(names):
        if name not in parts:
            file = f"wgsl/{name}.wgsl" if "/" in name else str(_files_of_parts()[name])
            parts[name] = part = read_text(file)
            collect(part, parts)
