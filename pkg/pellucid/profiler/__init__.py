"""Where the time goes: `profile`, as PyTorch's, and `peak`, what the device could do."""

from .events import Event
from .peak import Peak, peak, peak_async
from .profile import ProfilerActivity, profile, record_function

__all__ = ["Event", "Peak", "ProfilerActivity", "peak", "peak_async", "profile", "record_function"]
