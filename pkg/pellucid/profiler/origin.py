"""Which calls of ops a dispatch comes from: from the window that the host gets back to the ops' commands."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ..op.fusion.plan import FusionPlan
from ..op.launches import RegisteredLaunch
from .recording import OpCall

# For a launch and where its run begins in the host's window: what it does, and the calls it does the work of.
Origin = Callable[[RegisteredLaunch, int], tuple[RegisteredLaunch, tuple[OpCall, ...]]]


@dataclass
class Submission:
    """A window on its way from the ops to the host.

    Args:
        length: words of its commands.
        ends: where the commands of each call end.
        calls: whose they are.
        plan: how launches were fused; None where they were not.
        start: words before those that the plan is about.
    """

    length: int
    ends: list[int]
    calls: list[OpCall]
    plan: FusionPlan | None
    start: int

    def origin(self, node: RegisteredLaunch, at: int) -> tuple[RegisteredLaunch, tuple[OpCall, ...]]:
        """What a run of the host's window does, and the calls that it comes from."""
        if self.plan is not None:
            stands = self.plan.stands.get(at - self.start)
            if stands is not None:  # launches alike share a number: the plan knows which is meant
                node, words = stands
                return node, self._calls_at([word + self.start for word in words])
        return node, self._calls_at([self._places[at + 1]])

    def _calls_at(self, words: list[int]) -> tuple[OpCall, ...]:
        """The calls that words of the commands came from, each once."""
        found = [bisect_right(self.ends, word) for word in words]
        return tuple(self.calls[k] for k in dict.fromkeys(found) if k < len(self.calls))

    @cached_property
    def _places(self) -> list[int]:
        """Where each word of the host's window lies in the commands; past their end for what is in none."""
        if self.plan is None:
            return list(range(self.length))
        return [*range(self.start), *[place + self.start for place in self.plan.places.tolist()]]
