"""Whether the tensors that a function found, without being given them, are still what they were."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from operator import attrgetter, call
from typing import Any

from ..autograd import edges
from ..device.stream import Storage
from ..tensors.tensor import Tensor

_where = attrgetter("_storage.slot", "_meta", "_offset", "_node")


class Watch:
    """Looks after storages and the tensors over them, and keeps none alive.

    Args:
        storages: that must not go.
        tensors: that must not be given another storage, or another look at it, as ``p.data = x`` does, and
            of which none must begin or cease to be a leaf.
        constants: tensors that must not go.
    """

    def __init__(self, storages: Iterable[Storage], tensors: Iterable[Tensor], constants: Iterable[Tensor]):
        # What goes is noted in lists, so that nothing here is held by what is watched.
        self._gone: list[Any] = []
        self._thinned: list[Any] = []
        self._kept = [weakref.ref(thing, self._gone.append) for thing in (*storages, *constants)]
        owners = [t for t in tensors if t.is_leaf]
        self._version = edges.version
        self._owners = [weakref.ref(t, self._thinned.append) for t in owners]
        self._places = [_where(t) for t in owners]

    def holds(self) -> bool:
        """Whether everything is as it was."""
        if self._gone:
            return False
        version = edges.version
        if version == self._version:
            return True
        if self._thinned:
            self._thinned.clear()
            alive = [(r, p) for r, p in zip(self._owners, self._places, strict=True) if r() is not None]
            self._owners, self._places = [r for r, _ in alive], [p for _, p in alive]
        try:
            same = [*map(_where, map(call, self._owners))] == self._places
        except AttributeError:  # one is on another device now
            return False
        if same:
            self._version = version
        return same
