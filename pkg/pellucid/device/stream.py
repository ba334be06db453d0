"""The stream: ops append records here, a flush hands them to the host."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from ..errors import DeviceError, IndexOutOfRange, KernelError, OutOfMemoryError, PellucidError
from .commands import ALLOC, CODE_BITS, COPY, LARGEST_SIZE, UPLOAD, LaunchWords, is_work
from .handover import Ahead, HandOver, Recognised, joined, packed, sound
from .host import AFTER_LOSS, STATUS_BYTES, STATUS_SLOT, TEST_OF_SUBGROUPS, Host
from .read import Read
from .storage import KINDS, AccountedBytes, End, Storage, ended, finalizer, slots_of

MAX_WINDOW_WORDS = 1 << 13
# The first window after a wait is shorter, and each that fills up twice as long as the one before: a device
# that has nothing to do begins while Python still records.
FIRST_WINDOW_WORDS = 1 << 10
MAX_WINDOW_BYTES = 512 << 20
# More than any device has. Not sys.maxsize, which is 2 GiB in a page.
UNLIMITED = 1 << 62
INLINE_UPLOAD_BYTES = 4096
# Words that Python looks through before numpy has begun.
FEW_WORDS = 64
# Slots that are made together where there is no free one: one by one takes three times as long.
_SLOTS = 32
_WHOLE = slice(None)
EMPTY_SLOT = 1
# Behind the words that reads bring lies what workgroups of a dispatch hand on, zero between dispatches
# (wgsl/parts/fold/partials.wgsl): 1024 counters, and 1024 times 32 values of up to four words.
PARTIAL_WORDS = 1024 * 32 * 4
STATUS_BUFFER_BYTES = STATUS_BYTES + 4 * (1024 + PARTIAL_WORDS)


class Stream:
    """The records that are not submitted yet, and the slots that are in use. There is one: `stream()`.

    Threads share it. What records does so without a lock: CPython lets another thread run only where it looks
    for interrupts, and what must not be torn has no such place in it. Everything else holds `lock`.
    """

    def __init__(self):
        self.lock = threading.RLock()
        # The list objects are never replaced: ops hold them.
        self.words: list[int] = []
        # Windows that are ready, each with how many of the words stand before it and who made it: replays.
        self.ready: list[tuple[int, array, object]] = []
        self.free: list[int] = []
        self.dead: list[int] = []
        # By slot: bytes of its storage; what is called when that goes.
        self.sizes: list[int] = []
        self.ends: list[partial] = []
        # Reads that nobody waits for any more.
        self.given_up: list[tuple[Host, Any]] = []
        self.host: Host | None = None
        # Bytes of what is made and of what goes away in this window, and of all that was there before it.
        self.window_bytes = 0
        self.gone_bytes = 0
        self._settled_bytes = 0
        # How many of the words were searched for what went away; and how often that was done, or words were
        # handed over or dropped.
        self._seen = self._turn = 0
        # Past these `make_way` acts: bytes made in this window, and its words; below zero where none began.
        self.bytes_limit = 0
        self.full_at = -1
        self.ready_words = 0
        self.peak = 0
        self._limit = UNLIMITED
        self.window_words = FIRST_WINDOW_WORDS
        # After how many words the records begin anew, as the last full window did; 0 if they do not.
        self.period = 0
        self.made_by_kind: dict[str, int] = dict.fromkeys(KINDS, 0)
        self._gone_by_kind: dict[str, int] = dict.fromkeys(KINDS, 0)
        # How often a storage became something else than an activation; and until the last window whose
        # structure said what went away.
        self.kinds_given = self._kinds_known = 0
        self.flushes = 0
        # Of the host that will be opened.
        is_limited = os.environ.get("PELLUCID_DEFAULT_LIMITS", "") not in ("", "0")
        self.settings: dict[str, Any] = {"default_limits": is_limited}
        self.first_slot = 0
        # Called when the device is opened, and when it is closed.
        self.on_open: list[Callable[[Host], None]] = []
        self.on_close: list[Callable[[], None]] = []
        self.sites: list[str] = []
        # Called after every op while it holds something: the debug mode.
        self.after_op: list[Callable[[str], None]] = []
        # What makes the window that the host gets from the records, and these packed: the fusion pass. And
        # what tells it, and the stream, ahead what is known of such a window.
        self.rewrite: Callable[[list[int], array, Any], array] | None = None
        self.recognise: Callable[[list[int], array], Recognised] | None = None
        # By the word that begins their runs.
        self.launches: Mapping[int, LaunchWords] = {}
        # Called with the records of every window before it is rewritten: captures.
        self.on_submit: list[Callable[[list[int]], None]] = []
        # The window that is handed over: an interrupt may leave it on its way.
        self._under_way: HandOver | None = None
        # The recording that listens to a function, if one does: told what a replay could not do by itself.
        self.capturing: Any = None
        # The event loop that was asked to submit when Python yields, until it does.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = 0
        self._is_packing = self._is_submitting = False
        self._failed: str | None = None
        self._late: PellucidError | None = None
        for _ in (STATUS_SLOT, EMPTY_SLOT):
            self._add_slots(1)

    # Opening

    def open(self) -> Host:
        """The host, opened at first use.

        Raises:
            DeviceError: there is no WebGPU here.
        """
        if self.host is None:
            with self.lock:
                self._open()
        if self._failed:
            raise DeviceError(self._failed)
        assert self.host is not None
        return self.host

    def _open(self) -> None:
        if self.host is not None:  # another thread opened it while this one waited
            return
        if sys.platform == "emscripten":
            from .browser import BrowserHost as AnyHost
        else:
            from .native import NativeHost as AnyHost
        self._start(AnyHost(**self.settings))

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
        for begin in self.on_open:
            begin(host)

    def close(self) -> None:
        """Give the device back. Tensors on it are lost; the next op opens it anew."""
        with self.lock:
            host = self.host
            if host is None:
                return
            # Nothing of the old session is left, whatever state it was in, before anything else can fail.
            # Slots are never used again: storages of the old device free nothing of the new one.
            self.host = self._under_way = self._failed = self._late = None
            del self.words[:], self.ready[:], self.free[:], self.dead[:], self.given_up[:]
            self.first_slot = self._slots
            self._settled_bytes = self.window_bytes = self.gone_bytes = self.ready_words = self.period = 0
            self._seen = 0
            self._turn += 1
            self.full_at = -1
            self.made_by_kind.update(dict.fromkeys(KINDS, 0))
            self._gone_by_kind.update(dict.fromkeys(KINDS, 0))
            try:
                host.close()
            finally:
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
        """A slot that never was one."""
        if self.host is None:
            self.open()
        with self.lock:
            return self._add_slots(_SLOTS)

    def _add_slots(self, count: int) -> int:
        """The first of some slots that never were ones; the others are free."""
        slot, new = self._slots, slice(self._slots, None)
        slots = range(slot, slot + count)
        ends = [finalizer(each, self.words) for each in slots]
        # One step, as in `_look`.
        self.ends[new] = ends
        self.sizes[new] = (0,) * count
        self._slots = slot + count
        self.free += slots[:0:-1]
        return slot

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
            words = array("I", bytes(view).ljust(len(view) + 3 & ~3, b"\0"))
            if words:  # hosts refuse a write of nothing
                self.words += (storage.slot << CODE_BITS | UPLOAD, 0, len(view), *words)
        else:
            self.check_size(len(view))
            if self.capturing is not None:
                self.capturing.note_upload(len(view))
            storage = Storage(len(view), kind, direct=True)
            with self.lock:
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
        with self.lock:
            if not self.idle and (self.window_bytes > MAX_WINDOW_BYTES or len(self.words) > self.full_at):
                self.flush()
            if nbytes and self.is_limited and self.allocated + nbytes > self._limit:
                self.make_room(nbytes)
            if self.idle:
                self.begin_window()
            else:
                self._bound_bytes()

    def _bound_bytes(self) -> None:
        room = self._limit - self._settled_bytes + self.gone_bytes
        self.bytes_limit = min(MAX_WINDOW_BYTES, room)

    def _look(self) -> None:
        """Account for what went away since the last look."""
        with self.lock:
            self._look_through()

    def _look_through(self, is_end: bool = False) -> Ahead | None:
        """The same where the lock is held.

        Args:
            is_end: all records are about to be handed over. Where they are a window that is recognised, its
                structure says which slots end.

        Returns:
            What else was found out of them.
        """
        kinds, turn, words, seen = self.kinds_given, self._turn, self.words, self._seen
        if len(words) == seen:
            return None
        records = words[seen:]
        count, dead = len(records), None
        if count <= FEW_WORDS:
            dead = [word >> CODE_BITS for word in records if type(word) is End]
            if len(dead) == count:
                self._account(turn, count, dead)
                return None
        window, found = self._packed(records), None
        is_end = is_end and not seen and not self.ready
        if is_end and self.rewrite is not None and self.recognise is not None:
            # What goes wrong here does so again when the window is rewritten, and is raised then.
            with suppress(Exception):
                found = self.recognise(records, window)
        if found is None or found.ends is None:
            is_done = self._account(turn, count, ended(records, window) if dead is None else dead)
        else:
            inside, nbytes, outside = found.ends
            # What is given another kind later than here was there before the next window.
            if self.kinds_given != self._kinds_known:
                inside, nbytes, outside = [], 0, inside + outside
            is_done = self._account(turn, count, outside, inside, nbytes)
            if is_done:
                self._kinds_known = kinds
        return Ahead(turn + 1, records, window, found) if is_end and is_done else None

    def _account(
        self, turn: int, count: int, dead: list[int], inside: list[int] | None = None, gone: int = 0
    ) -> bool:
        """Note what went away with some words, unless something else did: Python's collector may run a
        finalizer that looks, flushes or resets, wherever there is a call or something is made.

        Args:
            turn: when they were taken.
            count: how many they are.
            dead: slots that end there.
            inside: others, which were made there as activations.
            gone: bytes of these.
        """
        sizes, by_kind = self.sizes, self._gone_by_kind
        if self.first_slot:
            dead = [slot for slot in dead if slot >= self.first_slot]
        for slot in dead:
            size = sizes[slot]
            gone += size
            if type(size) is AccountedBytes:
                if by_kind is self._gone_by_kind:
                    by_kind = dict(by_kind)
                by_kind[size.kind] += size
        if inside:
            dead = inside + dead
        if self._turn != turn:
            return False
        # One step, in which there is no call: an interrupt comes before all of it or after.
        self._turn = turn + 1
        self._seen += count
        self.gone_bytes += gone
        self._gone_by_kind = by_kind
        self.dead += dead
        return True

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
        with self.lock:
            self._submit(held)

    def _submit(self, held: bool = False) -> None:
        if self._is_packing:  # by what asks it for a number, or what Python runs in between
            raise KernelError("device webgpu: a record has a tensor for a number, or a finalizer reads one.")
        # Python's collector may run finalizers at any time, and these may submit.
        is_outer = not self._is_submitting
        try:
            self._is_submitting = True
            ahead = self._look_through(is_end=True)
            dead = self.dead
            freed = slice(0, len(dead))
            if self._under_way is not None:
                self._hand_over()
            full = self._seen + self.ready_words >= self.window_words
            self.full_at = -1
            self._settled_bytes += self.window_bytes - self.gone_bytes
            self.window_bytes = self.gone_bytes = self.ready_words = 0
            if self._settled_bytes > self.peak:
                self.peak = self._settled_bytes
            if full:
                self.window_words = min(2 * self.window_words, MAX_WINDOW_WORDS)
            # Whoever listens is told of records alone: an interrupt may have left windows among them.
            while self.on_submit and self.ready and is_work(self.words[: self._seen]):
                place = self.ready[0][0]
                self._send(self.flushes, place, 0 if is_work(self.words[:place]) else 1)
            while (self._seen or self.ready) and not self._send(
                self.flushes, self._seen, len(self.ready), held, ahead
            ):
                ahead = self._look_through(is_end=True)
            if is_outer:
                again = dead[freed]
                # One step, as in `_look`.
                self.free += again
                dead[freed] = ()
                # A program that goes round takes the same slots again, in whatever order they came back.
                self.free.sort(reverse=True)
        finally:
            self._is_submitting = not is_outer

    def _send(
        self, flushes: int, count: int, waiting: int, held: bool = False, ahead: Ahead | None = None
    ) -> bool:
        """Hand over so many words, and so many of the windows that are ready; False if something else did."""
        words, ready = self.words, self.ready
        if self.flushes != flushes:
            return False
        if waiting or (ahead is not None and ahead.turn != self._turn):
            ahead = None
        records = words[:count] if ahead is None else ahead.records
        failed: Exception | None = None
        windows = [(place, made) for place, made, _ in ready[:waiting]] if waiting else []
        # Planning takes a while: where it is interrupted, the records are still there.
        try:
            if windows:
                window = joined(records, windows, self._rewritten)
            elif ahead is None:
                window = self._rewritten(records)
            elif self.rewrite is None:
                window = ahead.window
            else:
                window = self.rewrite(records, ahead.window, ahead.found)
        except Exception as error:  # an error, not an interrupt: what was recorded runs as it is
            failed = error
            window = joined(records, windows, self._packed)
        under_way = HandOver(window, records, () if waiting else self.on_submit)
        left = ready[waiting:]
        rest = [(place - count, made, holder) for place, made, holder in left] if left else ()
        front = slice(0, count)
        if self.flushes != flushes:
            return False
        # One step, as in `_look`.
        self.flushes = flushes + 1
        self._under_way = under_way
        words[front] = ()
        ready[_WHOLE] = rest
        self._seen -= count
        self._turn += 1
        self._hand_over(held)
        if failed is not None:
            raise failed
        return True

    def _hand_over(self, held: bool = False) -> None:
        """What is under way goes on to the host."""
        under_way = self._under_way
        if under_way is None:  # something else did
            return
        try:
            under_way.go_on(self.open(), held)
        except Exception:  # an error, not an interrupt: what can run of it does
            # Refused, since it is being handed over, it stays on its way.
            self._under_way = under_way if under_way.is_given else None
            raise
        self._under_way = None

    def _packed(self, words: list[int]) -> array:
        """The words as the host reads them.

        Raises:
            KernelError: one of them is no number of 32 bits. Its record, and others like it, are left out.
        """
        try:
            self._is_packing = True
            return packed(words)
        except BaseException:
            if self._leave_out():
                raise KernelError(
                    "device webgpu: a record says something that is no number of 32 bits. It was left out, "
                    "and what it should have written has other values. Compute that again."
                ) from None
            raise
        finally:
            self._is_packing = False

    def _leave_out(self) -> bool:
        """Take the records away that no host can read; whether there were any."""
        words = self.words
        count, seen = len(words), self._seen
        kept = [*words[:seen], *sound(words[seen:count], self.launches)]
        front = slice(0, count)
        words[front] = kept
        return len(kept) < count

    def _rewritten(self, records: list[int]) -> array:
        window = self._packed(records)
        return window if self.rewrite is None else self.rewrite(records, window, None)

    def flush(self) -> None:
        """Hand all records to the host; does not wait.

        Raises:
            KernelError, OutOfMemoryError, DeviceError: what went wrong at the host since the last look.
        """
        self.submit()
        if self.host is not None:
            self.check()

    @property
    def has_more_than_records(self) -> bool:
        """Whether windows are on their way whose launches nobody may hold any more but by number."""
        return self._under_way is not None

    def submit_window(self, window: array, holder: object = None) -> None:
        """Let a window that is ready go to the host behind all records, with the next flush.

        Whoever listens to what is submitted sees it by itself, at once. Called with the lock held.

        Args:
            window: its words; they stay as they are.
            holder: who holds its launches, and has to live until the window is with the host.
        """
        words, size = self.words, len(window)
        if self.on_submit and is_work(words[:]):
            self.submit()
        if self.idle:
            self.begin_window()
        made = (len(words), window, holder)
        # One step, as in `_look`.
        self.ready_words += size
        self.ready += (made,)
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
        if failure is None or TEST_OF_SUBGROUPS in failure:
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
        with self.lock:
            if self.capturing is not None:
                self.capturing.note_read()
            self._end_reads()
            self.submit(held=True)
            self._begin_anew()
            host = self.open()
            read = Read(self, host, host.begin_read(storage.slot, offset, nbytes))
            self.check()
            return read

    def _end_reads(self) -> None:
        """Let the host forget reads that nobody waits for."""
        while self.given_up:
            first = host, ticket = self.given_up[0]
            if host is self.host:
                host.drop_read(ticket)  # what Python runs in between may drop them all
            if self.given_up and self.given_up[0] is first:
                del self.given_up[0]

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
            site = self.sites[status[1]] if status[1] < len(self.sites) else f"op {status[1]}"
            raise IndexOutOfRange(
                f"{site}: index {value} is out of range for {status[4]} entries. "
                f"Give indices from 0 to {status[4] - 1}."
            )

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
        self._look()
        return self._settled_bytes + self.window_bytes - self.gone_bytes

    @property
    def by_kind(self) -> dict[str, int]:
        """Bytes of all storages by what they are accounted as; those of activations are not counted."""
        self._look()
        gone = self._gone_by_kind
        return {kind: made - gone[kind] for kind, made in self.made_by_kind.items()}

    @property
    def limit(self) -> int:
        """The most bytes that all storages may have."""
        return self._limit

    @limit.setter
    def limit(self, nbytes: int) -> None:
        self._limit = nbytes
        self.bytes_limit = -1

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit: else nobody need know what went away."""
        return self._limit < UNLIMITED

    def check_size(self, nbytes: int) -> None:
        """Refuse, before anything is recorded, a tensor that no buffer of the device can hold.

        Raises:
            DeviceError: it is over the limit.
        """
        if type(nbytes) is not int or nbytes < 0:
            raise TypeError(f"the size of a tensor must be a whole number of bytes, not {nbytes!r}")
        largest = min(self.open().info.limits.get("maxBufferSize", 1 << 28), LARGEST_SIZE)
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
