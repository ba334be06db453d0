"""Plans: what an op does for given metas, decided once. A plan is a function of the op's arguments; on webgpu
it appends records."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from ..autograd.edges import LEAF, note_view
from ..autograd.grad_mode import grad_enabled
from ..device.commands import ALLOC, CODE_BITS
from ..device.cpu import CpuStorage, as_array, rounded, widened
from ..device.host import STATUS_SLOT
from ..device.storage import End
from ..device.stream import EMPTY_SLOT, Storage, stream
from ..errors import KernelError, ShapeError
from ..kernel.element_types import NATIVE
from ..kernel.float_words import float_bits, float_words
from ..kernel.launch import Launch
from ..tensors.dtypes import DType, bfloat16, float16, float32, holds
from ..tensors.meta import Meta, meta
from ..tensors.shape import index
from ..tensors.tensor import Tensor
from .call import Call
from .elementwise import Elementwise, cast_launch
from .launch_plan import plan_launch
from .schema import Schema
from .symbols import SYMBOLS, settled


def _checked_float_bits(o: Schema, d: DType, name: str, value: float) -> int:
    """The word of a float32 argument that is not remembered, and may be refused; ``d`` is computed in."""
    o.within_64_bits(name, value)
    a = next(a for a in o.arguments if a.name == name)
    if (a.role == "number" or o.must_fit(a, d)) and not holds(float32, value):
        raise o.refuse(name, value, float32)
    return float_bits(value)


def view_plan(o: Schema, call: Call):
    """New strides over the same storage."""
    shape, strides, delta = o.view(call)  # type: ignore[misc]
    delta = index(delta, "an offset")
    m = call.tensors()[0][1]
    out = meta(shape, m.dtype, m.device, tuple(strides))
    make = _view_factory(", ".join(a.name for a in o.arguments), call.tensors()[0][0])
    return make(Tensor, out, delta, LEAF, grad_enabled.get, note_view)


@lru_cache(1024)
def _view_factory(arguments: str, name: str):
    """The text of view plans: those of the same arguments differ in layout and offset only."""
    scope: dict[str, Any] = {}
    exec(
        f"""
def make(Tensor, seen, delta, LEAF, is_recording, note_view):
    def run({arguments}):
        view = Tensor({name}._storage, seen, {name}._offset + delta)
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


def webgpu_plan(o: Schema, call: Call, written: str | None = None, aliased: frozenset[str] = frozenset()):
    """Compile the launches of a call and write the function that records them."""
    run = _webgpu_plan(o, call, written, aliased)
    return run if observe is None else observe(o, call, run, written)


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
        launches = [launches] if isinstance(launches, Launch) else list(launches)
        for launch in launches:
            launch.file, launch.holes = launch.source.fill(launch.holes), {}
    if is_empty and not o.mutates:
        launches = []
    launches = _convert_outputs(o, call, launches)
    return _record_function(o, call, launches, written)


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
    """Kernels write their native type; where an output has another one, a temporary and a cast follow."""
    if isinstance(o.kernel, Elementwise):
        return launches
    after: list[Launch] = []
    for name, m in zip(o.outputs, call.outputs, strict=True):
        for launch in launches:
            for b in launch.source.bindings:
                if b.written and launch.bind.get(b.name, b.name) == name and b.element in NATIVE:
                    native = NATIVE[b.element]
                    if native is m.dtype:
                        continue
                    held = f"{name}_native"
                    if held not in call.temporaries:
                        call.temporary(held, m.shape, native)
                        after.append(cast_launch(held, name, call.temporaries[held], m))
        if f"{name}_native" in call.temporaries:
            for launch in launches:
                for b in launch.source.bindings:
                    if launch.bind.get(b.name, b.name) == name:
                        launch.bind[b.name] = f"{name}_native"
    return launches + after


def _record_function(o: Schema, call: Call, launches: list[Launch], written: str | None):
    metas = dict(call.tensors())
    metas.update(zip(o.outputs, call.outputs, strict=True)) if not written else None
    metas.update(call.temporaries)
    names = {a.name for a in o.arguments}
    constants: list[Any] = []
    fresh = {} if written or o.mutates else dict(zip(o.outputs, call.outputs, strict=True))
    fresh |= call.temporaries
    # What is made: by name, the number in the names of its slot and its storage.
    made = {name: k for k, name in enumerate(fresh)}

    def constant(value: Any) -> str:
        constants.append(value)
        return f"c{len(constants) - 1}"

    def slot(name: str) -> str:
        if name in made:
            return f"slot{made[name]}"
        if name == "status":
            return str(STATUS_SLOT)
        root = name.split("[")[0]
        if root in names:
            return f"{name}._storage.slot" if name in metas else str(EMPTY_SLOT)
        raise KernelError(f"binding {name!r} is neither an argument, an output nor a temporary.")

    lines = []
    original = getattr(call, "original", None)
    if original is not None:
        seen = dict(call.tensors())
        for name, m in original.tensors():
            if seen[name] is not m:
                if "[" in name:
                    root = name.split("[")[0]
                    line = f"{root} = [contiguous(t) for t in {root}]"
                else:
                    line = f"{name} = contiguous({name})"
                if line not in lines:
                    lines.append(line)
    if o.mutates:
        for a in o.arguments:
            if a.role == "tensor" and a.name not in o.mutated:
                lines.append(f"if {a.name}._storage is {o.mutates}._storage: {a.name} = {a.name}.clone()")
    for m in fresh.values():
        stream().check_size(m.nbytes)
    words: list[str] = []
    heads: list[str] = []
    total = ""
    if fresh:
        total = constant(sum(m.nbytes for m in fresh.values()))
        lines += [
            f"if stream.window_bytes + {total} > stream.bytes_limit or len(words) > stream.full_at:",
            f"    stream.make_way({total})",
        ]
    elif launches:
        lines.append("if len(words) > stream.full_at: stream.make_way(0)")
    # The constructor's work is written out, or it would take half of an op's time; products and sums are
    # quicker than shifts. Interrupts and other threads come with calls: there is none from where the records
    # are added, which is one step, until what they make will be freed. So numbers are looked up first.
    after = []
    # The words that numbers among the arguments give, how each is made, and of which argument.
    numbers: list[tuple[int, int, str]] = []
    places = {a.name: k for k, a in enumerate(o.arguments)}
    for launch in launches:
        head, patches = plan_launch(o, launch, metas)
        words.append(constant(head))
        words += [slot(launch.bind.get(b.name, b.name)) for b in _bindings(launch)]
        for patch, kind, name in patches:
            if name is not None:
                numbers.append((len(words), places[name], kind))
            if "(" in patch:
                lines.append(f"p{len(lines)} = {patch}")
                patch = f"p{len(lines) - 1}"
            words.append(patch)
    for name, k in made.items():
        nbytes = constant(fresh[name].nbytes)
        lines += [f"s{k} = blank(Storage)", "try:", f"    slot{k} = free.pop()", "except IndexError:"]
        lines.append(f"    slot{k} = stream.new_slot()")
        if len(made) > 1:
            lines.append(f"s{k}.__del__ = returns[slot{k}]")
        lines += [f"s{k}.slot = slot{k}", f"s{k}.version = 0", f"s{k}.kind = 'activation'"]
        heads += [f"{1 << CODE_BITS} * slot{k} + {ALLOC}", nbytes]
        after += [f"s{k}.nbytes = sizes[slot{k}] = {nbytes}", f"s{k}.__del__ = ends[slot{k}]"]
    if made:
        after.append(f"stream.window_bytes += {total}")
    count = len(words)
    words = heads + words
    if words:
        lines.append(f"words += ({', '.join(words)},)")
    lines += after
    if launches:
        lines.append(f"if after: after[0]({o.name!r})")
    if o.mutates:
        present = [name for name in o.mutated if call.args[name] is not None]
        lines += [*[f"{name}._storage.version += 1" for name in present], f"return {o.mutates}"]
    elif written:
        lines.append(f"return {written}")
    else:
        tensors = [
            f"Tensor(s{made[n]}, {constant(m)}, 0)" for n, m in zip(o.outputs, call.outputs, strict=True)
        ]
        lines.append(f"return {tensors[0]}" if o.result is None else f"return result({', '.join(tensors)})")
    arguments = ", ".join(a.name for a in o.arguments)
    make = _factory(arguments, tuple(lines), len(constants))
    s = stream()
    run = make(
        constants, s, s.words, s.free, s.sizes, s.ends, s.returns, s.after_op, Storage, Tensor,
        _contiguous, partial(_checked_float_bits, o, call.compute), float_words, o.within_64_bits, o.result,
    )  # fmt: skip
    if numbers:
        run.numbers = constants[int(words[len(words) - count].removeprefix("c"))], count, numbers
    return run


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


@lru_cache(1024)
def _factory(arguments: str, lines: tuple[str, ...], constants: int):
    """Compile the text of a plan once; plans of the same form differ in constants only."""
    unpack = "".join(f"c{k}, " for k in range(constants))
    made_with = (
        "stream, words, free, sizes, ends, returns, after, Storage, Tensor, contiguous, bits, known, wide, "
        "result"
    )
    text = [f"def make(constants, {made_with}):"]
    text.append("    blank = object.__new__")
    if unpack:
        text.append(f"    {unpack} = constants")
    text += [
        f"    def run({arguments}):",
        "        nonlocal words",
        *[f"        {line}" for line in lines],
        "    return run",
    ]
    scope: dict[str, Any] = {}
    exec("\n".join(text), scope)
    return scope["make"]


def _contiguous(t):
    if t._meta.is_contiguous or t._meta.dtype.is_quantized:
        return t
    return t.detach().clone()


def _bindings(launch: Launch):
    return launch.source.bindings
