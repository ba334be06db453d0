"""Values that come later, in one process: PyTorch's ``torch.futures``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any

from ...errors import ArgumentError, DeviceError

log = logging.getLogger(__name__)


class Future:
    """A value that somebody sets, and functions that are called with the future when it is there.

    Args:
        devices: accepted.

    Source: https://pytorch.org/docs/stable/futures.html

    Example:
        >>> import pellucid as torch
        >>> future = torch.futures.Future()
        >>> later = future.then(lambda done: done.value() + 1)
        >>> future.set_result(1)
        >>> later.wait()
        2
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, *, devices: Any = None):
        self._found: list[tuple[Any, Exception | None]] = []
        self._waiting: list[Callable] = []

    def done(self) -> bool:
        """Whether there is a value, or an exception."""
        return bool(self._found)

    def value(self) -> Any:
        """The value.

        Raises:
            DeviceError: there is none yet, and nobody else could set it while this waits.
            Exception: what `set_exception` was given.
        """
        if not self._found:
            raise DeviceError("Future: nothing set its result, and nobody else runs while this waits.")
        result, error = self._found[0]
        if error is not None:
            raise error
        return result

    wait = value

    def set_result(self, result: Any) -> None:
        """Say the value.

        Raises:
            ArgumentError: there is one.
        """
        self._set(result, None)

    def set_exception(self, result: Exception) -> None:
        """Say what goes wrong instead of giving a value.

        Raises:
            ArgumentError: it is no exception, or there is a value.
        """
        if not isinstance(result, Exception):
            raise ArgumentError(f"set_exception: takes an Exception, not {type(result).__name__}.")
        self._set(None, result)

    def _set(self, result: Any, error: Exception | None) -> None:
        if self._found:
            raise ArgumentError("Future: its result is set already.")
        self._found.append((result, error))
        waiting, self._waiting = self._waiting, []
        for function in waiting:
            self._call(function)

    def _call(self, function: Callable) -> None:
        """Call a function of this future, which is done; what it raises is told and goes no further."""
        try:
            function(self)
        except Exception:
            log.exception("Future: a function that waited for the result raised an error.")

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call a function with this future when it is done; at once if it is.

        What it raises is logged. Whoever sets the result goes on, and so do the functions behind it.
        """
        if self._found:
            self._call(callback)
        else:
            self._waiting.append(callback)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of what a function makes of this one when it is done, which has its exceptions, too."""
        out = Future()

        def follow(done: Future) -> None:
            try:
                result = callback(done)
            except Exception as error:
                text = f"Future: the function given to then raised {type(error).__name__}: {error}"
                problem = RuntimeError(text)
                problem.__cause__ = error
                out.set_exception(problem)
            else:
                out.set_result(result)

        self.add_done_callback(follow)
        return out


def collect_all(futures: Sequence[Future]) -> Future[Sequence[Future]]:
    """The future of several, which is done when all are.

    Args:
        futures: several.
    """
    several, out = list(futures), Future()

    def look(_: Any) -> None:
        if not out.done() and all(f.done() for f in several):
            out.set_result(several)

    look(None)
    for future in several:
        future.add_done_callback(look)
    return out


def wait_all(futures: Sequence[Future]) -> list[Any]:
    """The values of several futures."""
    return [f.wait() for f in futures]
