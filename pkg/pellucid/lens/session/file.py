"""Saved sessions: the tree of tokens and the plans they were read under, as JSON."""

from __future__ import annotations

import json
from typing import Any

from ...errors import FormatError
from ...weights.document import as_bytes, parse_object
from ...weights.fields import Field, check, listed, record, shown, text, whole
from ..plan import Plan

_FORMAT = "pellucid session 1"
_MOST = 1 << 20  # tokens, of four values each, and plans
_NODE = record({"id": whole(0), "parent": whole(-1), "plan": whole(0)}, "id", "parent", "plan")
_TABLE: dict[str, Field] = {
    "format": text(100),
    "model": record(
        {"type": text(200), "layers": whole(1), "dim": whole(1), "vocab": whole(1)},
        "type", "layers", "dim", "vocab",
    ),
    "plans": listed(text(1 << 28), _MOST),
    "nodes": listed(_NODE, _MOST),
    "at": whole(0),
    "plan": whole(0),
}  # fmt: skip


def shape_of(model: Any) -> dict[str, Any]:
    """What a session must agree with its model in."""
    c = model.config
    return {
        "type": type(model).__name__,
        "layers": c.num_hidden_layers,
        "dim": c.hidden_size,
        "vocab": c.vocab_size,
    }


def to_json(session: Any) -> str:
    """A session as text. Waits for the device."""
    plans = list(dict.fromkeys([session.plan, *(node.plan for node in session.tree)]))
    number = {plan: k for k, plan in enumerate(plans)}
    made = {
        "format": _FORMAT,
        "model": shape_of(session.model),
        "plans": [plan.to_json() for plan in plans],
        "nodes": [
            {"id": n.id, "parent": -1 if n.parent is None else n.parent.number, "plan": number[n.plan]}
            for n in session.tree
        ],
        "at": session.at.number,
        "plan": 0,
    }
    return json.dumps(made)


def read_json(kind: Any, source: str, model: Any) -> Any:
    """A session from its text.

    Args:
        kind: the class.
        source: what `to_json` made.
        model: the session's.

    Raises:
        FormatError: it is no session, or one of a model of another shape.
    """
    given = parse_object("Session", as_bytes(source), most=6 * _MOST, advice="Give what save wrote.")
    if given.get("format") != _FORMAT:
        raise FormatError(f"Session: this is no saved session; its format is not {_FORMAT!r}.")
    if missing := sorted(_TABLE.keys() - given.keys()):
        raise FormatError(f"Session: {missing[0]} is missing. The file is damaged.")
    check("Session", given, _TABLE)
    if given["model"] != (own := shape_of(model)):
        raise FormatError(
            f"Session: it is about a {shown(given['model'])}, and the model is a {own}. Load that model."
        )
    if empty := [name for name in ("nodes", "plans") if not given[name]]:
        raise FormatError(f"Session: {empty[0]} are empty. The file is damaged.")
    nodes, plans = given["nodes"], [Plan.from_json(plan) for plan in given["plans"]]
    for k, node in enumerate(nodes):
        # The first token alone may have no other before it; so may its versions that were changed.
        if node["parent"] >= k or node["plan"] >= len(plans) or node["id"] >= own["vocab"]:
            raise FormatError(f"Session: nodes[{k}] is {shown(node)}, which the tree cannot hold.")
    if nodes[0]["parent"] != -1 or given["at"] >= len(nodes) or given["plan"] >= len(plans):
        raise FormatError("Session: the tree has no such place to stand at. The file is damaged.")
    made = kind(model, [nodes[0]["id"]], plan=plans[nodes[0]["plan"]])
    for node in nodes[1:]:
        parent = made.tree[node["parent"]] if node["parent"] >= 0 else None
        made.tree.add(node["id"], parent, plans[node["plan"]])
    made.plan = plans[given["plan"]]
    made.go(given["at"])
    return made
