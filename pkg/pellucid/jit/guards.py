"""Guards of a captured trace: tensors that the function found by itself, numbers in closures and globals."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, itemgetter
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..autograd import edges
from ..device.stream import Storage
from ..nn.modules.module import Module
from ..tensors.tensor import Tensor

_content = attrgetter("cell_contents")
_where = attrgetter("_storage.slot", "_meta", "_offset", "_node")
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})
_OWN = __name__.partition(".")[0]


def _is_plain(thing: Any) -> bool:
    return type(thing) in _PLAIN or (type(thing) is tuple and all(map(_is_plain, thing)))


def _is_same(now: Any, known: Any) -> bool:
    # Texts tell 0.0 from -0.0, and a NaN is equal to itself.
    return repr(now) == repr(known)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those within it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _codes(constant)


class Surroundings:
    """What functions find, as it was before a call. Functions that they find are looked into as well, and the
    modules that they call; those of this package are not.

    Args:
        functions: what is called.
    """

    def __init__(self, functions: Iterable[Any]):
        # How something is found, where, and what that was.
        self._found: list[tuple[Callable[[Any], Any], Any, Any]] = []
        seen: set[int] = set()
        for function in functions:
            self._enter(function, seen)

    def __bool__(self) -> bool:
        return bool(self._found)

    def _enter(self, thing: Any, seen: set[int]) -> None:
        kind = type(thing)
        if kind is MethodType:
            thing, kind = thing.__func__, FunctionType
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if issubclass(kind, Module):
            for own in {type(m) for m in thing.modules()}:
                self._enter(own.forward, seen)
        elif kind is FunctionType and str(thing.__module__).partition(".")[0] != _OWN:
            self._function(thing, seen)

    def _function(self, function: FunctionType, seen: set[int]) -> None:
        table = function.__globals__
        names = {name for code in _codes(function.__code__) for name in code.co_names} & table.keys()
        places: list[tuple[Any, Any]] = [(itemgetter(name), table) for name in names]
        for get, place in (*places, *[(_content, cell) for cell in function.__closure__ or ()]):
            try:
                thing = get(place)
            except ValueError:  # nothing is assigned yet
                continue
            if _is_plain(thing):
                self._found.append((get, place, thing))
            else:
                self._enter(thing, seen)

    def holds(self) -> bool:
        """Whether the same is found."""
        try:
            for get, place, known in self._found:
                if (now := get(place)) is not known and not _is_same(now, known):
                    return False
        except (KeyError, ValueError):  # there is nothing any more
            return False
        return True


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
