"""The plan of a loop's window: a few repetitions are planned, and what repeats in their plan is repeated.

A window that begins anew after some words, again and again, is planned twice, cut after m repetitions and
after m + 1. Where the second plan is the first with one more copy of something in its middle, the plan of
the whole has as many more of these copies as it has more repetitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...device.commands import CODE_BITS, walk
from ..launches import RegisteredLaunch, nodes
from .facts import facts_of
from .groups import MOST_MEMBERS, PATIENCE, SHARED
from .work import Work

if TYPE_CHECKING:
    from .plan import FusionPlan

# Repetitions that are planned, at most, as a part of all: they may be planned in vain.
_MOST_PLANNED = 0.5
# Fewer repetitions are planned in full.
_FEWEST = 18


def plan_by_repeats(
    words: list[int], period: int, make: Callable[[list[int]], Work[FusionPlan]]
) -> Work[FusionPlan | None]:
    """The plan of a window whose commands begin anew after some words; None where it is to be made in full.

    Args:
        words: the window.
        period: after how many words.
        make: makes a plan in full.
    """
    launches = sum(command.launch is not None for command in walk(words[:period], nodes))
    # A kernel of as many members as may be holds parts of repetitions: they are counted together then.
    for times in dict.fromkeys((1, MOST_MEMBERS // gcd(MOST_MEMBERS, launches))):
        length = times * period
        planned = _few(words, length)
        if planned is None:
            continue
        cut = planned * length + len(words) % length
        first, second = (yield from make(words[:cut])), (yield from make(words[: cut + length]))
        plan = _longer(first, second, length, cut, len(words))
        if plan is not None:
            return plan
    return None


def _few(words: list[int], length: int) -> int | None:
    """How many repetitions say what all do; None if that is not less work.

    From some repetition on each must use slots as the one before does: by the way to where a slot was used
    last. What is made in one must end few later. So the plan of one can only depend on few around it.
    """
    total = len(words) // length
    if total < _FEWEST:
        return None
    window = np.array(words, np.uint32)
    commands = list(walk(words[:length], nodes))
    places: list[tuple[int, int]] = []
    offsets: list[int] = []
    for command in commands:
        if command.launch is None:
            places.append((command.at, CODE_BITS))
        else:
            offsets += [command.at + 1 + at for at in facts_of(command.launch).brought]
        places += [(at, 0) for at in command.slot_words]
    begins = length * np.arange(total + 1)
    found = (begins[:, None] + np.array([at for at, _ in places])).ravel()
    shifts = np.tile(np.array([by for _, by in places], np.uint32), total + 1)
    is_there = found < len(words)
    slots = window[found[is_there]] >> shifts[is_there]
    each = len(places)
    order = np.argsort(slots, kind="stable")
    is_again = slots[order[1:]] == slots[order[:-1]]
    way = np.zeros(len(slots), np.int64)
    way[order[1:][is_again]] = (order[1:] - order[:-1])[is_again]
    shared = np.isin(slots, SHARED)
    uses = np.where(shared, -1 - slots.astype(np.int64), way)
    steady = _steady(uses, each)
    if offsets:
        at = (begins[:, None] + np.array(sorted(offsets))).ravel()
        steady = max(steady, _steady(window[at[at < len(words)]] == 0, len(offsets)))
    first = order[np.append(True, ~is_again)] // each
    last = order[np.append(~is_again, True)] // each
    lives = (last - first)[first > steady]
    reach = max(int(lives.max(initial=0)), -(-int(uses[(steady + 1) * each :].max(initial=0)) // each))
    planned = steady + 2 * max(reach, 1) + 1 + -(-2 * PATIENCE // len(commands))
    return planned if 2 * planned + 1 <= _MOST_PLANNED * total else None


def _steady(values: np.ndarray, each: int) -> int:
    """From which repetition on values are those of the one before, if each has so many."""
    changes = np.flatnonzero(values[each:] != values[:-each])
    return int(changes[-1]) // each + 1 if changes.size else 0


class _Middle(NamedTuple):
    """Where a list has one more copy of something than a shorter one.

    Args:
        at: where that begins.
        size: of it.
    """

    at: int
    size: int


def _middle(first: np.ndarray, second: np.ndarray, length: int) -> _Middle | None:
    """What a list of words has once more than another one, if there it stands at least once.

    Args:
        first: where words lie in the shorter window; below zero what lies in none.
        second: likewise in the longer one.
        length: words of a repetition.
    """
    size = len(second) - len(first)
    if size < 0:
        return None
    begin = np.flatnonzero(first != second[: len(first)])
    end = np.flatnonzero(_moved(first, length) != second[size:])
    most = int(begin[0]) if begin.size else len(first)
    least = int(end[-1]) + 1 if end.size else 0
    return _Middle(most, size) if least + size <= most else None


def _moved(words: np.ndarray, by: int) -> np.ndarray:
    return words + by * (words >= 0)


def _repeated(first: np.ndarray, second: np.ndarray, middle: _Middle, length: int, more: int) -> np.ndarray:
    """The shorter list with so many more copies of the middle."""
    at, size = middle
    copies = [_moved(second[at : at + size], length * k) for k in range(more)]
    return np.concatenate((first[:at], *copies, _moved(first[at:], length * more)))


def _longer(first: FusionPlan, second: FusionPlan, length: int, cut: int, size: int) -> FusionPlan | None:
    """The plan of a window with more repetitions than two others were made for; None where they do not say.

    Args:
        first: the plan of a window with fewer repetitions.
        second: with one more than that.
        length: words of a repetition.
        cut: words of the first window.
        size: words of the window.
    """
    more = (size - cut) // length
    picked, again = _picked(first, cut), _picked(second, cut + length)
    middle, zeros = _middle(picked, again, length), _middle(first.zeros, second.zeros, length)
    if middle is None or zeros is None:
        return None
    stands = _stands(first, second, middle, length, more)
    if stands is None:
        return None
    places = _repeated(picked, again, middle, length, more)
    # Heads are picked in their order; these hold the launches.
    before = np.count_nonzero(picked[: middle.at] < 0)
    inside = second.heads[before : len(second.heads) - len(first.heads) + before]
    heads = (*first.heads[:before], *inside * more, *first.heads[before:])
    places[places < 0] = size + np.arange(len(heads))
    return replace(
        first,
        places=places.astype(np.intp),
        constants=np.array(heads, np.uint32),
        zeros=_repeated(first.zeros, second.zeros, zeros, length, more).astype(np.intp),
        heads=heads,
        stands=stands,
    )


def _picked(plan: FusionPlan, size: int) -> np.ndarray:
    """What a plan picks from a window of so many words: places there, or below zero heads."""
    picked = plan.places.astype(np.int64)
    picked[picked >= size] = -1 - plan.constants.astype(np.int64)
    return picked


def _stands(
    first: FusionPlan, second: FusionPlan, middle: _Middle, length: int, more: int
) -> dict[int, tuple[RegisteredLaunch, tuple[int, ...]]] | None:
    """What stands for several in the plan of more repetitions; None where the others' do not agree."""
    at, size = middle

    def of(plan: FusionPlan, begin: int, end: int, times: int):
        return {
            k + size * times: (node, tuple([word + length * times for word in origins]))
            for k, (node, origins) in plan.stands.items()
            if begin <= k < end
        }

    end = len(first.places)
    early = of(first, 0, at, 0)
    if second.stands != early | of(second, at, at + size, 0) | of(first, at, end, 1):
        return None
    for k in range(more):
        early |= of(second, at, at + size, k)
    return early | of(first, at, end, more)
