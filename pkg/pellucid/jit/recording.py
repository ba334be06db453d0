"""Listening to a function that runs: its windows, and what a replay could not do by itself."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..device.handover import is_work
from ..device.stream import Storage, stream
from ..op.symbols import Conditions
from ..profiler.lines import Line, caller
from ..profiler.listeners import ignore, listen
from ..tensors.tensor import Tensor
from .guards import Surroundings
from .per_replay import Draw, Update

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
        error: what users are told besides the reason; `DeviceError` with ``fullgraph`` if None.
    """

    def __init__(self, reason: str, final: bool = True, error: type[Exception] | None = None):
        super().__init__(reason)
        self.final, self.error = final, error


@dataclass
class Reading:
    """A value that was read, which Python may decide by.

    Args:
        slot: where it lies.
        offset: the first of its bytes.
        value: these.
        shown: its shape and dtype, as users know them.
        line: where it is read.
    """

    slot: int
    offset: int
    value: bytes
    shown: str
    line: Line


@dataclass
class Piece:
    """What a call records up to a read, or up to its return.

    Args:
        words: the records of its windows.
        brought: per-replay parameters, in order.
        reading: the value that is read at its end; None at the end of the call.
    """

    words: list[int] = field(default_factory=list)
    brought: list[Draw | Update] = field(default_factory=list)
    reading: Reading | None = None


class FunctionRecording:
    """What a call of a function does. Whoever makes one hands `take` to the stream, and ends it.

    Args:
        call: the call.
        splits: values may be read.
        fused: the launches of windows are fused, but for this listening.
        around: what is called, where the function finds numbers.

    Attributes:
        before: what was there before the call.
        result: what it returned; integers may be symbols.
        pieces: what it recorded between its reads.
        reason: why it cannot be replayed.
        is_final: no other call of it could be either.
        seconds: how long its Python ran.
        flushes: the function handed records to the device by itself, as an optimizer's step does.
        conditions: what its Python learned of the call's numbers.
        surroundings: what it found besides, before it ran.
    """

    def __init__(self, call: CallArguments, splits: bool, fused: bool, around: tuple):
        self.call, self._splits, self.fused = call, splits, fused
        self.before, self.surroundings = Before(), Surroundings(around)
        self.conditions = Conditions(call.given, call.offsets)
        self.result: Any = None
        self.pieces = [Piece()]
        self.reason: str | None = None
        self.is_final = self.flushes = self._is_reading = False
        self.seconds = 0.0
        self._thread = get_ident()

    @property
    def reads(self) -> list[Reading]:
        """The values that were read, in order."""
        return [piece.reading for piece in self.pieces if piece.reading is not None]

    @property
    def brought(self) -> list[Draw | Update]:
        """All per-replay parameters, in order."""
        return [parameter for piece in self.pieces for parameter in piece.brought]

    def run(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
        """Call the function and listen."""
        s, call = stream(), self.call
        if call.given:
            args, kwargs = call.with_symbols(args, kwargs, self.conditions)
        # Views add to the offsets of the arguments, and launches take them as words.
        offsets = [(t, self.conditions.offset(k)) for k, t in enumerate(call.tensors)]
        s.capturing = self
        listen(self._ran)
        begun = perf_counter()
        try:
            for t, offset in offsets:
                t._offset = offset
            self.result = function(*args, **kwargs)
        finally:
            s.capturing = None
            ignore(self._ran)
            for t, offset in offsets:
                if t._offset is offset:
                    t._offset = int(offset)
        if self.conditions.reason is not None and self.reason is None:
            self.reason, self.is_final = self.conditions.reason, True
        self.seconds += perf_counter() - begun
        s.flush()

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
        self.pieces[-1].words += records
        self.flushes |= stream().capturing is self and not self._is_reading

    # What the function's ops tell

    def refuse(self, reason: str, final: bool = True) -> None:
        """The call cannot be replayed, and with ``final`` no other one either."""
        if self.reason is None or (final and not self.is_final):
            self.reason, self.is_final = f"{reason} ({caller()})", final

    def read(self, x: Tensor) -> Any:
        """The bytes of a tensor as they lie, for Python: the program is split here."""
        s, meta = stream(), x._meta
        offset, nbytes = x._extent()
        self._is_reading = self._splits and nbytes <= _MOST_BYTES
        if self._splits and not self._is_reading:
            self.refuse(
                f"it reads {nbytes} bytes, and a program is split only where {_MOST_BYTES} or less are read"
            )
        begun = perf_counter()
        try:
            read = s.begin_read(x._storage, offset, nbytes)
            flushes = s.flushes
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
            self.pieces[-1].reading = Reading(x._storage.slot, offset, value, shown, caller())
            self.pieces.append(Piece())
        return data

    def note_read(self) -> None:
        """A value is read, which Python may decide by."""
        if not self._is_reading:
            self.refuse("it reads a value, and the call waits for the device there")

    def note_upload(self, nbytes: int) -> None:
        """Data of Python's is uploaded at once, outside the records."""
        # What a function makes at its first call and keeps, such as a table, is there at the next one.
        self.refuse(f"it uploads {nbytes} bytes. Make the tensor before the call", False)

    def note_draw(self, generator: Generator, count: int, words: tuple) -> tuple:
        """A generator gives words: what stands for them."""
        if not count:
            return words
        self.pieces[-1].brought.append(Draw(generator, count, self.call))
        reason = "it draws random numbers in Python, not on webgpu"
        return tuple([self.conditions.brought(word, reason) for word in words])

    def note_update(
        self, optimizer: Optimizer, parameter: Tensor, group: dict[str, Any], numbers: tuple[float, ...]
    ) -> tuple:
        """An optimizer is about to change a parameter by these numbers: what stands for them."""
        state = optimizer.state.get(parameter)
        step = None if state is None else state.get("step")
        for found in self.brought:
            if isinstance(found, Update) and found.is_of(optimizer, group, step):
                break
        else:
            reason = f"{type(optimizer).__name__} changes parameters that are not on webgpu"
            symbols = tuple([self.conditions.brought(x, reason) for x in numbers])
            found = Update(optimizer, group, step, symbols)
            self.pieces[-1].brought.append(found)
        found.changed.add(id(parameter))
        if state is not None:
            found.states.append(state)
        return found.symbols


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
