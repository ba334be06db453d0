"""The op table: `@op` turns a declaration into the one call path from Python to a kernel.

A declaration is a function whose signature and docstring are the schema; its body is never run. From it come
the fast call path (a plan per metas and static arguments), the cpu path through the numpy reference, the
in-place form (`inplace`) and the graph node. See docs/design.md, "Ops".
"""

from __future__ import annotations

import functools
import inspect
import re
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..autograd.grad_mode import is_grad_enabled
from ..autograd.recorder import recorder
from ..device import device as Device
from ..device import get_default_device
from ..device.stream import stream
from ..errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    GradientError,
    PellucidError,
    ShapeError,
)
from ..tensors import dtypes as dt
from ..tensors.meta import Meta, meta
from ..tensors.shape import index
from .arguments import NUMBERS, number, plain, reader, wrong
from .call import Call
from .call_path import call_path
from .elementwise import Elementwise
from .plan import cpu_plan, meta_plan, run_followed, view_plan, webgpu_plan
from .plan_cache import keep_plan
from .public import name_overloads, publish
from .rules import promote
from .schema import OPS, Argument, Schema
from .symbols import SYMBOLS, moved, plain_of, settled

# By the number that kernels write into the status buffer.
BY_INDEX: list[Op] = []

composite = "composite"  # grad=composite: differentiate the definition


class Op(Schema):
    """A declaration, read, and how its calls are planned. ``OPS`` holds all of them by name."""

    # The slow path: everything that is decided once per plan.

    def plan(self, values: tuple) -> Callable:
        """Plan a call: check arguments, infer outputs, prepare what runs."""
        try:
            call = self.understand(values)
            self.infer(call)
            if self.view is not None:
                return view_plan(self, call)
            if call.device.type == "cpu":
                plan = cpu_plan(self, call)
            elif call.device.type == "meta":
                plan = meta_plan(self, call)
            else:
                plan = webgpu_plan(self, call)
            return self.guarded(call, plan)
        except PellucidError as error:
            raise named(self.public, error) from None

    def guarded(self, call: Call, plan: Callable) -> Callable:
        """The plan behind a look at the numbers that must fit the dtype of the computation. On webgpu,
        float32 parameters and the 64 bits of integers need none: the plan looks when it makes their words."""
        d, on_cpu = call.compute, call.device.type == "cpu"
        numbers = [
            (k, a, self.must_fit(a, d))
            for k, a in enumerate(self.arguments)
            if a.role in ("operand", "number") and call.args[a.name] in NUMBERS
        ]
        if not on_cpu:
            narrow = d.is_integer or d in dt.LARGEST_HALF
            numbers = [place for place in numbers if narrow and place[2]]
        if not numbers:
            return plan

        def look(values: tuple) -> None:
            for k, a, must_fit in numbers:
                if must_fit and not dt.holds(d, values[k]):
                    raise self.refuse(a.name, values[k], d)
                if on_cpu:
                    self.within_64_bits(a.name, values[k])

        def run(*values):
            look(values)
            return plan(*values)

        vars(run).update(vars(plan), look=look)
        return run

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
                raise ArgumentError("at least one argument must be a tensor")
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
            plan = self.plan(values)
            keep_plan(self.plans, key, plan)
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
            elif a.role in ("number", "dynamic"):
                keys.append(type(value))
            elif a.role == "static":
                keys += [value, type(value)] if a.typed else [value]
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
        made = call_path(self, call_slowly, None, operator=True)
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


def _meta_of(o: Op, a: Argument, value: Any) -> Meta:
    try:
        return value._meta
    except AttributeError:
        raise wrong(a.name, "Tensor or number" if a.role == "operand" else "Tensor", value) from None


def metas_of(where: str, name: str, values: Any) -> list[Meta]:
    """The metas of an argument that is several tensors.

    Args:
        where: the op, as users know it.
        name: the argument.
        values: what was given for it.

    Raises:
        ArgumentError: it is no tuple or list, or holds something that is no tensor.
        ShapeError: it holds nothing.
    """
    if not isinstance(values, (tuple, list)):
        raise named(where, wrong(name, "a non-empty tuple or list of tensors", values))
    if not values:
        raise ShapeError(f"{where}: '{name}' is empty. Give at least one tensor.")
    for value in values:
        if not hasattr(value, "_meta"):
            raise named(where, wrong(name, "Tensor", value))
    return [value._meta for value in values]


_ROLES = {
    "Tensor": "tensor",
    "Tensor | None": "optional",
    "Tensor | float": "operand",
    "Tensor | float | None": "operand",
    "list[Tensor]": "tensors",
    "float": "number",
}


def written(annotation: Any) -> str:
    """An annotation as a file with ``from __future__ import annotations`` has it."""
    if isinstance(annotation, str):
        return annotation
    return re.sub(r"(?:\w+\.)+(\w+)", r"\1", inspect.formatannotation(annotation))


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
    follow: Callable | None = None,
    prepare: Callable | None = None,
    exact: tuple[str, ...] = (),
    fits: tuple[str, ...] = (),
    out: bool = False,
    exports: str | tuple[str, ...] | None = "torch",
    method: bool = False,
    aliases: tuple[str, ...] = (),
    in_place: bool | tuple[str, ...] = False,
    aten: str | tuple[str, ...] | None = None,
    ours: str = "",
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
        public: the name that users know it by, where that is another: errors and graph nodes say it. Such
            an op is exported nowhere.
        dynamic: integer arguments that are parameters of the launch instead of part of the plan's key.
        check: function of the arguments that refuses values which are no part of the plan's key; runs at
            every call.
        follow: of views: function of the arguments that gives them without symbols (`symbols`), where an
            offset follows these; without it they are settled.
        prepare: function of the arguments that calls without a plan go through first: the result in terms of
            other declarations, or of this one with other arguments; None for what the declaration itself
            takes. Which of the two it is must follow from the plan's key.
        exact: numbers that must fit where the computation is in integers or float32; others wrap, or become
            infinite.
        fits: numbers that must fit where it is in integers or halves.
        out: results can be written into a tensor given as ``out=``; those of elementwise ops always can.
        exports, method, aliases, in_place: where it is public; see `publish`.
        aten, ours: ATen's operators that it computes, or why there are none; see `name_overloads`. An op with
            another public name has those of that name.

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
            annotation = written(p.annotation)
            role = "dynamic" if p.name in dynamic else _ROLES.get(annotation, "static")
            read = {"static": reader(annotation), "dynamic": index, "number": number, "operand": plain}.get(
                role
            )
            typed = role == "static" and bool({"int", "float", "bool"} & set(annotation.split(" | ")))
            arguments.append(Argument(p.name, role, p.default, p.kind is p.KEYWORD_ONLY, read, typed))
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
            result=result, mutated=mutated, public=public or name, check=check, follow=follow,
            prepare=prepare, exact=exact,
            fits=fits,
        )  # fmt: skip
        if name in OPS:
            raise TypeError(f"op {name} is declared twice")
        OPS[name] = o
        BY_INDEX.append(o)
        stream().sites.append(o.public)
        o.record = recorder(o)
        o.call = call_path(o, call_slowly, _into if out or _takes_out(o) else None)
        functools.update_wrapper(o.call, function)
        o.call.op = o  # type: ignore[attr-defined]
        publish(o.call, None if public else exports, method, aliases, in_place)
        if aten or ours or (not public and (exports or method)):
            name_overloads(o.call, aten, ours, aliases)
        return o.call

    return declare


def _takes_out(o: Op) -> bool:
    """Whether results can be written into a given tensor: elementwise ops of tensors."""
    tensors = any(a.role in ("tensor", "optional", "operand", "tensors") for a in o.arguments)
    return isinstance(o.kernel, Elementwise) and tensors and not o.mutates


def regular(o: Op, values: tuple) -> tuple:
    """The values of a call with every argument that is no tensor made regular.

    Raises:
        ArgumentError, RangeError: one of them is not what its annotation says.
    """
    found = []
    for a, value in zip(o.arguments, values, strict=True):
        # Readers settle symbols; launches, and views that say how, may follow them.
        if type(value) in SYMBOLS and (a.role != "static" or o.follow is not None):
            pass
        elif a.read is not None:
            value = a.read(value, a.name)
        elif a.role == "static":
            value = settled(tuple(value) if type(value) is list else value)
        found.append(value)
    return tuple(found)


def plain_numbers(o: Op, values: tuple) -> tuple:
    """The values of a call with plain numbers for the symbols of a call that is recorded: settled where it
    runs on no webgpu."""
    flat = [v for value in values for v in (value if isinstance(value, (list, tuple)) else (value,))]
    metas = [t._meta for t in flat if hasattr(t, "_meta")]
    if metas:
        device = metas[0].device
    else:
        given = [v for a, v in zip(o.arguments, values, strict=True) if a.name == "device" and v is not None]
        device = Device(given[0]) if given else get_default_device()
    return tuple(map(plain_of if device.type == "webgpu" else settled, values))


def following(plan: Callable, values: tuple, plain: tuple) -> Callable:
    """A plan whose launches follow the symbols among its values.

    Args:
        plan: made for plain numbers.
        values: of the call.
        plain: these with plain numbers.
    """
    if (look := getattr(plan, "look", None)) is not None:
        look(values)  # what symbols are compared with becomes a condition
    if (run := getattr(plan, "followed", None)) is not None:
        return lambda *_: run(values, plain)
    if (numbers := getattr(plan, "numbers", None)) is not None:
        return lambda *_: run_followed(plan, numbers, values, plain)
    for value in values:
        settled(value)
    return lambda *_: plan(*plain)


def _view(o: Op, values: tuple) -> tuple[tuple, Callable]:
    """A view whose bounds are symbols, which its offset follows."""
    values, begin = o.follow(*values)  # type: ignore[misc]
    plain = tuple(map(plain_of, values))
    plan = _planned(o, plain)

    def run(*_):
        view = plan(*plain)
        view._offset = moved(view._offset, begin)
        return view

    return values, run


def call_slowly(o: Op, values: tuple) -> Any:
    """A call that found no plan, or asks for none since a key settles symbols: prepare, make arguments
    regular, plan, keep the plan, run."""
    try:
        if o.prepare is not None and (done := o.prepare(*values)) is not None:
            _keep_prepared(o, values)
            return done
        values = regular(o, values)
        if SYMBOLS.isdisjoint(map(type, values)):
            plan = _planned(o, values)
        elif o.follow is not None:
            values, plan = _view(o, values)
        else:
            plain = plain_numbers(o, values)
            plan = following(_planned(o, plain), values, plain)
    except PellucidError as error:
        raise named(o.public, error) from None
    if o.check is not None:
        o.check(*values)
    if o.grad is not None and o.any_node(values):
        # Formulas ask symbols as well, so these are what is saved.
        return o.record(plan, *values)
    return plan(*values)


def _keep_prepared(o: Op, values: tuple) -> None:
    """Let the next call of this key go to `prepare` at once; what cannot be part of a key does not."""
    if SYMBOLS.isdisjoint(map(type, values)):
        with suppress(TypeError):
            keep_plan(o.plans, o.key(values), o.prepare)


def _planned(o: Op, values: tuple) -> Callable:
    key = o.key(values)
    try:
        plan = o.plans.get(key)
    except TypeError as error:  # something that cannot be part of a key
        raise ArgumentError(str(error)) from None
    if plan is None:
        plan = o.plan(values)
        keep_plan(o.plans, key, plan)
    return plan


def named(public: str, error: PellucidError) -> PellucidError:
    """The error with the name of the call before it, once; PyTorch writes ``name(): argument ...``."""
    text = str(error)
    if text.startswith((f"{public}: ", f"{public}(): ")):
        return error
    form = "()" if text.startswith(("argument ", "at least one argument ")) else ""
    return type(error)(f"{public}{form}: {text}")


def _into(o: Op, out: Any, values: tuple) -> Any:
    """``out=``: the result written over a tensor of its shape, or made the memory of one without elements.

    Raises:
        ArgumentError: it is no tensor.
        GradientError: something requires grad.
        ShapeError, DTypeError: the result does not fit.
    """
    if not hasattr(out, "_meta"):
        raise named(o.public, wrong("out", "Tensor", out))
    result = call_slowly(o, values)
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
