"""A segment of a trace: what a function runs up to a read, or to its return."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from ...device.storage import LateStorages
from ...device.stream import Storage, stream
from ...tensors.tensor import Tensor
from ..fusion.replay import Replay, total
from ..program import ARGUMENT, MADE, Program, number_of
from ..symbols import Followed
from .calls import CallArguments
from .recording import FunctionRecording, Piece, Reading, Refused
from .results import Results


class Segment:
    """What a call recorded up to a read, or up to its return. Behind its arguments come slots of what earlier
    segments made and is still there.

    Args:
        call: its arguments.
        recording: what it recorded.
        piece: which part of that.
        before: the segment whose read leads to this one.

    Attributes:
        program: the records.
        brought: its per-replay parameters.
        carried: slots that the call made up to the end of the segment and that are still there, with their
            bytes.
        external: slots that the call used so far and that were there before it, arguments left out.

    Raises:
        Refused: it cannot be replayed.
    """

    def __init__(
        self, call: CallArguments, recording: FunctionRecording, piece: Piece, before: Segment | None
    ):
        self._fused, self.reading, self.brought = recording.fused, piece.reading, piece.brought
        carried = {} if before is None else before.carried
        slots = [*call.slots, *carried]
        arguments = {slot: k for k, slot in reversed(list(enumerate(slots)))}
        self.program = program = Program(piece.words, arguments, recording.conditions)
        self.external = program.external | (set() if before is None else before.external)
        self._arguments, self._count = len(slots), len(carried)
        self._made = [program.sizes[number] for number in program.alive.values()]
        # What was carried and what it makes, by place, as far as it is still there.
        self._places = {slot: k for k, slot in enumerate(carried) if slot not in program.ended}
        self._places |= {slot: len(carried) + k for k, slot in enumerate(program.alive)}
        sizes = [*carried.values(), *self._made]
        self.carried = {slot: sizes[place] for slot, place in self._places.items()}
        # What places of results are accounted as, but for activations.
        self._kinds: list[tuple[int, str]] = []
        self._gradients: set[int] = set()
        # Bytes of what only taps keep, and how that and the rest come together by place.
        self._late: list[int] = []
        self._mixed: Callable[[list[Any]], tuple[Any, ...]] = tuple
        # Where arguments begin, among the values of a call.
        self._begins = range(len(call.given), len(call.values))
        self._replay: Replay | None = None
        self._moved: Replay | None = None  # for arguments that begin elsewhere than the first one counts on
        self._key: Any = [p.key for p in self.brought]
        if piece.reading is not None:
            self._end_in_read(call, recording, piece.reading)

    def _end_in_read(self, call: CallArguments, recording: FunctionRecording, reading: Reading) -> None:
        """A call whose value is not known runs its Python from the beginning, after segments have been
        replayed. So these write only memory that they make."""
        program, given = self.program, len(call.slots)

        def is_outside(slot: int) -> bool:
            return number_of(slot) < given if slot & ARGUMENT else not slot & MADE

        if outside := {slot for slot in program.changed if is_outside(slot)}:
            writer = program.writer(outside) or "it"
            raise Refused(
                f"{writer} writes memory that was there before the call, and a value is read after that "
                f"({reading.line}): a call that reads another value could not begin again"
            )
        # Where the value lies: in an argument, in what goes on to the next segment, or outside.
        slot, inside = reading.slot, [*call.slots, *self.carried]
        self._source = inside.index(slot) if slot in inside else ~slot
        if self._source < 0:
            if slot not in recording.before.storages:
                raise Refused("it reads memory that came and went in the middle of it", False)
            self._outside = weakref.ref(recording.before.storages[slot])
            self.external.add(slot)
        offset = reading.offset
        source = offset.source(recording.conditions) if type(offset) is Followed else None
        self._offset, self._form = (int(offset), ()) if source is None else source[1:]
        kept = list(self._places.values())
        self._key += self._source, kept, len(reading.value), reading.shown, self._offset, self._form

    def end_in_return(
        self, call: CallArguments, recording: FunctionRecording, leaves: Sequence[Tensor]
    ) -> Results:
        """The recipe of what the call returned, and left as gradients of leaves.

        Raises:
            Refused: it cannot be made again.
        """
        if not self.program.runs and not recording.reads:
            raise Refused("it runs nothing on webgpu")
        results = Results(call, recording, self._places, leaves, self._count)
        left = [slot for slot, place in self._places.items() if place not in results.kinds]
        if left:
            nbytes = sum(self.carried[slot] for slot in left)
            raise Refused(
                f"Python keeps {len(left)} tensors of {nbytes} bytes that it makes and does not return", False
            )
        self._kinds = [(place, kind) for place, kind in results.kinds.items() if kind != "activation"]
        self._gradients = {place - self._count for place in results.gradients}
        if late := [place - self._count for place in results.late]:
            own = [k for k in range(len(self._made)) if k not in late]
            self._late = [self._made[k] for k in late]
            self._made = [self._made[k] for k in own]
            order = [*own, *late]
            self._mixed = itemgetter(*[order.index(k) for k in range(len(order))])
        self._key.append(results.key)
        return results

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
            self._replay = self._written(self._begins)
        return self._replay

    def _written(self, begins: range) -> Replay:
        return Replay(self.program, self._arguments, self._gradients, self._fused, begins)

    def bring(self, call: CallArguments, values: list[int]) -> list[int]:
        """The values of a replay with those of the segment's per-replay parameters."""
        for parameter in self.brought:
            values = values + parameter.words(call.generators)
        return values

    def run(
        self, call: CallArguments, values: list[int], carried: list[Storage]
    ) -> tuple[list[Any], LateStorages | None]:
        """Replay the segment; returns what is carried from earlier ones and what it made, and what of the
        latter only taps keep, of which the first has the slots."""
        replay = self._replay or self.prepare()
        if replay.is_moved(values):
            replay = self._moved = self._moved or self._written(range(0))
        s = stream()
        if s.is_limited and s.allocated + replay.passing_bytes > s.limit:
            s.make_room(replay.passing_bytes)
        storages: list[Any] = carried + Storage.made_by_window(self._made)
        slots, later = [each.slot for each in storages], None
        if self._late:
            later, count = LateStorages(self._late), self._count
            slots[count:] = self._mixed(slots[count:] + later.slots)
            storages[count:] = self._mixed(storages[count:] + later.slots)
        for place, kind in self._kinds:
            storages[place].set_kind(kind)
        replay.submit(call.slots + slots, values)
        return storages, later

    def read(
        self, call: CallArguments, values: list[int], storages: list[Storage]
    ) -> tuple[bytes, list[Storage]]:
        """Wait for the value; returns its bytes, and what goes on to the next segment."""
        assert self.reading is not None
        # What nobody needs any more goes before the wait.
        storages = [storages[place] for place in self._places.values()]
        source, count = self._source, len(call.tensors)
        if source < 0:
            storage: Any = self._outside()
        else:
            storage = call.tensors[source]._storage if source < count else storages[source - count]
        nbytes = len(self.reading.value)
        data = stream().read(storage, total(values, self._offset, self._form), nbytes)
        return bytes(memoryview(data).cast("B")[:nbytes]), storages
