"""One recorded call, taken apart: its program, its results, the numbers that are other ones every time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..tensors.tensor import Tensor
from .calls import CallArguments
from .recording import FunctionRecording, Refused
from .results import Results
from .stretch import BEGINNING, Start, Stretch


class Run(Stretch):
    """What one call recorded and returned; where it reads values, what it recorded after the last of them.

    Args:
        call: its arguments.
        recording: what it recorded.
        result: what it returned.
        known: ids of tensors that were there before.
        leaves: whose gradients are results, too.
        start: what was recorded after the last read.

    Attributes:
        results: the recipe of what is returned.
        build: makes that again.
        grads: place of each leaf's gradient among the results; None where it was dropped, -1 where it stays.

    Raises:
        Refused: it cannot be replayed.
    """

    def __init__(
        self,
        call: CallArguments,
        recording: FunctionRecording,
        result: Any,
        known: Collection[int],
        leaves: Sequence[Tensor],
        start: Start = BEGINNING,
    ):
        super().__init__(call, recording, start, None)
        program, carried = self.program, start.carried
        if not program.runs and not recording.reads:
            raise Refused("it runs nothing on webgpu")
        alive = {slot: k for k, slot in enumerate(carried) if slot not in program.ended}
        alive |= {slot: len(carried) + number for slot, number in program.alive.items()}
        self._alive = alive
        self.results = Results(call, alive, known, len(carried))
        self.build = self.results.add(result)
        self.grads = [self._grad(t.grad) for t in leaves]
        self.results.finish()
        if self.results.reason is not None:
            raise Refused(self.results.reason)
        sizes = [*carried.values(), *program.sizes]
        kept = self.results.carried.keys() | {len(carried) + number for number in self.results.made}
        left = set(alive.values()) - kept
        if left:
            nbytes = sum(sizes[n] for n in left)
            raise Refused(
                f"Python keeps {len(left)} tensors of {nbytes} bytes that it makes and does not return", False
            )
        self.numbers += self.results.plain
        self.signature = (self.results.signature, self.grads, self.signature)

    def _grad(self, grad: Tensor | None) -> int | None:
        if grad is None:
            return None
        slot = getattr(grad._storage, "slot", -1)
        return self.results.place(grad) if slot in self._alive else -1
