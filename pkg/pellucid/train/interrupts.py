"""Ctrl-C while a step is taken: the step is finished first, so that nothing half done stays."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StepInterrupts:
    """A context for each step, in which Ctrl-C waits for its end; a second one in the same step does not.

    Only the main thread hears of Ctrl-C; in others it does nothing.

    Attributes:
        is_waiting: Ctrl-C came during a step.
    """

    def __init__(self):
        self.is_waiting = self._is_within = False
        self._before: Any = None

    @contextmanager
    def listening(self) -> Iterator[StepInterrupts]:
        """Hear of Ctrl-C first, while it lasts."""
        before = signal.getsignal(signal.SIGINT)
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or not callable(before):
            yield self
            return
        self._before = before
        signal.signal(signal.SIGINT, self._hear)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)

    def _hear(self, number: int, frame: Any) -> None:
        if self._is_within and not self.is_waiting:
            self.is_waiting = True
        else:
            self._before(number, frame)

    def __enter__(self) -> StepInterrupts:
        self._is_within = True
        return self

    def __exit__(self, *exc: Any) -> None:
        self._is_within = False

    def check(self) -> None:
        """Let Ctrl-C count that came during a step.

        Raises:
            KeyboardInterrupt: one came.
        """
        if self.is_waiting:
            self.is_waiting = False
            raise KeyboardInterrupt


__all__ = ["StepInterrupts"]
