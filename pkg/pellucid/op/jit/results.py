"""What a function returns, as a recipe: a replay makes new tensors and gives arguments and constants back."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from ...autograd.edges import LEAF
from ...autograd.nodes import behind
from ...device import device as Device
from ...device.storage import LateStorages
from ...device.stream import Storage
from ...tensors.dtypes import DType
from ...tensors.tensor import Tensor
from ..fusion.replay import total
from ..pytree import flatten, unflatten
from ..symbols import Followed, Real, Symbol
from .calls import CallArguments
from .recording import FunctionRecording, Refused

_CONSTANTS = frozenset({type(None), bool, float, complex, str, bytes, DType, Device})
# Where a replay takes a leaf of the result from.
_MADE, _NUMBER, _ARGUMENT, _OTHER, _CONSTANT, _BEFORE = range(6)


class Made(NamedTuple):
    """A tensor that every replay makes anew.

    Args:
        kind: its class.
        is_argument: it looks at the memory of an argument, not at memory that is made with it.
        number: of the argument, or the place of its memory among what is carried and made.
        meta: how it looks at it.
        place: where its offset stands among the plain integers.
        node, output: its place in a graph that needs no values any more.
        base: which of the results it is a view of; -1 for what the argument is or looks at, None for none.
    """

    kind: type[Tensor]
    is_argument: bool
    number: int
    meta: Any
    place: int
    node: Any
    output: int
    base: int | None


class LateValues(Mapping):
    """What taps keep of a replay, by number: all values are made when one is asked for.

    Args:
        make: gives them in order.
        numbers: of them.
    """

    __slots__ = ("_found", "_make", "_numbers")

    def __init__(self, make: Callable[[], Sequence[Any]], numbers: tuple[int, ...]):
        self._make: Callable[[], Sequence[Any]] | None = make
        self._numbers, self._found = numbers, {}

    def __getitem__(self, number: int) -> Any:
        if self._make is not None:
            self._found = dict(zip(self._numbers, self._make(), strict=True))
            self._make = None  # it holds the memory, also of what somebody lets go of
        return self._found[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class _LateRecipe(NamedTuple):
    """The recipe of what taps keep.

    Args:
        numbers: of the taps.
        structures: of the values.
        tensors: as they look at the memory that `storages` takes.
        places: of the leaves, where tensors come before plain integers.
    """

    numbers: tuple[int, ...]
    structures: tuple[Any, ...]
    tensors: list[Made]
    places: list[int]


class Results:
    """The recipe of what one call returned, and of the gradients that it left.

    Args:
        call: the call.
        recording: what it recorded.
        places: slot -> place of what it made and is still there.
        leaves: whose gradients are others now.
        carried: how many of the places are carried over the last read.

    Attributes:
        late: places of memory that only taps keep, whose tensors and storages are made when somebody asks.
        kinds: place -> what the memory of a result is accounted as.
        gradients: places of gradients that are left.
        before: tensors that were there before and are returned as they are.
        key: equal for calls that a replay serves alike.

    Raises:
        Refused: it cannot be made again.
    """

    def __init__(
        self,
        call: CallArguments,
        recording: FunctionRecording,
        places: Mapping[int, int],
        leaves: Sequence[Tensor],
        carried: int,
    ):
        self._call, self._places, self._conditions = call, places, recording.conditions
        self._known: dict[int, int] = {}
        self._old = frozenset(map(id, recording.before.tensors))
        self._tensors: list[Made] = []
        # Offsets of these, and integers that are returned: numbers, or what they follow.
        self._plain: list[Any] = []
        self._constants: list[Any] = []
        self.before: list[weakref.ref[Tensor]] = []
        self.kinds: dict[int, str] = {}
        found: list[Any] = []
        self._structure = flatten(recording.result, found)
        head: list[Any] = []
        if recording.is_tapped:
            flatten(recording.result[0], head)
        sources = [self._leaf(value) for value in found[: len(head)]]
        own = len(self._tensors)
        sources += [self._leaf(value) for value in (*found[len(head) :], *[leaf.grad for leaf in leaves])]
        left = [self._tensors[place] for kind, place in sources[len(found) :] if kind == _MADE]
        self.gradients = {t.number for t in left if not t.is_argument}
        recipes, structure = self._tensors, self._structure
        self._late: _LateRecipe | None = None
        self.late: list[int] = []
        if recording.is_tapped and not leaves:
            self._find_late(own, sources[len(head) :], carried)
        self.key = (
            structure,
            sources,
            [t._replace(node=(t.node is LEAF, t.node is None)) for t in recipes],
            self._plain,
            [(type(value), repr(value)) for value in self._constants],
            [id(get()) for get in self.before],
            self.late,
        )
        if self._late is not None:
            self._structure, self._tensors = structure[1], recipes[:own]
            found, sources = head, sources[: len(head)]
        # A replay lays all sources one behind the other, if it takes from others than the first.
        lengths = map(len, (self._tensors, self._plain, call.tensors, call.others, self._constants))
        starts = [0, *accumulate(lengths)]
        self._only_made = all(kind == _MADE for kind, _ in sources)
        self._leaves = [starts[kind] + place for kind, place in sources[: len(found)]]
        self._grads = [starts[kind] + place for kind, place in sources[len(found) :]]
        self._following = [(k, *form[1:]) for k, form in enumerate(self._plain) if type(form) is tuple]
        # A recipe holds none of the call's tensors.
        del self._call, self._places, self._conditions, self._known, self._old

    def _find_late(self, own: int, sources: Sequence[tuple[int, int]], carried: int) -> None:
        """Find the recipe of what taps keep, if it needs nothing but memory and integers of its own.

        Args:
            own: how many tensors the function returns.
            sources: of the leaves.
            carried: how many places are carried over.
        """
        tensors, (_, numbers, *structures) = self._tensors[own:], self._structure[2]
        memory = [*dict.fromkeys(t.number for t in tensors)]
        if (
            any(kind != _NUMBER and (kind != _MADE or place < own) for kind, place in sources)
            or any(t.is_argument or (t.base is not None and t.base < own) for t in tensors)
            or any(place < carried or self.kinds[place] != "activation" for place in memory)
            or not {t.number for t in self._tensors[:own] if not t.is_argument}.isdisjoint(memory)
            or not memory
        ):
            return
        placed = [
            t._replace(number=memory.index(t.number), base=None if t.base is None else t.base - own)
            for t in tensors
        ]
        places = [place - own if kind == _MADE else len(tensors) + place for kind, place in sources]
        self._late, self.late = _LateRecipe(numbers, tuple(structures), placed, places), memory

    def _leaf(self, value: Any) -> tuple[int, int]:
        """Where a replay takes the value from: the kind of source, and the place there."""
        kind = type(value)
        if isinstance(value, Tensor):
            return self._tensor(value)
        if issubclass(kind, Real):
            value = value.settle()
            kind = type(value)
        if kind is int or issubclass(kind, Symbol):
            self._plain.append(value if kind is int else ("sum", *value.source))
            return _NUMBER, len(self._plain) - 1
        for k, other in enumerate(self._call.others):
            if other is value:
                return _OTHER, k
        if kind not in _CONSTANTS:
            raise Refused(f"it returns a {kind.__name__}, which a replay cannot make again")
        self._constants.append(value)
        return _CONSTANT, len(self._constants) - 1

    def _tensor(self, t: Tensor) -> tuple[int, int]:
        for k, given in enumerate(self._call.tensors):
            if given is t:
                return _ARGUMENT, k
        if id(t) in self._old:
            self.before.append(weakref.ref(t))
            return _BEFORE, len(self.before) - 1
        return _MADE, self._place(t)

    def _place(self, t: Tensor) -> int:
        """The place of a tensor among those that a replay makes."""
        if (place := self._known.get(id(t))) is not None:
            return place
        slot = t._storage.slot if type(t._storage) is Storage else -1
        given: Tensor | None = None
        if slot in self._places:
            number = self._places[slot]
            self.kinds[number] = t._storage.kind
        elif slot in self._call.slots:
            number = self._call.slots.index(slot)
            given = self._call.tensors[number]
        elif slot >= 0:
            raise Refused("it returns a new view of a tensor that is no argument. Return the tensor itself")
        else:
            raise Refused("it returns a tensor that is not on webgpu")
        node = t._node
        if node is not None and node is not LEAF:
            self._check(node)
        base: int | None = None
        if t._base is not None:
            is_given = given is not None and (t._base is given or t._base is given._base)
            base = -1 if is_given else self._place(t._base)
        at = t._offset
        follows = at.source(self._conditions) if type(at) is Followed else None
        self._plain.append(int(at) if follows is None else follows)
        place = len(self._plain) - 1
        self._tensors.append(Made(type(t), given is not None, number, t._meta, place, node, t._index, base))
        self._known[id(t)] = len(self._tensors) - 1
        return self._known[id(t)]

    def _check(self, node: Any) -> None:
        """A result may hang in a graph that `backward` has walked through, and in no other."""
        for reached in behind(node):
            if isinstance(reached, Tensor):
                if any(reached is t for t in self._call.tensors):
                    raise Refused("it returns a tensor whose graph leads to an argument")
            elif reached.saved and not reached.released:
                raise Refused(
                    "it returns a tensor whose gradient is still to come. Call backward() within the "
                    "function, or call it under no_grad()"
                )

    def make(
        self,
        call: CallArguments,
        storages: Sequence[Storage],
        values: list[int],
        later: LateStorages | None,
    ) -> tuple[Any, list[Tensor | None]]:
        """What a replay returns, and the gradients that it leaves.

        Args:
            call: the call.
            storages: what is carried over its last read, then what is made after that.
            values: what offsets and integers follow.
            later: memory that only taps keep.
        """
        plain = self._plain
        if self._following:
            plain = plain[:]
            for k, start, form in self._following:
                plain[k] = total(values, start, form)
        tensors = call.tensors
        found = _made(self._tensors, plain, storages, tensors)
        pool: list[Any] = found
        if not self._only_made:
            before = [get() for get in self.before]
            pool = [*found, *plain, *tensors, *call.others, *self._constants, *before]
        grads = [pool[k] for k in self._grads]
        if type(self._structure) is not tuple:
            result = pool[self._leaves[0]]
        else:
            result = unflatten(self._structure, iter([pool[k] for k in self._leaves]))
        if self._late is None or later is None:
            return result, grads
        kept = LateValues(partial(_kept, self._late, plain, later), self._late.numbers)
        return (result, kept), grads


def _made(
    recipes: Sequence[Made], plain: Sequence[int], storages: Sequence[Storage], arguments: Sequence[Tensor]
) -> list[Tensor]:
    """Tensors as the recipes tell, some of which look at memory of arguments."""
    found: list[Tensor] = []
    blank = object.__new__
    for kind, is_argument, number, meta, place, node, output, base in recipes:
        t: Tensor = blank(kind)
        t._storage = arguments[number]._storage if is_argument else storages[number]
        t._meta = meta
        t._offset = plain[place]
        if node is not None:
            t._node, t._index = node, output
        if base is not None:
            if base >= 0:
                t._base = found[base]
            else:
                given = arguments[number]
                t._base = given if given._base is None else given._base
        found.append(t)
    return found


def _kept(late: _LateRecipe, plain: Sequence[int], memory: LateStorages) -> list[Any]:
    """What taps keep of a replay."""
    pool = [*_made(late.tensors, plain, memory.apart(), ()), *plain]
    leaves = iter([pool[k] for k in late.places])
    return [unflatten(structure, leaves) for structure in late.structures]
