"""The frame of a kernel that goes through elements: its declarations, functions of an element, its main."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .source import TURN, load

WORKGROUP = 64
# From so many elements on an invocation makes four, and all its loads are on their way before the first
# store: on a GPU four times the bytes per second of one element each (docs/performance.md).
MANY = 1 << 16
_MANY_WORKGROUP, _MANY_EACH = 256, 4
# From so many on every other launch goes from the last workgroup to the first: what the launch before it read
# and wrote last is still in the cache, which does not hold all of it.
LARGE = 1 << 22
_FROM_END = "(params.count - 1u) / (4u * WORKGROUP) - group"
# What takes its words of the block that four neighbours share (wgsl/parts/number/philox.wgsl).
_RANDOM = re.compile(r"\b(?:random_word|uniform_of|normal_of)\(")


class Text:
    """The pieces of a kernel as they come together: Params, functions, values."""

    def __init__(self):
        self.vectors: list[str] = []
        self.fields: list[str] = []
        self.functions: list[str] = []
        self.values: dict[str, Any] = {}

    def vector(self, name: str, value: tuple[int, ...]) -> str:
        """A field of four words; returns how the kernel names it."""
        if name not in self.values:
            self.vectors.append(f"{name}: vec4<u32>")
            self.values[name] = value
        return f"params.{name}"

    def scalar(self, name: str, kind: str) -> str:
        """A field of one word; returns how the kernel names it."""
        declared = f"{name}: {kind}"
        if declared not in self.fields:
            self.fields.append(declared)
        return f"params.{name}"

    @property
    def params(self) -> str:
        """The declaration of Params: vectors first, so that nothing lies between."""
        return f"struct Params {{ {', '.join([*self.vectors, *self.fields])} }}"


def element_of(text: Text, element: str, body: str, loads: Mapping[str, tuple[str, str]]) -> None:
    """Write the functions that make an element: ``hold(i)`` reads what it needs, ``made(i, held)`` computes,
    and ``element(i)`` does both.

    Args:
        text: gets them.
        element: their type.
        body: of ``made``.
        loads: as `member` collects them.
    """
    fields = ", ".join(f"{name}: {kind}" for name, (kind, _) in loads.items())
    reads = ", ".join(read for _, read in loads.values())
    text.functions += [
        f"struct Held {{ {fields or 'nothing: u32'} }}",
        f"fn hold(i: u32) -> Held {{ return Held({reads or '0u'}); }}",
        f"fn made(i: u32, held: Held) -> {element} {{ {body} }}",
        f"fn element(i: u32) -> {element} {{ return made(i, hold(i)); }}",
    ]


def _placed(text: Text, takes_turns: bool) -> str:
    """The function that says which workgroup of elements one makes, counted from the end in every other
    launch if they take turns."""
    place = "group"
    if takes_turns:
        place = f"select(group, {_FROM_END}, {text.scalar(TURN, 'u32')} != 0u)"
        text.values[TURN] = 0
    return f"fn placed(group: u32) -> u32 {{ return {place}; }}"


def frame(bindings: list[str], text: Text, invocations: int, by_element: bool) -> tuple[str, str, int]:
    """A kernel around the functions that make an element: the file whose main it has, the text, and how many
    invocations' work a workgroup does.

    Args:
        bindings: its declarations.
        text: its functions and fields.
        invocations: how many there are where each makes one element, or one word.
        by_element: the functions are those of `element_of` and ``store_element(i, value)``, of an element or
            a word; else ``store_out(i)``.
    """
    many = by_element and invocations >= MANY
    if by_element and not many:
        text.functions.append("fn store_out(i: u32) { store_element(i, element(i)); }")
    if many:
        is_random = any(_RANDOM.search(function) for function in text.functions)
        name = "elementwise/map_quads" if is_random else "elementwise/map_many"
        if not is_random:
            text.functions.append(_placed(text, invocations >= LARGE))
    else:
        name = "elementwise/map"
    file = load(name).text
    kept = [line for line in file.splitlines() if line.startswith(("@group(1)", "const WORKGROUP"))]
    main = file[file.index("@compute") :]
    made = _MANY_WORKGROUP * _MANY_EACH if many else WORKGROUP
    kernel = "\n".join([*bindings, text.params, *kept, *text.functions, main])
    return name, kernel, made
