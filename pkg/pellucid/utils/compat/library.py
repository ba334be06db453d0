"""Operators that a program declares by name and calls as ``torch.ops.<namespace>.<name>``: PyTorch's
``torch.library``. For an op with a kernel of its own, see `pellucid.op` in docs/extending.md."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature, signature
from typing import Any

from ... import autograd
from ...errors import ArgumentError, MissingError
from ...ops.aten import from_aten
from ...tensors.tensor import Tensor

_OPS: dict[str, CustomOpDef] = {}
# What PyTorch's dispatcher calls functions that serve every device.
_EVERYWHERE = ("", "default", "CompositeImplicitAutograd", "CompositeExplicitAutograd")


class CustomOpDef:
    """An operator by name: Python functions of tensors by device, with the derivative registered for it.

    Args:
        name: "<namespace>::<name>".
        function: computes it; None: `register_kernel` says it later.
        given: its signature; that of the function if None.
        device_types: for which the function is; for all if None.
    """

    def __init__(
        self,
        name: str,
        function: Callable | None,
        given: Signature | None = None,
        device_types: Any = None,
    ):
        self._name = name
        self._kernels: dict[str | None, Callable] = {}
        self._given = given or (signature(function) if function else None)
        self._derivative: tuple[Callable, Callable] | None = None
        if function is not None:
            self.register_kernel(device_types, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._given is None:
            return self._run(*args, **kwargs)
        bound = self._given.bind(*args, **kwargs)
        bound.apply_defaults()
        if self._derivative is None:
            return self._run(*bound.args, **bound.kwargs)
        return self._recorded(bound.kwargs).apply(*bound.args)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Compute by the function for the device of the tensors, else that for all, else that for the cpu."""
        where = next((a.device.type for a in args if isinstance(a, Tensor)), "cpu")
        for known in (where, None, "cpu"):
            if known in self._kernels:
                return self._kernels[known](*args, **kwargs)
        raise MissingError(
            f"{self._name}: no function computes it on {where}. Give one by torch.library.register_kernel."
        )

    def _recorded(self, named: dict[str, Any]) -> Any:
        """The operator with its derivative, for such arguments by keyword alone."""
        assert self._derivative is not None
        graph: Any = autograd
        run, (backward, setup_context) = self._run, self._derivative
        # As PyTorch hands them on: by keyword where the schema has them.
        more = {"keyword_only_inputs": named} if named else {}
        parts = {
            "forward": staticmethod(lambda *inputs: run(*inputs, **named)),
            "setup_context": staticmethod(
                lambda ctx, inputs, output: setup_context(ctx=ctx, inputs=inputs, output=output, **more)
            ),
            "backward": staticmethod(backward),
        }
        return type(self._name.rpartition(":")[2], (graph.Function,), parts)

    default = property(lambda self: self)

    def register_fake(self, fn: Callable) -> Callable:
        """Accepted: shapes follow from the function itself here."""
        return fn

    def register_kernel(self, device_types: Any, func: Callable | None = None) -> Any:
        """Give it a function for a type of device, for several, or for all; also a decorator.

        Args:
            device_types: such as "cpu"; None for all.
            func: computes it.
        """
        if func is None:
            return lambda function: self.register_kernel(device_types, function)
        several = [device_types] if device_types is None or isinstance(device_types, str) else device_types
        for device in several:
            if str(device).startswith("Autograd"):
                raise MissingError(
                    f"{self._name}: no dispatcher calls a function for {device} here. Give the derivative by "
                    "torch.library.register_autograd."
                )
            self._kernels[None if device in _EVERYWHERE else device and device.lower()] = func
        return func

    def register_autograd(self, backward: Callable, *, setup_context: Callable | None = None) -> None:
        """Give it a derivative, as of `pellucid.autograd.Function`.

        Args:
            backward: function of the context and the gradients of the results.
            setup_context: keeps what backward needs.
        """
        self._derivative = backward, setup_context or (lambda **given: None)


def custom_op(name: str, fn: Callable | None = None, /, *, device_types: Any = None, **declared: Any) -> Any:
    """Declare an operator by a Python function; also a decorator.

    Args:
        name: "<namespace>::<name>".
        fn: computes it.
        device_types: for which it does; all if None.
        declared: what PyTorch's compiler asks for: ``mutates_args``, ``schema``, ``tags``.

    Returns:
        The operator, which is called as the function.

    Source: https://pytorch.org/docs/stable/library.html#torch.library.custom_op
    """
    if fn is None:
        return lambda function: custom_op(name, function, device_types=device_types, **declared)
    _OPS[name] = CustomOpDef(name, fn, None, device_types)
    return _OPS[name]


_ARGUMENT = re.compile(r"^[\w.]+(?:\([^)]*\))?(?:\[\d*\])?\??\s+(\w+)(?:\s*=\s*(.+))?$")
_VALUES = {"None": None, "True": True, "False": False}
# What is between commas of a schema: texts and brackets as a whole, and anything else.
_PART = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|\([^)]*\)|[^,"'\[(])+""")


def _value(text: str) -> Any:
    """A default of a schema."""
    if text in _VALUES:
        return _VALUES[text]
    if text[:1] in "\"'[":
        return literal_eval(text)
    return float(text) if re.search(r"[.e]", text) else int(text)


def _read(schema: str) -> Signature:
    """The signature that a schema such as ``(Tensor x, int k=1) -> Tensor`` says."""
    inner = schema[schema.index("(") + 1 : schema.rindex("->")].strip().removesuffix(")")
    kind, found = Parameter.POSITIONAL_OR_KEYWORD, []
    for part in _PART.findall(inner):
        if part.strip() == "*":
            kind = Parameter.KEYWORD_ONLY
        elif part.strip():
            said = _ARGUMENT.match(part.strip())
            if said is None:
                raise ArgumentError(f"torch.library: {schema!r} has no argument in {part.strip()!r}.")
            default = Parameter.empty if said[2] is None else _value(said[2].strip())
            found.append(Parameter(said[1], kind, default=default))
    return Signature(found)


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declare an operator by its schema; `impl` or `register_kernel` says how it is computed.

    Args:
        qualname: "<namespace>::<name>"; the name alone where ``lib`` is given.
        schema: such as "(Tensor x, int k=1) -> Tensor".
        lib: a `Library`, whose namespace counts.
        tags: accepted.

    Raises:
        ArgumentError: there is an operator of the name, also with another overload, of which each has one.

    Source: https://pytorch.org/docs/stable/library.html#torch.library.define

    Example:
        >>> import pellucid as torch
        >>> torch.library.define("guide::twice", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("guide::twice", "default")
        ... def twice(x):
        ...     return x * 2
        >>> torch.ops.guide.twice(torch.ones(1, device="cpu")).tolist()
        [2.0]
    """
    name = qualname if lib is None else f"{lib.ns}::{qualname}"
    key = name.partition(".")[0]
    if key in _OPS:
        raise ArgumentError(
            f"torch.library.define: {key} is declared already, and an operator has one overload here. Choose "
            "another name."
        )
    _OPS[key] = CustomOpDef(name, None, _read(schema))


def namespace(name: str) -> Namespace | None:
    """``torch.ops.<name>``, if there are operators in it."""
    return Namespace(name) if any(known.startswith(f"{name}::") for known in _OPS) else None


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Give an operator a function for some types of devices; also a decorator.

    Args:
        qualname: "<namespace>::<name>"; or a `Library`, and the name in the place of ``types``.
        types: such as "cpu" or "default"; what serves other devices is accepted and not called.
        func: computes it; behind a `Library` the key of PyTorch's dispatcher.
        lib: a `Library`, whose namespace counts.

    Source: https://pytorch.org/docs/stable/library.html#torch.library.impl
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""
        return lambda function: library.impl(name, function, key) or function
    return _found(qualname if lib is None else f"{lib.ns}::{qualname}").register_kernel(types, func)


def _found(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else _OPS.get(str(op).partition(".")[0])
    if found is None:
        raise ArgumentError(f"torch.library: no operator {op!r} is declared. Declare it by custom_op first.")
    return found


def register_fake(op: Any, func: Callable | None = None, /, **more: Any) -> Any:
    """Accepted: shapes follow from the function itself here."""
    return func if func is not None else (lambda function: function)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """Give an operator a derivative; see `CustomOpDef.register_autograd`."""
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Give an operator a function for some types of devices; see `CustomOpDef.register_kernel`."""
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
        dispatch_key: of the functions that `impl` gives without one.

    Raises:
        ArgumentError: it is of another kind.

    Source: https://pytorch.org/docs/stable/library.html#torch.library.Library
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ArgumentError(f"torch.library.Library: kind must be DEF, IMPL or FRAGMENT, not {kind!r}.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Iterable[Any] = ()) -> str:
        """Declare an operator, such as ``twice(Tensor x) -> Tensor``; returns its name."""
        name = schema[: schema.index("(")].strip()
        define(name, schema, lib=self)
        return name

    def impl(self, op_name: Any, fn: Callable, dispatch_key: str = "", **more: Any) -> None:
        """Give an operator a function.

        Args:
            op_name: its name, or the operator.
            fn: computes it.
            dispatch_key: of PyTorch's dispatcher, such as "CPU"; what serves other devices is not called.
            more: accepted.
        """
        op = op_name if isinstance(op_name, CustomOpDef) else f"{self.ns}::{op_name.rpartition('::')[2]}"
        _found(op).register_kernel(dispatch_key or self.dispatch_key, fn)
