"""How long the loops of a kernel may be.

A loop that takes long keeps a device from everything else, and its watchdog may end the process. A driver
that runs on the CPU may end the loop instead, without a word: llvmpipe does after 65,535 turns of all loops
of an invocation together, nested ones included. So a kernel whose loops are as long as data says in its
header how many turns an invocation takes at most, as Python over its consts and the fields of Params; a
plan that would take more is refused. What can be longer is cut: into parts, or into dispatches of which
each goes on with what the one before made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import CodeType
from typing import Any

from ...device.stream import stream
from ...errors import ShapeError
from .source import KernelSource

# Turns of one dispatch's loops where more are cut into several dispatches: by every device alike.
PIECE = 3 << 14
# The most that an invocation may take on an adapter that runs on the CPU, and on a GPU.
_SOFTWARE, _GPU = 65_000, 1 << 20
_LINE = re.compile(r"^// +turns +(.+)$", re.M)
_UNSIGNED = re.compile(r"\b(\d+)u\b")
_KNOWN = {"__builtins__": {}, "min": min, "max": max, "select": lambda a, b, condition: b if condition else a}


class _Names(dict):
    """Fields of Params, and consts of a kernel, which are found when they are asked for."""

    def __init__(self, source: KernelSource, fields: Mapping[str, Any]):
        super().__init__(fields)
        self.source = source

    def __missing__(self, name: str) -> Any:
        if name in _KNOWN:
            raise KeyError(name)
        value = self.source.const(name)
        if (plain := value.removesuffix("u")).isdecimal():  # to compile it takes 0.2 ms in a page
            return int(plain)
        value = _UNSIGNED.sub(r"\1", value).replace("/", "//")
        value = value.replace("true", "True").replace("false", "False")
        return eval(_compiled(value), _KNOWN, self)


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, "turns", "eval")


def most_turns() -> int:
    """Turns that an invocation may take on this device."""
    return _SOFTWARE if stream().open().info.is_software else _GPU


def code_of_turns(source: KernelSource) -> CodeType | None:
    """What a kernel's header says of its turns, compiled; None where it says nothing."""
    line = _LINE.search(source.text) if "turns" in source.text else None
    return _compiled(line[1]) if line else None


def turns_of(source: KernelSource, fields: Mapping[str, Any]) -> int:
    """The most turns of loops that an invocation of a kernel takes; 0 where the kernel's header names none.

    Args:
        source: the kernel, its holes filled.
        fields: values of Params; of those that each run brings the most that they can be.
    """
    code = code_of_turns(source)
    return 0 if code is None else eval(code, _KNOWN, _Names(source, fields))


def check_turns(source: KernelSource, fields: Mapping[str, Any]) -> None:
    """Refuse a launch whose loops would be too long for the device.

    Raises:
        ShapeError: they would.
    """
    turns, most = turns_of(source, fields), most_turns()
    if turns > most:
        raise ShapeError(
            f"an axis is too long for the kernel {source.name}: it would take {turns} turns of a loop, and "
            f"{most} are certain to be made on this device. Work on parts of the tensors, or on the cpu "
            "device."
        )


def boxes(tall: int, wide: int) -> list[tuple[int, int, int, int]]:
    """Two nested loops cut into pieces that a dispatch can take: (first, end) of the outer one and of the
    inner one, in the order of the whole.

    Example:
        >>> boxes(2, 70000)
        [(0, 1, 0, 49152), (0, 1, 49152, 70000), (1, 2, 0, 49152), (1, 2, 49152, 70000)]
        >>> boxes(3, 5)
        [(0, 3, 0, 5)]
    """
    if wide >= PIECE // 2:
        cuts = [(x, min(x + PIECE, wide)) for x in range(0, wide, PIECE)]
        return [(y, y + 1, *cut) for y in range(tall) for cut in cuts]
    lines = PIECE // (wide + 1)
    return [(y, min(y + lines, tall), 0, wide) for y in range(0, tall, lines)] or [(0, 0, 0, wide)]
