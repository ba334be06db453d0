"""Device profiles: facts about a GPU that WebGPU does not report and that choices of kernels rest on.

A row is found by words of the adapter's names; what no row knows gets the default. One row is all that a new
GPU needs.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from .host import Info


class DeviceProfile(NamedTuple):
    """What a GPU is taken to be.

    Args:
        processors: that run workgroups beside each other. Too high a number costs little: smaller tiles and
            more parts lose less than idle processors.
        has_integer_dots: whether integer dot products are an instruction there; elsewhere they are compiled
            to several.
    """

    processors: int
    has_integer_dots: bool = True


_PROFILES = (
    (("h100", "h200", "hopper", "blackwell"), DeviceProfile(132)),
    (("nvidia",), DeviceProfile(64)),
    (("amd", "radeon"), DeviceProfile(48)),
    (("apple",), DeviceProfile(24, has_integer_dots=False)),
    (("intel",), DeviceProfile(24)),
)
_DEFAULT = DeviceProfile(24)
_ON_A_CPU = DeviceProfile(4, has_integer_dots=False)


def profile(info: Info) -> DeviceProfile:
    """The profile of a device, by what its adapter is called."""
    if info.is_software:
        return _ON_A_CPU
    return _named(f"{info.vendor} {info.architecture} {info.description}".lower())


@cache
def _named(names: str) -> DeviceProfile:
    return next((row for words, row in _PROFILES if any(word in names for word in words)), _DEFAULT)
