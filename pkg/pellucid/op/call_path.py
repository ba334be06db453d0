"""Writes the call path of each op as Python text, once at its declaration.

Nothing generic is left at call time.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..device import get_default_device
from ..tensors.meta import Meta
from ..tensors.tensor import Tensor
from .arguments import NUMBER_SECOND, aliases_of, number_last, renamed
from .plan_cache import table_of_plans
from .schema import Schema

_TENSORS = ("tensor", "optional", "operand", "tensors")


# In the place of an argument that is not given, where numpy's name, or an older place, may stand for it.
_NEEDED = object()


class Route:
    """In the place of a plan, of calls that are given to other declarations.

    Args:
        run: function of the op's arguments.
    """

    __slots__ = ("run",)

    def __init__(self, run: Callable):
        self.run = run


@dataclass
class _Parts:
    """Pieces of text that both forms of an op are made of.

    Args:
        parameters: of the ``def`` line.
        before: lines that find the kinds of operands.
        keys: expressions of the plan's key.
        nodes: by argument, whether a gradient is wanted of it.
        apart: by argument, whether it wants no gradient and shares no memory with the first one.
        names: all arguments.
    """

    parameters: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)
    names: str = ""

    @property
    def key(self) -> str:
        return self.keys[0] if len(self.keys) == 1 else f"({', '.join(self.keys)})"


# What the text of a call works with; arguments of ops have other names.
_NAMES = frozenset(
    (
        "AttributeError", "KeyError", "Meta", "Route", "Tensor", "TypeError", "again", "alone", "any", "bool",
        "check", "complex", "default_device", "float", "int", "into", "missing", "needed", "number_last", "o",
        "older", "plan", "plans", "record", "slow", "t", "tuple", "type", "words",
    )
)  # fmt: skip
_NUMBERED = re.compile(r"(c|k|p|s|slot|t|default_)\d+")


def is_taken(name: str) -> bool:
    """Whether an argument of this name would hide something in the text of a call or of its plan."""
    return name in _NAMES or _NUMBERED.fullmatch(name) is not None


def _parts(o: Schema, scope: dict[str, Any], operator: bool = False) -> _Parts:
    parts = _Parts(names=", ".join(a.name for a in o.arguments))
    first = o.arguments[0].name
    star = False
    for k, a in enumerate(o.arguments):
        name = a.name
        apart = f"{name}._node is None and {name}._storage is not {first}._storage"
        if a.keyword and not star and not operator:
            parts.parameters.append("*older" if o.name in NUMBER_SECOND else "*")
            star = True
        if a.keyword and operator:
            scope[name] = a.default
        elif a.default is inspect.Parameter.empty:
            parts.parameters.append(name)
        else:
            scope[f"default_{k}"] = a.default
            is_older = a.keyword and o.name in NUMBER_SECOND
            parts.parameters.append(f"{name}={'needed' if is_older else f'default_{k}'}")
        if a.role == "tensor":
            parts.keys.append(f"{name}._meta")
            parts.nodes.append(f"{name}._node is not None")
            parts.apart.append(apart)
        elif a.role == "optional":
            parts.keys.append(f"None if {name} is None else {name}._meta")
            parts.nodes.append(f"({name} is not None and {name}._node is not None)")
            parts.apart.append(f"({name} is None or {apart})")
        elif a.role == "operand":
            parts.before.append(f"k{k} = type({name})")
            # Each by itself: to look a class up in a set takes longer.
            others = " and ".join(f"k{k} is not {number.__name__}" for number in (float, int, bool, complex))
            parts.before.append(f"if k{k} is Tensor or {others} and {name} is not None: k{k} = {name}._meta")
            parts.keys.append(f"k{k}")
            parts.nodes.append(f"(type(k{k}) is Meta and {name}._node is not None)")
            parts.apart.append(f"(type(k{k}) is not Meta or {apart})")
        elif a.role == "tensors":
            parts.keys.append(f"tuple([t._meta for t in {name}])")
            parts.nodes.append(f"any([t._node is not None for t in {name}])")
            parts.apart.append("False")
        elif a.role in ("number", "dynamic"):
            parts.keys.append(f"type({name})")
        elif a.role == "static":
            parts.keys += [name, f"type({name})"] if a.typed else [name]
    if not any(a.role in _TENSORS for a in o.arguments):
        parts.keys.append("default_device()")
    return parts


def _scope(o: Schema, **more: Any) -> dict[str, Any]:
    return {
        "__name__": __name__,
        "o": o,
        "Meta": Meta,
        "Tensor": Tensor,
        "default_device": get_default_device,
        "check": o.check,
        "Route": Route,
        "needed": _NEEDED,
        **more,
    }


def call_path(o: Schema, slow: Callable, into: Callable | None, operator: bool = False) -> Callable:
    """The function that users call: build the key, find the plan, run it, record if a gradient is wanted.

    Args:
        o: the op.
        slow: ``slow(o, values)`` for calls that have no plan yet.
        into: ``into(o, out, values)`` for calls with ``out=``; None for ops that do not take it.
        operator: keyword arguments have their defaults: Python would look each up at every call.
    """
    scope = _scope(o, plans=o.plans, slow=slow, record=o.record, into=into)
    parts = _parts(o, scope, operator)
    parameters = list(parts.parameters)
    if into is not None:
        parameters += ["out=None"] if any(p[0] == "*" for p in parameters) else ["*", "out=None"]
    named = {} if operator else aliases_of(o.name, [a.name for a in o.arguments])
    needed = []
    if named or (o.alone and not operator):
        # Python would refuse a call without ``dim`` before it is known that ``axis`` is given.
        begin = min((k for k, a in enumerate(o.arguments) if a.name in named.values()), default=1)
        late = {a.name for a in o.arguments[begin:]}
        needed = [name for name in parameters if name in late]
        parameters = [f"{name}=needed" if name in late else name for name in parameters]
        scope.update(missing=_missing(o), alone=o.alone)
    if named:
        parameters.append("**words")
        scope["again"] = _again(o, named, into is not None)
    first, lone = o.arguments[0].name, o.alone is not None and not operator
    lines = [f"def {o.name}({', '.join(parameters)}):", *_older(o, parts, scope, into is not None)]
    if named:
        given = [*(a.name for a in o.arguments), *(["out"] if into is not None else [])]
        lines.append(f"    if words: return again(words, {', '.join(given)})")
    if into is not None:
        lines.append("    if out is not None:")
        lines += [f"        if {name} is needed: missing({name!r})" for name in needed]
        lines.append(f"        return into(o, out, ({parts.names},))")
    lines += [
        "    try:",
        *[f"        {line}" for line in parts.before],
        f"        plan = plans[{parts.key}]",
        "    except (KeyError, AttributeError, TypeError):",
        *([f"        if {needed[0]} is needed is {needed[1]}: return alone({first})"] if lone else []),
        *[f"        if {name} is needed: missing({name!r})" for name in needed],
        f"        return slow(o, ({parts.names},))",
    ]
    if o.prepare is not None:
        lines.append(f"    if type(plan) is Route: return plan.run({parts.names})")
    if o.check is not None:
        lines.append(f"    check({parts.names})")
    if o.grad is not None and parts.nodes:
        lines += [f"    if {' or '.join(parts.nodes)}:", f"        return record(plan, {parts.names})"]
    lines.append(f"    return plan({parts.names})")
    exec("\n".join(lines), scope)
    return scope[o.name]


def _older(o: Schema, parts: _Parts, scope: dict[str, Any], takes_out: bool = False) -> list[str]:
    """Lines for a call with more arguments by place than there are today; see `number_last`. The number is
    given by place or by keyword, so its default is put in only behind them."""
    if "*older" not in parts.parameters:
        return []
    scope["number_last"] = number_last
    name, self = ("o.public", "o.call") if takes_out else (repr(f"{o.public}_"), f"{o.name}_")
    before = ", ".join(a.name for a in o.arguments if not a.keyword)
    k, word = next((k, a.name) for k, a in enumerate(o.arguments) if a.keyword)
    more = f"{word!r}, {word} is needed{', out=out' if takes_out else ''}"
    return [
        f"    if older: return number_last({name}, {self}, ({before}, *older), {more})",
        f"    if {word} is needed: {word} = default_{k}",
    ]


def _again(o: Schema, named: dict[str, str], takes_out: bool) -> Callable:
    """Calls the op once more, with its own names of arguments in the place of numpy's."""
    names = [a.name for a in o.arguments] + ["out"] * takes_out
    defaults = {a.name: a.default for a in o.arguments}

    def again(words: dict[str, Any], *values: Any) -> Any:
        if unknown := [word for word in words if word not in named]:
            raise TypeError(f"{o.public}() got an unexpected keyword argument {unknown[0]!r}")
        given = {
            name: value
            for name, value in zip(names, values, strict=True)
            if value is not _NEEDED and value is not defaults.get(name)
        }
        return o.call(**renamed(o.public, named, {**given, **words}))

    return again


def _missing(o: Schema) -> Callable:
    def missing(name: str) -> NoReturn:
        raise TypeError(f"{o.public}() missing 1 required positional argument: {name!r}")

    return missing


def in_place_path(o: Schema, slow: Callable) -> tuple[Callable, dict]:
    """The in-place form: at once where no gradient and no shared memory is concerned, else through ``slow``.

    Args:
        o: the op.
        slow: ``slow(values)``, which also puts plans into the returned table.

    Returns:
        The function and its table of plans for the quick path.
    """
    plans = table_of_plans()
    scope = _scope(o, plans=plans, slow=slow)
    parts = _parts(o, scope)
    first = o.arguments[0].name
    quick = [f"{first}._node is None", f"{first}._base is None", *parts.apart[1:]]
    lines = [
        f"def {o.name}_({', '.join(parts.parameters)}):",
        *_older(o, parts, scope),
        "    try:",
        *[f"        {line}" for line in parts.before],
        f"        plan = plans[{parts.key}]",
        "    except (KeyError, AttributeError, TypeError):",
        f"        return slow(({parts.names},))",
        f"    if {' and '.join(quick)}:",
        *([f"        check({parts.names})"] if o.check is not None else []),
        f"        plan({parts.names})",
        f"        {first}._storage.version += 1",
        f"        return {first}",
        f"    return slow(({parts.names},))",
    ]
    exec("\n".join(lines), scope)
    return scope[f"{o.name}_"], plans
