"""Which launches of a window become one: a single walk over its commands.

A group is a kernel in the making: expressions over the same elements, at most one anchor (a kernel of
another kind), expressions before it that its loads compute, and expressions after it that its stores compute.
A group stays open while later launches may join, and is closed, that is placed in the window, by the first
command that needs what it writes or changes what it reads. So two open groups never depend on each other, and
every group stands where its last member stood or later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from ...device.commands import ALLOC, FREE
from ...device.host import STATUS_SLOT
from ...device.stream import EMPTY_SLOT
from ..launches import most_buffers
from .commands import FusionCommand
from .facts import FIXED_AT_ZERO, LaunchFacts
from .work import Work

# A group that nobody has joined for so many commands is closed, so that memory goes back where it was given.
PATIENCE = 24
# Expressions in one kernel: longer texts compile slowly and gain nothing.
MOST_MEMBERS = 32
# Slots that all kernels share, which say nothing of who needs whom.
SHARED = (STATUS_SLOT, EMPTY_SLOT)


class Member:
    """A launch in a group.

    Args:
        command: the run.
        wires: operand (or the anchor's input) -> the value that takes its place.
        site: the anchor's store that computes it; None for the anchor and where there is none.

    Attributes:
        is_before: it is an expression that the anchor's loads compute.
    """

    __slots__ = ("command", "facts", "is_before", "node", "site", "wires")

    def __init__(
        self, command: FusionCommand, wires: dict[str, Value] | None = None, site: int | None = None
    ):
        assert command.node is not None
        assert command.facts is not None
        self.command, self.node, self.facts = command, command.node, command.facts
        self.wires = {} if wires is None else wires
        self.is_before = False
        self.site = site

    def slot(self, binding: str) -> int:
        """The slot of a binding."""
        return self.command.slots[self.facts.numbers[binding]]


class Value:
    """What a member computes and writes through a binding.

    Args:
        member: who.
        number: of the output among the bindings.
        site: the anchor's store at which it is at hand.

    Attributes:
        slot: where it would be written.
        meta: of the tensor that it would be written to.
        count: elements that are written.
    """

    __slots__ = ("count", "member", "meta", "number", "site", "slot")

    def __init__(self, member: Member, number: int, site: int | None = None):
        meta = member.node.metas[number]
        assert meta is not None
        self.member, self.number, self.site, self.meta = member, number, site, meta
        self.slot: int = member.command.slots[number]
        self.count: int = member.facts.count if member.facts.is_map else meta.numel


@dataclass(eq=False, slots=True)
class Group:
    """A kernel in the making.

    Args:
        members: in the order of the window; the anchor among them.
        anchor: the kernel that is no expression, if there is one.
        values: by slot, the last value that was computed for it.
        reads: slots that are read.
        writes: slots that are written.
        crossed: slots that are read otherwise than element by element from their beginning.
        frees: slots that end while the group is open.
        last: number of the command that joined last.
        live: written slots that somebody outside needs; known once the group is closed.
    """

    members: list[Member] = field(default_factory=list)
    anchor: Member | None = None
    values: dict[int, Value] = field(default_factory=dict)
    reads: set[int] = field(default_factory=set)
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
        allocated, freed = set[int](), set[int]()
        # How many commands that are still to come need a slot's values.
        self._reads_left: defaultdict[int, int] = defaultdict(int)
        # How many launches other than expressions, copies and uploads write a slot.
        self._writers: Counter[int] = Counter()
        for r in commands:
            if r.code == ALLOC:
                allocated.add(r.slots[0])
            elif r.code == FREE:
                freed.add(r.slots[0])
            else:
                for slot in r.needs:
                    self._reads_left[slot] += 1
                if r.facts is None or not r.facts.is_map:
                    self._writers.update(r.writes)
        self._short = allocated & freed
        self._waiting: dict[int, int] = {}
        self._most = most_buffers()

    def run(self) -> Work[list[FusionCommand | Group]]:
        """The window as groups and commands, in order."""
        for k, command in enumerate(self._commands):
            if command.code == ALLOC:
                self.placed.append(command)
            elif command.code == FREE:
                self._free(command)
            else:
                self._take(command, k)
                yield 1
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
        for group in [g for g in self._open if k - g.last > PATIENCE]:
            self._close(group)
        facts, slots, writes = command.facts, command.slots, command.writes
        group = self._join(command, facts) if facts is not None else None
        for other in [
            g
            for g in self._open
            if g is not group and not (g.writes.isdisjoint(slots) and g.reads.isdisjoint(writes))
        ]:
            self._close(other)
        for slot in command.needs:
            self._reads_left[slot] -= 1
        if group is None and facts is not None:
            group = self._lead(command, facts)
        if group is None:
            self.placed.append(command)
        else:
            group.last = k

    # What a launch is

    def _is_plain(self, command: FusionCommand, facts: LaunchFacts) -> bool:
        """Whether it is an expression over all elements of a contiguous tensor from its beginning."""
        return facts.is_plain and self._starts(command, facts.offsets[facts.out])

    def _starts(self, command: FusionCommand, offset: int) -> bool:
        """Whether a tensor begins where its buffer does."""
        return offset == FIXED_AT_ZERO or (offset >= 0 and self._words[command.words[offset]] == 0)

    def _note_start(self, command: FusionCommand, offset: int) -> None:
        """Make it a condition of the plan that a tensor begins where its buffer does."""
        if offset >= 0:
            self.zeros.append(command.words[offset])

    def _values(self, member: Member) -> list[Value]:
        """What an anchor hands on: nothing that others write as well."""
        slots = member.command.slots
        return [
            Value(member, number, site)
            for site, number in member.facts.handed_on
            if self._writers[slots[number]] == 1
        ]

    # Starting a group

    def _lead(self, command: FusionCommand, facts: LaunchFacts) -> Group | None:
        if self._is_plain(command, facts):
            member, group = Member(command), Group()
            values = [Value(member, facts.out)]
        elif facts.handed_on and (values := self._values(member := Member(command))):
            group = Group(anchor=member)
        else:
            return None
        self._open.append(group)
        self._add(group, member, values)
        return group

    def _add(self, group: Group, member: Member, values: list[Value]) -> None:
        command, facts = member.command, member.facts
        slots, numbers = command.slots, facts.numbers
        group.members.append(member)
        for value in values:
            group.values[value.slot] = value
        # An operand that is the written tensor has no binding of its own.
        wired = [slots[numbers[name]] for name in member.wires if name in numbers]
        for k, slot in enumerate(slots):
            if slot in SHARED:
                continue
            if facts.is_written[k]:
                group.writes.add(slot)
            elif slot not in wired:
                group.reads.add(slot)
                offset = facts.offsets[k]
                if facts.flat[k] and self._starts(command, offset):
                    self._note_start(command, offset)
                else:
                    group.crossed.add(slot)
        if facts.is_view:
            self._note_start(command, facts.offsets[facts.out])

    # Joining one

    def _join(self, command: FusionCommand, facts: LaunchFacts) -> Group | None:
        """The group that a launch joins, maybe bringing several together; None where it stands alone."""
        slots = command.slots
        makers = [g for g in self._open if not g.writes.isdisjoint(slots)]
        if not makers:
            return None
        if not facts.is_map:
            return self._anchor(command, facts, makers)
        if not self._is_plain(command, facts):
            return None
        fits = [g for g in makers if self._takes(g, command, facts)]
        if not fits:
            return None
        target = next((g for g in reversed(fits) if g.anchor is not None), fits[-1])
        merged = [g for g in fits if g is target or g.anchor is None]
        if not self._has_room(merged, command):
            merged = [target]
            if not self._has_room(merged, command):
                return None
        site = next((v.site for v in self._wires(target, command, facts).values()), None)
        for other in merged:
            if other is not target:
                self._merge(target, other, site)
        member = Member(command, self._wires(target, command, facts), site)
        self._add(target, member, [Value(member, facts.out, site)])
        return target

    def _takes(self, group: Group, command: FusionCommand, facts: LaunchFacts) -> bool:
        """Whether a group can go on with an expression."""
        if len(group.members) >= MOST_MEMBERS:
            return False
        m, out = command.node and command.node.map, facts.out
        assert m is not None
        found: set[int | None] = set()
        for k, slot in enumerate(command.slots):
            if slot not in group.writes:
                continue
            value = group.values.get(slot)
            if value is None or value.count != facts.count:
                return False
            if k == out:
                if not facts.is_view or value.meta.dtype is not m.out:
                    return False
            elif (
                not facts.flat[k]
                or not self._starts(command, facts.offsets[k])
                or value.meta.dtype is not facts.dtypes[k]
            ):
                return False
            found.add(value.site)
        if len(found) > 1:
            return False
        made = command.slots[out]
        # In place: what was there must have been read element by element, and not by an anchor.
        if facts.is_view and (made in group.crossed or (group.anchor is not None and made in group.reads)):
            return False
        # Packed types are stored by whole words, which only kernels of expressions do.
        return m.lanes == 1 or group.anchor is None or self._dies(made, readers=1)

    def _wires(self, group: Group, command: FusionCommand, facts: LaunchFacts) -> dict[str, Value]:
        """Operands whose values the group has computed."""
        wires = {}
        for k, slot in enumerate(command.slots):
            value = group.values.get(slot)
            if value is None:
                continue
            if k == facts.out:
                for name in facts.aliased:
                    wires[name] = value
            else:
                wires[facts.names[k]] = value
            self._note_start(command, facts.offsets[k])
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
        target.reads |= other.reads
        target.writes |= other.writes
        target.crossed |= other.crossed
        for command in other.frees:
            if command in target.frees:
                self._waiting[command.slots[0]] -= 1
            else:
                target.frees.append(command)

    def _has_room(self, groups: list[Group], command: FusionCommand) -> bool:
        """Whether a kernel of these groups and a launch stays within the buffers that a device binds."""
        if sum(len(g.members) for g in groups) >= MOST_MEMBERS:
            return False
        extra = sum(sum(s in SHARED for s in g.anchor.command.slots) for g in groups if g.anchor is not None)
        # So many there are at most; mostly that is few.
        if sum(len(g.reads) + len(g.writes) for g in groups) + len(command.slots) + extra <= self._most:
            return True
        reads, written = set[int](), set[int]()
        for g in groups:
            reads |= g.reads - g.writes
            written |= g.writes
        own = command.needs
        reads.update([s for s in own if s not in written])
        short, left = self._short, self._reads_left
        kept = {s for s in written if s not in short or left[s] > (s in own)}.union(command.writes)
        return len(reads - kept) + len(kept) + extra <= self._most

    def _dies(self, slot: int, readers: int = 0) -> bool:
        """Whether nobody needs a slot's values after what has been read so far, and so many more readers."""
        return slot in self._short and self._reads_left[slot] - readers <= 0

    def _anchor(self, command: FusionCommand, facts: LaunchFacts, makers: list[Group]) -> Group | None:
        """Let a kernel's loads compute what a group of expressions would have stored for it alone."""
        if facts.load < 0 or len(makers) != 1:
            return None
        group, slot = makers[0], command.slots[facts.load]
        if (
            group.anchor is not None
            or slot not in group.values
            or command.slots.count(slot) != 1
            or any(s in group.writes for s in command.slots if s != slot)
            or not all(self._dies(w, w == slot) for w in group.writes)
            or any(m.facts.is_view for m in group.members)
            or not group.reads.isdisjoint(command.writes)
            or not self._has_room([group], command)
        ):
            return None
        for m in group.members:
            m.is_before = True
        member = Member(command, {facts.names[facts.load]: group.values[slot]})
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
