"""One call of a compiled function: what must be equal for a replay, and what a replay takes anew."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from ..autograd.grad_mode import is_grad_enabled
from ..deterministic import are_deterministic_algorithms_enabled
from ..device import get_default_device
from ..device.stream import Storage, stream
from ..dtypes import get_default_dtype
from ..plan import float_bits
from ..random import Generator
from ..tensor import Tensor

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


@dataclass
class Call:
    """The arguments of one call, read.

    Args:
        tensors: in the order in which they are found; the gradients that the function takes as inputs follow.
        generators: likewise.
        others: arguments that are compared by identity.
        numbers: values of the dynamic arguments; floats by their bits.
        kinds: of each of them, `int` or `float`.
        names: of their parameters.
        key: everything that must be equal for a replay.
        values: what patched words may follow: offsets of the tensors, then the numbers.
        reason: why the call can only run eagerly.
    """

    tensors: list[Tensor] = field(default_factory=list)
    generators: list[Generator] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    kinds: list[type] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    key: tuple = ()
    values: list[int] = field(default_factory=list)
    reason: str | None = None

    @property
    def slots(self) -> list[int]:
        """Of the tensors' storages."""
        return [t._storage.slot for t in self.tensors]

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

    def number(self, name: str, value: Any) -> Any:
        """The part of the key that a dynamic argument makes."""
        kind = type(value)
        if kind is int:
            self.numbers.append(value)
        elif kind is float:
            self.numbers.append(float_bits(value))
        else:
            return self.branch(value)
        self.kinds.append(kind)
        self.names.append(name)
        return "dynamic", kind

    def finish(self, branches: tuple) -> None:
        """Make the key, once all arguments are read."""
        tensors = self.tensors
        if any(type(t._storage) is not Storage for t in tensors):
            self.reason = "an argument is not on webgpu"
            return
        shared: Any = None
        owners = [id(t._storage) for t in tensors]
        if len(set(owners)) < len(owners):
            # Where arguments share memory, their offsets are part of what must be equal.
            shared = tuple([(owners.index(o), t._offset) for o, t in zip(owners, tensors, strict=True)])
        grad = is_grad_enabled()
        if grad and any(t._node is not None and not t.is_leaf for t in tensors):
            self.reason = "an argument was computed with gradients, and the graph would cross the call"
        s = stream()
        self.key = (
            branches,
            tuple([t._meta for t in tensors]),
            tuple([(t._node is not None, t.grad is None) for t in tensors]) if grad else None,
            shared,
            get_default_dtype(),
            get_default_device(),
            s.rewrite is not None,
            s.opened,
            are_deterministic_algorithms_enabled(),
        )
        self.values = [*[t._offset for t in tensors], *self.numbers]

    def extended(self, more: list[Tensor]) -> Call:
        """The call with tensors that the function takes without being given them."""
        if not more:
            return self
        tensors = self.tensors + more
        values = [*[t._offset for t in tensors], *self.numbers]
        return replace(self, tensors=tensors, values=values)


def read(names: list[str], dynamic: frozenset[str], args: tuple, kwargs: Mapping[str, Any]) -> Call:
    """Read the arguments of a call.

    Args:
        names: the function's positional parameters.
        dynamic: parameters whose numbers may change.
        args, kwargs: the call's.
    """
    call = Call()
    branches = []
    for k, value in enumerate(args):
        is_dynamic = dynamic and k < len(names) and names[k] in dynamic
        branches.append(call.number(names[k], value) if is_dynamic else call.branch(value))
    for name, value in kwargs.items():
        branches.append((name, call.number(name, value) if name in dynamic else call.branch(value)))
    call.finish(tuple(branches))
    return call
