"""Where tensors stand in the graph: edges to nodes and to leaves, and views, which move when their base is
written. The class of tensors is made with it, so tensors are `Any` here."""

from __future__ import annotations

import weakref
from typing import Any

# Stands for the node of a tensor that requires grad and was not computed. The graph's edge to it is the
# tensor itself.
LEAF: Any = type("Leaf", (), {"__repr__": lambda self: "LEAF"})()
# Grows when a tensor that exists is given other memory, another layout or place in the graph, or a hook.
version = 0


def note_change() -> None:
    """Note, before it happens, that a tensor becomes another one, whatever its values."""
    global version
    version += 1


def edge(t: Any) -> Any:
    """Where a gradient for ``t`` goes."""
    node = t._node
    if node is None:
        return None
    return t if node is LEAF else (node, t._index)


class ViewReference(weakref.ref):
    """A weak reference that is found by itself: those of Python ask their tensor for its hash, in Python."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def note_view(base: Any, view: Any) -> None:
    """Let a tensor know its views: their places in the graph change when it is written in place."""
    views = base._views
    if views is None:
        base._views = views = {}
    views[ViewReference(view, views.pop)] = None


def views_of(base: Any) -> list[Any]:
    """The views of a tensor that are alive and were taken where ops record."""
    return [v for found in list(base._views or ()) if (v := found()) is not None]


__all__ = ["LEAF", "edge", "note_change", "note_view", "views_of"]
