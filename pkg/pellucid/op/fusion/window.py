"""Windows as the host gets them: the first of a kind as recorded, later ones with their launches fused.

A window's structure is all but its patched words. The first time that a structure appears it runs as it is,
with kernels that exist; the second time it is planned, and its fused kernels are compiled while it runs as it
is; from then on its windows are known (`known`), and once the kernels are compiled a plan makes the fused one
by picking words. Fused kernels give the bits of those that they stand for, so results do not tell when that
was.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...device.commands import ALLOC, CODE_BITS, FREE, first_work
from ...device.stream import stream
from ..launches import MOST_LAUNCHES, RegisteredLaunch, nodes, on_thin
from .commands import FusionCommand, period, read, structure
from .groups import Group, Planner
from .joints import Joiner
from .kernels import Fused, fuse
from .known import Ends, Known, Pattern, PlanCache
from .repeats import plan_by_repeats

# Structures that were met once and are remembered; past that they are forgotten: a program may never repeat
# itself. Words of all plans that are kept; past that the plans used longest ago go.
_MOST_STRUCTURES = 4096
_MOST_WORDS = 1 << 18
# Windows in whose time the kernels of a plan are mostly compiled.
_COMPILING = 32
# Plans for one structure: they differ in which tensors begin where their buffer does.
_MOST_PLANS = 4


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
        is_exact: its kernels give the bits of those that they stand for.
        turns: windows that run as recorded before it is used in any case. One that is not exact is used then
            and not before, so that whenever the program runs it has the same bits.
        is_ready: its kernels were compiled when somebody looked.
    """

    places: np.ndarray
    constants: np.ndarray
    zeros: np.ndarray
    heads: tuple[int, ...]
    stands: dict[int, tuple[RegisteredLaunch, tuple[int, ...]]]
    is_exact: bool
    turns: int
    is_ready: bool = False

    def holds(self, window: np.ndarray) -> bool:
        """Whether the tensors of a window begin where the plan takes them to."""
        return not self.zeros.size or not np.count_nonzero(window[self.zeros])

    def is_due(self) -> bool:
        """Whether windows are made by it, and do not run as recorded while its kernels are compiled."""
        if self.is_ready:
            return True
        launches = {head >> CODE_BITS for head in self.heads}
        self.is_ready = self.turns <= 0 or (self.is_exact and stream().open().compiled([*launches]))
        self.turns -= 1
        return self.is_ready

    def apply(self, window: np.ndarray) -> array:
        """The fused window."""
        return array("I", np.concatenate((window, self.constants))[self.places].tobytes())


# Called with the commands of every window and the plan that is applied to them: traces.
on_rewrite: list[Callable[[list[int], FusionPlan | None], None]] = []
# Structures that were met once.
_met: set[bytes] = set()
_known = PlanCache(_MOST_WORDS)
_at_once = False
# Whether plans are looked for or made. What Python runs in between, such as a finalizer, has windows of its
# own, which run as they are.
_is_planning = False
_NONE = array("I")


def forget() -> None:
    """Drop all plans, for example because their launches mean nothing to another device."""
    _met.clear()
    _known.clear()


class Found(NamedTuple):
    """A window, and what is known of it.

    Args:
        begin: what went away before it, which belongs to no window's structure.
        words: its commands.
        window: the same, packed.
        given: the same.
        known: its structure, if that has plans.
        ends: which slots end, if it has.
    """

    begin: array
    words: list[int]
    window: array
    given: np.ndarray
    known: Known | None
    ends: Ends | None


def recognise(words: list[int], window: array) -> Found:
    """What is known of a window; `rewrite` goes on from there.

    Args:
        words: the commands.
        window: the same, packed.
    """
    global _is_planning
    if _is_planning:
        return Found(_NONE, [], window, np.empty(0, np.uint32), None, None)
    _is_planning = True
    try:
        return _recognise(words, window)
    finally:
        _is_planning = False


def _recognise(words: list[int], window: array) -> Found:
    first = first_work(words)
    begin, words, window = (
        (window[:first], words[first:], window[first:]) if first else (_NONE, words, window)
    )
    if not words:
        return Found(begin, words, window, np.empty(0, np.uint32), None, None)
    given = np.frombuffer(window, np.uint32)
    known, ends = _known.find(words, given)
    if first and ends is not None:
        before = [word >> CODE_BITS for word in begin]
        ends = Ends(ends.inside, ends.nbytes, before + ends.outside)
    return Found(begin, words, window, given, known, ends)


def rewrite(words: list[int], window: array, found: Found | None = None) -> array:
    """The window that the host gets for the commands of one.

    Args:
        words: the commands.
        window: the same, packed.
        found: what is known of it, if somebody has asked.
    """
    global _is_planning
    if _is_planning:
        return window
    _is_planning = True
    try:
        return _rewrite(words, window, found)
    finally:
        _is_planning = False


def _rewrite(words: list[int], window: array, found: Found | None) -> array:
    begin, commands, window, given, known, _ = _recognise(words, window) if found is None else found
    plan = None
    if commands:
        plan = _plan_for(commands, given, known)
        if plan is not None:
            window = plan.apply(given)
    for listener in on_rewrite:
        listener(commands, plan)
    return begin + window if begin else window


def _plan_for(words: list[int], window: np.ndarray, known: Known | None) -> FusionPlan | None:
    """The plan of a window; None while it runs as it is."""
    is_full = len(words) >= stream().window_words
    if known is None:
        found = structure(words)
        if found is None:
            return None
        key, kinds = found
        again = period(kinds) if is_full or key in _met or _at_once else 0
        if is_full:
            stream().period = again
        if not _at_once:
            if not _known.is_due(key):
                return None
            if key not in _met:
                if len(_met) >= _MOST_STRUCTURES:
                    _met.clear()
                _met.add(key)
                return None
        heads = frozenset([nodes[kind].head for kind in {*kinds} & nodes.keys()])
        known = _known.add(key, Pattern(window, kinds), again, heads)
    elif is_full:
        stream().period = known.period
    for plan in known.plans:
        if plan.holds(window):
            if not _at_once and not plan.is_due():
                return None
            known.uses += 1
            return plan
    if len(known.plans) == _MOST_PLANS:
        return None
    plan = make_plan(words, known.period)
    known.uses += _at_once
    _known.add_plan(known, plan)
    return plan if _at_once else None


def make_plan(words: list[int], period: int = 0) -> FusionPlan:
    """Fuse the launches of a window.

    Args:
        words: the window.
        period: after how many words its commands begin anew; 0 if they do not.
    """
    plan = plan_by_repeats(words, period, _whole) if period else None
    return _whole(words) if plan is None else plan


def _whole(words: list[int]) -> FusionPlan:
    joiner = Joiner(words, read(words))
    planner = Planner(words, joiner.run())
    placed = planner.run()
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
                fused = fuse(item, words)
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


def enable(on: bool, at_once: bool = False) -> None:
    """Whether windows are fused.

    Args:
        on: whether they are at all.
        at_once: whether already when a structure first appears, whose windows then wait for their kernels.
    """
    global _at_once
    _at_once = at_once
    stream().rewrite, stream().recognise = (rewrite, recognise) if on else (None, None)
    stream().period = 0


stream().on_close.append(forget)
on_thin.append(lambda: _known.thin(MOST_LAUNCHES // 4))
