"""The walk through the graph: nodes in reverse order of recording, gradients added where several meet."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .edges import LEAF, edge
from .grad_mode import set_grad_enabled

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .nodes import Node


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
    """Walk from the roots in reverse order of recording.

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

    def send(target: Any, g: Tensor) -> None:
        if isinstance(target, tuple):
            node, index = target
            slots = pending.get(node)
            if slots is None:
                slots = pending[node] = [None] * len(node.outputs)
                heapq.heappush(order, (-node.sequence, node))
            slots[index] = g if slots[index] is None else slots[index] + g
        else:
            found = leaves.setdefault(id(target), [target, None])
            found[1] = g if found[1] is None else found[1] + g

    with set_grad_enabled(create_graph):
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
                        t.grad = g
                    for place in wanted.get((node, k), ()):
                        results[place] = g
            for name, g in node.gradients(grads, create_graph).items():
                targets = node.edges[name]
                pairs = zip(targets, g, strict=True) if isinstance(targets, list) else ((targets, g),)
                for (target, m), part in pairs:
                    if target is not None and part is not None:
                        if part._meta is not m:
                            part = sum_to(part, m.shape)
                            part = part if part._meta.dtype is m.dtype else part.to(m.dtype)
                        send(target, part)
            if not keep_saved:
                node.released = bool(node.saved)
                node.saved = {}
        handed: set[int] = {id(g._storage) for _, g in roots}
        for leaf, g in leaves.values():
            for hook in list((leaf._hooks or {}).values()):
                g = _hooked(hook, g)
            if inputs is not None:
                for place in wanted.get((id(leaf),), ()):
                    results[place] = g
                continue
            if leaf.grad is None:
                # Two leaves must never share memory, nor a leaf and a view: later in-place changes would show
                # in both.
                if not create_graph and (
                    not g._meta.is_contiguous
                    or id(g._storage) in handed
                    or g._meta.nbytes != g._storage.nbytes
                ):
                    g = g.clone()
                handed.add(id(g._storage))
                leaf.grad = g
            elif create_graph:
                leaf.grad = leaf.grad + g
            else:
                leaf.grad.add_(g)
    return results


def _hooked(hook: Any, g: Tensor) -> Tensor:
    changed = hook(g)
    return g if changed is None else changed


__all__ = ["sum_to", "walk"]
