"""Texts that go on in several ways: branches of tokens, and steering along a direction or a feature."""

import dataclasses
from typing import Any

from helpers import continued

import pellucid as torch
from pellucid import lens


async def branches(
    model: Any, names: Any, ids: list[int], steps: list[tuple[int, int, str]], at: int
) -> dict[str, Any]:
    """The tree of tokens that were tried, the text of each branch, and what follows the token ``at``.

    Each step goes on from a token, by its number, with another one, read under a plan (as JSON, or empty).
    """
    session = lens.Session(model, ids)
    for number, token, plan in steps:
        session.go(number)
        session.plan = lens.Plan.from_json(plan) if plan else lens.Plan()
        await session.token_async(token)
    nodes = [
        {
            "number": node.number,
            "parent": node.parent.number if node.parent else -1,
            "token": names.name(node.id),
            "changed": bool(node.plan.changes),
        }
        for node in session.tree
    ]
    session.go(at)
    return {
        "nodes": nodes,
        "at": at,
        "texts": ["".join(names(node.id for node in leaf.path)) for leaf in session.tree.leaves()],
        "next": names.candidates(await session.candidates_async(5)),
    }


async def steering(
    model: Any,
    names: Any,
    ids: list[int],
    positive: str,
    negative: str,
    layer: int,
    strength: float,
    count: int,
) -> dict[str, Any]:
    """How a text goes on, and how it does pushed from what one text is about to what another is.

    The direction is the difference of both texts' states at a layer's end; its length is a share of theirs.
    """
    point, texts = f"resid_post.{layer}", [names.tokenizer.encode(text) for text in (positive, negative)]
    vector = lens.difference_of_means(model, *([text] for text in texts), point, normed=True)
    change = {"point": point, "method": "add", "value": vector, "strength": strength, "relative": True}
    plan = lens.Plan(steer=[change] if strength else [])
    return {
        "without": await continued(model, names, ids, lens.Plan(), count),
        "steered": await continued(model, names, ids, plan, count),
    }


async def feature(
    model: Any,
    names: Any,
    coder: Any,
    ids: list[int],
    point: str,
    number: int,
    strength: float,
    count: int,
) -> dict[str, Any]:
    """How a text goes on, and how it does with a feature of a sparse coder added to the states at a point."""
    plan = lens.Plan(steer=[coder.steer(point, number, strength)])
    return {
        "without": await continued(model, names, ids, lens.Plan(), count),
        "steered": await continued(model, names, ids, plan, count),
    }


async def steps_of(session: lens.Session, begun: int) -> list[tuple[int, int, str]]:
    """What `branches` makes of a session's first tokens to have its tree."""
    known: dict[lens.Plan, str] = {}
    steps = []
    for node in session.tree:
        if node.number < begun:
            continue
        if node.plan not in known:
            known[node.plan] = await _json(node.plan) if node.plan.changes else ""
        steps.append((node.parent.number, node.id, known[node.plan]))
    return steps


async def plans_of(path: list[Any]) -> list[list[Any]]:
    """Where on a way through the tree another plan begins, with its JSON; the first token has none."""
    plans, last = [], lens.Plan()
    for position, node in list(enumerate(path))[1:]:
        if node.plan is not last and (node.plan.changes or last.changes):
            plans.append([position, await _json(node.plan)])
        last = node.plan
    return plans


async def _json(plan: lens.Plan) -> str:
    """A plan as JSON, its values read without blocking."""
    groups = {
        name: [await _here(change) for change in getattr(plan, name)] for name in ("patch", "steer", "ablate")
    }
    return lens.Plan(**groups).to_json()


async def _here(change: Any) -> Any:
    values = {name: getattr(change, name) for name in ("value", "other")}
    moved = {
        name: torch.tensor(await value.detach().numpy_async(), device="cpu")
        for name, value in values.items()
        if isinstance(value, torch.Tensor)
    }
    return dataclasses.replace(change, _known={}, **moved)
