"""Numbers of launches that are other ones at every call, whatever its arguments: random words, and those of
optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..plan import float_bits
from ..random import Generator
from .calls import Call
from .program import Program
from .recording import Draw, Refused, Update

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
        table: where the optimizer keeps its state.
        states: of each parameter that it keeps something of.
    """

    optimizer: Any
    group: dict[str, Any]
    kernel: tuple
    table: Any
    states: list[dict[str, Any]]

    def holds(self) -> bool:
        """Whether the same launches would run."""
        o = self.optimizer
        return (
            o.state is self.table
            and any(g is self.group for g in o.param_groups)
            and o._kernel(self.group) == self.kernel
            and len({s.get("step") for s in self.states}) <= 1
        )


class Followed:
    """What of a program's numbers a replay asks generators and optimizers for.

    Args:
        program: the records.
        draws, updates: numbers that were noted.
        call: whose arguments may be generators.

    Attributes:
        words: place in the program -> ("draw" or "update", which, word of it).
        signature: equal for programs that ask for the same.

    Raises:
        Refused: a number that was noted is found in no launch.
    """

    def __init__(self, program: Program, draws: Sequence[Draw], updates: Sequence[Update], call: Call):
        self.words: dict[int, tuple[str, int, int]] = {}
        self._draws: list[_Draw] = []
        self._groups: list[_Group] = []
        given = {id(g): k for k, g in enumerate(call.generators)}
        for draw in draws:
            self._draw(program, draw, given)
        alike: dict[tuple, int] = {}
        for update in updates:
            self._update(program, update, alike)
        drawn = [(d.generator if type(d.generator) is int else id(d.generator), d.count) for d in self._draws]
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
        key = id(o), id(group), None if state is None else state.get("step")
        if key not in alike:
            alike[key] = len(self._groups)
            self._groups.append(_Group(o, group, o._kernel(group), update.table, []))
        if state is not None:
            self._groups[alike[key]].states.append(state)
        places = _places(program, update.at, o._followed)
        if places is None:
            raise Refused(f"{type(o).__name__} changes parameters that are not on webgpu")
        self.words |= {at: ("update", alike[key], k) for k, at in enumerate(places)}

    def holds(self) -> bool:
        """Whether optimizers would run the same launches."""
        return all(g.holds() for g in self._groups)

    def draws(self, call: Call) -> list[tuple[int, ...]]:
        """Reserve the random words of a replay."""
        return [_generator(d, call).take(d.count) for d in self._draws]

    def generators(self, call: Call) -> list[Generator]:
        """Whom the random words are reserved of, in order."""
        return [_generator(d, call) for d in self._draws]

    def updates(self) -> list[list[int]]:
        """Count the step of a replay; the words of every group."""
        return [[float_bits(x) for x in g.optimizer._repeat(g.group, g.states)] for g in self._groups]


def _generator(draw: _Draw, call: Call) -> Generator:
    found = draw.generator
    return call.generators[found] if isinstance(found, int) else found


def _places(program: Program, at: int, names: Sequence[str]) -> list[int] | None:
    """Where the first launch from a word on that takes these numbers has them."""
    for recorded, here, node in program.runs:
        if recorded >= at and set(names) <= set(node.patched):
            first = here + 1 + len(node.metas)
            return [first + node.patched.index(name) for name in names]
    return None
