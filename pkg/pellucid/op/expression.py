"""Kernels of element-by-element expressions: one of them, or several that hand their values on in registers.

A `Map` is one expression with the way its operands are read. `write` makes the kernel of one; the fusion pass
writes the functions of several into one kernel (`member`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

from ..tensors.dtypes import DType
from ..tensors.shape import contiguous_strides
from .kernel.element_types import WGSL_TYPE, convert, fetch, narrowed, pack, physical
from .kernel.frame import LARGE, MANY, Text, element_of, frame
from .kernel.launch import Launch, fold
from .kernel.source import KernelSource
from .kernel.transposed import in_tiles

# How operands are found that are dense but for axes that they repeat: the first, the last, both.
DENSE = "columns", "rows", "channels"
# Ends the name of a field that holds whether a number is true: its own word would lose fractions.
TRUTH = "_truth"


@dataclass(frozen=True)
class Operand:
    """A tensor or a number of an expression.

    Args:
        local: its name in WGSL.
        type: the value type in which the expression takes it.
        dtype: of the tensor; None for a number.
        index: how element i is found: "flat" (at i), "fixed" (one element for all), "rows" (dense axes, one
            element for all of what follows), "columns" (dense axes, again and again), "channels" (both),
            "strided" (up to four axes) or "wide" (up to eight).
        aliased: it is the view that is written.
        narrow: the packed dtype to which its value is reduced first.
    """

    local: str
    type: str
    dtype: DType | None = None
    index: str = ""
    aliased: bool = False
    narrow: DType | None = None

    @property
    def is_read(self) -> bool:
        """Whether it has a buffer of its own."""
        return self.dtype is not None and not self.aliased


@dataclass(frozen=True)
class Map:
    """One element-by-element expression, ready to be written as a kernel or into one.

    Args:
        name: for messages.
        expression: WGSL over the operands' names; ``index`` is the element's number.
        operands: in the order of the bindings.
        result: value type of the expression.
        out: dtype that is stored.
        out_index: "" for a fresh contiguous output, else how element i of the view that is written is found.
        by_element: an invocation makes one element, even of a packed dtype.
        shape: the axes over which strided operands are walked.
        strides: steps of each strided operand, and of ``out``, over those axes.
        count: invocations.
    """

    name: str
    expression: str
    operands: tuple[Operand, ...]
    result: str
    out: DType
    out_index: str
    by_element: bool
    shape: tuple[int, ...]
    strides: Mapping[str, tuple[int, ...]] = field(hash=False)
    count: int

    @property
    def uses_index(self) -> bool:
        return re.search(r"\bindex\b", self.expression) is not None

    @property
    def lanes(self) -> int:
        """Elements in a word of the output."""
        return physical(self.out)[1]

    @property
    def is_atomic(self) -> bool:
        """Whether neighbours write to one word."""
        return self.by_element and self.lanes > 1


def index_of(text: Text, m: Map, local: str, how: str, suffix: str = "", zero: bool = False) -> str:
    """The expression of the place of element ``i`` of an operand or of the output.

    Args:
        text: gets the fields that are needed.
        m: whose operand it is.
        local: the operand, or ``out``.
        how: as `Operand.index`.
        suffix: what ends the names of this member's fields.
        zero: the operand starts its buffer, whatever the call.
    """
    start = "" if zero else text.scalar(f"{local}_offset{suffix}", "u32")
    if how == "flat":
        return f"{start} + i" if start else "i"
    if how == "fixed":
        return start or "0u"
    if how in DENSE:
        walked = _dense_place(text, m, local, how, suffix)
        return f"{start} + {walked}" if start else walked
    if how in ("strided", "wide") and len(m.shape) <= 6 and MANY <= prod(m.shape) <= 1 << 31:
        walked = _walk(text, m, local, suffix)
        return f"{start} + {walked}" if start else walked
    rank = 8 if how == "wide" else 4
    length = (1,) * (rank - len(m.shape)) + m.shape
    steps = (0,) * (rank - len(m.shape)) + m.strides[local]
    parts = [(length[k : k + 4], steps[k : k + 4]) for k in range(0, rank, 4)]
    number = "" if rank == 4 else "{}"
    shapes = [text.vector(f"shape{number.format(k)}{suffix}", a) for k, (a, _) in enumerate(parts)]
    strides = [text.vector(f"{local}_strides{number.format(k)}{suffix}", b) for k, (_, b) in enumerate(parts)]
    walk = "strided8({})" if how == "wide" else "strided4({})"
    walked = walk.format(", ".join(["i", *shapes, *strides]))
    return f"{start} + {walked}" if start else walked


def _walk(text: Text, m: Map, local: str, suffix: str) -> str:
    """The place of element ``i`` of a large tensor of up to six axes, without a division."""
    rank = len(m.shape)
    axes = []
    for k in range(1, rank):
        axes.append(text.vector(f"axis{rank - k}{suffix}", (m.shape[k], *quotient(m.shape[k]), 0)))
    steps = (0,) * (8 - rank) + m.strides[local]
    strides = [text.vector(f"{local}_strides{suffix}", steps[4:])]
    if rank > 4:
        strides.insert(0, text.vector(f"{local}_above{suffix}", steps[:4]))
    return f"strided_{rank}({', '.join(['i', *axes, *strides])})" if rank > 1 else f"i * {strides[0]}.w"


def dense_form(shape: tuple[int, ...], steps: tuple[int, ...]) -> str:
    """The form of `Operand.index` for an operand that is dense but for axes that it repeats; else ""."""
    if prod(shape) > 1 << 31:
        return ""
    before, after = _repeats(steps)
    kept = slice(before, len(steps) - after)
    if not (before or after) or tuple(steps[kept]) != contiguous_strides(tuple(shape[kept])):
        return ""
    return DENSE[bool(before) + 2 * bool(after) - 1]


def _repeats(steps: tuple[int, ...]) -> tuple[int, int]:
    """How many first and how many last axes an operand repeats."""
    moving = [k for k, step in enumerate(steps) if step]
    return (moving[0], len(steps) - 1 - moving[-1]) if moving else (0, 0)


def _dense_place(text: Text, m: Map, local: str, how: str, suffix: str) -> str:
    before, after = _repeats(m.strides[local])
    kept = len(m.shape) - after
    inner, length = prod(m.shape[kept:]), prod(m.shape[before:kept])

    def divided(place: str, name: str, by: int, also: str = "") -> str:
        factor, shift = quotient(by)
        text.values |= {f"{name}_factor{suffix}": factor, f"{name}_shift{suffix}": shift}
        factor, shift = (text.scalar(f"{name}_{part}{suffix}", "u32") for part in ("factor", "shift"))
        return f"{place}, {also}{factor}, {shift}"

    place = "i" if how == "columns" else f"strided_over({divided('i', f'{local}_inner', inner)})"
    if how == "rows":
        return place
    text.values[f"{local}_length{suffix}"] = length
    also = f"{text.scalar(f'{local}_length{suffix}', 'u32')}, "
    return f"strided_within({divided(place, f'{local}_length', length, also)})"


def quotient(length: int) -> tuple[int, int]:
    """The factor and the shift that divide by a length, as wgsl/parts/strided.wgsl does it.

    Source: Granlund and Montgomery 1994, "Division by Invariant Integers using Multiplication", theorem 4.2

    Example:
        >>> factor, shift = quotient(7)
        >>> (2 * 100 * factor >> 32) >> shift
        14
    """
    length = max(length, 1)  # of no elements none is looked for
    shift = (length - 1).bit_length()
    return -(-(1 << 31 + shift) // length), shift


def number(text: Text, local: str, kind: str, narrow: DType | None, suffix: str = "") -> str:
    """The expression of a number that is a field of Params."""
    if narrow is not None:
        return narrowed(narrow, number(text, local, kind, None, suffix))
    if kind == "i64":
        low, high = (text.scalar(f"{local}{half}{suffix}", "u32") for half in ("_low", "_high"))
        return f"vec2<u32>({low}, {high})"
    if kind == "c64":
        parts = [text.scalar(f"{local}{part}{suffix}", "f32") for part in ("_real", "_imaginary")]
        return f"vec2<f32>({', '.join(parts)})"
    if kind == "bool":
        return f"{text.scalar(f'{local}{TRUTH}{suffix}', 'u32')} != 0u"
    return text.scalar(f"{local}{suffix}", kind)


def member(
    text: Text,
    m: Map,
    suffix: str = "",
    buffers: Mapping[str, str] | None = None,
    wired: Mapping[str, str] | None = None,
    zero: frozenset[str] = frozenset(),
    again: Mapping[str, str] | None = None,
    loads: dict[str, tuple[str, str]] | None = None,
) -> str:
    """Write the functions of an expression and return the call that computes element ``i``.

    Args:
        text: gets functions and fields.
        m: the expression.
        suffix: ends all names, where several expressions share a kernel.
        buffers: operand -> the binding it is read from, where that has another name.
        wired: operand -> the value that another member has computed, in the operand's value type.
        zero: operands that start their buffer.
        again: operand -> a function that its value goes through.
        loads: gets the type of each operand that is read and the call that does it, by a field of ``held``
            of which the expression takes it; without it the expression reads.
    """
    buffers, wired = buffers or {}, wired or {}
    functions = text.functions
    arguments = []
    for o in m.operands:
        if o.local in wired:
            arguments.append(wired[o.local] if o.narrow is None else narrowed(o.narrow, wired[o.local]))
            continue
        if o.dtype is None:
            body = f"return {number(text, o.local, o.type, o.narrow, suffix)};"
        else:
            buffer = buffers.get(o.local, o.local)
            if o.aliased:
                name, atomic = f"index_out{suffix}", m.is_atomic
            else:
                name, atomic = f"index_{o.local}{suffix}", False
                place = index_of(text, m, o.local, o.index, suffix, o.local in zero)
                functions.append(f"fn {name}(i: u32) -> u32 {{ return {place}; }}")
            before, read = fetch(o.dtype, buffer, f"{name}(i)", atomic)
            value = convert(read, physical(o.dtype)[2], o.type)
            body = f"{before}return {value if o.narrow is None else narrowed(o.narrow, value)};"
        functions.append(f"fn load_{o.local}{suffix}(i: u32) -> {WGSL_TYPE[o.type]} {{ {body} }}")
        read = f"load_{o.local}{suffix}(i)"
        if loads is not None and o.dtype is not None:
            loads[f"{o.local}{suffix}"] = WGSL_TYPE[o.type], read
            read = f"held.{o.local}{suffix}"
        arguments.append(read)
    through = again or {}
    arguments = [
        f"{through[o.local]}({value})" if o.local in through else value
        for o, value in zip(m.operands, arguments, strict=True)
    ]
    parameters = [f"{o.local}: {WGSL_TYPE[o.type]}" for o in m.operands]
    if m.uses_index:
        parameters.append("index: u32")
        arguments.append("i")
    functions.append(
        f"fn apply{suffix}({', '.join(parameters)}) -> {WGSL_TYPE[m.result]} {{ return {m.expression}; }}"
    )
    return convert(f"apply{suffix}({', '.join(arguments)})", m.result, physical(m.out)[2])


def write(m: Map, bind: dict[str, str]) -> Launch:
    """The dispatch of one expression alone.

    Args:
        m: the expression.
        bind: binding or field -> name of an op's argument, output or temporary.
    """
    if _PLAIN.issuperset([m.out_index, *[o.index for o in m.operands]]):
        size = max(n for n in (0, MANY, LARGE) if n <= m.count)
        parts = m.name, m.expression, m.operands, m.result, m.out, m.out_index, m.by_element, size
        source, values, made = _plain_kernel(*parts)
    else:
        source, values, made = _kernel(m)
    values = {**values, "count": m.count}
    launch = Launch(source, fold(-(-m.count // made)), values, bind=bind, map=m)
    moved = _moved(m) if m.count >= MANY else ""
    if not moved:
        return launch
    return in_tiles(launch, m.name, moved, m.shape, m.strides[moved], physical(m.out)[0])


# How operands are found that need no shape and no strides.
_PLAIN = frozenset(("", "flat", "fixed"))


@lru_cache(1024)
def _plain_kernel(
    name: str,
    expression: str,
    operands: tuple[Operand, ...],
    result: str,
    out: DType,
    out_index: str,
    by_element: bool,
    size: int,
) -> tuple[KernelSource, dict[str, Any], int]:
    """The kernel of expressions of one form whose operands are all found plainly, written once for all shapes
    from a size on."""
    return _kernel(Map(name, expression, operands, result, out, out_index, by_element, (), {}, size))


def _kernel(m: Map) -> tuple[KernelSource, dict[str, Any], int]:
    """The kernel of an expression, the values of its fields, and how many invocations' work (`Map.count`) a
    workgroup does."""
    text = Text()
    text.scalar("count", "u32")
    reads = [o for o in m.operands if o.is_read]
    bindings = [
        f"@group(0) @binding({k}) var<storage, read> {o.local}: array<{physical(o.dtype)[0]}>;"
        for k, o in enumerate(reads)
        if o.dtype is not None
    ]
    stored = "atomic<u32>" if m.is_atomic else physical(m.out)[0]
    bindings.append(f"@group(0) @binding({len(reads)}) var<storage, read_write> out: array<{stored}>;")
    if m.out_index:
        place = index_of(text, m, "out", m.out_index)
        text.functions.append(f"fn index_out(i: u32) -> u32 {{ return {place}; }}")
    aliased = {o.local: "out" for o in m.operands if o.aliased}
    loads: dict[str, tuple[str, str]] = {}
    computed = member(text, m, buffers=aliased, loads=loads if m.lanes == 1 else None)
    element = WGSL_TYPE[physical(m.out)[2]]
    is_apart = m.lanes == 1 or not m.by_element
    if m.lanes > 1 and is_apart:
        # An element of the kernel is a word of several.
        text.functions.append(f"fn part(i: u32) -> {element} {{ return {computed}; }}")
        element, computed = "u32", _packed(m)
    element_of(text, element, f"return {computed};", loads)
    if is_apart:
        place = "index_out(i)" if m.out_index else "i"
        text.functions.append(f"fn store_element(i: u32, value: {element}) {{ out[{place}] = value; }}")
    else:
        text.functions.append(f"fn store_out(i: u32) {{ {_store_bits(m)} }}")
    file, kernel, made = frame(bindings, text, m.count, is_apart)
    return KernelSource(f"{file} ({m.name})", kernel, typed=True), text.values, made


def _moved(m: Map) -> str:
    """The operand of which an expression is a copy in another order, whole words each; else ""."""
    if len(m.operands) != 1 or m.out_index or m.by_element or m.lanes != 1:
        return ""
    (operand,) = m.operands
    is_move = m.expression == operand.local and operand.dtype is m.out and operand.narrow is None
    return operand.local if is_move and operand.index == "strided" else ""


def _packed(m: Map) -> str:
    """A word of packed elements."""
    width = 32 // m.lanes
    pieces = [f"({pack(m.out, f'part(i * {m.lanes}u + {k}u)')} << {k * width}u)" for k in range(m.lanes)]
    return " | ".join(pieces)


def _store_bits(m: Map) -> str:
    """Neighbours share a word and belong to other invocations: each changes its own bits only."""
    width, mask, shift = 32 // m.lanes, (1 << 32 // m.lanes) - 1, 1 if m.lanes == 2 else 2
    return (
        f"let bits = {pack(m.out, 'element(i)')}; let k = index_out(i); let place = (k & {m.lanes - 1}u) * "
        f"{width}u; "
        f"atomicAnd(&out[k >> {shift}u], ~({mask}u << place)); atomicOr(&out[k >> {shift}u], bits << place);"
    )
