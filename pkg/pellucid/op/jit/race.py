"""Race of a replay and of a function's own Python: which is quicker, where both are one launch."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...tensors.meta import Meta

if TYPE_CHECKING:
    from .captured import CapturedTrace

# A replay takes as much Python as a few ops. A trace that was replayed so often is timed so many times, in
# turns with the function; both give the same bits.
_REPLAYED, _TIMED = 16, 8
# Calls that then run a function whose Python is quicker, without a look at what is captured.
_UNSEEN = 255


class Race:
    """The quickest replay of a kind of calls, and the quickest call of their function.

    Attributes:
        may_be_run: whether there are races: replays that are checked against calls are slow on purpose.
        clock: tells the seconds.
    """

    may_be_run = True
    clock = staticmethod(perf_counter)

    def __init__(self):
        self._times = self._unseen = 0
        self._replay = self._python = inf
        self._metas: list[Meta] | None = None

    @property
    def is_lost(self) -> bool:
        """Whether Python was quicker."""
        return self._times >= _TIMED and self._python < self._replay

    def is_on(self, trace: CapturedTrace, args: tuple, kwargs: dict) -> bool:
        """Whether the next call that a trace could serve is timed: one of tensors alone, by place."""
        is_open = self._times < _TIMED or self._python < self._replay
        if not (is_open and trace.is_one_launch and trace.replays >= _REPLAYED and self.may_be_run):
            return False
        return _metas(args, kwargs) is not None

    def run(self, replay: Callable, served: tuple, function: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a replay or of the function, in turns.

        Args:
            replay: takes ``served``.
            served: what is replayed.
            function: takes the arguments of the call.
            args: those by place.
            kwargs: those by name.
        """
        is_replay, begun = self._times % 2 == 0, self.clock()
        result = replay(*served) if is_replay else function(*args, **kwargs)
        took = self.clock() - begun
        if is_replay:
            self._replay = min(self._replay, took)
        else:
            self._python = min(self._python, took)
        self._times += 1
        if self.is_lost:
            self._metas, self._unseen = _metas(args, kwargs), _UNSEEN
        return result

    def is_over(self, args: tuple, kwargs: dict) -> bool:
        """Whether a call is like those that were timed, and runs the function without another look."""
        if self._unseen <= 0 or self._metas != _metas(args, kwargs):
            return False
        self._unseen -= 1
        return True


def _metas(args: tuple, kwargs: dict) -> list[Meta] | None:
    """Those of a call's tensors; None where it has other arguments, or some by name."""
    if kwargs:
        return None
    try:
        return [a._meta for a in args]
    except AttributeError:
        return None
