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
from weakref import ref

from ..device.stream import stream
from ..errors import DeviceError
from ..nn.hooks import Tap
from ..nn.modules import module as modules
from ..nn.modules.module import Module
from ..op.symbols import returned
from ..profiler.debug import _settle
from ..profiler.listeners import is_listening
from .calls import CallArguments, read
from .captured import GONE, READY, UNSURE, CapturedTrace, Unknown, segments_of
from .recording import FunctionRecording, Refused
from .segment import Segment

# Signatures that a function is captured for.
_MOST_KINDS = 8
# Traces of one signature that begin in another way, or go the same way: of training and evaluation, of steps
# that begin gradients and that add to them.
_MOST_ALIKE = 4
# Values of one read that traces go on from, and ways through all reads of a function.
_MOST_VALUES, _MOST_WAYS = 8, 16
# Calls that are recorded without one being replayed in between, before a signature runs eagerly for good.
_MOST_RECORDED = 16
# Sets of modules looked at that a function is captured with at a time.
_MOST_TAPPED = 4
_PAUSING = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class _TooMany(Exception):
    """There are more values, or ways through the reads, than traces are kept for."""


class _Unfollowed(Exception):
    """A number does not follow a dynamic argument."""


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

    def describe(self) -> list[str]:
        """How calls are served, and where their programs are split."""
        if self.reason is not None or not self.traces:
            why = self.reason or self.last or "not captured yet"
            return [f"{self.shapes}: runs eagerly, {self.milliseconds:.1f} ms of Python a call: {why}"]
        # Of the longest way, and of the longest that was replayed.
        alike = [t for t in self.traces if t.segments[0] is self.traces[0].segments[0]]
        launches = max(sum(len(s.program.runs) for s in t.segments) for t in alike)
        dispatches = max((sum(s.dispatches for s in t.segments) for t in alike if t.replays), default=0)
        found = f"{self.shapes}: {sum(t.replays for t in self.traces)} replays of {launches} launches"
        if dispatches:
            found += f" in {dispatches} dispatches"
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

    def add(
        self,
        recording: FunctionRecording,
        unsure: list[CapturedTrace],
    ) -> None:
        """Add the trace of a call, which shares segments with those that begin like it, and takes over from
        one that ran the same.

        Raises:
            Refused: it cannot be replayed.
            _TooMany: there are too many already.
            _Unfollowed: a number does not follow its argument.
        """
        call, (segments, start) = recording.call, segments_of(recording)
        values = [reading.value for reading in recording.reads]
        ways = self.traces
        for depth, (segment, reading) in enumerate(zip(segments, recording.reads, strict=True)):
            ways = [t for t in ways if depth < len(t.values)]
            same = next((t.segments[depth] for t in ways if segment.is_like(t.segments[depth])), None)
            if same is None:
                break
            segments[depth] = same
            ways = [t for t in ways if t.segments[depth] is same]
            if len({t.values[depth] for t in ways} | {values[depth]}) > _MOST_VALUES:
                raise _TooMany(
                    f"it reads {reading.shown}, which had more than {_MOST_VALUES} values ({reading.line}). "
                    "What only Python needs is better returned, and read after the call"
                )
            ways = [t for t in ways if t.values[depth] == values[depth]]
        ways = [t for t in self.traces if t.values and t.segments[0] is segments[0]]
        alike = [t for t in ways if t.values == values]
        if not alike and len({tuple(t.values) for t in ways}) == _MOST_WAYS:
            raise _TooMany(f"it goes more than {_MOST_WAYS} ways through the values that it reads")
        trace = CapturedTrace(recording, segments, start)
        for segment in trace.segments:
            for k, op in segment.program.computed.items():
                if self.computed.setdefault(k, call.numbers[k]) != call.numbers[k]:
                    raise _Unfollowed(
                        f"a number of {op} is computed in Python from the argument {call.names[k]!r}, "
                        "which dynamic= names"
                    )
        old = next((t for t in unsure if trace.takes_over(t)), None)
        left = [t for t in self.traces if t is not old and t not in alike[_MOST_ALIKE - 1 :]]
        heads = list(dict.fromkeys(t.segments[0] for t in [trace, *left]))[:_MOST_ALIKE]
        self.traces[:] = [t for t in [trace, *left] if t.segments[0] in heads]


class Compiled:
    """A function that is captured; see `compile`.

    Args:
        function: the function.
        dynamic: parameters whose numbers may change.
        like: where its parameters are read, if not from the function itself.
        tree: gives the modules that it calls; all there are if None.
        whole: raise what keeps it from being captured.
        quiet: run eagerly without a word where it cannot be captured, and forget old captures for new ones.
    """

    def __init__(
        self,
        function: Callable,
        dynamic: Iterable[str] = (),
        *,
        like: Callable | None = None,
        tree: Callable[[], Iterable[Module]] | None = None,
        whole: bool = False,
        quiet: bool = False,
    ):
        like = like or function
        if any(check(like) for check in _PAUSING):
            raise TypeError("compile: takes plain functions. One that pauses cannot be replayed.")
        parameters = inspect.signature(like).parameters.values()
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._names = [p.name for p in parameters if p.kind in positional]
        self._dynamic = frozenset(dynamic)
        unknown = sorted(self._dynamic - {p.name for p in parameters})
        if unknown:
            known = [p.name for p in parameters]
            raise ValueError(f"compile: dynamic= names {unknown}, and the parameters are {known}.")
        self._function, self._like, self._tree = function, like, tree
        self._is_whole, self._is_quiet = whole, quiet
        self._kinds: dict[tuple, _Kind] = {}
        # Reasons for which single calls ran eagerly.
        self._passed: Counter[str] = Counter()
        self._hooks_at, self._is_watched = (-1, -1), False
        # What looks at modules and runs no Python: with taps a function is another one, with more results.
        self._taps: list[Tap] = []
        self._key: tuple = ()
        self._tapped: dict[tuple, Compiled] = {}
        self._title = getattr(like, "__qualname__", type(function).__name__)
        update_wrapper(self, function, updated=())

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args, **kwargs) -> Any:
        s = stream()
        # What is captured as a part of something else records like all else.
        if s.capturing is not None or (s.after_op and is_listening(_settle)):
            return self._function(*args, **kwargs)
        if s.host is None:
            return self._pass("webgpu was not in use yet", args, kwargs)
        if self._hooks_at != (modules.version, modules.looks):
            self._look_at_hooks()
        if self._taps:
            return self._with_taps(args, kwargs)
        call = read(self._names, self._dynamic, args, kwargs)
        if call.reason is not None:
            return self._pass(call.reason, args, kwargs)
        kind = self._kinds.get(call.key)
        if kind is None:
            kind = self._new_kind(call)
        if kind.error is not None:
            raise kind.error
        if kind.reason is not None:
            return self._function(*args, **kwargs)
        if self._is_watched:
            return self._pass("a module has hooks, which run Python at every call", args, kwargs)
        unsure = []
        for trace in list(kind.traces):
            state, own = trace.look(call)
            if state is READY:
                if trace.is_hooked or (trace.values and any(t.is_hooked for t in kind.traces)):
                    return self._pass("a parameter has a hook, which runs Python", args, kwargs)
                try:
                    result = self._serve(kind.traces, trace, call, own, args, kwargs)
                except Unknown:
                    # One more way to go on is recorded.
                    unsure = [t for t in kind.traces if t.look(call)[0] is UNSURE]
                    break
                kind.recorded = 0
                return result
            if state is GONE:
                kind.traces.remove(trace)
            elif state is UNSURE:
                unsure.append(trace)
        return self._record(kind, call, unsure, args, kwargs)

    def __getstate__(self) -> dict[str, Any]:
        # Captures are about the tensors of this one, not about those of a copy.
        fresh = {"_kinds": {}, "_passed": Counter(), "_taps": [], "_tapped": {}, "_hooks_at": (-1, -1)}
        return {**self.__dict__, **fresh}

    def _pass(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a single call eagerly."""
        self._passed[reason] += 1
        return self._function(*args, **kwargs)

    def _serve(
        self,
        traces: list[CapturedTrace],
        trace: CapturedTrace,
        call: CallArguments,
        own: CallArguments,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:
        """The result of a replay. PELLUCID_CHECK puts another method here, which calls the function, too."""
        return trace.serve(call, own, traces)

    def _look_at_hooks(self) -> None:
        self._hooks_at = modules.version, modules.looks
        if self._tree is not None:
            hooked = [m for m in self._tree() if m._hooks]
        else:
            hooked = [m for m in gc.get_objects() if issubclass(type(m), Module) and m._hooks]
        found = [(id(m), hook.function) for m in hooked for hook in m._hooks.values()]
        taps = [(number, tap) for number, tap in found if isinstance(tap, Tap)]
        self._is_watched = len(taps) < len(found)
        self._taps = [] if self._is_watched else [tap for _, tap in taps]
        self._key = tuple((number, tap.inputs) for number, tap in taps)

    def _with_taps(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The call of a function that returns what its taps see, too."""
        taps = self._taps
        inner = self._tapped.get(self._key)
        if inner is None:
            inner = self._tapped[self._key] = self._looked_into()
            while len(self._tapped) > _MOST_TAPPED:
                del self._tapped[next(iter(self._tapped))]
        # What was seen before must not go in the middle of the call, where that would be a part of it.
        before = [tap.seen.get(tap.path) for tap in taps]
        result, values = inner(*args, **kwargs)
        for k, value in values.items():
            taps[k].keep(value)
        del before
        return result

    def _looked_into(self) -> Compiled:
        get = ref(self)

        def run(*args, **kwargs):
            compiled = get()
            assert compiled is not None
            taps, before = compiled._taps, Tap.turns
            result = compiled._function(*args, **kwargs)
            ran = sorted((tap.turn, k) for k, tap in enumerate(taps) if tap.turn > before)
            return result, {k: taps[k].seen[taps[k].path] for _, k in ran}

        # Not whole: what is seen may be nothing that a replay can make, which is no fault of the function.
        return Compiled(run, self._dynamic, like=self._like, tree=lambda: (), quiet=self._is_quiet)

    def _new_kind(self, call: CallArguments) -> _Kind:
        shown = [f"{m.dtype.name}{list(m.shape)}" for m in call.key[1][:4]]
        kind = _Kind(f"({', '.join(shown)}{', ...' if len(call.tensors) > 4 else ''})", stream().opened)
        for key in [k for k, other in self._kinds.items() if other.opened != kind.opened]:
            del self._kinds[key]
        if len(self._kinds) >= _MOST_KINDS:
            if self._is_quiet:
                del self._kinds[next(iter(self._kinds))]
            else:
                self._give_up(kind, f"it was captured for {_MOST_KINDS} other kinds of arguments")
        self._kinds[call.key] = kind
        return kind

    # Recording

    def _record(
        self,
        kind: _Kind,
        call: CallArguments,
        unsure: list[CapturedTrace],
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:
        """Run the function and listen: what it records is the program of a capture, or a new one."""
        kind.recorded += 1
        if kind.recorded > _MOST_RECORDED:
            self._give_up(kind, kind.last or "hardly two calls run the same launches")
            return self._function(*args, **kwargs)
        s = stream()
        s.flush()
        rewrite = s.rewrite
        around = self._function, self._like
        recording = FunctionRecording(call, not self._is_whole, rewrite is not None, around)
        take = recording.take
        try:
            # Its windows are not fused one by one: plans would serve only the few calls that are recorded.
            s.rewrite = None
            s.on_submit.append(take)
            recording.run(self._function, args, kwargs)
            kind.milliseconds = 1000 * recording.seconds
            try:
                if recording.reason is not None:
                    raise Refused(recording.reason, recording.is_final)
                try:
                    kind.add(recording, unsure)
                except Refused as error:
                    if error.final:
                        raise
                    # Cycles may hold what the function made; they go sooner or later.
                    recording.collect()
                    kind.add(recording, unsure)
            except _TooMany as error:
                self._give_up(kind, str(error))
            except _Unfollowed as error:
                advice = "Leave it out there, or compute the number on the device"
                self._end(kind, str(error), None if self._is_quiet else ValueError, advice)
            except Refused as error:
                kind.last = str(error)
                if error.final:
                    advice = "Leave out fullgraph= to run it eagerly"
                    self._end(kind, kind.last, DeviceError if self._is_whole else None, advice)
        finally:
            # Only behind the last step does Python look for Ctrl-C, as it does where an `__exit__` begins.
            s.capturing, s.rewrite, recording.conditions.is_open = None, rewrite, False
            if take in s.on_submit:
                s.on_submit.remove(take)
        return returned(recording.result)

    def _end(self, kind: _Kind, reason: str, error: type[Exception] | None, advice: str) -> None:
        """No further call of the kind is recorded."""
        kind.traces.clear()
        kind.reason = reason
        if error is not None:
            kind.error = error(f"compile: {self._title}: {reason}. {advice}.")
            raise kind.error from None

    def _give_up(self, kind: _Kind, reason: str) -> None:
        kind.reason = reason
        kind.traces.clear()
        if not self._is_quiet:
            text = f"compile: {self._title} runs eagerly from here on: {reason}. See explain()."
            warnings.warn(text, RuntimeWarning, stacklevel=4)

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
        kinds = self._kinds.values()
        lines = [line for kind in kinds for line in kind.describe()]
        lines += [f"{count} calls ran eagerly: {reason}" for reason, count in self._passed.items()]
        reasons = [kind.reason for kind in kinds if kind.reason is not None]
        replays = sum(t.replays for kind in kinds for t in kind.traces)
        for inner in self._tapped.values():
            found = inner.explain()
            lines += [f"{line}, while modules are looked at" for line in found.lines]
            replays += found.replays
            reasons += found.reasons
        return Explanation(self._title, lines, replays, [*reasons, *self._passed])


__all__ = ["Compiled", "Explanation"]
