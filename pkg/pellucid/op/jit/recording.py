"""Listening to a function that runs: its windows, and what a replay could not do by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import is_not
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from ...device.commands import is_work
from ...device.stream import stream
from ...profiler.lines import Line, caller
from ...profiler.listeners import ignore, listen
from ...profiler.living import LiveTensors
from ...tensors.tensor import Tensor
from ..symbols import Conditions
from .surroundings import Surroundings

if TYPE_CHECKING:
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
    brought: list[Any] = field(default_factory=list)
    reading: Reading | None = None


class FunctionRecording:
    """What a call of a function does. Whoever makes one hands `take` to the stream, and ends it.

    Args:
        call: the call.
        splits: values may be read.
        fused: the launches of windows are fused, but for this listening.
        around: what is called, where the function finds things besides its arguments.
        is_tapped: its result comes with what taps keep, by number.

    Attributes:
        under_way: of all threads, the one whose records the stream tells; None if none.
        before: what was there before the call.
        result: what it returned; integers may be symbols.
        pieces: what it recorded between its reads.
        refusal: why it cannot be replayed.
        seconds: how long its Python ran.
        flushes: the function handed records to the device by itself, as an optimizer's step does.
        conditions: what its Python learned of the call's numbers.
        surroundings: what it found besides, before it ran.
    """

    under_way: ClassVar[FunctionRecording | None] = None

    def __init__(self, call: CallArguments, splits: bool, fused: bool, around: tuple, is_tapped: bool):
        self.call, self._splits, self.fused, self.is_tapped = call, splits, fused, is_tapped
        self.before, self.surroundings = LiveTensors(), Surroundings((*around, *call.others), call.key[0])
        self.conditions = Conditions(call.given, call.offsets)
        self.result: Any = None
        self.pieces = [Piece()]
        why = self.surroundings.reason
        self.refusal = None if why is None else Refused(why)
        self.flushes = self._is_reading = False
        self.seconds = 0.0
        # Generators among the arguments: a replay draws from those of its call.
        self.generators = call.generators
        self._thread = get_ident()

    @property
    def is_whole(self) -> bool:
        """Whether no value may be read."""
        return not self._splits

    @property
    def reads(self) -> list[Reading]:
        """The values that were read, in order."""
        return [piece.reading for piece in self.pieces if piece.reading is not None]

    @property
    def brought(self) -> list[Any]:
        """All per-replay parameters, in order."""
        return [parameter for piece in self.pieces for parameter in piece.brought]

    def listen(self) -> None:
        """Notice the ops of other threads from here on."""
        listen(self._ran)

    def ignore(self) -> None:
        """End what `listen` began."""
        ignore(self._ran)

    def run(self, run: Callable[[Callable, tuple, dict[str, Any]], Any], function: Callable) -> None:
        """Call the function and note what it records."""
        s, call = stream(), self.call
        args, kwargs = call.with_symbols(self.conditions)
        # Views add to the offsets of the arguments, and launches take them as words.
        offsets = [(t, self.conditions.offset(k)) for k, t in enumerate(call.tensors)]
        s.capturing = self
        begun = perf_counter()
        try:
            for t, offset in offsets:
                t._offset = offset
            self.result = run(function, args, kwargs)
        finally:
            s.capturing = None
            for t, offset in offsets:
                if t._offset is offset:
                    t._offset = int(offset)
        if self.conditions.reason is not None and self.refusal is None:
            self.refusal = Refused(self.conditions.reason)
        if self.refusal is None and (what := self._changed()):
            self.refusal = Refused(f"it changes {what}, which a replay would not", False)
        self.seconds += perf_counter() - begun
        s.flush()

    def _changed(self) -> str:
        """What the function changed that captures compare."""
        call = self.call
        now = type(call)(call.dynamic, call.args, call.kwargs)
        # Of the key what arguments are, besides tensors. There is none where a tensor went to the cpu.
        if getattr(now, "key", ())[:3] != call.key[:3] or any(map(is_not, now.tensors, call.tensors)):
            return "what is in an argument"
        return self.surroundings.changed_by_itself()

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
        """The call cannot be replayed, and with ``final`` no other one; other threads end none."""
        final &= get_ident() == self._thread
        if self.refusal is None or (final and not self.refusal.final):
            self.refusal = Refused(f"{reason} ({caller()})", final)

    def read(self, x: Tensor) -> Any:
        """The bytes of a tensor as they lie, for Python: the program is split here."""
        s, meta = stream(), x._meta
        offset, nbytes = x._extent()
        if get_ident() != self._thread:
            return s.read(x._storage, offset, nbytes)
        self._is_reading = self._splits and nbytes <= _MOST_BYTES
        if self._splits and not self._is_reading:
            self.refuse(f"it reads {nbytes} bytes; a program is split where {_MOST_BYTES} or less are read")
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
            shown, value = f"{meta.dtype.name}{list(meta.shape)}", bytes(memoryview(data).cast("B")[:nbytes])
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

    def bring(self, parameter: Any, numbers: tuple, reason: str) -> tuple:
        """What stands for numbers that every replay brings anew.

        Args:
            parameter: brings them.
            numbers: those of this call.
            reason: why a call is not replayed whose Python takes one.
        """
        self.pieces[-1].brought.append(parameter)
        return tuple([self.conditions.brought(number, reason) for number in numbers])
