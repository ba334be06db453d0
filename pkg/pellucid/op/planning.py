"""How the calls of an op are planned: what is decided once per layouts and static arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..device import device as Device
from ..device import get_default_device, resolved
from ..errors import ArgumentError, DeviceError, DTypeError, PellucidError, ShapeError
from ..tensors import dtypes as dt
from ..tensors.meta import Meta, meta
from .arguments import NUMBERS, named, wrong
from .call import Call
from .call_path import Route
from .plan import cpu_plan, meta_plan, view_plan, webgpu_plan
from .plan_cache import keep_plan
from .schema import Argument, Schema


class Op(Schema):
    """A declaration, read, and how its calls are planned. ``OPS`` holds all of them by name."""

    # The slow path: everything that is decided once per plan.

    def plan(self, values: tuple) -> Callable:
        """Plan a call: check arguments, infer outputs, prepare what runs."""
        try:
            call = self.inferred(values)
            if self.view is not None:
                return view_plan(self, call)
            if call.device.type == "cpu":
                plan = cpu_plan(self, call)
            elif call.device.type == "meta":
                plan = meta_plan(self, call)
            else:
                plan = webgpu_plan(self, call) or self.by_way_of_the_cpu(call)
            return self.guarded(call, plan)
        except PellucidError as error:
            raise named(self.public, error) from None

    def by_way_of_the_cpu(self, call: Call) -> Callable:
        """A plan that reads the tensors, runs the numpy reference on them and brings the results back: of an
        op, or a size, that no kernel takes (`rules.on_cpu`)."""

        def run(*values):
            read = [v.detach().to("cpu") if hasattr(v, "_meta") else v for v in values]
            made = self.plan_of(*read)(*read)
            return self.result(*[t.to(call.device) for t in made]) if self.result else made.to(call.device)

        return run

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

    def inferred(self, values: tuple) -> Call:
        """The call that the values make, checked, with its outputs."""
        call = self.understand(values)
        self.infer(call)
        return call

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
            device = resolved(wanted)
            if not any(a.name == "device" for a in self.arguments):
                raise ArgumentError("at least one argument must be a tensor")
        return Call(self, args, device)

    def infer(self, call: Call) -> None:
        """Find the metas of the outputs by the rules."""
        if self.view is not None or self.mutates is not None:
            return
        assert self.shape is not None
        dtypes, call.compute = self.dtype(call)
        for a in self.arguments:
            if a.role == "number" and call.args[a.name] is complex and not call.compute.is_complex:
                raise DTypeError(f"{a.name} is complex, and {call.compute} holds no complex numbers.")
        shapes = self.shape(call)
        if len(self.outputs) == 1:
            dtypes, shapes = (dtypes,), (shapes,)
        call.outputs = [meta(s, d, call.device) for s, d in zip(shapes, dtypes, strict=True)]

    def plan_of(self, *values) -> Callable:
        """The plan of a call without gradients, for code that runs ops outside the graph."""
        values = (*values, *[a.default for a in self.arguments[len(values) :]])
        key = self.key(values)
        plan: Any = self.plans.get(key)
        if plan is None:
            plan = self.plan(values)
            keep_plan(self.plans, key, plan)
        return plan.run if type(plan) is Route else plan

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
