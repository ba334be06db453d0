"""`pellucid.debug.trace`: every dispatch of a part of a program, with its kernel and where it came from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import overload

from ..device.stream import stream
from ..errors import DeviceError
from .recorder import Recorder
from .recording import Dispatch, Recording, Window
from .text import about_times, shortened, table, with_unit

_OPS, _LINES = 48, 60


class Trace:
    """What ran between the beginning and the end of a ``with``; see `pellucid.debug.trace`."""

    def __init__(self, time: bool = False):
        self._recorder: Recorder | None = None
        self._recording = Recording(asked=time)

    def _started(self) -> Recorder:
        if self._recorder is not None:
            raise DeviceError("device webgpu: a trace records once. Make another one.")
        recorder = Recorder(self._recording.asked)
        recorder.start()
        self._recorder, self._recording = recorder, recorder.recording
        return recorder

    def __enter__(self) -> Trace:
        self._started()
        return self

    def __exit__(self, *exc) -> None:
        assert self._recorder is not None
        self._recorder.stop()

    async def __aenter__(self) -> Trace:
        await stream().open_async()
        self._started()
        return self

    async def __aexit__(self, *exc) -> None:
        assert self._recorder is not None
        await self._recorder.stop_async()

    @property
    def windows(self) -> list[Window]:
        """The windows that were submitted, each with its dispatches."""
        return self._recording.windows

    @overload
    def __getitem__(self, number: int) -> Dispatch: ...
    @overload
    def __getitem__(self, number: slice) -> list[Dispatch]: ...
    def __getitem__(self, number):
        return self._recording.dispatches[number]

    def __iter__(self) -> Iterator[Dispatch]:
        return iter(self._recording.dispatches)

    def __len__(self) -> int:
        return len(self._recording.dispatches)

    def table(self, row_limit: int | None = None) -> str:
        """The dispatches, one a line.

        Args:
            row_limit: the most lines; None for all.
        """
        recording = self._recording
        dispatches = recording.dispatches
        shown = dispatches[:row_limit]
        heads = ["#", "window", "ops", "kernel", "grid", "read", "written"]
        if timed := recording.asked and recording.has_timestamps:
            heads.append("GPU time")
        heads.append("lines")
        rows = []
        for number, d in enumerate(shown):
            row = [
                str(number),
                str(d.window.number),
                shortened(" + ".join(d.ops), _OPS),
                d.kernel,
                "x".join(map(str, d.grid)),
                with_unit(d.bytes_read, "B"),
                with_unit(d.bytes_written, "B"),
            ]
            if timed:
                row.append("-" if d.seconds is None else with_unit(d.seconds, "s"))
            row.append(shortened(", ".join(line.short for line in d.lines) or "-", _LINES))
            rows.append(row)
        lines = [self._summary(), *about_times(recording)]
        if rows:
            lines.append(table(heads, rows, "ops, kernel, grid, lines"))
        if len(shown) < len(dispatches):
            lines.append(f"... and {len(dispatches) - len(shown)} more")
        return "\n".join(lines)

    def _summary(self) -> str:
        windows, dispatches = self.windows, self._recording.dispatches
        fused = [d for d in dispatches if d.is_fused]
        parts = [f"{_counted(len(windows), 'window')}, {_counted(len(dispatches), 'dispatch', 'es')}"]
        if fused:
            parts.append(f"{len(fused)} of them fused from {sum(d.launches for d in fused)}")
        for name in ("copies", "uploads"):
            found = [nbytes for window in windows for nbytes in getattr(window, name)]
            if found:
                parts.append(f"{len(found)} {name} of {with_unit(sum(found), 'B')}")
        times = [d.seconds for d in dispatches if d.seconds is not None]
        walls = [w.seconds for w in windows if w.seconds is not None]
        if times:
            parts.append(f"{with_unit(math.fsum(times), 's')} of GPU time")
        if walls:
            parts.append(f"windows of {', '.join(with_unit(seconds, 's') for seconds in walls)}")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return self.table()


def _counted(count: int, what: str, plural: str = "s") -> str:
    return f"{count} {what}{'' if count == 1 else plural}"
