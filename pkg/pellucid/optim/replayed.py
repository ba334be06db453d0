"""Steps of optimizers in captured functions: a replay counts its step and takes the settings of its time."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..op.kernel.float_words import bits_of_floats
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .optimizer import Optimizer

_parameters = itemgetter("params")


def counts(state: dict[str, Any]) -> dict[str, float]:
    """The numbers among a parameter's state: steps, and what an optimizer makes of them."""
    return {name: value for name, value in state.items() if isinstance(value, (int, float))}


class Update:
    """The numbers of an optimizer's step for parameters that it changes alike.

    Args:
        optimizer: whose step.
        group: the settings.
        counted: what the parameters' states count by now.

    Attributes:
        symbols: what stands for the numbers while the call is recorded.
        table: where the optimizer keeps its state.
        states: of each parameter that it keeps something of.
        changed: ids of the parameters.
    """

    def __init__(self, optimizer: Any, group: dict[str, Any], counted: dict[str, float]):
        self.optimizer, self.group, self.counted = optimizer, group, counted
        self.table, self.symbols = optimizer.state, ()
        # Of the settings, those that decide which kernel runs.
        self._kernel = optimizer._kernel(group)
        self.states: list[dict[str, Any]] = []
        self.changed: set[int] = set()

    @property
    def key(self) -> tuple:
        """Equal for those that replays bring alike."""
        return id(self.optimizer), id(self.group), self._kernel, *map(id, self.states)

    def is_of(self, optimizer: Any, group: dict[str, Any], counted: dict[str, float]) -> bool:
        """Whether it is that of such parameters."""
        return self.optimizer is optimizer and self.group is group and self.counted == counted

    def words(self, given: Any) -> list[int]:
        """Count the step of a replay; the words of its numbers."""
        return bits_of_floats(self.optimizer._repeat(self.group, self.states))

    def holds(self) -> bool:
        """Whether the same launches would run, if the optimizer still has the group."""
        if self.optimizer._kernel(self.group) != self._kernel:
            return False
        counted = [counts(state) for state in self.states]
        return not counted or counted.count(counted[0]) == len(counted)


class OptimizerGuard:
    """What an optimizer changes, and what it keeps of that: a replay changes the same.

    Args:
        updates: of one optimizer, with one table of its state.
    """

    def __init__(self, updates: list[Update]):
        self._optimizer, self._table = o, table = updates[0].optimizer, updates[0].table
        # The end of a group or a state is not awaited: another one must not get its place.
        self._kept = [*o.param_groups, *table.values()]
        self._known = self._now()
        changed = set().union(*[u.changed for u in updates])
        parameters = chain.from_iterable(map(_parameters, o.param_groups))
        self._left = [weakref.ref(p) for p in parameters if id(p) not in changed]

    def _now(self) -> list[int]:
        groups = self._optimizer.param_groups
        parameters = chain.from_iterable(map(_parameters, groups))
        return [*map(id, groups), *map(id, self._table.values()), *map(id, parameters)]

    def holds(self) -> bool:
        """Whether a step would change the same parameters, by the same settings and state."""
        o = self._optimizer
        if o.state is not self._table or o._listens() or self._now() != self._known:
            return False
        for get in self._left:
            parameter = get()
            # What was left alone had no gradient.
            if parameter is None or parameter.grad is not None:
                return False
        return True


def followed(
    capturing: Any,
    optimizer: Optimizer,
    parameter: Tensor,
    group: dict[str, Any],
    state: dict[str, Any],
    numbers: tuple[float, ...],
) -> tuple:
    """What stands in a recorded call for the numbers by which an optimizer is about to change a parameter."""
    counted = counts(state)
    for found in capturing.brought:
        if isinstance(found, Update) and found.is_of(optimizer, group, counted):
            break
    else:
        found = Update(optimizer, group, counted)
        reason = f"{type(optimizer).__name__} changes parameters that are not on webgpu"
        found.symbols = capturing.bring(found, numbers, reason)
    found.changed.add(id(parameter))
    if parameter in optimizer.state:
        found.states.append(state)
    return found.symbols


def guards(brought: Iterable[Any]) -> list[Callable[[], bool]]:
    """What must hold for a replay to bring the parameters of a call."""
    updates = [p for p in brought if isinstance(p, Update)]
    tables = {id(u.table): [other for other in updates if other.table is u.table] for u in updates}
    return [thing.holds for thing in (*map(OptimizerGuard, tables.values()), *updates)]
