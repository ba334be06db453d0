"""A segment of a trace: what a function runs up to a read, or to its return."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..device.stream import Storage, stream
from ..op.symbols import Followed
from ..tensors.tensor import Tensor
from .calls import CallArguments
from .program import ARGUMENT, MADE, number_of, program_of
from .recording import FunctionRecording, Reading, Refused
from .replay import Replay, total
from .results import Results


class Start(NamedTuple):
    """Where a segment of a recorded call begins.

    Args:
        at: word of the recorded windows.
        carried: slots that the call made before and that are still there, with their bytes.
        external: slots that the call used before and that were there before it, arguments left out.
        brought: how many per-replay parameters come before it.
    """

    at: int = 0
    carried: dict[int, int] = {}
    external: frozenset[int] = frozenset()
    brought: int = 0


class Segment:
    """What a call recorded up to a read, or up to its return. Behind its arguments come slots of what earlier
    segments made and is still there.

    Args:
        call: its arguments.
        recording: what it recorded.
        start: where the segment begins.
        reading: the value that is read at its end; None at the end of the call.

    Attributes:
        program: the records.
        brought: its per-replay parameters.
        end: what comes after the read.

    Raises:
        Refused: it cannot be replayed, or leaves a trace before a read.
    """

    def __init__(
        self, call: CallArguments, recording: FunctionRecording, start: Start, reading: Reading | None = None
    ):
        self._fused, self._start, self.reading = recording.fused, start, reading
        slots = [*call.slots, *start.carried]
        arguments = {slot: k for k, slot in reversed(list(enumerate(slots)))}
        at, brought = (None, None) if reading is None else (reading.at, reading.brought)
        words = recording.words[start.at : at]
        self.program = program = program_of(words, arguments, recording.conditions)
        self.brought = recording.brought[start.brought : brought]
        self._arguments, self._carried = len(slots), len(start.carried)
        self._key: Any = [p.key for p in self.brought]
        # Of what was made before, what a result is accounted as; and of what this makes, bytes and kind.
        self._kinds: list[tuple[int, str]] = []
        self._made = dict.fromkeys(program.alive.values(), "activation")
        self._gradients: frozenset[int] = frozenset()
        self._replay: Replay | None = None
        self._external: Any = None
        if reading is not None:
            self._end_in_read(call, recording, reading)

    def _end_in_read(self, call: CallArguments, recording: FunctionRecording, reading: Reading) -> None:
        """A call whose value is not known runs its Python from the beginning, after segments have been
        replayed. So these write only memory that they make."""
        program, start, given = self.program, self._start, len(call.slots)

        def is_outside(slot: int) -> bool:
            return number_of(slot) < given if slot & ARGUMENT else not slot & MADE

        if outside := {slot for slot in program.changed if is_outside(slot)}:
            writer = program.writer(outside) or "it"
            raise Refused(
                f"{writer} writes memory that was there before the call, and a value is read after that "
                f"({reading.line}): a call that reads another value could not begin again"
            )
        self._kept = [k for k, slot in enumerate(start.carried) if slot not in program.ended]
        self._kept += range(self._carried, self._carried + len(program.alive))
        left = {slot: nbytes for slot, nbytes in start.carried.items() if slot not in program.ended}
        carried = left | {slot: program.sizes[number] for slot, number in program.alive.items()}
        # Where the value lies: in an argument, in what goes on to the next segment, or outside.
        slot = reading.slot
        if slot in carried:
            self._source = "carried", list(carried).index(slot)
        elif slot in call.slots:
            self._source = "argument", call.slots.index(slot)
        else:
            self._source = "external", slot
            program.external.add(slot)
        self.end = Start(reading.at, carried, start.external | program.external, reading.brought)
        offset = reading.offset
        source = offset.source(recording.conditions) if type(offset) is Followed else None
        self._offset, self._form = (int(offset), ()) if source is None else source[1:]
        self._key += self._source, self._kept, len(reading.value), reading.shown, self._offset, self._form

    def end_in_return(
        self, call: CallArguments, recording: FunctionRecording, leaves: Sequence[Tensor]
    ) -> Results:
        """The recipe of what the call returned, and left as gradients of leaves.

        Raises:
            Refused: it cannot be made again.
        """
        program, carried, count = self.program, self._start.carried, self._carried
        if not program.runs and not recording.reads:
            raise Refused("it runs nothing on webgpu")
        alive = {slot: k for k, slot in enumerate(carried) if slot not in program.ended}
        alive |= {slot: count + number for slot, number in program.alive.items()}
        results = Results(call, alive, recording, count)
        results.add_all(recording.result, leaves)
        sizes = [*carried.values(), *program.sizes]
        kept = results.carried.keys() | {count + number for number in results.made}
        if left := set(alive.values()) - kept:
            nbytes = sum(sizes[n] for n in left)
            raise Refused(
                f"Python keeps {len(left)} tensors of {nbytes} bytes that it makes and does not return", False
            )
        self._made = results.made
        self._kinds = [(n, kind) for n, kind in results.carried.items() if kind != "activation"]
        self._gradients = frozenset(
            results.tensors[place].number - count
            for place in results.grads
            if place is not None and place != -1 and not results.tensors[place].is_argument
        )
        self._key += results.signature, results.plain, results.grads
        return results

    def find(self, storages: dict[int, Storage]) -> None:
        """Find what the value is read of, where the function did so by itself."""
        if self.reading is not None and self._source[0] == "external" and self._external is None:
            self._external = weakref.ref(storages[self._source[1]])

    def is_like(self, other: Segment) -> bool:
        """Whether both are one program, which replays serve alike."""
        return self._key == other._key and self.program.words == other.program.words

    # Replays

    @property
    def dispatches(self) -> int:
        return 0 if self._replay is None else self._replay.dispatches

    def prepare(self) -> Replay:
        """The window, made ahead so that its kernels compile while other work goes on."""
        if self._replay is None:
            made, sizes = list(self._made), self.program.sizes
            # An interrupt may fall between the two.
            self._sizes = [(sizes[n], kind) for n, kind in self._made.items()]
            self._replay = Replay(self.program, self._arguments, made, self._gradients, self._fused)
        return self._replay

    def bring(self, call: CallArguments, values: list[int]) -> list[int]:
        """The values of a replay with those of the segment's per-replay parameters."""
        for parameter in self.brought:
            values = values + parameter.words(call)
        return values

    def run(self, call: CallArguments, values: list[int], carried: list[Storage]) -> list[Storage]:
        """Replay the segment; returns what is carried from earlier ones, and what it made."""
        replay = self._replay or self.prepare()
        replay.make_room()
        storages = [Storage(nbytes, kind, True) for nbytes, kind in self._sizes]
        if carried:
            storages = [*carried, *storages]
            for n, kind in self._kinds:
                storages[n].set_kind(kind)
        replay.submit(call.slots + [s.slot for s in storages], values)
        return storages

    def read(
        self, call: CallArguments, values: list[int], storages: list[Storage]
    ) -> tuple[bytes, list[Storage]]:
        """Wait for the value; returns its bytes, and what goes on to the next segment."""
        assert self.reading is not None
        storages = [storages[k] for k in self._kept]
        where, number = self._source
        if where == "external":
            storage = self._external()
        else:
            storage = storages[number] if where == "carried" else call.tensors[number]._storage
        nbytes = len(self.reading.value)
        data = stream().read(storage, total(values, self._offset, self._form), nbytes)
        return bytes(memoryview(data).cast("B")[:nbytes]), storages
