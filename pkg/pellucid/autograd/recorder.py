"""Recording: the function of each op that runs a plan and hangs its results into the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import GradientError
from ..op.schema import Schema
from ..tensors.dtypes import DType
from ..tensors.tensor import Tensor
from .edges import LEAF, edge
from .engine import CompositeNode
from .grad_mode import grad_enabled
from .nodes import Node, Saved, keep_result, save


def recorder(o: Schema) -> Any:
    """The function ``record(plan, *arguments)`` that runs a plan and, if gradients are wanted, hangs the
    results into the graph.

    Written per op at its declaration, like its call path: which arguments have edges and which values are
    saved is known then.
    """
    if o.grad is None or o.grad == "composite" or any(a.role == "tensors" for a in o.arguments):

        def record(plan, *values):
            out = plan(*values)
            if o.grad is not None and grad_enabled.get():
                _attach(o, values, out)
            return out

        return record
    names = [a.name for a in o.arguments]
    roles = {a.name: a.role for a in o.arguments}
    results = [f"out[{k}]" for k in range(len(o.outputs))] if o.result else ["out"]
    lines = [
        f"def record(plan, {', '.join(names)}):",
        f"    out = plan({', '.join(names)})",
        f"    if not enabled() or {results[0]}._meta.dtype.kind not in 'fc':",
        *([f"        check_value({o.public!r}, value, out._meta.dtype)"] if "value" in o.grad else []),
        "        return out",
        "    edges = {}",
    ]
    for name in o.grad:
        node = f"{name}._node" if roles[name] == "tensor" else f"getattr({name}, '_node', None)"
        lines += [
            f"    below = {node}",
            "    if below is not None:",
            f"        edges[{name!r}] = ({name} if below is LEAF else (below, {name}._index), {name}._meta)",
        ]
    lines += ["    if not edges:", "        return out", "    saved = {}"]
    wanted = {w: [k for k, (_, names_of) in o.grad.items() if w in names_of] for w in o.saved}
    after = []
    for w, users in sorted(wanted.items()):
        condition = (
            "" if len(users) == len(o.grad) == 1 else f"if {' or '.join(f'{u!r} in edges' for u in users)}: "
        )
        source = w.removesuffix("_meta")
        if w in o.outputs:
            after.append(
                f"    {condition}keep_result(node, {w!r}, {results[o.outputs.index(w)]}, "
                f"{o.outputs.index(w)})"
            )
        elif w not in roles:
            lines.append(f"    {condition}saved[{w!r}] = getattr({source}, '_meta', None)")
        elif roles[w] == "tensor":
            lines.append(f"    {condition}saved[{w!r}] = Saved({w})")
        elif roles[w] in ("operand", "optional"):
            lines.append(f"    {condition}saved[{w!r}] = Saved({w}) if hasattr({w}, '_node') else {w}")
        else:
            lines.append(f"    {condition}saved[{w!r}] = {w}")
    lines.append("    node = Node(o, edges, saved)")
    lines.append(f"    node.outputs = ({', '.join(f'{r}._meta' for r in results)},)")
    lines += after
    for k, r in enumerate(results):
        if k:
            lines.append(f"    if {r}._meta.dtype.kind in 'fc': {r}._node, {r}._index = node, {k}")
        else:
            lines.append(f"    {r}._node = node")
    lines.append("    return out")
    scope: dict[str, Any] = {
        "enabled": grad_enabled.get,
        "LEAF": LEAF,
        "Saved": Saved,
        "Node": Node,
        "keep_result": keep_result,
        "check_value": check_value,
        "o": o,
    }
    exec("\n".join(lines), scope)
    return scope["record"]


def check_value(where: str, value: Any, d: DType) -> None:
    """Refuse a value whose gradient integers would lose that are filled with it.

    Raises:
        GradientError: the value requires grad, and the dtype takes no gradient.
    """
    if grad_enabled.get() and d.kind not in "fc" and getattr(value, "_node", None) is not None:
        raise GradientError(
            f"{where}: the value requires grad, and {d} takes no gradient. Give value.detach(), or convert "
            "the tensor with .float()."
        )


def _attach(o: Schema, values: tuple, out: Any) -> None:
    """Hang fresh results into the graph."""
    results = out if o.result else (out,)
    if results[0]._meta.dtype.kind not in "fc":
        return
    node = prepare(o, values)
    if not node.edges:
        return
    finish(node, results)
    for k, t in enumerate(results):
        if t._meta.dtype.kind in "fc":
            t._node, t._index = node, k


def prepare(o: Schema, values: tuple) -> Node:
    """The node of a call, before its results exist."""
    edges: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    composite = o.grad == "composite"
    for a, value in zip(o.arguments, values, strict=True):
        inputs[a.name] = value
        if not composite and a.name not in o.grad:
            continue
        if a.role == "tensors":
            found = [(edge(t), t._meta) for t in value]
            if any(e is not None for e, _ in found):
                edges[a.name] = found
        elif isinstance(value, Tensor) and value._node is not None:
            edges[a.name] = (edge(value), value._meta)
    if composite:
        wanted = set(inputs)
    else:
        wanted = set().union(*(o.grad[name][1] for name in edges)) if edges else set()
    saved: dict[str, Any] = {}
    for name in wanted:
        source = name.removesuffix("_meta")
        if source != name and source in inputs:
            value = inputs[source]
            saved[name] = (
                value._meta
                if isinstance(value, Tensor)
                else [t._meta for t in value]
                if isinstance(value, (list, tuple))
                else None
            )
        elif name in inputs:
            saved[name] = save(inputs[name])
    return CompositeNode(o, edges, saved) if composite else Node(o, edges, saved)


def finish(node: Node, results: Sequence[Tensor]) -> None:
    """Tell a node its results, and save those that its formulas need."""
    node.outputs = tuple(t._meta for t in results)
    o = node.op
    if o.grad == "composite":
        return
    for k, name in enumerate(o.outputs):
        if any(name in o.grad[i][1] for i in node.edges):
            keep_result(node, name, results[k], k)


__all__ = ["check_value", "finish", "prepare", "recorder"]
