"""The slow path of a call, which found no plan: prepare, make arguments regular, plan, run; and ``out=``."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..device import get_default_device, resolved
from ..errors import ArgumentError, PellucidError
from .arguments import named
from .call import written
from .call_path import Route
from .plan import run_followed
from .plan_cache import keep_plan
from .planning import Op
from .schema import overrides
from .symbols import SYMBOLS, moved, plain_of, settled

# What calls an op, and what writes its result in place, where an argument is an example of a batch: once
# `vmap` is there.
batched: tuple[Callable, Callable] | None = None
# Whether a call has types that webgpu only holds, what calls an op with them, and what writes its result in
# place: once they are let in (`wide.let_in`).
wide: tuple[Callable, Callable, Callable] | None = None


def has_batched(values: tuple) -> bool:
    """Whether an argument is an example of a batch, or a list with one."""
    return any(
        has_batched(tuple(v)) if isinstance(v, (list, tuple)) else getattr(v, "is_batched", False)
        for v in values
    )


def regular(o: Op, values: tuple) -> tuple:
    """The values of a call with every argument that is no tensor made regular.

    Raises:
        ArgumentError, RangeError: one of them is not what its annotation says.
    """
    found = []
    for a, value in zip(o.arguments, values, strict=True):
        # Readers settle symbols; launches, and views that say how, may follow them.
        if type(value) in SYMBOLS and (a.role != "static" or o.follow is not None):
            pass
        elif a.read is not None:
            value = a.read(value, a.name)
        elif a.role == "static":
            value = settled(tuple(value) if type(value) is list else value)
        found.append(value)
    return tuple(found)


def plain_numbers(o: Op, values: tuple) -> tuple:
    """The values of a call with plain numbers for the symbols of a call that is recorded: settled where it
    runs on no webgpu."""
    flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else (value,))]
    metas = [t._meta for t in flat if hasattr(t, "_meta")]
    if metas:
        device = metas[0].device
    else:
        given = [v for a, v in zip(o.arguments, values, strict=True) if a.name == "device" and v is not None]
        device = resolved(given[0]) if given else get_default_device()
    return tuple(map(plain_of if device.type == "webgpu" else settled, values))


def following(plan: Callable, values: tuple, plain: tuple) -> Callable:
    """A plan whose launches follow the symbols among its values.

    Args:
        plan: made for plain numbers.
        values: of the call.
        plain: these with plain numbers.
    """
    if (look := getattr(plan, "look", None)) is not None:
        look(values)  # what symbols are compared with becomes a condition
    if (run := getattr(plan, "followed", None)) is not None:
        return lambda *_: run(values, plain)
    if (numbers := getattr(plan, "numbers", None)) is not None:
        return lambda *_: run_followed(plan, numbers, values, plain)
    for value in values:
        settled(value)
    return lambda *_: plan(*plain)


def _view(o: Op, values: tuple) -> tuple[tuple, Callable]:
    """A view whose bounds are symbols, which its offset follows."""
    assert o.follow is not None
    values, begin = o.follow(*values)
    plain = tuple(map(plain_of, values))
    plan = _planned(o, plain)

    def run(*_):
        view = plan(*plain)
        view._offset = moved(view._offset, begin)
        return view

    return values, run


def call_slowly(o: Op, values: tuple) -> Any:
    """A call that found no plan, or asks for none since a key settles symbols: prepare, make arguments
    regular, plan, keep the plan, run."""
    if (found := overrides.find(values)) is not None:
        return overrides.of_op(o, o.call, values, found)
    if batched is not None and has_batched(values):
        return batched[0](o, values)
    if wide is not None and wide[0](o, values):
        return wide[1](o, values)
    if o.prepare is not None and (done := _prepared(o, o.prepare, values)) is not None:
        return done
    try:
        values = regular(o, values)
        if SYMBOLS.isdisjoint(map(type, values)):
            plan = _planned(o, values)
        elif o.follow is not None:
            values, plan = _view(o, values)
        else:
            plain = plain_numbers(o, values)
            plan = following(_planned(o, plain), values, plain)
    except PellucidError as error:
        raise named(o.public, error) from None
    if o.check is not None:
        o.check(*values)
    if o.grad is not None and o.any_node(values):
        # Formulas ask symbols as well, so these are what is saved.
        return o.record(plan, *values)
    return plan(*values)


def _prepared(o: Op, prepare: Callable, values: tuple) -> Any:
    """What `prepare` makes of a call, or None. The next call of this key goes there at once, or where
    `route` says."""
    try:
        done = prepare(*values)
    except AttributeError:
        try:
            o.key(values)  # refuses what is no tensor
        except PellucidError as error:
            raise named(o.public, error) from None
        raise
    except PellucidError as error:
        # Other ops have put their names before theirs.
        raise error if re.match(r"\w+(\(\))?: ", str(error)) else named(o.public, error) from None
    # A key never holds a tensor, which would live as long.
    held = any(a.role == "static" and hasattr(v, "_meta") for a, v in zip(o.arguments, values, strict=True))
    if done is not None and not held and SYMBOLS.isdisjoint(map(type, values)):
        with suppress(TypeError):
            run = None if o.route is None else o.route(*values)
            keep_plan(o.plans, o.key(values), Route(run or prepare))
    return done


def _planned(o: Op, values: tuple) -> Callable:
    key = o.key(values)
    try:
        plan = o.plans.get(key)
    except TypeError as error:  # something that cannot be part of a key
        raise ArgumentError(str(error)) from None
    if plan is None:
        plan = o.plan(values)
        keep_plan(o.plans, key, plan)
    return plan


def call_into(o: Op, out: Any, values: tuple) -> Any:
    """A call with ``out=``; see `written`."""
    if (found := overrides.find((*values, out))) is not None:
        return overrides.of_op(o, o.call, values, found, out=out)
    return written(o.public, out, call_slowly(o, values), values)
