"""Source of a kernel: a WGSL text, its declarations, and the holes that are filled by name. Knows nothing of
ops, tensors or autograd."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from ...device.resources import read_text
from ...errors import DTypeError, KernelError
from ...tensors.dtypes import DType
from .element_types import PHYSICAL, WGSL_TYPE, convert, fetch, physical
from .header import COMPACT, FULL, NO_HEADER, KernelHeader, header_of
from .parts import collect


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


# A pattern that begins with a newline is found by its first letters, one with ^ by a look at every letter.
_ALIAS = re.compile(r"\nalias (\w+) = (.*);")
_LINE_COMMENT = re.compile(r"//[^\n]*")
_PARAMS = re.compile(r"struct Params \{(.*?)\}", re.S)
_PARAMS_LINE = "@group(1) @binding(0) var<uniform> params: Params;"
# Texts whose declarations are remembered.
_MOST_TEXTS = 1024
# Patterns for all names, not one for each: compiling a pattern takes longer than a search of a whole kernel.
_LINE_OF_BINDING = re.compile(
    r"^@group\(0\) @binding\(\d+\)\s*var<storage, (?:read|read_write)> (\w+): array<.+>;\n", re.M
)
_SUBGROUP = re.compile(r"\bsubgroup[A-Z]\w*\(")
_ELEMENT = re.compile(r"(var<storage, (?:read|read_write)> (\w+): array<).+(>;)")
_VALUE = re.compile(r"^((?:alias|const) (\w+)(?:: \w+)? = )(.*?);", re.M)
_FUNCTION = re.compile(r"^(fn (\w+)\(.*?\)(?: -> [\w<>]+)? \{ )(.*)( \})$", re.M)
_ONE_LINE = re.compile(r"^fn (\w+)\(.*\}$", re.M)
_LOAD = re.compile(r"^(fn load_(\w+)\(.*?\) -> )([\w<>]+)( \{ )return \2\[(.*)\];( \})$", re.M)
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


# The field of Params that the host makes 0 and 1 in turns, from one run of a kernel that has it to the next.
TURN = "host_turn"


@lru_cache(_MOST_TEXTS)
def _declarations(
    name: str, text: str
) -> tuple[str, dict[str, str], tuple[Binding, ...], dict[str, ParamsField], int]:
    """A text, its aliases, bindings and fields of Params, and the words of these. Kernels of tensors of
    different shapes mostly have one text, which is kept once."""
    aliases = {m[1]: m[2] for m in _ALIAS.finditer(f"\n{text}")}
    bindings = tuple(
        Binding(m[2], m[1] == "read_write", aliases.get(m[3], m[3])) for m in _BINDING.finditer(text)
    )
    found = _PARAMS.search(text)
    fields: dict[str, ParamsField] = {}
    if not found:
        return text, aliases, bindings, fields, 0
    at, align = 0, 1
    for part in _LINE_COMMENT.sub("", found[1]).split(","):
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


@lru_cache(_MOST_TEXTS)
def _fillable(text: str) -> frozenset[str]:
    """Names of the aliases, consts and one-line functions of a text."""
    return frozenset([m[2] for pattern in (_VALUE, _FUNCTION) for m in pattern.finditer(text)])


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

    def __init__(self, name: str, text: str, typed: bool = False, header: KernelHeader = NO_HEADER):
        self.name = name
        self.typed = typed
        self.header = header
        self.text, self.aliases, self.bindings, self.fields, self.params_words = _declarations(name, text)

    def _with(self, text: str) -> KernelSource:
        return KernelSource(self.name, text, self.typed, self.header)

    def declares(self, name: str) -> bool:
        """Whether there is a const or a one-line function of that name."""
        return name in _fillable(self.text)

    def const(self, name: str) -> str:
        """The value of a const, as the text has it."""
        for m in _VALUE.finditer(self.text):
            if m[2] == name and m[1].startswith("const"):
                return m[3]
        raise KernelError(f"{self.name}: there is no const called {name}.")

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
        edited = []

        def edit(m: re.Match[str]) -> str:
            if m[2] != binding or edited:
                return m[0]
            edited.append(binding)
            return f"{m[1]}{element}{m[3]}"

        text = _ELEMENT.sub(edit, self.text)
        if not edited:
            raise KernelError(f"{self.name}: there is no binding {binding} to replace.")
        return self._with(text)

    def with_functions(self, lines: Mapping[str, str]) -> KernelSource:
        """A new source with other lines for one-line functions, by name."""
        return self._with(self._lines_replaced(self.text, lines))

    def _lines_replaced(self, text: str, lines: Mapping[str, str]) -> str:
        left = dict(lines)
        text = _ONE_LINE.sub(lambda m: left.pop(m[1], m[0]), text)
        if left:
            raise KernelError(f"{self.name}: there is no one-line fn {next(iter(left))} to replace.")
        return text

    def inner(self, lines: Mapping[str, str], fields: Sequence[str]) -> str:
        """The text for a kernel with bindings of its own: without any, with other lines for one-line
        functions by name, and with these declarations of fields in Params."""
        text, count = _LINE_OF_BINDING.subn("", self.text)
        if count != len(self.bindings):
            raise KernelError(f"{self.name}: not all bindings are on lines of their own.")
        return self._params_replaced(self._lines_replaced(text, lines), fields)

    def with_params(self, fields: Sequence[str]) -> KernelSource:
        """A new source with these declarations of fields in Params."""
        return self._with(self._params_replaced(self.text, fields))

    def _params_replaced(self, text: str, fields: Sequence[str]) -> str:
        declared = f"struct Params {{ {', '.join(fields)} }}"
        return _replaced(self.name, text, r"struct Params \{[^}]*\}", declared, "struct Params")

    def without(self, *bindings: str) -> KernelSource:
        """A new source that does not declare some bindings, which must be on lines of their own."""
        left, header = set(bindings), self.header

        def edit(m: re.Match[str]) -> str:
            if m[1] not in left:
                return m[0]
            left.remove(m[1])
            return ""

        text = _LINE_OF_BINDING.sub(edit, self.text)
        if left:
            raise KernelError(
                f"{self.name}: there is no binding {min(left)} on a line of its own to replace."
            )
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
        left = dict(holes)

        def value(m: re.Match[str]) -> str:
            return f"{m[1]}{left.pop(m[2])};" if m[2] in left else m[0]

        def body(m: re.Match[str]) -> str:
            if m[2] not in left:
                return m[0]
            filled = left.pop(m[2])
            return f"{m[1]}{filled if filled.rstrip().endswith(';') else f'return {filled};'}{m[4]}"

        text = _FUNCTION.sub(body, _VALUE.sub(value, self.text))
        if left:
            raise KernelError(
                f"{self.name}: there is no alias, const or one-line fn called {next(iter(left))} to replace."
            )
        return self._with(text)

    def retype(self, binding: str, d: DType) -> KernelSource:
        """A new source that reads ``binding`` as dtype ``d``: its element type and the body of
        ``load_<binding>`` change."""
        element, _, value = physical(d)
        declared = next((b for b in self.bindings if b.name == binding), None)
        if declared is None or (declared.element == element and (PHYSICAL[d][1] == 1)):
            return self
        found = next((m for m in _LOAD.finditer(self.text) if m[2] == binding), None)
        if found is None:
            raise KernelError(
                f"{self.name}: {binding} has dtype {d}, but no one-line fn load_{binding} returns "
                f"{binding}[...]."
            )
        declared_type = self.aliases.get(found[3], found[3])
        target = next(k for k, v in WGSL_TYPE.items() if v == declared_type)
        if value == "c64" != target:
            raise DTypeError(f"there is no kernel for {d} on webgpu. Use the cpu device.")
        before, expression = fetch(d, binding, found[5])
        line = f"{found[1]}{found[3]}{found[4]}{before}return {convert(expression, value, target)};{found[6]}"
        return self.with_functions({f"load_{binding}": line}).with_element(binding, element)

    def finish(self, immediate: bool) -> str:
        """The whole text: parts joined, parameters as immediates if asked."""
        return _finished(self.name, self.text, immediate)


# Launches of other shapes mostly have one text.
@lru_cache(_MOST_TEXTS)
def _finished(name: str, text: str, immediate: bool) -> str:
    if immediate:
        if _PARAMS_LINE not in text:
            raise KernelError(f"{name}: there is no line {_PARAMS_LINE} to replace.")
        text = text.replace(_PARAMS_LINE, "var<immediate> params: Params;", 1)
    whole = f"{text}\n{collect(text)}"
    # Browsers ask for the directive; the native compiler has subgroups without it, and refuses it.
    is_asked = sys.platform == "emscripten" and "subgroup" in whole and _SUBGROUP.search(whole)
    return f"enable subgroups;\n{whole}" if is_asked else whole


def compact(whole: str) -> str:
    """The whole text of a kernel with a ``const COMPACT`` in the form that compiles sooner and runs slower,
    with the same results."""
    return whole.replace(FULL, COMPACT, 1)


@cache
def load(name: str) -> KernelSource:
    """The source of ``wgsl/<name>.wgsl``.

    Raises:
        KernelError: its header says something of fusion that does not fit.
    """
    source = KernelSource(name, read_text(f"wgsl/{name}.wgsl"))
    access = {b.name: "written" if b.written else "read" for b in source.bindings}
    return KernelSource(name, source.text, header=header_of(name, source.text, access))
