"""The stream: ops append records here, a flush hands them to the host."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from array import array
from collections.abc import Callable
from typing import Any

from ..errors import DeviceError, IndexOutOfRange, KernelError, OutOfMemoryError, PellucidError
from .handover import HandOver, is_work, joined, packed
from .host import AFTER_LOSS, ALLOC, CODE_BITS, COPY, STATUS_BYTES, STATUS_SLOT, UPLOAD, Host
from .read import Read
from .storage import KINDS, Storage, slots_of

MAX_WINDOW_WORDS = 1 << 13
# The first window after a wait is shorter, and each that fills up twice as long as the one before: a device
# that has nothing to do begins while Python still records.
FIRST_WINDOW_WORDS = 1 << 10
MAX_WINDOW_BYTES = 256 << 20
# More than any device has. Not sys.maxsize, which is 2 GiB in a page.
UNLIMITED = 1 << 62
# A record says sizes and offsets in one word each, whatever the device could hold.
LARGEST_RECORD = (1 << 32) - 16
INLINE_UPLOAD_BYTES = 4096
EMPTY_SLOT = 1
# Behind the words that reads bring lie those by which workgroups of one dispatch hand on what they made, zero
# between dispatches (wgsl/parts/partials.wgsl): 1024 counters and 1024 times 32 values of up to four words.
PARTIAL_WORDS = 1024 * 32 * 4
STATUS_BUFFER_BYTES = STATUS_BYTES + 4 * (1024 + PARTIAL_WORDS)


class Stream:
    """The records that are not submitted yet, and the slots that are in use. There is one: `stream()`."""

    def __init__(self):
        # The list objects are never replaced: ops hold them.
        self.words: list[int] = []
        # Windows that are ready, each with how many of the words stand before it: replays.
        self.ready: list[tuple[int, array]] = []
        self.free: list[int] = []
        self.dead: list[int] = []
        self.host: Host | None = None
        # Bytes of what is made and of what goes away in this window, and of all that was there before it.
        self.window_bytes = 0
        self.gone_bytes = 0
        self._settled_bytes = 0
        # Past these `make_way` has something to do: bytes made in this window, and its words. No window has
        # begun where the second is below zero.
        self.bytes_limit = 0
        self.full_at = -1
        self.ready_words = 0
        self.peak = 0
        self._limit = UNLIMITED
        self.window_words = FIRST_WINDOW_WORDS
        # After how many words the records begin anew, as the last full window did; 0 if they do not.
        self.period = 0
        self.by_kind: dict[str, int] = dict.fromkeys(KINDS, 0)
        self.flushes = 0
        self.settings = {"default_limits": os.environ.get("PELLUCID_DEFAULT_LIMITS", "") not in ("", "0")}
        self.first_slot = 0
        self.on_close: list[Callable[[], None]] = []
        self.sites: list[str] = []
        # Called after every op while it holds something: the debug mode.
        self.after_op: list[Callable[[str], None]] = []
        # What makes the window that the host gets from the records: the fusion pass.
        self.rewrite: Callable[[list[int]], array] | None = None
        # Called with the records of every window before it is rewritten: captures.
        self.on_submit: list[Callable[[list[int]], None]] = []
        # The window that is handed over: an interrupt may leave it on its way.
        self._under_way: HandOver | None = None
        # The recording that listens to a function, if one does: told what a replay could not do by itself.
        self.capturing: Any = None
        # The event loop that was asked to submit when Python yields, until it does.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = EMPTY_SLOT + 1
        self._failed: str | None = None
        self._late: PellucidError | None = None

    # Opening

    def open(self) -> Host:
        """The host, opened at first use.

        Raises:
            DeviceError: there is no WebGPU here.
        """
        if self.host is None:
            if sys.platform == "emscripten":
                from .browser import BrowserHost as AnyHost
            else:
                from .native import NativeHost as AnyHost
            self._start(AnyHost(**self.settings))
        if self._failed:
            raise DeviceError(self._failed)
        assert self.host is not None
        return self.host

    async def open_async(self) -> Host:
        """The same where Python cannot block: call it once before the first op."""
        if self.host is None and sys.platform == "emscripten":
            from .browser import BrowserHost

            self._start(await BrowserHost.open_async(**self.settings))
        return self.open()

    def _start(self, host: Host) -> None:
        if self.host is not None:  # another task opened it while this one waited
            host.close()
            return
        self.host = host
        self.words += (STATUS_SLOT << CODE_BITS | ALLOC, STATUS_BUFFER_BYTES)
        self.words += (EMPTY_SLOT << CODE_BITS | ALLOC, 16)
        # The first record to need memory gets a new buffer: what is not written here is zero, too.
        self.words += (STATUS_SLOT << CODE_BITS | UPLOAD, 0, STATUS_BYTES, *[0] * (STATUS_BYTES // 4))

    def close(self) -> None:
        """Give the device back. Tensors on it are lost; the next op opens it anew."""
        if self.host is None:
            return
        self.host.close()
        self.host = self._under_way = None
        self._failed = None
        del self.words[:], self.ready[:], self.free[:], self.dead[:]
        # Slots are never used again after a close: storages of the old device free nothing of the new one.
        self.first_slot = self._slots
        self._settled_bytes = self.window_bytes = self.gone_bytes = self.ready_words = self.period = 0
        self.full_at = -1
        self.by_kind = dict.fromkeys(KINDS, 0)
        for forget in self.on_close:
            forget()

    @property
    def idle(self) -> bool:
        """Whether no window has begun."""
        return self.full_at < 0

    @property
    def opened(self) -> int:
        """Which opening of the device this is: a number that changes when it is closed and its buffers go."""
        return self.first_slot

    # Slots and records

    def new_slot(self) -> int:
        if self.host is None:
            self.open()
        self._slots += 1
        return self._slots - 1

    def copy(
        self, source: Storage, target: Storage, source_offset: int, target_offset: int, nbytes: int
    ) -> None:
        """Record a copy between buffers; offsets and size are multiples of 4."""
        self.words += (source.slot << CODE_BITS | COPY, target.slot, source_offset, target_offset, nbytes)

    def upload(self, data, kind: str = "activation") -> Storage:
        """A new storage with these bytes."""
        view = memoryview(data).cast("B")
        if len(view) <= INLINE_UPLOAD_BYTES:
            storage = Storage(len(view), kind)
            padded = bytes(view).ljust(len(view) + 3 & ~3, b"\0")
            words = array("I", padded)
            self.words += (storage.slot << CODE_BITS | UPLOAD, 0, len(view), *words)
        else:
            self.check_size(len(view))
            if self.capturing is not None:
                self.capturing.note_upload(len(view))
            storage = Storage(len(view), kind, direct=True)
            self.open().write(storage.slot, len(view), 0, view)
        return storage

    # Flushing and reading

    def begin_window(self) -> None:
        """Called with the first record of a window: let a running event loop submit it when Python yields."""
        most, period = self.window_words, self.period
        # Full windows of a loop begin and end at the same place of it, so that they are alike.
        self.full_at = most if period == 0 or 2 * period > most else -(-most // period) * period - 1
        self._bound_bytes()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        # One that is still to come submits this window, too: asking costs more than ten ops in a page.
        if loop is not self._loop:
            loop.call_soon(self._submit_from_loop)
            self._loop = loop

    def make_way(self, nbytes: int) -> None:
        """Begin a window, or submit one that is full and begin the next: called before a record.

        Args:
            nbytes: of the storages that the record makes; what makes none is never refused.

        Raises:
            OutOfMemoryError: they would pass the memory limit.
        """
        if not self.idle and (self.window_bytes > MAX_WINDOW_BYTES or len(self.words) > self.full_at):
            self.flush()
        if nbytes and self.allocated + nbytes > self._limit:
            self.make_room(nbytes)
        if self.idle:
            self.begin_window()
        else:
            self._bound_bytes()

    def _bound_bytes(self) -> None:
        room = self._limit - self._settled_bytes + self.gone_bytes
        self.bytes_limit = min(MAX_WINDOW_BYTES, room)

    def _submit_from_loop(self) -> None:
        """Nobody could catch an error here: it is kept for the next call."""
        self._loop = None
        try:
            self.submit()
        except PellucidError as error:
            self._late = error

    def submit(self, held: bool = False) -> None:
        """Hand all records to the host; neither waits nor raises what the host finds wrong.

        Args:
            held: a read follows at once and may take them along.
        """
        # Slots whose FREE lies in this window: counted first, since a finalizer may add one at any time.
        dead = self.dead
        freed = len(dead)
        if self._under_way is not None:
            self._hand_over()
        full = len(self.words) + self.ready_words >= self.window_words
        self.full_at = -1
        self._settled_bytes += self.window_bytes - self.gone_bytes
        self.window_bytes = self.gone_bytes = self.ready_words = 0
        if full:
            self.window_words = min(2 * self.window_words, MAX_WINDOW_WORDS)
        # Whoever listens is told of records alone: an interrupt may have left windows among them.
        while self.on_submit and self.ready and is_work(self.words[:]):
            place = self.ready[0][0]
            self._send(place, 0 if is_work(self.words[:place]) else 1)
        if self.words or self.ready:
            self._send(len(self.words), len(self.ready), held)
        # One step, as in `_send`.
        self.free[UNLIMITED:], dead[:freed] = dead[:freed], ()
        # A program that goes round takes the same slots again, in whatever order they came back.
        self.free.sort(reverse=True)

    def _send(self, count: int, waiting: int, held: bool = False) -> None:
        """Hand over so many words, and so many of the windows that are ready."""
        words, ready = self.words, self.ready
        records = words[:count]
        # Planning takes a while: where it is interrupted, the records are still there.
        window = joined(records, ready[:waiting], self._rewritten) if waiting else self._rewritten(records)
        under_way = HandOver(window, records, () if waiting else self.on_submit)
        rest = [(place - count, made) for place, made in ready[waiting:]]
        self.flushes += 1
        # One step, in which there is no call: an interrupt comes before all of it or after.
        self._under_way, words[:count], ready[:] = under_way, (), rest
        self._hand_over(held)

    def _hand_over(self, held: bool = False) -> None:
        """What is under way goes on to the host."""
        assert self._under_way is not None
        if self.allocated > self.peak:
            self.peak = self.allocated
        try:
            self._under_way.go_on(self.open(), held)
        except Exception:  # an error, not an interrupt: what can run of it does
            self._under_way = None
            raise
        self._under_way = None

    def _rewritten(self, records: list[int]) -> array:
        return packed(records) if self.rewrite is None else self.rewrite(records)

    def flush(self) -> None:
        """Hand all records to the host; does not wait.

        Raises:
            KernelError, OutOfMemoryError, DeviceError: what went wrong at the host since the last look.
        """
        self.submit()
        if self.host is not None:
            self.check()

    def submit_window(self, window: array) -> None:
        """Let a window that is ready go to the host behind all records, with the next flush.

        Whoever listens to what is submitted sees it by itself, at once.

        Args:
            window: its words; they stay as they are.
        """
        words, size = self.words, len(window)
        if self.on_submit and is_work(words[:]):
            self.submit()
        if self.idle:
            self.begin_window()
        made = (len(words), window)
        # One step, as in `_send`.
        self.ready_words, self.ready[UNLIMITED:] = self.ready_words + size, (made,)
        if (
            self.on_submit
            or self.window_bytes > MAX_WINDOW_BYTES
            or self.ready_words + len(words) > self.window_words
        ):
            self.flush()

    def check(self) -> None:
        """Raise what went wrong at the host since the last look."""
        if self._late is not None:
            late, self._late = self._late, None
            raise late
        failure = self.host.failure() if self.host is not None else None
        if failure is None:
            return
        if failure.startswith("out of memory"):
            raise OutOfMemoryError(
                f"device webgpu: {failure}. {self.allocated} bytes are in use. "
                "Free tensors or use smaller ones."
            )
        if failure.startswith("lost"):
            self._failed = f"device webgpu: {failure.rstrip('.')}. {AFTER_LOSS}"
            raise DeviceError(self._failed)
        raise KernelError(f"device webgpu: {failure}")

    def begin_read(self, storage: Storage, offset: int, nbytes: int) -> Read:
        """Submit everything recorded so far and a copy of these bytes; whoever needs them waits later."""
        if storage.slot < self.first_slot:
            raise DeviceError(
                "device webgpu: the tensor was on a device that has been closed, and is gone. Load or "
                "compute it again."
            )
        if self.capturing is not None:
            self.capturing.note_read()
        self.submit(held=True)
        self._begin_anew()
        host = self.open()
        read = Read(self, host, host.begin_read(storage.slot, offset, nbytes))
        self.check()
        return read

    def read(self, storage: Storage, offset: int, nbytes: int):
        """Bytes of a storage, waiting for them."""
        return self.begin_read(storage, offset, nbytes).result()

    async def read_async(self, storage: Storage, offset: int, nbytes: int):
        """Bytes of a storage, awaited."""
        return await self.begin_read(storage, offset, nbytes).result_async()

    def after_read(self, status: tuple[int, ...]) -> None:
        """Raise what a read brought to light."""
        self.check()
        if status[0] == 2:
            raise DeviceError(
                "device webgpu: parts of a reduction did not arrive at the workgroup that combines them; "
                "results since the last read may be wrong. Call pellucid.webgpu.reset() and compute again."
            )
        if status[0]:
            value = status[2] | status[3] << 32
            value -= (value >> 63) << 64
            raise IndexOutOfRange(
                f"{self._site_name(status[1])}: index {value} is out of range for {status[4]} entries. "
                f"Give indices from 0 to {status[4] - 1}."
            )

    def _site_name(self, site: int) -> str:
        return self.sites[site] if site < len(self.sites) else f"op {site}"

    def synchronize(self) -> None:
        """Wait until everything recorded so far is done."""
        self.flush()
        self._begin_anew()
        if self.host is not None:
            self.host.synchronize()
            self.check()

    async def synchronize_async(self) -> None:
        """The awaitable twin of `synchronize`."""
        self.flush()
        self._begin_anew()
        if self.host is not None:
            await self.host.synchronize_async()
            self.check()

    def _begin_anew(self) -> None:
        """After a wait, when the device has nothing to do: where windows end depends on nothing before it, so
        that a program which waits now and then has the same windows each time, whatever ran meanwhile."""
        self.window_words = FIRST_WINDOW_WORDS
        self.period = 0

    # Memory

    @property
    def allocated(self) -> int:
        """Bytes of all storages."""
        return self._settled_bytes + self.window_bytes - self.gone_bytes

    @property
    def limit(self) -> int:
        """The most bytes that all storages may have."""
        return self._limit

    @limit.setter
    def limit(self, nbytes: int) -> None:
        self._limit = nbytes
        self.bytes_limit = -1

    def check_size(self, nbytes: int) -> None:
        """Refuse, before anything is recorded, a tensor that no buffer of the device can hold.

        Raises:
            DeviceError: it is over the limit.
        """
        largest = min(self.open().info.limits.get("maxBufferSize", 1 << 28), LARGEST_RECORD)
        if nbytes > largest:
            raise DeviceError(
                f"a tensor of {nbytes} bytes is over this device's limit of {largest} for one buffer. "
                "Use several smaller ones."
            )

    def make_room(self, nbytes: int) -> None:
        """Called when the memory limit would be passed: submit, collect cycles, trim; then give up."""
        self.flush()
        gc.collect()
        self.flush()
        if self.host is not None:
            self.host.trim()
        if self.allocated + nbytes > self.limit:
            raise OutOfMemoryError(
                f"device webgpu: {nbytes} bytes more than the {self.allocated} in use would pass the limit "
                f"of {self.limit}. Free tensors, use smaller ones, or raise the limit with "
                "pellucid.webgpu.set_memory_limit."
            )


_stream = Stream()
slots_of(_stream)


def stream() -> Stream:
    """The process's stream."""
    return _stream


__all__ = ["Storage", "Stream", "stream"]
