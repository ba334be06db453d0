"""A program that is split where its function reads values: what runs on depends on what was read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ..device.stream import Storage
from .calls import CallArguments
from .captured import GONE, OTHER, READY, UNSURE, Capture
from .recording import Before, FunctionRecording
from .segment import Draws, Head, Segment
from .stretch import BEGINNING, Start

# Values of one read that programs are kept for.
_MOST_VALUES = 8
# Ways through all reads of a function, and programs of one way: of training and evaluation, say.
_MOST_PATHS, _MOST_ALIKE = 16, 4


class TooMany(Exception):
    """There are more values, or ways through the reads, than programs are kept for."""


@dataclass
class Path:
    """One way through the reads of a function.

    Args:
        heads: what runs before each read. Paths that begin alike share them.
        values: what each read gave.
        capture: what runs after the last one; its guards are those of the whole way.
    """

    heads: list[Head]
    values: list[bytes]
    capture: Capture

    def look(self, call: CallArguments) -> tuple[str, CallArguments]:
        """What the way is for a call; see `Capture.look`."""
        state, own = self.capture.look(call)
        if state is READY and not all(head.law.holds(call.values) for head in self.heads):
            return UNSURE, own
        return state, own

    def goes_on(self, depth: int, head: Head, value: bytes) -> bool:
        """Whether it is a way for a call that read this value after so many others."""
        return depth < len(self.heads) and self.heads[depth] is head and self.values[depth] == value

    def prepare(self) -> None:
        for head in self.heads:
            head.prepare()
        self.capture.prepare()


@dataclass
class Asked:
    """What a call may be, before it is recorded.

    Args:
        call: the call.
        paths: ways that it may go, each with the call as it takes it.
    """

    call: CallArguments
    paths: list[tuple[Path, CallArguments]]


class Unknown(Exception):
    """A read gave a value that no program goes on from; nothing of the call is left.

    Args:
        asked: what the call may be.
    """

    def __init__(self, asked: Asked):
        super().__init__()
        self.asked = asked


def _segments(call: CallArguments, recording: FunctionRecording) -> tuple[list[Segment], Start]:
    """What a call recorded before each of its reads, and where the rest begins."""
    start, found = BEGINNING, []
    for reading in recording.reads:
        segment = Segment(call, recording, start, reading)
        found.append(segment)
        start = segment.end
    return found, start


class Split:
    """Programs of one function that begin alike and read values.

    A call is replayed up to the first read, the value is read as an eager call would, and the program that
    goes on from this value is replayed up to its next read, and so on.

    Args:
        call: a call.
        recording: what it recorded.
        before: what was there before it.
        result: what it returned.

    Raises:
        Refused: it cannot be replayed.
    """

    def __init__(self, call: CallArguments, recording: FunctionRecording, before: Before, result: Any):
        # The way that was taken last comes first.
        self._paths: list[Path] = []
        segments, start = _segments(call, recording)
        self._append([], segments, start, call, recording, before, result)
        self._root = self._paths[0].heads[0]

    # Telling

    @property
    def replays(self) -> int:
        return sum(path.capture.replays for path in self._paths)

    @property
    def launches(self) -> int:
        """Those of the longest way."""
        return max(
            path.capture.launches + sum(len(head.segment.program.runs) for head in path.heads)
            for path in self._paths
        )

    @property
    def dispatches(self) -> int:
        """Those of the longest way that was replayed."""
        ways = (p for p in self._paths if p.capture.replays)
        return max((p.capture.dispatches + sum(h.dispatches for h in p.heads) for p in ways), default=0)

    def describe(self) -> list[str]:
        """Where the program is split, a line of text for each line of the function that reads."""
        values: dict[Head, set[bytes]] = defaultdict(set)
        for path in self._paths:
            for head, value in zip(path.heads, path.values, strict=True):
                values[head].add(value)
        lines: dict[str, list[int]] = defaultdict(list)
        for head, known in values.items():
            reading = head.segment.reading
            lines[f"split at {reading.line}, where it reads {reading.shown}"].append(len(known))
        return [
            f"{text}: {sum(counts)} continuations known"
            + (f" of {len(counts)} reads" if len(counts) > 1 else "")
            for text, counts in lines.items()
        ]

    # Guards

    @property
    def is_hooked(self) -> bool:
        return any(path.capture.is_hooked for path in self._paths)

    def look(self, call: CallArguments) -> tuple[str, Any]:
        """What this is for a call, ready if any way is: all of them begin alike.

        Returns:
            That, and what `serve` takes, or `confirm`.
        """
        states = set()
        for path in list(self._paths):
            state, _ = path.look(call)
            if state is READY:
                return READY, call
            if state is GONE:
                self._paths.remove(path)
            states.add(state)
        if UNSURE in states:
            return UNSURE, self._ask(call)
        return (OTHER if OTHER in states else GONE), call

    def _ask(self, call: CallArguments) -> Asked:
        looks = [(path, *path.look(call)) for path in self._paths]
        return Asked(call, [(path, own) for path, state, own in looks if state is UNSURE])

    # Learning

    def confirm(self, asked: Asked, recording: FunctionRecording, result: Any) -> bool:
        """Learn from a call that was recorded once more; whether it went a way that is known.

        Raises:
            Refused: what it made is still held.
            Lawless: it did, but for a number that does not follow a dynamic argument.
        """
        segments, start = _segments(asked.call, recording)
        values = [reading.value for reading in recording.reads]
        for path, own in asked.paths:
            if path.values != values or not self._learn(path.heads, asked.call, segments):
                continue
            if path.capture.confirm(own, recording, result, start):
                path.prepare()
                self._first(path)
                return True
        return False

    def add(self, call: CallArguments, recording: FunctionRecording, before: Before, result: Any) -> bool:
        """Add the way that a call went, if it began like the others.

        Raises:
            Refused: it cannot be replayed.
            TooMany: there are too many ways already.
        """
        segments, start = _segments(call, recording)
        known = [self._root]
        for depth, reading in enumerate(recording.reads[:-1]):
            ways = (p for p in self._paths if p.goes_on(depth, known[-1], reading.value))
            following = (p.heads[depth + 1] for p in ways if depth + 1 < len(p.heads))
            same = next((head for head in following if head.is_of(call, segments[depth + 1])), None)
            if same is None:
                break
            known.append(same)
        if not self._learn(known, call, segments):
            return False
        self._append(known, segments, start, call, recording, before, result)
        return True

    @staticmethod
    def _learn(heads: list[Head], call: CallArguments, segments: list[Segment]) -> bool:
        return len(heads) <= len(segments) and all(
            head.learn(call, segment) for head, segment in zip(heads, segments)
        )

    def _append(
        self,
        known: list[Head],
        segments: list[Segment],
        start: Start,
        call: CallArguments,
        recording: FunctionRecording,
        before: Before,
        result: Any,
    ) -> None:
        values = [reading.value for reading in recording.reads]
        for depth, head in enumerate(known):
            found = {p.values[depth] for p in self._paths if depth < len(p.heads) and p.heads[depth] is head}
            if len(found | {values[depth]}) > _MOST_VALUES:
                reading = head.segment.reading
                raise TooMany(
                    f"it reads {reading.shown}, which had more than {_MOST_VALUES} values ({reading.line}). "
                    "What only Python needs is better returned, and read after the call"
                )
        alike = [path for path in self._paths if path.values == values]
        if not alike and len({tuple(path.values) for path in self._paths}) == _MOST_PATHS:
            raise TooMany(f"it goes more than {_MOST_PATHS} ways through the values that it reads")
        capture = Capture(call, recording, before, result, start)
        heads = known + [Head(call, s, before, recording.fused) for s in segments[len(known) :]]
        for path in alike[_MOST_ALIKE - 1 :]:
            self._paths.remove(path)
        self._first(Path(heads, values, capture))

    def _first(self, path: Path) -> None:
        self._paths[:] = [path, *[other for other in self._paths if other is not path]]

    # Replays

    def serve(self, call: CallArguments) -> Any:
        """Replay: the results of a call without running its Python.

        Raises:
            Unknown: it read a value that no program goes on from.
        """
        carried: list[Storage] = []
        draws, head, depth = Draws(), self._root, 0
        while True:
            value, carried = head.run(call, carried, draws)
            # While Python waited, another task may have changed what the guards look at.
            ways = (p for p in self._paths if p.goes_on(depth, head, value))
            found = next(((p, own) for p in ways for state, own in [p.look(call)] if state is READY), None)
            if found is None:
                draws.give_back()
                raise Unknown(self._ask(call))
            path, own = found
            depth += 1
            if depth == len(path.heads):
                return path.capture.serve(own, carried)
            head = path.heads[depth]


__all__ = ["Split", "TooMany", "Unknown"]
