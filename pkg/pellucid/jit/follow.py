"""Numbers of launches that are other ones at every call, whatever its arguments: random words, and those of
optimizers."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

from ..op.plan import bits_of_floats
from ..ops.random.generator import Generator
from .calls import CallArguments
from .program import Program
from .recording import Draw, Refused, Update

_parameters = itemgetter("params")
_RANDOM = ("seed_low", "seed_high", "offset_low", "offset_high")


@dataclass
class _Draw:
    """Words that are reserved at every call.

    Args:
        generator: whose; a number if it is an argument.
        count: how many.
    """

    generator: Generator | int
    count: int


@dataclass
class _Group:
    """Parameters that an optimizer changes alike: their launches take the same numbers.

    Args:
        optimizer: whose.
        group: their settings.
        kernel: of the settings, those that decide which kernel runs.
        states: of each parameter that it keeps something of.
    """

    optimizer: Any
    group: dict[str, Any]
    kernel: tuple
    states: list[dict[str, Any]]

    def holds(self) -> bool:
        """Whether the same launches would run, if the optimizer still has the group."""
        if self.optimizer._kernel(self.group) != self.kernel:
            return False
        steps = [state.get("step") for state in self.states]
        return not steps or steps.count(steps[0]) == len(steps)


class _Optimizer:
    """What an optimizer changes, and what it keeps of that: a replay changes the same.

    Args:
        optimizer: whose step was recorded.
        table: where it keeps its state.
        changed: ids of the parameters that were changed.
    """

    def __init__(self, optimizer: Any, table: Any, changed: Collection[int]):
        self._optimizer, self._table = optimizer, table
        # The end of a group or a state is not awaited: another one must not get its place.
        self._kept = [*optimizer.param_groups, *table.values()]
        self._known = self._now()
        parameters = chain.from_iterable(map(_parameters, optimizer.param_groups))
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


class Followed:
    """What of a program's numbers a replay asks generators and optimizers for.

    Args:
        program: the records.
        draws, updates: numbers that were noted.
        call: whose arguments may be generators.

    Attributes:
        guards: whether optimizers would run the same launches.
        words: place in the program -> ("draw" or "update", which, word of it).
        signature: equal for programs that ask for the same.

    Raises:
        Refused: a number that was noted is found in no launch.
    """

    def __init__(
        self, program: Program, draws: Sequence[Draw], updates: Sequence[Update], call: CallArguments
    ):
        self.words: dict[int, tuple[str, int, int]] = {}
        self._draws: list[_Draw] = []
        changed: dict[tuple, set[int]] = {}
        for update in updates:
            changed.setdefault((update.optimizer, id(update.table)), set()).add(id(update.parameter))
        tables = {id(update.table): update.table for update in updates}
        optimizers = [_Optimizer(o, tables[t], ids) for (o, t), ids in changed.items()]
        self._groups: list[_Group] = []
        given = {id(g): k for k, g in enumerate(call.generators)}
        for draw in draws:
            self._draw(program, draw, given)
        alike: dict[tuple, int] = {}
        for update in updates:
            self._update(program, update, alike)
        drawn = [(d.generator if type(d.generator) is int else id(d.generator), d.count) for d in self._draws]
        self.guards = [thing.holds for thing in (*optimizers, *self._groups)]
        groups = [(id(g.optimizer), id(g.group), g.kernel, [*map(id, g.states)]) for g in self._groups]
        self.signature = drawn, groups, self.words

    def _draw(self, program: Program, draw: Draw, given: dict[int, int]) -> None:
        number = given.get(id(draw.generator))
        self._draws.append(_Draw(draw.generator if number is None else number, draw.count))
        places = _places(program, draw.at, _RANDOM)
        if places is None or [program.words[at] for at in places] != [*draw.state]:
            if draw.count:
                raise Refused("it draws random numbers in Python, not on webgpu")
            return
        self.words |= {at: ("draw", len(self._draws) - 1, k) for k, at in enumerate(places)}

    def _update(self, program: Program, update: Update, alike: dict[tuple, int]) -> None:
        o, group = update.optimizer, update.group
        state = update.state
        # A function may take several steps.
        key = id(o), id(group), update.step
        if key not in alike:
            alike[key] = len(self._groups)
            self._groups.append(_Group(o, group, o._kernel(group), []))
        if state is not None:
            self._groups[alike[key]].states.append(state)
        places = _places(program, update.at, o._followed)
        if places is None:
            raise Refused(f"{type(o).__name__} changes parameters that are not on webgpu")
        self.words |= {at: ("update", alike[key], k) for k, at in enumerate(places)}

    def draws(self, call: CallArguments) -> list[tuple[int, ...]]:
        """Reserve the random words of a replay."""
        return [_generator(d, call).take(d.count) for d in self._draws] if self._draws else []

    def generators(self, call: CallArguments) -> list[Generator]:
        """Whom the random words are reserved of, in order."""
        return [_generator(d, call) for d in self._draws]

    def updates(self) -> list[list[int]]:
        """Count the step of a replay; the words of every group."""
        return (
            [bits_of_floats(g.optimizer._repeat(g.group, g.states)) for g in self._groups]
            if self._groups
            else []
        )


def _generator(draw: _Draw, call: CallArguments) -> Generator:
    found = draw.generator
    return call.generators[found] if isinstance(found, int) else found


def _places(program: Program, at: int, names: Sequence[str]) -> list[int] | None:
    """Where the first launch from a word on that takes these numbers has them."""
    for recorded, here, node in program.runs:
        if recorded >= at and set(names) <= set(node.patched):
            first = here + 1 + len(node.metas)
            return [first + node.patched.index(name) for name in names]
    return None
