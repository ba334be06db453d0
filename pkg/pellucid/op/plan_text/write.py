"""Writes a plan's Python text: kernels typed as their tensors are, and the commands that a call appends."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import sha1
from typing import Any

from ...device.commands import ALLOC, CODE_BITS
from ...device.host import STATUS_SLOT
from ...device.stream import EMPTY_SLOT, Storage, stream
from ...errors import DeviceError, KernelError
from ...tensors.dtypes import DType, float32, holds
from ...tensors.meta import Meta
from ...tensors.tensor import Tensor
from ..call import Call
from ..expression import TRUTH
from ..kernel.element_types import PHYSICAL
from ..kernel.float_words import float_bits, float_words
from ..kernel.launch import Launch
from ..kernel.turns import check_turns
from ..launches import LaunchId, RegisteredLaunch, register
from ..schema import Schema
from . import forms

# What the text of a plan works with. Arguments are called a0, a1, ... there: a text is compiled once for all
# ops that it fits.
_MADE_WITH = (
    "stream", "words", "free", "sizes", "ends", "partial", "after", "Storage", "Tensor", "contiguous", "bits",
    "known", "wide", "Result",
)  # fmt: skip


def _checked_float_bits(o: Schema, d: DType, place: int, value: float) -> int:
    """The word of a float32 argument that is not remembered, and may be refused; ``d`` is computed in."""
    a = o.arguments[place]
    o.within_64_bits(a.name, value)
    if (a.role == "number" or o.must_fit(a, d)) and not holds(float32, value):
        raise o.refuse(a.name, value, float32)
    return float_bits(value)


def _check_width(o: Schema, place: int, value: float) -> None:
    o.within_64_bits(o.arguments[place].name, value)


def record_function(o: Schema, call: Call, launches: list[Launch], written: str | None):
    metas = dict(call.tensors())
    metas.update(zip(o.outputs, call.outputs, strict=True)) if not written else None
    metas.update(call.temporaries)
    places = {a.name: k for k, a in enumerate(o.arguments)}
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
        if name.split("[")[0] in places:
            return f"{local(places, name)}._storage.slot" if name in metas else str(EMPTY_SLOT)
        raise KernelError(f"binding {name!r} is neither an argument, an output nor a temporary.")

    lines = []
    original = getattr(call, "original", None)
    if original is not None:
        seen = dict(call.tensors())
        for name, m in original.tensors():
            if seen[name] is not m:
                root = local(places, name.split("[")[0])
                line = (
                    f"{root} = [contiguous(t) for t in {root}]"
                    if "[" in name
                    else f"{root} = contiguous({root})"
                )
                if line not in lines:
                    lines.append(line)
    if o.mutates:
        for a in o.arguments:
            if a.role == "tensor" and a.name not in o.mutated:
                other, written_to = local(places, a.name), local(places, o.mutates)
                lines.append(f"if {other}._storage is {written_to}._storage: {other} = {other}.clone()")
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
    # Several launches may take one number, whose word is made once.
    given: dict[str, str] = {}

    def usually(name: str | None, kind: str) -> str:
        """The beginning of a number's expression: what needs no look-up, mostly."""
        if name is None:
            return ""
        own, usual = local(places, name), o.arguments[places[name]].default
        if kind == "f32" and isinstance(usual, (int, float)):  # mostly left out
            return f"{constant(float_bits(usual))} if {own} is {constant(usual)} else "
        if kind == "low" and int in (call.args[name], type(call.args[name])):
            return f"{own} if 0 <= {own} <= 0xFFFFFFFF else "
        return ""

    for launch in launches:
        head, patches = plan_launch(o, launch, metas)
        words.append(constant(head))
        words += [slot(launch.bind.get(b.name, b.name)) for b in _bindings(launch)]
        for patch, kind, name in patches:
            if name is not None:
                numbers.append((len(words), places[name], kind))
            if "(" in patch:
                if patch not in given:
                    given[patch] = f"p{len(lines)}"
                    lines.append(f"{given[patch]} = {usually(name, kind) + patch}")
                patch = given[patch]
            words.append(patch)
    for name, k in made.items():
        nbytes = constant(fresh[name].nbytes)
        lines += [f"s{k} = blank(Storage)", "try:", f"    slot{k} = free.pop()", "except IndexError:"]
        lines.append(f"    slot{k} = stream.new_slot()")
        if len(made) > 1:
            lines.append(f"s{k}.__del__ = partial(free.append, slot{k})")
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
        lines.append(f"if after: after[0]({constant(o.name)})")
    if o.mutates:
        present = [name for name in o.mutated if call.args[name] is not None]
        lines += [f"{local(places, name)}._storage.version += 1" for name in present]
        lines.append(f"return {local(places, o.mutates)}")
    elif written:
        lines.append(f"return {local(places, written)}")
    else:
        # As `Tensor` is made, without the call of its constructor.
        results = []
        for n, m in zip(o.outputs, call.outputs, strict=True):
            k = made[n]
            lines += [f"t{k} = blank(Tensor)", f"t{k}._storage = s{k}", f"t{k}._meta = {constant(m)}"]
            lines.append(f"t{k}._offset = 0")
            results.append(f"t{k}")
        lines.append(f"return {results[0]}" if o.result is None else f"return Result({', '.join(results)})")
    make = factory(len(places), tuple(lines), len(constants))
    s = stream()
    run = make(
        constants, s, s.words, s.free, s.sizes, s.ends, partial, s.after_op, Storage, Tensor,
        _contiguous, partial(_checked_float_bits, o, call.compute), float_words, partial(_check_width, o),
        o.result,
    )  # fmt: skip
    if numbers:
        run.numbers = constants[int(words[len(words) - count].removeprefix("c"))], count, numbers
    return run


def local(places: dict[str, int], name: str) -> str:
    """What an argument, or one of several tensors in it, is called in the text of a plan."""
    root, bracket, rest = name.partition("[")
    return f"a{places[root]}{bracket}{rest}"


@lru_cache(1024)
def factory(arguments: int, lines: tuple[str, ...], constants: int):
    """Compile the text of a plan once; plans of the same form differ in constants only."""
    unpack = "".join(f"c{k}, " for k in range(constants))
    text = [f"def make(constants, {', '.join(_MADE_WITH)}):"]
    text.append("    blank = object.__new__")
    if unpack:
        text.append(f"    {unpack} = constants")
    text += [
        f"    def run({', '.join([f'a{k}' for k in range(arguments)])}):",
        "        nonlocal words",
        *[f"        {line}" for line in lines],
        "    return run",
    ]
    return compiled("\n".join(text))


def name_of(text: str) -> str:
    """What a plan's text is called among those that are compiled with the package."""
    # It takes a fifth of the time of sha256.
    return f"make_{sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]}"


def compiled(text: str) -> Callable:
    """The function that a plan's text defines. In a page compiling it takes half of a millisecond, so that of
    everyday ops is there (`forms`)."""
    if (known := getattr(forms, name_of(text), None)) is not None:
        return known
    scope: dict[str, Any] = {}
    exec(text, scope)
    return scope["make"]


def _contiguous(t):
    if t._meta.is_contiguous or t._meta.dtype.is_quantized:
        return t
    return t.detach().clone()


def _bindings(launch: Launch):
    return launch.source.bindings


def plan_launch(
    o: Schema, launch: Launch, metas: dict[str, Meta]
) -> tuple[LaunchId, list[tuple[str, str, str | None]]]:
    """Type a kernel's bindings, fill its Params and register it with the host.

    Args:
        o: the op that plans it.
        launch: the kernel, its holes filled.
        metas: of arguments, outputs and temporaries, by name.

    Returns:
        The word that begins the launch's records, and the words that each run brings: the expression, which
        the plan's text evaluates with its arguments, ``bits``, the word of a float, ``known``, those that
        were asked for (a look takes less than a call), and ``wide``, which refuses integers of more than 64
        bits; of which kind it is; and of which number among the arguments, None for the offset of a tensor.

    Raises:
        DeviceError: a tensor spans more than a kernel reaches on this device.
        KernelError: a field of Params has no value, or the device takes fewer buffers or parameters.
        ShapeError: the grid is over the device's limit, or a loop would be too long for it.
    """
    host = stream().open()
    source = launch.source
    largest = host.info.limits.get("maxStorageBufferBindingSize", 1 << 27)
    for b in source.bindings:
        name = launch.bind.get(b.name, b.name)
        if (m := metas.get(name)) is not None and _reach(m) > largest:
            raise DeviceError(
                f"'{name}' spans {_reach(m)} bytes, and a kernel reaches {largest} of a buffer on this "
                "device. Work on smaller tensors."
            )
    for b in () if source.typed else source.bindings:
        m = metas.get(launch.bind.get(b.name, b.name))
        if b.written or m is None or m.dtype.is_quantized:
            continue
        if m.dtype in PHYSICAL and "atomic" not in b.element:
            source = source.retype(b.name, m.dtype)
    values: dict[str, Any] = dict(launch.params)
    patches: list[tuple[str, str, str | None]] = []
    patched: list[str] = []
    roles = {a.name: a.role for a in o.arguments}
    places = {name: k for k, name in enumerate(roles)}
    for field, where in source.fields.items():
        if field in values:
            continue
        if field == "op":
            values[field] = o.index
            continue
        base = field.removesuffix("_offset")
        if (
            base != field
            and (found := launch.bind.get(base, base)) is not None
            and _is_buffer(found, metas, roles)
        ):
            values[field] = 0
            if found in metas and found.split("[")[0] in roles:
                patched.append(field)
                patches.append((f"{local(places, found)}._offset", "offset", None))
            continue
        part, half = field, ""
        if f"params.{field}" not in launch.bind and field not in roles:
            half = next((h for h in ("_low", "_high", "_real", "_imaginary", TRUTH) if field.endswith(h)), "")
            part = field.removesuffix(half)
        name = launch.bind.get(f"params.{part}", part)
        if name not in roles:
            raise KernelError(
                f"{source.name}: Params has a field {field!r} that neither the launch nor the op fills."
            )
        values[field] = 0
        patched.append(field)
        place = places[name]
        own = f"a{place}"
        if half == "_real":
            patches.append((f"known.get({own}.real) or bits({place}, {own}.real)", "f32", name))
        elif half == "_imaginary":
            patches.append((f"known.get({own}.imag) or bits({place}, {own}.imag)", "imaginary", None))
        elif where.type == "f32":
            patches.append((f"known.get({own}) or bits({place}, {own})", "f32", name))
        elif half == TRUTH:
            patches.append((f"int(bool({own}))", "truth", name))
        elif half == "_high":
            patches.append((f"int({own}) >> 32 & 0xFFFFFFFF", "high", name))
        else:
            word = f"int({own}) & 0xFFFFFFFF"
            wide = f"wide({place}, {own}) or {word}"
            patches.append((f"{word} if {-1 << 63} <= {own} < {1 << 64} else {wide}", "low", name))
    check_turns(source, dict(launch.params) | launch.at_most)
    named = [metas.get(launch.bind.get(b.name, b.name)) for b in source.bindings]
    node = RegisteredLaunch(o.public, source, values, tuple(patched), tuple(named), launch.grid, launch.map)
    return register(node), patches


def _reach(m: Meta) -> int:
    """Bytes from a tensor's first element to its last: what a kernel must see of the buffer, at least."""
    if m.numel == 0:
        return 0
    last = sum((n - 1) * abs(s) for n, s in zip(m.shape, m.strides, strict=True))
    return (last + 1) * m.dtype.itemsize


def _is_buffer(name: str, metas: dict[str, Meta], roles: dict[str, str]) -> bool:
    return name in metas or roles.get(name.split("[")[0]) in ("tensor", "optional", "operand", "tensors")
