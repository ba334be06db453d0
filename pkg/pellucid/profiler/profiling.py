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
from .schedules import ProfilerAction
from .timeline import timeline

# Steps that are recorded.
_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class ProfilerActivity(enum.Enum):
    """What a profile measures: Python's time (``CPU``), the GPU's (``WEBGPU``).

    Programs for PyTorch call the second ``CUDA`` or ``XPU``.
    """

    CPU = "cpu"
    WEBGPU = "webgpu"
    CUDA = XPU = WEBGPU


def supported_activities() -> set[ProfilerActivity]:
    """What a profile can measure."""
    return set(ProfilerActivity)


class profile:
    """Measure what Python and the GPU spend on each op, for the length of a ``with``.

    The GPU's time puts every dispatch into a pass of its own, which costs about 17 us more for each on a GPU;
    without timestamps the device tells the time of whole windows. Ops are those on webgpu. The time of an op
    in Python goes from the end of the op before: what the program does between two ops counts for the second.

    Args:
        activities: of `ProfilerActivity`; None for all.
        schedule: from the number of a step, which `step` counts, to what is done in it, such as
            `schedule` makes; None records all.
        on_trace_ready: called with the profile when a recording ends.
        record_shapes: whether rows can be told apart by the shapes of their tensors.
        profile_memory, with_stack, with_flops, with_modules, acc_events: accepted for PyTorch's sake: bytes
            and products of matrices are always counted, and events name the lines that they come from.

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

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        *,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ):
        chosen = set(ProfilerActivity if activities is None else activities)
        unknown = [a for a in chosen if not isinstance(a, ProfilerActivity)]
        if unknown or not chosen:
            raise ValueError(
                f"activities are {unknown or 'empty'}; give some of ProfilerActivity.CPU and "
                "ProfilerActivity.WEBGPU, or None for both."
            )
        self.step_num = 0
        self.on_trace_ready = on_trace_ready
        self._schedule = schedule
        self._action = ProfilerAction.NONE
        self._record_shapes = record_shapes
        self._recorder: Recorder | None = None
        self._recording = Recording(asked=ProfilerActivity.WEBGPU in chosen)

    def _begin(self, action: ProfilerAction) -> None:
        """Do in a step what the schedule says, where the one before it recorded nothing."""
        self._action = action
        if action in _RECORDING:
            made = Recorder(self._recording.asked)
            made.start()
            self._recorder, self._recording = made, made.recording

    def _start(self) -> profile:
        if self._recorder is not None:
            raise DeviceError("device webgpu: a profile records once. Make another one.")
        self._begin(ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num))
        return self

    def start(self) -> None:
        """Begin, as a ``with`` does where it begins."""
        self._start()

    def stop(self) -> None:
        """End, as a ``with`` does where it ends."""
        if self._action in _RECORDING and self._recorder is not None:
            self._recorder.stop()
            self._ended()
        self._action = ProfilerAction.NONE

    def step(self) -> None:
        """Say that the next step of the program begins, by which a `schedule` goes."""
        before = self._action
        self.step_num += 1
        if self._schedule is None:
            return
        action = self._schedule(self.step_num)
        if before is ProfilerAction.RECORD and action in _RECORDING:
            self._action = action
            return
        self.stop()
        self._begin(action)

    def _ended(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        return self._start()

    def __exit__(self, *exc) -> None:
        self.stop()

    async def __aenter__(self) -> profile:
        await stream().open_async()
        return self._start()

    async def __aexit__(self, *exc) -> None:
        if self._action in _RECORDING and self._recorder is not None:
            await self._recorder.stop_async()
            self._ended()
        self._action = ProfilerAction.NONE

    def __repr__(self) -> str:
        if self._recorder is None:
            return "<profile: nothing was recorded>"
        return str(self.key_averages()) if self._recording.ended else "<profile: recording>"

    def _repr_svg_(self) -> str | None:
        return timeline(self.events()) if self._recording.ended else None

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> Averages:
        """The dispatches summed by their ops and kernel, and the named parts; print it, or its ``table()``.

        Args:
            group_by_input_shape: whether other shapes make another row.
            group_by_stack_n, group_by_overload_name: accepted: lines of Python and overloads make no rows.

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

    def export_chrome_trace(self, path: str | Path, use_python_export: bool = False) -> None:
        """Write a file for chrome://tracing or https://ui.perfetto.dev: Python's ops and the named parts, the
        submissions and waits, and the GPU, each on a track. ``use_python_export`` is accepted."""
        export(self._recording, path)


class record_function:
    """Give a part of the program a name, under which a profile sums it; also a decorator.

    Args:
        name: the name.
        args: accepted for PyTorch's sake.

    Example:
        >>> from pellucid.profiler import record_function
        >>> @record_function("step")
        ... def step(x):
        ...     return x + 1
    """

    def __init__(self, name: str, args: str | None = None):
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
