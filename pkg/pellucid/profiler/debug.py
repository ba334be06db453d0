"""Seeing what happens: ops that wait for their results (`blocking`), a record of every dispatch (`trace`)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..device.host import STATUS_SLOT
from ..device.stream import stream
from ..errors import PellucidError
from .lines import caller
from .listeners import ignore, is_listening, listen

if TYPE_CHECKING:
    from .trace import Trace


def _settle(op: str) -> None:
    """Wait for an op and raise what went wrong, with the caller's line."""
    s = stream()
    s.flush()
    host = s.open()
    try:
        _, status = host.read(host.begin_read(STATUS_SLOT, 0, 0))
        s.after_read(status)
    except PellucidError as error:
        raise type(error)(f"{error} (op {op}, called from {caller()})") from None


def set_blocking(on: bool) -> None:
    """Let every op wait for its result: slow, but errors name the op and the Python line that caused them.

    Args:
        on: whether ops wait.

    Example:
        >>> import pellucid as torch
        >>> torch.debug.set_blocking(True)
        >>> torch.debug.set_blocking(False)
    """
    if on:
        listen(_settle)
    else:
        ignore(_settle)


@contextmanager
def blocking():
    """`set_blocking` for the length of a ``with``."""
    before = is_listening(_settle)
    set_blocking(True)
    try:
        yield
    finally:
        set_blocking(before)


def trace(time: bool = False) -> Trace:
    """Record every dispatch for the length of a ``with``: which ops and lines it came from, and its kernel.

    Printed, a trace is a table. ``t[k]`` is a dispatch: ``.ops``, ``.lines``, ``.kernel``, ``.text`` (the
    WGSL), ``.grid``, ``.bytes_read``, ``.bytes_written``, ``.flops`` (of products of matrices), ``.seconds``;
    ``t.windows`` are the submissions. Where launches were fused the dispatch has the ops and lines of all of
    them; what a replay submits anew has the line that asked for it. In the backward pass the line is that of
    the forward op, if it ran within the trace.

    Args:
        time: also measure what each dispatch takes on the GPU. This puts each into a pass of its own, which
            costs about 17 us more for each on a GPU. Without timestamps the device tells the time of whole
            windows.

    Returns:
        The trace, for ``with`` or ``async with``.

    Raises:
        DeviceError: a trace or a profile is being recorded already, or Python cannot wait for the times here.

    Example:
        >>> import pellucid as torch
        >>> x = torch.ones(1000)
        >>> with torch.debug.trace() as t:
        ...     y = x * 2
        >>> t[0].ops, t[0].bytes_read, t[0].bytes_written
        (('mul',), 4000, 4000)
    """
    from .trace import Trace

    return Trace(time)
