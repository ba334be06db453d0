"""A module of PyTorch that has no counterpart here, as a row of the table of `rooms`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ContextDecorator, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ...errors import MissingError
from ...tensors.absent import message, refuse

__all__ = ["Room", "kind"]


@dataclass(frozen=True)
class Room:
    """A module of PyTorch.

    Args:
        at: modules of the package that have its names, by their paths.
        answers: functions that only answer, and their answer.
        values: names that are no functions.
        idle: functions for which there is nothing to do; they return None.
        same: decorators that return the function as it is, also when they take arguments.
        contexts: context managers that change nothing.
        kinds: classes for annotations and isinstance; making one is refused.
        refused: functions that are refused when they are called.
    """

    at: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    idle: str = ""
    same: str = ""
    contexts: str = ""
    kinds: str = ""
    refused: str = ""

    def names(self, place: str) -> dict[str, Any]:
        """What the module has of its own, as objects."""
        made: dict[str, Any] = dict(self.values)
        rows: tuple[tuple[Iterable[str], Callable[[str], Any]], ...] = (
            (self.answers, lambda name: _always(self.answers[name])),
            (self.idle.split(), lambda name: _always(None)),
            (self.same.split(), lambda name: _as_it_is),
            (self.contexts.split(), lambda name: _context),
            (self.kinds.split(), lambda name: kind(f"{place}.{name}")),
            (self.refused.split(), lambda name: _refused(f"{place}.{name}")),
        )
        for names, make in rows:
            made.update({name: make(name) for name in names})
        return made


def _always(answer: Any) -> Callable:
    return lambda *args, **kwargs: answer


def _as_it_is(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
    return fn if callable(fn) else _as_it_is


class _Nothing(nullcontext, ContextDecorator):
    """A context that changes nothing, also as a decorator."""


def _context(*args: Any, **kwargs: Any) -> Any:
    return _Nothing()


def _refused(name: str) -> Callable[..., NoReturn]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise MissingError(message(name))

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    return call


class _Kind(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise MissingError(message(f"{cls.__module__}.{cls.__name__}"))

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __getattr__(cls, name: str) -> NoReturn:
        refuse(f"{cls.__module__}.{cls.__name__}", name, ())


def kind(name: str) -> type:
    """A class for annotations and isinstance, whose making is refused.

    Args:
        name: PyTorch's, such as "torch.fx.Proxy".
    """
    module, _, last = name.rpartition(".")
    return _Kind(last, (), {"__module__": module})
