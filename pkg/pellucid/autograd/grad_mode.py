"""Whether ops record the graph: `no_grad`, `enable_grad` and `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..errors import GradientError

# What recorders ask at every call, without a function between.
grad_enabled: ContextVar[bool] = ContextVar("grad_enabled", default=True)


class _Inference(int):
    """What says that ops do not record, as False does, and that inference mode is on."""


_INFERENCE: Any = _Inference(0)
# Whether a level of `forward_ad` is open, whose tangents are in the graph.
_is_kept: ContextVar[bool] = ContextVar("is_kept", default=False)


def keep_recording(is_kept: bool, mode: bool) -> None:
    """Switch recording, and whether `no_grad` is refused from now on."""
    _is_kept.set(is_kept)
    grad_enabled.set(mode)


def _check(mode: bool) -> None:
    if not mode and _is_kept.get():
        raise GradientError(
            "no_grad: what is not recorded would lose its tangent. Begin it before forward_ad.dual_level(), "
            "or detach() what needs none."
        )


def _switched(before: Any, mode: bool) -> Any:
    """What a mode is within another one: inference mode lasts where ops do not record."""
    return before if before is _INFERENCE and not mode else mode


def is_grad_enabled() -> bool:
    """Whether ops record the graph now."""
    return bool(grad_enabled.get())


class set_grad_enabled:
    """Switch recording on or off; as a function, a context manager or a decorator.

    Args:
        mode: whether ops record.
    """

    def __init__(self, mode: bool):
        self._mode = mode
        before = grad_enabled.get()
        self._before = [before]
        _check(mode)
        grad_enabled.set(_switched(before, mode))

    def __enter__(self):
        if not self._before:
            before = grad_enabled.get()
            self._before.append(before)
            _check(self._mode)
            grad_enabled.set(_switched(before, self._mode))

    def __exit__(self, *exc):
        grad_enabled.set(self._before.pop())

    def __call__(self, function):
        if self._before:  # made for the decoration only
            self.__exit__()
        return _within(function, self._mode, _check)


def under(mode: bool, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """What a function returns that runs in a mode.

    The mode ends with it wherever Ctrl-C comes. Not so that of a ``with``, here as in PyTorch: where its
    ``__exit__`` begins Python looks for Ctrl-C, and what is raised there leaves the mode.
    """
    before = grad_enabled.get()
    try:
        grad_enabled.set(_switched(before, mode))
        return function(*args, **kwargs)
    finally:
        grad_enabled.set(before)


def _within(function: Callable, mode: bool, check: Callable[[bool], Any]) -> Callable:
    """A function whose body runs in a mode, also where it pauses: whoever waits for it keeps their own."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def paused(*args, **kwargs):
            check(mode)
            made = function(*args, **kwargs)
            resume, value = made.send, None
            try:
                while True:
                    given = under(mode, resume, value)
                    try:
                        resume, value = made.send, (yield given)
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        resume, value = made.throw, error
            except StopIteration as end:
                return end.value
            finally:
                under(mode, made.close)

        return paused
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args, **kwargs):
            check(mode)
            before = grad_enabled.get()
            try:
                grad_enabled.set(_switched(before, mode))
                return await function(*args, **kwargs)
            finally:
                grad_enabled.set(before)

        return awaited

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        check(mode)
        return under(mode, function, *args, **kwargs)

    return wrapped


class _Mode:
    _mode: bool
    _check = staticmethod(_check)

    def __init__(self):
        self._before: list[bool] = []

    def __enter__(self):
        self._check(self._mode)
        before = grad_enabled.get()
        self._before.append(before)
        grad_enabled.set(_switched(before, self._mode))

    def __exit__(self, *exc):
        grad_enabled.set(self._before.pop())

    def __new__(cls, function=None) -> Any:
        self = object.__new__(cls)
        if function is None:
            return self
        self.__init__()
        return self(function)

    def __call__(self, function):
        return _within(function, self._mode, self._check)


class no_grad(_Mode):
    """Ops within do not record; also a decorator.

    Example:
        >>> import pellucid as torch
        >>> x = torch.ones(2, requires_grad=True, device="cpu")
        >>> with torch.no_grad():
        ...     (x * 2).requires_grad
        False
    """

    _mode = False


class unrecorded(no_grad):
    """`no_grad` for what loses no tangent by its nature, as running statistics and first values."""

    _check = staticmethod(bool)


class enable_grad(_Mode):
    """Ops within record again, inside `no_grad`; also a decorator."""

    _mode = True


class inference_mode(no_grad):
    """`no_grad`, and `is_inference_mode_enabled`; with ``mode=False`` `enable_grad`. Tensors that are made
    within are like all others: `Tensor.is_inference` is never true. `enable_grad` within ends it, and ops
    record.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html
    """

    def __new__(cls, mode=True) -> Any:
        self = object.__new__(cls)
        self._mode = True if mode is False else _INFERENCE
        if isinstance(mode, bool):
            return self
        self.__init__()
        return self(mode)

    def __init__(self, mode=True):
        super().__init__()


class set_multithreading_enabled:
    """Accepted and without effect, as a function or a context: walks backward run in one thread.

    Args:
        mode: whether PyTorch would use several.

    Source: https://pytorch.org/docs/stable/generated/torch.autograd.grad_mode.set_multithreading_enabled.html
    """

    def __init__(self, mode: bool):
        self.mode = mode

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None

    def clone(self) -> set_multithreading_enabled:
        """Another one of the same mode."""
        return type(self)(self.mode)


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on, in which ops do not record."""
    return grad_enabled.get() is _INFERENCE


__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
    "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip
