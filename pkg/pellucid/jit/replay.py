"""The window of a program, fused and ready: a replay patches the words that changed and hands it over."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..device.commands import ALLOC, CODE_BITS, FREE
from ..device.pool import block_size
from ..device.stream import stream
from ..fusion.window import make_plan
from ..op.plan import float_bits
from .law import Law, real
from .program import ARGUMENT, MADE, Program, ProgramStep, number_of, steps

_WORD = (1 << 32) - 1
# What a word that changes may be, in the order in which a replay computes them.
_KINDS = ("argument", "head", "value", "sum", "real", "draw", "update")
# How many block sizes larger a buffer may be than it needs to: a quarter more from 4 KiB on, 1 KiB below.
_MOST_STEPS = 4
_RAW = -1  # a slot as it is, not in the head of a record

# Slots of everything that lives within one window only: they exist while it runs, so all windows share them.
_passing: list[int] = []


def _passing_slot(number: int) -> int:
    s = stream()
    while len(_passing) <= number:
        _passing.append(s.take_slot())
    return _passing[number]


class _Apart:
    """Gives families of buffers block sizes that no other family has."""

    def __init__(self):
        self._taken: set[int] = set()
        self._most = stream().open().info.limits.get("maxStorageBufferBindingSize", 1 << 27)

    def sizes(self, family: Sequence[int]) -> list[int]:
        """Bytes for each of these, at least what they need."""
        made = [self._free(nbytes) for nbytes in family]
        self._taken |= {block_size(nbytes) for nbytes in made}
        return made

    def _free(self, nbytes: int) -> int:
        found = nbytes
        for _ in range(_MOST_STEPS + 1):
            if block_size(found) not in self._taken:
                return found
            found = block_size(block_size(found) + 1)
            if found > self._most:
                break
        return nbytes


class Replay:
    """The window of a program.

    Args:
        program: the records.
        law: which of its numbers follow values of the call.
        places: where the numbers that the law knows lie.
        arguments: how many tensors a call gives.
        others: place of a word -> what it is, where something else brings it at every call.
        results: numbers of what was made and lives on.
        gradients: which of these are gradients, by their place.
        fused: whether launches are fused.

    Attributes:
        dispatches: launches of the window.
    """

    def __init__(
        self,
        program: Program,
        law: Law,
        places: Sequence[int],
        arguments: int,
        others: Mapping[int, tuple],
        results: Sequence[int],
        gradients: Collection[int],
        fused: bool,
    ):
        self._sizes, self._arguments = program.sizes, arguments
        self._results = {number: k for k, number in enumerate(results)}
        self._gradients = gradients
        # What a word is -> where it stands in the window.
        self._places: dict[tuple, list[int]] = {}
        self._out: list[int] = []
        varying = law.varying
        self._sources: dict[int, tuple] = dict(others)
        # Every number as the law has it: its first call need not be the one that the program was made of.
        recorded = list(program.words)
        for n, place in enumerate(places):
            recorded[place] = law.numbers[n]
            if n in varying:
                self._sources[place] = self._source(law, n, varying[n])
        words, origin = self._fuse(recorded, fused)
        self._write(words, origin)
        self.window = array("I", self._out)
        self.dispatches = sum(step.node is not None for step in steps(words))
        self._order()

    @staticmethod
    def _source(law: Law, n: int, slopes: dict[int, float]) -> tuple:
        """Base, and slopes by value: numbers with equal ones share a word's computation."""
        follows = tuple(sorted(slopes.items()))
        if any(law.is_float(k) for k in slopes):
            return "value", follows[0][0]
        grown = sum(slope * law.values[k] for k, slope in follows)
        if n in law.reals:
            return "real", real(law.numbers[n]) - grown, follows
        return "sum", law.numbers[n] - grown, follows

    def _fuse(self, words: list[int], fused: bool) -> tuple[list[int], list[int]]:
        """The words, fused, and for each where it stands in the program; below 0 where it does not."""
        if not (fused and words):
            return words, list(range(len(words)))
        sample = list(words)
        for place in self._sources:
            sample[place] = 1  # a plan must not count on a number that changes to be zero
        plan = make_plan(sample)
        self._heads = plan.heads  # which hold the launches, as the words of the program do
        pool, count = words + plan.constants.tolist(), len(words)
        places = plan.places.tolist()
        return [pool[at] for at in places], [at if at < count else -1 for at in places]

    # Writing the window

    def _write(self, words: list[int], origin: list[int]) -> None:
        """Lay what is made and dies into few slots, which exist while the window runs.

        The pool gives the block that was made first of those that are free. So that everything finds the same
        blocks again, what ends with the window, what the caller drops at some time, and gradients, which the
        next call drops, have block sizes of their own.
        """
        kept = [step for step in steps(words) if step.code not in (ALLOC, FREE)]
        touched = [self._touched(words, step) for step in kept]
        last = {slot: k for k, slots in enumerate(touched) for slot in slots}
        free: dict[int, list[int]] = {}
        home: dict[int, int] = {}
        pages: list[int] = []
        apart = _Apart()
        sizes = [self._sizes[number] for number in self._results]
        for of_gradients in (False, True):
            chosen = [k for k in range(len(sizes)) if (k in self._gradients) is of_gradients]
            for k, nbytes in zip(chosen, apart.sizes([sizes[k] for k in chosen]), strict=True):
                self._emit(("head", k, ALLOC))
                self._out.append(nbytes)
        begin = len(self._out)
        for k, (step, slots) in enumerate(zip(kept, touched, strict=True)):
            for slot in slots:
                if slot not in home:
                    nbytes = self._sizes[number_of(slot)]
                    same = free.setdefault(block_size(nbytes), [])
                    home[slot] = same.pop() if same else len(pages)
                    if home[slot] == len(pages):
                        pages.append(nbytes)
                    pages[home[slot]] = max(pages[home[slot]], nbytes)
            self._step(words, origin, step, home)
            for slot in slots:
                if last[slot] == k:
                    free[block_size(self._sizes[number_of(slot)])].append(home[slot])
        pages = apart.sizes(pages)
        self._bytes = sum(pages)
        made = [w for n, size in enumerate(pages) for w in (_passing_slot(n) << CODE_BITS | ALLOC, size)]
        self._out[begin:begin] = made
        for places in self._places.values():
            places[:] = [at + len(made) if at >= begin else at for at in places]
        self._out += [_passing_slot(n) << CODE_BITS | FREE for n in range(len(pages))]

    def _touched(self, words: list[int], step: ProgramStep) -> list[int]:
        """What is made and dies within the window, among the slots of a record."""
        slots = [words[at] for at in step.slots] + ([] if step.head is None else [step.head])
        found = [s for s in dict.fromkeys(slots) if s & MADE]
        return [s for s in found if number_of(s) not in self._results]

    def _emit(self, source: tuple) -> None:
        self._places.setdefault(source, []).append(len(self._out))
        self._out.append(0)

    def _step(self, words: list[int], origin: list[int], step: ProgramStep, home: dict[int, int]) -> None:
        for at in range(step.at, step.end):
            if at == step.at and step.head is None:
                self._out.append(words[at])
            elif at == step.at and step.head is not None:
                self._slot(step.head, step.code, home)
            elif at in step.slots:
                self._slot(words[at], _RAW, home)
            elif origin[at] in self._sources:
                self._emit(self._sources[origin[at]])
            else:
                self._out.append(words[at] & _WORD)

    def _slot(self, slot: int, code: int, home: dict[int, int]) -> None:
        if slot & ARGUMENT:
            self._emit(("argument", number_of(slot), code))
        elif slot in home:
            found = _passing_slot(home[slot])
            self._out.append(found if code == _RAW else found << CODE_BITS | code)
        elif slot & MADE:
            self._emit(("head", self._results[number_of(slot)], code))
        else:
            self._out.append(slot if code == _RAW else slot << CODE_BITS | code)

    # Patching it

    def _order(self) -> None:
        """Sort what changes by kind, so that a replay computes each word once."""
        kinds: dict[str, list[tuple]] = {name: [] for name in _KINDS}
        for source in self._places:
            kinds[source[0]].append(source)
        # Slots of the call and of its results, counted through.
        self._slots = [(number, code) for _, number, code in kinds["argument"]]
        self._slots += [(self._arguments + number, code) for _, number, code in kinds["head"]]
        self._values = [value for _, value in kinds["value"]]
        self._sums = [(start, follows) for _, start, follows in kinds["sum"]]
        self._reals = [(start, follows) for _, start, follows in kinds["real"]]
        self._draws = [(k, n) for _, k, n in kinds["draw"]]
        self._updates = [(k, n) for _, k, n in kinds["update"]]
        order = [source for k in kinds for source in kinds[k]]
        self._has_numbers = len(order) > len(self._slots)
        self._targets = [tuple(self._places[source]) for source in order]
        self._last: list[Any] = [None] * len(order)
        del self._places, self._sources, self._out

    def make_room(self) -> None:
        """See that the memory which passes within the window stays under the limit.

        Raises:
            OutOfMemoryError: it does not.
        """
        s = stream()
        if s.is_limited and s.allocated + self._bytes > s.limit:
            s.make_room(self._bytes)

    def submit(
        self,
        slots: list[int],
        values: list[int],
        draws: list[tuple[int, ...]],
        updates: list[list[int]],
    ) -> None:
        """Patch the window and hand it over.

        Args:
            slots: of the arguments, then of the results.
            values: of the call.
            draws: words of each reservation of random numbers.
            updates: words of each group of parameters that an optimizer changes alike.
        """
        words = [slots[k] if code < 0 else slots[k] << CODE_BITS | code for k, code in self._slots]
        if self._has_numbers:
            if self._values:
                words += [values[k] for k in self._values]
            if self._sums:
                words += [_sum(values, start, follows) & _WORD for start, follows in self._sums]
            if self._reals:
                words += [float_bits(_sum(values, start, follows)) for start, follows in self._reals]
            if self._draws:
                words += [draws[k][n] for k, n in self._draws]
            if self._updates:
                words += [updates[k][n] for k, n in self._updates]
        s, window, last = stream(), self.window, self._last
        with s.lock:
            for k, word in enumerate(words):
                if word != last[k]:
                    # Unknown until all its places are written: an interrupt may fall between two.
                    last[k] = None
                    for at in self._targets[k]:
                        window[at] = word
                    last[k] = word
            if window:
                # A copy: this one is written again before the stream has handed it over.
                s.submit_window(window[:], self)


def _sum(values: list[int], start: Any, follows: tuple) -> Any:
    for k, slope in follows:
        start += slope * values[k]
    return start


stream().on_close.append(_passing.clear)
