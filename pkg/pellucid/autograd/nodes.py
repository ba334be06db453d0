"""Nodes of the graph: one recorded op each, the values that it saved, and the formulas of its derivative."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from ..errors import ArgumentError, GradientError
from ..op.schema import Schema
from ..tensors.meta import Meta, differences
from ..tensors.tensor import Tensor
from .edges import LEAF, name_of
from .handle import Handle

# Formulas multiply by a derivative. By PyTorch's convention a complex one is conjugated, which conjugates
# before and behind a formula do. Of these, which are linear with real factors, no holomorphic functions or
# conjugate by themselves, formulas are right as they stand, as are those of views.
_AS_THEY_STAND = frozenset(
    {"cast", "neg", "sum", "mean", "clone", "copy", "cat", "where", "masked_fill"}
    | {
        "sgn",
        "complex",
        "conj_physical",
        "transform",
        "half_transform",
        "eig",
        "eigh",
        "cholesky_factor",
        "qr",
        "svd",
    }
)

# What sees every saved tensor, the last pair of functions in force: (pack, unpack); see `graph`.
saving: list[tuple[Callable, Callable]] = []
# While anomalies are looked for: what makes the text of the place of a forward call; see `anomaly`.
sites: list[Callable[[], str]] = []
# Gives every node its number; the walk goes from the last to the first.
sequence = itertools.count()
# The hooks of a node itself stand beside those of its results, which have numbers.
BEFORE, AFTER = -1, -2
_OF_TENSORS = ("tensor", "optional", "operand", "tensors")


class AccumulateGrad:
    """What stands for a leaf where programs look at the graph.

    Args:
        variable: the leaf, to whose ``.grad`` gradients are added.
    """

    next_functions = ()
    metadata: dict[str, Any] = {}

    def __init__(self, variable: Any):
        self.variable = variable

    def register_hook(self, fn: Callable) -> Handle:
        """Call ``fn((), (grad,))`` after a gradient was added to the leaf's ``.grad``."""
        return self.variable.register_post_accumulate_grad_hook(lambda leaf: fn((), (leaf.grad,)))

    def register_prehook(self, fn: Callable) -> Handle:
        """Call ``fn((grad,))`` before a gradient is added to the leaf's ``.grad``; a result replaces it."""

        def first(g: Any) -> Any:
            changed = fn((g,))
            return changed[0] if isinstance(changed, tuple) else changed

        return self.variable.register_hook(first)

    def name(self) -> str:
        """Its name as PyTorch prints it."""
        return "torch::autograd::AccumulateGrad"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and self.variable is other.variable

    def __hash__(self) -> int:
        return id(self.variable)


class Node:
    """One recorded op: what its formulas need, and where the gradients of its inputs go.

    An edge is a leaf tensor, a (node, output index) pair, or None. Where no op is declared, something stands
    for one that has the attributes of an op that a walk reads.
    """

    __slots__ = (
        "__weakref__",
        "_metadata",
        "edges",
        "hooks",
        "label",
        "op",
        "outputs",
        "released",
        "retained",
        "saved",
        "sequence",
        "site",
    )

    def __init__(self, o: Any, edges: dict[str, Any], saved: dict[str, Any]):
        self.op: Schema = o
        self.edges = edges
        self.saved = saved
        self.sequence = next(sequence)
        self.outputs: tuple[Meta, ...] = ()
        self.hooks: dict[int, dict] | None = None
        self.retained: dict[int, weakref.ref] | None = None
        self.released = False
        if sites:
            self.site = sites[-1]()

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the gradients of its inputs go: nodes with the number of their result; of leaves an
        `AccumulateGrad` and 0."""
        return tuple(
            (None, 0)
            if t is None
            else (t[0].shown(), t[1])
            if isinstance(t, tuple)
            else (AccumulateGrad(t), 0)
            for *_, t, _ in self.places()
        )

    def places(self) -> list[tuple[str, int | None, Any, Any]]:
        """Of each input: its argument, its number in a list, its edge, which is None where no gradient is
        wanted, and its layout."""
        found: list[tuple[str, int | None, Any, Any]] = []
        arguments = self.op.arguments if isinstance(self.op, Schema) else ()
        for name in dict.fromkeys((*(a.name for a in arguments if a.role in _OF_TENSORS), *self.edges)):
            edges = self.edges.get(name, (None, None))
            if isinstance(edges, list):
                found += [(name, k, *e) for k, e in enumerate(edges) if e != (None, None)]
            else:
                found.append((name, None, *edges))
        return found

    @property
    def metadata(self) -> dict[str, Any]:
        """What programs note about the node."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[str, Any] = {}
            return self._metadata

    def register_hook(self, fn: Callable) -> Handle:
        """Call ``fn(grad_inputs, grad_outputs)`` when the node has computed the gradients of its inputs; a
        result replaces these.

        Source: https://pytorch.org/docs/stable/generated/torch.autograd.graph.Node.register_hook.html
        """
        return self._listen(AFTER, fn)

    def register_prehook(self, fn: Callable) -> Handle:
        """Call ``fn(grad_outputs)`` before the node computes anything; a result replaces them.

        Source: https://pytorch.org/docs/stable/generated/torch.autograd.graph.Node.register_prehook.html
        """
        return self._listen(BEFORE, fn)

    def _listen(self, when: int, fn: Callable) -> Handle:
        if self.hooks is None:
            self.hooks = {}
        return Handle(self.hooks.setdefault(when, {}), fn)

    @property
    def public(self) -> str:
        """The name of the op, or of what stands for one in the graph, as users know it."""
        return getattr(self.op, "public", self.op.name)

    def name(self) -> str:
        """The node's name as PyTorch prints it, such as AddBackward0."""
        return name_of(self)

    def shown(self) -> Node:
        """The node as programs see it: its class is called as PyTorch's would be."""
        plain = getattr(self, "plain", type(self))
        object.__setattr__(self, "__class__", _class_of(plain, self.name().rpartition("::")[2]))
        return self

    def gradients(self, grads: list, keep_graph: bool) -> dict[str, Any]:
        """The gradients of the inputs from those of the results, of which some may be None.

        Raises:
            GradientError: what was saved was freed or changed.
        """
        o = self.op
        if grads[0] is None and not any("grads" in wanted for _, wanted in o.grad.values()):
            return {}  # only results without a derivative were used
        if self.released:
            raise freed(self.public)
        is_complex = any(m.dtype.is_complex for m in self.outputs)
        turned = is_complex and isinstance(o, Schema) and o.view is None and o.name not in _AS_THEY_STAND

        def turn(g: Any) -> Any:
            return g.conj() if turned and g is not None else g

        found: dict[str, Any] = {}
        for name in self.edges:
            if name in found:
                continue
            formula, wanted = o.grad[name]
            values = []
            for w in wanted:
                if w == "g":
                    values.append(turn(grads[0]))
                elif w == "grads":
                    values.append([turn(g) for g in grads])
                elif w == "needs":
                    values.append(frozenset(self.edges))
                else:
                    values.append(unpack(self.saved[w], self, w, keep_graph))
            made: Any = formula(*values)
            if type(made) is dict:  # one formula for several inputs
                found |= {k: turn(grad) for k, grad in made.items() if k in self.edges}
                continue
            found[name] = [turn(m) for m in made] if isinstance(made, list) else turn(made)
        return found

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"


@cache
def _class_of(plain: type[Node], name: str) -> type[Node]:
    return type(name, (plain,), {"__slots__": (), "plain": plain})


def freed(where: str) -> GradientError:
    """The error of a second walk through a graph that the first one freed."""
    return GradientError(
        f"{where}: backward a second time through a graph whose saved values were freed. "
        "Give retain_graph=True to the first backward."
    )


def behind(node: Node) -> Iterator[Any]:
    """The nodes and leaves that a node leads to, itself first."""
    todo, seen = [node], set()
    while todo:
        at = todo.pop()
        if id(at) not in seen:
            seen.add(id(at))
            yield at
            if isinstance(at, Node):
                todo += [t[0] if isinstance(t, tuple) else t for t in targets(at)]


def targets(node: Node) -> Iterator[Any]:
    """Where the gradients of a node's inputs go: pairs of a node and the number of its result, and leaves."""
    for found in node.edges.values():
        for target, _ in found if isinstance(found, list) else (found,):
            if target is not None:
                yield target


class Saved:
    """A tensor kept for the derivative: the storage and how to look at it, never the tensor, so that no cycle
    arises."""

    __slots__ = ("index", "meta", "node", "offset", "packed", "storage", "version")

    def __init__(self, t: Tensor):
        self.storage, self.meta, self.offset = t._storage, t._meta, t._offset
        self.version = t._storage.version
        node = t._node
        self.node = t if node is LEAF else node
        self.index = t._index
        if saving:
            pack, unpack = saving[-1]
            self.packed, self.storage = (pack(t.detach()), unpack), None

    def _unpacked(self) -> Tensor:
        """What the hook makes of what the other one kept."""
        kept, restore = self.packed
        t = restore(kept)
        if not isinstance(t, Tensor):
            raise ArgumentError(
                f"saved_tensors_hooks: unpack_hook must return a Tensor, not {type(t).__name__} {t!r}."
            )
        if different := differences(t._meta, self.meta.like()):
            raise GradientError(f"saved_tensors_hooks: unpack_hook returned a tensor of {different}.")
        return t.detach()

    def unpack(self, owner: Node, name: str, keep_graph: bool) -> Tensor:
        """The tensor again.

        Args:
            owner: the node that kept it.
            name: what its formulas call it.
            keep_graph: give it its place in the graph, for derivatives of derivatives.

        Raises:
            GradientError: its memory was written since.
        """
        if self.storage is None:
            t = self._unpacked()
        elif self.storage.version != self.version:
            raise GradientError(
                f"{owner.public}: {name!r}, needed for the gradient, was changed in place after it was used "
                f"(version {self.storage.version}, expected {self.version}). Use a form without "
                "underscore, or clone it first."
            )
        else:
            t = Tensor(self.storage, self.meta, self.offset)
        if keep_graph and self.node is not None:
            node = self.node() if isinstance(self.node, weakref.ref) else self.node
            if isinstance(node, Tensor):
                return node
            if node is not None:
                t._node, t._index = node, self.index
        return t


def save(value: Any) -> Any:
    """An argument as a node keeps it: tensors, also those of a list, as `Saved`, anything else as it is."""
    if isinstance(value, Tensor):
        return Saved(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return [save(v) for v in value]
    return value


def keep_result(node: Node, name: str, result: Tensor, index: int = 0) -> None:
    """Save a result for the formulas. The node holds itself through its own result only weakly."""
    kept = node.saved[name] = Saved(result)
    kept.node, kept.index = weakref.ref(node), index


def unpack(saved: Any, owner: Node, name: str, keep_graph: bool) -> Any:
    """What `save` was given, of the same values; see `Saved.unpack`."""
    if isinstance(saved, Saved):
        return saved.unpack(owner, name, keep_graph)
    if isinstance(saved, list) and saved and isinstance(saved[0], Saved):
        return [s.unpack(owner, name, keep_graph) for s in saved]
    return saved


__all__ = ["Node", "Saved", "freed", "keep_result", "save"]
