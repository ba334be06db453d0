"""Launches that become one before the walk over the window, because a kernel does the work of all of them.

A pattern is a set of runs; where it is found, and nobody in between minds, one command stands for the set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from ...device.commands import ALLOC, FREE
from ...device.stream import stream
from ...ops.attention.decode import place, step
from ...ops.attention.joint import Joint
from ...ops.quant.vectors import vectors
from ..kernel.source import load
from ..launches import RegisteredLaunch, on_thin, register
from .commands import FusionCommand, run_of
from .work import WRITING, Work

# Joints of each kind that are remembered.
_MOST_JOINTS = 1024


@lru_cache(_MOST_JOINTS)
def _vectors(
    products: tuple[RegisteredLaunch, ...], norm: RegisteredLaunch | None = None, paired: bool = False
) -> Joint | None:
    return vectors(products, norm, paired)


@lru_cache(_MOST_JOINTS)
def _step(parts: tuple[RegisteredLaunch, ...]) -> Joint | None:
    return step(parts)


@lru_cache(_MOST_JOINTS)
def _place(parts: tuple[RegisteredLaunch, ...]) -> Joint | None:
    return place(parts)


# They hold launches. Those of a closed device are never met again.
for _cached in (_vectors, _step, _place):
    stream().on_close.append(_cached.cache_clear)
    on_thin.append(_cached.cache_clear)
# Launches among which those that bring new positions to attention are looked for.
_NEAR = 6


class Joiner:
    """Finds patterns in a window.

    Args:
        words: the window.
        commands: the same, read.
    """

    def __init__(self, words: list[int], commands: list[FusionCommand]):
        self._words = words
        self._commands = commands
        self._runs = [k for k, r in enumerate(commands) if r.node is not None]
        # By slot: numbers of the commands that use it.
        self._touching: dict[int, list[int]] = defaultdict(list)
        # By slot: number of the command that ends it. And slots that the window makes and ends.
        self._ends: dict[int, int] = {}
        self._short: set[int] = set()
        # Words that were taken to be zero.
        self.zeros: list[int] = []
        # Whether what was found gives the bits of its parts; a product that sums in another order does not.
        self.is_exact = True

    def _look(self) -> Work[None]:
        """Find who uses and who ends each slot."""
        for k, r in enumerate(self._commands):
            yield int(r.is_run)
            if r.code == FREE:
                self._ends[r.slots[0]] = k
            elif r.code != ALLOC:
                for slot in set(r.slots):
                    self._touching[slot].append(k)
        self._short = {r.slots[0] for r in self._commands if r.code == ALLOC} & self._ends.keys()

    def run(self) -> Work[list[FusionCommand]]:
        """The commands, with those of a pattern replaced by the one that stands for them."""
        attend, write = load("attention/decode_step").header.joins[4], load("attention/place").header.joins[2]
        # The step before what it contains.
        found_from = (
            (self._vectors, [k for k in self._runs if self._is_product(k)]),
            (self._step, [k for k in self._runs if self._name(k) == attend]),
            (self._place, [k for k in self._runs if self._name(k) == write]),
        )
        if not any(begin for _, begin in found_from):
            return self._commands
        yield from self._look()
        placed: dict[int, FusionCommand] = {}
        gone: set[int] = set()
        for find, begin in found_from:
            for k in begin:
                yield 1
                found = None if k in gone else find(k, gone)
                if found is not None:
                    joint, numbers = found
                    # The norm before products waits for the first of them; all else comes early.
                    first = k if find == self._vectors else min(numbers)
                    yield WRITING * (joint.node.number < 0)
                    placed[first] = self._stand_for(joint, [self._commands[n] for n in numbers])
                    gone.update(numbers)
                    self.is_exact = self.is_exact and find == self._place
        return [placed.get(k, r) for k, r in enumerate(self._commands) if k in placed or k not in gone]

    def _name(self, k: int) -> str:
        node = self._commands[k].node
        return "" if node is None else node.source.name

    def _is_product(self, k: int) -> bool:
        """Whether there is a kernel of several such launches."""
        node = self._commands[k].node
        return node is not None and bool(node.source.header.joint)

    def _slot(self, k: int, binding: str) -> int:
        command = self._commands[k]
        assert command.node is not None
        return command.slots[command.node.binding(binding)]

    def _offset_at(self, k: int, binding: str) -> int | None:
        """Where the word of an offset lies; None where it is fixed."""
        command = self._commands[k]
        assert command.node is not None
        word = command.node.offset_word(binding)
        return None if word is None else command.patch_at(word)

    def _vectors(self, first: int, gone: set[int]) -> tuple[Joint, list[int]] | None:
        """Products of the same rows that share a launch, with the norm before them; and their numbers."""
        x = self._slot(first, "x")
        chosen = [first]
        for k in self._touching[x]:
            if k <= first:
                continue
            if x in self._commands[k].writes:
                break
            if (
                k not in gone
                and self._is_product(k)
                and self._begins(k, "x")
                and self._movable(k, first)
                and len(chosen) < 3
                and _vectors((self._node(first), self._node(k))) is not None
            ):
                chosen.append(k)
        if not self._begins(first, "x"):
            chosen = [first]
        norm = self._norm_before(x, chosen) if len(self._touching[x]) == 1 + len(chosen) else None
        for size in range(len(chosen), 0, -1):
            products = tuple([self._node(k) for k in chosen[:size]])
            rows = {int(p.values["rows"]) for p in products}
            for with_norm in (norm, None) if size == len(chosen) else (None,):
                node = None if with_norm is None else self._node(with_norm)
                joint = _vectors(products, node, size == 2 and len(rows) == 1)
                if joint is not None:
                    numbers = chosen[:size] if with_norm is None else [*chosen[:size], with_norm]
                    for k in chosen[:size] if size > 1 else ():
                        self._note_begin(k, "x")
                    return joint, numbers
        return None

    def _step(self, attend: int, gone: set[int]) -> tuple[Joint, list[int]] | None:
        """The launches of one new position of attention; and their numbers."""
        joins = load("attention/decode_step").header.joins
        keys, values = self._slot(attend, "key"), self._slot(attend, "value")
        turn_query = self._maker(self._slot(attend, "query"), attend)
        write_key, write_value = self._last_writer(keys, attend), self._last_writer(values, attend)
        combine = self._reader(self._slot(attend, "state"), attend)
        if turn_query is None or write_key is None or write_value is None or combine is None:
            return None
        if self._name(write_key) != joins[2]:
            return None
        turn_key = self._maker(self._slot(write_key, "rows"), write_key)
        if turn_key is None:
            return None
        numbers = [turn_query, turn_key, write_key, write_value, attend, combine]
        if tuple(self._name(n) for n in numbers) != joins:
            return None
        begin = [
            (attend, "query"), (attend, "key"), (attend, "value"), (write_key, "cache"), (write_key, "rows"),
            (write_value, "cache"), (turn_query, "cosines"), (turn_query, "sines"), (turn_key, "cosines"),
            (turn_key, "sines"),
        ]  # fmt: skip
        alike = all(self._slot(turn_query, t) == self._slot(turn_key, t) for t in ("cosines", "sines"))
        if not alike or not all(self._begins(*where) for where in begin):
            return None
        joint = _step(tuple([self._node(n) for n in numbers]))
        if joint is None:
            return None
        numbers = numbers[: len(joint.node.members)]
        if not self._together(numbers):
            return None
        for where in begin:
            self._note_begin(*where)
        return joint, numbers

    def _place(self, write_key: int, gone: set[int]) -> tuple[Joint, list[int]] | None:
        """The launches that bring new positions to attention; and their numbers."""
        turn, _, write, _ = load("attention/place").header.joins
        turn_key = self._maker(self._slot(write_key, "rows"), write_key)
        if turn_key is None or turn_key in gone or self._name(turn_key) != turn:
            return None
        at = self._runs.index(write_key)
        near = [k for k in self._runs[max(at - _NEAR, 0) : at + _NEAR] if k not in gone]
        turns = [k for k in near if self._name(k) == turn and k != turn_key]
        writes = [k for k in near if self._name(k) == write and k != write_key]
        tables = ("cosines", "sines")
        turns = [k for k in turns if all(self._slot(k, t) == self._slot(turn_key, t) for t in tables)]
        if not turns or not writes:
            return None
        numbers = [min(turns, key=lambda k: abs(k - turn_key)), turn_key, write_key]
        numbers.append(min(writes, key=lambda k: abs(k - write_key)))
        begin = [(k, t) for k in numbers[:2] for t in tables] + [(write_key, "rows")]
        if not all(self._begins(*where) for where in begin) or not self._together(numbers):
            return None
        joint = _place(tuple([self._node(k) for k in numbers]))
        if joint is None:
            return None
        for where in begin:
            self._note_begin(*where)
        return joint, numbers

    def _maker(self, slot: int, reader: int) -> int | None:
        """Who computes what only one run reads."""
        touching = self._touching[slot]
        return touching[0] if touching[1:] == [reader] and slot in self._short else None

    def _reader(self, slot: int, maker: int) -> int | None:
        """Who alone reads what a run computes."""
        touching = self._touching[slot]
        return touching[1] if len(touching) == 2 and touching[0] == maker and slot in self._short else None

    def _last_writer(self, slot: int, before: int) -> int | None:
        """The run that touched a slot last before another one, if it wrote it."""
        touching = self._touching[slot]
        place = touching.index(before)
        last = touching[place - 1] if place else None
        return last if last is not None and slot in self._commands[last].writes else None

    def _together(self, numbers: Sequence[int]) -> bool:
        """Whether runs may all take place where the first of them does."""
        first, own = min(numbers), set(numbers)
        return not any(
            first < n < k
            and n not in own
            and (slot in self._commands[k].writes or slot in self._commands[n].writes)
            for k in numbers
            for slot in self._commands[k].slots
            for n in self._touching[slot]
        )

    def _node(self, k: int):
        node = self._commands[k].node
        assert node is not None
        return node

    def _begins(self, k: int, binding: str) -> bool:
        at = self._offset_at(k, binding)
        return at is None or self._words[at] == 0

    def _note_begin(self, k: int, binding: str) -> None:
        at = self._offset_at(k, binding)
        if at is not None:
            self.zeros.append(at)

    def _norm_before(self, x: int, chosen: Sequence[int]) -> int | None:
        """The norm whose output only these products read, and whose inputs stay until they run."""
        maker = self._touching[x][0]
        norms = self._node(chosen[0]).source.header.norms
        if self._name(maker) not in norms or x not in self._short or x not in self._commands[maker].writes:
            return None
        inputs = [slot for slot in self._commands[maker].slots if slot != x]
        return maker if self._unwritten(inputs, maker, chosen[0]) else None

    def _movable(self, k: int, to: int) -> bool:
        """Whether a run may take place earlier: its inputs are there, and nobody uses its outputs between."""
        command = self._commands[k]
        outputs = command.writes
        inputs = [slot for slot in command.slots if slot not in outputs]
        unused = not any(to < n < k for slot in outputs for n in self._touching[slot])
        return unused and self._unwritten(inputs, to, k)

    def _unwritten(self, slots: Sequence[int], after: int, before: int) -> bool:
        """Whether slots keep their values from one command to another."""
        return not any(
            after < n < before and (n == self._ends.get(slot) or slot in self._commands[n].writes)
            for slot in slots
            for n in [*self._touching[slot], self._ends.get(slot, -1)]
        )

    @staticmethod
    def _stand_for(joint: Joint, parts: Sequence[FusionCommand]) -> FusionCommand:
        """The command of a launch that stands for several."""
        if joint.node.number < 0:
            register(joint.node, later=True)
        slots = tuple(parts[part].slots[binding] for part, binding in joint.slots)
        words = [parts[part].words[binding] for part, binding in joint.slots]
        words += [parts[part].patch_at(patch) for part, patch in joint.patches]
        return run_of(joint.node, slots, words, tuple(parts))
