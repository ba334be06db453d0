"""What a function finds in Python besides arguments: noted before a call, looked at before each replay.

A walk goes from the function to what its code can reach: globals that it names, closures, defaults,
attributes that some code on the way names, and everything in containers.
"""

from __future__ import annotations

import random
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from inspect import ismemberdescriptor
from operator import attrgetter, call, methodcaller
from types import BuiltinMethodType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...nn.modules.module import Module
from ...optim.optimizer import Optimizer
from ...profiler.code import ALL, absolute, names_of
from ...tensors.tensor import Tensor
from ..pytree import Same

# Items and places that are looked at before each replay, and bytes of an array.
_MOST, _MOST_BYTES = 4096, 1 << 16

_OWN = __name__.partition(".")[0]
# Modules whose code and variables are taken to stay as they are.
_LIBRARIES = frozenset({_OWN, "numpy", *sys.stdlib_module_names})
_EXACT = frozenset({int, bool, str, bytes, type(None), type(...)})
_PLAIN = _EXACT | {float, complex}
_SEQUENCES = (list, tuple, set, frozenset, deque)
_CONTAINERS = (*_SEQUENCES, dict, MappingProxyType, np.ndarray)
# Random numbers of Python's and numpy's: where a source stands. numpy loads its own when they are asked for.
_SOURCES: dict[str, Callable[[Any], Any]] = {
    "Random": methodcaller("getstate"),
    "RandomState": methodcaller("get_state"),
    "Generator": attrgetter("bit_generator.state"),
}
# Attributes that lead on without being named: of methods, partials, properties and what wraps a function, and
# methods that this package calls.
_LINKS = frozenset(
    {"__wrapped__", "__self__", "__func__", "func", "args", "keywords", "fget", "forward", "unembed"}
)
# Of the methods that Python calls without their being named, those that only calls of a class lead to.
_MAKING = frozenset({"__new__", "__init__", "__post_init__"})


def _is_library(module: Any) -> bool:
    return str(module).partition(".")[0] in _LIBRARIES


def _is_own(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] == _OWN


def _is_plain(thing: Any) -> bool:
    kind = type(thing)
    return kind in _PLAIN or issubclass(kind, np.generic) or (kind is tuple and all(map(_is_plain, thing)))


def _values(things: list[Any]) -> list[Any] | None:
    """What must be equal for things to be the same: plain values with their types, items of containers, which
    are added to the list, and the identity of all else, which is not kept alive. None if that is too much."""
    values = []
    for thing in things:
        kind = type(thing)
        if kind in _EXACT:
            values += kind, thing
        elif kind in _PLAIN:
            values += kind, repr(thing)  # tells 0.0 from -0.0, and a NaN is equal to itself
        elif issubclass(kind, np.generic):
            values += kind, thing.tobytes()
        elif issubclass(kind, _SEQUENCES):
            values += kind, len(thing)
            things += thing
        elif issubclass(kind, (dict, MappingProxyType)):
            values += kind, len(thing)
            things += thing
            things += thing.values()
        elif issubclass(kind, np.ndarray):
            if thing.nbytes > _MOST_BYTES:
                return None
            values += thing.dtype, thing.shape, thing.tobytes()
            things += thing.flat if thing.dtype.hasobject else ()
        else:
            values.append(id(thing))
            if (state := _state_of(kind)) is not None:
                things.append(state(thing))
        if len(things) > _MOST:
            return None
    return values


def _state_of(kind: type) -> Callable[[Any], Any] | None:
    """How to ask a source of random numbers where it stands; None for all other types."""
    is_source = str(kind.__module__).partition(".")[0] in ("random", "numpy")
    return _SOURCES.get(kind.__name__) if is_source else None


def _drawn() -> list[Any] | None:
    """Where the sources stand from which functions draw that name none."""
    numpy = sys.modules.get("numpy.random")
    return _values([random.getstate(), None if numpy is None else numpy.get_state()])


def _has_content(thing: Any) -> bool:
    """Whether it is compared by what is in it, not by its identity."""
    return issubclass(type(thing), _CONTAINERS) or _state_of(type(thing)) is not None


class Surroundings:
    """What functions find, as it was before a call. Functions, objects, classes and modules that they find
    are looked into as well, as far as code on the way names their attributes; code of this package, of numpy
    and of Python is not.

    Args:
        roots: what is called, and arguments that are compared by identity.
        structure: of all arguments, with their types.

    Attributes:
        gone: weak references to what has an identity that is compared and is no more: another thing could
            get the same.
        reason: why it cannot be looked at before each replay.
    """

    def __init__(self, roots: Iterable[Any], structure: Any):
        roots, known = [*roots], 0
        self._attributes = set(_LINKS)
        while known < len(self._attributes):
            # Code that is found names more attributes, which lead on.
            known = len(self._attributes)
            self._walk(roots, structure)
        del self._seen, self._left
        self._draws = _drawn()

    def changed_by_itself(self) -> str:
        """What the call itself made another thing of, as a replay would not; nothing if it left all alone."""
        if what := self.changed() or ("what it finds in Python" if self.gone else ""):
            return what
        return "Python's random numbers" if self._draws != _drawn() else ""

    def changed(self) -> str:
        """What is not as it was; nothing where all is."""
        name = ""
        try:
            for get, place, number, values, name in self._found:
                now = get(place)
                if id(now) != number and _values([now]) != values:
                    return name
        except (AttributeError, LookupError, ValueError, ReferenceError):  # there is nothing any more
            return name
        return ""

    # The walk

    def _walk(self, roots: list[Any], structure: Any) -> None:
        """Go from what is called and given, and from the classes of what is given."""
        # How something is found, where, its identity (0 where what is in it counts), its values, its name.
        self._found: list[tuple[Callable[[Any], Any], Any, int, list[Any], str]] = []
        # Weak references to what has an identity that is compared, or the thing if its type has none.
        self._kept: list[Any] = []
        self.gone: list[Any] = []
        self.reason: str | None = None
        self._seen: set[Any] = set()
        self._left: list[Any] = []
        self._types(structure)
        for thing in roots:
            self._lead(f"the {type(thing).__name__} that it is given", call, Same(thing).get)
        for thing in self._left:
            if type(thing) not in _PLAIN and id(thing) not in self._seen:
                self._seen.add(id(thing))
                self._enter(thing)
            if len(self._found) > _MOST:
                self.reason = f"what it finds in Python leads to more than {_MOST} places"
            if self.reason is not None:
                break

    def _types(self, structure: Any) -> None:
        if isinstance(structure, type):
            self._class(structure)
        elif isinstance(structure, tuple):
            for part in structure:
                self._types(part)

    def _lead(self, name: str, get: Callable[[Any], Any], place: Any) -> None:
        """Go on from what is found somewhere for sure: only what is in it may change."""
        if _has_content(thing := get(place)):
            self._note(name, get, place)
        else:
            self._left.append(thing)

    def _note(self, name: str, get: Callable[[Any], Any], place: Any) -> None:
        """Note what is found somewhere, if there is something, and go on from there."""
        try:
            things = [thing := get(place)]
        except (AttributeError, LookupError, ValueError):
            return
        values = _values(things)
        if values is None:
            self.reason = (
                f"it finds {name}, of more than {_MOST} items or {_MOST_BYTES} bytes, too many to be looked "
                "at before each replay. Give what it takes of them as an argument"
            )
            return
        number = id(thing)
        if _is_plain(thing):
            self._kept.append(thing)
        elif _has_content(thing):
            number = 0
        self._found.append((get, place, number, values, name))
        self._left += things

    def _enter(self, thing: Any) -> None:
        kind = type(thing)
        if not issubclass(kind, _CONTAINERS):
            try:
                self._kept.append(weakref.ref(thing, self.gone.append))
            except TypeError:  # a type without weak references
                self._kept.append(thing)
        if kind in (MethodType, BuiltinMethodType):
            name = getattr(thing, "__name__", kind.__name__)
            self._lead(f"what {name!r} is of", attrgetter("__self__"), _weak(thing))
            self._left += (thing.__func__,) if kind is MethodType else ()
        elif kind is FunctionType:
            self._function(thing)
        elif kind is ModuleType:
            if not _is_library(thing.__name__):
                self._table(thing.__name__, vars(thing), self._attributes)
        elif issubclass(kind, type):
            self._class(thing)
            self._class(thing, True)
        elif hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
            self.reason = f"it finds an iterator, a {kind.__name__}, and nobody sees where that stands"
        elif not issubclass(kind, Tensor):
            self._object(thing)

    def _table(self, name: str, table: Any, names: Iterable[str]) -> None:
        """Variables of a module, or attributes of a class."""
        self._note(f"the names of {name}", len, table)
        for each in table.keys() & names:
            self._note(f"{each!r} of {name}", table.__getitem__, each)

    def _function(self, function: FunctionType) -> None:
        if vars(function):
            self._object(function)
        table, code, title = function.__globals__, function.__code__, function.__qualname__
        if _is_library(function.__module__) or _is_library(table.get("__name__")):
            return
        variables, attributes, modules = names_of(code)
        self._attributes |= attributes
        place = _weak(function)
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self._note(f"{part!r} of {title}", attrgetter(part), place)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__":  # what `super` asks for is entered where an object is
                self._note(f"{name!r}", attrgetter("cell_contents"), cell)
        for name in variables & table.keys():
            self._note(f"{name!r}", table.__getitem__, name)
        # A global may come to stand before a builtin function.
        if absent := variables - table.keys():
            self._note(f"the globals of {title}", table.keys().isdisjoint, absent)
        for name in modules:
            self._note(f"the module {name}", sys.modules.get, absolute(name, table))

    def _class(self, found: type, is_called: bool = False) -> None:
        """What methods and attributes of a class lead to; with ``is_called`` those that make an object."""
        libraries = [each for each in found.__mro__ if _is_library(each.__module__)]
        replaced = set().union(*map(vars, libraries))
        for each in found.__mro__:
            if each in libraries or (each, is_called) in self._seen:
                continue
            self._seen.add((each, is_called))
            table = vars(each)
            functions = [name for name in table if type(table[name]) is FunctionType]
            # Python calls some, a library those that stand for its own.
            implied = {name for name in functions if name.startswith("__") or name in replaced}
            names = implied & _MAKING if is_called else implied - _MAKING | self._attributes
            self._table(each.__name__, table, names)

    def _object(self, thing: Any) -> None:
        kind, place, title = type(thing), _weak(thing), f"a {type(thing).__name__}"
        is_own, own = _is_own(kind), getattr(thing, "__dict__", {})
        # Steps of optimizers are followed, and what they count.
        wanted = self._attributes - {"state"} if issubclass(kind, Optimizer) else self._attributes
        takes_all = ALL in wanted and not is_own
        named = own.keys() if takes_all else own.keys() & wanted
        if issubclass(kind, Module):
            # Only what changes in place: attributes are assigned, which modules count.
            named = {name for name in named - thing._kinds.keys() if not _is_plain(own[name])}
            self._left += thing.children()
        elif hasattr(thing, "__dict__") and not is_own:
            absent = frozenset(wanted - own.keys())
            get = (lambda x: len(x.__dict__)) if takes_all else (lambda x: absent.isdisjoint(x.__dict__))
            self._note(f"the attributes of {title}", get, place)
        slots = [
            name
            for each in kind.__mro__
            for name, member in vars(each).items()
            if ismemberdescriptor(member)
            and (name in wanted or (takes_all and not _is_library(each.__module__)))
        ]
        for name in [*named, *slots]:
            self._note(f"{name!r} of {title}", attrgetter(name), place)
        self._class(kind)


def _weak(thing: Any) -> Any:
    """A place that does not keep the thing alive, if there are weak references to its type."""
    try:
        return weakref.proxy(thing)
    except TypeError:
        return thing
