"""What a function finds in Python besides arguments: noted before a call, looked at before each replay.

A walk goes from the function to what its code can reach: globals that it names, closures, defaults,
attributes that some code on the way names, and everything in containers.
"""

from __future__ import annotations

import dis
import random
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import attrgetter, call, methodcaller
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from ..nn.modules.module import Module
from ..optim.optimizer import Optimizer
from ..tensors.tensor import Tensor
from .calls import Same

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
# Attributes that lead on without being named: of methods, partials, properties and what wraps a function.
_LINKS = frozenset({"__wrapped__", "__self__", "__func__", "func", "args", "keywords", "fget"})
# Methods that this package calls.
_CALLED = frozenset({"forward", "unembed"})
# Stands for all attributes of objects, where code takes such that it does not name, with one of these names.
_ALL = "*"
_TAKING = frozenset({"vars", "__dict__", "asdict", "astuple", "attrgetter"})
# Of the methods that Python calls without their being named, those that only calls of a class lead to.
_MAKING = frozenset({"__new__", "__init__", "__post_init__"})

_content = attrgetter("cell_contents")


def _is_library(module: Any) -> bool:
    return str(module).partition(".")[0] in _LIBRARIES


def _is_own(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] == _OWN


def _is_plain(thing: Any) -> bool:
    kind = type(thing)
    return kind in _PLAIN or issubclass(kind, np.generic) or (kind is tuple and all(map(_is_plain, thing)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those within it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _codes(constant)


@lru_cache(1024)
def _names(code: CodeType) -> tuple[set[str], set[str], set[str]]:
    """Globals, attributes and modules that code names. A text may name an attribute, as in ``getattr``."""
    variables, attributes, modules = set(), set(), set()
    for each in _codes(code):
        asks = False  # `getattr`, of a name that is not known yet
        for step in dis.get_instructions(each):
            if step.opcode in dis.hasname:
                is_global = "GLOBAL" in step.opname or step.opname == "LOAD_NAME"
                kind = variables if is_global else modules if step.opname == "IMPORT_NAME" else attributes
                kind.add(step.argval)
                asks |= step.argval == "getattr"
            elif type(step.argval) is str and step.opname == "LOAD_CONST":
                attributes.add(step.argval)
                asks = False
            elif asks and "CALL" in step.opname:
                attributes.add(_ALL)
    if not _TAKING.isdisjoint(variables | attributes):
        attributes.add(_ALL)
    return variables, attributes, modules


def _values(thing: Any) -> list[Any] | None:
    """What must be equal for two things to be the same: plain values with their types, items of containers,
    and the identity of all else, which is not kept alive. None if that is too much."""
    things, values = [thing], []
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


class Surroundings:
    """What functions find, as it was before a call. Functions, objects, classes and modules that they find
    are looked into as well, as far as code on the way names their attributes; code of this package, of numpy
    and of Python is not.

    Args:
        roots: what is called, and arguments that are compared by identity.
        structure: of all arguments, with their types.

    Attributes:
        kept: weak references to what must not go, for another thing could get its identity.
        reason: why it cannot be looked at before each replay.
    """

    def __init__(self, roots: Iterable[Any], structure: Any):
        roots, attributes = [*roots], set(_LINKS | _CALLED)
        while True:
            known, walk = len(attributes), _Walk(attributes)
            walk.run(roots, structure)
            if len(attributes) == known:
                break
            # Code that was found names more attributes, which lead on.
        self._found, self._alive, self.kept, self.reason = walk.found, walk.alive, walk.kept, walk.reason
        self._draws = _drawn()

    def changed_by_itself(self) -> str:
        """What the call itself made another thing of, as a replay would not; nothing if it left all alone."""
        return self.changed() or ("Python's random numbers" if self._draws != _drawn() else "")

    def changed(self) -> str:
        """What is not as it was; nothing where all is."""
        name = ""
        try:
            for get, place, number, values, name in self._found:
                now = get(place)
                if id(now) != number and _values(now) != values:
                    return name
        except (AttributeError, LookupError, ValueError, ReferenceError):  # there is nothing any more
            return name
        return ""


class _Walk:
    """One walk to what functions find.

    Args:
        attributes: names of attributes that lead on; those that code on the way names are added.

    Attributes:
        found: how something is found, where, its identity (0 for a container), its values, and its name.
        alive: plain values, whose identity says that they are the same.
        kept: weak references to what else has an identity that is compared.
        reason: why it cannot be looked at before each replay.
    """

    def __init__(self, attributes: set[str]):
        self._attributes = attributes
        self.found: list[tuple[Callable[[Any], Any], Any, int, list[Any], str]] = []
        self.alive: list[Any] = []
        self.kept: list[weakref.ref] = []
        self.reason: str | None = None
        self._seen: set[Any] = set()
        self._left: list[Any] = []

    def run(self, roots: list[Any], structure: Any) -> None:
        """Walk from what is called and given, and from the classes of what is given."""
        self._left = [*roots]
        self._types(structure)
        for thing in roots:
            if issubclass(type(thing), _CONTAINERS):
                self._note(f"the {type(thing).__name__} that it is given", call, Same(thing).get)
        for thing in self._left:
            if type(thing) not in _PLAIN and self._is_new(id(thing)):
                self._enter(thing)
            if len(self.found) > _MOST:
                self.reason = f"what it finds in Python leads to more than {_MOST} places"
            if self.reason is not None:
                break
        self._left.clear()

    def _types(self, structure: Any) -> None:
        if isinstance(structure, type):
            self._class(structure)
        elif isinstance(structure, tuple):
            for part in structure:
                self._types(part)

    def _is_new(self, key: Any) -> bool:
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _note(self, name: str, get: Callable[[Any], Any], place: Any) -> None:
        """Note what is found somewhere, if there is something, and go on from there."""
        try:
            thing = get(place)
        except (AttributeError, LookupError, ValueError):
            return
        values = _values(thing)
        if values is None:
            self.reason = (
                f"it finds {name}, of more than {_MOST} items or {_MOST_BYTES} bytes, too many to be looked "
                "at before each replay. Give what it takes of them as an argument"
            )
            return
        number = id(thing)
        if _is_plain(thing):
            self.alive.append(thing)
        elif issubclass(type(thing), _CONTAINERS) or _state_of(type(thing)) is not None:
            number = 0
        self.found.append((get, place, number, values, name))
        self._left.append(thing)

    def _enter(self, thing: Any) -> None:
        kind = type(thing)
        if issubclass(kind, np.ndarray):
            self._left += thing.flat if thing.dtype.hasobject else ()
            return
        if issubclass(kind, _SEQUENCES):
            self._left += thing
        elif issubclass(kind, (dict, MappingProxyType)):
            self._left += thing.values()
        else:
            self._keep(thing)
        if kind is MethodType:
            self._left += thing.__func__, thing.__self__
        elif kind is BuiltinMethodType:
            kind = type(thing.__self__)
            if issubclass(kind, _CONTAINERS) or _state_of(kind) is not None:
                self._note(f"what {thing.__name__!r} is of", attrgetter("__self__"), _weak(thing))
        elif kind is FunctionType:
            self._function(thing)
        elif kind is ModuleType:
            if not _is_library(thing.__name__):
                self._table(thing.__name__, vars(thing), self._attributes)
        elif issubclass(kind, type):
            self._class(thing)
            self._class(thing, True)
        elif issubclass(kind, Module):
            self._module(thing)
            self._left += thing.children()
        elif issubclass(kind, Tensor):
            pass
        elif hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
            self.reason = f"it finds an iterator, a {kind.__name__}, and nobody sees where that stands"
        else:
            self._object(thing)

    def _keep(self, thing: Any) -> None:
        try:
            self.kept.append(weakref.ref(thing))
        except TypeError:  # a type without weak references
            self.alive.append(thing)

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
        variables, attributes, modules = _names(code)
        self._attributes |= attributes
        place = _weak(function)
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self._note(f"{part!r} of {title}", attrgetter(part), place)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__":  # what `super` asks for is entered where an object is
                self._note(f"{name!r}", _content, cell)
        for name in variables & table.keys():
            self._note(f"{name!r}", table.__getitem__, name)
        # A global may come to stand before a builtin function.
        if absent := variables - table.keys():
            self._note(f"the globals of {title}", table.keys().isdisjoint, absent)
        for name in modules:
            self._note(f"the module {name}", sys.modules.get, name)

    def _class(self, found: type, is_called: bool = False) -> None:
        """What methods and attributes of a class lead to; with ``is_called`` those that make an object."""
        libraries = [each for each in found.__mro__ if _is_library(each.__module__)]
        replaced = set().union(*[vars(each) for each in libraries])
        for each in found.__mro__:
            if each in libraries or not self._is_new((each, is_called)):
                continue
            table = vars(each)
            functions = {name for name in table if type(table[name]) is FunctionType}
            # Python calls some, a library those that stand for its own.
            implied = {n for n in functions if n.startswith("__") or n in replaced}
            names = implied & _MAKING if is_called else implied - _MAKING | self._attributes
            self._table(each.__name__, table, names)

    def _object(self, thing: Any) -> None:
        kind, place, title = type(thing), _weak(thing), f"a {type(thing).__name__}"
        is_own = _is_own(kind)
        # Steps of optimizers are followed, and what they count.
        wanted = self._attributes - {"state"} if issubclass(kind, Optimizer) else self._attributes
        takes_all = _ALL in wanted and not is_own
        slots = {
            name: _is_library(each.__module__)
            for each in kind.__mro__
            for name, member in vars(each).items()
            if type(member) is MemberDescriptorType
        }
        named = {name for name, of_library in slots.items() if name in wanted or takes_all > of_library}
        if (own := getattr(thing, "__dict__", None)) is not None:
            named |= own.keys() if takes_all else own.keys() & wanted
            if not is_own:
                absent = frozenset(wanted - own.keys())
                get = _count if takes_all else lambda x: absent.isdisjoint(x.__dict__)
                self._note(f"the attributes of {title}", get, place)
        for name in named:
            self._note(f"{name!r} of {title}", attrgetter(name), place)
        self._class(kind)

    def _module(self, module: Module) -> None:
        """What changes in place in a module: attributes are assigned, which modules count."""
        kind, place, own = type(module), _weak(module), module.__dict__
        names = own.keys() - module._kinds.keys()
        takes_all = _ALL in self._attributes and not _is_own(kind)
        for name in names if takes_all else names & self._attributes:
            if not _is_plain(own[name]):
                self._note(f"{name!r} of a {kind.__name__}", attrgetter(name), place)
        self._class(kind)


def _count(thing: Any) -> int:
    return len(thing.__dict__)


def _weak(thing: Any) -> Any:
    """A place that does not keep the thing alive, if there are weak references to its type."""
    try:
        return weakref.proxy(thing)
    except TypeError:
        return thing
