"""A recording as a file for chrome://tracing and https://ui.perfetto.dev, in tracks.

Format: "Trace Event Format",
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .events import Event, events
from .recording import Dispatch, OpCall, Recording, Window
from .text import about_times

_TRACKS = {
    "op": (1, "Python: ops"),
    "span": (2, "Python: named parts"),
    "window": (3, "submissions and waits"),
    "wait": (3, "submissions and waits"),
    "dispatch": (4, "GPU"),
}


def trace_events(recording: Recording) -> dict[str, Any]:
    """The contents of the file."""
    named: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "pellucid"}},
        *[
            {"name": "thread_name", "ph": "M", "pid": 1, "tid": track, "args": {"name": name}}
            for track, name in dict.fromkeys(_TRACKS.values())
        ],
    ]
    return {
        "traceEvents": named + [_complete(event) for event in events(recording)],
        "displayTimeUnit": "ns",
        "otherData": {
            "times": " ".join(about_times(recording)),
            "clocks": "The GPU's clock is its own. It is placed as early as it can be if no dispatch began "
            "before its window was being submitted.",
        },
    }


def _complete(event: Event) -> dict[str, Any]:
    return {
        "name": event.name, "cat": event.kind, "ph": "X", "pid": 1, "tid": _TRACKS[event.kind][0],
        "ts": event.start, "dur": max(event.duration, 0.0), "args": _about(event.source),
    }  # fmt: skip


def _about(source: Any) -> dict[str, Any]:
    if isinstance(source, OpCall):
        return {"line": str(source.line), "microseconds in Python": source.seconds * 1e6}
    if isinstance(source, Window):
        about: dict[str, Any] = {
            "dispatches": len(source.dispatches),
            "bytes copied": sum(source.copies),
            "bytes uploaded": sum(source.uploads),
        }
        if source.seconds is not None:
            about["microseconds until its work was done"] = source.seconds * 1e6
        return about
    if isinstance(source, Dispatch):
        return {
            "kernel": source.kernel,
            "grid": list(source.grid),
            "bytes read": source.bytes_read,
            "bytes written": source.bytes_written,
            "flops": source.flops,
            "lines": [str(line) for line in source.lines],
            "window": source.window.number,
        }
    return {}


def export(recording: Recording, path: str | Path) -> None:
    """Write the file."""
    Path(path).write_text(json.dumps(trace_events(recording)), encoding="utf-8")
