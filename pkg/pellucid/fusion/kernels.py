"""The kernel of a group: the texts of its members joined, with one set of buffers and parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ..errors import KernelError
from ..kernel import WGSL_TYPE, Source, convert, narrowed, pack, physical
from ..launches import MOST_PARAMS, Node, most_buffers, register
from ..mapping import WORKGROUP, Map, Text, frame, member
from .groups import Group, Member


@dataclass
class Fused:
    """A launch that stands for a group.

    Args:
        node: the launch.
        words: for each word of its records, where it lies in the window.
        zeros: words of the window that were taken to be zero.
    """

    node: Node
    words: list[int]
    zeros: list[int]


@dataclass
class _Buffers:
    """The bindings of a kernel in the making, and for each where its slot lies in the window."""

    declared: list[str] = field(default_factory=list)
    where: list[int] = field(default_factory=list)
    metas: list[Any] = field(default_factory=list)
    names: dict[tuple, str] = field(default_factory=dict)

    def add(self, name: str, access: str, element: str, where: int, meta: Any) -> str:
        number = len(self.declared)
        self.declared.append(f"@group(0) @binding({number}) var<storage, {access}> {name}: array<{element}>;")
        self.where.append(where)
        self.metas.append(meta)
        return name


class _Writer:
    """Writes the kernel of one group."""

    def __init__(self, group: Group, words: list[int]):
        self.group = group
        self.words = words
        self.text = Text()
        self.buffers = _Buffers()
        self.values: dict[Member, str] = {}
        self.places: dict[str, int] = {}  # patched field -> its word in the window
        self.fixed: dict[str, Any] = {}
        self.outs: dict[int, str] = {}
        self.zeros: list[int] = []

    def suffix(self, m: Member) -> str:
        return f"_m{self.group.members.index(m)}"

    # Members

    def statements(self, members: list[Member]) -> list[str]:
        """Lines that compute the values of expressions for element ``i``, one after the other."""
        lines = []
        for m in members:
            expression = m.node.map
            assert expression is not None
            suffix = self.suffix(m)
            wired, buffers, zero = {}, {}, set()
            for o in expression.operands:
                if o.local in m.wires:
                    wired[o.local] = self._handed_on(m.wires[o.local], o.type)
                elif o.aliased:
                    buffers[o.local] = self.out(m)
                    self.text.functions.append(f"fn index_out{suffix}(i: u32) -> u32 {{ return i; }}")
                elif o.dtype is not None:
                    buffers[o.local] = self._read(m, o.local)
                    if self._is_zero(m, o.local):
                        zero.add(o.local)
            call = member(self.text, expression, suffix, buffers, wired, frozenset(zero))
            name = f"value{suffix}"
            lines.append(f"let {name} = {call};")
            self.values[m] = name
            self._note_fields(m, suffix)
        return lines

    def _handed_on(self, maker: Member, wanted: str) -> str:
        """A member's value as another one's operand, rounded as if it had been stored between."""
        d = maker.made.dtype
        value = self.values[maker]
        if physical(d)[1] > 1 and d.name != "bool":
            value = narrowed(d, value)
        return convert(value, physical(d)[2], wanted)

    def _read(self, m: Member, local: str) -> str:
        """The binding of an operand; tensors of one slot and type share it."""
        slot = m.slot(local)
        number = m.node.binding(local)
        if slot in self.outs:
            return self.outs[slot]
        element = m.node.source.bindings[number].element
        key = (slot, element)
        if key not in self.buffers.names:
            name = f"in{len(self.buffers.names)}"
            where = m.record.at + 1 + number
            self.buffers.names[key] = self.buffers.add(name, "read", element, where, m.node.metas[number])
        return self.buffers.names[key]

    def out(self, m: Member) -> str:
        """The binding that a member's slot is written through."""
        slot = m.out
        if slot not in self.outs:
            number = m.node.binding("out")
            where = m.record.at + 1 + number
            element = physical(m.made.dtype)[0]
            self.outs[slot] = self.buffers.add(
                f"out{len(self.outs)}", "read_write", element, where, m.node.metas[number]
            )
        return self.outs[slot]

    def _is_zero(self, m: Member, local: str) -> bool:
        word = m.node.offset_word(local)
        if word is None:
            return m.node.values.get(f"{local}_offset", 0) == 0
        at = m.record.patch_at(word)
        if self.words[at]:
            return False
        self.zeros.append(at)
        return True

    def _note_fields(self, m: Member, suffix: str) -> None:
        for name, value in m.node.values.items():
            new = f"{name}{suffix}"
            if any(f.startswith(f"{new}:") for f in self.text.fields):
                if name in m.node.patched:
                    self.places[new] = m.record.patch_at(m.node.patched.index(name))
                self.fixed[new] = value

    # Whole kernels

    def stored(self) -> list[Member]:
        """Who writes what lives on: of each slot the last one."""
        last = {m.out: m for m in self.group.members if not m.is_before and self._hands_on(m)}
        return [m for slot, m in last.items() if slot in self.group.live]

    def _hands_on(self, m: Member) -> bool:
        return m.node.map is not None or m in self.values

    def expressions(self) -> tuple[Source, dict[str, Any], int]:
        """A kernel of expressions only."""
        members = self.group.members
        in_place = {m.out for m in members for o in self._map(m).operands if o.aliased} & self.group.live
        for m in members:
            if m.out in in_place:
                self.out(m)
        lines = self.statements(members)
        stored = self.stored()
        if not stored:
            raise KernelError("nothing that the kernel computes is needed")
        count = self.group.count
        assert count is not None
        lanes = max(physical(m.made.dtype)[1] for m in stored)
        self.text.scalar("count", "u32")
        self.fixed["count"] = -(-count // lanes)
        if lanes == 1:
            body = " ".join([*lines, *[f"{self.out(m)}[i] = {self.values[m]};" for m in stored]])
            self.text.functions.append(f"fn store_out(i: u32) {{ {body} }}")
        else:
            self._store_words(lines, stored, lanes, count)
        source = Source("fused expressions", frame(self.buffers.declared, self.text), typed=True)
        return source, self._all_values({}), -(-self.fixed["count"] // WORKGROUP)

    @staticmethod
    def _map(m: Member) -> Map:
        assert m.node.map is not None
        return m.node.map

    def _store_words(self, lines: list[str], stored: list[Member], lanes: int, count: int) -> None:
        """Where packed types are stored an invocation makes the elements of a whole word."""
        fields = [f"e{k}: {WGSL_TYPE[physical(m.made.dtype)[2]]}" for k, m in enumerate(stored)]
        values = ", ".join(self.values[m] for m in stored)
        functions = self.text.functions
        functions.append(f"struct Element {{ {', '.join(fields)} }}")
        functions.append(f"fn element(i: u32) -> Element {{ {' '.join(lines)} return Element({values}); }}")
        self.text.scalar("elements", "u32")
        self.fixed["elements"] = count
        body = [f"let at_{k} = element(i * {lanes}u + {k}u);" for k in range(lanes)]
        for e, m in enumerate(stored):
            d, out = m.made.dtype, self.out(m)
            per = physical(d)[1]
            if per == 1:
                for k in range(lanes):
                    place = f"i * {lanes}u + {k}u"
                    body.append(f"if ({place} < params.elements) {{ {out}[{place}] = at_{k}.e{e}; }}")
                continue
            width = 32 // per
            for word in range(lanes // per):
                pieces = [f"({pack(d, f'at_{word * per + k}.e{e}')} << {k * width}u)" for k in range(per)]
                place = f"i * {lanes // per}u + {word}u"
                store = f"{out}[{place}] = {' | '.join(pieces)};"
                guard = f"if ({place} * {per}u < params.elements) {{ {store} }}"
                body.append(guard if word else store)
        functions.append(f"fn store_out(i: u32) {{ {' '.join(body)} }}")

    def around(self, anchor: Member) -> tuple[Source, dict[str, Any], Any]:
        """The anchor's kernel with expressions in its loads and stores."""
        node = anchor.node
        source = node.source
        text = source.text
        dropped = set(anchor.wires)
        after = [m for m in self.group.members if m is not anchor and not m.is_before]
        if after and anchor.out not in self.group.live:
            dropped.add("out")
        for b, slot, meta, k in zip(
            source.bindings, anchor.record.slots, node.metas, range(len(source.bindings)), strict=True
        ):
            pattern = (
                rf"^@group\(0\) @binding\(\d+\)\s*var<storage, (read|read_write)> {b.name}: array<(.+)>;\n"
            )
            found = re.search(pattern, text, re.M)
            if found is None:
                raise KernelError(f"{source.name}: the binding {b.name} is not on a line of its own")
            text = text[: found.start()] + text[found.end() :]
            if b.name not in dropped:
                self.buffers.add(b.name, found[1], found[2], anchor.record.at + 1 + k, meta)
                if b.name == "out":
                    self.outs[slot] = "out"
        for name, value in node.values.items():
            self.fixed[name] = value
        for k, name in enumerate(node.patched):
            self.places[name] = anchor.record.patch_at(k)
        for local, maker in anchor.wires.items():
            text = self._load(text, source, local, maker)
        if after:
            text = self._store(text, source, anchor, after)
        struct = re.search(r"struct Params \{(.*?)\}", text, re.S)
        if struct is None:
            raise KernelError(f"{source.name}: there is no struct Params")
        fields = [part.strip() for part in re.sub(r"//[^\n]*", "", struct[1]).split(",") if part.strip()]
        declared = f"struct Params {{ {', '.join([*self.text.vectors, *fields, *self.text.fields])} }}"
        text = text[: struct.start()] + declared + text[struct.end() :]
        text = "\n".join([*self.buffers.declared, text, *self.text.functions])
        return Source(f"fused {source.name}", text, typed=True), self._all_values(node.values), node.grid

    def _load(self, text: str, source: Source, local: str, maker: Member) -> str:
        """Replace the body of ``load_<local>`` by the value of an expression."""
        found = re.search(rf"^fn load_{local}\((.*?)\) -> ([\w<>]+) \{{ (.*) \}}$", text, re.M)
        place = found and re.search(rf"(?:let k = (.*?);|\b{local}\[(.*)\])", found[3])
        if found is None or place is None:
            raise KernelError(f"{source.name}: there is no one-line fn load_{local} that reads {local}[...]")
        lines = self.statements([m for m in self.group.members if m.is_before])
        target = source.aliases.get(found[2], found[2])
        wanted = next(k for k, v in WGSL_TYPE.items() if v == target)
        value = self._handed_on(maker, wanted)
        self.text.functions.append(
            f"fn element_of_{local}(i: u32) -> {found[2]} {{ {' '.join(lines)} return {value}; }}"
        )
        at = place[1] or place[2]
        body = f"fn load_{local}({found[1]}) -> {found[2]} {{ return element_of_{local}({at}); }}"
        return text[: found.start()] + body + text[found.end() :]

    def _store(self, text: str, source: Source, anchor: Member, after: list[Member]) -> str:
        """Let ``store_out`` go on with the expressions that follow."""
        found = re.search(r"^fn store_out\(i: u32, (\w+): ([\w<>]+)\) \{ out\[i\] = \1; \}$", text, re.M)
        if found is None:
            raise KernelError(f"{source.name}: there is no one-line fn store_out(i: u32, value: T)")
        self.values[anchor] = found[1]
        in_place = {m.out for m in after for o in self._map(m).operands if o.aliased} & self.group.live
        for m in after:
            if m.out in in_place:
                self.out(m)
        lines = self.statements(after)
        stored = self.stored()
        if any(physical(m.made.dtype)[1] > 1 for m in stored):
            raise KernelError("a packed type is stored element by element")
        lines += [f"{self.out(m)}[i] = {self.values[m]};" for m in stored]
        body = f"fn store_out(i: u32, {found[1]}: {found[2]}) {{ {' '.join(lines)} }}"
        return text[: found.start()] + body + text[found.end() :]

    def _all_values(self, base: dict[str, Any]) -> dict[str, Any]:
        values = {**base, **self.text.values, **self.fixed}
        return values


def fuse(group: Group, words: list[int]) -> Fused:
    """Write and register the kernel of a group.

    Raises:
        KernelError: it cannot be written as one.
    """
    writer = _Writer(group, words)
    if group.anchor is None:
        source, values, grid = writer.expressions()
    else:
        source, values, grid = writer.around(group.anchor)
    if len(source.bindings) > most_buffers() or 4 * source.params_words > MOST_PARAMS:
        raise KernelError("the kernel needs more buffers or parameters than one may have")
    patched = tuple(name for name in source.fields if name in writer.places)
    members = tuple(m.node for m in group.members)
    ops = " + ".join(m.op for m in members)
    values = {name: 0 if name in writer.places else values[name] for name in source.fields}
    node = Node(ops, source, values, patched, tuple(writer.buffers.metas), grid, members=members)
    register(node, later=True)
    by_word = [*writer.buffers.where, *[writer.places[name] for name in patched]]
    return Fused(node, by_word, writer.zeros)
