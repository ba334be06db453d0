"""What Python code names: globals, attributes and modules that it may ask for when it runs."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import resolve_name
from types import CodeType
from typing import Any

# Stands for all attributes of objects, where code takes such that it does not name, with one of these names.
ALL = "*"
_TAKING = frozenset({"vars", "__dict__", "asdict", "astuple", "attrgetter"})


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those within it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _codes(constant)


@lru_cache(1024)
def names_of(code: CodeType) -> tuple[set[str], set[str], set[str]]:
    """Globals, attributes and modules that code names. A text may name an attribute, as in ``getattr``;
    modules begin with dots where the import is relative."""
    variables, attributes, modules = set(), set(), set()
    for each in _codes(code):
        asks = False  # `getattr`, of a name that is not known yet
        level, last = 0, None  # an import has its number of dots and its names before it
        for step in dis.get_instructions(each):
            if step.opname == "EXTENDED_ARG":
                continue
            if step.opcode in dis.hasname:
                is_global = "GLOBAL" in step.opname or step.opname == "LOAD_NAME"
                kind = variables if is_global else modules if step.opname == "IMPORT_NAME" else attributes
                dots = "." * level if kind is modules and type(level) is int else ""
                kind.add(dots + step.argval)
                asks |= step.argval == "getattr"
            elif type(step.argval) is str and step.opname == "LOAD_CONST":
                attributes.add(step.argval)
                asks = False
            elif asks and "CALL" in step.opname:
                attributes.add(ALL)
            level, last = last, step.argval
    if not _TAKING.isdisjoint(variables | attributes):
        attributes.add(ALL)
    return variables, attributes, modules


def absolute(name: str, variables: dict[str, Any]) -> str:
    """The whole name of a module, as a function with these globals imports it."""
    try:
        return resolve_name(name, variables.get("__package__"))
    except ImportError:  # it is in no package, so that the import fails
        return name
