"""Command words of the stream: their codes, operands and lengths, and the walk over a window of them.

A command is a word ``payload << CODE_BITS | code``, then slots of buffers, then numbers (offsets, the last of
them a size), then data: "The stream" in docs/design.md. web/runtime/commands.js says the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

RUN, ALLOC, FREE, UPLOAD, COPY = range(5)
CODE_BITS = 3
CODE_MASK = (1 << CODE_BITS) - 1
# A command says sizes and offsets in one word each, whatever the device could hold.
LARGEST_SIZE = (1 << 32) - 16


class Operands(NamedTuple):
    """Words between the first of a command and its data.

    Args:
        slots: how many are slots; the one in the first word of all but runs is not counted.
        numbers: how many are numbers.
    """

    slots: int
    numbers: int


# Those of a run are its launch's: a slot for each binding, and as data a word for each patched parameter.
OPERANDS = {ALLOC: Operands(0, 1), FREE: Operands(0, 0), UPLOAD: Operands(0, 2), COPY: Operands(1, 3)}
# Words of each, without data.
LENGTHS = {code: 1 + slots + numbers for code, (slots, numbers) in OPERANDS.items()}


class LaunchWords(Protocol):
    """What a walk has to know of a launch.

    Args:
        slot_count: slots that each run names.
        length: words of each run.
    """

    slot_count: int
    length: int


L = TypeVar("L", bound=LaunchWords)
_NONE = range(0)


class Command(NamedTuple, Generic[L]):
    """A command of a window.

    Args:
        code: what it does.
        at: where its first word lies.
        slots: the slots that it names, in the order of its words.
        slot_words: where those lie that have a word of their own.
        numbers: where sizes and offsets lie: words that windows of one structure share.
        data: where words lie that differ between them: patched parameters of a run, bytes of an upload.
        nbytes: of what is made, uploaded or copied; 0 for other commands.
        launch: what it runs.
    """

    code: int
    at: int
    slots: tuple[int, ...]
    slot_words: range
    numbers: range
    data: range
    nbytes: int = 0
    launch: L | None = None

    @property
    def words(self) -> range:
        """Where all its words lie."""
        return range(self.at, self.data.stop)


def walk(words: Sequence[int], launches: Mapping[int, L]) -> Iterator[Command[L]]:
    """The commands of a window in order.

    Args:
        words: the window.
        launches: by the word that begins their runs.

    Raises:
        KeyError: a launch or a code that is not known.
    """
    at, end = 0, len(words)
    while at < end:
        head = words[at]
        code = head & CODE_MASK
        first = at + 1
        if code == RUN:
            launch = launches[head]
            last, after = first + launch.slot_count, at + launch.length
            slots = tuple(words[first:last])
            yield Command(code, at, slots, range(first, last), _NONE, range(last, after), 0, launch)
        else:
            count, numbers = OPERANDS[code]
            last = first + count
            data = last + numbers
            nbytes = words[data - 1] if numbers else 0
            after = at + length_of(code, nbytes)
            slots = (head >> CODE_BITS, *words[first:last]) if count else (head >> CODE_BITS,)
            yield Command(code, at, slots, range(first, last), range(last, data), range(data, after), nbytes)
        at = after


def heads(
    words: Sequence[int], at: int, end: int, launches: Mapping[int, LaunchWords]
) -> Iterator[tuple[int, int, int, int]]:
    """The commands of a part of a window, without their words: where each begins, its first word, its code,
    and where it ends."""
    while at < end:
        after = at + length(words, at, launches)
        yield at, words[at], words[at] & CODE_MASK, after
        at = after


def length_of(code: int, nbytes: int) -> int:
    """Words of a command that is no run, of so many bytes."""
    return LENGTHS[code] + (-(-nbytes // 4) if code == UPLOAD else 0)


def length(words: Sequence[int], at: int, launches: Mapping[int, LaunchWords]) -> int:
    """Words of the command that begins at a place; as many as there are at all where that is not known."""
    head = words[at]
    launch = launches.get(head)
    if launch is not None:
        return launch.length
    code = head & CODE_MASK
    if code != UPLOAD:
        return LENGTHS.get(code, len(words))
    nbytes = words[at + LENGTHS[code] - 1 : at + LENGTHS[code]]
    return length_of(code, nbytes[0]) if nbytes and type(nbytes[0]) is int else len(words)


def first_work(commands: Sequence[int]) -> int:
    """How many ends of slots stand before all other commands."""
    first = 0
    for word in commands:
        if word & CODE_MASK != FREE:
            break
        first += 1
    return first


def is_work(commands: Sequence[int]) -> bool:
    """Whether commands are more than ends of slots."""
    return first_work(commands) < len(commands)
