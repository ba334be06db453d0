"""One call of a compiled function: what must be equal for a replay, and what a replay takes anew."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import chain
from typing import Any

import numpy as np

from ...autograd.edges import LEAF
from ...autograd.grad_mode import is_grad_enabled
from ...device import get_default_device
from ...device.stream import Storage, stream
from ...ops.random.generator import Generator
from ...optim.casting import active
from ...tensors.dtypes import get_default_dtype
from ...tensors.tensor import Tensor
from ..kernel.autotune import measured as tuned
from ..kernel.autotune.deterministic import are_deterministic_algorithms_enabled
from ..kernel.float_words import float_bits
from ..pytree import Same, flatten
from ..symbols import Conditions

_PLAIN = frozenset({int, bool, str, bytes, type(None)})


class CallArguments:
    """The arguments of one call, read.

    Args:
        dynamic: places and names of parameters whose numbers may change -> their names.
        args, kwargs: the arguments.

    Attributes:
        args, kwargs: the arguments.
        tensors: in the order in which they are found; the gradients that the function takes as inputs follow.
        slots: of their storages.
        offsets: where they begin.
        generators: likewise.
        others: arguments that are compared by identity.
        given, names: the dynamic arguments, and those of their parameters.
        key: everything that must be equal for a replay.
        values: what words of launches may follow: the numbers, floats by their bits, then the offsets.
        reason: why the call can only run eagerly.
    """

    __slots__ = (
        "args", "dynamic", "generators", "given", "key", "kwargs", "names", "offsets", "others", "reason",
        "slots", "tensors", "values",
    )  # fmt: skip

    def __init__(self, dynamic: Mapping[int | str, str], args: tuple, kwargs: dict[str, Any]):
        self.args, self.kwargs = args, kwargs
        self.tensors: list[Tensor] = []
        self.slots: list[int] = []
        self.offsets: list[int] = []
        self.generators: list[Generator] = []
        self.others: list[Any] = []
        self.dynamic = dynamic
        self.given: list[int | float] = []
        self.names: list[str] = []
        self.reason: str | None = None
        leaves: list[Any] = []
        structure: list[Any] = []
        for where, value in chain(enumerate(args), kwargs.items()) if kwargs else enumerate(args):
            kind = type(value)
            if kind is Tensor:
                leaves.append(value)
                structure.append(kind)
            elif where in dynamic and (kind is int or kind is float):
                self.given.append(value)
                self.names.append(dynamic[where])
                structure.append(("dynamic", kind))
            else:
                structure.append(flatten(value, leaves))
        slots, offsets = self.slots, self.offsets
        grad = is_grad_enabled()
        metas, places, plain = [], [], []
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                plain.append(self._plain(leaf))
                continue
            storage = leaf._storage
            if type(storage) is not Storage:
                self.reason = "an argument is not on webgpu"
                return
            self.tensors.append(leaf)
            slots.append(storage.slot)
            offsets.append(leaf._offset)
            metas.append(leaf._meta)
            if grad:
                node = leaf._node
                if node is not None and node is not LEAF:
                    self.reason = (
                        "an argument was computed with gradients, and the graph would cross the call"
                    )
                places += (node is None, leaf.grad is None)
        self.values = offsets
        if self.given:
            self.values = [v if type(v) is int else float_bits(v) for v in self.given] + offsets
        shared: Any = None
        if len(set(slots)) < len(slots):
            # Where arguments share memory, their offsets are part of what must be equal.
            shared = tuple([(slots.index(slot), at) for slot, at in zip(slots, offsets, strict=True)])
        s = stream()
        self.key = (
            tuple(structure), tuple(kwargs), tuple(plain), tuple(metas), tuple(places), grad, shared,
            get_default_dtype(), get_default_device(), s.rewrite is not None, s.opened,
            are_deterministic_algorithms_enabled(), tuned.changes(), active.get(),
        )  # fmt: skip

    def _plain(self, value: Any) -> Any:
        """The part of the key that an argument makes which is no tensor."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is float:
            return value.hex()  # tells 0.0 from -0.0, and a NaN is equal to itself
        if isinstance(value, np.generic):
            return value.tobytes()
        if kind is set or kind is frozenset:
            return frozenset([self._member(v) for v in value])
        if kind is Generator:
            self.generators.append(value)
            return None
        if kind is np.ndarray:
            self.reason = "an argument is a numpy array, which Python uploads. Give a tensor"
            return None
        self.others.append(value)
        return Same(value)

    def _member(self, value: Any) -> tuple:
        leaves: list[Any] = []
        return flatten(value, leaves), *map(self._plain, leaves)

    def extended(self, more: list[Tensor]) -> CallArguments:
        """The call with tensors that the function takes without being given them."""
        if not more:
            return self
        made = copy(self)
        made.tensors = self.tensors + more
        made.slots = self.slots + [t._storage.slot for t in more]
        return made

    def with_symbols(self, conditions: Conditions) -> tuple[tuple, dict[str, Any]]:
        """The arguments for a call that is recorded, its numbers as symbols."""
        symbols: dict[Any, Any] = dict(zip(self.names, conditions.symbols(), strict=True))
        positional = [symbols.get(self.dynamic.get(k), value) for k, value in enumerate(self.args)]
        return tuple(positional), {name: symbols.get(name, value) for name, value in self.kwargs.items()}
