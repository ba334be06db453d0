"""When a profile records: PyTorch's `schedule`, and what is done with what it recorded."""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import RangeError


class ProfilerAction(enum.Enum):
    """What a profile does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What `profile` does at each step: it waits, warms up and records, in this order, again and again.

    Args:
        wait: steps of a cycle in which nothing happens.
        warmup: steps behind them; here nothing happens in them either.
        active: steps behind these, which are recorded. After the last one ``on_trace_ready`` is called.
        repeat: how many cycles; 0 for all that the program has.
        skip_first: steps before the first cycle.
        skip_first_wait: whether the first cycle does not wait: 1 or 0.

    Returns:
        A function from a step's number to a `ProfilerAction`.

    Raises:
        RangeError: a number is negative, or nothing would be recorded.

    Source: https://pytorch.org/docs/stable/profiler.html#torch.profiler.schedule

    Example:
        >>> from pellucid.profiler import schedule
        >>> plan = schedule(wait=1, warmup=1, active=2)
        >>> [plan(step).name for step in range(4)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if min(wait, warmup, active, repeat, skip_first) < 0 or active == 0:
        raise RangeError("schedule: numbers of steps are not negative, and active is at least 1.")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, length)
        if (repeat > 0 and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str | Path, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """What writes each trace of a profile into a folder, for ``on_trace_ready``.

    Args:
        dir_name: the folder, which is made.
        worker_name: how files begin; the host's name and the process' number if not given.
        use_gzip: whether files are packed.

    Source: https://pytorch.org/docs/stable/profiler.html#torch.profiler.tensorboard_trace_handler
    """

    def write(profile: Any) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = folder / f"{worker}.{time.time_ns()}.pt.trace.json"
        profile.export_chrome_trace(path)
        if use_gzip:
            import gzip

            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()

    return write


__all__ = ["ProfilerAction", "schedule", "tensorboard_trace_handler"]
