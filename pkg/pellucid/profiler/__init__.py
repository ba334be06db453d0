"""Where the time goes: `profile`, as PyTorch's, and `peak`, what the device could do.

Its parts are imported at first use: `lines` and `listeners` serve code that measures nothing.
"""

from typing import TYPE_CHECKING

from ..tensors.absent import refuse

if TYPE_CHECKING:
    from .events import Event
    from .profiling import ProfilerActivity, profile, record_function, supported_activities
    from .roofline import Peak, peak, peak_async
    from .schedules import ProfilerAction, schedule, tensorboard_trace_handler

_LAZY = {
    "Event": "events",
    "Peak": "roofline",
    "ProfilerAction": "schedules",
    "ProfilerActivity": "profiling",
    "peak": "roofline",
    "peak_async": "roofline",
    "profile": "profiling",
    "record_function": "profiling",
    "schedule": "schedules",
    "supported_activities": "profiling",
    "tensorboard_trace_handler": "schedules",
}

__all__ = [
    "Event", "Peak", "ProfilerAction", "ProfilerActivity", "peak", "peak_async", "profile", "record_function",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


def __getattr__(name: str):
    if name not in _LAZY:
        refuse("torch.profiler", name, _LAZY)
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    return value
