"""One recorded call, taken apart: its program, its results, the numbers that are other ones every time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..tensor import Tensor
from .calls import Call
from .follow import Followed
from .program import program_of
from .recording import Recording, Refused
from .results import Results


class Run:
    """What one call recorded and returned.

    Args:
        call: its arguments.
        recording: what it recorded.
        result: what it returned.
        known: ids of tensors that were there before.
        leaves: whose gradients are results, too.

    Attributes:
        program: the records.
        results: the recipe of what is returned.
        build: makes that again.
        grads: place of each leaf's gradient among the results; None where it was dropped, -1 where it stays.
        followed: numbers that generators and optimizers give.
        places: where the other numbers lie in the program.
        numbers: these, and the plain integers of the results.
        signature: with the program's skeleton, equal for calls that one replay serves.

    Raises:
        Refused: it cannot be replayed.
    """

    def __init__(
        self,
        call: Call,
        recording: Recording,
        result: Any,
        known: Collection[int],
        leaves: Sequence[Tensor],
    ):
        slots = call.slots
        arguments = {slot: k for k, slot in reversed(list(enumerate(slots)))}
        self.program = program_of(recording.words, arguments)
        if not self.program.runs:
            raise Refused("it runs nothing on webgpu")
        self.results = Results(call, self.program.alive, known)
        self.build = self.results.add(result)
        self.grads = [self._grad(t.grad) for t in leaves]
        self.results.finish()
        if self.results.reason is not None:
            raise Refused(self.results.reason)
        left = set(self.program.alive.values()) - self.results.kept.keys()
        if left:
            nbytes = sum(self.program.sizes[n] for n in left)
            raise Refused(
                f"Python keeps {len(left)} tensors of {nbytes} bytes that it makes and does not return", False
            )
        self.followed = Followed(self.program, recording, call)
        self.places = [at for at in self.program.places if at not in self.followed.words]
        words = self.program.words
        self.numbers = [words[at] for at in self.places] + self.results.plain
        self.signature = (self.results.signature, self.grads, self.followed.signature)

    def _grad(self, grad: Tensor | None) -> int | None:
        if grad is None:
            return None
        slot = getattr(grad._storage, "slot", -1)
        return self.results.made(grad) if slot in self.program.alive else -1

    def is_like(self, other: Run) -> bool:
        """Whether both are one program."""
        return self.signature == other.signature and self.program.skeleton == other.program.skeleton
