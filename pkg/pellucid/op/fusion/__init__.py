"""Fusion at the flush: launches of a window that hand values on become one kernel; see docs/fusion.md."""

from __future__ import annotations

import os
from contextlib import contextmanager

from ...device.stream import stream
from .window import enable


def set_fusion(on: bool) -> None:
    """Let launches that hand values on run as one kernel, or each on its own.

    It is on unless the variable PELLUCID_FUSION is 0; with "always" windows are fused when they first appear.
    Results agree within the tolerance of the ops.

    Args:
        on: whether launches are fused from the next window on.

    Example:
        >>> import pellucid as torch
        >>> torch.webgpu.set_fusion(False)
        >>> torch.webgpu.set_fusion(True)
    """
    if on:
        stream().flush()
        enable(True)
    else:  # what is recorded already runs as it is, too
        enable(False)
        stream().flush()


@contextmanager
def fusion(on: bool):
    """`set_fusion` for the length of a ``with``."""
    before = is_fusion_enabled()
    set_fusion(on)
    try:
        yield
    finally:
        set_fusion(before)


def is_fusion_enabled() -> bool:
    """Whether launches are fused."""
    return stream().rewrite is not None


_chosen = os.environ.get("PELLUCID_FUSION") or "1"
if _chosen not in ("0", "1", "always"):
    raise ValueError(f"PELLUCID_FUSION is {_chosen!r}; it must be 0, 1 or always, or not set.")
enable(_chosen != "0", at_once=_chosen == "always")
