"""The kernel of a group: the texts of its members joined, with one set of buffers and parameters."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import Any

from ...device.stream import stream
from ...errors import KernelError
from ...tensors.dtypes import bool_
from ...tensors.meta import Meta
from ..expression import Map, member
from ..kernel.element_types import WGSL_TYPE, convert, narrowed, pack, physical
from ..kernel.frame import Text, element_of, frame
from ..kernel.parts import loops
from ..kernel.source import KernelSource
from ..launches import MOST_PARAMS, RegisteredLaunch, most_buffers, on_thin, register
from .facts import FIXED_AT_ZERO
from .groups import Group, Member, Value
from .sites import Site, sites
from .work import WRITING, Work

# Where a word comes from: the number of a member, and the word of its command behind the head.
Word = tuple[int, int]


@dataclass
class Fused:
    """A launch that stands for a group.

    Args:
        node: the launch.
        words: for each word of its commands, where it lies in the window.
        zeros: words of the window that were taken to be zero.
    """

    node: RegisteredLaunch
    words: list[int]
    zeros: list[int]


@dataclass
class _Recipe:
    """The same for all groups of one form.

    Args:
        node: the launch; None where none can be made.
        words: for each word of its commands, where it comes from.
        zeros: words that were taken to be zero.
    """

    node: RegisteredLaunch | None
    words: list[Word]
    zeros: list[Word]


# By form: what was made of groups before. A model's layers are alike.
_recipes: dict[tuple, _Recipe] = {}
_MOST_RECIPES = 4096


class _Writer:
    """Writes the kernel of one group."""

    def __init__(self, group: Group, words: list[int]):
        self.group = group
        self.words = words
        self.text = Text()
        self.bindings: list[str] = []
        self.metas: list[Meta | None] = []
        self.slots_at: list[Word] = []  # where the slot of each binding comes from
        self.patches_at: dict[str, Word] = {}  # likewise each field that runs bring
        self.values: dict[str, Any] = {}  # of all fields
        self.ins: dict[tuple[int, str], str] = {}
        self.outs: dict[int, str] = {}
        self.names: dict[tuple[Member, int], str] = {}  # how the kernel calls a value
        self.zeros: list[Word] = []
        self.opaque: set[str] = set()

    # Members

    def statements(self, members: list[Member], loads: dict[str, tuple[str, str]] | None = None) -> list[str]:
        """Lines that compute the values of expressions for element ``i``, one after the other; ``loads`` as
        `member` has it."""
        for m in members:
            if any(o.aliased and o.local not in m.wires for o in expression_of(m).operands):
                self.out(Value(m, m.facts.out))  # read before it is written, through one binding
        lines = []
        for m in members:
            expression = expression_of(m)
            suffix = f"_m{self.group.members.index(m)}"
            wired, buffers, zero = {}, {}, set()
            veils, slots, again = count(), set(), {}
            if any(o.aliased and o.local not in m.wires for o in expression.operands):
                self.text.functions.append(f"fn index_out{suffix}(i: u32) -> u32 {{ return i; }}")
            for o in expression.operands:
                if o.local in m.wires:
                    wired[o.local] = self._handed_on(m.wires[o.local], o.type, next(veils))
                    continue
                if o.dtype is None:
                    continue
                slot = m.slot("out" if o.aliased else o.local)
                if slot in slots and o.type == "f32":
                    again[o.local] = self._opaque(next(veils))
                slots.add(slot)
                if o.aliased:
                    buffers[o.local] = self.out(Value(m, m.facts.out))
                else:
                    buffers[o.local] = self._read(m, o.local)
                    if self._is_zero(m, o.local):
                        zero.add(o.local)
            call = member(self.text, expression, suffix, buffers, wired, frozenset(zero), again, loads)
            name = f"value{suffix}"
            lines.append(f"let {name} = {call};")
            self.names[m, m.facts.out] = name
            self._note_fields(m, suffix)
        return lines

    def _handed_on(self, value: Value, wanted: str, veil: int = 0) -> str:
        """A value as another one's operand, rounded as if it had been stored between."""
        d = value.meta.dtype
        expression = self.names[value.member, value.number]
        if physical(d)[1] > 1 and d is not bool_:
            expression = narrowed(d, expression)
        elif physical(d)[2] == "f32":
            return convert(f"{self._opaque(veil)}({expression})", "f32", wanted)
        if physical(d)[2] == "c64":
            parts = [f"{self._opaque(veil)}({expression}.{part})" for part in "xy"]
            expression = f"vec2<f32>({', '.join(parts)})"
        found = convert(expression, physical(d)[2], wanted)
        return f"{self._opaque(veil)}({found})" if wanted == "f32" else found

    def _opaque(self, veil: int) -> str:
        """The function of a float of which a compiler knows no more than of one that was stored between: it
        makes abs(a) from sqrt(a) * sqrt(a), a from 1 / (1 / a), and believes that rsqrt(a) is positive. The
        sign bit of a size is zero, which no compiler knows. Nor does it know that values behind two veils are
        the same: it makes 1 from a / a; nor that a bool or an integer is always 0, of which it makes 0 * NaN.
        """
        name = f"handed_on_{veil}" if veil else "handed_on"
        if name not in self.opaque:
            self.opaque.add(name)
            anchor = self.group.anchor
            size = (
                self.text.scalar("count", "u32")
                if anchor is None
                else f"params.{next(n for n, f in anchor.node.source.fields.items() if f.type == 'u32')}"
            )
            bits = f"bitcast<u32>(value) ^ (({size} >> 31u) << {veil}u)"
            self.text.functions.append(f"fn {name}(value: f32) -> f32 {{ return bitcast<f32>({bits}); }}")
        return name

    def _read(self, m: Member, local: str) -> str:
        """The binding of an operand; tensors of one slot and type share it."""
        slot = m.slot(local)
        if slot in self.outs:
            return self.outs[slot]
        number = m.facts.numbers[local]
        key = (slot, m.node.source.bindings[number].element)
        if key not in self.ins:
            where = self._word(m, number)
            self.ins[key] = self._bind(f"in{len(self.ins)}", "read", key[1], where, m.node.metas[number])
        return self.ins[key]

    def out(self, value: Value) -> str:
        """The binding that a value's slot is written through."""
        slot = value.slot
        if slot not in self.outs:
            where = self._word(value.member, value.number)
            element = physical(value.meta.dtype)[0]
            self.outs[slot] = self._bind(f"out{len(self.outs)}", "read_write", element, where, value.meta)
        return self.outs[slot]

    def _word(self, m: Member, number: int) -> Word:
        """A word of a member's command."""
        return self.group.members.index(m), number

    def _patch(self, m: Member, number: int) -> Word:
        """A word that a member's runs bring."""
        return self._word(m, len(m.command.slots) + number)

    def _bind(self, name: str, access: str, element: str, where: Word, meta: Meta | None) -> str:
        line = f"@group(0) @binding({len(self.bindings)}) var<storage, {access}> {name}: array<{element}>;"
        self.bindings.append(line)
        self.slots_at.append(where)
        self.metas.append(meta)
        return name

    def _is_zero(self, m: Member, local: str) -> bool:
        offset = m.facts.offsets[m.facts.numbers[local]]
        if offset < 0:
            return offset == FIXED_AT_ZERO
        if self.words[m.command.words[offset]]:
            return False
        self.zeros.append(self._word(m, offset))
        return True

    def _note_fields(self, m: Member, suffix: str) -> None:
        declared = {f.partition(":")[0] for f in self.text.fields}
        for name, value in m.node.values.items():
            if (new := f"{name}{suffix}") in declared:
                self.values[new] = value
                if name in m.node.patched:
                    self.patches_at[new] = self._patch(m, m.node.patched.index(name))

    def _stored(self, values: list[Value]) -> list[Value]:
        """Of values in their order those that are written: the last one of each slot that lives on."""
        last = {value.slot: value for value in values}
        return [value for slot, value in last.items() if slot in self.group.live]

    # Whole kernels

    def expressions(self) -> tuple[KernelSource, int]:
        """A kernel of expressions only, and its workgroups."""
        members = self.group.members
        values = [Value(m, m.facts.out) for m in members]
        loads: dict[str, tuple[str, str]] = {}
        lines = self.statements(members, loads)
        stored = self._stored(values)
        if not stored:
            raise KernelError("nothing that the kernel computes is needed")
        count = values[0].count
        lanes = max(physical(v.meta.dtype)[1] for v in stored)
        self.text.scalar("count", "u32")
        self.values["count"] = -(-count // lanes)
        fields = [f"e{k}: {WGSL_TYPE[physical(v.meta.dtype)[2]]}" for k, v in enumerate(stored)]
        names = ", ".join(self.names[v.member, v.number] for v in stored)
        functions = self.text.functions
        functions.append(f"struct Element {{ {', '.join(fields)} }}")
        element_of(self.text, "Element", f"{' '.join(lines)} return Element({names});", loads)
        if lanes == 1:
            body = " ".join(f"{self.out(v)}[i] = value.e{k};" for k, v in enumerate(stored))
            functions.append(f"fn store_element(i: u32, value: Element) {{ {body} }}")
        else:
            self._store_words(stored, lanes, count)
        _, text, made = frame(self.bindings, self.text, self.values["count"], lanes == 1)
        return KernelSource("fused expressions", text, typed=True), -(-self.values["count"] // made)

    def _stores(self, stored: list[Value]) -> list[str]:
        return [f"{self.out(v)}[i] = {self.names[v.member, v.number]};" for v in stored]

    def _store_words(self, stored: list[Value], lanes: int, count: int) -> None:
        """Where packed types are stored an invocation makes the elements of a whole word."""
        functions = self.text.functions
        limit = self.text.scalar("elements", "u32")
        self.values["elements"] = count
        body = [f"let at_{k} = element(i * {lanes}u + {k}u);" for k in range(lanes)]
        for e, v in enumerate(stored):
            d, out = v.meta.dtype, self.out(v)
            per = physical(d)[1]
            width = 32 // per
            for word in range(lanes // per):
                place = f"i * {lanes // per}u + {word}u"
                if per == 1:
                    packed = f"at_{word}.e{e}"
                else:
                    pieces = [pack(d, f"at_{word * per + k}.e{e}") for k in range(per)]
                    packed = " | ".join(f"({piece} << {k * width}u)" for k, piece in enumerate(pieces))
                body.append(f"if (({place}) * {per}u < {limit}) {{ {out}[{place}] = {packed}; }}")
        functions.append(f"fn store_out(i: u32) {{ {' '.join(body)} }}")

    def around(self, anchor: Member) -> tuple[KernelSource, Any]:
        """The anchor's kernel with expressions in its loads and stores, and its workgroups."""
        node, source = anchor.node, anchor.node.source
        after = [m for m in self.group.members if m is not anchor and not m.is_before]
        places = [(k, site) for k, site in enumerate(sites(node)) if any(m.site == k for m in after)]
        taken_over = {name for _, site in places for name in site.values}
        dead = {name for name in taken_over if anchor.slot(name) not in self.group.live}
        for k, b in enumerate(source.bindings):
            if b.name not in dead and b.name not in anchor.wires:
                access = "read_write" if b.written else "read"
                self._bind(b.name, access, b.element, self._word(anchor, k), node.metas[k])
                if b.written:
                    self.outs[anchor.command.slots[k]] = b.name
        self.values |= node.values
        self.patches_at |= {name: self._patch(anchor, k) for k, name in enumerate(node.patched)}
        lines = {f"load_{local}": self._load(source, local, value) for local, value in anchor.wires.items()}
        lines |= {site.function: self._store(anchor, k, site, after) for k, site in places}
        fields = [f"{name}: {field.type}" for name, field in source.fields.items()]
        inner = source.inner(lines, [*self.text.vectors, *fields, *self.text.fields])
        text = "\n".join([*self.bindings, inner, *self.text.functions])
        return KernelSource(f"fused {source.name}", text, typed=True), node.grid

    def _refuse_loops(self, members: list[Member]) -> None:
        """Loops of an expression would be turned within the anchor's own, for which turns are counted
        (`op/kernel/turns.py`).

        Raises:
            KernelError: an expression has one.
        """
        if any(loops(expression_of(m).expression) for m in members):
            raise KernelError("an expression loops within a kernel that may loop itself")

    def _load(self, source: KernelSource, local: str, value: Value) -> str:
        """The function ``load_<local>``, of which the value of an expression is the body."""
        found = re.search(rf"^fn load_{local}\((.*?)\) -> ([\w<>]+) \{{ (.*) \}}$", source.text, re.M)
        place = found and re.search(rf"let k = (.*?);|\b{local}\[(.*)\]", found[3])
        if found is None or place is None:
            raise KernelError(f"{source.name}: there is no one-line fn load_{local} that reads {local}[...]")
        before = [m for m in self.group.members if m.is_before]
        self._refuse_loops(before)
        lines = self.statements(before)
        target = source.aliases.get(found[2], found[2])
        wanted = next(k for k, v in WGSL_TYPE.items() if v == target)
        body = f"{' '.join(lines)} return {self._handed_on(value, wanted)};"
        self.text.functions.append(f"fn element_of_{local}(i: u32) -> {found[2]} {{ {body} }}")
        at = place[1] or place[2]
        return f"fn load_{local}({found[1]}) -> {found[2]} {{ return element_of_{local}({at}); }}"

    def _store(self, anchor: Member, number: int, site: Site, after: list[Member]) -> str:
        """A store of the anchor that goes on with the expressions that follow."""
        members = [m for m in after if m.site == number]
        self._refuse_loops(members)
        own = {anchor.facts.numbers[name]: value for name, value in site.values.items()}
        self.names |= {(anchor, number): value for number, value in own.items()}
        lines = self.statements(members)
        stored = self._stored(
            [*[Value(anchor, number) for number in own], *[Value(m, m.facts.out) for m in members]]
        )
        if any(physical(v.meta.dtype)[1] > 1 for v in stored):
            raise KernelError("a packed type is stored element by element")
        head = site.line[: site.line.index("{") + 1]
        return " ".join([head, *lines, *self._stores(stored), "}"])


def expression_of(m: Member) -> Map:
    """The expression of a member that is one."""
    assert m.node.map is not None
    return m.node.map


def fuse(group: Group, words: list[int]) -> Work[Fused | None]:
    """The kernel of a group, registered; None where it cannot be written as one."""
    form = _form(group, words)
    recipe = _recipes.get(form)
    if recipe is None:
        try:
            recipe = _write(group, words)
        except KernelError:
            recipe = _Recipe(None, [], [])
        if len(_recipes) >= _MOST_RECIPES:
            _recipes.clear()
        _recipes[form] = recipe
        yield WRITING
    yield len(group.members)
    if recipe.node is None:
        return None
    commands = [m.command.words for m in group.members]
    at = [commands[member][word] for member, word in recipe.words]
    return Fused(recipe.node, at, [commands[member][word] for member, word in recipe.zeros])


def _form(group: Group, words: list[int]) -> tuple:
    """All that the kernel of a group depends on: launches, which slots are one, which live on, which offsets
    are zero."""
    slot = defaultdict(count().__next__)
    form: list[Any] = []
    for m in group.members:
        command = m.command
        form += (m.node.head, m.is_before, m.site)
        form += [slot[s] for s in command.slots]
        form += [not words[command.words[at]] for at in m.facts.brought]
    return *form, tuple(sorted([slot[s] for s in group.live]))


def _write(group: Group, words: list[int]) -> _Recipe:
    writer = _Writer(group, words)
    source, grid = writer.expressions() if group.anchor is None else writer.around(group.anchor)
    if len(source.bindings) > most_buffers() or 4 * source.params_words > MOST_PARAMS:
        raise KernelError("the kernel needs more buffers or parameters than one may have")
    patched = tuple(name for name in source.fields if name in writer.patches_at)
    members = tuple(m.node for m in group.members)
    values = {**writer.values, **writer.text.values}
    values = {name: 0 if name in writer.patches_at else values[name] for name in source.fields}
    ops = " + ".join(m.op for m in members)
    node = RegisteredLaunch(ops, source, values, patched, tuple(writer.metas), grid, members=members)
    register(node, later=True)
    return _Recipe(node, [*writer.slots_at, *[writer.patches_at[name] for name in patched]], writer.zeros)


stream().on_close.append(_recipes.clear)
on_thin.append(_recipes.clear)
