"""The records of a window, read: which launch each runs, on which slots, and where its words lie."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count

from ..device.host import ALLOC, CODE_BITS, COPY, FREE, RUN, UPLOAD
from ..op.launches import RegisteredLaunch, nodes

_CODE_MASK = (1 << CODE_BITS) - 1
# Records by which the beginning of a window is found again in it.
_LOOK = 12


@dataclass(eq=False)
class Command:
    """One record of a window, or one that stands for several.

    Args:
        words: where its words lie in the window; of a run those after the head.
        code: what it is.
        slots: what it touches, in the order of its words.
        node: the launch that it runs.
        reads: slots that it reads, or may read.
        writes: slots that it writes.
        parts: the records that it stands for.
    """

    words: Sequence[int]
    code: int
    slots: tuple[int, ...]
    node: RegisteredLaunch | None = None
    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    parts: tuple[Command, ...] = ()

    @property
    def is_run(self) -> bool:
        return self.node is not None

    def patch_at(self, word: int) -> int:
        """Where in the window the patch ``word`` of a run lies."""
        return self.words[len(self.slots) + word]

    @property
    def origins(self) -> list[int]:
        """A word of each record of the window that it stands for, in their order, or of itself."""
        return sorted([part.words[0] for part in self.parts or (self,)])


def run_of(
    node: RegisteredLaunch, slots: tuple[int, ...], words: Sequence[int], parts: tuple[Command, ...] = ()
) -> Command:
    """The record of a launch; a written binding may be read as well."""
    written = {s for s, b in zip(slots, node.source.bindings, strict=True) if b.written}
    return Command(words, RUN, slots, node, frozenset(slots), frozenset(written), parts)


def structure(words: list[int]) -> tuple[bytes, list[int]] | None:
    """A digest of what windows of one program share: launches, and slots by the order in which they appear.

    Patched words (offsets, numbers, positions) and uploaded data are left out. None for a window with a
    launch that is not known.

    Returns:
        The digest; and a number for each record that says all but its slots and its patched words.
    """
    kinds: list[int] = []
    numbers: list[int] = [0]
    slot = defaultdict(count().__next__).__getitem__
    known = nodes.get
    at, end = 0, len(words)
    while at < end:
        head = words[at]
        code = head & _CODE_MASK
        if code == RUN:
            node = known(head)
            if node is None:
                return None
            kinds.append(head)
            last = at + 1 + len(node.metas)
            numbers += map(slot, words[at + 1 : last])
            at = last + len(node.patched)
            continue
        numbers.append(slot(head >> CODE_BITS))
        if code == ALLOC:
            kinds.append(words[at + 1] << CODE_BITS | ALLOC)
            at += 2
        elif code == FREE:
            kinds.append(FREE)
            at += 1
        elif code == UPLOAD:
            numbers.append(words[at + 1])
            kinds.append(words[at + 2] << CODE_BITS | UPLOAD)
            at += 3 + (words[at + 2] + 3) // 4
        elif code == COPY:
            numbers.append(slot(words[at + 1]))
            numbers += words[at + 2 : at + 4]
            kinds.append(words[at + 4] << CODE_BITS | COPY)
            at += 5
        else:
            return None
    numbers[0] = len(kinds)  # which says where the numbers end
    digest = blake2b(array("I", numbers), digest_size=16)
    digest.update(array("Q", kinds))
    return digest.digest(), kinds


def period(kinds: list[int]) -> int:
    """After how many words the records of a window begin anew, at least twice; 0 if they do not.

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
            return sum(map(_length, kinds[: at // 8]))
        at = text.find(start, at + 1)
    return 0


def _length(kind: int) -> int:
    """Words of a record."""
    node = nodes.get(kind)
    if node is not None:
        return 1 + len(node.metas) + len(node.patched)
    code, nbytes = kind & _CODE_MASK, kind >> CODE_BITS
    return {ALLOC: 2, FREE: 1, COPY: 5}.get(code) or 3 + (nbytes + 3) // 4


def read(words: list[int]) -> list[Command]:
    """All records of a window."""
    records = []
    at, end = 0, len(words)
    while at < end:
        head = words[at]
        code, payload = head & _CODE_MASK, head >> CODE_BITS
        if code == RUN:
            node = nodes[head]
            count = len(node.metas)
            after = at + 1 + count + len(node.patched)
            records.append(run_of(node, tuple(words[at + 1 : at + 1 + count]), range(at + 1, after)))
        elif code == COPY:
            after = at + 5
            both = (payload, words[at + 1])
            records.append(
                Command(range(at, after), code, both, None, frozenset(both[:1]), frozenset(both[1:]))
            )
        elif code == UPLOAD:
            after = at + 3 + (words[at + 2] + 3) // 4
            one = (payload,)
            records.append(Command(range(at, after), code, one, None, frozenset(), frozenset(one)))
        else:
            after = at + (2 if code == ALLOC else 1)
            records.append(Command(range(at, after), code, (payload,)))
        at = after
    return records
