"""The op table: `@op` turns a declaration into the one call path from Python to a kernel.

A declaration is a function whose signature and docstring are the schema; its body is never run. From it come
the fast call path (a plan per
metas and static arguments), the cpu path through the numpy reference, the in-place form and the graph node.
See docs/design.md, "Ops".
"""

from __future__ import annotations

import functools
import inspect
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import autograd, inplace
from . import dtypes as dt
from .device import device as Device
from .device import get_default_device
from .device.stream import stream
from .dtypes import DType, result_type
from .elementwise import Elementwise, elementwise
from .errors import DeviceError, DTypeError, GradientError, PellucidError, ShapeError
from .meta import Meta, meta
from .plan import cpu_plan, meta_plan, view_plan, webgpu_plan
from .shape import Size, broadcast_shapes
from .specialise import NUMBERS, call_path, in_place_path

OPS: dict[str, Op] = {}
# By the number that kernels write into the status buffer.
BY_INDEX: list[Op] = []

composite = "composite"  # grad=composite: differentiate the definition


@dataclass(frozen=True)
class Argument:
    """One parameter of a declaration and the role that its annotation gives it."""

    name: str
    role: str  # tensor, optional, operand, tensors, number, dynamic, static
    default: Any
    keyword: bool


class Call:
    """One call on the slow path: metas instead of tensors. Rules and kernels read it.

    ``call["x"]`` is the meta of a tensor argument, the type of a number, a list of metas, or the value of a
    static argument.
    """

    def __init__(self, op: Op, args: dict[str, Any], device: Device):
        self.op = op
        self.args = args
        self.device = device
        self.outputs: list[Meta] = []
        self.compute: DType = dt.float32
        self.temporaries: dict[str, Meta] = {}

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def tensors(self) -> list[tuple[str, Meta]]:
        """Every tensor argument by the name that launches bind; those of a list as ``name[k]``."""
        found: list[tuple[str, Meta]] = []
        for a in self.op.arguments:
            value = self.args[a.name]
            if a.role == "tensors":
                found += [(f"{a.name}[{k}]", m) for k, m in enumerate(value)]
            elif isinstance(value, Meta):
                found.append((a.name, value))
        return found

    def operands(self) -> list[tuple[str, Meta | type]]:
        """Tensors and numbers that take part in the computation, in order."""
        return [
            (a.name, self.args[a.name])
            for a in self.op.arguments
            if a.role in ("tensor", "operand", "number", "optional")
            and self.args[a.name] not in (None, type(None))
        ]

    def temporary(self, name: str, shape, dtype: DType = dt.float32) -> Meta:
        """Memory that lives during this call only; launches bind it by name."""
        self.temporaries[name] = m = meta(shape, dtype, self.device)
        return m

    @property
    def out(self) -> Meta:
        return self.outputs[0]


# dtype rules: each returns (dtype of the outputs, dtype of the computation)


def _promoted(call: Call) -> DType:
    own = call.op.kernel.own or {} if isinstance(call.op.kernel, Elementwise) else {}
    dimensioned, zero_dim, numbers = [], [], []
    for a in call.op.arguments:
        value = call.args[a.name]
        if a.name in own or a.role in ("number", "static", "dynamic"):
            continue
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, Meta):
                (dimensioned if v.rank else zero_dim).append(v.dtype)
            elif isinstance(v, type) and v is not type(None):
                numbers.append(v)
    return result_type(dimensioned, zero_dim, numbers)


def promote(call: Call) -> tuple[DType, DType]:
    """The common type of the operands."""
    d = _promoted(call)
    return d, d


def floating(call: Call) -> tuple[DType, DType]:
    """The common type, integers and bools becoming the default float."""
    d = _promoted(call)
    d = d if d.is_floating_point or d.is_complex else dt.get_default_dtype()
    return d, d


def boolean(call: Call) -> tuple[DType, DType]:
    """bool, computed in the common type."""
    return dt.bool_, _promoted(call)


def logical(call: Call) -> tuple[DType, DType]:
    """bool, computed in bool: any value other than zero is true."""
    return dt.bool_, dt.bool_


def same(call: Call) -> tuple[DType, DType]:
    """The type of the first tensor."""
    d = call.tensors()[0][1].dtype
    return d, d


def float_only(call: Call) -> tuple[DType, DType]:
    """The common type, which must be floating point."""
    d = _promoted(call)
    if not d.is_floating_point:
        raise DTypeError(f"takes floating-point tensors, not {d}. Convert with .float().")
    return d, d


# shape rules


def broadcast(call: Call) -> Size:
    """The shape that all tensor operands broadcast to."""
    return broadcast_shapes(*[m.shape for _, m in call.tensors()])


def as_input(call: Call) -> Size:
    """The shape of the first tensor."""
    return call.tensors()[0][1].shape


@dataclass
class Op:
    """A declaration, read. ``OPS`` holds all of them by name."""

    name: str
    function: Callable
    arguments: tuple[Argument, ...]
    dtype: Callable
    shape: Callable | None
    kernel: Any
    reference: Callable | None
    view: Callable | None
    composite: Callable | None
    grad: Any
    outputs: tuple[str, ...]
    strided: frozenset[str]
    mutates: str | None
    index: int
    plans: dict = field(default_factory=dict)
    call: Callable = field(default=lambda: None, repr=False)
    record: Callable = field(default=lambda: None, repr=False)
    saved: frozenset[str] = frozenset()
    result: type | None = None
    # All arguments that the kernel writes into; ``mutates`` is the first of them.
    mutated: tuple[str, ...] = ()
    check: Callable | None = None

    # The slow path: everything that is decided once per plan.

    def plan(self, values: tuple) -> Callable:
        """Plan a call: check arguments, infer outputs, prepare what runs."""
        try:
            call = self._understand(values)
            self._infer(call)
            if self.view is not None:
                return view_plan(self, call)
            if call.device.type == "cpu":
                return cpu_plan(self, call)
            if call.device.type == "meta":
                return meta_plan(self, call)
            return webgpu_plan(self, call)
        except PellucidError as error:
            if str(error).startswith(f"{self.name}: "):
                raise
            raise type(error)(f"{self.name}: {error}") from None

    def _understand(self, values: tuple) -> Call:
        args: dict[str, Any] = {}
        device: Device | None = None
        first = ""
        for a, value in zip(self.arguments, values, strict=True):
            metas: list[Meta] = []
            if a.role == "tensors":
                if not isinstance(value, (tuple, list)) or not value:
                    raise TypeError(
                        f"{self.name}(): argument '{a.name}' must be a non-empty tuple or list of tensors, "
                        f"not {_describe(value)}"
                    )
                metas = [_meta_of(self, a, v) for v in value]
                args[a.name] = metas
            elif a.role in ("tensor", "optional", "operand"):
                if value is None and a.role == "optional":
                    args[a.name] = None
                elif a.role == "operand" and (type(value) in NUMBERS or value is a.default is None):
                    args[a.name] = type(value)
                else:
                    metas = [_meta_of(self, a, value)]
                    args[a.name] = metas[0]
            elif a.role == "number":
                if not isinstance(value, (int, float)):
                    raise TypeError(
                        f"{self.name}(): argument '{a.name}' must be a number, not {_describe(value)}"
                    )
                args[a.name] = type(value)
            else:
                args[a.name] = value
            for m in metas:
                if device is None:
                    device, first = m.device, a.name
                elif m.device is not device:
                    raise DeviceError(
                        f"{self.name}: '{first}' is on {device} and '{a.name}' is on {m.device}. Move one "
                        f"of them, for example with .to('{device}')."
                    )
        if device is None:
            wanted = args.get("device")
            device = Device(wanted) if wanted is not None else get_default_device()
            if not any(a.name == "device" for a in self.arguments):
                raise TypeError(f"{self.name}(): at least one argument must be a tensor")
        return Call(self, args, device)

    def _infer(self, call: Call) -> None:
        if self.view is not None or self.mutates is not None:
            return
        dtypes, call.compute = self.dtype(call)
        shapes = self.shape(call)  # type: ignore[misc]
        if len(self.outputs) == 1:
            dtypes, shapes = (dtypes,), (shapes,)
        call.outputs = [meta(s, d, call.device) for s, d in zip(shapes, dtypes, strict=True)]

    def plan_of(self, *values) -> Callable:
        """The plan of a call without gradients, for code that runs ops outside the graph."""
        values = (*values, *[a.default for a in self.arguments[len(values) :]])
        key = _key(self, values)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self.plan(values)
        return plan

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """Values of all arguments, in order."""
        bound = _signature(self).bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[a.name] for a in self.arguments)


@functools.cache
def _cached_signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


def _signature(o: Op) -> inspect.Signature:
    return _cached_signature(o.function)


def _describe(value: Any) -> str:
    return (
        f"{type(value).__name__} {value!r}"
        if isinstance(value, (int, float, str, type(None)))
        else type(value).__name__
    )


def _meta_of(o: Op, a: Argument, value: Any) -> Meta:
    try:
        return value._meta
    except AttributeError:
        kind = "Tensor or number" if a.role == "operand" else "Tensor"
        raise TypeError(f"{o.name}(): argument '{a.name}' must be {kind}, not {_describe(value)}") from None


_ROLES = {
    "Tensor": "tensor",
    "Tensor | None": "optional",
    "Tensor | float": "operand",
    "Tensor | float | None": "operand",
    "list[Tensor]": "tensors",
    "float": "number",
}


def op(
    *,
    dtype: Callable = promote,
    shape: Callable | None = None,
    kernel: Any = None,
    reference: Callable | None = None,
    view: Callable | None = None,
    composite: Callable | None = None,
    grad: Any,
    outputs: tuple[str, ...] = ("out",),
    strided: tuple[str, ...] = (),
    dynamic: tuple[str, ...] = (),
    mutates: str | tuple[str, ...] | None = None,
    check: Callable | None = None,
) -> Callable[[Callable], Any]:
    """Declare an op.

    Args:
        dtype: rule for the dtypes (`promote`, `floating`, `boolean`, `same`, ... or a function of the
            `Call` that returns outputs' and computation's).
        shape: rule for the shapes (`broadcast`, `as_input` or a function of the `Call`).
        kernel: `elementwise`, or a function from the `Call` to one or more `Launch`es (the webgpu device).
        reference: numpy function with the same arguments (the cpu device).
        view: function from the `Call` to (shape, strides, added offset) for ops that only look
            differently at the same storage.
        composite: the definition in terms of other ops, where ``grad`` says `composite`.
        grad: input name -> formula; a formula's arguments are what is saved (``g`` the incoming gradient,
            ``out`` or output names the results,
            else the op's arguments, ``<argument>_meta`` only its metadata). `composite`, or None for what has
            no derivative.
        outputs: names of the results; several become a named tuple.
        strided: inputs that the kernel reads with any strides; others are made contiguous first.
        mutates: the argument, or the arguments, that the kernel writes into; the op then returns the
            first of them and has no output
            of its own. The kernel sees the first with its strides, the others must be contiguous.
        dynamic: integer arguments that are parameters of the launch instead of part of the plan's key.
        check: function of the arguments that refuses values which are no part of the plan's key; runs at
            every call.

    Raises:
        TypeError: the declaration is not total.
    """

    def declare(function: Callable) -> Callable:
        name = function.__name__
        if (view is None) == (kernel is None) or (kernel is not None and reference is None):
            raise TypeError(f"op {name}: declare either view=, or kernel= together with reference=")
        if kernel is not None and shape is None and mutates is None:
            raise TypeError(f"op {name}: a kernel needs a shape rule")
        if grad == "composite" and composite is None:
            raise TypeError(
                f"op {name}: grad=composite needs composite=, the definition in terms of other ops"
            )
        if not function.__doc__:
            raise TypeError(f"op {name}: a declaration needs a docstring")
        arguments = []
        for p in inspect.signature(function).parameters.values():
            role = (
                "dynamic"
                if p.name in dynamic
                else _ROLES.get(str(p.annotation).replace("Optional", ""), "static")
            )
            arguments.append(Argument(p.name, role, p.default, p.kind is p.KEYWORD_ONLY))
        formulas: Any = grad
        saved: set[str] = set()
        if isinstance(grad, dict):
            formulas = {k: (f, tuple(inspect.signature(f).parameters)) for k, f in grad.items()}
            known = (
                {a.name for a in arguments}
                | {f"{a.name}_meta" for a in arguments}
                | set(outputs)
                | {"g", "needs"}
            )
            for k, (_, wanted) in formulas.items():
                if k not in {a.name for a in arguments} or not set(wanted) <= known:
                    raise TypeError(
                        f"op {name}: gradient of {k!r} with arguments {wanted} names something that the op "
                        "does not have"
                    )
                saved |= set(wanted) - {"g", "needs"}
        result = namedtuple(name, outputs) if len(outputs) > 1 else None
        mutated = () if mutates is None else (mutates,) if isinstance(mutates, str) else tuple(mutates)
        o = Op(
            name, function, tuple(arguments), dtype, shape, kernel, reference, view, composite, formulas,
            outputs, frozenset(strided), mutated[0] if mutated else None, len(BY_INDEX),
            saved=frozenset(saved),
            result=result, mutated=mutated, check=check,
        )  # fmt: skip
        if name in OPS:
            raise TypeError(f"op {name} is declared twice")
        OPS[name] = o
        BY_INDEX.append(o)
        stream().sites.append(name)
        o.record = autograd.recorder(o)
        o.call = call_path(o, _slow, _into if _takes_out(o) else None)
        functools.update_wrapper(o.call, function)
        o.call.op = o  # type: ignore[attr-defined]
        return o.call

    return declare


def _takes_out(o: Op) -> bool:
    """Whether results can be written into a given tensor: elementwise ops of tensors."""
    tensors = any(a.role in ("tensor", "optional", "operand", "tensors") for a in o.arguments)
    return isinstance(o.kernel, Elementwise) and tensors and not o.mutates


def _freeze(value: Any) -> Any:
    return tuple(_freeze(v) for v in value) if isinstance(value, list) else value


def _slow(o: Op, values: tuple) -> Any:
    """A call that found no plan: make arguments regular, plan, keep the plan, run."""
    regular = []
    for a, value in zip(o.arguments, values, strict=True):
        if a.role == "static":
            value = _freeze(value)
        elif (
            a.role in ("operand", "number")
            and isinstance(value, (np.generic, np.ndarray))
            and value.ndim == 0
        ):
            value = value.item()
        regular.append(value)
    values = tuple(regular)
    key = _key(o, values)
    try:
        plan = o.plans.get(key)
    except TypeError as error:
        raise TypeError(f"{o.name}(): {error}") from None
    if plan is None:
        plan = o.plan(values)
        if len(o.plans) >= _PLAN_LIMIT:
            o.plans.clear()
        o.plans[key] = plan
    if o.check is not None:
        o.check(*values)
    if o.grad is not None and _any_node(o, values):
        return o.record(plan, *values)
    return plan(*values)


def _into(o: Op, out: Any, values: tuple) -> Any:
    """``out=``: the result written over a tensor of its shape.

    Raises:
        GradientError: something requires grad.
        ShapeError, DTypeError: the result does not fit.
    """
    if autograd.is_grad_enabled() and (out._node is not None or _any_node(o, values)):
        raise GradientError(
            f"{o.name}: out= records no gradient. Use it under pellucid.no_grad(), or assign the result."
        )
    result = _slow(o, values)
    have, wanted = result._meta, out._meta
    if have.shape != wanted.shape:
        raise ShapeError(
            f"{o.name}: the result has shape {tuple(have.shape)} and out {tuple(wanted.shape)}. "
            "Give a tensor of that shape."
        )
    if not dt.can_cast(have.dtype, wanted.dtype):
        raise DTypeError(
            f"{o.name}: a result of {have.dtype} does not fit into out of {wanted.dtype}. Convert it after."
        )
    return out.copy_(result)


# Plans are small, but a program that never meets a shape twice must not keep them all.
_PLAN_LIMIT = 1 << 14


def _key(o: Op, values: tuple) -> Any:
    """The same key that the specialised function builds."""
    keys: list[Any] = []
    for a, value in zip(o.arguments, values, strict=True):
        if a.role in ("tensor", "optional"):
            keys.append(None if value is None and a.role == "optional" else _meta_of(o, a, value))
        elif a.role == "operand":
            keys.append(type(value) if type(value) in NUMBERS or value is None else _meta_of(o, a, value))
        elif a.role == "tensors":
            keys.append(
                tuple(_meta_of(o, a, v) for v in value) if isinstance(value, (tuple, list)) else value
            )
        elif a.role == "number":
            keys.append(type(value))
        elif a.role == "static":
            keys.append((value, type(value)) if isinstance(a.default, (int, float)) else value)
    if not any(a.role in ("tensor", "optional", "operand", "tensors") for a in o.arguments):
        keys.append(get_default_device())
    return keys[0] if len(keys) == 1 else tuple(keys)


def _any_node(o: Op, values: tuple) -> bool:
    for a, value in zip(o.arguments, values, strict=True):
        if a.role == "tensors":
            if any(t._node is not None for t in value):
                return True
        elif a.role in ("tensor", "optional", "operand") and getattr(value, "_node", None) is not None:
            return True
    return False


def in_place(o: Op) -> Callable:
    """The in-place form of an op: the result is written over its first argument, whose version moves on.

    Raises:
        GradientError: a leaf that requires grad, or a view of one.
        ShapeError, DTypeError: the result does not fit into the tensor.
    """
    plans: dict = {}
    first = o.arguments[0].name

    def slow(values: tuple):
        self = values[0]
        if autograd.is_grad_enabled():
            inplace.prepare(f"{o.name}_", self)
        aliased, regular = [], [self]
        for a, value in zip(o.arguments[1:], values[1:], strict=True):
            if getattr(value, "_storage", None) is self._storage and a.role in (
                "tensor",
                "operand",
                "optional",
            ):
                if value._meta is self._meta and value._offset == self._offset:
                    aliased.append(a.name)
                else:
                    value = value.clone()
            elif isinstance(value, list):
                value = tuple(value)
            elif isinstance(value, np.generic):
                value = value.item()
            regular.append(value)
        key = _key(o, tuple(regular))
        plan = plans.get((key, *aliased))
        if plan is None:
            plan = _plan_in_place(o, tuple(regular), frozenset({first, *aliased}))
            plans[key, *aliased] = plan
            if not aliased:
                quick[key] = plan
        if o.check is not None:
            o.check(*regular)
        wants = autograd.is_grad_enabled() and o.grad is not None and _any_node(o, values)
        graph = autograd.prepare(o, tuple(regular)) if wants else None
        if graph is not None:
            inplace.keep_original(graph, self, (first, *aliased))
        plan(*regular)
        self._storage.version += 1
        if graph is not None:
            inplace.rebase(graph, self, first)
        return self

    form, quick = in_place_path(o, slow)
    form.__qualname__ = f"Tensor.{o.name}_"
    form.__doc__ = f"In-place form of `{o.name}`: writes the result into this tensor and returns it."
    form.plans = plans  # type: ignore[attr-defined]
    _in_place_forms.extend((plans, quick))
    return form


_in_place_forms: list[dict] = []


def _plan_in_place(o: Op, values: tuple, aliased: frozenset[str]) -> Callable:
    try:
        call = o._understand(values)
        o._infer(call)
        target = call.args[o.arguments[0].name]
        if call.out.shape != target.shape:
            raise ShapeError(
                f"the result has shape {tuple(call.out.shape)}, the tensor that it is written into "
                f"{tuple(target.shape)}. Use the form without underscore."
            )
        if not dt.can_cast(call.out.dtype, target.dtype):
            raise DTypeError(
                f"a result of {call.out.dtype} does not fit into a tensor of {target.dtype}. Use the form "
                "without underscore."
            )
        if 0 in [s for s, n in zip(target.strides, target.shape, strict=True) if n > 1]:
            raise ShapeError(
                "an expanded tensor has elements that share memory and cannot be written in place. Call "
                ".clone() first."
            )
        if call.device.type == "cpu":
            return cpu_plan(o, call, written=o.arguments[0].name)
        if call.device.type == "meta":
            return meta_plan(o, call, written=o.arguments[0].name)
        return webgpu_plan(o, call, written=o.arguments[0].name, aliased=aliased)
    except PellucidError as error:
        raise type(error)(f"{o.name}_: {str(error).removeprefix(f'{o.name}: ')}") from None


def forget_plans() -> None:
    """Drop every plan: launches of a closed device mean nothing to the next one."""
    for o in BY_INDEX:
        o.plans.clear()
    for plans in _in_place_forms:
        plans.clear()


__all__ = [
    "OPS",
    "Call",
    "Op",
    "as_input",
    "boolean",
    "broadcast",
    "composite",
    "elementwise",
    "float_only",
    "floating",
    "forget_plans",
    "in_place",
    "logical",
    "op",
    "promote",
    "same",
]
