"""Functions that an ONNX file defines for itself: their nodes take the place of the calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....errors import FormatError
from ....weights.fields import shown

_MOST_NODES = 1_000_000
_DEEPEST = 32


def inlined(where: str, nodes: Iterable[Any], functions: Iterable[Any]) -> list[Any]:
    """The nodes with the calls of functions replaced, in the order in which they ran.

    Args:
        where: the file's name.
        nodes: of the graph, as messages.
        functions: the file's own.

    Raises:
        FormatError: functions call each other in a circle, or give more nodes than any graph has.
    """
    known = {(f.domain, f.name, f.overload): f for f in functions}
    if not known:
        return list(nodes)
    out: list[Any] = []
    for node in nodes:
        _inline(where, node, known, out, 0)
    return out


def _inline(where: str, node: Any, known: dict, out: list[Any], depth: int) -> None:
    function = known.get((node.domain, node.op_type, node.overload))
    if depth > _DEEPEST or len(out) > _MOST_NODES:
        raise FormatError(
            f"{where}: node {shown(node.name)} calls functions deeper than {_DEEPEST}, or of more than "
            f"{_MOST_NODES:,} nodes. They call each other in a circle, or the file is made to mislead."
        )
    if function is None:
        out.append(node)
        return
    names = dict(zip(function.input, node.input)) | dict.fromkeys(list(function.input)[len(node.input) :], "")
    names |= {name: given for name, given in zip(function.output, node.output) if given}
    given = {a.name: a for a in function.attribute_proto} | {a.name: a for a in node.attribute}
    prefix = node.name or f"{node.op_type}_{len(out)}"
    for k, inner in enumerate(function.node):
        made = type(inner)()
        made.CopyFrom(inner)
        made.name = f"{prefix}/{inner.name or f'{inner.op_type}_{k}'}"
        del made.input[:], made.output[:], made.attribute[:]
        made.input.extend(n and names.get(n, f"{prefix}/{n}") for n in inner.input)
        made.output.extend(n and names.get(n, f"{prefix}/{n}") for n in inner.output)
        for a in inner.attribute:
            if not a.ref_attr_name:
                made.attribute.add().CopyFrom(a)
            elif a.ref_attr_name in given:
                added = made.attribute.add()
                added.CopyFrom(given[a.ref_attr_name])
                added.name = a.name
        _inline(where, made, known, out, depth + 1)
