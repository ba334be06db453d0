"""A compiled function: its calls are recorded, compared, and then replayed without their Python."""

from __future__ import annotations

import gc
import inspect
import warnings
from collections import Counter
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
from ..profiler.debug import _settle
from ..profiler.listeners import is_listening
from .calls import CallArguments, read
from .captured import GONE, READY, UNSURE, Capture
from .recording import Before, FunctionRecording, Refused
from .split import Split, TooMany, Unknown
from .stretch import Lawless
from .surroundings import Surroundings

# Signatures that a function is captured for.
_MOST_KINDS = 8
# Captures of one signature: of training and evaluation, of steps that begin gradients and that add to them.
_MOST_CAPTURES = 4
# Calls that are recorded without one being replayed in between, before a signature runs eagerly for good.
_MOST_RECORDED = 16
# Sets of modules looked at that a function is captured with at a time.
_MOST_TAPPED = 4
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
        captures: the one used last comes first; those that begin alike and read values are one.
        reason: why calls run eagerly for good.
        error: why they are refused.
        recorded: calls that were recorded since the last replay.
        milliseconds: of Python, that the last recorded call took.
        last: why the last recorded call gave no capture.
        is_new: the last recorded call was none of the captured programs.
    """

    shapes: str
    opened: int
    captures: list[Capture | Split] = field(default_factory=list)
    reason: str | None = None
    error: Exception | None = None
    recorded: int = 0
    milliseconds: float = 0.0
    last: str | None = None
    is_new: bool = False

    def describe(self) -> list[str]:
        """How calls are served, and where their programs are split."""
        return [self._served(), *[f"  {text}" for c in self.captures for text in c.describe()]]

    def _served(self) -> str:
        if self.reason is not None or not self.captures:
            why = self.reason or self.last or "not captured yet"
            return f"{self.shapes}: runs eagerly, {self.milliseconds:.1f} ms of Python a call: {why}"
        c = self.captures[0]
        found = f"{self.shapes}: {sum(c.replays for c in self.captures)} replays of {c.launches} launches"
        if c.dispatches:
            found += f" in {c.dispatches} dispatches"
        return f"{found}, {self.milliseconds:.1f} ms of Python each when it ran eagerly"


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
        for capture in list(kind.captures):
            state, own = capture.look(call)
            if state is READY:
                if capture.is_hooked:
                    return self._pass("a parameter has a hook, which runs Python", args, kwargs)
                try:
                    result = self._serve(capture, own, args, kwargs)
                except Unknown as unknown:
                    # One more way to go on is recorded.
                    unsure.append((capture, unknown.asked))
                    break
                kind.recorded = 0
                return result
            if state is GONE:
                kind.captures.remove(capture)
            elif state is UNSURE:
                unsure.append((capture, own))
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
        self, capture: Capture | Split, call: CallArguments, args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """The result of a replay. PELLUCID_CHECK puts another method here, which calls the function, too."""
        return capture.serve(call)

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
        unsure: list[tuple[Capture | Split, Any]],
        args: tuple,
        kwargs: dict[str, Any],
    ) -> Any:
        """Run the function and listen: what it records is the program of a capture, or a new one."""
        kind.recorded += 1
        if kind.recorded > _MOST_RECORDED:
            self._give_up(kind, kind.last or "hardly two calls run the same launches")
            return self._function(*args, **kwargs)
        # Where values are read, any call may go another way.
        is_split = any(isinstance(capture, Split) for capture, _ in unsure)
        before = Before() if is_split or kind.is_new or not unsure else None
        around = Surroundings((self._function, self._like))
        s = stream()
        s.flush()
        rewrite = s.rewrite
        recording = FunctionRecording(not self._is_whole, fused=rewrite is not None, surroundings=around)
        take = recording.take
        try:
            # Its windows are not fused one by one: plans would serve only the few calls that are recorded.
            s.rewrite = None
            s.on_submit.append(take)
            result = recording.run(self._function, call, args, kwargs)
            kind.milliseconds = 1000 * recording.seconds
            try:
                if recording.reason is not None:
                    raise Refused(recording.reason, recording.is_final)
                try:
                    self._understand(kind, call, unsure, recording, before, result)
                except Refused as error:
                    if error.final:
                        raise
                    # Cycles may hold what the function made; they go sooner or later.
                    recording.collect()
                    self._understand(kind, call, unsure, recording, before, result)
            except TooMany as error:
                self._give_up(kind, str(error))
            except Lawless as error:
                advice = "Leave it out there, or compute the number on the device"
                self._end(kind, str(error), None if self._is_quiet else ValueError, advice)
            except Refused as error:
                kind.last, kind.is_new = str(error), True
                if error.final:
                    advice = "Leave out fullgraph= to run it eagerly"
                    self._end(kind, kind.last, DeviceError if self._is_whole else None, advice)
        finally:
            # Only behind the last step does Python look for Ctrl-C, as it does where an `__exit__` begins.
            s.capturing, s.rewrite, recording.conditions.is_open = None, rewrite, False
            if take in s.on_submit:
                s.on_submit.remove(take)
        return result

    def _end(self, kind: _Kind, reason: str, error: type[Exception] | None, advice: str) -> None:
        """No further call of the kind is recorded."""
        kind.captures.clear()
        kind.reason = reason
        if error is not None:
            kind.error = error(f"compile: {self._title}: {reason}. {advice}.")
            raise kind.error from None

    def _understand(
        self,
        kind: _Kind,
        call: CallArguments,
        unsure: list[tuple[Capture | Split, Any]],
        recording: FunctionRecording,
        before: Before | None,
        result: Any,
    ) -> None:
        for capture, own in unsure:
            if capture.confirm(own, recording, result):
                kind.captures.remove(capture)
                kind.captures.insert(0, capture)
                kind.is_new = False
                return
        # Only a call before which the collector was asked can begin a capture.
        kind.is_new = before is None
        if before is None:
            return
        if recording.reads:
            for capture in kind.captures:
                if isinstance(capture, Split) and capture.add(call, recording, before, result):
                    return
        make = Split if recording.reads else Capture
        kind.captures.insert(0, make(call, recording, before, result))
        del kind.captures[_MOST_CAPTURES:]

    def _give_up(self, kind: _Kind, reason: str) -> None:
        kind.reason = reason
        kind.captures.clear()
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
        replays = sum(c.replays for kind in kinds for c in kind.captures)
        for inner in self._tapped.values():
            found = inner.explain()
            lines += [f"{line}, while modules are looked at" for line in found.lines]
            replays += found.replays
            reasons += found.reasons
        return Explanation(self._title, lines, replays, [*reasons, *self._passed])


__all__ = ["Compiled", "Explanation"]
