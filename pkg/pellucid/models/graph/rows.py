"""Rows of a table of operators: by name, the function that computes one out of Pellucid's ops.

A function's signature is the operator's: inputs by place, attributes by name. Annotations say how an input
comes: ``Tensor`` on the model's device; ``Ints``, ``Floats`` and ``Number`` as Python values, for shapes,
axes and the like.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, MissingError, ShapeError
from ...tensors.tensor import Tensor

# How inputs come that are no tensors of the device.
Ints = list
Floats = list
Number = Any
_READ = ("Ints", "Floats", "Number")


@dataclass(frozen=True)
class Operator:
    """One row.

    Args:
        name: as files have it.
        function: computes it.
        inputs: how each input comes, in order.
        variadic: the last of them may come several times.
        attributes: names that the function takes.
        fixed: results depend on nothing but the arguments, so they may be folded.
        measures: the result depends on the input's shape alone.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    variadic: bool
    attributes: frozenset[str]
    fixed: bool
    measures: bool


def refused(reasons: dict[str, str]) -> dict[str, str]:
    """Why each of the operators is not computed, from the names that share a reason, apart by spaces."""
    return {name: reason for reason, names in reasons.items() for name in names.split()}


def signature(function: Callable, arity: int = 0) -> tuple[tuple[str, ...], bool, frozenset[str]]:
    """What a function's signature says of an operator.

    Args:
        function: the operator's.
        arity: the number of inputs of a function of tensors alone.

    Returns:
        ``inputs``, ``variadic`` and ``attributes`` of an `Operator`.
    """
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
    return tuple(inputs), variadic, frozenset(attributes)


def refuse(where: str, missing: dict[str, list[str]], document: str) -> None:
    """Refuse a graph for all operators that have no row.

    Args:
        where: the file.
        missing: the nodes' names by operator; nothing happens if there are none.
        document: lists the operators that have one.

    Raises:
        MissingError: there are some.
    """
    if missing:
        listed = "; ".join(
            f"{kind}: {', '.join(n[:4])}" + (f" and {len(n) - 4} more" if len(n) > 4 else "")
            for kind, n in sorted(missing.items())
        )
        raise MissingError(
            f"{where}: has {len(missing)} operators that are not computed here: {listed}. Export the model "
            f"without them; {document} lists those that are."
        )


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


__all__ = ["Floats", "Ints", "Number", "Operator", "Tensor"]
