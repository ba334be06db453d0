"""The window of a program, fused and ready: a replay patches the words that changed and hands it over."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...device.commands import ALLOC, CODE_BITS, FREE, Command, walk
from ...device.pool import BlockSizes, shared
from ...device.stream import stream
from ..kernel.float_words import float_bits
from ..launches import nodes
from ..program import ARGUMENT, MADE, Program, number_of
from ..symbols import Form
from .plan import make_plan

_WORD = (1 << 32) - 1
_MANY = 32  # words that change, from which on it is quicker to write all than to look at each
_RAW = -1  # a slot as it is, not in the head of a record

# Slots of everything that lives within one window only: they exist while it runs, so all windows share them.
_passing: list[int] = []


def _passing_slot(number: int) -> int:
    s = stream()
    while len(_passing) <= number:
        try:
            _passing.append(s.free.pop())
        except IndexError:
            _passing.append(s.new_slot())
    return _passing[number]


class Replay:
    """The window of a program.

    Args:
        program: the records.
        arguments: how many slots a call gives.
        gradients: which results are gradients, by their place.
        fused: whether launches are fused.
        begins: which values are offsets of arguments that are taken to be zero where that fuses more.

    Attributes:
        window: the words, as they were handed over last.
        is_moved: whether an argument begins elsewhere than the window counts on, by what words follow.
        dispatches: launches of the window.
        passing_bytes: of what is made and dies within it.
    """

    def __init__(
        self,
        program: Program,
        arguments: int,
        gradients: Collection[int],
        fused: bool,
        begins: Collection[int] = (),
    ):
        self._begins = frozenset(begins)
        # Which values must be zero.
        self._zeros: list[int] = []
        self._sizes, self._arguments = program.sizes, arguments
        # Number of what was made and lives on -> its place behind the arguments.
        self._results = {number: k for k, number in enumerate(program.alive.values())}
        self._gradients = gradients
        # What a word that changes is, as Python text -> where it stands in the window.
        self._places: dict[str, list[int]] = {}
        self._out: list[Any] = []
        words = self._fuse(program.words) if fused and program.words else program.words
        self._write(words)
        self.window = array("I", self._out)
        self.dispatches = sum(command.launch is not None for command in walk(words, nodes))
        self._targets = [tuple(places) for places in self._places.values()]
        names = {"bits": float_bits}
        self._words = eval(f"lambda slot, value: [{', '.join(self._places)}]", names)
        moved = " or ".join([f"value[{k}]" for k in self._zeros]) or "0"
        self.is_moved: Callable[[list[int]], int] = eval(f"lambda value: {moved}")
        # The words that change, as the window has them.
        self._last: list[Any] = [None] * len(self._targets)
        # Where there are many, one assignment writes all: the place in the window, and which word it gets.
        self._all: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        if len(self._targets) > _MANY:
            which = [k for k, places in enumerate(self._targets) for _ in places]
            at = [at for places in self._targets for at in places]
            self._all = np.frombuffer(self.window, np.uint32), np.array(at), np.array(which)
        del self._places, self._out

    def _fuse(self, words: list[Any]) -> list[Any]:
        # A plan must not count on a number that changes to be zero. Tensors mostly begin where their memory
        # does: there it may, and another plan serves calls where one does not.
        begins = {at: word for at, word in enumerate(words) if type(word) is tuple and self._is_begin(*word)}
        sample = [1 if type(word) is tuple else word for word in words]
        for at, (_, start, _) in begins.items():
            sample[at] = start & _WORD
        plan = make_plan(sample)
        told = [begins[at] for at in plan.zeros.tolist() if at in begins]
        self._zeros = sorted({k for _, _, form in told for k, _ in form})
        self._heads = plan.heads  # which hold the launches, as the words of the program do
        pool = words + plan.constants.tolist()
        return [pool[at] for at in plan.places.tolist()]

    def _is_begin(self, kind: str, *source: Any) -> bool:
        """Whether a word follows nothing but offsets that may be taken to be zero."""
        return kind == "sum" and self._begins.issuperset(k for k, _ in source[1])

    # Writing the window

    def _write(self, words: list[Any]) -> None:
        """What ends with the window, what the caller drops at some time, and gradients, which the next call
        drops, have block sizes of their own. What is made and dies lies in few slots, which exist while the
        window runs."""
        kept = [command for command in walk(words, nodes) if command.code not in (ALLOC, FREE)]
        uses = [self._passing(command) for command in kept]
        home, pages = shared(uses, {s: self._sizes[number_of(s)] for used in uses for s in used})
        apart = BlockSizes(stream().open().info.limits.get("maxStorageBufferBindingSize", 1 << 27))
        sizes = [self._sizes[number] for number in self._results]
        for of_gradients in (False, True):
            chosen = [k for k in range(len(sizes)) if (k in self._gradients) is of_gradients]
            for k, nbytes in zip(chosen, apart.of([sizes[k] for k in chosen]), strict=True):
                self._emit_slot(self._arguments + k, ALLOC)
                self._out.append(nbytes)
        pages = apart.of(pages)
        self.passing_bytes = sum(pages)
        self._out += [
            w for n, size in enumerate(pages) for w in (_passing_slot(n) << CODE_BITS | ALLOC, size)
        ]
        for command in kept:
            self._copy(words, command, home)
        self._out += [_passing_slot(n) << CODE_BITS | FREE for n in range(len(pages))]

    def _passing(self, command: Command) -> list[int]:
        """What is made and dies within the window, among the slots of a command."""
        return [s for s in dict.fromkeys(command.slots) if s & MADE and number_of(s) not in self._results]

    def _emit(self, text: str) -> None:
        self._places.setdefault(text, []).append(len(self._out))
        self._out.append(0)

    def _emit_slot(self, number: int, code: int) -> None:
        self._emit(f"slot[{number}]" if code == _RAW else f"slot[{number}] << {CODE_BITS} | {code}")

    def _emit_number(self, kind: str, *source: Any) -> None:
        if kind == "value":
            self._emit(f"value[{source[0]}]")
            return
        start, form = source
        text = " + ".join([str(start), *[f"{slope} * value[{k}]" for k, slope in form]])
        self._emit(f"bits({text})" if kind == "real" else f"{text} & {_WORD}")

    def _copy(self, words: list[Any], command: Command, home: dict[int, int]) -> None:
        slots = command.slots
        if command.launch is not None:
            self._out.append(words[command.at])
        else:
            self._slot(slots[0], command.code, home)
            slots = slots[1:]
        for slot in slots:
            self._slot(slot, _RAW, home)
        for word in words[command.slot_words.stop : command.data.stop]:
            if type(word) is tuple:
                self._emit_number(*word)
            else:
                self._out.append(word & _WORD)

    def _slot(self, slot: int, code: int, home: dict[int, int]) -> None:
        if slot & ARGUMENT:
            self._emit_slot(number_of(slot), code)
        elif slot in home:
            found = _passing_slot(home[slot])
            self._out.append(found if code == _RAW else found << CODE_BITS | code)
        elif slot & MADE:
            self._emit_slot(self._arguments + self._results[number_of(slot)], code)
        else:
            self._out.append(slot if code == _RAW else slot << CODE_BITS | code)

    # Patching it

    def submit(self, slots: list[int], values: list[int]) -> None:
        """Patch the window and hand it over.

        Args:
            slots: of the arguments, then of the results.
            values: what words follow.
        """
        words = self._words(slots, values)
        s, window, last = stream(), self.window, self._last
        with s.lock:
            if self._all is not None:
                written, at, which = self._all
                written[at] = np.frombuffer(array("I", words), np.uint32)[which]
            else:
                for k, word in enumerate(words):
                    if word != last[k]:
                        # Unknown until all is written: an interrupt may fall anywhere.
                        last[k] = None
                        for at in self._targets[k]:
                            window[at] = word
                        last[k] = word
            if window:
                # A copy: this one is written again before the stream has handed it over.
                s.submit_window(window[:], self)


def total(values: list[int], start: int, form: Form) -> int:
    """An integer that follows values of a call."""
    for k, slope in form:
        start += slope * values[k]
    return start


stream().on_close.append(_passing.clear)
