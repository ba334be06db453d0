"""A recording as a list of what took time, each thing with its beginning and its length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .recording import Dispatch, Recording


@dataclass(frozen=True)
class Event:
    """One thing that took time.

    Args:
        name: the op, the ops of a dispatch, the name of a part, or the window.
        kind: ``"op"``, ``"span"``, ``"window"``, ``"wait"`` or ``"dispatch"``.
        start: microseconds since the recording began; those of dispatches are of the GPU's own clock, which
            is placed as early as it can be if no dispatch began before its window was being submitted.
        duration: microseconds; of a window those of its submission.
        source: the `OpCall`, `Span`, `Window` or `Dispatch` with all that is known; None of a wait.
    """

    name: str
    kind: str
    start: float
    duration: float
    source: Any


def events(recording: Recording) -> list[Event]:
    """Everything that took time, by when it began."""
    r = recording

    def event(name: str, kind: str, began: float, seconds: float, source: Any) -> Event:
        return Event(name, kind, (began - r.began) * 1e6, seconds * 1e6, source)

    found = [event(c.op, "op", c.began, c.ended - c.began, c) for c in r.calls]
    found += [event(s.name, "span", s.began, (s.ended or r.ended) - s.began, s) for s in r.spans]
    found += [event(f"window {w.number}", "window", w.began, w.ended - w.began, w) for w in r.windows]
    found += [event("wait", "wait", began, ended - began, None) for began, ended in r.waits]
    shift = _clock_shift(r.dispatches)
    found += [
        event(" + ".join(d.ops), "dispatch", d.time[0] / 1e9 + shift, d.seconds, d)
        for d in r.dispatches
        if d.time is not None and d.seconds is not None
    ]
    return sorted(found, key=lambda e: e.start)


def _clock_shift(dispatches: list[Dispatch]) -> float:
    """Seconds to add to the GPU's clock."""
    return max((d.window.began - d.time[0] / 1e9 for d in dispatches if d.time is not None), default=0.0)
