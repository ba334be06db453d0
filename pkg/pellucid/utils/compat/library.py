"""Operators that a program declares by name and calls as ``torch.ops.<namespace>.<name>``: PyTorch's
``torch.library``. For an op with a kernel of its own, see `pellucid.op` in docs/extending.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import signature
from typing import Any

from ... import autograd
from ...errors import ArgumentError, MissingError
from ...ops.aten import from_aten

_OPS: dict[str, CustomOpDef] = {}


class CustomOpDef:
    """An operator by name: a Python function of tensors, with the derivative that is registered for it.

    Args:
        name: "<namespace>::<name>".
        function: computes it.
    """

    def __init__(self, name: str, function: Callable):
        self._name, self._function = name, function
        self._derivative: tuple[Callable, Callable] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._derivative is None:
            return self._function(*args, **kwargs)
        given = signature(self._function).bind(*args, **kwargs)
        given.apply_defaults()
        return self._recorded.apply(*given.args)

    @cached_property
    def _recorded(self) -> Any:
        assert self._derivative is not None
        graph: Any = autograd
        function, (backward, setup_context) = self._function, self._derivative
        parts = {
            "forward": staticmethod(lambda *inputs: function(*inputs)),
            "setup_context": staticmethod(setup_context),
            "backward": staticmethod(backward),
        }
        return type(self._name.rpartition(":")[2], (graph.Function,), parts)

    default = property(lambda self: self)

    def register_fake(self, fn: Callable) -> Callable:
        """Accepted: shapes follow from the function itself here."""
        return fn

    def register_kernel(self, device_types: Any, func: Callable | None = None) -> Any:
        """Accepted for other devices, whose functions are not called here."""
        return func if func is not None else (lambda function: function)

    def register_autograd(self, backward: Callable, *, setup_context: Callable | None = None) -> None:
        """Give it a derivative, as of `pellucid.autograd.Function`.

        Args:
            backward: function of the context and the gradients of the results.
            setup_context: keeps what backward needs.
        """
        self._derivative = backward, setup_context or (lambda ctx, inputs, output: None)
        vars(self).pop("_recorded", None)


def custom_op(name: str, fn: Callable | None = None, /, **declared: Any) -> Any:
    """Declare an operator by a Python function; also a decorator.

    Args:
        name: "<namespace>::<name>".
        fn: computes it.
        declared: what PyTorch's compiler asks for: ``mutates_args``, ``schema``, ``device_types``.

    Returns:
        The operator, which is called as the function.

    Source: https://pytorch.org/docs/stable/library.html#torch.library.custom_op
    """
    if fn is None:
        return lambda function: custom_op(name, function, **declared)
    _OPS[name] = CustomOpDef(name, fn)
    return _OPS[name]


def _found(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else _OPS.get(op)
    if found is None:
        raise ArgumentError(f"torch.library: no operator {op!r} is declared. Declare it by custom_op first.")
    return found


def register_fake(op: Any, func: Callable | None = None, /, **more: Any) -> Any:
    """Accepted: shapes follow from the function itself here."""
    return func if func is not None else (lambda function: function)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """Give an operator a derivative; see `CustomOpDef.register_autograd`."""
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, **more: Any) -> Any:
    """Accepted for other devices, whose functions are not called here."""
    return _found(op).register_kernel(device_types, func)


class _Overloads:
    """``torch.ops.aten.<name>``: its overloads, in terms of Pellucid's ops."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, overload: str) -> Callable:
        return from_aten(f"{self._name}.{overload}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.default(*args, **kwargs)


class Namespace:
    """``torch.ops.<namespace>``.

    Args:
        name: of the namespace.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if self._name == "aten":
            return _Overloads(f"aten.{name}")
        found = _OPS.get(f"{self._name}::{name}")
        if found is None:
            raise AttributeError(f"torch.ops.{self._name} has no operator {name!r}: custom_op declares one.")
        return found


class Library:
    """A namespace of operators that are declared in several steps.

    Args:
        ns: of the operators.
        kind: "DEF", "IMPL" or "FRAGMENT".

    Raises:
        MissingError: always; use `custom_op`.
    """

    def __init__(self, ns: str, kind: str, *more: Any):
        raise MissingError("torch.library.Library: PyTorch has this, Pellucid does not yet. Use custom_op.")
