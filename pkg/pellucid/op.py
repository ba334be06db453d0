"""The op table: `@op` turns a declaration into the one call path from Python to a kernel.

A declaration is a function whose signature and docstring are the schema; its body is never run. From it come
the fast call path (a plan per metas and static arguments), the cpu path through the numpy reference, the
in-place form (`inplace`) and the graph node. See docs/design.md, "Ops".
"""

from __future__ import annotations

import functools
import inspect
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import dtypes as dt
from .autograd.grad_mode import is_grad_enabled
from .autograd.recorder import recorder
from .call import Argument, Call
from .device import device as Device
from .device import get_default_device
from .device.stream import stream
from .elementwise import Elementwise
from .errors import DeviceError, DTypeError, GradientError, PellucidError, ShapeError
from .meta import Meta, meta
from .plan import PLAN_LIMIT, cpu_plan, meta_plan, view_plan, webgpu_plan
from .rules import promote
from .specialise import NUMBERS, call_path

OPS: dict[str, Op] = {}
# By the number that kernels write into the status buffer.
BY_INDEX: list[Op] = []

composite = "composite"  # grad=composite: differentiate the definition


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
    public: str = ""
    check: Callable | None = None
    # Plans of the in-place forms.
    forms: list[dict] = field(default_factory=list)

    # The slow path: everything that is decided once per plan.

    def plan(self, values: tuple) -> Callable:
        """Plan a call: check arguments, infer outputs, prepare what runs."""
        try:
            call = self.understand(values)
            self.infer(call)
            if self.view is not None:
                return view_plan(self, call)
            if call.device.type == "cpu":
                return cpu_plan(self, call)
            if call.device.type == "meta":
                return meta_plan(self, call)
            return webgpu_plan(self, call)
        except PellucidError as error:
            if str(error).startswith(f"{self.public}: "):
                raise
            raise type(error)(f"{self.public}: {error}") from None

    def understand(self, values: tuple) -> Call:
        """The call that the values make: metas by argument, all on one device."""
        args: dict[str, Any] = {}
        device: Device | None = None
        first = ""
        for a, value in zip(self.arguments, values, strict=True):
            metas: list[Meta] = []
            if a.role == "tensors":
                metas = metas_of(self.public, a.name, value)
                args[a.name] = metas
            elif a.role in ("tensor", "optional", "operand"):
                if value is None and a.role == "optional":
                    args[a.name] = None
                elif a.role == "operand" and (type(value) in NUMBERS or value is a.default is None):
                    args[a.name] = type(value)
                else:
                    metas = [_meta_of(self, a, value)]
                    args[a.name] = metas[0]
                    if metas[0].dtype.is_quantized:
                        # What takes one takes it as a list of row chunks.
                        raise DTypeError(
                            f"'{a.name}' is a weight of {metas[0].dtype}, which takes part in matmul, linear "
                            "and embedding only. Call .dequantize() first."
                        )
            elif a.role == "number":
                if not isinstance(value, (int, float)):
                    raise TypeError(
                        f"{self.public}(): argument '{a.name}' must be a number, not {_describe(value)}"
                    )
                args[a.name] = type(value)
            else:
                args[a.name] = value
            for m in metas:
                if device is None:
                    device, first = m.device, a.name
                elif m.device is not device:
                    raise DeviceError(
                        f"{self.public}: '{first}' is on {device} and '{a.name}' is on {m.device}. Move one "
                        f"of them, for example with .to('{device}')."
                    )
        if device is None:
            wanted = args.get("device")
            device = Device(wanted) if wanted is not None else get_default_device()
            if not any(a.name == "device" for a in self.arguments):
                raise TypeError(f"{self.public}(): at least one argument must be a tensor")
        return Call(self, args, device)

    def infer(self, call: Call) -> None:
        """Find the metas of the outputs by the rules."""
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
        key = self.key(values)
        plan = self.plans.get(key)
        if plan is None:
            plan = self.plans[key] = self.plan(values)
        return plan

    def key(self, values: tuple) -> Any:
        """The same key that the specialised function builds."""
        keys: list[Any] = []
        for a, value in zip(self.arguments, values, strict=True):
            if a.role in ("tensor", "optional"):
                keys.append(None if value is None and a.role == "optional" else _meta_of(self, a, value))
            elif a.role == "operand":
                keys.append(
                    type(value) if type(value) in NUMBERS or value is None else _meta_of(self, a, value)
                )
            elif a.role == "tensors":
                keys.append(
                    tuple(_meta_of(self, a, v) for v in value) if isinstance(value, (tuple, list)) else value
                )
            elif a.role == "number":
                keys.append(type(value))
            elif a.role == "static":
                keys.append((value, type(value)) if isinstance(a.default, (int, float)) else value)
        if not any(a.role in ("tensor", "optional", "operand", "tensors") for a in self.arguments):
            keys.append(get_default_device())
        return keys[0] if len(keys) == 1 else tuple(keys)

    def any_node(self, values: tuple) -> bool:
        """Whether a tensor among the values has a place in the graph."""
        for a, value in zip(self.arguments, values, strict=True):
            if a.role == "tensors":
                if any(t._node is not None for t in value):
                    return True
            elif a.role in ("tensor", "optional", "operand") and getattr(value, "_node", None) is not None:
                return True
        return False

    def operator(self) -> Callable:
        """The function as an operator of Python calls it: keyword arguments have their defaults."""
        made = call_path(self, _slow, None, operator=True)
        made.__doc__ = self.call.__doc__
        return made

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """Values of all arguments, in order."""
        bound = _signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[a.name] for a in self.arguments)


@functools.cache
def _signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


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
        raise _wrong(o.public, a.name, kind, value) from None


def _wrong(where: str, name: str, kind: str, value: Any) -> TypeError:
    return TypeError(f"{where}(): argument '{name}' must be {kind}, not {_describe(value)}")


def metas_of(where: str, name: str, values: Any) -> list[Meta]:
    """The metas of an argument that is several tensors.

    Args:
        where: the op, as users know it.
        name: the argument.
        values: what was given for it.

    Raises:
        TypeError: it is no tuple or list, or holds something that is no tensor.
        ShapeError: it holds nothing.
    """
    if not isinstance(values, (tuple, list)):
        raise _wrong(where, name, "a non-empty tuple or list of tensors", values)
    if not values:
        raise ShapeError(f"{where}: '{name}' is empty. Give at least one tensor.")
    for value in values:
        if not hasattr(value, "_meta"):
            raise _wrong(where, name, "Tensor", value)
    return [value._meta for value in values]


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
    public: str | None = None,
    mutates: str | tuple[str, ...] | None = None,
    check: Callable | None = None,
    out: bool = False,
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
        public: the name that users know it by, where that is another: errors and graph nodes say it.
        dynamic: integer arguments that are parameters of the launch instead of part of the plan's key.
        check: function of the arguments that refuses values which are no part of the plan's key; runs at
            every call.
        out: results can be written into a tensor given as ``out=``; those of elementwise ops always can.

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
            result=result, mutated=mutated, public=public or name, check=check,
        )  # fmt: skip
        if name in OPS:
            raise TypeError(f"op {name} is declared twice")
        OPS[name] = o
        BY_INDEX.append(o)
        stream().sites.append(o.public)
        o.record = recorder(o)
        o.call = call_path(o, _slow, _into if out or _takes_out(o) else None)
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
    key = o.key(values)
    try:
        plan = o.plans.get(key)
    except TypeError as error:
        raise TypeError(f"{o.public}(): {error}") from None
    if plan is None:
        plan = o.plan(values)
        if len(o.plans) >= PLAN_LIMIT:
            o.plans.clear()
        o.plans[key] = plan
    if o.check is not None:
        o.check(*values)
    if o.grad is not None and o.any_node(values):
        return o.record(plan, *values)
    return plan(*values)


def _into(o: Op, out: Any, values: tuple) -> Any:
    """``out=``: the result written over a tensor of its shape, or made the memory of one without elements.

    Raises:
        TypeError: it is no tensor.
        GradientError: something requires grad.
        ShapeError, DTypeError: the result does not fit.
    """
    if not hasattr(out, "_meta"):
        raise _wrong(o.public, "out", "Tensor", out)
    result = _slow(o, values)
    if is_grad_enabled() and (out._node is not None or o.any_node(values)):
        raise GradientError(
            f"{o.public}: out= records no gradient. Use it under pellucid.no_grad(), or assign the result."
        )
    have, wanted = result._meta, out._meta
    if have.device is not wanted.device:
        raise DeviceError(
            f"{o.public}: the result is on {have.device} and out on {wanted.device}. Give a tensor of the "
            "same device."
        )
    if not dt.can_cast(have.dtype, wanted.dtype):
        raise DTypeError(
            f"{o.public}: a result of {have.dtype} does not fit into out of {wanted.dtype}. Convert it after."
        )
    if have.shape == wanted.shape:
        return out.copy_(result)
    if wanted.numel:
        raise ShapeError(
            f"{o.public}: the result has shape {tuple(have.shape)} and out {tuple(wanted.shape)}. "
            "Give a tensor of that shape, or one without elements."
        )
    out.data = result.to(wanted.dtype)
    return out


def forget_plans() -> None:
    """Drop every plan: launches of a closed device mean nothing to the next one."""
    for o in BY_INDEX:
        for plans in (o.plans, *o.forms):
            plans.clear()
