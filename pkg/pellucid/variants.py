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
