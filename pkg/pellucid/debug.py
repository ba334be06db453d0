"""The debug mode: every op waits for its result, so that an error is raised at the line that caused it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

from .device.stream import STATUS_SLOT, stream
from .errors import PellucidError

_PACKAGE = str(Path(__file__).parent)


def _settle(op: str) -> None:
    """Wait for an op and raise what went wrong, with the caller's line."""
    s = stream()
    s.flush()
    host = s.open()
    try:
        _, status = host.read(host.begin_read(STATUS_SLOT, 0, 0))
        s.after_read(status)
    except PellucidError as error:
        raise type(error)(f"{error} (op {op}, called from {_caller()})") from None


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) or file == "<string>"


def _caller() -> str:
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def set_blocking(on: bool) -> None:
    """Let every op wait for its result: slow, but errors name the op and the Python line that caused them.

    Args:
        on: whether ops wait.

    Example:
        >>> import pellucid as torch
        >>> torch.debug.set_blocking(True)
        >>> torch.debug.set_blocking(False)
    """
    stream().after_op[:] = [_settle] if on else []


@contextmanager
def blocking():
    """`set_blocking` for the length of a ``with``."""
    before = list(stream().after_op)
    set_blocking(True)
    try:
        yield
    finally:
        stream().after_op[:] = before
