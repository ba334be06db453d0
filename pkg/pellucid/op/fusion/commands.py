"""Commands of a window as fusion sees them, with what each reads and writes; the digest of its structure."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

import numpy as np

from ...device.commands import (
    ALLOC,
    CODE_BITS,
    CODE_MASK,
    COPY,
    FREE,
    LENGTHS,
    OPERANDS,
    RUN,
    UPLOAD,
    heads,
    length_of,
)  # fmt: skip
from ..launches import LaunchId, RegisteredLaunch, nodes
from .facts import LaunchFacts, facts_of

# Commands by which the beginning of a window is found again in it.
_LOOK = 12
# Words of a window that `outline` looks at, and those by which `repetition` finds its beginning again.
_GLANCES, _LOOK_AT = 256, 96
# `structure` walks over every new window: the commands that come most often have branches of their own there.
_ALLOC_WORDS, _FREE_WORDS = LENGTHS[ALLOC], LENGTHS[FREE]


@dataclass(eq=False, slots=True)
class FusionCommand:
    """One command of a window, or one that stands for several.

    Args:
        words: where its words lie in the window; of a run those after the head.
        code: what it is.
        slots: what it touches, in the order of its words.
        writes: slots that it writes.
        needs: slots whose old values it needs.
        node: the launch that it runs.
        facts: what fusion asks of that.
        parts: the commands that it stands for.
    """

    words: Sequence[int]
    code: int
    slots: tuple[int, ...]
    writes: tuple[int, ...] = ()
    needs: Collection[int] = ()
    node: RegisteredLaunch | None = None
    facts: LaunchFacts | None = None
    parts: tuple[FusionCommand, ...] = ()

    @property
    def is_run(self) -> bool:
        return self.node is not None

    def patch_at(self, word: int) -> int:
        """Where in the window the patch ``word`` of a run lies."""
        return self.words[len(self.slots) + word]

    @property
    def origins(self) -> list[int]:
        """A word of each command of the window that it stands for, in their order, or of itself."""
        return sorted([part.words[0] for part in self.parts]) if self.parts else [self.words[0]]


def run_of(
    node: RegisteredLaunch,
    slots: tuple[int, ...],
    words: Sequence[int],
    parts: tuple[FusionCommand, ...] = (),
) -> FusionCommand:
    """The command that runs a launch."""
    facts = facts_of(node)
    written = facts.written
    writes = (slots[written[0]],) if len(written) == 1 else tuple([slots[k] for k in written])
    needs = frozenset([slots[k] for k in facts.needed])
    return FusionCommand(words, RUN, slots, writes, needs, node, facts, parts)


def read(words: Sequence[int]) -> Iterator[FusionCommand]:
    """All commands of a window."""
    for at, head, code, after in heads(words, 0, len(words), nodes):
        if code == RUN:
            node = nodes[head]
            slots = tuple(words[at + 1 : at + 1 + node.slot_count])
            yield run_of(node, slots, range(at + 1, after))
        elif code == COPY:
            source, target = head >> CODE_BITS, words[at + 1]
            yield FusionCommand(range(at, after), code, (source, target), (target,), (source,))
        else:
            slots = (head >> CODE_BITS,)
            # What is made or ends is neither read nor written.
            yield FusionCommand(range(at, after), code, slots, slots if code == UPLOAD else ())


def structure(words: list[int]) -> tuple[bytes, list[int]] | None:
    """A digest of what windows of one program share: launches, and slots by the order in which they appear.

    Patched words (offsets, numbers, positions) and uploaded data are left out. None for a window with a
    launch that is not known.

    Returns:
        The digest; and a number for each command that says all but its slots and its patched words.
    """
    kinds: list[int] = []
    numbers: list[int] = [0]
    slot = defaultdict(count().__next__).__getitem__
    known = nodes.get
    at, end = 0, len(words)
    while at < end:
        head = words[at]
        code = head & CODE_MASK
        if code == RUN:
            node = known(head)
            if node is None:
                return None
            kinds.append(head)
            numbers += map(slot, words[at + 1 : at + 1 + node.slot_count])
            at += node.length
            continue
        numbers.append(slot(head >> CODE_BITS))
        if code == ALLOC:
            kinds.append(words[at + 1] << CODE_BITS | ALLOC)
            at += _ALLOC_WORDS
        elif code == FREE:
            kinds.append(FREE)
            at += _FREE_WORDS
        elif code in OPERANDS:
            slots, fixed = OPERANDS[code]
            first = at + 1 + slots
            if slots:
                numbers += map(slot, words[at + 1 : first])
            last = first + fixed - 1
            numbers += words[first:last]
            nbytes = words[last]
            kinds.append(nbytes << CODE_BITS | code)
            at += length_of(code, nbytes)
        else:
            return None
    numbers[0] = len(kinds)  # which says where the numbers end
    digest = blake2b(array("I", numbers), digest_size=16)
    digest.update(array("Q", kinds))
    return digest.digest(), kinds


def outline(words: list[int]) -> int:
    """What windows of one structure share at a glance: how many words, and launches at places between them.
    Few others have the same."""
    step = len(words) // _GLANCES | 1  # odd: what repeats is seen at another place each time
    return hash((len(words), *[word for word in words[::step] if type(word) is LaunchId]))


def repetition(words: list[int], window: np.ndarray) -> int:
    """After how many words the launches of a window begin anew, as `period` says of all commands; 0 if they
    do not.

    Args:
        words: the commands.
        window: the same.
    """
    launches = [at for at, word in enumerate(words[:_LOOK_AT]) if type(word) is LaunchId]
    if not launches:
        return 0
    first, start = launches[0], np.array(launches)
    again = np.flatnonzero(window[first + 1 : len(words) // 2 + first + 1] == window[first]) + 1
    again = again[again + launches[-1] < len(words)]
    alike = (window[again[:, None] + start] == window[start]).all(1)
    for after in again[alike].tolist():
        begins = [at for at in range(after) if type(words[at]) is LaunchId]
        rows = window[: len(words) // after * after].reshape(-1, after)[:, begins]
        if (rows == rows[0]).all():
            return after
    return 0


def period(kinds: list[int]) -> int:
    """After how many words the commands of a window begin anew, at least twice; 0 if they do not.

    Args:
        kinds: as `structure` gives them.

    Example:
        >>> period([2, 2, 2])
        1
    """
    if len(kinds) < 2:
        return 0
    text = array("Q", kinds).tobytes()
    start = text[: 8 * min(_LOOK, len(kinds) // 2)]
    at = text.find(start, 1)
    while 0 < at <= len(text) // 2:
        if at % 8 == 0 and text.startswith(text[at:]):
            return sum([shape_of(kind).length for kind in kinds[: at // 8]])
        at = text.find(start, at + 1)
    return 0


class CommandShape(NamedTuple):
    """Where the words of a command lie, but for its data.

    Args:
        length: of all its words.
        code: what it does.
        slots: how many slots have words of their own.
        numbers: how many numbers stand behind these.
    """

    length: int
    code: int
    slots: int
    numbers: int


def shape_of(kind: int) -> CommandShape:
    """That of the commands of a kind."""
    node = nodes.get(kind)
    if node is not None:
        return CommandShape(node.length, RUN, node.slot_count, 0)
    code = kind & CODE_MASK
    return CommandShape(length_of(code, kind >> CODE_BITS), code, *OPERANDS[code])
