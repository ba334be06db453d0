"""Pytrees: nested lists, tuples, dicts and dataclasses, taken apart into leaves and put together again.

A structure is hashable: the type of a leaf, or of a container with its keys and the structures in it. Leaves
stand in the order in which a walk meets them, so a container takes what it holds from an iterator.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ..tensors.shape import Size
from ..tensors.tensor import Tensor

_LEAVES = frozenset({Tensor, int, float, bool, str, type(None)})
_SEQUENCES = frozenset({list, tuple, Size})


def flatten(value: Any, leaves: list[Any]) -> Any:
    """Add the leaves of a value to a list; returns its structure."""
    kind = type(value)
    if kind in _LEAVES:
        leaves.append(value)
        return kind
    if kind in _SEQUENCES or hasattr(kind, "_make"):
        return kind, *[flatten(v, leaves) for v in value]
    if kind is dict:
        return kind, tuple(value), *[flatten(v, leaves) for v in value.values()]
    if is_dataclass(kind):
        names = [f.name for f in fields(kind)]
        # One with further attributes is more than its fields.
        if getattr(value, "__dict__", {}).keys() <= set(names):
            return kind, *[flatten(getattr(value, name), leaves) for name in names]
    leaves.append(value)
    return kind


def unflatten(structure: Any, leaves: Iterator[Any]) -> Any:
    """The value of a structure with these leaves."""
    if type(structure) is not tuple:
        return next(leaves)
    kind: Any = structure[0]
    begin = 1 + (kind is dict)
    values = [unflatten(p, leaves) if type(p) is tuple else next(leaves) for p in structure[begin:]]
    if kind is dict:
        return dict(zip(structure[1], values, strict=True))
    if kind in _SEQUENCES:
        return kind(values)
    if hasattr(kind, "_make"):
        return kind._make(values)
    made = object.__new__(kind)
    for field, value in zip(fields(kind), values, strict=True):
        object.__setattr__(made, field.name, value)
    return made


class Same:
    """A leaf that is compared by identity; it is not kept alive.

    Args:
        value: the leaf.

    Attributes:
        get: gives it; None once it is gone.
    """

    __slots__ = ("_number", "get")

    def __init__(self, value: Any):
        self._number = id(value)
        try:
            self.get: Callable[[], Any] = weakref.ref(value)
        except TypeError:  # a type without weak references
            self.get = lambda: value

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        mine = self.get()
        return isinstance(other, Same) and mine is not None and mine is other.get()
