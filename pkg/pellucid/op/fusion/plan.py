"""The plan of a window: how its fused window is made, by picking words."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from ...device.commands import ALLOC, CODE_BITS, FREE
from ...device.stream import stream
from ..launches import RegisteredLaunch
from .commands import FusionCommand, read
from .groups import Group, Planner
from .joints import Joiner
from .kernels import Fused, fuse
from .repeats import plan_by_repeats
from .work import Work, done

# Windows in whose time the kernels of a plan are mostly compiled.
_COMPILING = 32
# Seconds in which they are compiled, unless nobody hears of it.
_LONGEST = 2.0


@dataclass
class FusionPlan:
    """How a fused window is made from the commands of one.

    Args:
        places: of the words of the fused window, in order: in the window or in the constants behind it.
        constants: words that no window has: heads of fused launches.
        zeros: places of words that must be zero for the plan to hold.
        heads: the same words, which hold these launches.
        stands: the launches that stand for several, by where their command begins in the fused window: what
            each does, and a word of every command whose work it does. For traces.
        is_exact: its kernels give the bits of those that they stand for. It is used once they are compiled,
            or after two seconds: a page that lets the browser take no turn does not hear of it.
        turns: windows that run as recorded before one that is not exact is used: then and not before, so that
            whenever the program runs it has the same bits.
        is_ready: its kernels were compiled when somebody looked.
        begun: when it was made, in seconds of a clock.
    """

    places: np.ndarray
    constants: np.ndarray
    zeros: np.ndarray
    heads: tuple[int, ...]
    stands: dict[int, tuple[RegisteredLaunch, tuple[int, ...]]]
    is_exact: bool
    turns: int
    is_ready: bool = False
    begun: float = field(default_factory=perf_counter)

    def holds(self, window: np.ndarray) -> bool:
        """Whether the tensors of a window begin where the plan takes them to."""
        return not self.zeros.size or not np.count_nonzero(window[self.zeros])

    def is_due(self) -> bool:
        """Whether windows are made by it, and do not run as recorded while its kernels are compiled."""
        if self.is_ready:
            return True
        if self.is_exact:
            launches = {head >> CODE_BITS for head in self.heads}
            is_late = perf_counter() > self.begun + _LONGEST
            self.is_ready = is_late or stream().open().compiled([*launches])
        else:
            self.is_ready = self.turns <= 0
            self.turns -= 1
        return self.is_ready

    def apply(self, window: np.ndarray) -> array:
        """The fused window."""
        return array("I", np.concatenate((window, self.constants))[self.places].tobytes())


def planning(words: list[int], period: int = 0) -> Work[FusionPlan]:
    """Fuse the launches of a window.

    Args:
        words: the window.
        period: after how many words its commands begin anew; 0 if they do not.
    """
    plan = (yield from plan_by_repeats(words, period, _whole)) if period else None
    return (yield from _whole(words)) if plan is None else plan


def make_plan(words: list[int], period: int = 0) -> FusionPlan:
    """The same at once."""
    return done(planning(words, period))


def _whole(words: list[int]) -> Work[FusionPlan]:
    commands = []
    for command in read(words):
        commands.append(command)
        yield int(command.node is not None)
    joiner = Joiner(words, commands)
    planner = Planner(words, (yield from joiner.run()))
    placed = yield from planner.run()
    allocations = {r.slots[0]: r for r in placed if isinstance(r, FusionCommand) and r.code == ALLOC}
    freed = {r.slots[0] for r in placed if isinstance(r, FusionCommand) and r.code == FREE}
    constants: list[int] = []
    groups: list[Fused] = []
    stands: dict[int, tuple[RegisteredLaunch, tuple[int, ...]]] = {}
    picked: list[int] = []

    def constant(word: int) -> int:
        constants.append(word)
        return len(words) + len(constants) - 1

    def exist(slots: Iterable[int]) -> None:
        """A slot exists from just before its first use; one that is never used needs no memory."""
        for slot in slots:
            if (command := allocations.pop(slot, None)) is not None:
                picked.extend(command.words)

    def run(node: RegisteredLaunch, words_of_run: Iterable[int], commands: Iterable[FusionCommand]) -> None:
        if node.members:
            stands[len(picked)] = node, tuple([word for r in commands for word in r.origins])
        picked.append(constant(node.head))
        picked.extend(words_of_run)

    for item in placed:
        if isinstance(item, Group):
            if len(item.members) > 1:
                fused = yield from fuse(item, words)
                if fused is not None:  # else its members run one by one
                    groups.append(fused)
                    exist(words[at] for at in fused.words[: len(fused.node.metas)])
                    run(fused.node, fused.words, [m.command for m in item.members])
                    continue
            for m in item.members:
                exist(m.command.slots)
                run(m.node, m.command.words, [m.command])
        elif item.code == FREE:
            if item.slots[0] not in allocations:
                picked += item.words
        elif item.code != ALLOC:
            exist(item.slots)
            if item.node is not None:
                run(item.node, item.words, [item])
            else:
                picked += item.words
    # What is held and was never used.
    exist([slot for slot in allocations if slot not in freed])
    zeros = sorted({*joiner.zeros, *planner.zeros, *[z for made in groups for z in made.zeros]})
    return FusionPlan(
        np.array(picked, np.intp),
        np.array(constants, np.uint32),
        np.array(zeros, np.intp),
        tuple(constants),
        stands,
        joiner.is_exact,
        _COMPILING if stream().open().compiles_beside else 0,
    )
