"""Values that nodes keep for their formulas, and the versions that tell whether they were changed since."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from ..errors import GradientError
from .edges import LEAF

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor
    from .nodes import Node


@functools.cache
def tensor_class() -> type[Tensor]:
    """The class of tensors, which is defined after the graph."""
    from ..tensors.tensor import Tensor

    return Tensor


class Saved:
    """A tensor kept for the derivative: the storage and how to look at it, never the tensor, so that no cycle
    arises."""

    __slots__ = ("index", "meta", "node", "offset", "storage", "version")

    def __init__(self, t: Tensor):
        self.storage, self.meta, self.offset = t._storage, t._meta, t._offset
        self.version = t._storage.version
        node = t._node
        self.node = t if node is LEAF else node
        self.index = t._index

    def unpack(self, owner: Node, name: str, keep_graph: bool) -> Tensor:
        """The tensor again.

        Args:
            owner: the node that kept it.
            name: what its formulas call it.
            keep_graph: give it its place in the graph, for derivatives of derivatives.

        Raises:
            GradientError: its memory was written since.
        """
        if self.storage.version != self.version:
            raise GradientError(
                f"{owner.public}: {name!r}, needed for the gradient, was changed in place after it was used "
                f"(version {self.storage.version}, expected {self.version}). Use a form without "
                "underscore, or clone it first."
            )
        Tensor = tensor_class()
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
    Tensor = tensor_class()
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


__all__ = ["Saved", "keep_result", "save", "tensor_class", "unpack"]
