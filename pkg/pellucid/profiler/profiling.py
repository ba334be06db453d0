"""`profile` and `record_function`, as PyTorch's."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..device.stream import stream
from ..errors import DeviceError
from . import recorder
from .averages import Averages, averages
from .chrome import export
from .events import Event, events
from .recorder import Recorder
from .recording import Recording, Span
from .timeline import timeline


class ProfilerActivity(enum.Enum):
    """What a profile measures: Python's time (``CPU``), the GPU's (``WEBGPU``)."""

    CPU = "cpu"
    WEBGPU = "webgpu"


class profile:
    """Measure what Python and the GPU spend on each op, for the length of a ``with``.

    The GPU's time puts every dispatch into a pass of its own, which costs about 17 us more for each on a GPU;
    without timestamps the device tells the time of whole windows. Ops are those on webgpu. The time of an op
    in Python goes from the end of the op before: what the program does between two ops counts for the second.

    Args:
        activities: of `ProfilerActivity`; None for all.
        record_shapes: whether rows can be told apart by the shapes of their tensors.

    Raises:
        DeviceError: a trace or a profile is being recorded already, or Python cannot wait for the times here:
            then ``async with``.
        ValueError: an activity is none.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.profiler import profile, record_function
        >>> with profile() as p, record_function("double"):
        ...     y = torch.ones(1000) * 2
        >>> "double" in p.key_averages().table()
        True
    """

    def __init__(self, activities: Iterable[ProfilerActivity] | None = None, record_shapes: bool = False):
        chosen = set(ProfilerActivity if activities is None else activities)
        unknown = [a for a in chosen if not isinstance(a, ProfilerActivity)]
        if unknown or not chosen:
            raise ValueError(
                f"activities are {unknown or 'empty'}; give some of ProfilerActivity.CPU and "
                "ProfilerActivity.WEBGPU, or None for both."
            )
        self._record_shapes = record_shapes
        self._recorder: Recorder | None = None
        self._recording = Recording(asked=ProfilerActivity.WEBGPU in chosen)

    def _start(self) -> profile:
        if self._recorder is not None:
            raise DeviceError("device webgpu: a profile records once. Make another one.")
        made = Recorder(self._recording.asked)
        made.start()
        self._recorder, self._recording = made, made.recording
        return self

    def __enter__(self) -> profile:
        return self._start()

    def __exit__(self, *exc) -> None:
        assert self._recorder is not None
        self._recorder.stop()

    async def __aenter__(self) -> profile:
        await stream().open_async()
        return self._start()

    async def __aexit__(self, *exc) -> None:
        assert self._recorder is not None
        await self._recorder.stop_async()

    def __repr__(self) -> str:
        if self._recorder is None:
            return "<profile: nothing was recorded>"
        return str(self.key_averages()) if self._recording.ended else "<profile: recording>"

    def _repr_svg_(self) -> str | None:
        return timeline(self.events()) if self._recording.ended else None

    def key_averages(self, group_by_input_shape: bool = False) -> Averages:
        """The dispatches summed by their ops and kernel, and the named parts; print it, or its ``table()``.

        Args:
            group_by_input_shape: whether other shapes make another row.

        Raises:
            ValueError: shapes were not recorded.
        """
        if group_by_input_shape and not self._record_shapes:
            raise ValueError(
                "group_by_input_shape needs shapes, which were not recorded. Use profile(record_shapes=True)."
            )
        return averages(self._recording, group_by_input_shape, self._record_shapes)

    def events(self) -> list[Event]:
        """Everything that took time, by when it began."""
        return events(self._recording)

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write a file for chrome://tracing or https://ui.perfetto.dev: Python's ops and the named parts, the
        submissions and waits, and the GPU, each on a track."""
        export(self._recording, path)


class record_function:
    """Give a part of the program a name, under which a profile sums it; also a decorator.

    Args:
        name: the name.

    Example:
        >>> from pellucid.profiler import record_function
        >>> @record_function("step")
        ... def step(x):
        ...     return x + 1
    """

    def __init__(self, name: str):
        self.name = name
        self._entered: list[tuple[Span, Any]] = []

    def __enter__(self) -> record_function:
        span = Span(self.name, recorder.now())
        token = recorder.spans.set((*recorder.spans.get(), span))
        self._entered.append((span, token))
        for active in recorder.active:
            active.begin_span(span)
        return self

    def __exit__(self, *exc) -> None:
        span, token = self._entered.pop()
        span.ended = recorder.now()
        recorder.spans.reset(token)

    def __call__(self, function: Callable) -> Callable:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args, **kwargs):
                with record_function(self.name):
                    return await function(*args, **kwargs)

            return awaited

        @functools.wraps(function)
        def named(*args, **kwargs):
            with record_function(self.name):
                return function(*args, **kwargs)

        return named
