"""WebGPU through wgpu-py, for desktop Python and fast tests."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Sequence
from itertools import count
from typing import Any

try:
    import wgpu
except ImportError as error:  # the optional extra is not installed
    raise ImportError(
        "device webgpu: outside a browser it needs the package wgpu. Install it with "
        "`pip install pellucid[native]`, or use pellucid.set_default_device('cpu')."
    ) from error

from ..errors import DeviceError, OutOfMemoryError
from .commands import CODE_BITS, RUN
from .host import STATUS_BYTES, STATUS_SLOT, WINDOW
from .native_adapter import request
from .native_errors import failure_of_source, failure_text, refused, typed
from .native_timestamps import Timestamps
from .native_window import ARENA_BYTES, ARENA_STEP, NativeWindow, uninterrupted
from .pool import Pool
from .table import TableFile, cache_folder

_WRITE_CHUNK = 16 << 20
# Bind groups that are kept.
MOST_GROUPS = 8192
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


class _Group:
    """A bind group and the buffers that it was made of."""

    __slots__ = ("buffers", "made")

    def __init__(self, buffers: tuple | None, made: Any):
        self.buffers, self.made = buffers, made


# That of a launch that never ran.
_NO_GROUP = _Group(None, None)


class _Launch:
    __slots__ = (
        "grid", "group", "immediate", "label", "layout", "length", "params", "patches", "pipeline", "reads",
        "slot_count", "turn",
    )  # fmt: skip

    def __init__(self, pipeline, params, patches, grid, turn):
        self.pipeline, self.layout, self.reads, self.immediate, self.label = pipeline
        self.params = array("I", params)
        self.patches, self.turn = patches, turn
        self.slot_count = len(self.reads)
        self.length = 1 + self.slot_count + len(patches)
        self.grid = grid
        self.group = _NO_GROUP


class NativeHost:
    """The host's contract (docs/design.md) over wgpu-py.

    Args:
        default_limits: ask for WebGPU's default limits and no optional feature, as the weakest device offers.

    Raises:
        DeviceError: there is no adapter.
    """

    compiles_beside = False

    def __init__(self, default_limits: bool = False):
        self.device, self.info = request(default_limits)
        self.taken: array | None = None
        folder = cache_folder()
        self.table = TableFile(folder / "pellucid" / "tuned.json") if folder else None
        self.pool = Pool(self._create_buffer, lambda block: self._drop(block))
        # The window that is being encoded.
        self._window: NativeWindow | None = None
        self.slots: dict[int, tuple[Any, int]] = {}  # slot -> (block, nbytes); block None until first use
        self._layouts: dict[str, Any] = {}
        # By number; those that ended gave theirs back.
        self._pipelines: dict[int, tuple] = {}
        self._new_pipelines, self._new_launches = count(), count()
        self._unused_pipelines: list[int] = []
        # By the word that begins their runs.
        self.launches: dict[int, _Launch] = {}
        self._unused_launches: list[int] = []
        self._groups: dict[tuple, _Group] = {}
        self._groups_of: dict[int, set] = {}  # id(buffer) -> keys of bind groups that hold it
        # Made for the first pipeline whose parameters do not travel as immediates.
        self.arena: Any = None
        self.arena_group: Any = None
        self.arena_layout: Any = None
        # While dispatches are timed, or windows, where the device has no timestamps.
        self.timestamps: Timestamps | None = None
        self._window_times: list[tuple[int, int, int]] | None = None
        self._failure: str | None = None
        # The word of the last run of a launch that takes turns.
        self.turn = 0
        self.counts = dict.fromkeys(
            ("dispatches", "submits", "passes", "bind_groups", "pipelines", "uploads"), 0
        )

    # Buffers

    def _create_buffer(self, size: int):
        if size > self.info.limits["maxBufferSize"]:
            raise DeviceError(
                f"device webgpu: a buffer of {size} bytes is over this adapter's limit of "
                f"{self.info.limits['maxBufferSize']}. Split the tensor."
            )
        try:
            return self.device.create_buffer(size=size, usage=_STORAGE)
        except wgpu.GPUOutOfMemoryError:
            if self._window is not None:  # its commands may use blocks that are free by now
                self._window.submit_part()
            self.pool.trim()
        try:
            return self.device.create_buffer(size=size, usage=_STORAGE)
        except wgpu.GPUOutOfMemoryError as error:
            raise OutOfMemoryError(
                f"device webgpu: out of memory: a buffer of {size} bytes: {error}. "
                f"{self.pool.live_bytes} bytes are in use. Free tensors or use smaller ones."
            ) from None

    def _drop(self, buffer) -> None:
        for key in list(self._groups_of.get(id(buffer), ())):
            self._drop_group(key)
        buffer.destroy()

    def _drop_group(self, key: tuple) -> None:
        group = self._groups.pop(key, None)
        if group is None:
            return
        for b in group.buffers or ():
            keys = self._groups_of.get(id(b), set())
            keys.discard(key)
            if not keys:
                self._groups_of.pop(id(b), None)
        # Launches may still point here: without buffers it never matches again, and holds nothing.
        group.buffers = group.made = None

    def buffer(self, slot: int):
        """The buffer of a slot, found at its first use.

        Raises:
            DeviceError: the slot belongs to a device that was closed.
        """
        if slot not in self.slots:
            raise DeviceError(
                "device webgpu: a tensor was on a device that has been closed, and is gone. Load or compute "
                "it again."
            )
        block, nbytes = self.slots[slot]
        if block is None:
            block = self.pool.take(nbytes)
            self.slots[slot] = (block, nbytes)
        return block

    # Pipelines and launches

    @typed
    def pipeline(self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str) -> int:
        layout = self._layouts.get(bindings)
        if layout is None:
            layout = self._layouts[bindings] = self.device.create_bind_group_layout(
                entries=[
                    {
                        "binding": k,
                        "visibility": wgpu.ShaderStage.COMPUTE,
                        "buffer": {"type": "storage" if letter == "w" else "read-only-storage"},
                    }
                    for k, letter in enumerate(bindings)
                ]
            )
        groups = [layout]
        if params_bytes and not immediate:
            if self.arena_layout is None:
                self._make_arena()
            groups.append(self.arena_layout)
        immediates: dict[str, Any] = {"immediate_size": params_bytes} if immediate else {}
        try:
            module = self.device.create_shader_module(code=source, label=label)
            pipeline_layout = self.device.create_pipeline_layout(bind_group_layouts=groups, **immediates)
            pipeline = self.device.create_compute_pipeline(
                layout=pipeline_layout, compute={"module": module, "entry_point": "main"}, label=label
            )
        except wgpu.GPUError as error:
            self._failure = self._failure or failure_of_source(error, label, source)
            pipeline = None
        self.counts["pipelines"] += 1
        number = self._unused_pipelines.pop() if self._unused_pipelines else next(self._new_pipelines)
        self._pipelines[number] = (pipeline, layout, bindings, immediate, label)
        return number

    def pipeline_later(
        self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str, compact: str = ""
    ) -> int:
        """The same: nothing is compiled beside Python here, so that a compact form has nothing to bridge."""
        return self.pipeline(source, bindings, params_bytes, immediate, label)

    def _make_arena(self) -> None:
        usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        self.arena = self.device.create_buffer(size=ARENA_BYTES, usage=usage)
        uniform = {"type": "uniform", "has_dynamic_offset": True}
        self.arena_layout = self.device.create_bind_group_layout(
            entries=[{"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": uniform}]
        )
        self.arena_group = self.device.create_bind_group(
            layout=self.arena_layout,
            entries=[{"binding": 0, "resource": {"buffer": self.arena, "offset": 0, "size": ARENA_STEP}}],
        )

    def launch(
        self, pipeline: int, params: bytes, patches: tuple[int, ...], x: int, y: int, z: int, turn: int = -1
    ) -> int:
        made = _Launch(self._pipelines[pipeline], params, patches, (x, y, z), turn)
        number = self._unused_launches.pop() if self._unused_launches else next(self._new_launches)
        self.launches[number << CODE_BITS | RUN] = made
        return number

    def compiled(self, launches: Sequence[int]) -> bool:
        return True

    def forget(self, launches: Sequence[int], pipelines: Sequence[int]) -> None:
        """End launches and pipelines that nobody runs any more; their numbers are given out again."""
        for number in launches:
            if self.launches.pop(number << CODE_BITS | RUN, None) is not None:
                self._unused_launches.append(number)
        for number in pipelines:
            if self._pipelines.pop(number, None) is not None:
                self._unused_pipelines.append(number)

    def group(self, launch: _Launch, buffers: tuple, slots):
        """The bind group of a launch with these buffers, made once."""
        if launch.group.buffers == buffers:
            return launch.group.made
        limit = self.info.limits["maxStorageBufferBindingSize"]
        for slot in slots:
            if self.slots[slot][1] > limit:
                raise DeviceError(
                    f"device webgpu: {launch.label}: a tensor lies in a buffer of {self.slots[slot][1]} "
                    f"bytes; this device binds at most {limit}. Split it, or copy the part that is needed."
                )
        key = (id(launch.layout), *map(id, buffers))
        group = self._groups.get(key)
        if group is None:
            while len(self._groups) >= MOST_GROUPS:
                self._drop_group(next(iter(self._groups)))
            made = self.device.create_bind_group(
                layout=launch.layout,
                entries=[
                    {
                        "binding": k,
                        "resource": {"buffer": b, "offset": 0, "size": min(b.size, limit)},
                    }
                    for k, b in enumerate(buffers)
                ],
            )
            group = self._groups[key] = _Group(buffers, made)
            for b in buffers:
                self._groups_of.setdefault(id(b), set()).add(key)
            self.counts["bind_groups"] += 1
        launch.group = group
        return group.made

    # Windows

    @typed
    def submit(self, words: array, held: bool = False) -> None:
        """Interpret one window of records and submit it; never waits, but while windows are timed.

        Args:
            words: the records.
            held: a read follows at once; here that changes nothing.

        Raises:
            DeviceError: a record failed; it was left out, and the rest was submitted.
        """
        at, end, first = 0, len(words), None
        began = time.perf_counter_ns()
        with uninterrupted():
            self.taken = words
            while at < end:
                self._window = window = NativeWindow(self)
                at, failed = window.interpret(words, at, end)
                first = first or failed
                try:
                    window.submit()
                except wgpu.GPUError as error:
                    self._failure = self._failure or failure_text(error)
                self._window = None
            self.pool.shrink()
        if self._window_times is not None:
            self.synchronize()
            self._window_times.append((WINDOW, began, time.perf_counter_ns()))
        if first is not None:
            raise first

    @typed
    def write(self, slot: int, nbytes: int, offset: int, data) -> None:
        """Upload to a slot that no pending record touches; the slot is made when it is new."""
        if slot not in self.slots:
            self.slots[slot] = (None, nbytes)
        target = self.buffer(slot)
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _WRITE_CHUNK):
            part = view[start : start + _WRITE_CHUNK]
            if len(part) % 4:
                part = bytes(part).ljust(len(part) + 3 & ~3, b"\0")
            self.device.queue.write_buffer(target, offset + start, part)
        self.counts["uploads"] += 1

    # Reads

    @typed
    def begin_read(self, slot: int, offset: int, nbytes: int):
        """Submit the copy that a read waits for, behind everything submitted before.

        Returns a ticket for `read` or `read_async`.
        """
        begin = offset & ~3
        size = (offset + nbytes + 3 & ~3) - begin if nbytes else 0
        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        staging = self.device.create_buffer(size=size + STATUS_BYTES, usage=usage)
        encoder = self.device.create_command_encoder()
        if size:
            encoder.copy_buffer_to_buffer(self.buffer(slot), begin, staging, STATUS_BYTES, size)
        if STATUS_SLOT in self.slots:
            # Cleared in the same submission, so that exactly one read reports it.
            status = self.buffer(STATUS_SLOT)
            encoder.copy_buffer_to_buffer(status, 0, staging, 0, STATUS_BYTES)
            encoder.clear_buffer(status, 0, STATUS_BYTES)
        self.device.queue.submit([encoder.finish()])
        return staging, STATUS_BYTES + offset - begin, nbytes

    @typed
    def read(self, ticket):
        """Bytes of a slot and the status words, waiting for them."""
        staging, start, nbytes = ticket
        try:
            staging.map_sync(wgpu.MapMode.READ)
        except RuntimeError as error:  # what wgpu raises where the device went away meanwhile
            raise refused(error) from None
        data = memoryview(staging.read_mapped(copy=True))
        staging.unmap()
        staging.destroy()
        return data[start : start + nbytes], tuple(data[:STATUS_BYTES].cast("I"))

    async def read_async(self, ticket):
        """The awaitable twin of `read`."""
        await asyncio.sleep(0)
        return self.read(ticket)

    def drop_read(self, ticket) -> None:
        """Give up a read that was begun."""
        ticket[0].destroy()

    @typed
    def synchronize(self) -> None:
        """Wait until all submitted work is done."""
        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        last = self.device.create_buffer(size=4, usage=usage)
        encoder = self.device.create_command_encoder()
        encoder.clear_buffer(last)
        self.device.queue.submit([encoder.finish()])
        try:
            last.map_sync(wgpu.MapMode.READ)
        except RuntimeError as error:
            raise refused(error) from None
        last.destroy()

    async def synchronize_async(self) -> None:
        """The awaitable twin of `synchronize`."""
        await asyncio.sleep(0)
        self.synchronize()

    # Times

    @typed
    def timing(self, on: bool) -> bool:
        """Time every dispatch from now on, each in a pass of its own, or stop; whether the device can.

        Where it has no timestamps, every window is timed instead, and waited for.
        """
        can = "timestamp-query" in self.info.features
        if not on:
            if self.timestamps is not None:
                self.timestamps.destroy()
            self.timestamps = self._window_times = None
        elif can:
            self.timestamps = self.timestamps or Timestamps(self.device)
        else:
            self._window_times = self._window_times or []
        return can

    @typed
    def timings(self) -> list[tuple[int, int, int]]:
        """(launch, begin, end) of the dispatches timed since the last call, in nanoseconds; waits.

        Of windows instead (-1, begin, end).
        """
        if self.timestamps is not None:
            return self.timestamps.take()
        found = list(self._window_times or ())
        if self._window_times is not None:
            self._window_times.clear()
        return found

    async def timings_async(self) -> list[tuple[int, int, int]]:
        """The awaitable twin of `timings`."""
        await asyncio.sleep(0)
        return self.timings()

    # Housekeeping

    def stats(self) -> dict[str, int]:
        return {
            **self.counts,
            "compiling": 0,
            "live_buffers": self.pool.live_blocks,
            "reserved_bytes": self.pool.live_bytes + self.pool.free_bytes,
            "pooled_bytes": self.pool.free_bytes,
        }

    def trim(self) -> None:
        self.pool.trim()

    def failure(self) -> str | None:
        failure = self._failure
        # A loss is reported every time: it does not pass.
        if failure is not None and not failure.startswith("lost"):
            self._failure = None
        return failure

    def close(self) -> None:
        self.device.destroy()
