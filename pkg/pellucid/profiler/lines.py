"""Which line of the program an op came from, also where the backward pass runs it."""

from __future__ import annotations

import itertools
import sys
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from ..autograd import nodes

_PACKAGE = __name__.partition(".")[0]


class Line(NamedTuple):
    """A line of the program.

    Args:
        file: its path.
        number: the line.
        backward: the op is part of the gradient of what that line computed.
    """

    file: str
    number: int
    backward: bool = False

    @property
    def short(self) -> str:
        """The file's name without its folders, and the line."""
        return f"{Path(self.file).name}:{self.number}{' (backward)' if self.backward else ''}"

    def __str__(self) -> str:
        return f"{self.file}:{self.number}{' (backward)' if self.backward else ''}"


# Sequence number of a graph node -> the line of its forward op.
_lines_of_nodes: dict[int, Line] = {}


def _is_ours(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    if name is None:  # what is written at declarations is in no module and in no file
        return frame.f_code.co_filename == "<string>"
    return name == _PACKAGE or name.startswith(f"{_PACKAGE}.")


def caller() -> Line:
    """The line outside this library that runs; in the backward pass that of the forward op, where known."""
    frame: FrameType = sys._getframe(1)
    while _is_ours(frame) and frame.f_back is not None:
        if _lines_of_nodes and frame.f_code.co_name == "gradients":
            node = frame.f_locals.get("self")
            if isinstance(node, nodes.Node) and (line := _lines_of_nodes.get(node.sequence)) is not None:
                return line._replace(backward=True)
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


class _Numbers(itertools.count):
    """Numbers for graph nodes; each one's line is remembered."""

    def __next__(self) -> int:
        number = super().__next__()
        _lines_of_nodes[number] = caller()
        return number


@contextmanager
def lines_of_nodes():
    """Remember the lines of graph nodes for the length of a ``with``."""
    nodes.sequence = _Numbers(next(nodes.sequence))
    try:
        yield
    finally:
        nodes.sequence = itertools.count(next(nodes.sequence))
        _lines_of_nodes.clear()
