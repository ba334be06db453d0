"""Windows as the host gets them: the first of a kind as recorded, later ones with their launches fused.

A window's structure is all but its patched words. The first time that a structure appears it runs as it is,
with kernels that exist; the second time it is planned, and its fused kernels compile while it runs as it is
once more; from then on a plan makes the fused window from the records by picking words. So the same program
always makes the same windows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from ..device.host import ALLOC, CODE_BITS, FREE
from ..device.stream import stream
from .groups import Group, Planner
from .joints import Joiner
from .kernels import Fused, fuse
from .records import Record, read, structure

# Structures and plans that are remembered; past that all are forgotten: a program may never repeat itself.
_MOST_STRUCTURES = 8192
_MOST_PLANNED = 512
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
        groups: what was fused, in the order of the window, for traces.
        members: of each group, a word of the record of every member.
    """

    pick: Callable[[list[int]], tuple[int, ...]]
    constants: list[int]
    zeros: Callable[[list[int]], Any] | None
    groups: list[Fused]
    members: list[tuple[int, ...]]

    def holds(self, words: list[int]) -> bool:
        """Whether the tensors of a window begin where the plan takes them to."""
        return self.zeros is None or not any(self.zeros(words))

    def apply(self, words: list[int]) -> array:
        """The fused window."""
        return array("I", self.pick(words + self.constants))


@dataclass
class _Known:
    """What is known of a structure."""

    plans: list[Plan] = field(default_factory=list)


# Called with the records of every window and the plan that is applied to them: traces.
on_rewrite: list[Callable[[list[int], Plan | None], None]] = []
_known: dict[bytes, _Known] = {}
_planned = 0
_at_once = False


def forget() -> None:
    """Drop all plans, for example because their launches mean nothing to another device."""
    global _planned
    _planned = 0
    _known.clear()


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
    global _planned
    key = structure(words)
    if key is None:
        return None
    known = _known.get(key)
    if known is None:
        if len(_known) >= _MOST_STRUCTURES or _planned >= _MOST_PLANNED:
            forget()
        known = _known[key] = _Known()
        if not _at_once:
            return None
    for plan in known.plans:
        if plan.holds(words):
            return plan
    if len(known.plans) < _MOST_PLANS:
        known.plans.append(make_plan(words))
        _planned += 1
        if _at_once:
            return known.plans[-1]
    return None


def make_plan(words: list[int]) -> Plan:
    """Fuse the launches of a window."""
    joiner = Joiner(words, read(words))
    planner = Planner(words, joiner.run())
    placed = planner.run()
    allocations = {r.slots[0]: r for r in placed if isinstance(r, Record) and r.code == ALLOC}
    freed = {r.slots[0] for r in placed if isinstance(r, Record) and r.code == FREE}
    constants: list[int] = []
    groups: list[Fused] = []
    members: list[tuple[int, ...]] = []
    picked: list[int] = []

    def constant(word: int) -> int:
        constants.append(word)
        return len(words) + len(constants) - 1

    def exist(slots: Iterable[int]) -> None:
        """A slot exists from just before its first use; one that is never used needs no memory."""
        for slot in slots:
            if (record := allocations.pop(slot, None)) is not None:
                picked.extend(record.words)

    for item in placed:
        if isinstance(item, Group):
            if len(item.members) > 1:
                fused = fuse(item, words)
                if fused is not None:  # else its members run one by one
                    groups.append(fused)
                    members.append(tuple(m.record.words[0] for m in item.members))
                    exist(words[at] for at in fused.words[: len(fused.node.metas)])
                    picked += [constant(fused.node.head), *fused.words]
                    continue
            for m in item.members:
                exist(m.record.slots)
                picked += [constant(m.node.head), *m.record.words]
        elif item.code == FREE:
            if item.slots[0] not in allocations:
                picked += item.words
        elif item.code != ALLOC:
            exist(item.slots)
            if item.node is not None:
                picked.append(constant(item.node.head))
            picked += item.words
    # What is held and was never used.
    exist([slot for slot in allocations if slot not in freed])
    zeros = sorted({*joiner.zeros, *planner.zeros, *[z for made in groups for z in made.zeros]})
    return Plan(_getter(picked), constants, _getter(zeros) if zeros else None, groups, members)


def _getter(places: list[int]) -> Callable[[list[int]], tuple[int, ...]]:
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
