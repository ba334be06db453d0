"""Which variant of a kernel suits the device.

Most kernels come in one form. Where a workgroup shares data, there are two: "shared", with workgroup memory
and barriers, for GPUs; and "direct", without, for adapters that run on the CPU: there a barrier switches
between all invocations of a workgroup, and costs more than reading the data again.
"""

import os

from .device.stream import stream

VARIANTS = ("direct", "shared")


def is_direct() -> bool:
    """Whether ops take their direct kernels: on software adapters, or as the variable PELLUCID_KERNELS says.

    Asked when an op is planned; plans that exist stay.

    Raises:
        ValueError: the variable names no variant.
    """
    chosen = os.environ.get("PELLUCID_KERNELS")
    if not chosen:
        return stream().open().info.is_software
    if chosen not in VARIANTS:
        raise ValueError(f"PELLUCID_KERNELS is {chosen!r}; it must be one of {VARIANTS}, or not set.")
    return chosen == "direct"


def row_lanes(length: int, usual: int = 256) -> int:
    """Lanes that share a row of ``length`` elements, in kernels of one workgroup a row.

    Four on a software adapter: they run as one vector, so that nothing switches at a barrier. Longer rows
    keep the usual number, for short sums.
    """
    return 4 if length <= 4096 and is_direct() else usual
