"""A window on its way to the host, in steps between which an interrupt may fall: none is lost or repeated."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ..errors import DeviceError
from .commands import LaunchWords, is_work, length
from .host import Host


class Recognised(Protocol):
    """What is known of a window before it is rewritten.

    Args:
        ends: the slots that end in it: those that it makes, the bytes of these, and the others; None where
            only a search can tell.
    """

    @property
    def ends(self) -> tuple[list[int], int, list[int]] | None: ...


class Ahead(NamedTuple):
    """All records of a window, looked at before it is handed over.

    Args:
        turn: the turn after that.
        records: the records.
        window: the same, packed.
        found: what is known of it.
    """

    turn: int
    records: list[int]
    window: array
    found: Recognised | None


class HandOver:
    """A window that has been taken from the stream.

    Args:
        window: its words.
        commands: what it was made from.
        listeners: called with the commands, once each, before the host gets the window.
    """

    def __init__(
        self, window: array, commands: list[int], listeners: Sequence[Callable[[list[int]], None]] = ()
    ):
        self._window, self._commands = window, commands
        self._untold = [*listeners[::-1]]
        # Whether the host is called. Python may run something else before that returns: a finalizer, the
        # handler of a signal, or, in 3.11, the repr of one, which `signal` asks for.
        self.is_given = self._is_done = False

    def go_on(self, host: Host, held: bool = False) -> None:
        """Take the steps that have not been taken.

        Raises:
            DeviceError: they are being taken.
        """
        if self._is_done:
            return
        untold = self._untold
        while untold:
            untold[-1](self._commands)
            # No call stands between these two, so no interrupt does.
            del untold[-1]
        if self.is_given:
            raise DeviceError(
                "device webgpu: a finalizer or the handler of a signal waits for the device or reads a "
                "tensor while a window is handed over. Note there what is to be done, and do it later."
            )
        if host.taken is not self._window:
            self.is_given = True
            try:
                host.submit(self._window, held)
            finally:
                self.is_given = False
        self._is_done = True


def packed(commands: list[int]) -> array:
    """The words of commands as the host reads them."""
    window = array("I")
    window.fromlist(commands)  # the constructor takes twice as long
    return window


def sound(commands: list[int], launches: Mapping[int, LaunchWords]) -> list[int]:
    """The commands whose words are numbers that a host can read.

    Args:
        commands: all of them, one after the other.
        launches: by the word that begins their runs.
    """
    kept, at = [], 0
    while at < len(commands):
        end = at + length(commands, at, launches) if _is_word(commands[at]) else len(commands)
        if all(map(_is_word, commands[at:end])):
            kept += commands[at:end]
        at = end
    return kept


def _is_word(word: object) -> bool:
    return isinstance(word, int) and 0 <= word < 1 << 32


def joined(
    commands: list[int], ready: list[tuple[int, array]], rewrite: Callable[[list[int]], array]
) -> array:
    """One window of the windows that are ready and the commands between them.

    Args:
        commands: all that were recorded.
        ready: the windows, each with how many of the commands' words stand before it.
        rewrite: makes a window of commands.
    """
    window, at = array("I"), 0
    for place, made in ready:
        if place > at:
            _add(window, commands[at:place], rewrite)
            at = place
        window += made
    if at < len(commands):
        _add(window, commands[at:], rewrite)
    return window


def _add(window: array, commands: list[int], rewrite: Callable[[list[int]], array]) -> None:
    if is_work(commands):
        window += rewrite(commands)
    else:
        window.fromlist(commands)
