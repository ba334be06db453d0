"""The schema of an op: what its declaration says, as the rooms below `declaration` read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .arguments import Reader
from .plan_cache import table_of_plans


@dataclass(frozen=True)
class Argument:
    """One parameter of a declaration and the role that its annotation gives it.

    Args:
        name: as in the declaration.
        role: tensor, optional, operand, tensors, number, dynamic or static.
        default: as in the declaration.
        keyword: whether it is given by name only.
        read: makes a value regular, or refuses it; None where there is nothing to do.
        typed: whether the value's type is part of a plan's key: 1, 1.0 and True are equal.
    """

    name: str
    role: str
    default: Any
    keyword: bool
    read: Reader | None = None
    typed: bool = False


@dataclass
class Schema:
    """What a declaration says; `op` explains its fields. ``call`` is the function that users call."""

    name: str
    function: Callable
    arguments: tuple[Argument, ...]
    dtype: Callable
    shape: Callable | None
    kernel: Any
    reference: Callable | None
    view: Callable | None
    composite: Callable | None
    grad: Any
    outputs: tuple[str, ...]
    strided: frozenset[str]
    mutates: str | None
    index: int
    plans: dict = field(default_factory=table_of_plans)
    call: Callable = field(default=lambda: None, repr=False)
    record: Callable = field(default=lambda: None, repr=False)
    saved: frozenset[str] = frozenset()
    result: type | None = None
    # All arguments that the kernel writes into; ``mutates`` is the first of them.
    mutated: tuple[str, ...] = ()
    public: str = ""
    check: Callable | None = None
    follow: Callable | None = None
    exact: tuple[str, ...] = ()
    fits: tuple[str, ...] = ()


# Every declared op by name.
OPS: dict[str, Schema] = {}
