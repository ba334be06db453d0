"""Live tensors: everything on webgpu that is alive, found by asking Python's collector."""

from __future__ import annotations

import gc

from ..device.stream import Storage
from ..tensors.tensor import Tensor


class LiveTensors:
    """Every tensor on webgpu that is alive. It holds them.

    Attributes:
        storages: slot -> storage.
        tensors: all tensors.
        nodes: their places in the graph.
        grads: the gradients of all leaves, by the leaf.
    """

    def __init__(self):
        self.storages: dict[int, Storage] = {}
        self.tensors: list[Tensor] = []
        for thing in gc.get_objects():
            # Not isinstance, which runs code of what only looks like a class.
            kind = type(thing)
            if kind is Storage:
                # Another thread may be making it: then it has no slot yet.
                if (slot := getattr(thing, "slot", None)) is not None:
                    self.storages[slot] = thing
            elif issubclass(kind, Tensor) and type(thing.__dict__.get("_storage")) is Storage:
                self.tensors.append(thing)
        # The collector's order is that of its generations, which differs from call to call.
        self.tensors.sort(key=lambda t: (t._storage.slot, id(t)))
        self.nodes = [t._node for t in self.tensors]
        self.grads = {t: t.grad for t in self.tensors if t.requires_grad and t.is_leaf}
