"""The program of a recorded call: its records without the slots and numbers of that call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..device.commands import ALLOC, CODE_BITS, COPY, FREE, walk
from ..device.host import STATUS_SLOT
from ..device.stream import EMPTY_SLOT
from .launches import RegisteredLaunch, nodes
from .symbols import Conditions, Followed

# Slots of a program: arguments by number, what was made by number; any other is a slot of the stream.
ARGUMENT, MADE = 1 << 40, 1 << 41
_NUMBER = (1 << 40) - 1


def number_of(slot: int) -> int:
    """The number of an argument or of what was made."""
    return slot & _NUMBER


class Program:
    """The records of a function with slots and numbers that mean the same at every call.

    Args:
        words: the records as they were recorded.
        arguments: slot -> number of the argument.
        conditions: whose numbers the words follow.

    Attributes:
        words: the records; a word that follows numbers of the call is what `Followed.source` says.
        sizes: bytes of everything that was made, by number.
        alive: slot -> number of what was made and is still there.
        ended: slots that went and were there before.
        external: slots that were there before, arguments left out.
        changed: slots of the program (arguments, external ones) that are written.
        runs: (word, launch) of every run.
        computed: dynamic floats that Python made another number of -> the op that takes it.
    """

    def __init__(self, words: list[int], arguments: Mapping[int, int], conditions: Conditions):
        self.words: list[Any] = []
        self.sizes: list[int] = []
        self.alive: dict[int, int] = {}
        self.ended: set[int] = set()
        self.external: set[int] = set()
        self.changed: set[int] = set()
        self.runs: list[tuple[int, RegisteredLaunch]] = []
        self.computed: dict[int, str] = {}
        out, external, alive, changed = self.words, self.external, self.alive, self.changed
        names = {slot: ARGUMENT | number for slot, number in arguments.items()}
        names |= {STATUS_SLOT: STATUS_SLOT, EMPTY_SLOT: EMPTY_SLOT}

        def name(slot: int) -> int:
            found = names.get(slot)
            if found is None:
                external.add(slot)
                names[slot] = found = slot
            return found

        for command in walk(words, nodes):
            slot, node = command.slots[0] if command.slots else -1, command.launch
            if node is not None:
                self.runs.append((len(out), node))
                out.append(words[command.at])
                for used, binding in zip(command.slots, node.source.bindings, strict=True):
                    out.append(name(used))
                    if binding.written:
                        changed.add(out[-1])
            elif command.code == ALLOC:
                alive[slot] = number = len(self.sizes)
                self.sizes.append(command.nbytes)
                names[slot] = MADE | number
                out.append(names[slot] << CODE_BITS | ALLOC)
            elif command.code == FREE:
                # What was there before goes by itself; only what the function made ends with its records.
                if slot in alive:
                    out.append(MADE << CODE_BITS | alive.pop(slot) << CODE_BITS | FREE)
                    del names[slot]
                else:
                    self.ended.add(slot)
            else:
                out.append(name(slot) << CODE_BITS | command.code)
                out += map(name, command.slots[1:])
                changed.add(out[-1] if command.code == COPY else out[-1] >> CODE_BITS)
            for word in words[command.slot_words.stop : command.data.stop]:
                source = word.source(conditions) if type(word) is Followed else None
                if source is not None and source[0] == "computed":
                    self.computed[source[1]] = node.op if node is not None else "an upload"
                    source = None
                out.append(word if source is None else source)
        changed -= {STATUS_SLOT, EMPTY_SLOT}

    def writer(self, slots: set[int]) -> str | None:
        """The op that writes one of these slots."""
        for at, node in self.runs:
            for k, binding in enumerate(node.source.bindings):
                if binding.written and self.words[at + 1 + k] in slots:
                    return node.op
        return None
