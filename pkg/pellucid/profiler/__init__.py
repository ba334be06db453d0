"""Where the time goes: `profile`, as PyTorch's, and `peak`, what the device could do.

Its parts are imported at first use: `lines` and `listeners` serve code that measures nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .events import Event
    from .profiling import ProfilerActivity, profile, record_function
    from .roofline import Peak, peak, peak_async

_LAZY = {
    "Event": "events",
    "Peak": "roofline",
    "ProfilerActivity": "profiling",
    "peak": "roofline",
    "peak_async": "roofline",
    "profile": "profiling",
    "record_function": "profiling",
}

__all__ = ["Event", "Peak", "ProfilerActivity", "peak", "peak_async", "profile", "record_function"]


def __getattr__(name: str):
    if name not in _LAZY:
        raise AttributeError(f"module 'pellucid.profiler' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    return value
