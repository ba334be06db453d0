"""The plan caches of all ops: one table each, thinned together when there are too many plans, and dropped
together."""

from __future__ import annotations

from typing import Any

from ..tensors import dtypes

# Plans of all ops that are kept; past that every other one goes. Which were used last is not known: a call
# does not say that it used one. A program that goes round through more shapes than these finds some planned.
MOST_PLANS = 6144
tables: list[dict] = []
_kept, _most = [0], [MOST_PLANS]


def table_of_plans() -> dict:
    """A table for the plans of an op, of which plans go when there are too many."""
    made: dict = {}
    tables.append(made)
    return made


def keep_plan(plans: dict, key: Any, plan: Any) -> None:
    """Keep a plan, or the route of a call, in a table."""
    plans[key] = plan
    _kept[0] += 1
    if _kept[0] > _most[0]:
        # Counted anew: what is counted along may be off by what an interrupt kept from it.
        _kept[0] = sum(map(len, tables))
        if _kept[0] > _most[0]:
            thin_plans()


def thin_plans() -> None:
    """Let every other plan go, in the order in which they were made."""
    for plans in tables:
        for key in list(plans)[::2]:
            plans.pop(key, None)
    _kept[0] = sum(map(len, tables))


def forget_plans() -> None:
    """Drop every plan: launches of a closed device mean nothing to the next one, and rules may ask for the
    default dtype."""
    for plans in tables:
        plans.clear()


dtypes.changes.append(forget_plans)
