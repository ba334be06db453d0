"""What programs ask of ``__torch_function__``, and modes that see every call: PyTorch's `torch.overrides`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Self

from ..op.public import EXPORTS
from ..op.schema import OPS, overrides
from .dispatch import (
    asking,
    dispatch,
    find,
    forms,
    get_default_nowrap_functions,
    modes,
    overriding,
    resolve_name,
)
from .tensor import Tensor


class TorchFunctionMode(ContextDecorator):
    """A context whose ``__torch_function__(func, types, args, kwargs)`` is given every call of a function or
    method; within it, calls go on to the mode around this one.

    Source: https://pytorch.org/docs/stable/notes/extending.html#extending-all-torch-api-with-modes
    """

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None):
        raise NotImplementedError("a mode defines __torch_function__.")

    def __enter__(self) -> Self:
        _watch(+1)
        modes.set((*modes.get(), self))
        return self

    def __exit__(self, *exc: Any) -> None:
        modes.set(modes.get()[:-1])
        _watch(-1)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None):
        return func(*args, **(kwargs or {}))


_MADE = ("as_tensor", "asarray", "from_numpy", "frombuffer", "tensor")
_watching = [0]
# What stands elsewhere while a mode sees calls: the names of a place, and what they were.
_before: list[tuple[Any, str, Any]] = []
_NO_PLANS: dict = {}


def _watch(step: int) -> None:
    """Count the modes; at the first, ops lose sight of their plans, and at the last they find them again."""
    _watching[0] += step
    if _watching[0] == 1 and step == 1:
        overrides.active = True
        package = vars(sys.modules["pellucid"])
        functions = [*(o.call for o in OPS.values()), *vars(Tensor).values()]
        scopes = [f.__globals__ for f in functions if "plans" in getattr(f, "__globals__", ())]
        for scope in {id(scope): scope for scope in scopes}.values():
            _before.append((scope.__setitem__, "plans", scope["plans"]))
            scope["plans"] = _NO_PLANS
        for name in _MADE:
            _before.append((package.__setitem__, name, package[name]))
            package[name] = asking(package[name], package[name])
        for name, form in forms().items():
            if name in vars(Tensor):
                _before.append((lambda n, value: setattr(Tensor, n, value), name, vars(Tensor)[name]))
                setattr(Tensor, name, form)
    elif _watching[0] == 0:
        while _before:
            put, name, value = _before.pop()
            put(name, value)


# What programs ask


def has_torch_function(relevant_args: Iterable) -> bool:
    """Whether one of some arguments computes calls in its own way, or a mode sees them."""
    return find(tuple(relevant_args)) is not None


def has_torch_function_unary(obj: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of arguments that are not in a tuple."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable, *args: Any, **kwargs: Any) -> Any:
    """What one of some arguments makes of a call.

    Args:
        public_api: the function that is called.
        relevant_args: who may compute it.
        args, kwargs: of the call.

    Raises:
        ArgumentError: none of them does.
    """
    return dispatch(public_api, args, kwargs, overriding(tuple(relevant_args)))


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """A decorator of functions that dispatch; ``dispatcher`` gives the arguments that may compute a call."""

    def wrapped(function: Callable) -> Callable:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            found = find(tuple(dispatcher(*args, **kwargs)))
            return function(*args, **kwargs) if found is None else dispatch(call, args, kwargs, found)

        return call

    return wrapped


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a tensor, or has a ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that dispatch, by module, and the methods of Tensor."""
    package = sys.modules["pellucid"]
    found: dict[Any, list[Callable]] = {}
    for place, functions in EXPORTS.items():
        at: Any = package
        for part in place.split(".") if place != "torch" else ():
            at = getattr(at, part)
        found[at] = [*functions.values()]
    found[Tensor] = [f for name, f in vars(Tensor).items() if callable(f) and (name[0] != "_")]
    return found


def get_ignored_functions() -> set[Callable]:
    """The functions of the package that do not dispatch: they make tensors, or ask for no tensor."""
    package = sys.modules["pellucid"]
    known = {f for functions in get_overridable_functions().values() for f in functions}
    functions = [f for n, f in vars(package).items() if n[0] != "_" and callable(f)]
    return {f for f in functions if not isinstance(f, type) and f not in known}


def get_testing_overrides() -> dict[Callable, Callable]:
    """For each function that dispatches, one that takes the same arguments and returns -1."""

    def like(function: Callable) -> Callable:
        def override(*args: Any, **kwargs: Any) -> int:
            return -1

        vars(override)["__signature__"] = _signature(function)
        return override

    return {f: like(f) for functions in get_overridable_functions().values() for f in functions}


def _signature(function: Callable) -> Signature:
    try:
        return signature(function)
    except ValueError:  # of what C defines
        return Signature([Parameter("args", Parameter.VAR_POSITIONAL)])


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function is a method of Tensor, or reads one of its attributes."""
    return func in get_overridable_functions()[Tensor] or getattr(func, "__name__", None) == "__get__"


__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip
