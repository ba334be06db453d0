"""Windows as the host gets them: the first of a kind as recorded, later ones with their launches fused.

A window's structure is all but its patched words. The first time that a structure appears it runs as it is,
with kernels that exist; the second time it is planned, and its fused kernels compile while it runs as it is
once more; from then on a plan makes the fused window from the records by picking words. So the same program
always makes the same windows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ..device.host import ALLOC, CODE_BITS, FREE
from ..device.stream import stream
from ..launches import Node
from .groups import Group, Planner
from .joints import Joiner
from .kernels import Fused, fuse
from .records import Record, read, structure

# Structures that were met once and are remembered; past that they are forgotten: a program may never repeat
# itself. Words of all plans that are kept; past that the plans used longest ago go.
_MOST_STRUCTURES = 4096
_MOST_WORDS = 1 << 18
# Plans for one structure: they differ in which tensors begin where their buffer does.
_MOST_PLANS = 4
_CODE_MASK = (1 << CODE_BITS) - 1


@dataclass
class Plan:
    """How a fused window is made from the records of one.

    Args:
        pick: takes the words of the window and the constants behind them, in order.
        constants: words that no window has: heads of fused launches.
        zeros: takes the words that must be zero for the plan to hold; None if there are none.
        stands: the launches that stand for several, by where their record begins in the fused window: what
            each does, and a word of every record whose work it does. For traces.
        size: words of the window.
    """

    pick: Callable[[list[int]], tuple[int, ...]]
    constants: list[int]
    zeros: Callable[[list[int]], Any] | None
    stands: dict[int, tuple[Node, tuple[int, ...]]]
    size: int

    def holds(self, words: list[int]) -> bool:
        """Whether the tensors of a window begin where the plan takes them to."""
        return self.zeros is None or not any(self.zeros(words))

    def apply(self, words: list[int]) -> array:
        """The fused window."""
        return array("I", self.pick(words + self.constants))


# Called with the records of every window and the plan that is applied to them: traces.
on_rewrite: list[Callable[[list[int], Plan | None], None]] = []
# Structures that were met once.
_met: set[bytes] = set()
# Plans by structure, those used last at the end, and their words.
_plans: dict[bytes, list[Plan]] = {}
_kept = 0
_at_once = False
# Numbers of words: all plans have them in common.
_places: dict[int, int] = {}


def forget() -> None:
    """Drop all plans, for example because their launches mean nothing to another device."""
    global _kept
    _kept = 0
    _met.clear()
    _plans.clear()


def rewrite(words: list[int]) -> array:
    """The window that the host gets for the records of one."""
    # What went away between two windows belongs to neither's structure.
    first = next((k for k, word in enumerate(words) if word & _CODE_MASK != FREE), len(words))
    records = words[first:] if first else words
    plan = _plan_for(records)
    for listener in on_rewrite:
        listener(records, plan)
    window = array("I", records) if plan is None else plan.apply(records)
    return array("I", words[:first]) + window if first else window


def _plan_for(words: list[int]) -> Plan | None:
    """The plan of a window; None while it runs as it is."""
    key = structure(words)
    if key is None:
        return None
    plans = _plans.pop(key, None)
    if plans is None:
        if key not in _met and not _at_once:
            if len(_met) >= _MOST_STRUCTURES:
                _met.clear()
            _met.add(key)
            return None
        plans = []
    _plans[key] = plans
    for plan in plans:
        if plan.holds(words):
            return plan
    if len(plans) < _MOST_PLANS:
        plans.append(make_plan(words))
        _forget_old(len(words))
        if _at_once:
            return plans[-1]
    return None


def _forget_old(more: int) -> None:
    """Count the words of a new plan, and let go of the plans that were used longest ago."""
    global _kept
    _kept += more
    while _kept > _MOST_WORDS and len(_plans) > 1:
        gone = _plans.pop(next(iter(_plans)))
        _kept -= sum(plan.size for plan in gone)


def make_plan(words: list[int]) -> Plan:
    """Fuse the launches of a window."""
    joiner = Joiner(words, read(words))
    planner = Planner(words, joiner.run())
    placed = planner.run()
    allocations = {r.slots[0]: r for r in placed if isinstance(r, Record) and r.code == ALLOC}
    freed = {r.slots[0] for r in placed if isinstance(r, Record) and r.code == FREE}
    constants: list[int] = []
    groups: list[Fused] = []
    stands: dict[int, tuple[Node, tuple[int, ...]]] = {}
    picked: list[int] = []

    def constant(word: int) -> int:
        constants.append(word)
        return len(words) + len(constants) - 1

    def exist(slots: Iterable[int]) -> None:
        """A slot exists from just before its first use; one that is never used needs no memory."""
        for slot in slots:
            if (record := allocations.pop(slot, None)) is not None:
                picked.extend(record.words)

    def run(node: Node, words_of_run: Iterable[int], records: Iterable[Record]) -> None:
        if node.members:
            stands[len(picked)] = node, tuple([word for r in records for word in r.origins])
        picked.append(constant(node.head))
        picked.extend(words_of_run)

    for item in placed:
        if isinstance(item, Group):
            if len(item.members) > 1:
                fused = fuse(item, words)
                if fused is not None:  # else its members run one by one
                    groups.append(fused)
                    exist(words[at] for at in fused.words[: len(fused.node.metas)])
                    run(fused.node, fused.words, [m.record for m in item.members])
                    continue
            for m in item.members:
                exist(m.record.slots)
                run(m.node, m.record.words, [m.record])
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
    return Plan(_getter(picked), constants, _getter(zeros) if zeros else None, stands, len(words))


def _getter(places: list[int]) -> Callable[[list[int]], tuple[int, ...]]:
    places = [_places.setdefault(place, place) for place in places]
    if len(places) < 2:  # where an itemgetter takes none, or gives no tuple
        return lambda words: tuple([words[place] for place in places])
    return itemgetter(*places)


def enable(on: bool, at_once: bool = False) -> None:
    """Whether windows are fused.

    Args:
        on: whether they are at all.
        at_once: whether already when a structure first appears, which makes the program wait for its kernels.
    """
    global _at_once
    _at_once = at_once
    stream().rewrite = rewrite if on else None


stream().on_close.append(forget)
