"""Which launches of a window become one: a single walk over its records.

A group is a kernel in the making: expressions over the same elements, at most one anchor (a kernel of
another kind), expressions before it that its loads compute, and expressions after it that its stores compute.
A group stays open while later launches may join, and is closed, that is placed in the window, by the first
record that needs what it writes or changes what it reads. So two open groups never depend on each other, and
every group stands where its last member stood or later.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..device.host import ALLOC, FREE, STATUS_SLOT
from ..device.stream import EMPTY_SLOT
from ..kernel import PHYSICAL
from ..launches import most_buffers
from ..meta import Meta
from .anchors import load_of, stores
from .records import Record

# A group that nobody has joined for so many records is closed, so that memory goes back where it was given.
_PATIENCE = 24
# Expressions in one kernel: longer texts compile slowly and gain nothing.
_MOST_MEMBERS = 32


@dataclass(eq=False)
class Member:
    """A launch in a group.

    Args:
        record: the run.
        wires: operand (or the anchor's input) -> the member that computed it.
        is_before: it is an expression that the anchor's loads compute.
    """

    record: Record
    wires: dict[str, Member] = field(default_factory=dict)
    is_before: bool = False

    @property
    def node(self):
        assert self.record.node is not None
        return self.record.node

    @property
    def out(self) -> int:
        """The slot that an expression, or an anchor that hands its values on, writes."""
        return self.slot("out")

    @property
    def made(self) -> Meta:
        """What is written there."""
        found = self.node.metas[self.node.binding("out")]
        assert found is not None
        return found

    @property
    def count(self) -> int:
        """Elements that are written; of a joined tensor that is a part."""
        m = self.node.map
        return m.count if m is not None and m.lanes == 1 else self.made.numel

    def slot(self, binding: str) -> int:
        """The slot of a binding."""
        return self.record.slots[self.node.binding(binding)]


@dataclass(eq=False)
class Group:
    """A kernel in the making.

    Args:
        count: elements that expressions go over; None where an anchor stores nothing in order.
        members: in the order of the window; the anchor among them.
    """

    count: int | None
    members: list[Member]
    anchor: Member | None = None
    values: dict[int, Member] = field(default_factory=dict)
    reads: Counter = field(default_factory=Counter)
    writes: set[int] = field(default_factory=set)
    # Slots that are read otherwise than element by element from their beginning.
    crossed: set[int] = field(default_factory=set)
    frees: list[Record] = field(default_factory=list)
    last: int = 0
    # Written slots that somebody outside needs; known once the group is closed.
    live: set[int] = field(default_factory=set)


class Planner:
    """The walk over one window.

    Args:
        words: its records.
        records: the same, read.
    """

    def __init__(self, words: list[int], records: list[Record]):
        self._words = words
        self._records = records
        self._open: list[Group] = []
        self.placed: list[Record | Group] = []
        # Offsets that were taken to be zero: their words in the window.
        self.zeros: list[int] = []
        allocated = {r.slots[0] for r in records if r.code == ALLOC}
        self._short = {r.slots[0] for r in records if r.code == FREE} & allocated
        self._reads_left: Counter = Counter()
        for r in records:
            self._reads_left.update(self._read_by(r))
        # How many launches other than expressions, copies and uploads write a slot.
        self._writers = Counter(s for r in records if r.node is None or r.node.map is None for s in r.writes)
        self._waiting: dict[int, int] = {}
        self._most = most_buffers()

    @staticmethod
    def _read_by(r: Record) -> frozenset[int]:
        """Slots whose old values a record needs."""
        if r.node is None:
            return r.reads
        bindings = r.node.source.bindings
        m = r.node.map
        if m is not None and not (m.is_atomic or any(o.aliased for o in m.operands)):
            return frozenset(s for s, b in zip(r.slots, bindings, strict=True) if not b.written)
        if m is None and stores(r.node):
            return frozenset(s for s, b in zip(r.slots, bindings, strict=True) if b.name != "out")
        return r.reads

    def run(self) -> list[Record | Group]:
        """The window as groups and records, in order."""
        for k, record in enumerate(self._records):
            if record.code == ALLOC:
                self.placed.append(record)
            elif record.code == FREE:
                self._free(record)
            else:
                self._take(record, k)
        for group in list(self._open):
            self._close(group)
        return self.placed

    def _free(self, record: Record) -> None:
        slot = record.slots[0]
        users = [g for g in self._open if slot in g.reads or slot in g.writes]
        if not users:
            self.placed.append(record)
            return
        self._waiting[slot] = len(users)
        for group in users:
            group.frees.append(record)

    def _take(self, record: Record, k: int) -> None:
        for group in [g for g in self._open if k - g.last > _PATIENCE]:
            self._close(group)
        group = self._join(record) if record.is_run else None
        needs, writes = record.reads | record.writes, record.writes
        for other in list(self._open):
            if other is not group and (other.writes & needs or writes & other.reads.keys()):
                self._close(other)
        for slot in self._read_by(record):
            self._reads_left[slot] -= 1
        if group is None and record.is_run and self._can_lead(record):
            group = self._lead(record)
        if group is None:
            self.placed.append(record)
        else:
            group.last = k

    # Starting a group

    def _can_lead(self, record: Record) -> bool:
        node = record.node
        assert node is not None
        return self._is_plain(record) or (node.map is None and stores(node) and self._stores_whole(record))

    def _is_plain(self, record: Record) -> bool:
        """Whether it is an expression over all elements of a contiguous tensor from its beginning."""
        assert record.node is not None
        m = record.node.map
        if m is None or (m.by_element and m.lanes > 1) or m.out_index not in ("", "flat"):
            return False
        return self._starts(record, "out", fresh=m.out_index == "")

    def _starts(self, record: Record, binding: str, fresh: bool = False) -> bool:
        """Whether a tensor begins where its buffer does; then this is noted as a condition of the plan."""
        node = record.node
        assert node is not None
        word = node.offset_word(binding)
        if word is None:
            return fresh or node.values.get(f"{binding}_offset", 0) == 0
        return self._words[record.patch_at(word)] == 0

    def note_start(self, record: Record, binding: str) -> None:
        """Make it a condition of the plan that a tensor begins where its buffer does."""
        assert record.node is not None
        word = record.node.offset_word(binding)
        if word is not None:
            self.zeros.append(record.patch_at(word))

    def _stores_whole(self, record: Record) -> bool:
        """Whether an anchor is alone in writing its output, which is of a type that can be handed on."""
        node = record.node
        assert node is not None
        names = [b.name for b in node.source.bindings]
        k = names.index("out")
        meta, slot = node.metas[k], record.slots[k]
        if meta is None or meta.dtype not in PHYSICAL or PHYSICAL[meta.dtype][1] > 1:
            return False
        written = sum(b.written for b in node.source.bindings)
        return self._writers[slot] == 1 and written == 1 + ("status" in names)

    def _lead(self, record: Record) -> Group:
        node = record.node
        assert node is not None
        member = Member(record)
        group = Group(member.count, [])
        if node.map is None:
            group.anchor = member
        self._open.append(group)
        self._add(group, member)
        return group

    def _add(self, group: Group, member: Member) -> None:
        record = member.record
        group.members.append(member)
        if group.anchor is None or member is group.anchor or not member.is_before:
            group.values[member.out] = member
        m = member.node.map
        aliased = {o.local for o in m.operands if o.aliased} if m is not None else set()
        wired = {member.slot(name) for name in member.wires if name not in aliased}
        for slot, b in zip(record.slots, member.node.source.bindings, strict=True):
            if slot in (STATUS_SLOT, EMPTY_SLOT):
                continue
            if b.written:
                group.writes.add(slot)
            elif slot not in wired:
                group.reads[slot] += 1
                plain = (
                    m is not None
                    and any(o.local == b.name and o.index == "flat" for o in m.operands)
                    and self._starts(record, b.name)
                )
                if not plain:
                    group.crossed.add(slot)
                else:
                    self.note_start(record, b.name)
        if m is not None and m.out_index:
            self.note_start(record, "out")

    # Joining one

    def _join(self, record: Record) -> Group | None:
        """The group that a launch joins, maybe bringing several together; None where it stands alone."""
        touched = record.reads | record.writes
        makers = [g for g in self._open if g.writes & touched]
        if not makers:
            return None
        node = record.node
        assert node is not None
        if node.map is None:
            return self._anchor(record, makers)
        if not self._is_plain(record):
            return None
        fits = [g for g in makers if self._takes(g, record)]
        if not fits:
            return None
        target = next((g for g in reversed(fits) if g.anchor is not None), fits[-1])
        merged = [g for g in fits if g is target or g.anchor is None]
        if not self._has_room(merged, record):
            merged = [target]
            if not self._has_room(merged, record):
                return None
        for other in merged:
            if other is not target:
                self._merge(target, other)
        self._add(target, Member(record, self._wires(target, record)))
        return target

    def _takes(self, group: Group, record: Record) -> bool:
        """Whether a group can go on with an expression."""
        node = record.node
        assert node is not None
        assert node.map is not None
        member = Member(record)
        if group.count != member.count or len(group.members) >= _MOST_MEMBERS:
            return False
        m, out = node.map, member.out
        places = {o.local: o for o in m.operands if o.is_read}
        for slot, b in zip(record.slots[:-1], node.source.bindings[:-1], strict=True):
            if slot in group.writes:
                maker = group.values.get(slot)
                if maker is None or places[b.name].index != "flat" or not self._starts(record, b.name):
                    return False
                if maker.made.dtype is not places[b.name].dtype:
                    return False
        if m.out_index:  # in place: what was there must have been read element by element
            anchor = group.anchor
            if out in group.crossed or (anchor is not None and out in anchor.record.reads):
                return False
            maker = group.values.get(out)
            if out in group.writes:
                made = maker.made if maker is not None else None
                if made is None or made.dtype is not m.out:
                    return False
            if anchor is not None and out in group.reads and out not in group.values:
                return False
        return True

    def _wires(self, group: Group, record: Record) -> dict[str, Member]:
        """Operands whose values the group has computed."""
        node = record.node
        assert node is not None
        wires = {}
        for slot, b in zip(record.slots, node.source.bindings, strict=True):
            if slot not in group.values:
                continue
            if not b.written:
                wires[b.name] = group.values[slot]
                self.note_start(record, b.name)
            elif node.map is not None:
                wires |= {o.local: group.values[slot] for o in node.map.operands if o.aliased}
        return wires

    def _merge(self, target: Group, other: Group) -> None:
        """Bring the expressions of another group into one: they do not depend on each other."""
        self._open.remove(other)
        target.members += other.members
        target.values |= other.values
        target.reads += other.reads
        target.writes |= other.writes
        target.crossed |= other.crossed
        for record in other.frees:
            slot = record.slots[0]
            if record in target.frees:
                self._waiting[slot] -= 1
            else:
                target.frees.append(record)

    def _has_room(self, groups: list[Group], record: Record) -> bool:
        """Whether a kernel of these groups and a launch stays within the buffers that a device binds."""
        if sum(len(g.members) for g in groups) >= _MOST_MEMBERS:
            return False
        reads: set[int] = set()
        written: set[int] = set()
        extra = 0
        for g in groups:
            reads |= {s for s in g.reads if s not in g.writes}
            written |= g.writes
            if g.anchor is not None:
                extra += sum(s == STATUS_SLOT for s in g.anchor.record.slots)
        own = self._read_by(record)
        reads |= own - written
        kept = {s for s in written if not self._dies(s, s in own)} | record.writes
        return len(reads - kept) + len(kept) + extra <= self._most

    def _dies(self, slot: int, once_more: bool = False) -> bool:
        """Whether nobody needs a slot's values after what has been read so far (and one more reader)."""
        return slot in self._short and self._reads_left[slot] - once_more <= 0

    def _anchor(self, record: Record, makers: list[Group]) -> Group | None:
        """Let a kernel's loads compute what a group of expressions would have stored for it alone."""
        node = record.node
        assert node is not None
        load = load_of(node)
        if load is None or len(makers) != 1:
            return None
        group = makers[0]
        names = [b.name for b in node.source.bindings]
        slot = record.slots[names.index(load)]
        if (
            group.anchor is not None
            or slot not in group.values
            or record.slots.count(slot) != 1
            or any(s in group.writes for s in record.slots if s != slot)
            or not all(self._dies(w, w == slot) for w in group.writes)
            or any(m.node.map.out_index for m in group.members if m.node.map is not None)
            or record.writes & group.reads.keys()
        ):
            return None
        if not self._has_room([group], record):
            return None
        maker = group.values[slot]
        for m in group.members:
            m.is_before = True
        group.values = {}
        member = Member(record, {load: maker})
        group.anchor = member
        if stores(node) and self._stores_whole(record):
            group.count = member.count
            self._add(group, member)
        else:
            group.count = None
            group.members.append(member)
            wired = {slot}
            for s, b in zip(record.slots, node.source.bindings, strict=True):
                if b.written:
                    group.writes.add(s)
                elif s not in wired and s not in (STATUS_SLOT, EMPTY_SLOT):
                    group.reads[s] += 1
                    group.crossed.add(s)
        return group

    # Closing one

    def _close(self, group: Group) -> None:
        self._open.remove(group)
        group.live = {s for s in group.writes if not self._dies(s)}
        self.placed.append(group)
        for record in group.frees:
            slot = record.slots[0]
            self._waiting[slot] -= 1
            if not self._waiting[slot]:
                self.placed.append(record)
