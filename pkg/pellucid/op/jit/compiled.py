"""A compiled function: its calls are recorded, compared, and then replayed without their Python."""

from __future__ import annotations

import gc
import inspect
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import update_wrapper
from types import MethodType
from typing import Any

from ...device.stream import stream
from ...errors import ArgumentError, DeviceError, RangeError
from ...nn.modules import module as modules
from ...nn.modules.module import Module
from ...nn.observers import Observers
from ...profiler.debug import _settle
from ...profiler.listeners import is_listening
from ..symbols import returned
from .calls import CallArguments
from .captured import GONE, HOOKED, READY, UNSURE, CapturedTrace, Unknown
from .race import Race
from .recording import FunctionRecording, Refused
from .segment import Segment

# Signatures that a function is captured for.
_MOST_KINDS = 8
# Traces of one signature that read the same: of training and evaluation, of steps that begin gradients and
# that add to them.
_MOST_ALIKE = 4
# Values of one read that traces go on from, and ways through all reads of a function.
_MOST_VALUES, _MOST_WAYS = 8, 16
# Calls that are recorded without one being replayed in between, before a signature runs eagerly for good.
_MOST_RECORDED = 16
# Sets of modules looked at that a function is captured with at a time.
_MOST_TAPPED = 4
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# What users may do about a refusal that is raised.
_ADVICE: dict[Any, str] = {
    DeviceError: "Leave out fullgraph= to run it eagerly",
    ValueError: "Leave it out there, or compute the number on the device",
}
_PAUSING = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


@dataclass
class Explanation:
    """What became of a compiled function's calls; print it.

    Args:
        name: of the function.
        lines: one for each kind of call, and one for each line at which its programs are split.
        replays: calls that were replayed.
        reasons: why calls were not.
    """

    name: str
    lines: list[str]
    replays: int
    reasons: list[str]

    def __str__(self) -> str:
        return "\n".join([self.name, *[f"  {line}" for line in self.lines or ["was not called yet"]]])


@dataclass
class _Kind:
    """Calls that agree in everything that is compared without running them.

    Args:
        shapes: of the tensors, for `explain`.
        opened: of which opening of the device they are.
        traces: the one used last comes first.
        reason: why calls run eagerly for good.
        error: why they are refused.
        recorded: calls that were recorded since the last replay.
        milliseconds: of Python, that the last recorded call took.
        last: why the last recorded call gave no trace.
        computed: dynamic floats that Python made another number of, with what they were.
        race: whether its Python is quicker than replays.
    """

    shapes: str
    opened: int
    traces: list[CapturedTrace] = field(default_factory=list)
    reason: str | None = None
    error: Exception | None = None
    recorded: int = 0
    milliseconds: float = 0.0
    last: str | None = None
    computed: dict[int, int] = field(default_factory=dict)
    race: Race = field(default_factory=Race)

    def describe(self) -> list[str]:
        """How calls are served, and where their programs are split."""
        if self.reason is not None or not self.traces:
            why = self.reason or self.last or "not captured yet"
            return [f"{self.shapes}: runs eagerly, {self.milliseconds:.1f} ms of Python a call: {why}"]
        # Of the longest way, and of the longest that was replayed.
        launches = max(sum(len(s.program.runs) for s in t.segments) for t in self.traces)
        dispatches = max(sum(s.dispatches for s in t.segments if t.replays) for t in self.traces)
        found = f"{self.shapes}: {sum(t.replays for t in self.traces)} replays of {launches} launches"
        if dispatches:
            found += f" in {dispatches} dispatches"
        if self.race.is_lost:
            found += ", and its Python, which is quicker"
        return [f"{found}, {self.milliseconds:.1f} ms of Python each when it ran eagerly", *self._splits()]

    def _splits(self) -> list[str]:
        values: dict[Segment, set[bytes]] = defaultdict(set)
        for trace in self.traces:
            for segment, value in zip(trace.segments, trace.values):
                values[segment].add(value)
        lines: dict[str, list[int]] = defaultdict(list)
        for segment, known in values.items():
            reading = segment.reading
            assert reading is not None
            lines[f"split at {reading.line}, where it reads {reading.shown}"].append(len(known))
        return [
            f"  {text}: {sum(counts)} continuations known"
            + (f" of {len(counts)} reads" if len(counts) > 1 else "")
            for text, counts in lines.items()
        ]

    def add(self, recording: FunctionRecording, unsure: list[CapturedTrace]) -> None:
        """Add the trace of a call, which shares segments with those that begin like it, and takes over from
        one that ran the same.

        Raises:
            Refused: it cannot be replayed, or there are too many already.
        """
        call, trace = recording.call, CapturedTrace(recording)
        ways = self.traces
        for depth, reading in enumerate(recording.reads):
            ways = trace.share(depth, ways)
            if len({t.values[depth] for t in ways} | {reading.value}) > _MOST_VALUES:
                raise Refused(
                    f"it reads {reading.shown}, which had more than {_MOST_VALUES} values ({reading.line}). "
                    "What only Python needs is better returned, and read after the call",
                    error=RuntimeWarning,
                )
            ways = [t for t in ways if t.values[depth] == reading.value]
        alike = [t for t in self.traces if t.values == trace.values]
        if not alike and len({tuple(t.values) for t in self.traces}) == _MOST_WAYS:
            reason = f"it goes more than {_MOST_WAYS} ways through the values that it reads"
            raise Refused(reason, error=RuntimeWarning)
        for segment in trace.segments:
            for k, op in segment.program.computed.items():
                if self.computed.setdefault(k, call.values[k]) != call.values[k]:
                    raise Refused(
                        f"a number of {op} is computed in Python from the argument {call.names[k]!r}, "
                        "which dynamic= names",
                        error=ValueError,
                    )
        old = next((t for t in unsure if trace.takes_over(t)), None)
        ended = [t for t in alike if t is not old][_MOST_ALIKE - 1 :]
        self.traces[:] = [trace, *[t for t in self.traces if t is not old and t not in ended]]


class Compiled:
    """A function that is captured; see `compile`.

    Args:
        function: the function, or a module.
        dynamic: parameters whose numbers may change.
        tree: gives the modules that it calls; all there are if None.
        whole: raise what keeps it from being captured.
        quiet: run eagerly without a word where it cannot be captured, and forget old captures for new ones.
    """

    def __init__(
        self,
        function: Callable,
        dynamic: Iterable[str] = (),
        *,
        tree: Callable[[], Iterable[Module]] | None = None,
        whole: bool = False,
        quiet: bool = False,
    ):
        called = function.forward if isinstance(function, Module) else function
        if any(check(called) for check in _PAUSING):
            raise ArgumentError("compile: takes plain functions. One that pauses cannot be replayed.")
        parameters = inspect.signature(called).parameters
        # Names of dynamic parameters by name, and by place.
        self._dynamic: dict[int | str, str] = {name: name for name in dynamic}
        if unknown := sorted(map(str, self._dynamic.keys() - parameters.keys())):
            raise RangeError(f"compile: dynamic= names {unknown}, and the parameters are {[*parameters]}.")
        for k, (name, parameter) in enumerate(parameters.items()):
            if name in self._dynamic and parameter.kind in _POSITIONAL:
                self._dynamic[k] = name
        self._function, self._is_whole, self._is_quiet = function, whole, quiet
        self._tree = tree
        # Reasons for which single calls ran eagerly.
        self._passed: Counter[str] = Counter()
        # By the taps that look into modules: with others a function is another one, with more results.
        self._kinds_by_taps: dict[tuple, dict[tuple, _Kind]] = {}
        self._kinds: dict[tuple, _Kind] = {}
        self._observers = Observers(self._tree)
        # The one that was lost last, whose calls run the function without a look at what is captured.
        self._lost: Race | None = None
        self._title = getattr(called, "__qualname__", type(function).__name__)
        update_wrapper(self, function, updated=())

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args, **kwargs) -> Any:
        if self._lost is not None and self._lost.is_over(args, kwargs):
            return self._function(*args, **kwargs)
        s = stream()
        # What is captured as a part of something else records like all else.
        if s.capturing is not None or (s.after_op and is_listening(_settle)):
            return self._function(*args, **kwargs)
        if s.host is None:
            return self._pass("webgpu was not in use yet", args, kwargs)
        if self._observers.at != (modules.version, modules.looks):
            self._find_observers()
        call = CallArguments(self._dynamic, args, kwargs)
        if call.reason is not None:
            return self._pass(call.reason, args, kwargs)
        kind = self._kinds.get(call.key)
        if kind is None:
            kind = self._new_kind(call)
        if kind.error is not None:
            raise kind.error
        if kind.reason is not None:
            return self._function(*args, **kwargs)
        if self._observers.run_python:
            return self._pass("a module has hooks, which run Python at every call", args, kwargs)
        unsure = []
        for trace in list(kind.traces):
            state, own = trace.look(call)
            if state is READY:
                if not (self._is_whole or self._observers.taps) and kind.race.is_on(trace, args, kwargs):
                    served, race = (trace, call, own, kind), kind.race
                    result = race.run(self._serve, served, self._function, args, kwargs)
                    self._lost = race if race.is_lost else self._lost
                    return result
                try:
                    result = self._serve(trace, call, own, kind)
                except Unknown:
                    # One more way to go on is recorded.
                    unsure = [t for t in kind.traces if t.look(call)[0] is UNSURE]
                    break
                kind.recorded = 0
                return self._observers.show(*result) if self._observers.taps else result
            if state is HOOKED:
                return self._pass("a parameter has a hook, which runs Python", args, kwargs)
            if state is GONE:
                kind.traces.remove(trace)
            elif state is UNSURE:
                unsure.append(trace)
        return self._record(kind, call, unsure)

    def __getstate__(self) -> dict[str, Any]:
        # Captures are about the tensors of this one, not about those of a copy.
        fresh = {"_kinds_by_taps": {}, "_kinds": {}, "_passed": Counter(), "_lost": None}
        return {**self.__dict__, **fresh, "_observers": Observers(self._tree)}

    def _pass(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a single call eagerly."""
        self._passed[reason] += 1
        return self._function(*args, **kwargs)

    def _serve(self, trace: CapturedTrace, call: CallArguments, own: CallArguments, kind: _Kind) -> Any:
        """The result of a replay. PELLUCID_CHECK puts another method here, which calls the function, too."""
        return trace.serve(call, own, kind.traces)

    def _new_kind(self, call: CallArguments) -> _Kind:
        shown = [f"{t.dtype.name}{list(t.shape)}" for t in call.tensors[:4]]
        kind = _Kind(f"({', '.join(shown)}{', ...' if len(call.tensors) > 4 else ''})", stream().opened)
        for key in [k for k, other in self._kinds.items() if other.opened != kind.opened]:
            del self._kinds[key]
        if len(self._kinds) >= _MOST_KINDS:
            if self._is_quiet:
                del self._kinds[next(iter(self._kinds))]
            else:
                reason = f"it was captured for {_MOST_KINDS} other kinds of arguments"
                self._give_up(kind, reason, RuntimeWarning)
        self._kinds[call.key] = kind
        return kind

    def _find_observers(self) -> None:
        self._observers.find()
        key = () if self._observers.run_python else self._observers.key
        self._kinds = self._kinds_by_taps.pop(key, {})
        self._kinds_by_taps[key] = self._kinds
        tapped = [other for other in self._kinds_by_taps if other]
        if len(tapped) > _MOST_TAPPED:
            del self._kinds_by_taps[tapped[0]]

    # Recording

    def _record(self, kind: _Kind, call: CallArguments, unsure: list[CapturedTrace]) -> Any:
        """Run the function and listen: what it records is the program of a capture, or a new one."""
        if kind.recorded == _MOST_RECORDED:
            self._give_up(kind, kind.last or "hardly two calls run the same launches", RuntimeWarning)
            return self._function(*call.args, **call.kwargs)
        s, taps = stream(), self._observers.taps
        # What was seen before must not go in the middle of the call, where that would be a part of it.
        before = [tap.seen.get(tap.path) for tap in taps]
        s.flush()
        # What taps see may be nothing that a replay can make, which is no fault of the function.
        whole = self._is_whole and not taps
        tree = () if self._tree is None else self._tree()
        around, is_fused = (self._function, *tree), s.rewrite is not None
        recording = FunctionRecording(call, not whole, is_fused, around, is_tapped=bool(taps))
        # The stream has one listener that takes its records. Nothing is called between this look and the next
        # step, so no thread comes between them.
        if FunctionRecording.under_way is not None:
            return self._pass("another function is recorded meanwhile", call.args, call.kwargs)
        FunctionRecording.under_way = recording
        rewrite, take = s.rewrite, recording.take
        kind.recorded += 1
        try:
            # Its windows are not fused one by one: plans would serve only the few calls that are recorded.
            s.rewrite = None
            # What other threads have recorded goes before the listener comes; what they record from now on
            # is noticed.
            recording.listen()
            s.flush()
            s.on_submit.append(take)
            recording.run(self._observers.run, self._function)
            kind.milliseconds = 1000 * recording.seconds
            try:
                if recording.refusal is not None:
                    raise recording.refusal
                try:
                    kind.add(recording, unsure)
                except Refused as refusal:
                    if refusal.final:
                        raise
                    # Cycles may hold what the function made; they go sooner or later.
                    gc.collect()
                    s.flush()
                    if recording.refusal is not None:
                        raise recording.refusal from None
                    kind.add(recording, unsure)
            except Refused as refusal:
                kind.last = str(refusal)
                if refusal.final:
                    self._give_up(kind, kind.last, refusal.error or (DeviceError if whole else None))
        finally:
            # Only behind the last step does Python look for Ctrl-C, as it does where an `__exit__` begins.
            s.capturing, s.rewrite, recording.conditions.is_open = None, rewrite, False
            FunctionRecording.under_way = None
            if take in s.on_submit:
                s.on_submit.remove(take)
            recording.ignore()
        del before
        result = returned(recording.result)
        return result[0] if taps else result

    def _give_up(self, kind: _Kind, reason: str, error: type[Exception] | None) -> None:
        """No further call of the kind is recorded: they raise the error, or run eagerly, with a warning."""
        kind.reason = reason
        kind.traces.clear()
        if error is RuntimeWarning and not self._is_quiet:
            text = f"compile: {self._title} runs eagerly from here on: {reason}. See explain()."
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        elif error is not None and not self._is_quiet:
            kind.error = error(f"compile: {self._title}: {reason}. {_ADVICE[error]}.")
            raise kind.error from None

    # Telling

    def explain(self) -> Explanation:
        """What became of the calls so far: how many were replayed, and why others were not.

        Source: https://pytorch.org/docs/stable/generated/torch._dynamo.explain.html

        Example:
            >>> import pellucid as torch
            >>> twice = torch.compile(lambda x: x * 2)
            >>> print(twice.explain())
            <lambda>
              was not called yet
        """
        kinds = [kind for kinds in self._kinds_by_taps.values() for kind in kinds.values()]
        looked = {id(kind) for key, of in self._kinds_by_taps.items() if key for kind in of.values()}
        lines = [
            line + (", while modules are looked at" if id(kind) in looked else "")
            for kind in kinds
            for line in kind.describe()
        ]
        lines += [f"{count} calls ran eagerly: {reason}" for reason, count in self._passed.items()]
        reasons = [kind.reason for kind in kinds if kind.reason is not None]
        replays = sum(t.replays for kind in kinds for t in kind.traces)
        return Explanation(self._title, lines, replays, [*reasons, *self._passed])


__all__ = ["Compiled", "Explanation"]
