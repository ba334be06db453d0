"""Which launches of a window become one: a single walk over its commands.

A group is a kernel in the making: expressions over the same elements, at most one anchor (a kernel of
another kind), expressions before it that its loads compute, and expressions after it that its stores compute.
A group stays open while later launches may join, and is closed, that is placed in the window, by the first
command that needs what it writes or changes what it reads. So two open groups never depend on each other, and
every group stands where its last member stood or later.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ...device.commands import ALLOC, FREE
from ...device.host import STATUS_SLOT
from ...device.stream import EMPTY_SLOT
from ...tensors.meta import Meta
from ..launches import RegisteredLaunch, most_buffers
from .commands import FusionCommand
from .sites import handed_on, load_of, sites

# A group that nobody has joined for so many commands is closed, so that memory goes back where it was given.
_PATIENCE = 24
# Expressions in one kernel: longer texts compile slowly and gain nothing.
_MOST_MEMBERS = 32


@dataclass(eq=False)
class Member:
    """A launch in a group.

    Args:
        command: the run.
        wires: operand (or the anchor's input) -> the value that takes its place.
        is_before: it is an expression that the anchor's loads compute.
        site: the anchor's store that computes it; None for the anchor and where there is none.
    """

    command: FusionCommand
    wires: dict[str, Value] = field(default_factory=dict)
    is_before: bool = False
    site: int | None = None

    @property
    def node(self) -> RegisteredLaunch:
        assert self.command.node is not None
        return self.command.node

    def slot(self, binding: str) -> int:
        """The slot of a binding."""
        return self.command.slots[self.node.binding(binding)]


@dataclass(eq=False)
class Value:
    """What a member computes and writes through a binding.

    Args:
        member: who.
        binding: the output.
        site: the anchor's store at which it is at hand.
    """

    member: Member
    binding: str
    site: int | None = None

    @property
    def slot(self) -> int:
        """Where it would be written."""
        return self.member.slot(self.binding)

    @property
    def meta(self) -> Meta:
        """Of the tensor that it would be written to."""
        found = self.member.node.metas[self.member.node.binding(self.binding)]
        assert found is not None
        return found

    @property
    def count(self) -> int:
        """Elements that are written; of a joined tensor that is a part."""
        m = self.member.node.map
        return m.count if m is not None and m.lanes == 1 else self.meta.numel


@dataclass(eq=False)
class Group:
    """A kernel in the making.

    Args:
        members: in the order of the window; the anchor among them.
        anchor: the kernel that is no expression, if there is one.
        values: by slot, the last value that was computed for it.
        reads: slots that are read, with the number of readers.
        writes: slots that are written.
        crossed: slots that are read otherwise than element by element from their beginning.
        frees: slots that end while the group is open.
        last: number of the command that joined last.
        live: written slots that somebody outside needs; known once the group is closed.
    """

    members: list[Member] = field(default_factory=list)
    anchor: Member | None = None
    values: dict[int, Value] = field(default_factory=dict)
    reads: Counter = field(default_factory=Counter)
    writes: set[int] = field(default_factory=set)
    crossed: set[int] = field(default_factory=set)
    frees: list[FusionCommand] = field(default_factory=list)
    last: int = 0
    live: set[int] = field(default_factory=set)


class Planner:
    """The walk over one window.

    Args:
        words: its commands.
        commands: the same, read.
    """

    def __init__(self, words: list[int], commands: list[FusionCommand]):
        self._words = words
        self._commands = commands
        self._open: list[Group] = []
        self.placed: list[FusionCommand | Group] = []
        # Offsets that were taken to be zero: their words in the window.
        self.zeros: list[int] = []
        allocated = {r.slots[0] for r in commands if r.code == ALLOC}
        self._short = {r.slots[0] for r in commands if r.code == FREE} & allocated
        self._reads_left: Counter = Counter()
        for r in commands:
            self._reads_left.update(needed(r))
        # How many launches other than expressions, copies and uploads write a slot.
        self._writers = Counter(s for r in commands if r.node is None or r.node.map is None for s in r.writes)
        self._waiting: dict[int, int] = {}
        self._most = most_buffers()

    def run(self) -> list[FusionCommand | Group]:
        """The window as groups and commands, in order."""
        for k, command in enumerate(self._commands):
            if command.code == ALLOC:
                self.placed.append(command)
            elif command.code == FREE:
                self._free(command)
            else:
                self._take(command, k)
        for group in list(self._open):
            self._close(group)
        return self.placed

    def _free(self, command: FusionCommand) -> None:
        slot = command.slots[0]
        users = [g for g in self._open if slot in g.reads or slot in g.writes]
        if not users:
            self.placed.append(command)
            return
        self._waiting[slot] = len(users)
        for group in users:
            group.frees.append(command)

    def _take(self, command: FusionCommand, k: int) -> None:
        for group in [g for g in self._open if k - g.last > _PATIENCE]:
            self._close(group)
        group = self._join(command) if command.node is not None else None
        touched = command.reads | command.writes
        for other in list(self._open):
            if other is not group and (other.writes & touched or command.writes & other.reads.keys()):
                self._close(other)
        self._reads_left.subtract(needed(command))
        if group is None and command.node is not None:
            group = self._lead(command)
        if group is None:
            self.placed.append(command)
        else:
            group.last = k

    # What a launch is

    def _is_plain(self, command: FusionCommand) -> bool:
        """Whether it is an expression over all elements of a contiguous tensor from its beginning."""
        assert command.node is not None
        m = command.node.map
        if m is None or m.is_atomic or m.out_index not in ("", "flat"):
            return False
        return self._starts(command, "out")

    def _starts(self, command: FusionCommand, binding: str) -> bool:
        """Whether a tensor begins where its buffer does."""
        node = command.node
        assert node is not None
        word = node.offset_word(binding)
        if word is None:
            return node.values.get(f"{binding}_offset", 0) == 0
        return self._words[command.patch_at(word)] == 0

    def _note_start(self, command: FusionCommand, binding: str) -> None:
        """Make it a condition of the plan that a tensor begins where its buffer does."""
        assert command.node is not None
        word = command.node.offset_word(binding)
        if word is not None:
            self.zeros.append(command.patch_at(word))

    def _values(self, member: Member) -> list[Value]:
        """What an anchor hands on: nothing that others write as well."""
        node = member.node
        able = handed_on(node)
        return [
            value
            for k, site in enumerate(sites(node))
            for name in site.values
            if name in able and self._writers[(value := Value(member, name, k)).slot] == 1
        ]

    # Starting a group

    def _lead(self, command: FusionCommand) -> Group | None:
        member = Member(command)
        group = Group()
        if self._is_plain(command):
            values = [Value(member, "out")]
        elif values := self._values(member):
            group.anchor = member
        else:
            return None
        self._open.append(group)
        self._add(group, member, values)
        return group

    def _add(self, group: Group, member: Member, values: list[Value]) -> None:
        command, m = member.command, member.node.map
        group.members.append(member)
        group.values |= {value.slot: value for value in values}
        wired = {member.slot(name) for name in member.wires if not self._is_aliased(member, name)}
        flat = {o.local for o in m.operands if o.index == "flat"} if m is not None else set()
        for slot, b in zip(command.slots, member.node.source.bindings, strict=True):
            if slot in (STATUS_SLOT, EMPTY_SLOT):
                continue
            if b.written:
                group.writes.add(slot)
            elif slot not in wired:
                group.reads[slot] += 1
                if b.name in flat and self._starts(command, b.name):
                    self._note_start(command, b.name)
                else:
                    group.crossed.add(slot)
        if m is not None and m.out_index:
            self._note_start(command, "out")

    @staticmethod
    def _is_aliased(member: Member, local: str) -> bool:
        m = member.node.map
        return m is not None and any(o.local == local and o.aliased for o in m.operands)

    # Joining one

    def _join(self, command: FusionCommand) -> Group | None:
        """The group that a launch joins, maybe bringing several together; None where it stands alone."""
        assert command.node is not None
        touched = command.reads | command.writes
        makers = [g for g in self._open if g.writes & touched]
        if not makers:
            return None
        if command.node.map is None:
            return self._anchor(command, makers)
        if not self._is_plain(command):
            return None
        fits = [g for g in makers if self._takes(g, command)]
        if not fits:
            return None
        target = next((g for g in reversed(fits) if g.anchor is not None), fits[-1])
        merged = [g for g in fits if g is target or g.anchor is None]
        if not self._has_room(merged, command):
            merged = [target]
            if not self._has_room(merged, command):
                return None
        wires = self._wires(target, command)
        site = next((v.site for v in wires.values()), None)
        for other in merged:
            if other is not target:
                self._merge(target, other, site)
        member = Member(command, self._wires(target, command), site=site)
        self._add(target, member, [Value(member, "out", site)])
        return target

    def _takes(self, group: Group, command: FusionCommand) -> bool:
        """Whether a group can go on with an expression."""
        node = command.node
        assert node is not None
        assert node.map is not None
        if len(group.members) >= _MOST_MEMBERS:
            return False
        m, made = node.map, Value(Member(command), "out")
        operands = {o.local: o for o in m.operands}
        taken = []
        for slot, b in zip(command.slots, node.source.bindings, strict=True):
            if slot not in group.writes:
                continue
            value = group.values.get(slot)
            if value is None or value.count != made.count:
                return False
            if b.written:
                if not m.out_index or value.meta.dtype is not m.out:
                    return False
            elif (
                operands[b.name].index != "flat"
                or not self._starts(command, b.name)
                or value.meta.dtype is not operands[b.name].dtype
            ):
                return False
            taken.append(value)
        if len({v.site for v in taken}) > 1:
            return False
        # In place: what was there must have been read element by element, and not by an anchor.
        others = group.crossed if group.anchor is None else group.crossed | group.reads.keys()
        if m.out_index and made.slot in others:
            return False
        # Packed types are stored by whole words, which only kernels of expressions do.
        return m.lanes == 1 or group.anchor is None or self._dies(made.slot, readers=1)

    def _wires(self, group: Group, command: FusionCommand) -> dict[str, Value]:
        """Operands whose values the group has computed."""
        node = command.node
        assert node is not None
        assert node.map is not None
        wires = {}
        for slot, b in zip(command.slots, node.source.bindings, strict=True):
            if slot not in group.values:
                continue
            if b.written:
                wires |= {o.local: group.values[slot] for o in node.map.operands if o.aliased}
            else:
                wires[b.name] = group.values[slot]
            self._note_start(command, b.name)
        return wires

    def _merge(self, target: Group, other: Group, site: int | None) -> None:
        """Bring the expressions of another group into one: they do not depend on each other."""
        self._open.remove(other)
        for member in other.members:
            member.site = site
        for value in other.values.values():
            value.site = site
        target.members += other.members
        target.values |= other.values
        target.reads += other.reads
        target.writes |= other.writes
        target.crossed |= other.crossed
        for command in other.frees:
            if command in target.frees:
                self._waiting[command.slots[0]] -= 1
            else:
                target.frees.append(command)

    def _has_room(self, groups: list[Group], command: FusionCommand) -> bool:
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
                extra += sum(s in (STATUS_SLOT, EMPTY_SLOT) for s in g.anchor.command.slots)
        own = needed(command)
        reads |= own - written
        kept = {s for s in written if not self._dies(s, s in own)} | command.writes
        return len(reads - kept) + len(kept) + extra <= self._most

    def _dies(self, slot: int, readers: int = 0) -> bool:
        """Whether nobody needs a slot's values after what has been read so far, and so many more readers."""
        return slot in self._short and self._reads_left[slot] - readers <= 0

    def _anchor(self, command: FusionCommand, makers: list[Group]) -> Group | None:
        """Let a kernel's loads compute what a group of expressions would have stored for it alone."""
        node = command.node
        assert node is not None
        load = load_of(node)
        if load is None or len(makers) != 1:
            return None
        group, slot = makers[0], command.slots[node.binding(load)]
        if (
            group.anchor is not None
            or slot not in group.values
            or command.slots.count(slot) != 1
            or any(s in group.writes for s in command.slots if s != slot)
            or not all(self._dies(w, w == slot) for w in group.writes)
            or any(m.node.map.out_index for m in group.members if m.node.map is not None)
            or command.writes & group.reads.keys()
            or not self._has_room([group], command)
        ):
            return None
        for m in group.members:
            m.is_before = True
        member = Member(command, {load: group.values[slot]})
        group.values = {}
        group.anchor = member
        self._add(group, member, self._values(member))
        return group

    # Closing one

    def _close(self, group: Group) -> None:
        self._open.remove(group)
        group.live = {s for s in group.writes if not self._dies(s)}
        self.placed.append(group)
        for command in group.frees:
            slot = command.slots[0]
            self._waiting[slot] -= 1
            if not self._waiting[slot]:
                self.placed.append(command)


def needed(r: FusionCommand) -> frozenset[int]:
    """Slots whose old values a command needs."""
    if r.node is None:
        return r.reads
    m = r.node.map
    if m is not None:
        fresh = set() if m.is_atomic or any(o.aliased for o in m.operands) else {"out"}
    else:
        fresh = handed_on(r.node)
    return frozenset(s for s, b in zip(r.slots, r.node.source.bindings, strict=True) if b.name not in fresh)
