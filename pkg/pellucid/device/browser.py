"""WebGPU through the browser, driven from Pyodide. The device itself belongs to web/runtime/stream.js."""

# pyright: reportMissingImports=false
# js and the pyodide modules exist inside Pyodide only.

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import js
import pyodide_js
from pyodide.ffi import JsException, can_run_sync, run_sync, to_js

from ..errors import DeviceError, OutOfMemoryError
from . import javascript as runtime
from .host import AFTER_LOSS, STATUS_BYTES, Info
from .table import Change

_NOTHING_SAID = (0,) * (STATUS_BYTES // 4)
# Tasks that have learned here that they are cancelled, each with how often it was.
_told: WeakKeyDictionary[asyncio.Task, int] = WeakKeyDictionary()


class BrowserHost:
    """The host's contract (docs/design.md) over the page's or the worker's WebGPU.

    Args:
        default_limits: ask for WebGPU's default limits and no optional feature, as the weakest device offers.
        meanwhile: short steps of other work; those that fit are done while the browser opens the device.

    Raises:
        DeviceError: there is no WebGPU here, or opening it would have to wait where Python cannot.
    """

    info: Info
    compiles_beside = True
    stream: Any
    """The JavaScript `Stream`, for code that brings bytes to it without passing through Python."""

    def __init__(self, default_limits: bool = False, meanwhile: Sequence[Callable[[], Any]] = ()):
        _require_waiting("opening the device", "pellucid.webgpu.open_async()")
        self._attach(run_sync(_open(default_limits, meanwhile)))

    @classmethod
    async def open_async(
        cls, default_limits: bool = False, meanwhile: Sequence[Callable[[], Any]] = ()
    ) -> "BrowserHost":
        """The awaitable twin of the constructor."""
        host = cls.__new__(cls)
        host._attach(await _open(default_limits, meanwhile))
        return host

    def _attach(self, heap: Any) -> None:
        self.stream = stream = heap.stream
        info = stream.info.to_py()
        self.info = Info(**{**info, "features": frozenset(info["features"])})
        if not self.info.is_software:
            stream.uploads.useMapped()
            stream.readback.nudger.hasten()
        self.table = OriginTable(heap.kept)
        self._upload_bytes: int = stream.uploads.bytes
        # Bound once: looking a method up on a proxy costs as much as calling it.
        self._pipeline = heap.pipeline
        self._pipeline_later = heap.pipelineLater
        self._launch = heap.launch
        self._compiled = stream.compiled
        self._submit = heap.submit
        self._write = heap.write
        self._fetch = stream.fetch
        self._arrival = stream.arrival
        self._hold_arrival = heap.holdArrival
        self._hold_done = heap.holdDone
        self._wait = heap.waiting.wait or (lambda: True)
        self._take = heap.take
        self._drop = stream.drop
        self._failure = heap.failure
        self.taken: array | None = None
        self._status = array("I", bytes(STATUS_BYTES))
        self._status_address = self._status.buffer_info()[0]

    def pipeline(self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str) -> int:
        """Id of a compute pipeline; what is wrong with its source is reported by `failure`."""
        text = _text(source)
        try:
            return self._pipeline(*text.buffer_info(), bindings, params_bytes, immediate, label)
        except JsException as error:
            raise _typed(error) from None

    def pipeline_later(
        self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str, compact: str = ""
    ) -> int:
        """Id of a pipeline that is compiled beside other work; its compact form, if any, serves first."""
        text = _text(source)
        try:
            return self._pipeline_later(
                *text.buffer_info(), bindings, params_bytes, immediate, label, compact
            )
        except JsException as error:
            raise _typed(error) from None

    async def warm_async(
        self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str
    ) -> int:
        """The same pipeline, compiled while other work goes on."""
        try:
            return await self.stream.warm(source, bindings, params_bytes, immediate, label)
        except JsException as error:
            raise _typed(error) from None

    def launch(
        self, pipeline: int, params: bytes, patches: tuple[int, ...], x: int, y: int, z: int, turn: int = -1
    ) -> int:
        """Id of a launch: a pipeline, the template of its parameters, the words each run patches, a grid, and
        the word that is 1 and 0 in turns, from one run of such launches to the next; -1 for none."""
        template, positions = array("B", params), array("I", patches)
        try:
            return self._launch(pipeline, *template.buffer_info(), *positions.buffer_info(), x, y, z, turn)
        except JsException as error:
            raise _typed(error) from None

    def compiled(self, launches: Sequence[int]) -> bool:
        """Whether the pipelines of launches are compiled: windows that run them wait for nothing."""
        return self._compiled(to_js(launches))

    def forget(self, launches: Sequence[int], pipelines: Sequence[int]) -> None:
        """End launches and pipelines that nobody runs any more; their numbers are given out again."""
        self.stream.forget(to_js(launches), to_js(pipelines))

    def submit(self, words: array, held: bool = False) -> None:
        """Interpret one window of records and submit it, or let the read that follows do so; never waits."""
        address, count = words.buffer_info()
        try:
            # Python looks for interrupts when a call has returned: none falls between these two.
            self.taken = words
            self._submit(address, count, held)
        except JsException as error:
            raise _typed(error) from None

    def write(self, slot: int, nbytes: int, offset: int, data: Any) -> None:
        """Upload to a slot that no pending record touches; the slot is made when it is new."""
        view = memoryview(data).cast("B")
        # A long one goes in pieces, each when the buffers of the last are free, if Python can wait for that.
        most = self._upload_bytes
        step = most if 0 < most < len(view) and can_run_sync() else max(len(view), 1)
        try:
            for at in range(0, max(len(view), 1), step):
                if at:
                    run_sync(self.stream.uploads.ready())
                self._write(slot, nbytes, offset + at, view[at : at + step])
        except JsException as error:
            raise _typed(error) from None

    def begin_read(self, slot: int, offset: int, nbytes: int) -> tuple[int, int]:
        """Submit the copy that a read waits for, behind everything submitted before.

        Returns a ticket for `read` or `read_async`.
        """
        try:
            return self._fetch(slot, offset, nbytes), nbytes
        except JsException as error:
            raise _typed(error) from None

    def read(self, ticket: tuple[int, int]) -> tuple[memoryview, tuple[int, ...]]:
        """Bytes of a slot and the status words, waiting for them.

        Raises:
            DeviceError: Python cannot wait here, or the device is gone.
        """
        try:
            _require_waiting(
                "a blocking read",
                "the same call with the suffix _async; to print, print(await x.numpy_async())",
            )
            _raise_if_cancelled()
            self._hold_arrival(ticket[0])
            if self._wait():  # long: as a task, which Ctrl-C and whoever cancels tasks can end
                run_sync(self._arrived(ticket[0]))
        except BaseException:
            self._drop(ticket[0])
            raise
        return self._end_read(*ticket)

    async def read_async(self, ticket: tuple[int, int]) -> tuple[memoryview, tuple[int, ...]]:
        """The awaitable twin of `read`."""
        try:
            await self._arrival(ticket[0])
        except BaseException:
            self._drop(ticket[0])
            raise
        return self._end_read(*ticket)

    async def _arrived(self, ticket: int) -> None:
        await self._arrival(ticket)

    def drop_read(self, ticket: tuple[int, int]) -> None:
        """Give up a read that was begun."""
        self._drop(ticket[0])

    def _end_read(self, ticket: int, nbytes: int) -> tuple[memoryview, tuple[int, ...]]:
        # Made only now: while a read waits, an abandoned destination could be freed and written to.
        data = array("B", b"\0") * nbytes
        try:
            said = self._take(ticket, data.buffer_info()[0], nbytes, self._status_address)
        except JsException as error:
            raise _typed(error) from None
        return memoryview(data), tuple(self._status) if said else _NOTHING_SAID

    def synchronize(self) -> None:
        """Wait until all submitted work is done."""
        _require_waiting("synchronize()", "synchronize_async()")
        _raise_if_cancelled()
        self._hold_done()
        if self._wait():  # long, or the device is gone
            run_sync(self.synchronize_async())

    async def synchronize_async(self) -> None:
        """The awaitable twin of `synchronize`."""
        done: Awaitable[None] = self.stream.synchronize()
        try:
            await done
        except JsException as error:
            raise _typed(error) from None

    def timing(self, on: bool) -> bool:
        """Time every dispatch from now on, each in a pass of its own, or stop; whether the device can.

        Where it has no timestamps, every window is timed instead.
        """
        try:
            return self.stream.time(on)
        except JsException as error:
            raise _typed(error) from None

    def timings(self) -> list[tuple[int, int, int]]:
        """(launch, begin, end) of the dispatches timed since the last call, in nanoseconds; waits.

        Of windows instead (-1, begin, end).
        """
        _require_waiting("timings()", "timings_async()")
        return run_sync(self.timings_async())

    async def timings_async(self) -> list[tuple[int, int, int]]:
        """The awaitable twin of `timings`."""
        try:
            times = await self.stream.times()
        except JsException as error:
            raise _typed(error) from None
        numbers = [int(number) for number in times.to_py()]
        return list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))

    def stats(self) -> dict[str, int]:
        """Counters since the start, and buffers and bytes of now."""
        return self.stream.stats().to_py()

    def trim(self) -> None:
        """Give the pooled blocks back to the device."""
        self.stream.trim()

    def failure(self) -> str | None:
        """The first asynchronous error since the last call, with the label of what failed."""
        return self._failure()

    def close(self) -> None:
        """Destroy the device and everything on it."""
        self.stream.close()


class OriginTable:
    """A text in the origin's storage, which later pages find; read when the device was opened.

    Args:
        kept: the ``Kept`` of web/runtime/kept.js.
    """

    def __init__(self, kept: Any):
        self._kept = kept

    def __str__(self) -> str:
        return f"the browser's storage of {js.location.origin}"

    def kept(self) -> str | None:
        """The text as this page knows it; None where there is none."""
        if self._kept.error:
            raise OSError(self._kept.error)
        return self._kept.text

    def keep(self, change: Change) -> None:
        """Store what a function makes of the text that is there now."""
        _require_waiting("a write into the browser's storage", "the same call with the suffix _async")
        run_sync(self.keep_async(change))

    async def keep_async(self, change: Change) -> None:
        """The awaitable twin of `keep`."""
        try:
            await self._kept.keep(change)
        except JsException as error:
            raise OSError(f"{error.name}: {error.message}") from None


def _text(source: str) -> array:
    """The bytes of a text, which JavaScript reads ten times as fast as Pyodide makes a string of it."""
    return array("B", source.encode())


async def _open(default_limits: bool, meanwhile: Sequence[Callable[[], Any]]) -> Any:
    heap = await runtime.module("heap.js")
    opening = asyncio.ensure_future(heap.HeapStream.open(pyodide_js._module, default_limits))
    for step in meanwhile:
        await asyncio.sleep(0)  # in which the browser may have an answer
        if opening.done():
            break
        step()
    try:
        return await opening
    except JsException as error:
        raise DeviceError(
            f"device webgpu: {error.message} "
            "Use a browser and a machine that offer WebGPU, or pellucid.set_default_device('cpu')."
        ) from None


def _require_waiting(what: str, instead: str) -> None:
    if not can_run_sync():
        raise DeviceError(
            f"device webgpu: {what} cannot wait here: this is a synchronous JavaScript callback into Python, "
            f"or a browser without JSPI. Await {instead}."
        )


def _raise_if_cancelled() -> None:
    # A task that was cancelled while it blocked learns of it where it awaits: a loop of reads never would.
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return
    if task is None:
        return
    if not getattr(task, "_must_cancel", False):
        if _told:
            _told.pop(task, None)
    elif _told.get(task) != task.cancelling():
        # Once for each time, so that it can still read when it cleans up.
        _told[task] = task.cancelling()
        raise asyncio.CancelledError


def _typed(error: JsException) -> DeviceError:
    text = f"device webgpu: {error.message}"
    if error.message.startswith("lost"):
        return DeviceError(f"{text.rstrip('.')}. {AFTER_LOSS}")
    return OutOfMemoryError(text) if error.message.startswith("out of memory") else DeviceError(text)
