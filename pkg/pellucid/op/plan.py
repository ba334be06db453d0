"""Plans: what an op does for given metas, decided once. A plan is a function of the op's arguments; on webgpu
it appends records."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from ..autograd.edges import LEAF, note_view
from ..autograd.grad_mode import grad_enabled
from ..device.cpu import CpuStorage, as_array, rounded, widened
from ..device.storage import End
from ..device.stream import stream
from ..errors import ShapeError
from ..tensors.dtypes import bfloat16, bool_, float16, uint32
from ..tensors.meta import Meta, meta
from ..tensors.shape import index
from ..tensors.tensor import Tensor
from .call import Call
from .elementwise import Elementwise, cast_launch
from .kernel.element_types import NATIVE
from .kernel.launch import Launch
from .plan_text.write import local, record_function
from .schema import Schema
from .symbols import SYMBOLS, settled


def view_plan(o: Schema, call: Call):
    """New strides over the same storage."""
    shape, strides, delta, *seen_as = o.view(call)  # type: ignore[misc]
    delta = index(delta, "an offset")
    m = call.tensors()[0][1]
    d = seen_as[0] if seen_as else m.dtype
    out = meta(shape, d, m.device, tuple(strides))
    scale = {2: " * 2", 1: "", 0.5: " // 2"}[m.dtype.itemsize / d.itemsize]
    places = {a.name: k for k, a in enumerate(o.arguments)}
    make = _view_factory(len(places), local(places, call.tensors()[0][0]), scale)
    return make(Tensor, out, delta, LEAF, grad_enabled.get, note_view, object.__new__)


@lru_cache(1024)
def _view_factory(arguments: int, name: str, scale: str):
    """The text of view plans: those of as many arguments differ in layout and offset only."""
    scope: dict[str, Any] = {}
    exec(
        f"""
def make(Tensor, seen, delta, LEAF, is_recording, note_view, blank):
    def run({", ".join([f"a{k}" for k in range(arguments)])}):
        view = blank(Tensor)
        view._storage = {name}._storage
        view._meta = seen
        view._offset = {name}._offset{scale} + delta
        view._base = base = {name} if {name}._base is None else {name}._base
        if base._node is not LEAF and is_recording():
            note_view(base, view)
        return view
    return run
""",
        scope,
    )
    return scope["make"]


# meta


class NoStorage:
    """What a tensor on the meta device holds: no bytes, only a version."""

    __slots__ = ("kind", "nbytes", "version")

    def __init__(self):
        self.version = self.nbytes = 0
        self.kind = "activation"

    def grow(self, nbytes: int) -> None:
        """Nothing: there are no bytes."""

    def set_kind(self, kind: str) -> None:
        """Account it as something else."""
        self.kind = kind


def meta_plan(o: Schema, call: Call, written: str | None = None):
    """Shapes and dtypes without values."""
    name = written or o.mutates
    where = next((k for k, a in enumerate(o.arguments) if a.name == name), 0)

    def run(*values):
        if name:
            return values[where]
        made = [Tensor(NoStorage(), m, 0) for m in call.outputs]
        return o.result(*made) if o.result else made[0]

    return run


# cpu


def cpu_plan(o: Schema, call: Call, written: str | None = None):
    """Run the numpy reference on views of the arguments."""
    kernel = o.kernel
    compute = call.compute.numpy if isinstance(kernel, Elementwise) else None
    own = (kernel.own or {}) if isinstance(kernel, Elementwise) else {}
    if isinstance(kernel, Elementwise):
        kernel.check(call.compute)
    held = np.dtype(np.float32) if compute == np.float16 else compute
    halves = call.compute if compute is not None and call.compute in (float16, bfloat16) else None
    narrows = frozenset(n for n, _ in call.operands() if halves and kernel.narrows(call, n))
    target = call.args[written] if written else None
    reference = cast(Callable, o.reference)
    if "compute" in (getattr(reference, "__kwdefaults__", None) or ()):
        reference = partial(reference, compute=call.compute)
    names = [a.name for a in o.arguments]
    mutated = [names.index(name) for name in o.mutated]

    def array(t, name: str):
        m = t._meta
        if m.dtype.is_quantized:
            return t
        a = widened(as_array(t._storage, m.dtype, m.shape, m.strides, t._offset), m.dtype)
        if compute is not None and name not in own:
            if halves is not None and name in narrows and m.dtype is not halves:
                a = widened(rounded(a, halves), halves)
            if a.dtype.kind == "c" and compute.kind not in "bc":  # what a real result is written over
                a = np.real(a)
            a = (a != 0) if compute == np.bool_ else a.astype(held, copy=False)
        return a

    def number(v, compute: np.dtype, name: str):
        if compute.kind == "b":
            return bool(v)
        if compute.kind in "iu":
            return np.asarray(int(v)).astype(compute)[()]
        with np.errstate(over="ignore"):  # a number that is too large is infinite
            narrow = halves if name in narrows else None
            return (rounded(np.asarray(v, held), narrow) if narrow else np.asarray(v)).astype(held)[()]

    def run(*values):
        given: list[Any] = []
        for a, v in zip(o.arguments, values, strict=True):
            if a.role == "tensors":
                given.append([array(t, a.name) for t in v])
            elif isinstance(v, Tensor):
                given.append(array(v, a.name))
            elif (
                a.role in ("operand", "number")
                and compute is not None
                and v is not None
                and a.name not in own
            ):
                given.append(number(v, compute, a.name))
            else:
                given.append(v)
        with np.errstate(all="ignore"):
            results = reference(*given)
        if mutated:
            for k in mutated:
                if values[k] is not None:
                    values[k]._storage.version += 1
            return values[mutated[0]]
        if target is not None:
            t = values[next(k for k, a in enumerate(o.arguments) if a.name == written)]
            as_array(t._storage, target.dtype, target.shape, target.strides, t._offset)[...] = rounded(
                results, target.dtype
            )
            return t
        made = []
        for r, m in zip(results if o.result else (results,), call.outputs, strict=True):
            data = np.ascontiguousarray(rounded(r, m.dtype))
            if data.size != m.numel:
                data = np.broadcast_to(data, m.shape)
            fresh = data if data.flags.owndata and data.flags.writeable and data.base is None else data.copy()
            if any(fresh is g for g in given):
                fresh = fresh.copy()
            made.append(Tensor(CpuStorage(np.ascontiguousarray(fresh)), m, 0))
        return o.result(*made) if o.result else made[0]

    return run


# webgpu

# Makes another plan of each that is made: PELLUCID_CHECK.
observe: Callable[..., Callable] | None = None


def webgpu_plan(
    o: Schema, call: Call, written: str | None = None, aliased: frozenset[str] = frozenset()
) -> Any:
    """Compile the launches of a call and write the function that records them; None where it has none."""
    run = _webgpu_plan(o, call, written, aliased)
    return run if observe is None or run is None else observe(o, call, run, written)


def _webgpu_plan(o: Schema, call: Call, written: str | None, aliased: frozenset[str]):
    stream().open()
    is_empty = all(m.numel == 0 for m in ([call.args[written]] if written else call.outputs))
    if isinstance(o.kernel, Elementwise):
        launches = [o.kernel.launch(call, written, aliased)]
    elif written is not None:
        return _compute_then_copy(o, call, written)
    elif is_empty and not o.mutates:
        # Nothing to make: kernels' choices need not know of axes of length 0 that are in the output.
        call, launches = _contiguous_call(o, call), []
    else:
        call = _contiguous_call(o, call)
        launches = o.kernel(call)
        if launches is None:  # the numpy reference runs in its place
            return None
        launches = [launches] if isinstance(launches, Launch) else list(launches)
        for launch in launches:
            launch.file, launch.holes = launch.source.fill(launch.holes), {}
    if is_empty and not o.mutates:
        launches = []
    launches = _convert_outputs(o, call, launches)
    return record_function(o, call, launches, written)


def _contiguous_call(o: Schema, call: Call) -> Call:
    """The call as the kernel sees it: inputs that it does not read strided are contiguous."""
    args = dict(call.args)
    for a in o.arguments:
        value = args[a.name]
        if a.name in o.strided or a.name in o.mutated:
            if a.name in o.mutated[1:] and value is not None and not value.is_contiguous:
                raise ShapeError(
                    f"'{a.name}' is written into and must be contiguous. Call .contiguous() first."
                )
            continue
        if isinstance(value, list):
            args[a.name] = [_dense(m) for m in value]
        elif isinstance(value, Meta):
            args[a.name] = _dense(value)
    seen = type(call)(o, args, call.device)
    seen.outputs, seen.compute = call.outputs, call.compute
    seen.original = call  # type: ignore[attr-defined]
    return seen


def _dense(m: Meta) -> Meta:
    return m if m.is_contiguous or m.dtype.is_quantized else meta(m.shape, m.dtype, m.device)


def _compute_then_copy(o: Schema, call: Call, written: str):
    """In place for kernels that cannot: the result first, then a copy over the target."""
    plan = webgpu_plan(o, call)
    where = next(k for k, a in enumerate(o.arguments) if a.name == written)

    def run(*values):
        values[where].detach().copy_(plan(*values).detach())
        return values[where]

    return run


def _convert_outputs(o: Schema, call: Call, launches: list[Launch]) -> list[Launch]:
    """Kernels write their native type; where an output has another one, a temporary and a cast follow. A
    single bool is 0 or 1 in a word of its own."""
    if isinstance(o.kernel, Elementwise):
        return launches
    after: list[Launch] = []
    kernels = [launch for launch in launches if launch.map is None]  # an expression packs its elements itself
    for name, m in zip(o.outputs, call.outputs, strict=True):
        for launch in kernels:
            for b in launch.source.bindings:
                if b.written and launch.bind.get(b.name, b.name) == name and b.element in NATIVE:
                    native = NATIVE[b.element]
                    if native is m.dtype or (m.dtype is bool_ and native is uint32 and m.numel == 1):
                        continue
                    held = f"{name}_native"
                    if held not in call.temporaries:
                        call.temporary(held, m.shape, native)
                        after.append(cast_launch(held, name, call.temporaries[held], m))
        if f"{name}_native" in call.temporaries:
            for launch in kernels:
                for b in launch.source.bindings:
                    if launch.bind.get(b.name, b.name) == name:
                        launch.bind[b.name] = f"{name}_native"
    return launches + after


def run_followed(plan: Callable, numbers: tuple, values: tuple, plain: tuple) -> Any:
    """Run a plan with plain numbers, and let its words say which symbols of the call they follow.

    Args:
        plan: the plan.
        numbers: the first word of its launches, how many words these are, and those that are numbers: where,
            of which value, of which kind.
        values: of the call.
        plain: these with plain numbers.
    """
    result = plan(*plain)
    words = stream().words
    end = len(words)
    while end and type(words[end - 1]) is End:  # of copies and temporaries, which went when the plan returned
        end -= 1
    first, count, places = numbers
    begin = end - count
    if begin < 0 or words[begin] is not first:  # somebody has taken them
        for value in values:
            settled(value)
        return result
    for at, k, kind in places:
        if type(values[k]) in SYMBOLS:
            words[begin + at] = values[k].word(words[begin + at], kind)
    return result
