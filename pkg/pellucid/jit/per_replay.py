"""Per-replay parameters: random words and the numbers of optimizers, which every replay asks for anew."""

from __future__ import annotations

import weakref
from collections.abc import Collection
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ..op.plan import bits_of_floats
from ..ops.random.generator import Generator

if TYPE_CHECKING:
    from .calls import CallArguments

_parameters = itemgetter("params")


class Draw:
    """Random words that a generator reserves.

    Args:
        generator: whose.
        count: how many words.
        call: whose arguments may hold the generator.
    """

    def __init__(self, generator: Generator, count: int, call: CallArguments):
        places = (k for k, given in enumerate(call.generators) if given is generator)
        self._generator: Generator | int = next(places, generator)
        self._count = count

    @property
    def key(self) -> tuple:
        """Equal for parameters that replays bring alike."""
        found = self._generator
        return found if type(found) is int else id(found), self._count

    def _of(self, call: CallArguments) -> Generator:
        found = self._generator
        return call.generators[found] if isinstance(found, int) else found

    def words(self, call: CallArguments) -> list[int]:
        """Reserve the words of a replay: the generator's seed and counter."""
        return [*self._of(call).take(self._count)]

    def give_back(self, call: CallArguments, words: list[int]) -> None:
        """Let the generator be as it was, where nobody else has drawn since."""
        generator = self._of(call)
        seed, begin = words[0] | words[1] << 32, words[2] | words[3] << 32
        if generator.get_state() == (seed, begin + -(-self._count // 4)):
            generator.set_state((seed, begin))


class Update:
    """The numbers of an optimizer's step for parameters that it changes alike.

    Args:
        optimizer: whose step.
        group: the settings.
        step: how many steps the parameters count by now.
        symbols: what stands for the numbers while the call is recorded.

    Attributes:
        table: where the optimizer keeps its state.
        states: of each parameter that it keeps something of.
        changed: ids of the parameters.
    """

    def __init__(self, optimizer: Any, group: dict[str, Any], step: int | None, symbols: tuple):
        self.optimizer, self.group, self.step, self.symbols = optimizer, group, step, symbols
        self.table = optimizer.state
        # Of the settings, those that decide which kernel runs.
        self._kernel = optimizer._kernel(group)
        self.states: list[dict[str, Any]] = []
        self.changed: set[int] = set()

    @property
    def key(self) -> tuple:
        return id(self.optimizer), id(self.group), self._kernel, *map(id, self.states)

    def is_of(self, optimizer: Any, group: dict[str, Any], step: int | None) -> bool:
        """Whether it is that of such parameters."""
        return self.optimizer is optimizer and self.group is group and self.step == step

    def words(self, call: CallArguments) -> list[int]:
        """Count the step of a replay; the words of its numbers."""
        return bits_of_floats(self.optimizer._repeat(self.group, self.states))

    def holds(self) -> bool:
        """Whether the same launches would run, if the optimizer still has the group."""
        if self.optimizer._kernel(self.group) != self._kernel:
            return False
        steps = [state.get("step") for state in self.states]
        return not steps or steps.count(steps[0]) == len(steps)


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
        if self._optimizer.state is not self._table or self._now() != self._known:
            return False
        for get in self._left:
            parameter = get()
            # What was left alone had no gradient.
            if parameter is None or parameter.grad is not None:
                return False
        return True


def guards(brought: Collection[Draw | Update]) -> list[Any]:
    """What must hold for a replay to bring the parameters of a call: functions."""
    updates = [p for p in brought if isinstance(p, Update)]
    tables = {id(u.table): [other for other in updates if other.table is u.table] for u in updates}
    return [thing.holds for thing in (*map(OptimizerGuard, tables.values()), *updates)]
