"""Launches as a window recorded them, and a joint launch run in their place."""

from collections.abc import Callable, Sequence
from typing import Any

import pellucid
from checked import leave_out_checked
from pellucid.device.stream import stream
from pellucid.op.fusion.commands import FusionCommand, read
from pellucid.op.launches import RegisteredLaunch, register
from pellucid.ops.attention.joint import Joint


class Window:
    """What a program recorded: its launches in order, which then run on their own.

    Args:
        program: calls ops; what it returns is held, so that its slots stay.
    """

    def __init__(self, program: Callable[[], Any]):
        leave_out_checked("runs launches that no op recorded")
        with pellucid.webgpu.fusion(False):
            stream().flush()
            self.result = program()
            self.words = list(stream().words)
            self.runs = [record for record in read(self.words) if record.is_run]
            stream().flush()
        self._places: dict[int, int] = {}

    def named(self, name: str) -> list[FusionCommand]:
        """The launches of a kernel."""
        return [r for r in self.runs if r.node is not None and r.node.source.name == name]

    def run(self, joint: Joint, parts: Sequence[FusionCommand]) -> None:
        """Run a joint launch on the slots and numbers of its parts."""
        assert register(joint.node) is joint.node.head
        slots = [parts[part].slots[binding] for part, binding in joint.slots]
        words = [self.words[parts[part].patch_at(word)] for part, word in joint.patches]
        self._run(joint.node, slots, words)

    def again(self, record: FusionCommand) -> None:
        """Run a recorded launch once more."""
        assert record.node is not None
        words = [self.words[at] for at in record.words[len(record.slots) :]]
        self._run(record.node, record.slots, words)

    def give(self, record: FusionCommand, binding: str, tensor: Any) -> None:
        """Use a tensor in the place of a temporary, which is gone."""
        assert record.node is not None
        self._places[record.slots[record.node.binding(binding)]] = tensor._storage.slot

    def _run(self, node: RegisteredLaunch, slots: Sequence[int], words: Sequence[int]) -> None:
        slots = [self._places.get(slot, slot) for slot in slots]
        stream().make_way(0)
        stream().words.extend((node.head, *slots, *words))
        stream().flush()


def nodes(records: Sequence[FusionCommand]) -> list[Any]:
    """What the records run."""
    return [record.node for record in records]
