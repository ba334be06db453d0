"""Kernels: reads ``wgsl/``, fills holes by name, packs parameters. Knows nothing of ops, tensors or
autograd."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..device.resources import path, read_text
from ..errors import DTypeError, KernelError
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType

# How a kernel sees a dtype: the element type of the buffer, elements per u32 word, and the type of a value
# once loaded.
# "i64" values are vec2<u32>, low word first; see wgsl/parts/number/int64.wgsl.
PHYSICAL: dict[DType, tuple[str, int, str]] = {
    dt.float32: ("f32", 1, "f32"),
    dt.int32: ("i32", 1, "i32"),
    dt.uint32: ("u32", 1, "u32"),
    dt.int64: ("vec2<u32>", 1, "i64"),
    dt.float16: ("u32", 2, "f32"),
    dt.bfloat16: ("u32", 2, "f32"),
    dt.int16: ("u32", 2, "i32"),
    dt.uint16: ("u32", 2, "u32"),
    dt.int8: ("u32", 4, "i32"),
    dt.uint8: ("u32", 4, "u32"),
    dt.bool_: ("u32", 4, "bool"),
}
NATIVE = {"f32": dt.float32, "i32": dt.int32, "u32": dt.uint32, "vec2<u32>": dt.int64}
WGSL_TYPE = {"f32": "f32", "i32": "i32", "u32": "u32", "i64": "vec2<u32>", "bool": "bool"}

_UNPACK = {
    dt.float16: "half_to_float({bits})",
    dt.bfloat16: "bfloat_to_float({bits})",
    dt.int16: "(bitcast<i32>({bits} << 16u) >> 16u)",
    dt.uint16: "{bits}",
    dt.int8: "(bitcast<i32>({bits} << 24u) >> 24u)",
    dt.uint8: "{bits}",
    dt.bool_: "({bits} != 0u)",
}
_PACK = {
    dt.float16: "float_to_half({value})",
    dt.bfloat16: "float_to_bfloat({value})",
    dt.int16: "(bitcast<u32>({value}) & 0xffffu)",
    dt.uint16: "({value} & 0xffffu)",
    dt.int8: "(bitcast<u32>({value}) & 0xffu)",
    dt.uint8: "({value} & 0xffu)",
    dt.bool_: "u32({value})",
}
_CONVERT = {
    ("f32", "i32"): "float_to_i32({})",
    ("f32", "u32"): "float_to_u32({})",
    ("f32", "i64"): "i64_from_f32({})",
    # By the bits: NaN is true, and a device that flushes subnormals must not change the answer.
    ("f32", "bool"): "((bitcast<u32>({}) & 0x7fffffffu) != 0u)",
    ("i32", "f32"): "f32({})",
    ("i32", "u32"): "bitcast<u32>({})",
    ("i32", "i64"): "i64_from_i32({})",
    ("i32", "bool"): "({} != 0)",
    ("u32", "f32"): "f32({})",
    ("u32", "i32"): "bitcast<i32>({})",
    ("u32", "i64"): "vec2<u32>({}, 0u)",
    ("u32", "bool"): "({} != 0u)",
    ("i64", "f32"): "i64_to_f32({})",
    ("i64", "i32"): "bitcast<i32>(({}).x)",
    ("i64", "u32"): "({}).x",
    ("i64", "bool"): "any({} != vec2<u32>(0u))",
    ("bool", "f32"): "f32({})",
    ("bool", "i32"): "i32({})",
    ("bool", "u32"): "u32({})",
    ("bool", "i64"): "vec2<u32>(u32({}), 0u)",
}


def physical(d: DType) -> tuple[str, int, str]:
    """(element type of the buffer, elements per word, value type) of a dtype on webgpu.

    Raises:
        DTypeError: webgpu has no such type.
    """
    try:
        return PHYSICAL[d]
    except KeyError:
        raise DTypeError(
            f"{d} does not exist on webgpu. Use float32 there, for example x.to(pellucid.float32), or the "
            "cpu device."
        ) from None


def fetch(d: DType, buffer: str, index: str, atomic: bool = False) -> tuple[str, str]:
    """Statements and the expression that read element ``index`` of a buffer of dtype ``d``, as its value
    type."""
    _, lanes, _ = physical(d)
    word = f"atomicLoad(&{buffer}[{{}}])" if atomic else f"{buffer}[{{}}]"
    if lanes == 1:
        return "", word.format(index)
    shift = 1 if lanes == 2 else 2
    width = 32 // lanes
    bits = f"(({word.format(f'k >> {shift}u')} >> ((k & {lanes - 1}u) * {width}u)) & {(1 << width) - 1}u)"
    return f"let k = {index}; ", _UNPACK[d].format(bits=bits)


def register_type(d: DType) -> str:
    """The WGSL type in which kernels that only move elements hold one of dtype ``d``: a hole for ``alias
    T``."""
    value = physical(d)[2]
    return "u32" if value == "bool" else WGSL_TYPE[value]


def pack(d: DType, value: str) -> str:
    """The expression of the bits of a packed element, in the low end of a u32."""
    return _PACK[d].format(value=value)


def narrowed(d: DType, value: str) -> str:
    """The expression of a number as an element of a packed dtype would hold it."""
    return _UNPACK[d].format(bits=_PACK[d].format(value=value))


def convert(expression: str, source: str, target: str) -> str:
    """An expression of value type ``source`` turned into ``target``."""
    return expression if source == target else _CONVERT[source, target].format(expression)


def flag(on: bool) -> str:
    """A bool as the value of a hole."""
    return str(on).lower()


@dataclass(frozen=True)
class ParamsField:
    """One field of Params: its type and the word at which it lies."""

    type: str
    word: int


@dataclass(frozen=True)
class Binding:
    """A storage binding of group 0."""

    name: str
    written: bool
    element: str


_BINDING = re.compile(r"@group\(0\) @binding\(\d+\)\s*var<storage, (read|read_write)> (\w+): array<(.+)>;")


class KernelHeader(NamedTuple):
    """What the header of a kernel's file says of fusion: rules 15 and 16 of wgsl/README.md.

    Args:
        input: the binding that it reads through ``load_<input>(i)`` alone; None if there is none.
        outputs: bindings that it writes through functions ``store_<name>(i, ...)`` alone.
        joins: the kernels whose launches it takes the place of, in order.
        joint: kernels of several launches of this one, and of two that make their results together.
        norms: kernels whose work it does with NORM.
    """

    input: str | None = None
    outputs: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    joint: tuple[str, ...] = ()
    norms: tuple[str, ...] = ()


_ALIAS = re.compile(r"^alias (\w+) = (.*);", re.M)
_PARAMS = re.compile(r"struct Params \{(.*?)\}", re.S)
_PARAMS_LINE = "@group(1) @binding(0) var<uniform> params: Params;"
# Texts whose declarations are remembered.
_MOST_TEXTS = 1024
_USES = re.compile(r"^// +uses +(.+)$", re.M)
_FACTS = re.compile(r"^// +(fuses|joins|joint|norms)\b *(.*)$", re.M)
_FUSES = re.compile(r"(\w+)? *-> *(\w+(?:, *\w+)*)?")
_KERNELS = re.compile(r"\w+(?:/\w+)+(?:, *\w+(?:/\w+)+)*")
_NO_HEADER = KernelHeader()
_DECLARED = r"^@group\(0\) @binding\(\d+\)\s*var<storage, (?:read|read_write)> {}: array<.+>;\n"
_SIZES = {
    "u32": 1,
    "i32": 1,
    "f32": 1,
    "vec4<u32>": 4,
    "vec4<f32>": 4,
    "vec4<i32>": 4,
    "vec4u": 4,
    "vec4f": 4,
}


@lru_cache(_MOST_TEXTS)
def _declarations(
    name: str, text: str
) -> tuple[str, dict[str, str], tuple[Binding, ...], dict[str, ParamsField], int]:
    """A text, its aliases, bindings and fields of Params, and the words of these. Kernels of tensors of
    different shapes mostly have one text, which is kept once."""
    aliases = {m[1]: m[2] for m in _ALIAS.finditer(text)}
    bindings = tuple(
        Binding(m[2], m[1] == "read_write", aliases.get(m[3], m[3])) for m in _BINDING.finditer(text)
    )
    found = _PARAMS.search(text)
    fields: dict[str, ParamsField] = {}
    if not found:
        return text, aliases, bindings, fields, 0
    at, align = 0, 1
    for part in re.sub(r"//[^\n]*", "", found[1]).split(","):
        if not part.strip():
            continue
        field_name, field_type = (p.strip() for p in part.split(":", 1))
        size = _SIZES.get(field_type)
        if size is None:
            raise KernelError(
                f"{name}: field {field_name} of Params has type {field_type}. Use u32, i32, f32 or a vec4 "
                "of them."
            )
        at = -(-at // size) * size
        align = max(align, size)
        fields[field_name] = ParamsField(field_type, at)
        at += size
    return text, aliases, bindings, fields, -(-at // align) * align


def _replaced(name: str, text: str, pattern: str, replacement: str | Callable, what: str) -> str:
    """A kernel's text with the first match of a pattern replaced.

    Raises:
        KernelError: there is none.
    """
    text, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
    if not count:
        raise KernelError(f"{name}: there is no {what} to replace.")
    return text


class KernelSource:
    """A WGSL text with its declarations, ready to be filled. Immutable: an edit makes a new one, and raises
    KernelError where it finds nothing to change.

    Args:
        name: the file's, for messages.
        text: the WGSL.
        typed: whether the bindings are written for the dtypes of their tensors already.
        header: what its file says of fusion.
    """

    __slots__ = (
        "__weakref__", "aliases", "bindings", "fields", "header", "name", "params_words", "text", "typed",
    )  # fmt: skip

    def __init__(self, name: str, text: str, typed: bool = False, header: KernelHeader = _NO_HEADER):
        self.name = name
        self.typed = typed
        self.header = header
        self.text, self.aliases, self.bindings, self.fields, self.params_words = _declarations(name, text)

    def _with(self, text: str) -> KernelSource:
        return KernelSource(self.name, text, self.typed, self.header)

    def const(self, name: str) -> str:
        """The value of a const, as the text has it."""
        found = re.search(rf"^const {name}(?:: \w+)? = (.+?);", self.text, re.M)
        if found is None:
            raise KernelError(f"{self.name}: there is no const called {name}.")
        return found[1]

    def as_typed(self) -> KernelSource:
        """The same source, whose bindings are written for the dtypes of their tensors."""
        return KernelSource(self.name, self.text, True, self.header)

    def with_part(self, part: str, other: str) -> KernelSource:
        """A new source that uses another part in the place of one."""
        pattern = rf"^(// +uses +(?:.*, *)?){re.escape(part)}(?= *(?:,|$))"
        return self._with(
            _replaced(self.name, self.text, pattern, rf"\g<1>{other}", f"part {part} in a line 'uses'")
        )

    def with_element(self, binding: str, element: str) -> KernelSource:
        """A new source that has a binding as an array of another type."""
        pattern = rf"(var<storage, (?:read|read_write)> {binding}: array<).+(>;)"
        text = _replaced(self.name, self.text, pattern, rf"\g<1>{element}\g<2>", f"binding {binding}")
        return self._with(text)

    def with_functions(self, lines: Mapping[str, str]) -> KernelSource:
        """A new source with other lines for one-line functions, by name."""
        text = self.text
        for name, line in lines.items():
            what = f"one-line fn {name}"
            text = _replaced(self.name, text, rf"^fn {name}\(.*\}}$", lambda m, line=line: line, what)
        return self._with(text)

    def with_params(self, fields: Sequence[str]) -> KernelSource:
        """A new source with these declarations of fields in Params."""
        declared = f"struct Params {{ {', '.join(fields)} }}"
        return self._with(
            _replaced(self.name, self.text, r"struct Params \{[^}]*\}", declared, "struct Params")
        )

    def without(self, *bindings: str) -> KernelSource:
        """A new source that does not declare some bindings, which must be on lines of their own."""
        text, header = self.text, self.header
        for name in bindings:
            what = f"binding {name} on a line of its own"
            text = _replaced(self.name, text, _DECLARED.format(name), "", what)
        kept = header._replace(
            input=None if header.input in bindings else header.input,
            outputs=tuple([name for name in header.outputs if name not in bindings]),
        )
        return KernelSource(self.name, text, self.typed, kept)

    def fill(self, holes: Mapping[str, str]) -> KernelSource:
        """A new source with declarations replaced by name.

        A hole is ``alias NAME``, ``const NAME`` (the value after ``=``), or a one-line ``fn NAME`` (the
        body's expression or statements).

        Raises:
            KernelError: no declaration has that name.
        """
        text = self.text
        for name, value in holes.items():
            for pattern, replacement in (
                (rf"^(alias {name} = ).*?;", rf"\g<1>{value};"),
                (rf"^(const {name}(?:: \w+)? = ).*?;", rf"\g<1>{value};"),
                (rf"^(fn {name}\(.*?\)(?: -> [\w<>]+)? \{{ ).*( \}})$", None),
            ):
                if replacement is None:
                    body = value if value.rstrip().endswith(";") else f"return {value};"
                    text, count = re.subn(
                        pattern, lambda m, body=body: m[1] + body + m[2], text, count=1, flags=re.M
                    )
                else:
                    text, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
                if count:
                    break
            else:
                raise KernelError(
                    f"{self.name}: there is no alias, const or one-line fn called {name} to replace."
                )
        return self._with(text)

    def retype(self, binding: str, d: DType) -> KernelSource:
        """A new source that reads ``binding`` as dtype ``d``: its element type and the body of
        ``load_<binding>`` change."""
        element, _, value = physical(d)
        declared = next((b for b in self.bindings if b.name == binding), None)
        if declared is None or (declared.element == element and (PHYSICAL[d][1] == 1)):
            return self
        pattern = rf"^(fn load_{binding}\(.*?\) -> )([\w<>]+)( \{{ )return {binding}\[(.*)\];( \}})$"
        found = re.search(pattern, self.text, re.M)
        if found is None:
            raise KernelError(
                f"{self.name}: {binding} has dtype {d}, but no one-line fn load_{binding} returns "
                f"{binding}[...]."
            )
        declared_type = self.aliases.get(found[2], found[2])
        target = next(k for k, v in WGSL_TYPE.items() if v == declared_type)
        before, expression = fetch(d, binding, found[4])
        line = f"{found[1]}{found[2]}{found[3]}{before}return {convert(expression, value, target)};{found[5]}"
        return self.with_functions({f"load_{binding}": line}).with_element(binding, element)

    def finish(self, immediate: bool) -> str:
        """The whole text: parts joined, parameters as immediates if asked."""
        text = self.text
        if immediate:
            line = "var<immediate> params: Params;"
            text = _replaced(self.name, text, re.escape(_PARAMS_LINE), line, f"line {_PARAMS_LINE}")
        parts: dict[str, str] = {}
        _collect(text, parts)
        whole = "\n".join([text, *parts.values()])
        # Browsers ask for the directive; the native compiler has subgroups without it, and refuses it.
        is_asked = sys.platform == "emscripten" and re.search(r"\bsubgroup[A-Z]\w*\(", whole)
        return f"enable subgroups;\n{whole}" if is_asked else whole


_LOOP = re.compile(r"\b(?:for|while|loop)\b")
_CALLED = re.compile(r"\b(\w+)\(")
_DEFINED = re.compile(r"^fn (\w+)\(", re.M)


@cache
def _files_of_parts() -> dict[str, Path]:
    """The files of ``wgsl/parts`` by their names, by which headers say what they use."""
    return {file.stem: file for file in sorted(path("wgsl/parts").rglob("*.wgsl"))}


@cache
def _parts() -> dict[str, str]:
    """Function name -> the part that defines it, over all of ``wgsl/parts``: expressions and rewritten bodies
    name no part."""
    return {
        function: file.stem
        for file in _files_of_parts().values()
        for function in _DEFINED.findall(file.read_text(encoding="utf-8"))
    }


@cache
def _looping() -> frozenset[str]:
    """Functions of ``wgsl/parts`` that loop, or call one that does; few turns that are known do not count."""
    bodies: dict[str, str] = {}
    for file in _files_of_parts().values():
        text = file.read_text(encoding="utf-8")
        if not re.search(r"^// +turns +\d+$", text, re.M):
            text = re.sub(r"//[^\n]*", "", text)
            bodies |= {m[1]: m[2] for m in re.finditer(r"^fn (\w+)\((.*?)(?=^fn |\Z)", text, re.M | re.S)}
    found = {name for name, body in bodies.items() if _LOOP.search(body)}
    while more := {n for n, body in bodies.items() if n not in found and found & set(_CALLED.findall(body))}:
        found |= more
    return frozenset(found)


def loops(expression: str) -> bool:
    """Whether a WGSL expression calls a function that loops."""
    return not _looping().isdisjoint(_CALLED.findall(expression))


def _collect(text: str, parts: dict[str, str]) -> None:
    names = {n.strip() for m in _USES.finditer(text) for n in m[1].split(",")}
    called, own = set(_CALLED.findall(text)), set(_DEFINED.findall(text))
    names |= {part for function in called - own if (part := _parts().get(function)) is not None}
    for name in sorted(names):
        if name not in parts:
            file = f"wgsl/{name}.wgsl" if "/" in name else str(_files_of_parts()[name])
            parts[name] = part = read_text(file)
            _collect(part, parts)


@cache
def load(name: str) -> KernelSource:
    """The source of ``wgsl/<name>.wgsl``.

    Raises:
        KernelError: its header says something of fusion that does not fit.
    """
    source = KernelSource(name, read_text(f"wgsl/{name}.wgsl"))
    return KernelSource(name, source.text, header=header_of(source))


def header_of(source: KernelSource) -> KernelHeader:
    """What the header of a file says of fusion.

    Raises:
        KernelError: a line has another form, comes twice, or names a binding that there is not.
    """
    header = _NO_HEADER
    access = {b.name: "written" if b.written else "read" for b in source.bindings}
    seen: set[str] = set()
    for name, value in _FACTS.findall(source.text):
        says = f"{source.name}: the header says '{name} {value}'"
        found = (_FUSES if name == "fuses" else _KERNELS).fullmatch(value.strip())
        if name in seen or found is None or value.strip() == "->":
            form = (
                "input -> outputs, where one side may be empty" if name == "fuses" else "folder/kernel, ..."
            )
            raise KernelError(f"{says}. Write one line: {name} {form}.")
        seen.add(name)
        if name != "fuses":
            header = header._replace(**{name: _names(value)})
            continue
        header = header._replace(input=found[1], outputs=_names(found[2] or ""))
        for binding, wanted in [(header.input, "read"), *[(output, "written") for output in header.outputs]]:
            if binding is not None and access.get(binding) != wanted:
                raise KernelError(f"{says}, but {binding} is no binding that is {wanted}.")
    return header


def _names(listed: str) -> tuple[str, ...]:
    return tuple([name.strip() for name in listed.split(",") if name.strip()])


@dataclass
class Launch:
    """One dispatch: which file, how its holes and parameters are filled, how many workgroups.

    Args:
        file: a name below ``wgsl/`` without its ending, or a `KernelSource`.
        grid: workgroups; a number is folded into two dimensions past 65,535, a tuple is taken as it is.
        params: values of the fields of Params. ``<binding>_offset`` fields, fields named like a float
            argument and ``op`` are filled by the op.
        holes: declarations to replace (`KernelSource.fill`).
        bind: binding name -> name of an op's argument, output or temporary, where they differ.
            ``"tensors[2]"`` picks one of a list.
        map: the expression, for kernels that are one: others may take it up.
        at_most: of fields that each run brings the largest value, where a loop is as long (`turns.py`).
    """

    file: str | KernelSource
    grid: int | tuple[int, int, int]
    params: dict[str, int | float] = field(default_factory=dict)
    holes: dict[str, str] = field(default_factory=dict)
    bind: dict[str, str] = field(default_factory=dict)
    map: Any = None
    at_most: dict[str, int] = field(default_factory=dict)

    @property
    def source(self) -> KernelSource:
        return load(self.file) if isinstance(self.file, str) else self.file


def fold(groups: int, limit: int = 65535) -> tuple[int, int, int]:
    """A number of workgroups as a grid within the limit of one dimension.

    Example:
        >>> fold(10), fold(70000)
        ((10, 1, 1), (35000, 2, 1))
    """
    if groups <= limit:
        return max(groups, 1), 1, 1
    rows = -(-groups // limit)
    return -(-groups // rows), rows, 1


def pack_params(source: KernelSource, values: Mapping[str, Any]) -> bytes:
    """The bytes of Params from values by field name.

    Raises:
        KernelError: a field is missing or unknown.
    """
    missing, extra = source.fields.keys() - values.keys(), values.keys() - source.fields.keys()
    if missing or extra:
        raise KernelError(
            f"{source.name}: Params lacks a value for {sorted(missing)} and has no field {sorted(extra)}."
        )
    block = bytearray(4 * source.params_words)
    for name, where in source.fields.items():
        value = values[name]
        items = value if isinstance(value, (tuple, list)) else (value,)
        is_float = where.type in ("f32", "vec4<f32>", "vec4f")
        for k, item in enumerate(items):
            block[4 * (where.word + k) : 4 * (where.word + k) + 4] = (
                struct.pack("<f", item) if is_float else struct.pack("<I", int(item) & 0xFFFFFFFF)
            )
    return bytes(block)
