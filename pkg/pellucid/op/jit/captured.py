"""Traces: what a function ran from its arguments to its return, for which calls that is replayed, and how."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...device.commands import walk
from ...device.stream import Storage, stream
from ...nn.modules import module as modules
from ...optim.replayed import guards
from ...profiler.living import Watch, place_of
from ...tensors.tensor import Tensor
from ..launches import nodes
from ..program import ARGUMENT, number_of
from .calls import CallArguments
from .recording import FunctionRecording, Refused
from .segment import Segment

# What a trace is for a call: it serves it; it may, once the call has shown that it is the same program; it
# would but for hooks of parameters; it does not; it never will again.
READY, UNSURE, HOOKED, OTHER, GONE = "ready", "unsure", "hooked", "other", "gone"
# A weak reference to something whose end is watched, so that it is there when it is used.
ref_of: Callable[[Any], Callable[[], Any]] = weakref.ref


class Unknown(Exception):
    """A read gave a value that no trace goes on from; nothing of the call is left."""


def _shared(slots: list[int]) -> list[int]:
    """Which of the slots are the same memory; nothing where none are."""
    return [] if len(set(slots)) == len(slots) else [slots.index(slot) for slot in slots]


def _layout(grad: Tensor | None) -> tuple | None:
    return None if grad is None else (grad._meta, grad._offset)


def _leaves(
    grads: Mapping[Tensor, Tensor | None], used: set[int], arguments: set[int]
) -> tuple[dict[Tensor, Tensor | None], list[Tensor]]:
    """Leaves that a function found, with gradients that it could go on from; and all these gradients.

    One that lies in an argument does so at every call."""
    found: dict[Tensor, Tensor | None] = {}
    for t, grad in grads.items():
        own, slot = t._storage.slot, getattr(getattr(grad, "_storage", None), "slot", -1)
        is_found = own not in arguments and not {own, slot}.isdisjoint(used - arguments)
        if is_found and (grad is None or slot in used | arguments):
            found[t] = grad
    return found, [grad for grad in found.values() if grad is not None]


class CapturedTrace:
    """One way through a function: segments that end in reads, the values that were read, and the last
    segment, which ends in the return. A function that reads nothing has one segment. Traces that begin alike
    share segments, so all traces of a function are a tree.

    Args:
        recording: what a call recorded.

    Attributes:
        segments: all of them.
        values: what each read gave.
        replays: how many calls it served.
        is_one_launch: whether that is all it does: it reads, changes and draws nothing.

    Raises:
        Refused: it cannot be replayed.
    """

    def __init__(self, recording: FunctionRecording):
        call, before = recording.call, recording.before
        self.values = [reading.value for reading in recording.reads]
        self.replays = 0
        self._conditions, self._flushes = recording.conditions, recording.flushes
        self.segments: list[Segment] = []
        above: Segment | None = None
        for piece in recording.pieces[:-1]:
            above = Segment(call, recording, piece, above)
            self.segments.append(above)
        if any(t._node is not node for t, node in zip(before.tensors, before.nodes, strict=True)):
            raise Refused("it gives a tensor that was there before another place in the graph")
        if any(place_of(t) != place for t, place in zip(before.tensors, before.places, strict=True)):
            raise Refused("it gives a tensor that was there before another layout or other memory")
        # Gradients that the function goes on from are arguments of it, though nobody gives them.
        slots = {slot for piece in recording.pieces for c in walk(piece.words, nodes) for slot in c.slots}
        leaves, given = _leaves(before.grads, slots, set(call.slots))
        if any(t._hooks or t._after for t in before.grads if t._storage.slot in slots):
            raise Refused("a hook of a parameter runs Python at every call", False)
        if above is not None and any(g._storage.slot in above.external for g in given):
            raise Refused("it uses gradients that were there before it, before it reads a value")
        self._leaves, self._gradients = [ref_of(t) for t in leaves], [_layout(g) for g in leaves.values()]
        call = call.extended(given)
        changed = [t for t, old in before.grads.items() if t.grad is not old]
        if not {id(t) for t in call.tensors}.isdisjoint(map(id, changed)):
            raise Refused("it leaves another gradient at an argument")
        self._changed = [ref_of(t) for t in changed]
        self._around, self._guards = recording.surroundings, guards(recording.brought)
        last = Segment(call, recording, recording.pieces[-1], above)
        self._results = last.end_in_return(call, recording, changed)
        self.segments.append(last)
        self._external = external = last.external
        if not external <= before.storages.keys():
            raise Refused("it uses memory that came and went in the middle of it", False)
        owners = [t for t in before.tensors if t._storage.slot in external]
        storages = [before.storages[slot] for slot in external]
        returned = [t for get in self._results.before if (t := get()) is not None]
        self._watch = Watch(storages, owners, [*returned, *leaves, *changed])
        self._places, self._shared = call.slots + call.offsets, _shared(call.slots)
        # Arguments that were in the same memory, or that began at the same place, at all calls so far.
        self._unmoved = [*range(len(self._places))]
        self._version = modules.version
        written = [number_of(slot) for slot in last.program.changed if slot & ARGUMENT]
        self._written = [k for k in written if k < len(call.slots)]
        self._written_storages = [ref_of(before.storages[s]) for s in last.program.changed & external]
        changes = last.brought or self._flushes or self._changed or self._written or self._written_storages
        self.is_one_launch = not changes and len(self.segments) == len(last.program.runs) == 1

    # Guards

    def look(self, call: CallArguments) -> tuple[str, CallArguments]:
        """What this is for a call, and the call with the gradients that are arguments, too."""
        if self._around.gone or not self._watch.holds():
            return GONE, call
        if self._around.changed():
            return OTHER, call
        for holds in self._guards:
            if not holds():
                return OTHER, call
        if call.given and not self._conditions.holds(call.given):
            return OTHER, call
        if self._leaves:
            grads = [leaf()._grad for leaf in self._leaves]
            if [*map(_layout, grads)] != self._gradients:
                return OTHER, call
            call = call.extended([g for g in grads if g is not None])
            if _shared(call.slots) != self._shared:
                return OTHER, call
        places, first = call.slots + call.offsets, self._places
        if places != first:
            if not self._external.isdisjoint(call.slots):
                return OTHER, call
            # Which uses mean an argument, and what Python does with where one begins, nobody sees.
            for k in self._unmoved:
                if places[k] != first[k]:
                    return UNSURE, call
        if self._version != modules.version:
            return UNSURE, call
        return HOOKED if self._watch.is_hooked else READY, call

    def share(self, depth: int, traces: Sequence[CapturedTrace]) -> list[CapturedTrace]:
        """Those of the traces that go through the segment at this depth, which is theirs from now on."""
        mine = self.segments[depth]
        alike = [t for t in traces if depth < len(t.values) and mine.is_like(t.segments[depth])]
        if alike:
            self.segments[depth] = alike[0].segments[depth]
        return alike

    def goes_on(self, depth: int, segment: Segment, value: bytes) -> bool:
        """Whether it is a way for a call that read this value after so many others."""
        return depth < len(self.values) and self.segments[depth] is segment and self.values[depth] == value

    def takes_over(self, old: CapturedTrace) -> bool:
        """Whether an older trace ran the same; this one then serves its calls, too."""
        if self.values != old.values or not all(map(Segment.is_like, self.segments, old.segments)):
            return False
        self._conditions.join(old._conditions)
        self._unmoved = [k for k in old._unmoved if self._places[k] == old._places[k]]
        self.segments, self.replays = old.segments, old.replays
        for segment in self.segments:
            segment.prepare()
        return True

    # Replays

    def serve(self, call: CallArguments, own: CallArguments, traces: Sequence[CapturedTrace]) -> Any:
        """Replay: the results of a call without running its Python.

        Args:
            call: the call.
            own: the same with gradients that are arguments.
            traces: all traces of the function; which of them goes on, each read decides.

        Raises:
            Unknown: it read a value that no trace goes on from.
        """
        trace, values, depth = self, call.values, 0
        carried: list[Storage] = []
        while depth < len(trace.values):
            segment = trace.segments[depth]
            values = segment.bring(call, values)
            value, carried = segment.read(call, values, segment.run(call, values, carried)[0])
            # While Python waited, another task may have changed what the guards look at.
            ways = (t for t in traces if t.goes_on(depth, segment, value))
            found = next(((t, own) for t in ways for state, own in [t.look(call)] if state is READY), None)
            depth += 1
            if found is None:
                trace._give_back(call, depth, values)
                raise Unknown
            trace, own = found
        segment = trace.segments[-1]
        if segment.brought:
            values = segment.bring(own, values)
        storages, later = segment.run(own, values, carried)
        if trace._flushes:
            stream().flush()
        for k in trace._written:
            own.tensors[k]._storage.version += 1
        for storage in trace._written_storages:
            storage().version += 1
        result, grads = trace._results.make(own, storages, values, later)
        for leaf, grad in zip(trace._changed, grads):
            leaf()._grad = grad
        trace.replays += 1
        return result

    def _give_back(self, call: CallArguments, count: int, values: list[int]) -> None:
        """Let generators be as they were before so many segments, which bring nothing but their words."""
        end = len(values)
        for draw in reversed([draw for segment in self.segments[:count] for draw in segment.brought]):
            draw.give_back(call.generators, values[end - 4 : end])
            end -= 4
