"""Library of WGSL functions, ``wgsl/parts``: which part defines a function, which loop, what a text calls."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ...device.resources import path, read_text
from .part_file import CALLED, LOOP, ShaderPart, defined_in, read_part, read_parts, used_by


@cache
def _parts() -> dict[str, ShaderPart]:
    """The parts by name. A wheel has them read (`part_file`)."""
    try:
        read = import_module(".parts_read", __package__)
    except ModuleNotFoundError:  # a checkout
        return read_parts(str(path("wgsl/parts")))
    return {name: ShaderPart(*found) for name, found in read.PARTS.items()}


@cache
def _where() -> dict[str, str]:
    """Function name -> the part that defines it, over all of ``wgsl/parts``: expressions and rewritten bodies
    name no part."""
    return {function: name for name, part in _parts().items() for function in part.functions}


@cache
def _part(name: str) -> ShaderPart:
    """A part, or a file beside them by its path below ``wgsl``: that of a format."""
    return read_part(read_text(f"wgsl/{name}.wgsl")) if "/" in name else _parts()[name]


@cache
def _loops(function: str) -> bool:
    """Whether a function of ``wgsl/parts`` loops, or calls one that does."""
    name = _where().get(function)
    if name is None:
        return False
    part = _part(name)
    is_loop = part.counts and LOOP.search(part.functions[function]) is not None
    return is_loop or any(_loops(other) for other in part.calls[function] if other != function)


def loops(expression: str) -> bool:
    """Whether a WGSL expression calls a function that loops."""
    return any(_loops(name) for name in CALLED.findall(expression))


def collect(text: str) -> str:
    """The functions of the parts that a text calls, and those that they do, with the other declarations of
    their parts. A compiler reads all that it is given, and few functions of a part are called."""
    defined = defined_in(text)
    parts: dict[str, ShaderPart] = {}
    # Where functions of used parts are that no expression names by themselves: those of formats.
    where: dict[str, str] = {}
    needed: set[str] = set()
    left = set(CALLED.findall(text)) - defined

    def use(name: str) -> None:
        if name in parts:
            return
        part = parts[name] = _part(name)
        where.update(dict.fromkeys(part.functions, name))
        left.update(part.calls[""])
        for other in part.uses:
            use(other)

    for name in used_by(text):
        use(name)
    while found := {f: p for f in left - needed - defined if (p := where.get(f) or _where().get(f))}:
        for function, name in found.items():
            use(name)
            needed.add(function)
            left.update(parts[name].calls[function])
    # In one order, whatever that of a set: browsers keep what they have compiled by the text.
    lines: list[str] = []
    for _, part in sorted(parts.items()):
        lines += [part.others, *[written for name, written in part.functions.items() if name in needed]]
    return "\n".join(filter(None, lines))
