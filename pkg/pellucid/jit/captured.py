"""One captured program: which calls it serves, and how."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import edges
from ..device.stream import Storage, stream
from ..nn.modules import module as modules
from .calls import CallArguments
from .program import ARGUMENT, number_of, program_of
from .recording import Before, FunctionRecording, Refused
from .replay import Replay
from .run import Run
from .stretch import BEGINNING, Start
from .watch import Watch

# What a capture is for a call: it serves it; it may, once the call has shown that it is the same program; it
# does not; it never will again.
READY, UNSURE, OTHER, GONE = "ready", "unsure", "other", "gone"


def ref_of(thing: Any) -> Callable[[], Any]:
    """A weak reference to something whose end is watched, so that it is there when it is used."""
    return weakref.ref(thing)


def _shared(slots: list[int]) -> list[int]:
    """Which of the slots are the same memory; nothing where none are."""
    return [] if len(set(slots)) == len(slots) else [slots.index(slot) for slot in slots]


class Capture:
    """What one call recorded, as a program for others.

    Args:
        call: the call.
        recording: what it recorded.
        before: what was there before it.
        result: what it returned.
        start: what was recorded after the last read; its replays go on from there.

    Attributes:
        replays: how many calls it served.
        launches: how many were recorded.
        dispatches: how many a replay makes of them; 0 before the first.

    Raises:
        Refused: it cannot be replayed.
    """

    def __init__(
        self,
        call: CallArguments,
        recording: FunctionRecording,
        before: Before,
        result: Any,
        start: Start = BEGINNING,
    ):
        self._start, self._conditions = start, recording.conditions
        own = {slot: k for k, slot in enumerate([*call.slots, *start.carried])}
        external = program_of(recording.words[start.at :], own).external | start.external
        leaves = [t for t in before.grads if t._storage.slot in external]
        if any(t._hooks for t in leaves):
            raise Refused("a hook of a parameter runs Python at every call", False)
        if any(t._node is not node for t, node in zip(before.tensors, before.nodes, strict=True)):
            raise Refused("it gives a tensor that was there before another place in the graph")
        # Gradients that the function goes on from are arguments of it, though nobody gives them.
        added = [(t, g) for t in leaves if (g := before.grads[t]) is not None]
        # One that lies in an argument does so at every call.
        used = external.union(call.slots)
        added = [(t, g) for t, g in added if getattr(g._storage, "slot", -1) in used]
        if any(g._storage.slot in start.external for _, g in added):
            raise Refused("it uses gradients that were there before it, before it reads a value")
        self._grad_inputs = [(ref_of(t), g._meta) for t, g in added]
        call = call.extended([g for _, g in added])
        changed = [t for t, old in before.grads.items() if t.grad is not old]
        given = set(map(id, call.tensors))
        if any(id(t) in given for t in changed):
            raise Refused("it leaves another gradient at an argument")
        self._leaves = [ref_of(t) for t in leaves]
        self._bare = [ref_of(t) for t in leaves if before.grads[t] is None]
        self._grad_results = [ref_of(t) for t in changed]
        around = recording.surroundings
        self._run = run = Run(call, recording, result, frozenset(map(id, before.tensors)), changed, start)
        self._guards = [*([around.holds] if around else []), *run.followed.guards]
        # What a replay leaves at them; a gradient that stays is not touched.
        self._grad_places = [
            (leaf, place) for leaf, place in zip(self._grad_results, run.grads, strict=True) if place != -1
        ]
        # Of these, which of the results that are made they are; below 0 where that was before the last read.
        made, count = run.results.tensors, len(start.carried)
        self._gradients: dict[int | None, int] = {
            place: made[place].number - count
            for place in run.grads
            if place is not None and place != -1 and not made[place].is_argument
        }
        self._external = external = run.program.external | start.external
        if not external <= before.storages.keys():
            raise Refused("it uses memory that came and went in the middle of it", False)
        owners = [t for t in before.tensors if t._storage.slot in external]
        constants, run.results.constants = run.results.constants, []
        self._constants = frozenset(map(id, constants))
        storages = [before.storages[slot] for slot in external]
        self._watch = Watch(storages, owners, [*constants, *leaves, *changed])
        self._law = run.law(call)
        self._slots, self._shared = call.slots, _shared(call.slots)
        # Arguments that were in the same memory at all calls so far, and the others.
        self._unmoved, self._moved = [*range(len(call.slots))], []
        # What was looked at last: of all modules, and of all tensors for hooks.
        self._version, self._unhooked = modules.version, -1
        self._fused, self._flushes = recording.fused, recording.flushes
        self._replay: Replay | None = None
        program = run.program
        self._made = [(program.sizes[n], kind) for n, kind in run.results.made.items()]
        # What is accounted as something else than what passes, of what was made before the last read.
        self._kinds = [(n, kind) for n, kind in run.results.carried.items() if kind != "activation"]
        written = [number_of(slot) for slot in program.changed if slot & ARGUMENT]
        self._written = [k for k in written if k < len(call.slots)]
        self._written_storages = [ref_of(before.storages[slot]) for slot in program.changed & external]
        self.replays = 0
        self.launches = len(program.runs)

    @property
    def dispatches(self) -> int:
        return 0 if self._replay is None else self._replay.dispatches

    def describe(self) -> list[str]:
        """Where the program is split: nowhere."""
        return []

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
            grads = [r().grad for r, _ in self._grad_inputs]
            for grad, (_, meta) in zip(grads, self._grad_inputs, strict=True):
                if grad is None or grad._meta is not meta or type(grad._storage) is not Storage:
                    return OTHER, call
            call = call.extended(grads)
            if _shared(call.slots) != self._shared:
                return OTHER, call
        slots, first = call.slots, self._slots
        if slots != first:
            external = self._external
            if [slots[k] for k in self._unmoved] != [first[k] for k in self._unmoved]:
                return UNSURE if external.isdisjoint(slots) else OTHER, call
            if not external.isdisjoint([slots[k] for k in self._moved]):
                return OTHER, call
        if self._version != modules.version or not self._law.holds(call.values):
            return UNSURE, call
        return READY, call

    @property
    def is_hooked(self) -> bool:
        """Whether a parameter has a hook, which runs Python at every call."""
        version = edges.version
        if version == self._unhooked:
            return False
        if any(leaf()._hooks for leaf in self._leaves):
            return True
        self._unhooked = version
        return False

    def confirm(
        self, call: CallArguments, recording: FunctionRecording, result: Any, start: Start = BEGINNING
    ) -> bool:
        """Learn from a call that was recorded once more; whether it was the same program.

        Raises:
            Refused: what it made is still held.
            Lawless: it was, but for a number that does not follow a dynamic argument.
        """
        if start is BEGINNING and recording.reads:
            return False
        leaves = [r() for r in self._grad_results]
        try:
            run = Run(call, recording, result, self._constants, leaves, start)
        except Refused as error:
            if not error.final:
                raise
            return False
        if not run.is_like(self._run):
            return False
        # An interrupt may fall anywhere: no window outlives what it was made of.
        replay, self._replay = self._replay, None
        learned = run.teach(self._law, call)
        if not learned:
            self._replay = replay
        if learned is None:
            return False
        self._conditions.join(recording.conditions)
        moved = [k for k in self._unmoved if call.slots[k] != self._slots[k]]
        self._moved += moved
        self._unmoved = [k for k in self._unmoved if k not in moved]
        self._version = modules.version
        self.prepare()
        return True

    # Replays

    def prepare(self) -> Replay:
        """The window, made ahead so that its kernels compile while other work goes on."""
        if self._replay is None:
            run = self._run
            self._replay = Replay(
                run.program,
                self._law,
                run.places,
                len(self._slots) + len(self._start.carried),
                run.followed.words,
                list(run.results.made),
                frozenset(self._gradients.values()),
                self._fused,
            )
        return self._replay

    def serve(self, call: CallArguments, carried: Sequence[Storage] = ()) -> Any:
        """Replay: the results of a call without running its Python.

        Args:
            call: the call.
            carried: what was made before the last read and is still there.
        """
        replay, run = self.prepare(), self._run
        replay.make_room()
        storages = [Storage(nbytes, kind, True) for nbytes, kind in self._made]
        if carried:
            storages = [*carried, *storages]
            for n, kind in self._kinds:
                storages[n].set_kind(kind)
        draws, updates = run.followed.draws(call), run.followed.updates()
        replay.submit(call.slots + [s.slot for s in storages], call.values, draws, updates)
        if self._flushes:
            stream().flush()
        for k in self._written:
            call.tensors[k]._storage.version += 1
        for storage in self._written_storages:
            storage().version += 1
        plain = self._law.plain(call.values)
        tensors = run.results.make(call, storages, plain)
        for leaf, place in self._grad_places:
            leaf()._grad = None if place is None else tensors[place]
        self.replays += 1
        return run.build(call, tensors, plain)
