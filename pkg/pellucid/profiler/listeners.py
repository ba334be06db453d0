"""Several listeners to the ops: plans call one, the first entry of `Stream.after_op`."""

from __future__ import annotations

from collections.abc import Callable

from ..device.stream import stream

_listeners: list[Callable[[str], None]] = []


def _tell(op: str) -> None:
    for listener in tuple(_listeners):
        listener(op)


def listen(listener: Callable[[str], None], first: bool = False) -> None:
    """Call a function with the name of every op on webgpu, after its records were made.

    Args:
        listener: the function; twice is as good as once.
        first: before those that listen already.
    """
    if listener not in _listeners:
        _listeners.insert(0 if first else len(_listeners), listener)
    stream().after_op[:] = [_tell]


def ignore(listener: Callable[[str], None]) -> None:
    """End what `listen` began; nothing if it did not."""
    if listener in _listeners:
        _listeners.remove(listener)
    if not _listeners:
        stream().after_op[:] = []


def is_listening(listener: Callable[[str], None]) -> bool:
    """Whether a function is called after every op."""
    return listener in _listeners
