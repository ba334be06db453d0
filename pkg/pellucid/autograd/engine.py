"""The walk through the graph: nodes in reverse order of recording, gradients added where several meet. And
the node of an op whose gradient is a walk through its definition."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, cast

from ..errors import ArgumentError, GradientError
from ..op.schema import OPS
from ..tensors.meta import Meta, differences
from ..tensors.tensor import Tensor
from .edges import LEAF, TOLD, edge, told_by
from .grad_mode import grad_enabled, under
from .nodes import AFTER, BEFORE, Node, behind, freed, targets, unpack

# While anomalies are looked for: runs a node and looks at its gradients; see `anomaly`.
anomalies: list[Callable[[Node, list, bool], dict[str, Any]]] = []
# The walk that runs: its roots, the nodes with a way to what is wanted of it, and that.
walking: ContextVar[tuple[list, set[Node] | None, set] | None] = ContextVar("walking", default=None)


def sum_to(g: Tensor, shape: Sequence[int]) -> Tensor:
    """Undo broadcasting: sum a gradient to the shape of the input that it belongs to."""
    have = g._meta.shape
    if have == tuple(shape):
        return g
    if len(have) < len(shape):  # an assigned value may have leading axes of length 1 that its place has not
        return sum_to(g.reshape((1,) * (len(shape) - len(have)) + tuple(have)), shape)
    lead = len(have) - len(shape)
    dims = list(range(lead)) + [k + lead for k, n in enumerate(shape) if n == 1 and have[k + lead] != 1]
    if dims:
        g = g.sum(tuple(dims), keepdim=True)
    return g.reshape(tuple(shape))


def walk(
    roots: list[tuple[Tensor, Tensor]], inputs: list[Tensor] | None, keep_saved: bool, create_graph: bool
) -> list[Tensor | None]:
    """Walk from the roots in reverse order of recording, with ``inputs`` only where a way leads to one of
    them.

    Args:
        roots: tensors and their gradients.
        inputs: whose gradients are wanted; without them gradients are added to ``.grad`` of the leaves.
        keep_saved: keep what nodes saved for another walk.
        create_graph: record the walk.

    Returns:
        The gradients of ``inputs``, None for those that were not reached.
    """
    pending: dict[Node, list] = {}
    leaves: dict[int, list] = {}
    order: list[tuple[int, Node]] = []
    wanted: dict[tuple, list[int]] = {}
    results: list[Tensor | None] = [None] * len(inputs or [])
    for k, t in enumerate(inputs or []):
        wanted.setdefault((id(t),) if t._node is LEAF else (t._node, t._index), []).append(k)
    ends = {place[0] for place in wanted}
    passing = _leading([t._node for t, _ in roots if t._node is not LEAF], ends) if wanted else None

    def send(target: Any, g: Tensor) -> None:
        if isinstance(target, tuple):
            node, index = target
            if passing is not None and node not in passing and node not in ends:
                return
            slots = pending.get(node)
            if slots is None:
                slots = pending[node] = [None] * len(node.outputs)
                heapq.heappush(order, (-node.sequence, node))
            slots[index] = g if slots[index] is None else slots[index] + g
        else:
            found = leaves.setdefault(id(target), [target, None])
            found[1] = g if found[1] is None else found[1] + g

    mode, outer = grad_enabled.get(), walking.get()
    try:  # as `under` does
        walking.set((roots, passing, ends))
        grad_enabled.set(create_graph)
        for t, g in roots:
            send(edge(t), g)
        while order:
            node = heapq.heappop(order)[1]
            grads = pending.pop(node)
            if node.hooks or node.retained or wanted:
                for k, g in enumerate(grads):
                    if g is None:
                        continue
                    for hook in list((node.hooks or {}).get(k, {}).values()):
                        g = _hooked(hook, g)
                    grads[k] = g
                    if node.retained and (t := node.retained.get(k, lambda: None)()) is not None:
                        t._grad = g
                    for place in wanted.get((node, k), ()):
                        results[place] = g
            if passing is not None and node not in passing:
                continue
            watched = node.hooks or {}
            if BEFORE in watched:
                for hook in list(watched[BEFORE].values()):
                    grads = _replaced(grads, hook(tuple(grads)))
            if anomalies:
                found = anomalies[-1](node, grads, create_graph)
            else:
                found = node.gradients(grads, create_graph)
            if AFTER in watched:
                found = _seen(node, found, grads)
            for name, g in found.items():
                targets = node.edges[name]
                pairs = zip(targets, g, strict=True) if isinstance(targets, list) else ((targets, g),)
                for (target, m), part in pairs:
                    if target is not None and part is not None:
                        send(target, part if part._meta is m else _fitted(part, m))
            if not keep_saved:
                node.released = bool(node.saved)
                node.saved = told_by(node) if node.public in TOLD else {}
        handed: set[int] = {id(g._storage) for _, g in roots} if inputs is None else set()
        for leaf, g in leaves.values():
            if wanted and (id(leaf),) not in wanted:
                continue
            for hook in list((leaf._hooks or {}).values()):
                g = _hooked(hook, g)
            if inputs is not None:
                for place in wanted.get((id(leaf),), ()):
                    results[place] = g
                continue
            if leaf._grad is None:
                # Two leaves must never share memory, nor a leaf and a view: later in-place changes would show
                # in both.
                if not create_graph and (
                    not g._meta.is_contiguous
                    or id(g._storage) in handed
                    or g._meta.nbytes != g._storage.nbytes
                ):
                    g = g.clone()
                handed.add(id(g._storage))
                leaf._grad = g
            elif create_graph:
                leaf._grad = leaf._grad + g
            else:
                leaf._grad.add_(g)
            call_after(leaf)
    finally:
        grad_enabled.set(mode)
        walking.set(outer)
    return results


def reached() -> set[Any]:
    """The nodes that the walk that runs comes to, and the identities of the leaves whose gradients it has."""
    roots, passing, ends = walking.get() or ([], None, set())
    found: set[Any] = set()
    for at in {id(t._node): t for t, _ in roots}.values():
        found |= (
            {id(at)} if at._node is LEAF else {n if isinstance(n, Node) else id(n) for n in behind(at._node)}
        )
    return found if passing is None else found & (passing | ends)


def _fitted(part: Tensor, m: Meta) -> Tensor:
    """A gradient as that of an input of a layout: summed where it was broadcast, and converted."""
    part = sum_to(part, m.shape)
    # What stands for floats in fewer bits has the gradient of these.
    if part._meta.dtype is not m.dtype and m.dtype.kind != "q":
        part = OPS["cast"].call(part, m.dtype)
    return part


def _replaced(grads: list, changed: Any) -> list:
    """The gradients that a hook of a node leaves.

    Raises:
        GradientError: it returned too few or too many.
    """
    if changed is None:
        return grads
    made = list(changed) if isinstance(changed, (tuple, list)) else [changed]
    if len(made) != len(grads):
        raise GradientError(f"a hook of a node returned {len(made)} gradients, and there are {len(grads)}.")
    return made


def _seen(node: Node, found: dict[str, Any], grads: list) -> dict[str, Any]:
    """The gradients of the inputs that the hooks of a node leave."""
    places = node.places()
    made: list = []
    for name, k, target, m in places:
        part = found.get(name) if k is None else (found.get(name) or {k: None})[k]
        made.append(None if target is None or part is None else _fitted(part, m))
    for hook in list((node.hooks or {})[AFTER].values()):
        made = _replaced(made, hook(tuple(made), tuple(grads)))
    result: dict[str, Any] = {}
    for (name, k, *_), part in zip(places, made, strict=True):
        if k is None:
            result[name] = part
        else:
            result.setdefault(name, [None] * len(node.edges[name]))[k] = part
    return {name: part for name, part in result.items() if name in node.edges}


def call_after(leaf: Tensor) -> None:
    """Call what was registered to follow the addition to a leaf's ``.grad``."""
    for hook in list((leaf._after or {}).values()):
        hook(leaf)


def _hooked(hook: Any, g: Tensor) -> Tensor:
    """The gradient that a hook leaves.

    Raises:
        TypeError: it returned something else than None or a tensor.
        GradientError: its tensor cannot take the gradient's place.
    """
    changed = hook(g)
    if changed is None:
        return g
    name = getattr(hook, "__qualname__", type(hook).__name__)
    if not isinstance(changed, Tensor):
        raise ArgumentError(
            f"register_hook: the hook {name} must return None or a Tensor, not {type(changed).__name__}"
        )
    if different := differences(changed._meta, g._meta):
        raise GradientError(
            f"register_hook: the hook {name} returned a gradient of {different}. Return one like the "
            "gradient that it was given."
        )
    return changed


def _leading(roots: Iterable[Node], ends: set[Any]) -> set[Node]:
    """The nodes from which a way goes on to one of some ends, which are nodes or identities of leaves.

    Nodes that were recorded before all of the ends cannot, so a walk within a long graph looks at its own
    part only.
    """
    nodes = [end for end in ends if isinstance(end, Node)]
    first = min(n.sequence for n in nodes) if len(nodes) == len(ends) else 0
    found: set[Node] = set()
    seen: set[Node] = set()
    todo = [(node, False) for node in roots]
    while todo:
        at, done = todo.pop()
        if done:
            if any(
                (t[0] in ends or t[0] in found) if isinstance(t, tuple) else id(t) in ends
                for t in targets(at)
            ):
                found.add(at)
        elif at not in seen:
            seen.add(at)
            todo.append((at, True))
            todo += [(t[0], False) for t in targets(at) if isinstance(t, tuple) and t[0].sequence >= first]
    return found


class CompositeNode(Node):
    """An op that is differentiated through its definition, at the inputs that it saved."""

    __slots__ = ()

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        if grads[0] is None:
            return {}
        if self.released:
            raise freed(self.public)
        o = self.op
        args = {a.name: unpack(self.saved[a.name], self, a.name, keep_graph) for a in o.arguments}
        wanted: list[tuple[str, Tensor]] = []
        for name in self.edges:
            for k, t in enumerate(args[name]) if isinstance(args[name], list) else [(None, args[name])]:
                if keep_graph and t._node is not None:
                    # A new handle on the same value: the gradient stops here although the graph goes on.
                    t = t.view_as(t)
                else:
                    t = t.detach()
                    t._node = LEAF
                if k is None:
                    args[name] = t
                else:
                    args[name][k] = t
                wanted.append((name, t))
        positional = [args[a.name] for a in o.arguments if not a.keyword]
        named = {a.name: args[a.name] for a in o.arguments if a.keyword}
        out = under(True, cast(Callable, o.composite), *positional, **named)
        outputs = list(out) if isinstance(out, tuple) else [out]
        roots = [(t, g) for t, g in zip(outputs, grads, strict=True) if g is not None and t._node is not None]
        results = walk(roots, [t for _, t in wanted], keep_graph, keep_graph)
        found: dict[str, Any] = {}
        for (name, _), g in zip(wanted, results, strict=True):
            if isinstance(args[name], list):
                found.setdefault(name, []).append(g)
            else:
                found[name] = g
        return found


__all__ = ["CompositeNode", "anomalies", "call_after", "reached", "sum_to", "walk", "walking"]
