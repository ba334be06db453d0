"""What a function returns, as a recipe: a replay makes new tensors and gives arguments and constants back."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from ..autograd.edges import LEAF
from ..device import device as Device
from ..device.stream import Storage
from ..op.symbols import Followed, Real, Symbol
from ..tensors.dtypes import DType
from ..tensors.tensor import Tensor
from .calls import CallArguments
from .recording import FunctionRecording, Refused
from .replay import total

# Makes a value: from the call, the tensors that were made for it, and the plain integers.
_Build = Callable[[CallArguments, list[Tensor], list[int]], Any]
_CONSTANTS = frozenset({type(None), bool, float, complex, str, bytes, DType, Device})


class Made(NamedTuple):
    """A tensor that every replay makes anew.

    Args:
        kind: its class.
        is_argument: it looks at the memory of an argument, not at memory that is made with it.
        number: whose; of what is made first by number, then by the place among what a replay
            carries over its last read and makes after it.
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


class Results:
    """The recipe of what one call returned.

    Args:
        call: the call.
        alive: slot -> number of what it made and is still there.
        recording: what it recorded.
        carried: how many numbers stand for what it made before its last read.

    Attributes:
        tensors: what a replay makes, bases first.
        plain: offsets of these, and integers that are returned: numbers, or what they follow.
        grads: place of each leaf's gradient among the tensors; None where it was dropped, -1 where it stays.
        signature: equal for calls that a replay serves alike.
        constants: tensors that were there before and are returned as they are.
        carried: what was made before the last read and a result holds: number -> what it is accounted as.
        made: the same of what was made after it, by number in its program, in the order of a replay.
    """

    def __init__(
        self, call: CallArguments, alive: Mapping[int, int], recording: FunctionRecording, carried: int
    ):
        self._call, self._alive, self._conditions = call, alive, recording.conditions
        self._before = frozenset(map(id, recording.before.tensors))
        self._arguments = {id(t): k for k, t in enumerate(call.tensors)}
        self._others = {id(value): k for k, value in enumerate(call.others)}
        self._slots = {slot: k for k, slot in reversed(list(enumerate(call.slots)))}
        self._known: dict[int, int] = {}
        self.tensors: list[Made] = []
        self.plain: list[Any] = []
        self.grads: list[int | None] = []
        self.signature: list[Any] = []
        self.constants: list[Tensor] = []
        self.carried: dict[int, str] = {}
        self.made: dict[int, str] = {}
        self._count = carried
        self._reason: str | None = None

    def add_all(self, result: Any, leaves: Sequence[Tensor]) -> None:
        """Describe what the call returned, and the gradients that it left.

        Raises:
            Refused: it cannot be made again.
        """
        self._build = self._add(result)
        self.grads = [self._grad(leaf.grad) for leaf in leaves]
        if self._reason is not None:
            raise Refused(self._reason)
        # A recipe holds none of the call's tensors.
        count = self._count
        places = {number: number for number in self.carried}
        places |= {count + number: count + place for place, number in enumerate(self.made)}
        self.tensors = [m if m.is_argument else m._replace(number=places[m.number]) for m in self.tensors]
        self._following = [(k, *form[1:]) for k, form in enumerate(self.plain) if type(form) is tuple]
        del self._call, self._alive, self._before, self._arguments, self._others, self._slots, self._known
        del self._conditions

    def _grad(self, grad: Tensor | None) -> int | None:
        if grad is None:
            return None
        return self._place(grad) if getattr(grad._storage, "slot", -1) in self._alive else -1

    def _add(self, value: Any) -> _Build:
        """Describe a value that is returned; returns what makes it again."""
        kind = type(value)
        note = self.signature.append
        if issubclass(kind, Tensor):
            return self._tensor(value)
        if kind is list or issubclass(kind, tuple):
            note((kind, len(value)))
            parts = [self._add(v) for v in value]
            make = getattr(kind, "_make", kind)
            return lambda *given: make([part(*given) for part in parts])
        if kind is dict:
            note((kind, *value))
            entries = [(k, self._add(v)) for k, v in value.items()]
            return lambda *given: {k: part(*given) for k, part in entries}
        if is_dataclass(kind):
            note(kind)
            named = [(f.name, self._add(getattr(value, f.name))) for f in fields(kind)]
            return lambda *given: _dataclass(kind, {name: part(*given) for name, part in named})
        if issubclass(kind, Real):
            value = value.settle()
            kind = type(value)
        if kind is int or issubclass(kind, Symbol):
            note(int)
            place = len(self.plain)
            self.plain.append(value if kind is int else ("sum", *value.source))
            return lambda call, made, plain: plain[place]
        if id(value) in self._others:
            number = self._others[id(value)]
            note(("other", number))
            return lambda call, made, plain: call.others[number]
        if kind not in _CONSTANTS:
            self._refuse(f"it returns a {kind.__name__}, which a replay cannot make again")
        note((kind, id(value) if kind not in _CONSTANTS else repr(value)))
        return lambda call, made, plain: value

    def _tensor(self, t: Tensor) -> _Build:
        number = self._arguments.get(id(t))
        if number is not None:
            self.signature.append(("argument", number))
            return lambda call, made, plain: call.tensors[number]
        if id(t) in self._before:
            self.signature.append(("before", id(t)))
            self.constants.append(t)
            get = weakref.ref(t)
            return lambda call, made, plain: get()
        place = self._place(t)
        self.signature.append(("tensor", place))
        return lambda call, made, plain: made[place]

    def _place(self, t: Tensor) -> int:
        """The place of a tensor among those that a replay makes."""
        place = self._known.get(id(t))
        if place is not None:
            return place
        slot = t._storage.slot if type(t._storage) is Storage else -1
        if slot in self._alive:
            is_argument, number = False, self._alive[slot]
            if number < self._count:
                self.carried[number] = t._storage.kind
            else:
                self.made[number - self._count] = t._storage.kind
        elif slot in self._slots:
            is_argument, number = True, self._slots[slot]
        elif slot >= 0:
            self._refuse("it returns a new view of a tensor that is no argument. Return the tensor itself")
            return -1
        else:
            self._refuse("it returns a tensor that is not on webgpu")
            return -1
        node = t._node
        if node is not None and node is not LEAF:
            self._check(node)
        base: int | None = None
        if t._base is not None:
            given = self._call.tensors[number] if is_argument else None
            is_given = given is not None and (t._base is given or t._base is given._base)
            base = -1 if is_given else self._place(t._base)
        offset = len(self.plain)
        at = t._offset
        follows = at.source(self._conditions) if type(at) is Followed else None
        self.plain.append(int(at) if follows is None else follows)
        self.signature.append((type(t), is_argument, number, t._meta, node is LEAF, node is not None, base))
        self.tensors.append(Made(type(t), is_argument, number, t._meta, offset, node, t._index, base))
        self._known[id(t)] = len(self.tensors) - 1
        return self._known[id(t)]

    def _refuse(self, reason: str) -> None:
        self._reason = self._reason or reason

    def _check(self, node: Any) -> None:
        """A result may hang in a graph that `backward` has walked through, and in no other."""
        todo, seen = [node], set()
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if at.saved:
                self._refuse(
                    "it returns a tensor whose gradient is still to come. Call backward() within the "
                    "function, or call it under no_grad()"
                )
                return
            for edges in at.edges.values():
                for target, _ in edges if isinstance(edges, list) else [edges]:
                    if isinstance(target, tuple):
                        todo.append(target[0])
                    elif id(target) in self._arguments:
                        self._refuse("it returns a tensor whose graph leads to an argument")
                        return

    def make(
        self, call: CallArguments, storages: Sequence[Storage], values: list[int]
    ) -> tuple[Any, list[Tensor]]:
        """What a replay returns, and the new tensors in it and of gradients.

        Args:
            call: the call.
            storages: what is carried over its last read, then ``made``.
            values: what offsets and integers follow.
        """
        plain = self.plain
        if self._following:
            plain = plain[:]
            for k, start, form in self._following:
                plain[k] = total(values, start, form)
        found: list[Tensor] = []
        tensors, blank = call.tensors, object.__new__
        for kind, is_argument, number, meta, place, node, output, base in self.tensors:
            t: Tensor = blank(kind)
            t._storage = tensors[number]._storage if is_argument else storages[number]
            t._meta = meta
            t._offset = plain[place]
            if node is not None:
                t._node, t._index = node, output
            if base is not None:
                if base >= 0:
                    t._base = found[base]
                else:
                    given = tensors[number]
                    t._base = given if given._base is None else given._base
            found.append(t)
        return self._build(call, found, plain), found


def _dataclass(kind: type, values: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


__all__ = ["Made", "Results"]
