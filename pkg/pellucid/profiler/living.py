"""Live objects: all of some classes that are alive, as Python's collector tells; the tensors on webgpu among
them; and whether some live on."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from itertools import chain, compress, repeat, starmap, tee
from operator import attrgetter
from threading import Lock
from typing import Any

from ..autograd import edges
from ..device.stream import Storage
from ..tensors.tensor import Tensor

# Held while the collector is off: another thread would turn it on meanwhile.
_alone = Lock()
_where = attrgetter("_storage.slot", "_meta", "_offset", "_node")
place_of = attrgetter("_storage", "_meta", "_offset")


def alive(*classes: type) -> list[Any]:
    """All objects of classes, and of those derived from them, that are alive.

    No function of Python runs while the list of what refers to the classes is there, and nothing keeps it:
    other threads would run then, and Python fails to make a tuple that is held by somebody else meanwhile
    (SystemError). `gc.get_objects` would list the iterators below, too, which would hold themselves then.
    """
    kinds = set(classes)
    for kind in classes:
        kinds |= _derived(kind)
    # An iterator of `tee` keeps the last objects that it gave: these are none.
    referrers = chain(chain.from_iterable(starmap(gc.get_referrers, [kinds])), repeat(None, 64))
    things, same = tee(referrers)
    with _alone:
        was_enabled = gc.isenabled()
        gc.disable()  # its callbacks are functions of Python
        try:
            # By `type`, not `isinstance`, which runs code of what only looks like a class.
            return list(compress(things, map(kinds.__contains__, map(type, same))))
        finally:
            if was_enabled:
                gc.enable()


def _derived(kind: type) -> set[type]:
    found = set(kind.__subclasses__())
    return found.union(*map(_derived, found))


class LiveTensors:
    """Every tensor on webgpu that is alive. It holds them.

    Attributes:
        storages: slot -> storage.
        tensors: all tensors.
        nodes: their places in the graph.
        places: their storages and how they look at these.
        grads: the gradients of all leaves, by the leaf.
    """

    def __init__(self):
        self.storages: dict[int, Storage] = {}
        self.tensors: list[Tensor] = []
        for thing in alive(Storage, Tensor):
            if type(thing) is Storage:
                # Another thread may be making it: then it has no slot yet.
                if (slot := getattr(thing, "slot", None)) is not None:
                    self.storages[slot] = thing
            elif type(thing.__dict__.get("_storage")) is Storage:
                self.tensors.append(thing)
        # The collector's order is that of its generations, which differs from call to call.
        self.tensors.sort(key=lambda t: (t._storage.slot, id(t)))
        self.nodes = [t._node for t in self.tensors]
        self.places = [place_of(t) for t in self.tensors]
        self.grads = {t: t.grad for t in self.tensors if t.requires_grad and t.is_leaf}


class Watch:
    """Looks after storages and the tensors over them, and keeps none alive.

    Args:
        storages: that must not go.
        tensors: that must not be given another storage, or another look at it, as ``p.data = x`` does, and
            of which none must begin or cease to be a leaf.
        constants: tensors that must not go.

    Attributes:
        is_hooked: one of the tensors has a hook, which runs Python at every call.
    """

    def __init__(self, storages: Iterable[Storage], tensors: Iterable[Tensor], constants: Iterable[Tensor]):
        # What goes is noted in a list, so that nothing here is held by what is watched.
        self._gone: list[Any] = []
        self._kept = [weakref.ref(thing, self._gone.append) for thing in (*storages, *constants)]
        self._version, self.is_hooked = edges.version, False
        self._owners = [(weakref.ref(t), _where(t)) for t in tensors if t.is_leaf]

    def holds(self) -> bool:
        """Whether everything is as it was."""
        if self._gone:
            return False
        version = edges.version
        if version == self._version:
            return True
        owners = [(t, place) for get, place in self._owners if (t := get()) is not None]
        try:
            same = all(_where(t) == place for t, place in owners)
        except AttributeError:  # one is on another device now
            return False
        self.is_hooked = any(t._hooks for t, _ in owners)
        if same and not self.is_hooked:
            self._version = version
        return same
