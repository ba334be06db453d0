"""Listening to a function that runs: its windows, and what a replay could not do by itself."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..device.handover import is_work
from ..device.stream import Storage, stream
from ..op.symbols import Conditions, returned
from ..profiler.lines import Line, caller
from ..profiler.listeners import ignore, listen
from ..tensors.tensor import Tensor
from .surroundings import Surroundings

if TYPE_CHECKING:
    from ..ops.random.generator import Generator
    from ..optim.optimizer import Optimizer
    from .calls import CallArguments


# Bytes that a program may go on by: values that a function decides by, not data.
_MOST_BYTES = 1024


class Refused(Exception):
    """What was recorded cannot be replayed.

    Args:
        reason: why.
        final: whether that of the next call could not be either.
    """

    def __init__(self, reason: str, final: bool = True):
        super().__init__(reason)
        self.final = final


@dataclass
class Draw:
    """Random numbers that were reserved.

    Args:
        at: word of the recorded windows that comes next.
        generator: whose.
        count: how many words.
        state: what `Generator.take` gave: four words.
    """

    at: int
    generator: Generator
    count: int
    state: tuple[int, int, int, int]


@dataclass
class Update:
    """A parameter that an optimizer changes with its next launch.

    Args:
        at: word of the recorded windows that comes next.
        optimizer: whose.
        parameter: the parameter.
        group: its settings.
        state: what the optimizer keeps of it, if it keeps something.
        step: how many steps that counts by now.
        table: where it keeps that of all.
    """

    at: int
    optimizer: Optimizer
    parameter: Tensor
    group: dict[str, Any]
    state: dict[str, Any] | None
    step: int | None
    table: Any


@dataclass
class Reading:
    """A value that was read, which Python may decide by.

    Args:
        at: word of the recorded windows that comes next.
        slot: where it lies.
        offset: the first of its bytes.
        value: these.
        shown: its shape and dtype, as users know them.
        line: where it is read.
        conditions: what Python had learned of the call's numbers before.
    """

    at: int
    slot: int
    offset: int
    value: bytes
    shown: str
    line: Line
    conditions: Conditions


@dataclass
class FunctionRecording:
    """What a function does. Whoever makes one hands `take` to the stream, and ends it.

    Args:
        splits: values may be read.
        fused: the launches of windows are fused, but for this listening.
        words: the records of its windows.
        draws, updates: numbers that are other ones at every call, in order.
        reads: values that were read, in order.
        reason: why it cannot be replayed.
        is_final: no other call of it could be either.
        seconds: how long its Python ran.
        flushes: the function handed records to the device by itself, as an optimizer's step does.
        conditions: what its Python learned of the call's numbers.
        surroundings: what it found besides, before it ran.
    """

    splits: bool = False
    fused: bool = False
    words: list[int] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    reads: list[Reading] = field(default_factory=list)
    reason: str | None = None
    is_final: bool = False
    seconds: float = 0.0
    flushes: bool = False
    conditions: Conditions = field(default_factory=lambda: Conditions(()))
    surroundings: Surroundings = field(default_factory=lambda: Surroundings(()))

    _is_reading: bool = field(default=False, init=False)

    def run(self, function: Callable, call: CallArguments, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call the function and listen."""
        s = stream()
        self.conditions = conditions = Conditions(call.given)
        if call.given:
            args, kwargs = call.with_symbols(args, kwargs, conditions)
        s.capturing = self
        self._thread = get_ident()
        listen(self._ran)
        begun = perf_counter()
        try:
            result = function(*args, **kwargs)
            if call.given:
                result = returned(result)
        finally:
            s.capturing = None
            ignore(self._ran)
        self.seconds += perf_counter() - begun
        s.flush()
        return result

    def collect(self) -> None:
        """Let cycles of what the function made go, as they would sooner or later."""
        gc.collect()
        stream().flush()

    def _ran(self, op: str) -> None:
        if not self.conditions.is_open:  # Ctrl-C came before `ignore`
            ignore(self._ran)
        elif get_ident() != self._thread:
            self.refuse(f"another thread calls {op} meanwhile", False)

    def take(self, records: list[int]) -> None:
        """Note the records of a window."""
        self.words += records
        self.flushes |= stream().capturing is self and not self._is_reading

    @property
    def _at(self) -> int:
        return len(self.words) + len(stream().words)

    def noted(self, begin: int, end: int | None) -> tuple[list[Draw], list[Update]]:
        """The numbers of some of the words, as if there were no others."""
        past = len(self.words) + 1 if end is None else end
        draws = [replace(d, at=d.at - begin) for d in self.draws if begin <= d.at < past]
        return draws, [replace(u, at=u.at - begin) for u in self.updates if begin <= u.at < past]

    # What the function's ops tell

    def refuse(self, reason: str, final: bool = True) -> None:
        """The call cannot be replayed, and with ``final`` no other one either."""
        if self.reason is None or (final and not self.is_final):
            self.reason, self.is_final = f"{reason} ({caller()})", final

    def read(self, x: Tensor) -> Any:
        """The bytes of a tensor as they lie, for Python: the program is split here."""
        s, meta = stream(), x._meta
        offset, nbytes = x._extent()
        self._is_reading = self.splits and nbytes <= _MOST_BYTES
        if self.splits and not self._is_reading:
            self.refuse(
                f"it reads {nbytes} bytes, and a program is split only where {_MOST_BYTES} or less are read"
            )
        begun = perf_counter()
        try:
            read = s.begin_read(x._storage, offset, nbytes)
            at, flushes = len(self.words), s.flushes
            # What other tasks do while this one waits is no part of the call.
            s.capturing = None
            data = read.result()
        except BaseException:
            # Python may go on, in a way that it does not go where the read brings a value.
            self.refuse("a read fails", False)
            raise
        finally:
            is_split, self._is_reading = self._is_reading, False
            s.capturing = self
        self.seconds -= perf_counter() - begun
        if s.flushes != flushes or is_work(s.words[:]):
            self.refuse("another task used webgpu while it waited for a value", False)
        if is_split:
            shown = f"{meta.dtype.name}{list(meta.shape)}"
            value = bytes(memoryview(data).cast("B")[:nbytes])
            known = self.conditions.so_far()
            self.reads.append(Reading(at, x._storage.slot, offset, value, shown, caller(), known))
        return data

    def note_read(self) -> None:
        """A value is read, which Python may decide by."""
        if not self._is_reading:
            self.refuse("it reads a value, and the call waits for the device there")

    def note_upload(self, nbytes: int) -> None:
        """Data of Python's is uploaded at once, outside the records."""
        # What a function makes at its first call and keeps, such as a table, is there at the next one.
        self.refuse(f"it uploads {nbytes} bytes. Make the tensor before the call", False)

    def note_draw(self, generator: Generator, count: int) -> None:
        """A generator is about to give words."""
        seed, start = generator.seed_value, generator.offset
        state = seed & 0xFFFFFFFF, seed >> 32, start & 0xFFFFFFFF, start >> 32
        self.draws.append(Draw(self._at, generator, count, state))

    def note_update(self, optimizer: Optimizer, parameter: Tensor, group: dict[str, Any]) -> None:
        """An optimizer is about to change a parameter."""
        table, state = optimizer.state, optimizer.state.get(parameter)
        step = None if state is None else state.get("step")
        self.updates.append(Update(self._at, optimizer, parameter, group, state, step, table))


class Before:
    """Every tensor on webgpu that is alive, found by asking Python's collector. It holds them.

    Attributes:
        storages: slot -> storage.
        tensors: all tensors.
        nodes: their places in the graph.
        grads: the gradients of all leaves, by the leaf.
    """

    def __init__(self):
        self.storages: dict[int, Storage] = {}
        self.tensors: list[Tensor] = []
        for thing in gc.get_objects():
            # Not isinstance, which runs code of what only looks like a class.
            kind = type(thing)
            if kind is Storage:
                self.storages[thing.slot] = thing
            elif issubclass(kind, Tensor) and type(thing.__dict__.get("_storage")) is Storage:
                self.tensors.append(thing)
        self.nodes = [t._node for t in self.tensors]
        self.grads = {t: t.grad for t in self.tensors if t.requires_grad and t.is_leaf}
