"""Watches the stream while a trace or a profile lasts. Nothing of it is in the way at other times."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from ..device.commands import COPY, UPLOAD, walk
from ..device.host import WINDOW, Host
from ..device.stream import stream
from ..errors import DeviceError
from ..op.fusion import window as fusion
from ..op.fusion.plan import FusionPlan
from ..op.launches import nodes
from ..op.schema import OPS
from .lines import caller, lines_of_nodes
from .listeners import ignore, listen
from .origin import Origin, Submission
from .recording import Dispatch, OpCall, Recording, Span, Window

now = time.perf_counter

# The one that is recording. A list, so that there is no global to rebind.
active: list[Recorder] = []
# Named parts of the program around the line that runs; tasks that take turns have each their own.
spans: ContextVar[tuple[Span, ...]] = ContextVar("spans", default=())


class Recorder:
    """Records everything between `start` and `stop`.

    Args:
        time: also the GPU's time for each dispatch, or of each window where the device has no timestamps.
    """

    def __init__(self, time: bool):
        self.recording = Recording(asked=time)
        self._hooks = ExitStack()
        self._host: Host | None = None
        self._submit_of_host: Any = None
        # Instance attributes of the host that were there before.
        self._hidden: dict[str, Any] = {}
        self._ends: list[int] = []
        self._calls: list[OpCall] = []
        # Of the submission under way: when it began, how its window was fused and which words that is about.
        self._entered: float | None = None
        self._rewritten: tuple[FusionPlan | None, int] | None = None
        self._submission: Submission | None = None
        self._since = self._away = 0.0
        # Windows before this one are of a device that was closed.
        self._first_window = 0

    # Beginning and ending

    def start(self) -> None:
        """Begin, with what is recorded from now on.

        Raises:
            DeviceError: something records already, or there is no WebGPU.
        """
        if active:
            raise DeviceError(
                "device webgpu: a trace or a profile is being recorded already. End it first: only one can "
                "be at a time; name parts inside it with profiler.record_function."
            )
        s = stream()
        s.open()
        s.flush()
        active.append(self)
        hooks = self._hooks
        hooks.callback(active.remove, self)
        try:
            self._attach(s.open())
            hooks.callback(self._detach)
            # An attribute of the instance hides the method of the class; one may be there, of who checks ops.
            own, submit = vars(s).get("submit"), s.submit
            s.submit = lambda held=False: self._entering(lambda: submit(held))
            hooks.callback(delattr, s, "submit") if own is None else hooks.callback(setattr, s, "submit", own)
            hooks.enter_context(lines_of_nodes())
            listen(self._after_op, first=True)
            hooks.callback(ignore, self._after_op)
            s.on_submit.append(self._on_submit)
            hooks.callback(s.on_submit.remove, self._on_submit)
            fusion.on_rewrite.append(self._on_rewrite)
            hooks.callback(fusion.on_rewrite.remove, self._on_rewrite)
        except BaseException:
            hooks.close()
            raise
        self.recording.began = self._since = now()

    def stop(self) -> Recording:
        """End, and give what was seen; waits if times were asked for."""
        with self._ending() as host:
            if host is not None:
                self._place(host.timings())
        return self.recording

    async def stop_async(self) -> Recording:
        """The awaitable twin of `stop`."""
        with self._ending() as host:
            if host is not None:
                self._place(await host.timings_async())
        return self.recording

    @contextmanager
    def _ending(self):
        """Gives the host that has times to tell."""
        try:
            stream().submit()
            self.recording.ended = now()
            yield self._host if self.recording.asked and stream().host is self._host else None
        finally:
            self._hooks.close()

    def _attach(self, host: Host) -> None:
        """Stand before the host: what it submits and waits for is seen here, whoever asks it to."""
        self._host = host
        self._first_window = len(self.recording.windows)
        self._submit_of_host = host.submit
        begin_read, read, read_async = host.begin_read, host.read, host.read_async

        def asking(slot, offset, nbytes):
            with self._wait():  # natively the driver may be at work before it returns
                return begin_read(slot, offset, nbytes)

        def waiting(ticket):
            with self._wait():
                return read(ticket)

        async def waiting_async(ticket):
            with self._wait():
                return await read_async(ticket)

        stands = {"submit": self._submit, "begin_read": asking, "read": waiting, "read_async": waiting_async}
        self._hidden = {name: vars(host).get(name) for name in stands}
        vars(host).update(stands)
        if self.recording.asked:
            self.recording.has_timestamps = host.timing(True)

    def _detach(self) -> None:
        host = self._host
        assert host is not None
        for name, hidden in self._hidden.items():
            vars(host).pop(name)
            if hidden is not None:
                vars(host)[name] = hidden
        if self.recording.asked and stream().host is host:
            host.timing(False)

    # What is seen

    @contextmanager
    def _wait(self):
        """What passes within is no time of the op to come. Other tasks may have their turn meanwhile."""
        began = now()
        before = began - self._since - self._away
        self._since, self._away = began, 0.0
        try:
            yield
        finally:
            ended = now()
            self.recording.waits.append((began, ended))
            self._since, self._away = ended - before, 0.0

    def begin_span(self, span: Span) -> None:
        """A named part of the program begins: the time before belongs to no op."""
        self.recording.spans.append(span)
        self._since, self._away = now(), 0.0

    def _after_op(self, op: str) -> None:
        ended = now()
        seconds = ended - self._since - self._away
        call = OpCall(OPS[op].public, caller(), self._since, ended, seconds, spans.get())
        self.recording.calls.append(call)
        self._ends.append(len(stream().words))
        self._calls.append(call)
        self._since, self._away = now(), 0.0

    def _entering(self, submit: Callable[[], None]) -> None:
        self._entered = began = now()
        try:
            submit()
        finally:
            self._entered = None
            self._away += now() - began

    def _on_rewrite(self, records: list[int], plan: FusionPlan | None) -> None:
        self._rewritten = plan, len(records)

    def _on_submit(self, records: list[int]) -> None:
        host = stream().open()
        if host is not self._host:
            self._attach(host)
        count = len(records)
        plan, rewritten = self._rewritten or (None, count)
        submission = Submission(count, self._ends, self._calls, plan, count - rewritten)
        # One step: this is called again where an interrupt comes before.
        self._submission, self._rewritten, self._ends, self._calls = submission, None, [], []

    def _submit(self, words: array, held: bool = False) -> None:
        began = self._entered or now()
        try:
            self._submit_of_host(words, held)
        finally:
            assert self._host is not None
            # Else an interrupt came before, and the stream hands the words over again.
            if self._host.taken is words:
                submission, self._submission = self._submission, None
                origin = self._replayed(began) if submission is None else submission.origin
                window = Window(len(self.recording.windows), began, now())
                self.recording.windows.append(window)
                self._note(window, words.tolist(), origin)
            if self._entered is None:
                self._away += now() - began

    def _replayed(self, began: float) -> Origin:
        """The origin of all that is in a window for which nothing was recorded."""
        seconds = began - self._since - self._away
        call = OpCall("replay", caller(), self._since, began, seconds, spans.get(), is_replay=True)
        self.recording.calls.append(call)
        self._since, self._away = began, 0.0
        return lambda node, at: (node, (call,))

    def _note(self, window: Window, words: list[int], origin: Origin) -> None:
        """What a window holds."""
        assert self._host is not None
        for command in walk(words, nodes):
            if command.code == UPLOAD:
                window.uploads.append(command.nbytes)
            elif command.code == COPY:
                window.copies.append(command.nbytes)
            elif command.launch is not None:
                node, calls = origin(command.launch, command.at)
                made = Dispatch(window, node, command.slots, calls, self._host.info.immediates)
                window.dispatches.append(made)

    def _place(self, times: list[tuple[int, int, int]]) -> None:
        """Give every dispatch, or every window, its time: they come in the order of the submissions.

        A launch that failed at the host has none.
        """
        windows = self.recording.windows[self._first_window :]
        waiting = iter(windows)
        dispatches = iter([d for window in windows for d in window.dispatches])
        for launch, begin, end in times:
            if launch == WINDOW:
                next(waiting).time = begin, end
                continue
            for dispatch in dispatches:
                if dispatch.node.number == launch:
                    dispatch.time = begin, end
                    break
