"""Several listeners to the ops: plans call one, the first entry of `Stream.after_op`."""

from __future__ import annotations

from collections.abc import Callable

from ..device.stream import stream

_listeners: list[Callable[[str], None]] = []


def _tell(op: str) -> None:
    for listener in tuple(_listeners):
        listener(op)


def _change(listeners: list[Callable[[str], None]]) -> None:
    told, after_op, whole = [_tell] if listeners else [], stream().after_op, slice(None)
    # One step, in which there is no call: an interrupt comes before all of it or after.
    _listeners[whole] = listeners
    after_op[whole] = told


def listen(listener: Callable[[str], None], first: bool = False) -> None:
    """Call a function with the name of every op on webgpu, after its records were made.

    Args:
        listener: the function; twice is as good as once.
        first: before those that listen already.
    """
    with stream().lock:
        if listener not in _listeners:
            _change([listener, *_listeners] if first else [*_listeners, listener])


def ignore(listener: Callable[[str], None]) -> None:
    """End what `listen` began; nothing if it did not."""
    with stream().lock:
        if listener in _listeners:
            _change([other for other in _listeners if other != listener])


def is_listening(listener: Callable[[str], None]) -> bool:
    """Whether a function is called after every op."""
    return listener in _listeners
