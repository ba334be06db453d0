"""What a function recorded, without the slots of one particular call: two calls of one program are equal but
for numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..device.commands import ALLOC, CODE_BITS, COPY, FREE, RUN, UPLOAD
from ..device.host import STATUS_SLOT
from ..device.stream import EMPTY_SLOT
from ..op.launches import RegisteredLaunch, nodes

# Slots of a program: arguments by number, what was made by number; any other is a slot of the stream.
ARGUMENT, MADE = 1 << 40, 1 << 41
_NUMBER = (1 << 40) - 1
_CODE_MASK = (1 << CODE_BITS) - 1


def number_of(slot: int) -> int:
    """The number of an argument or of what was made."""
    return slot & _NUMBER


@dataclass(frozen=True)
class ProgramStep:
    """One record, and what its words are.

    Args:
        at, end: its words.
        code: what it does.
        head: the slot in its first word; None for a run.
        slots: words that are slots.
        numbers: words that are numbers: of a call, or data.
        node: the launch that it runs.
    """

    at: int
    end: int
    code: int
    head: int | None
    slots: range
    numbers: range
    node: RegisteredLaunch | None = None


def steps(words: Sequence[int]) -> Iterator[ProgramStep]:
    """The records of a window in order."""
    at, end = 0, len(words)
    while at < end:
        word = words[at]
        code, payload = word & _CODE_MASK, word >> CODE_BITS
        if code == RUN:
            node = nodes[word]
            first = at + 1 + len(node.metas)
            after = first + len(node.patched)
            yield ProgramStep(at, after, code, None, range(at + 1, first), range(first, after), node)
        elif code == COPY:
            after = at + 5
            yield ProgramStep(at, after, code, payload, range(at + 1, at + 2), range(at + 2, after))
        elif code == UPLOAD:
            after = at + 3 + (words[at + 2] + 3) // 4
            yield ProgramStep(at, after, code, payload, range(0), range(at + 3, after))
        else:
            after = at + (2 if code == ALLOC else 1)
            yield ProgramStep(at, after, code, payload, range(0), range(0))
        at = after


@dataclass
class Program:
    """The records of a function with slots that mean the same at every call.

    Args:
        words: the records.
        places: where numbers lie in them.
        sizes: bytes of everything that was made, by number.
        reals: of the places, those of float32 parameters.
        alive: slot -> number of what was made and is still there.
        ended: slots that went and were there before.
        external: slots that were there before, arguments left out.
        changed: slots of the program (arguments, external ones) that are written.
        runs: (word in the recorded windows, word here, launch) of every run.
    """

    words: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    reals: set[int] = field(default_factory=set)
    sizes: list[int] = field(default_factory=list)
    alive: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    external: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    runs: list[tuple[int, int, RegisteredLaunch]] = field(default_factory=list)

    @cached_property
    def skeleton(self) -> list[int]:
        """The words, with zeros for numbers."""
        words = list(self.words)
        for place in self.places:
            words[place] = 0
        return words

    @property
    def numbers(self) -> list[int]:
        """The numbers, in order."""
        words = self.words
        return [words[place] for place in self.places]


def program_of(words: list[int], arguments: Mapping[int, int]) -> Program:
    """The program that was recorded.

    Args:
        words: the records of all windows, one after the other.
        arguments: slot -> number of the argument.
    """
    program = Program()
    out, external, alive, changed = program.words, program.external, program.alive, program.changed
    names = {slot: ARGUMENT | number for slot, number in arguments.items()}
    names |= {STATUS_SLOT: STATUS_SLOT, EMPTY_SLOT: EMPTY_SLOT}

    def name(slot: int) -> int:
        found = names.get(slot)
        if found is None:
            external.add(slot)
            names[slot] = found = slot
        return found

    for step in steps(words):
        slot = step.head
        if step.code == ALLOC:
            assert slot is not None
            number = len(program.sizes)
            program.sizes.append(words[step.at + 1])
            alive[slot] = number
            names[slot] = MADE | number
            out += (names[slot] << CODE_BITS | ALLOC, words[step.at + 1])
            continue
        if step.code == FREE:
            assert slot is not None
            # What was there before goes by itself; only what the function made ends with its records.
            if slot in alive:
                out.append(MADE << CODE_BITS | alive.pop(slot) << CODE_BITS | FREE)
                del names[slot]
            else:
                program.ended.add(slot)
            continue
        shift = len(out) - step.at
        if step.node is not None:
            out.append(words[step.at])
            program.runs.append((step.at, len(out) - 1, step.node))
            for at, binding in zip(step.slots, step.node.source.bindings, strict=True):
                out.append(name(words[at]))
                if binding.written:
                    changed.add(out[-1])
            fields = step.node.source.fields
            program.reals |= {
                len(out) + k for k, f in enumerate(step.node.patched) if fields[f].type == "f32"
            }
        else:
            assert slot is not None
            out.append(name(slot) << CODE_BITS | step.code)
            out += [name(words[at]) for at in step.slots]
            changed.add(out[-1] if step.code == COPY else out[-1] >> CODE_BITS)
            if step.code == UPLOAD:
                out += words[step.at + 1 : step.at + 3]
        program.places += range(step.numbers.start + shift, step.numbers.stop + shift)
        out += words[step.numbers.start : step.numbers.stop]
    changed -= {STATUS_SLOT, EMPTY_SLOT}
    return program
