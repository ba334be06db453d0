"""Nodes of the graph: one recorded op each, with the formulas of its derivative."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..errors import GradientError
from ..tensors.meta import Meta
from .edges import LEAF
from .engine import walk
from .grad_mode import under
from .saved import unpack

if TYPE_CHECKING:
    from ..op.declaration import Op
    from ..tensors.tensor import Tensor

# Whose formulas also hold where results are complex, as those of views do; others lack a conjugate.
_COMPLEX = frozenset(
    {"cast", "add", "sub", "neg", "sum", "mean", "clone", "copy", "cat", "where", "masked_fill"}
)

# Gives every node its number; the walk goes from the last to the first.
sequence = itertools.count()


class Node:
    """One recorded op: what its formulas need, and where the gradients of its inputs go.

    An edge is a leaf tensor, a (node, output index) pair, or None. Where no op is declared, something stands
    for one that has the attributes of an op that a walk reads.
    """

    __slots__ = (
        "__weakref__",
        "edges",
        "hooks",
        "op",
        "outputs",
        "released",
        "retained",
        "saved",
        "sequence",
    )

    def __init__(self, o: Any, edges: dict[str, Any], saved: dict[str, Any]):
        self.op: Op = o
        self.edges = edges
        self.saved = saved
        self.sequence = next(sequence)
        self.outputs: tuple[Meta, ...] = ()
        self.hooks: dict[int, dict] | None = None
        self.retained: dict[int, weakref.ref] | None = None
        self.released = False

    @property
    def public(self) -> str:
        """The name of the op, or of what stands for one in the graph, as users know it."""
        return getattr(self.op, "public", self.op.name)

    def name(self) -> str:
        """The node's name as PyTorch prints it, such as AddBackward0."""
        return "".join(part.capitalize() for part in self.public.split("_")) + "Backward0"

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        """The gradients of the inputs from those of the results, of which some may be None.

        Raises:
            GradientError: what was saved was freed or changed, or the result is complex and the op has no
                formula for that.
        """
        if grads[0] is None:  # only results without a derivative were used
            return {}
        if self.released:
            raise freed(self.public)
        o = self.op
        if self.outputs[0].dtype.is_complex and o.name not in _COMPLEX and getattr(o, "view", None) is None:
            raise GradientError(
                f"{self.public}: has no derivative for complex results. Work on real and imaginary parts, or "
                "detach what is complex."
            )
        if o.grad == "composite":
            return _composite_gradients(self, grads, keep_graph)

        found = {}
        for name in self.edges:
            formula, wanted = o.grad[name]
            values = []
            for w in wanted:
                if w == "g":
                    values.append(grads[0])
                elif w == "needs":
                    values.append(frozenset(self.edges))
                else:
                    values.append(unpack(self.saved[w], self, w, keep_graph))
            found[name] = formula(*values)
        return found

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def freed(where: str) -> GradientError:
    """The error of a second walk through a graph that the first one freed."""
    return GradientError(
        f"{where}: backward a second time through a graph whose saved values were freed. "
        "Give retain_graph=True to the first backward."
    )


def _composite_gradients(node: Node, grads: list, keep_graph: bool) -> dict[str, Any]:
    """Differentiate the op's definition at the saved inputs."""
    o = node.op
    args = {a.name: unpack(node.saved[a.name], node, a.name, keep_graph) for a in o.arguments}
    wanted: list[tuple[str, Tensor]] = []
    for name in node.edges:
        for k, t in enumerate(args[name]) if isinstance(args[name], list) else [(None, args[name])]:
            if keep_graph and t._node is not None:
                # A new handle on the same value, so that the gradient stops here although the graph goes on.
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


__all__ = ["Node", "freed"]
