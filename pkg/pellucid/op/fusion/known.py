"""Structures of windows that have plans, and how a window of one is recognised: without a walk over its
commands, by comparing all its words at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...device.commands import ALLOC, CODE_BITS, FREE, RUN
from .commands import shape_of
from .work import Work

if TYPE_CHECKING:
    from .plan import FusionPlan

# Words that are looked at before all are: windows of one length mostly differ in one of these.
_PROBES = 8
# Windows of one structure that are remembered for their slots.
_MOST_SEEN = 8
# Planning takes about as long as this many windows that run as recorded: a plan that made as many has paid.
_PAID = 64
# Words of the windows whose plans are being made, which take much more memory; others wait for them. Whoever
# has asked so many times ends those that did not come meanwhile.
_MOST_UNDER_WAY, _ASKED = 1 << 14, 3
# How often a structure whose plans did not pay must come before it is planned again; doubled each time.
_WAIT = 8
# Structures that wait for that; past that those that have done so for longest are forgotten.
_MOST_WAITING = 4096


class Ends(NamedTuple):
    """The slots that end in a window.

    Args:
        inside: of what it makes.
        nbytes: of these together.
        outside: the others.
    """

    inside: list[int]
    nbytes: int
    outside: list[int]


class Pattern:
    """What all windows of one structure share, as numbers to compare their words with.

    A word is fixed, or says a slot (by itself, or before the code that begins a command), or is patched and
    not looked at. Slots are numbered by first appearance; another window has the same structure if its fixed
    words are equal and its slots follow from those that stand where a number first appears, which all differ.

    Args:
        window: a window of the structure.
        kinds: of its commands (`structure`).
    """

    def __init__(self, window: np.ndarray, kinds: Sequence[int]):
        row = {kind: k for k, kind in enumerate(dict.fromkeys(kinds))}
        rows = np.array([row[kind] for kind in kinds], np.intp)
        length, code, slots, numbers = np.array([shape_of(kind) for kind in row], np.intp).T[:, rows]
        at = np.cumsum(length) - length
        is_run = code == RUN
        begins, each = at[~is_run], _ragged(at + 1, slots)
        fixed = np.concatenate((at[is_run], _ragged(at + 1 + slots, numbers)))
        self.size = len(window)
        # Fixed words, then slots that stand before a code, then those with a word of their own.
        self._places = np.concatenate((fixed, begins, each))
        counts = len(fixed), len(begins), len(each)
        self._shift = np.repeat(np.array([0, CODE_BITS, 0], np.uint32), counts)
        self._base = np.concatenate((window[fixed], code[~is_run], np.zeros(len(each)))).astype(np.uint32)
        given = window[self._places[len(fixed) :]] >> self._shift[len(fixed) :]
        found, first, number = np.unique(given, return_index=True, return_inverse=True)
        self._number = np.concatenate((np.zeros(len(fixed), np.intp), number.ravel() + 1))
        self._first = first + len(fixed)
        self._first_shift = self._shift[self._first]
        # The slot of each number, of which the first stands for words that say none.
        self._slots = np.zeros(len(found) + 1, np.uint32)
        # Where slots end: those that the window makes, whose bytes are fixed words, and others.
        makes, ends = at[code == ALLOC], at[code == FREE]
        made = dict(zip((window[makes] >> CODE_BITS).tolist(), window[makes + 1].tolist(), strict=True))
        ended = (window[ends] >> CODE_BITS).tolist()
        is_inside = np.array([slot in made for slot in ended], bool)
        self._inside, self._outside = ends[is_inside], ends[~is_inside]
        self._inside_bytes = sum([made[slot] for slot in ended if slot in made])
        # Programs that go round mostly get the slots of an earlier round: then a window is one that was seen,
        # but for its patched words.
        self._seen: list[tuple[bytes, Ends]] = []
        self._mask = np.zeros(len(window), np.uint32)
        self._mask[self._places] = (1 << 32) - 1
        probes = fixed[:: -(-len(fixed) // _PROBES) or 1].tolist()
        self._probe: Callable[[Any], Any] = itemgetter(*(probes or [0]))
        probed = dict(zip(probes, window[probes].tolist(), strict=True)) if probes else {}
        self._probed = self._probe(probed) if probed else None

    def fits(self, words: Sequence[int], window: np.ndarray) -> Ends | None:
        """Which slots end in a window of this size that has the structure; None for another window.

        Args:
            words: the window.
            window: the same.
        """
        if self._probed is not None and self._probe(words) != self._probed:
            return None
        fixed = (window & self._mask).tobytes()
        for seen, ends in self._seen:
            if seen == fixed:
                return ends
        given = window[self._places]
        slots = np.right_shift(given[self._first], self._first_shift, out=self._slots[1:])
        if len(set(slots.tolist())) != len(slots):
            return None
        expected = self._slots[self._number]
        expected <<= self._shift
        expected += self._base
        if expected.tobytes() != given.tobytes():
            return None
        inside, outside = window[self._inside] >> CODE_BITS, window[self._outside] >> CODE_BITS
        ends = Ends(inside.tolist(), self._inside_bytes, outside.tolist())
        self._seen = [(fixed, ends), *self._seen[: _MOST_SEEN - 1]]
        return ends


def _ragged(begin: np.ndarray, count: np.ndarray) -> np.ndarray:
    """So many numbers from each begin on, in a row."""
    before = np.cumsum(count) - count
    return np.repeat(begin - before, count) + np.arange(count.sum())


@dataclass(eq=False)
class Known:
    """A structure that has plans.

    Args:
        key: its digest.
        pattern: its windows.
        period: after how many words its commands begin anew; 0 if they do not.
        plans: they differ in which tensors begin where their buffer does.
        wait: how often it must come again before it is planned again, if it goes before its plans have paid.
        after: the structure that came after it the last time.
        uses: windows that its plans made.
        heads: the words that begin commands of its launches, which hold these.
        turn: when it came the last time, counted in windows that were recognised.
        under_way: a plan that is being made.
        credit: how much of it may be made at the next window, in launches that are looked at.
        asked: how often a plan could not be begun, since others were being made.
        since: when that was first, as `turn` counts.
    """

    key: bytes
    pattern: Pattern
    period: int
    wait: int
    heads: frozenset[int] = frozenset()
    plans: list[FusionPlan] = field(default_factory=list)
    after: Known | None = None
    uses: int = 0
    turn: int = 0
    under_way: Work[FusionPlan] | None = None
    credit: float = 0
    asked: int = 0
    since: int = 0

    @property
    def words(self) -> int:
        """Words of the windows of its plans; one that waits for a plan is kept likewise."""
        return self.pattern.size * max(len(self.plans), 1)


@dataclass
class _Wait:
    """A structure that went before its plans had paid.

    Args:
        left: how often it must still come before it is planned again.
        then: how often the next time.
    """

    left: int
    then: int


class PlanCache:
    """The structures that have plans; those used longest ago go first.

    One that goes before its plans have paid must come more often each time before it is planned again: a
    program that has more structures than are kept does not plan all the time, and what comes often is fused.

    An interrupt may fall between any two steps: after each of them the table is whole, and what is kept is
    counted when it is asked for.

    Args:
        most_words: words of the windows of all plans that are kept.
    """

    def __init__(self, most_words: int):
        self._most = most_words
        self._waiting: dict[bytes, _Wait] = {}
        self._under_way: list[Known] = []
        self._turn = 0
        self._by_key: dict[bytes, Known] = {}
        self._by_size: dict[int, list[Known]] = {}
        self._last: Known | None = None

    def clear(self) -> None:
        """Forget all."""
        self._by_key.clear()
        self._by_size.clear()
        self._waiting.clear()
        for known in self._under_way:
            known.under_way = None
        self._under_way.clear()
        self._last = None

    def find(self, words: Sequence[int], window: np.ndarray) -> tuple[Known | None, Ends | None]:
        """The structure of a window, if it is kept, and the slots that end in it.

        Args:
            words: the window.
            window: the same.
        """
        last, self._last = self._last, None
        candidates = self._by_size.get(len(words))
        if not candidates:
            return None, None
        # Programs go round: what came after the last window the last time is tried first.
        guess = last.after if last is not None else None
        for known in (guess, *candidates) if guess in candidates else candidates:
            ends = known.pattern.fits(words, window)
            if ends is not None:
                if last is not None:
                    last.after = known
                known.turn = self._turn = self._turn + 1
                self._last = known
                return known, ends
        return None, None

    def is_due(self, key: bytes) -> bool:
        """Whether a structure that is not kept, and has come, has waited for long enough to be planned."""
        wait = self._waiting.get(key)
        if wait is None:
            return True
        wait.left -= 1
        return wait.left <= 0

    def add(self, key: bytes, pattern: Pattern, period: int, heads: frozenset[int] = frozenset()) -> Known:
        """Keep a new structure, that of the last window."""
        wait = self._waiting.get(key)
        self._turn += 1
        known = Known(key, pattern, period, _WAIT if wait is None else wait.then, heads, turn=self._turn)
        self._last = self._by_key[key] = known
        self._by_size.setdefault(pattern.size, []).append(known)
        self._waiting.pop(key, None)
        self._make_room(known)
        return known

    def add_plan(self, known: Known, plan: FusionPlan) -> None:
        """Keep a plan of a structure that is kept."""
        if self._by_key.get(known.key) is not known:
            return  # it went while the plan was made
        known.plans.append(plan)
        self._make_room(known)

    def may_begin(self, known: Known) -> bool:
        """Whether a plan may be made in parts: not while too many others are."""
        if known.asked >= _ASKED:
            for other in self._under_way:
                if other.turn < known.since:
                    other.under_way = None
        self._under_way = [other for other in self._under_way if other.under_way is not None]
        size = sum([other.pattern.size for other in self._under_way])
        if not size or size + known.pattern.size <= _MOST_UNDER_WAY:
            known.asked = 0
            return True
        if not known.asked:
            known.since = self._turn
        known.asked += 1
        return False

    def go_on_later(self, known: Known, plan: Work[FusionPlan]) -> None:
        """Keep a plan that is being made."""
        if self._by_key.get(known.key) is not known:
            return  # it went while the plan was made
        known.under_way = plan
        if known not in self._under_way:
            self._under_way.append(known)

    def _make_room(self, known: Known) -> None:
        kept = sum(other.words for other in self._by_key.values())
        if kept <= self._most:
            return
        for gone in sorted(self._by_key.values(), key=lambda other: other.turn):
            if kept <= self._most or gone is known:
                break
            kept -= gone.words
            self._drop(gone)

    def thin(self, most: int) -> None:
        """Keep the structures that came last and have so many launches together; the others go."""
        held: set[int] = set()
        for known in sorted(self._by_key.values(), key=lambda other: -other.turn):
            held.update(known.heads, *[plan.heads for plan in known.plans])
            if len(held) > most:
                self._drop(known)

    def _drop(self, gone: Known) -> None:
        is_planned = bool(gone.plans) or gone.under_way is not None
        gone.under_way = None
        if is_planned and gone.uses < _PAID:
            if len(self._waiting) >= _MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[gone.key] = _Wait(gone.wait, 2 * gone.wait)
        rest = [other for other in self._by_size.get(gone.pattern.size, ()) if other is not gone]
        if rest:
            self._by_size[gone.pattern.size] = rest
        else:
            self._by_size.pop(gone.pattern.size, None)
        del self._by_key[gone.key]
