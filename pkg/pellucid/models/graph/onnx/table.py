"""The table of ONNX operators: by name and opset, the function that computes one out of Pellucid's ops.

A function's signature is the operator's: inputs by place, attributes by name. Annotations say how an input
comes: ``Tensor`` on the model's device; ``Ints``, ``Floats`` and ``Number`` as Python values, for shapes,
axes and the like. An input that older opsets have as an attribute is given by its name just the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....errors import ArgumentError, ShapeError
from ....tensors.tensor import Tensor

MICROSOFT = "com.microsoft"
# How inputs come that are no tensors of the device.
Ints = list
Floats = list
Number = Any
_READ = ("Ints", "Floats", "Number")


@dataclass(frozen=True)
class Operator:
    """One row: an operator from an opset on.

    Args:
        domain: "" is ai.onnx.
        name: as in NodeProto.op_type.
        since: the first opset whose form ``function`` takes.
        function: computes it.
        inputs: how each input comes, in order.
        variadic: the last of them may come several times.
        attributes: names that the function takes.
        fixed: results depend on nothing but the arguments, so they may be folded.
    """

    domain: str
    name: str
    since: int
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    variadic: bool
    attributes: frozenset[str]
    fixed: bool


TABLE: dict[tuple[str, str], list[Operator]] = {}
# Operators that are not computed, and why.
REFUSED = {
    name: reason
    for reason, names in {
        "control flow, whose graphs run by values on the device; export with it unrolled": "If Loop Scan",
        "sequences, which are no tensors; export with fixed numbers of them": "SequenceAt SequenceConstruct "
        "SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence "
        "ConcatFromSequence",
        "texts, which belong before the model": "StringConcat StringNormalizer StringSplit RegexFullMatch "
        "TfIdfVectorizer",
        "optional values, which are no tensors; export with them given or left out": "Optional "
        "OptionalGetElement OptionalHasElement",
        "files of images, which belong before the model": "ImageDecoder",
    }.items()
    for name in names.split()
}


def operator(
    *names: str, since: int = 1, domain: str = "", fixed: bool = True
) -> Callable[[Callable], Callable]:
    """Declare the function of an operator, from opset ``since`` on; the other arguments are `Operator`'s."""

    def declare(function: Callable) -> Callable:
        for name in names:
            row(name, function, since=since, domain=domain, fixed=fixed)
        return function

    return declare


def row(
    name: str,
    function: Callable,
    arity: int = 0,
    *,
    since: int = 1,
    domain: str = "",
    fixed: bool = True,
) -> None:
    """Put an operator into the table; ``arity`` is the number of inputs of a function of tensors alone."""
    inputs, attributes, variadic = ["Tensor"] * arity, [], False
    for p in () if arity else inspect.signature(function).parameters.values():
        kind = str(p.annotation).removesuffix(" | None")
        if p.kind is p.KEYWORD_ONLY:
            attributes.append(p.name)
            continue
        variadic = variadic or p.kind is p.VAR_POSITIONAL
        inputs.append(kind if kind in _READ else "Tensor")
        if p.kind is not p.VAR_POSITIONAL:
            attributes.append(p.name)
    found = Operator(domain, name, since, function, tuple(inputs), variadic, frozenset(attributes), fixed)
    rows = TABLE.setdefault((domain, name), [])
    rows.append(found)
    rows.sort(key=lambda r: r.since)


def find(domain: str, name: str, opset: int) -> Operator | None:
    """The row for an operator of a graph: the last one that is no newer than its opset."""
    rows = [r for r in TABLE.get((domain, name), ()) if r.since <= opset]
    return rows[-1] if rows else None


def axis_of(axis: int, rank: int) -> int:
    """An axis from 0.

    Raises:
        ShapeError: a tensor of ``rank`` axes has no such axis.
    """
    if not -rank <= axis < max(rank, 1):
        raise ShapeError(f"axis {axis} of a tensor of {rank} axes. Give one from {-rank} to {rank - 1}.")
    return axis % rank if rank else 0


def axes_of(axes: Any, rank: int) -> list[int]:
    """Axes from 0, each once.

    Raises:
        ShapeError: one does not exist, or comes twice.
    """
    found = [axis_of(int(a), rank) for a in axes]
    if len(set(found)) < len(found):
        raise ShapeError(f"axes {list(axes)} name one twice. Give each once.")
    return found


def one_of(name: str, value: Any, known: Any) -> Any:
    """What a table says of an attribute's value.

    Raises:
        ArgumentError: it has none for it.
    """
    if value not in known:
        raise ArgumentError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, known))}.")
    return known[value] if isinstance(known, dict) else value


__all__ = ["MICROSOFT", "REFUSED", "TABLE", "Floats", "Ints", "Number", "Operator", "Tensor", "operator"]
