"""Structures of windows that have plans, and how a window of one is recognised: without a walk over its
records, by comparing all its words at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device.host import ALLOC, CODE_BITS, COPY, FREE, RUN, UPLOAD

if TYPE_CHECKING:
    from .records import Record
    from .window import Plan

# Words that are looked at before all are: windows of one length mostly differ in one of these.
_PROBES = 8
# Windows of one structure that are remembered for their slots.
_MOST_SEEN = 8
# Planning takes about as long as this many windows that run as recorded: a plan that made as many has paid.
_PAID = 64
# How often a structure whose plans did not pay must come before it is planned again; doubled each time.
_WAIT = 8
# Structures that wait for that; past that those that have done so for longest are forgotten.
_MOST_WAITING = 4096


class Pattern:
    """What all windows of one structure share, as numbers to compare their words with.

    A word is fixed, or says a slot (by itself, or before the code that begins a record), or is patched and
    not looked at. Slots are numbered by first appearance; another window has the same structure if its fixed
    words are equal and its slots follow from those that stand where a number first appears, which all differ.

    Args:
        words: a window of the structure.
        records: the same, read.
    """

    def __init__(self, words: Sequence[int], records: Sequence[Record]):
        fixed: list[int] = []
        slots: list[tuple[int, int, int]] = []  # where, how far the slot is shifted, what is added to it
        for record in records:
            at = record.words[0]
            if record.code == RUN:
                fixed.append(at - 1)
                slots += [(k, 0, 0) for k in range(at, at + len(record.slots))]
                continue
            slots.append((at, CODE_BITS, record.code))
            if record.code == ALLOC:
                fixed.append(at + 1)
            elif record.code == UPLOAD:
                fixed += (at + 1, at + 2)
            elif record.code == COPY:
                slots.append((at + 1, 0, 0))
                fixed += (at + 2, at + 3, at + 4)
            else:
                assert record.code == FREE
        numbers: dict[int, int] = {}
        first: list[tuple[int, int]] = []
        places, number, shift, base = (
            list(fixed),
            [0] * len(fixed),
            [0] * len(fixed),
            [words[k] for k in fixed],
        )
        for at, by, code in slots:
            slot = words[at] >> by
            if slot not in numbers:
                numbers[slot] = len(numbers) + 1
                first.append((len(places), by))
            places.append(at)
            number.append(numbers[slot])
            shift.append(by)
            base.append(code)
        self.size = len(words)
        self._places, self._number = np.array(places, np.intp), np.array(number, np.intp)
        self._shift, self._base = np.array(shift, np.uint32), np.array(base, np.uint32)
        self._first = np.array([k for k, _ in first], np.intp)
        self._first_shift = np.array([by for _, by in first], np.uint32)
        # The slot of each number, of which the first stands for words that say none.
        self._slots = np.zeros(len(first) + 1, np.uint32)
        # Programs that go round mostly get the slots of an earlier round: then a window that was seen with
        # them says all. By the words where slots first appear.
        self._starts = self._places[self._first]
        self._seen: dict[bytes, np.ndarray] = {}
        self._is_patched = np.ones(len(words), bool)
        self._is_patched[self._places] = False
        probes = fixed[:: -(-len(fixed) // _PROBES) or 1] or [0]
        self._probe: Callable[[Sequence[int]], Any] = itemgetter(*probes)
        self._probed = self._probe(words) if fixed else None

    def fits(self, words: Sequence[int], window: np.ndarray) -> bool:
        """Whether a window of this size has the structure.

        Args:
            words: the window.
            window: the same.
        """
        if self._probed is not None and self._probe(words) != self._probed:
            return False
        key = window[self._starts].tobytes()
        seen = self._seen.get(key)
        if seen is not None:
            return bool(self._is_patched[np.flatnonzero(window != seen)].all())
        given = window[self._places]
        slots = np.right_shift(given[self._first], self._first_shift, out=self._slots[1:])
        if len(set(slots.tolist())) != len(slots):
            return False
        expected = self._slots[self._number]
        expected <<= self._shift
        expected += self._base
        if expected.tobytes() != given.tobytes():
            return False
        if len(self._seen) == _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = window
        return True


@dataclass(eq=False)
class Known:
    """A structure that has plans.

    Args:
        key: its digest.
        pattern: its windows.
        period: after how many words its records begin anew; 0 if they do not.
        plans: they differ in which tensors begin where their buffer does.
        wait: how often it must come again before it is planned again, if it goes before its plans have paid.
        after: the structure that came after it the last time.
        uses: windows that its plans made.
    """

    key: bytes
    pattern: Pattern
    period: int
    wait: int
    plans: list[Plan] = field(default_factory=list)
    after: Known | None = None
    uses: int = 0


@dataclass
class _Wait:
    """A structure that went before its plans had paid.

    Args:
        left: how often it must still come before it is planned again.
        then: how often the next time.
    """

    left: int
    then: int


class Table:
    """The structures that have plans; those used longest ago go first.

    One that goes before its plans have paid must come more often each time before it is planned again: a
    program that has more structures than are kept does not plan all the time, and what comes often is fused.

    Args:
        most_words: words of the windows of all plans that are kept.
    """

    def __init__(self, most_words: int):
        self._most = most_words
        self._waiting: dict[bytes, _Wait] = {}
        self._kept = 0
        self._by_key: dict[bytes, Known] = {}
        self._by_size: dict[int, list[Known]] = {}
        self._last: Known | None = None

    def clear(self) -> None:
        """Forget all."""
        self._kept = 0
        self._by_key.clear()
        self._by_size.clear()
        self._waiting.clear()
        self._last = None

    def find(self, words: Sequence[int], window: np.ndarray) -> Known | None:
        """The structure of a window, if it is kept.

        Args:
            words: the window.
            window: the same.
        """
        last, self._last = self._last, None
        candidates = self._by_size.get(len(words))
        if candidates is None:
            return None
        # Programs go round: what came after the last window the last time is tried first.
        guess = last.after if last is not None else None
        if guess in candidates and guess.pattern.fits(words, window):
            found = guess
        else:
            found = next((known for known in candidates if known.pattern.fits(words, window)), None)
        if found is not None:
            if last is not None:
                last.after = found
            self._by_key[found.key] = self._by_key.pop(found.key)  # to the end of those that stay
        self._last = found
        return found

    def is_due(self, key: bytes) -> bool:
        """Whether a structure that is not kept, and has come, has waited for long enough to be planned."""
        wait = self._waiting.get(key)
        if wait is None:
            return True
        wait.left -= 1
        return wait.left <= 0

    def add(self, key: bytes, pattern: Pattern, period: int) -> Known:
        """Keep a new structure, that of the last window."""
        wait = self._waiting.pop(key, None)
        known = Known(key, pattern, period, _WAIT if wait is None else wait.then)
        self._last = self._by_key[key] = known
        self._by_size.setdefault(pattern.size, []).append(known)
        return known

    def add_plan(self, known: Known, plan: Plan) -> None:
        """Keep a plan of a structure that is kept."""
        known.plans.append(plan)
        self._kept += known.pattern.size
        while self._kept > self._most and len(self._by_key) > 1:
            gone = self._by_key.pop(next(iter(self._by_key)))
            self._by_size[gone.pattern.size].remove(gone)
            if not self._by_size[gone.pattern.size]:
                del self._by_size[gone.pattern.size]
            self._kept -= gone.pattern.size * len(gone.plans)
            if gone.uses < _PAID:
                if len(self._waiting) >= _MOST_WAITING:
                    del self._waiting[next(iter(self._waiting))]
                self._waiting[gone.key] = _Wait(gone.wait, 2 * gone.wait)
