"""How far a load is, how fast it goes, and the token that stops it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ..errors import LoadCancelled

_WINDOW = 5.0  # seconds over which the rate is measured


class Progress(NamedTuple):
    """State of a load, as ``on_progress`` gets it.

    Attributes:
        bytes_done: bytes of tensors that have arrived.
        bytes_total: bytes of tensors to load.
        rate: bytes per second over the last seconds; 0.0 before the first bytes.
        remaining_seconds: estimate of the time left; None while the rate is unknown.
        name: the tensor that arrived last.
    """

    bytes_done: int
    bytes_total: int
    rate: float
    remaining_seconds: float | None
    name: str

    def __str__(self) -> str:
        share = 100 * self.bytes_done / self.bytes_total if self.bytes_total else 100.0
        left = "" if self.remaining_seconds is None else f", {self.remaining_seconds:.0f} s left"
        return f"{share:.0f} % of {self.bytes_total / 1e6:,.1f} MB, {self.rate / 1e6:,.1f} MB/s{left}"


class Meter:
    """Makes a `Progress` from byte counts and the time at which they were seen."""

    def __init__(self, bytes_total: int, clock: Callable[[], float] = time.monotonic):
        self._total, self._clock = bytes_total, clock
        self._seen = deque([(clock(), 0)])

    def at(self, bytes_done: int, name: str) -> Progress:
        """The progress when ``bytes_done`` have arrived, the last of them in tensor ``name``."""
        now = self._clock()
        self._seen.append((now, bytes_done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW:
            self._seen.popleft()
        since, before = self._seen[0]
        rate = (bytes_done - before) / (now - since) if now > since else 0.0
        return Progress(
            bytes_done, self._total, rate, (self._total - bytes_done) / rate if rate else None, name
        )


class Cancel:
    """A token that stops a load from elsewhere: another task, an event handler, another thread.

    Example:
        >>> from pellucid.weights import Cancel
        >>> cancel = Cancel()
        >>> cancel.cancel()
        >>> cancel.cancelled
        True
    """

    def __init__(self):
        self.cancelled = False
        self._listeners: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """Stop the loads that were given this token; they raise `LoadCancelled`."""
        self.cancelled = True
        for listener in list(self._listeners):
            listener()

    def check(self) -> None:
        """Raise if the token was used.

        Raises:
            LoadCancelled: `cancel` was called.
        """
        if self.cancelled:
            raise LoadCancelled("load: cancelled by the caller. Nothing of it stays allocated.")

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when the token is used; the function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
