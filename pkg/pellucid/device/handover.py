"""A window on its way to the host, in steps between which an interrupt may fall: none is lost or repeated."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from .host import CODE_BITS, FREE, Host

_CODE_MASK = (1 << CODE_BITS) - 1


class HandOver:
    """A window that has been taken from the stream.

    Args:
        window: its words.
        records: what it was made from.
        listeners: called with the records, once each, before the host gets the window.
    """

    def __init__(
        self, window: array, records: list[int], listeners: Sequence[Callable[[list[int]], None]] = ()
    ):
        self._window, self._records = window, records
        self._untold = [*listeners[::-1]]

    def go_on(self, host: Host, held: bool = False) -> None:
        """Take the steps that have not been taken."""
        untold = self._untold
        while untold:
            untold[-1](self._records)
            # No call stands between these two, so no interrupt does.
            del untold[-1]
        if host.taken is not self._window:
            host.submit(self._window, held)


def packed(records: list[int]) -> array:
    """The words of records as the host reads them."""
    window = array("I")
    window.fromlist(records)  # the constructor takes twice as long
    return window


def sound(records: list[int], length: Callable[[list[int], int], int]) -> list[int]:
    """The records whose words are numbers that a host can read.

    Args:
        records: all of them, one after the other.
        length: words of the record that begins at a place, or more than there are where that is not known.
    """
    kept, at = [], 0
    while at < len(records):
        end = at + length(records, at) if _is_word(records[at]) else len(records)
        if all(map(_is_word, records[at:end])):
            kept += records[at:end]
        at = end
    return kept


def _is_word(word: object) -> bool:
    return isinstance(word, int) and 0 <= word < 1 << 32


def first_work(records: Sequence[int]) -> int:
    """How many ends of slots stand before all other records."""
    first = 0
    for word in records:
        if word & _CODE_MASK != FREE:
            break
        first += 1
    return first


def is_work(records: Sequence[int]) -> bool:
    """Whether records are more than ends of slots."""
    return first_work(records) < len(records)


def joined(
    records: list[int], ready: list[tuple[int, array]], rewrite: Callable[[list[int]], array]
) -> array:
    """One window of the windows that are ready and the records between them.

    Args:
        records: all that were recorded.
        ready: the windows, each with how many of the records' words stand before it.
        rewrite: makes a window of records.
    """
    window, at = array("I"), 0
    for place, made in ready:
        if place > at:
            _add(window, records[at:place], rewrite)
            at = place
        window += made
    if at < len(records):
        _add(window, records[at:], rewrite)
    return window


def _add(window: array, records: list[int], rewrite: Callable[[list[int]], array]) -> None:
    if is_work(records):
        window += rewrite(records)
    else:
        window.fromlist(records)
