"""Traces: what a function ran from its arguments to its return, for which calls that is replayed, and how."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..device.commands import walk
from ..device.stream import Storage, stream
from ..nn.modules import module as modules
from ..op.launches import nodes
from .calls import CallArguments
from .guards import Watch
from .per_replay import Draw, guards
from .program import ARGUMENT, number_of
from .recording import FunctionRecording, Refused
from .segment import Segment

# What a trace is for a call: it serves it; it may, once the call has shown that it is the same program; it
# would but for hooks of parameters; it does not; it never will again.
READY, UNSURE, HOOKED, OTHER, GONE = "ready", "unsure", "hooked", "other", "gone"


class Unknown(Exception):
    """A read gave a value that no trace goes on from; nothing of the call is left."""


def ref_of(thing: Any) -> Callable[[], Any]:
    """A weak reference to something whose end is watched, so that it is there when it is used."""
    return weakref.ref(thing)


def _shared(slots: list[int]) -> list[int]:
    """Which of the slots are the same memory; nothing where none are."""
    return [] if len(set(slots)) == len(slots) else [slots.index(slot) for slot in slots]


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
        slots = {slot for piece in recording.pieces for c in walk(piece.words, nodes) for slot in c.slots}
        external = slots.difference(call.slots)
        used = slots.union(call.slots)
        # Gradients that the function goes on from are arguments of it, though nobody gives them. One that
        # lies in an argument does so at every call.
        grads = {t: g for t, g in before.grads.items() if t._storage.slot not in call.slots}
        places = {t: getattr(getattr(g, "_storage", None), "slot", -1) for t, g in grads.items()}
        leaves = [t for t, slot in places.items() if {t._storage.slot, slot} & external]
        added = [(t, g) for t in leaves if (g := grads[t]) is not None and places[t] in used]
        if any(t._hooks for t in leaves):
            raise Refused("a hook of a parameter runs Python at every call", False)
        if any(t._node is not node for t, node in zip(before.tensors, before.nodes, strict=True)):
            raise Refused("it gives a tensor that was there before another place in the graph")
        if above is not None and any(places[t] in above.external for t, _ in added):
            raise Refused("it uses gradients that were there before it, before it reads a value")
        self._grad_inputs = [(ref_of(t), g._meta, g._offset) for t, g in added]
        call = call.extended([g for _, g in added]) if added else call
        changed = [t for t, old in before.grads.items() if t.grad is not old]
        given = set(map(id, call.tensors))
        if any(id(t) in given for t in changed):
            raise Refused("it leaves another gradient at an argument")
        self._bare = [ref_of(t) for t in leaves if grads[t] is None]
        self._changed = [ref_of(t) for t in changed]
        around = recording.surroundings
        self._guards = [*([around.holds] if around else []), *guards(recording.brought)]
        last = Segment(call, recording, recording.pieces[-1], above)
        self._results = last.end_in_return(call, recording, changed)
        self.segments.append(last)
        self._external = external = last.external
        if not external <= before.storages.keys():
            raise Refused("it uses memory that came and went in the middle of it", False)
        owners = [t for t in before.tensors if t._storage.slot in external]
        storages = [before.storages[slot] for slot in external]
        returned = [get() for get in self._results.before]
        self._watch = Watch(storages, owners, [*returned, *leaves, *changed])
        self._slots, self._offsets, self._shared = call.slots, call.offsets, _shared(call.slots)
        # Arguments that were in the same memory, and that began at the same place, at all calls so far.
        self._unmoved, self._unshifted = [*range(len(call.slots))], [*range(len(call.offsets))]
        # What was looked at last: of all modules.
        self._version = modules.version
        written = [number_of(slot) for slot in last.program.changed if slot & ARGUMENT]
        self._written = [k for k in written if k < len(call.slots)]
        self._written_storages = [ref_of(before.storages[s]) for s in last.program.changed & external]

    # Guards

    def look(self, call: CallArguments) -> tuple[str, CallArguments]:
        """What this is for a call, and the call with the gradients that are arguments, too."""
        if not self._watch.holds():
            return GONE, call
        for holds in self._guards:
            if not holds():
                return OTHER, call
        if call.given and not self._conditions.holds(call.given):
            return OTHER, call
        for leaf in self._bare:
            if leaf()._grad is not None:
                return OTHER, call
        if self._grad_inputs:
            grads = [leaf().grad for leaf, _, _ in self._grad_inputs]
            for grad, (_, meta, at) in zip(grads, self._grad_inputs, strict=True):
                if grad is None or grad._meta is not meta or grad._offset != at:
                    return OTHER, call
                if type(grad._storage) is not Storage:
                    return OTHER, call
            call = call.extended(grads)
            if _shared(call.slots) != self._shared:
                return OTHER, call
        slots, first = call.slots, self._slots
        if slots != first:
            external = self._external
            if [slots[k] for k in self._unmoved] != [first[k] for k in self._unmoved]:
                return UNSURE if external.isdisjoint(slots) else OTHER, call
            if not external.isdisjoint(slots):
                return OTHER, call
        if self._version != modules.version:
            return UNSURE, call
        if (at := call.offsets) != (first := self._offsets):
            # What Python does besides with where an argument begins, nobody sees.
            for k in self._unshifted:
                if at[k] != first[k]:
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
        self._unmoved = [k for k in old._unmoved if self._slots[k] == old._slots[k]]
        self._unshifted = [k for k in old._unshifted if self._offsets[k] == old._offsets[k]]
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
            value, carried = segment.read(call, values, segment.run(call, values, carried))
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
        storages = segment.run(own, values, carried)
        if trace._flushes:
            stream().flush()
        for k in trace._written:
            own.tensors[k]._storage.version += 1
        for storage in trace._written_storages:
            storage().version += 1
        result, grads = trace._results.make(own, storages, values)
        for leaf, grad in zip(trace._changed, grads):
            leaf()._grad = grad
        trace.replays += 1
        return result

    def _give_back(self, call: CallArguments, count: int, values: list[int]) -> None:
        """Let generators be as they were before so many segments."""
        end = len(values)
        for parameter in reversed([p for segment in self.segments[:count] for p in segment.brought]):
            if isinstance(parameter, Draw):
                parameter.give_back(call, values[end - 4 : end])
                end -= 4
