"""Windows as the host gets them: the first of a kind as recorded, later ones with their launches fused.

A window's structure is all but its patched words. The first time that one appears it runs as it is, with
kernels that exist, and is seen at a glance only (`outline`). From the second time on its windows are known
(`known`) and it is planned, a long one a part at a time, so that no window waits for a whole plan. Its fused
kernels are compiled while windows run as recorded; once they are, the plan makes the fused window by picking
words. Fused kernels give the bits of those that they stand for, so results do not tell when that was.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np

from ...device.commands import CODE_BITS, first_work
from ...device.stream import stream
from ..launches import MOST_LAUNCHES, nodes, on_thin
from .commands import outline, period, repetition, structure
from .known import Ends, Known, Pattern, PlanCache
from .plan import FusionPlan, planning

# Outlines that were met once and are remembered; past that they are forgotten: a program may never repeat
# itself. Words of all plans that are kept; past that the plans used longest ago go.
_MOST_OUTLINES = 4096
_MOST_WORDS = 1 << 18
# How much of a plan is made at a window, in launches that are looked at: a part of its words, and no less
# than this. Writing a kernel counts as many, and what is done too much is left out of the next windows. So
# windows that run as recorded take little longer while they are planned.
_TURNS, _LEAST = 128, 4
# To find a structure takes a third of the time in which Python records the window: where plans are made in
# parts, windows of so many times as many words come before another one is looked at. The first that are not
# short take longer, so that no round has two of them: of so many words on so many come before.
_REST, _LONG, _LEAST_REST = 3, 512, 8192
# Plans for one structure: they differ in which tensors begin where their buffer does.
_MOST_PLANS = 4


# Called with the commands of every window and the plan that is applied to them: traces.
on_rewrite: list[Callable[[list[int], FusionPlan | None], None]] = []
# Outlines that were met, and the repetition of windows that are full.
_met: dict[int, int] = {}
# Words of windows that come before another structure is looked at.
_rest = 0
_known = PlanCache(_MOST_WORDS)
_at_once = False
# Whether plans are looked for or made. What Python runs in between, such as a finalizer, has windows of its
# own, which run as they are.
_is_planning = False
_NONE = array("I")


def forget() -> None:
    """Drop all plans, for example because their launches mean nothing to another device."""
    global _rest
    _rest = 0
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
    global _rest
    is_full = len(words) >= stream().window_words
    is_whole = _at_once or not stream().open().compiles_beside
    _rest = 0 if is_whole else max(_rest - len(words), 0)
    if known is None:
        if not _at_once:
            seen = outline(words)
            is_new = seen not in _met
            if is_new:
                if len(_met) >= _MOST_OUTLINES:
                    _met.clear()
                _met[seen] = repetition(words, window) if is_full else 0
            if is_full:
                stream().period = _met[seen]
            if is_new or _rest:
                return None
        _rest = 0 if is_whole else max(_REST * len(words), _LEAST_REST if len(words) >= _LONG else 0)
        found = structure(words)
        if found is None:
            return None
        key, kinds = found
        if not _at_once and not _known.is_due(key):
            return None
        again = period(kinds)
        heads = frozenset([nodes[kind].head for kind in {*kinds} & nodes.keys()])
        known = _known.add(key, Pattern(window, kinds), again, heads)
        if not is_whole:
            return None  # its plan begins at the next one
    if is_full:
        stream().period = known.period
    for plan in known.plans:
        if plan.holds(window):
            if not _at_once and not plan.is_due():
                return None
            known.uses += 1
            return plan
    if len(known.plans) == _MOST_PLANS:
        return None
    plan = _plan_on(words, known, is_whole)
    if plan is None:
        return None
    known.uses += _at_once
    _known.add_plan(known, plan)
    return plan if _at_once else None


def _plan_on(words: list[int], known: Known, is_whole: bool) -> FusionPlan | None:
    """Make a part of a plan, or all of it if ``is_whole``; the whole plan.

    An interrupt ends the plan that is under way; it is begun anew.
    """
    if not is_whole and known.under_way is None and not _known.may_begin(known):
        return None
    left = inf if is_whole else known.credit + max(_LEAST, len(words) / _TURNS)
    # One that is under way may not hold for the window at hand, which a plan at once is for.
    begun, known.under_way = None if is_whole else known.under_way, None
    under_way = begun or planning(words[:], known.period)
    try:
        while left > 0:
            left -= next(under_way)
    except StopIteration as end:
        known.credit = 0
        return end.value
    known.credit = left
    _known.go_on_later(known, under_way)
    return None


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
