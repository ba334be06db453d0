"""What a function runs between two reads, and the second of them, as a part of its programs."""

from __future__ import annotations

from ..device.stream import Storage, stream
from ..ops.random.generator import Generator
from .calls import CallArguments
from .captured import ref_of
from .law import Law
from .program import ARGUMENT, MADE, Program, number_of
from .recording import Before, FunctionRecording, Reading, Refused
from .replay import Replay
from .stretch import Start, Stretch


class Draws:
    """Random words that the segments of a call reserved, so that they can be given back."""

    def __init__(self):
        self._taken: list[tuple[Generator, tuple[int, int], tuple[int, int]]] = []

    def take(self, segment: Segment, call: CallArguments) -> list[tuple[int, ...]]:
        """Reserve the words of a segment."""
        generators = segment.followed.generators(call)
        before = [(g, g.get_state()) for g in dict.fromkeys(generators)]
        words = segment.followed.draws(call)
        self._taken += [(g, state, g.get_state()) for g, state in before]
        return words

    def give_back(self) -> None:
        """Let generators be as they were, where nobody else has drawn since."""
        for generator, before, after in reversed(self._taken):
            if generator.get_state() == after:
                generator.set_state(before)


class Segment(Stretch):
    """What a call recorded up to a read.

    A call whose value is not known runs its Python from the beginning, after segments have been replayed. So
    these write only memory that they make.

    Args:
        call: its arguments.
        recording: what it recorded.
        start: where the segment begins.
        reading: the value that is read.

    Attributes:
        reading: the same.
        arguments: how many slots it is handed.
        kept: places of those that it carries on, in what is carried to it.
        end: what comes after it.
        source: where the value lies: "argument" and its number, "carried" and its place in what goes on to
            the next segment, or "external" and its slot.

    Raises:
        Refused: it cannot be replayed, or leaves a trace.
    """

    rest = "the read"

    def __init__(self, call: CallArguments, recording: FunctionRecording, start: Start, reading: Reading):
        super().__init__(call, recording, start, reading.at)
        self.reading = reading
        program, carried = self.program, start.carried
        self.arguments = len(call.slots) + len(carried)
        self._refuse_traces(len(call.slots), bool(recording.noted(start.at, reading.at)[1]))
        self.kept = [k for k, slot in enumerate(carried) if slot not in program.ended]
        goes_on = {slot: n for slot, n in carried.items() if slot not in program.ended}
        goes_on |= {slot: program.sizes[number] for slot, number in program.alive.items()}
        slot = reading.slot
        if slot in goes_on:
            self.source = "carried", list(goes_on).index(slot)
        elif slot in call.slots:
            self.source = "argument", call.slots.index(slot)
        else:
            self.source = "external", slot
            program.external.add(slot)
        self.end = Start(reading.at, goes_on, start.external | program.external)
        self.numbers.append(reading.offset)
        self.signature = self.signature, self.source, self.kept, len(reading.value), reading.shown

    def _refuse_traces(self, arguments: int, is_step: bool) -> None:
        """Only what the call made itself may be written before a read."""

        def is_outside(slot: int) -> bool:
            return number_of(slot) < arguments if slot & ARGUMENT else not slot & MADE

        outside = {slot for slot in self.program.changed if is_outside(slot)}
        if outside or is_step:
            what = _writer(self.program, outside) or "it"
            raise Refused(
                f"{what} writes memory that was there before the call, and a value is read after that "
                f"({self.reading.line}): a call that reads another value could not begin again"
            )


def _writer(program: Program, slots: set[int]) -> str | None:
    """The op that writes one of these slots."""
    for _, at, node in program.runs:
        for k, binding in enumerate(node.source.bindings):
            if binding.written and program.words[at + 1 + k] in slots:
                return node.op
    return None


class Head:
    """Replays a segment, for all programs that begin with it.

    Args:
        call: a call.
        segment: what it recorded.
        before: what was there before it.
        fused: whether launches are fused.
    """

    def __init__(self, call: CallArguments, segment: Segment, before: Before, fused: bool):
        self.segment, self._fused = segment, fused
        self._conditions = segment.reading.conditions
        self.law: Law = segment.law(call)
        self._arguments = segment.arguments
        program, (where, number) = segment.program, segment.source
        self._made = [program.sizes[n] for n in program.alive.values()]
        self._external = ref_of(before.storages[number]) if where == "external" else None
        self._replay: Replay | None = None

    @property
    def dispatches(self) -> int:
        return 0 if self._replay is None else self._replay.dispatches

    def learn(self, call: CallArguments, segment: Segment) -> bool:
        """Learn from a call that was recorded; whether it runs the same segment.

        Raises:
            Lawless: it does, but for a number that does not follow a dynamic argument.
        """
        if not self.is_of(call, segment):
            return False
        replay, self._replay = self._replay, None
        learned = segment.teach(self.law, call)
        if not learned:
            self._replay = replay
        if learned is not None:
            self._conditions.join(segment.reading.conditions)
        return learned is not None

    def is_of(self, call: CallArguments, segment: Segment) -> bool:
        """Whether a call runs the same segment, and Python learned the same of its numbers: then they follow
        the same law."""
        return self._conditions.holds(call.given) and segment.is_like(self.segment)

    def prepare(self) -> Replay:
        """The window, made ahead so that its kernels compile while other work goes on."""
        if self._replay is None:
            s = self.segment
            made = list(s.program.alive.values())
            words = s.followed.words
            self._replay = Replay(
                s.program, self.law, s.places, self._arguments, words, made, frozenset(), self._fused
            )
        return self._replay

    def run(self, call: CallArguments, carried: list[Storage], draws: Draws) -> tuple[bytes, list[Storage]]:
        """Replay the segment and wait for the value.

        Args:
            call: the call.
            carried: what earlier segments made and is still there.
            draws: notes the random words that are reserved.

        Returns:
            The bytes that were read, and what goes on to the next segment.
        """
        replay, segment = self.prepare(), self.segment
        replay.make_room()
        made = [Storage(nbytes, "activation", True) for nbytes in self._made]
        slots = call.slots + [s.slot for s in carried] + [s.slot for s in made]
        replay.submit(slots, call.values, draws.take(segment, call), [])
        carried = [carried[k] for k in segment.kept] + made
        where, number = segment.source
        if self._external is not None:
            storage = self._external()
        else:
            storage = carried[number] if where == "carried" else call.tensors[number]._storage
        nbytes = len(segment.reading.value)
        data = stream().read(storage, self.law.plain(call.values)[0], nbytes)
        return bytes(memoryview(data).cast("B")[:nbytes]), carried


__all__ = ["Draws", "Head", "Segment"]
