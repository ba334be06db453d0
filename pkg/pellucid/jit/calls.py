"""One call of a compiled function: what must be equal for a replay, and what a replay takes anew."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..autograd.edges import LEAF
from ..autograd.grad_mode import is_grad_enabled
from ..device import get_default_device
from ..device.stream import Storage, stream
from ..kernel.autotune import measured as tuned
from ..kernel.autotune.deterministic import are_deterministic_algorithms_enabled
from ..op.plan import float_bits
from ..op.symbols import Conditions
from ..ops.random.generator import Generator
from ..tensors.dtypes import get_default_dtype
from ..tensors.tensor import Tensor

_NO_NUMBERS: list[Any] = []
_PLAIN = frozenset({int, bool, str, bytes, type(None)})


class Same:
    """An object that is compared by identity; it is not kept alive."""

    __slots__ = ("_get", "_number")

    def __init__(self, value: Any):
        self._number = id(value)
        try:
            self._get: Callable[[], Any] = weakref.ref(value)
        except TypeError:  # a type without weak references
            self._get = lambda: value

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same) or self._number != other._number:
            return False
        mine = self._get()
        return mine is not None and mine is other._get()


class CallArguments:
    """The arguments of one call, read.

    Attributes:
        tensors: in the order in which they are found; the gradients that the function takes as inputs follow.
        slots: of their storages.
        generators: likewise.
        others: arguments that are compared by identity.
        given: the dynamic arguments.
        where: of each of them, its place among the arguments, or its name.
        numbers: their values; floats by their bits.
        names: of their parameters.
        key: everything that must be equal for a replay.
        offsets: where the tensors begin that are given.
        values: what words of launches may follow: the numbers, then the offsets.
        reason: why the call can only run eagerly.
    """

    __slots__ = (
        "generators", "given", "key", "names", "numbers", "offsets", "others", "reason", "slots", "tensors",
        "values", "where",
    )  # fmt: skip

    def __init__(self):
        self.tensors: list[Tensor] = []
        self.slots: list[int] = []
        self.generators: list[Generator] = []
        self.others: list[Any] = []
        # Most calls have no numbers, and lists take time to make.
        self.given = self.where = self.numbers = self.names = _NO_NUMBERS
        self.key: tuple = ()
        self.offsets: list[int] = []
        self.values: list[int] = []
        self.reason: str | None = None

    def branch(self, value: Any) -> Any:
        """The part of the key that an argument makes; its tensors and generators are noted."""
        kind = type(value)
        if kind is Tensor or issubclass(kind, Tensor):
            self.tensors.append(value)
            return kind
        if kind in _PLAIN:
            return kind, value
        if isinstance(value, np.generic):
            return kind, value.tobytes()
        if kind is float:
            return kind, value.hex()  # tells 0.0 from -0.0, and a NaN is equal to itself
        if kind is list or kind is tuple or hasattr(kind, "_fields"):
            return kind, *[self.branch(v) for v in value]
        if kind is dict:
            return kind, *[(k, self.branch(v)) for k, v in value.items()]
        if kind is set or kind is frozenset:
            return kind, frozenset([self.branch(v) for v in value])
        if kind is Generator:
            self.generators.append(value)
            return kind
        if is_dataclass(kind):
            return kind, *[self.branch(getattr(value, f.name)) for f in fields(value)]
        if kind is np.ndarray:
            self.reason = "an argument is a numpy array, which Python uploads. Give a tensor"
            return kind
        self.others.append(value)
        return Same(value)

    def number(self, name: str, value: Any, where: int | str) -> Any:
        """The part of the key that a dynamic argument makes."""
        kind = type(value)
        if kind is not int and kind is not float:
            return self.branch(value)
        if not self.given:
            self.given, self.where, self.numbers, self.names = [], [], [], []
        self.given.append(value)
        self.where.append(where)
        self.numbers.append(value if kind is int else float_bits(value))
        self.names.append(name)
        return "dynamic", kind

    def finish(self, branches: tuple) -> None:
        """Make the key, once all arguments are read."""
        slots, offsets = self.slots, self.offsets
        grad = is_grad_enabled()
        metas, places = [], []
        for t in self.tensors:
            storage = t._storage
            if type(storage) is not Storage:
                self.reason = "an argument is not on webgpu"
                return
            slots.append(storage.slot)
            offsets.append(t._offset)
            metas.append(t._meta)
            if grad:
                node = t._node
                if node is not None and node is not LEAF:
                    self.reason = (
                        "an argument was computed with gradients, and the graph would cross the call"
                    )
                places += (node is None, t.grad is None)
        shared: Any = None
        if len(set(slots)) < len(slots):
            # Where arguments share memory, their offsets are part of what must be equal.
            shared = tuple([(slots.index(slot), at) for slot, at in zip(slots, offsets, strict=True)])
        self.values = self.numbers + offsets
        s = stream()
        self.key = (
            branches,
            tuple(metas),
            tuple(places) if grad else None,
            shared,
            get_default_dtype(),
            get_default_device(),
            s.rewrite is not None,
            s.opened,
            are_deterministic_algorithms_enabled(),
            tuned.changes(),
        )

    def extended(self, more: list[Tensor]) -> CallArguments:
        """The call with tensors that the function takes without being given them."""
        if not more:
            return self
        made = copy(self)
        made.tensors = self.tensors + more
        made.slots = self.slots + [t._storage.slot for t in more]
        return made

    def with_symbols(
        self, args: tuple, kwargs: Mapping[str, Any], conditions: Conditions
    ) -> tuple[tuple, dict[str, Any]]:
        """The arguments for a call that is recorded, its numbers as symbols."""
        positional, named = list(args), dict(kwargs)
        for where, symbol in zip(self.where, conditions.symbols(), strict=True):
            if isinstance(where, int):
                positional[where] = symbol
            else:
                named[where] = symbol
        return tuple(positional), named


def read(names: list[str], dynamic: frozenset[str], args: tuple, kwargs: Mapping[str, Any]) -> CallArguments:
    """Read the arguments of a call: ``names`` are the positional parameters, ``dynamic`` those whose numbers
    may change."""
    call = CallArguments()
    branches = []
    for k, value in enumerate(args):
        if type(value) is Tensor:
            call.tensors.append(value)
            branches.append(Tensor)
        elif dynamic and k < len(names) and names[k] in dynamic:
            branches.append(call.number(names[k], value, k))
        else:
            branches.append(call.branch(value))
    for name, value in kwargs.items():
        branches.append((name, call.number(name, value, name) if name in dynamic else call.branch(value)))
    call.finish(tuple(branches))
    return call
