"""Race of a replay and of a function's own Python: which is quicker, where both are one launch."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .captured import CapturedTrace

# A replay takes as much Python as a few ops. A trace that was replayed so often is timed so many times, in
# turns with the function; both give the same bits.
_REPLAYED, _TIMED = 16, 8


class Race:
    """The quickest replay of a kind of calls, and the quickest call of their function.

    Attributes:
        may_be_run: whether there are races: replays that are checked against calls are slow on purpose.
    """

    may_be_run = True

    def __init__(self):
        self._times = 0
        self._replay = self._python = inf

    @property
    def is_lost(self) -> bool:
        """Whether Python was quicker."""
        return self._times >= _TIMED and self._python < self._replay

    def is_on(self, trace: CapturedTrace) -> bool:
        """Whether the next call that a trace could serve is timed."""
        is_open = self._times < _TIMED or self._python < self._replay
        return is_open and trace.is_one_launch and trace.replays >= _REPLAYED and self.may_be_run

    def run(self, replay: Callable, served: tuple, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a replay or of the function, in turns.

        Args:
            replay: takes ``served``.
            served: what is replayed.
            function: takes the arguments of the call.
            args: those by place.
            kwargs: those by name.
        """
        is_replay, begun = self._times % 2 == 0, perf_counter()
        result = replay(*served) if is_replay else function(*args, **kwargs)
        took = perf_counter() - begun
        if is_replay:
            self._replay = min(self._replay, took)
        else:
            self._python = min(self._python, took)
        self._times += 1
        return result
