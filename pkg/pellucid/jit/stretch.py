"""What a call recorded between two reads: its program, and the numbers that are other ones every time."""

from __future__ import annotations

from typing import Any, NamedTuple

from .calls import CallArguments
from .follow import Followed
from .law import Law, Unlawful
from .program import program_of
from .recording import FunctionRecording


class Lawless(Exception):
    """A number does not follow a dynamic argument."""


class Start(NamedTuple):
    """Where a part of a recorded call begins.

    Args:
        at: word of the recorded windows.
        carried: slots that the call made before and that are still there, with their bytes.
        external: slots that the call used before and that were there before it, arguments left out.
    """

    at: int
    carried: dict[int, int]
    external: frozenset[int]


BEGINNING = Start(0, {}, frozenset())


class Stretch:
    """A part of a recorded call. Behind its arguments come slots that it made before.

    Args:
        call: its arguments.
        recording: what it recorded.
        start: where the stretch begins.
        end: word of the recorded windows at which it ends; None for the end of the call.

    Attributes:
        program: the records.
        followed: numbers that generators and optimizers give.
        places: where the other numbers lie in the program.
        numbers: these, and what else changes evenly.
        signature: with the program's skeleton, equal for calls that one replay serves.

    Raises:
        Refused: it cannot be replayed.
    """

    # Where numbers that are no words of the program belong.
    rest = "the results"

    def __init__(self, call: CallArguments, recording: FunctionRecording, start: Start, end: int | None):
        slots = [*call.slots, *start.carried]
        arguments = {slot: k for k, slot in reversed(list(enumerate(slots)))}
        self.program = program_of(recording.words[start.at : end], arguments)
        self.followed = Followed(self.program, *recording.noted(start.at, end), call)
        self.places = [at for at in self.program.places if at not in self.followed.words]
        words = self.program.words
        self.numbers = [words[at] for at in self.places]
        self.signature: Any = self.followed.signature

    def is_like(self, other: Stretch) -> bool:
        """Whether both are one program."""
        return self.signature == other.signature and self.program.skeleton == other.program.skeleton

    def law(self, call: CallArguments) -> Law:
        """What is known of the numbers after one call."""
        count = len(call.tensors)
        floats = frozenset(count + k for k, number in enumerate(call.given) if type(number) is float)
        reals = frozenset(n for n, place in enumerate(self.places) if place in self.program.reals)
        return Law(call.values, self.numbers, len(self.places), count, floats, reals)

    def teach(self, law: Law, call: CallArguments) -> bool | None:
        """Let a law of this program learn from the numbers of this call.

        Returns:
            Whether something new is known; None where it is another program after all.

        Raises:
            Lawless: a number does not follow a dynamic argument.
        """
        try:
            return law.learn(call.values, self.numbers)
        except Unlawful as error:
            argument = error.value - len(call.tensors)
            if argument < 0:  # where a tensor begins changed more than where it begins
                return None
            what = f"a number of {self._launch_of(error.number)} {error}"
            raise Lawless(f"{what} the argument {call.names[argument]!r}, which dynamic= names") from None

    def _launch_of(self, number: int) -> str:
        """The op of a launch that takes a number."""
        if number >= len(self.places):
            return self.rest
        runs = [node.op for _, at, node in self.program.runs if at < self.places[number]]
        return runs[-1] if runs else "an upload"


__all__ = ["BEGINNING", "Lawless", "Start", "Stretch"]
