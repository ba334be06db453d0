"""What programs tell the compiler and ask of it: functions of ``torch.compiler`` and ``torch._dynamo``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from types import MethodType
from typing import Any

from ...device.stream import stream
from ...errors import ArgumentError, MissingError
from ...nn.modules.module import Module

__all__ = ["disable", "list_backends", "optimize"]

# PyTorch's backends by name, and those that it has for debugging. Here all mean one: calls are replayed.
_BACKENDS = ("cudagraphs", "inductor", "pellucid")
_DEBUGGING = ("aot_eager", "aot_eager_decomp_partition", "eager", "eager_noexcept")


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """Names that `compile` takes as ``backend``; all mean one.

    Args:
        exclude_tags: without "debug" the list has PyTorch's backends for debugging, too.

    Source: https://pytorch.org/docs/stable/generated/torch.compiler.list_backends.html
    """
    return sorted((*_BACKENDS, *(() if "debug" in (exclude_tags or ()) else _DEBUGGING)))


def check_backend(backend: Any) -> None:
    """Refuse a backend that is not known, or that takes a graph.

    Raises:
        ArgumentError: there is no such backend.
        MissingError: it is a function of a graph.
    """
    known = list_backends(())
    if backend is None or (isinstance(backend, str) and backend in known):
        return
    if callable(backend):
        raise MissingError(
            "compile: a backend that is a function gets a graph of torch.fx, and there is none here. Leave "
            "backend out."
        )
    raise ArgumentError(f"compile: there is no backend {backend!r}. There are {', '.join(known)}.")


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark a function whose Python has to run at every call: what calls it is not replayed.

    Args:
        fn: a function, or a module, whose ``forward`` is marked. Without it the result is a decorator.
        recursive: accepted for PyTorch's sake.
        reason: what `Explanation` says.

    Returns:
        What is called like ``fn``.

    Source: https://pytorch.org/docs/stable/generated/torch.compiler.disable.html
    """
    if fn is None:
        return lambda given: disable(given, recursive, reason=reason)
    if isinstance(fn, Module):
        own = getattr(fn.forward, "__func__", None)
        # As a method: copies of the module run their own weights.
        marked = disable(own or fn.forward, reason=reason)
        fn.forward = MethodType(marked, fn) if own else marked
        return fn
    if isinstance(fn, type):
        return fn
    name = getattr(fn, "__qualname__", type(fn).__name__)
    why = f"it calls {name}, which torch.compiler.disable marks" + (f": {reason}" if reason else "")

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (capturing := stream().capturing) is not None:
            capturing.refuse(why)
        return fn(*args, **kwargs)

    return call


def optimize(
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
) -> Callable[[Any], Any]:
    """A decorator: `compile`, as PyTorch called it before.

    Args:
        backend, dynamic, disable: as those of `compile`.
        nopython: its ``fullgraph``.
    """
    from .optimized import compile

    return lambda function: compile(
        function, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable
    )
