"""WebGPU through wgpu-py, for desktop Python and fast tests."""

from __future__ import annotations

import asyncio
import functools
from array import array
from typing import Any

try:
    import wgpu
except ImportError as error:  # the optional extra is not installed
    raise ImportError(
        "device webgpu: outside a browser it needs the package wgpu. Install it with "
        "`pip install pellucid[native]`, or use pellucid.set_default_device('cpu')."
    ) from error

from ..errors import DeviceError
from .host import AFTER_LOSS, ALLOC, CODE_BITS, COPY, FREE, RUN, STATUS_BYTES, STATUS_SLOT, UPLOAD
from .native_adapter import request
from .pool import Pool

_ARENA_STEP = 256
_ARENA_BYTES = 1 << 20
_WRITE_CHUNK = 16 << 20
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_CODE_MASK = (1 << CODE_BITS) - 1


def _failure(error: Exception, label: str = "") -> str:
    """What `failure` says of an error of wgpu: the words by which the kinds are told apart come first."""
    if "device is lost" in str(error):
        return "lost: the GPU device went away"
    return f"validation: {label}{error}"


def _typed(method):
    """What wgpu raises from a call of the host as this library's error."""

    @functools.wraps(method)
    def call(self, *args):
        try:
            return method(self, *args)
        except wgpu.GPUError as error:
            text = _failure(error)
            advice = f". {AFTER_LOSS}" if text.startswith("lost") else ""
            raise DeviceError(f"device webgpu: {text}{advice}") from None

    return call


class _Launch:
    __slots__ = (
        "grid",
        "group",
        "immediate",
        "label",
        "last",
        "layout",
        "params",
        "patches",
        "pipeline",
        "reads",
    )

    def __init__(self, pipeline, params, patches, grid):
        self.pipeline, self.layout, self.reads, self.immediate, self.label = pipeline
        self.params = array("I", params)
        self.patches = patches
        self.grid = grid
        self.last: tuple | None = None
        self.group: Any = None


class NativeHost:
    """The host's contract (docs/design.md) over wgpu-py.

    Args:
        default_limits: ask for WebGPU's default limits and no optional feature, as the weakest device offers.

    Raises:
        DeviceError: there is no adapter.
    """

    def __init__(self, default_limits: bool = False):
        self._device, self.info = request(default_limits)
        self._pool = Pool(self._create_buffer, lambda block: self._drop(block))
        self._slots: dict[int, tuple[Any, int]] = {}  # slot -> (block, nbytes); block None until first use
        self._layouts: dict[str, Any] = {}
        self._pipelines: list[tuple] = []
        self._launches: list[_Launch] = []
        self._groups: dict[tuple, Any] = {}
        self._groups_of: dict[int, set] = {}  # id(buffer) -> keys of bind groups that hold it
        # Made for the first pipeline whose parameters do not travel as immediates.
        self._arena: Any = None
        self._arena_group: Any = None
        self._arena_layout: Any = None
        self._touched: set[int] = set()
        self._failure: str | None = None
        self._counts = dict.fromkeys(
            ("dispatches", "submits", "passes", "bind_groups", "pipelines", "uploads"), 0
        )

    # Buffers

    def _create_buffer(self, size: int):
        if size > self.info.limits["maxBufferSize"]:
            raise DeviceError(
                f"device webgpu: a buffer of {size} bytes is over this adapter's limit of "
                f"{self.info.limits['maxBufferSize']}. Split the tensor."
            )
        return self._device.create_buffer(size=size, usage=_STORAGE)

    def _drop(self, buffer) -> None:
        for key in self._groups_of.pop(id(buffer), ()):
            self._groups.pop(key, None)
        for launch in self._launches:
            if launch.last is not None and buffer in launch.last:
                launch.last = launch.group = None
        buffer.destroy()

    def _buffer(self, slot: int):
        block, nbytes = self._slots[slot]
        if block is None:
            block = self._pool.take(nbytes)
            self._slots[slot] = (block, nbytes)
        return block

    # Pipelines and launches

    def pipeline(self, source: str, bindings: str, params_bytes: int, immediate: bool, label: str) -> int:
        layout = self._layouts.get(bindings)
        if layout is None:
            layout = self._layouts[bindings] = self._device.create_bind_group_layout(
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
            if self._arena_layout is None:
                self._make_arena()
            groups.append(self._arena_layout)
        immediates: dict[str, Any] = {"immediate_size": params_bytes} if immediate else {}
        try:
            module = self._device.create_shader_module(code=source, label=label)
            pipeline_layout = self._device.create_pipeline_layout(bind_group_layouts=groups, **immediates)
            pipeline = self._device.create_compute_pipeline(
                layout=pipeline_layout, compute={"module": module, "entry_point": "main"}, label=label
            )
        except wgpu.GPUError as error:
            self._failure = self._failure or f"{_failure(error, f'{label}: ')}\n{_numbered(source)}"
            pipeline = None
        self._counts["pipelines"] += 1
        self._pipelines.append((pipeline, layout, bindings, immediate, label))
        return len(self._pipelines) - 1

    def _make_arena(self) -> None:
        usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        self._arena = self._device.create_buffer(size=_ARENA_BYTES, usage=usage)
        uniform = {"type": "uniform", "has_dynamic_offset": True}
        self._arena_layout = self._device.create_bind_group_layout(
            entries=[{"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": uniform}]
        )
        self._arena_group = self._device.create_bind_group(
            layout=self._arena_layout,
            entries=[{"binding": 0, "resource": {"buffer": self._arena, "offset": 0, "size": _ARENA_STEP}}],
        )

    def launch(self, pipeline: int, params: bytes, patches: tuple[int, ...], x: int, y: int, z: int) -> int:
        self._launches.append(_Launch(self._pipelines[pipeline], params, patches, (x, y, z)))
        return len(self._launches) - 1

    def _group(self, launch: _Launch, buffers: tuple):
        if launch.last == buffers:
            return launch.group
        key = (id(launch.layout), *map(id, buffers))
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._device.create_bind_group(
                layout=launch.layout,
                entries=[
                    {
                        "binding": k,
                        "resource": {"buffer": b, "offset": 0, "size": min(b.size, self._binding_limit())},
                    }
                    for k, b in enumerate(buffers)
                ],
            )
            for b in buffers:
                self._groups_of.setdefault(id(b), set()).add(key)
            self._counts["bind_groups"] += 1
        launch.last, launch.group = buffers, group
        return group

    def _binding_limit(self) -> int:
        return self.info.limits["maxStorageBufferBindingSize"]

    # Windows

    @_typed
    def submit(self, words: array) -> None:
        """Interpret one window of records and submit it; never waits."""
        start, end = 0, len(words)
        while start < end:
            start = self._submit_part(words, start, end)
        self._pool.shrink()

    def _submit_part(self, words: array, at: int, end: int) -> int:
        encoder = self._device.create_command_encoder()
        compute = None
        arena = bytearray()
        touched = self._touched
        touched.clear()
        current = None
        while at < end:
            head = words[at]
            code, payload = head & _CODE_MASK, head >> CODE_BITS
            if code == RUN:
                launch = self._launches[payload]
                if not launch.immediate and len(arena) >= _ARENA_BYTES:
                    break
                count = len(launch.reads)
                buffers = tuple([self._buffer(s) for s in words[at + 1 : at + 1 + count]])
                touched.update(map(id, buffers))
                at += 1 + count
                params = launch.params
                for position, value in zip(launch.patches, words[at : at + len(launch.patches)], strict=True):
                    params[position] = value
                at += len(launch.patches)
                if launch.pipeline is None:
                    continue  # its validation error is already waiting in failure()
                if compute is None:
                    compute = encoder.begin_compute_pass()
                    self._counts["passes"] += 1
                    current = None
                if launch.pipeline is not current:
                    current = launch.pipeline
                    compute.set_pipeline(current)
                compute.set_bind_group(0, self._group(launch, buffers))
                if params:
                    if launch.immediate:
                        compute.set_immediates(0, params, 0, 4 * len(params))
                    else:
                        compute.set_bind_group(1, self._arena_group, [len(arena)])
                        arena += params.tobytes().ljust(_ARENA_STEP, b"\0")
                compute.dispatch_workgroups(*launch.grid)
                self._counts["dispatches"] += 1
            elif code == ALLOC:
                self._slots[payload] = (None, words[at + 1])
                at += 2
            elif code == FREE:
                # A slot whose direct write was cancelled never existed here.
                block, nbytes = self._slots.pop(payload, (None, 0))
                if block is not None:
                    self._pool.give(block, nbytes)
                at += 1
            elif code == UPLOAD:
                offset, nbytes = words[at + 1], words[at + 2]
                size = (nbytes + 3) // 4
                data = words[at + 3 : at + 3 + size].tobytes()
                at += 3 + size
                target = self._buffer(payload)
                self._counts["uploads"] += 1
                if id(target) not in touched:
                    # Takes effect before the window, in which nothing has used the block so far.
                    self._device.queue.write_buffer(target, offset, data)
                else:
                    if compute is not None:
                        compute.end()
                        compute = None
                    staging = self._device.create_buffer_with_data(data=data, usage=wgpu.BufferUsage.COPY_SRC)
                    encoder.copy_buffer_to_buffer(staging, 0, target, offset, len(data))
            elif code == COPY:
                target, source_offset, target_offset, nbytes = words[at + 1 : at + 5]
                at += 5
                if compute is not None:
                    compute.end()
                    compute = None
                source_buffer, target_buffer = self._buffer(payload), self._buffer(target)
                encoder.copy_buffer_to_buffer(
                    source_buffer, source_offset, target_buffer, target_offset, nbytes
                )
                touched.update((id(source_buffer), id(target_buffer)))
            else:
                raise AssertionError(f"record code {code} at word {at}")
        if compute is not None:
            compute.end()
        if arena:
            self._device.queue.write_buffer(self._arena, 0, arena)
        try:
            self._device.queue.submit([encoder.finish()])
        except wgpu.GPUError as error:
            self._failure = self._failure or _failure(error)
        self._counts["submits"] += 1
        return at

    @_typed
    def write(self, slot: int, nbytes: int, offset: int, data) -> None:
        """Upload to a slot that no pending record touches; the slot is made when it is new."""
        if slot not in self._slots:
            self._slots[slot] = (None, nbytes)
        target = self._buffer(slot)
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _WRITE_CHUNK):
            part = view[start : start + _WRITE_CHUNK]
            if len(part) % 4:
                part = bytes(part).ljust(len(part) + 3 & ~3, b"\0")
            self._device.queue.write_buffer(target, offset + start, part)
        self._counts["uploads"] += 1

    # Reads

    @_typed
    def begin_read(self, slot: int, offset: int, nbytes: int):
        """Submit the copy that a read waits for, behind everything submitted before.

        Returns a ticket for `read` or `read_async`.
        """
        begin = offset & ~3
        size = (offset + nbytes + 3 & ~3) - begin if nbytes else 0
        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        staging = self._device.create_buffer(size=size + STATUS_BYTES, usage=usage)
        encoder = self._device.create_command_encoder()
        if size:
            encoder.copy_buffer_to_buffer(self._buffer(slot), begin, staging, STATUS_BYTES, size)
        if STATUS_SLOT in self._slots:
            # Cleared in the same submission, so that exactly one read reports it.
            status = self._buffer(STATUS_SLOT)
            encoder.copy_buffer_to_buffer(status, 0, staging, 0, STATUS_BYTES)
            encoder.clear_buffer(status, 0, STATUS_BYTES)
        self._device.queue.submit([encoder.finish()])
        return staging, STATUS_BYTES + offset - begin, nbytes

    @_typed
    def read(self, ticket):
        """Bytes of a slot and the status words, waiting for them."""
        staging, start, nbytes = ticket
        staging.map_sync(wgpu.MapMode.READ)
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

    def synchronize(self) -> None:
        """Wait until all submitted work is done."""
        self.read(self.begin_read(STATUS_SLOT, 0, 0))

    async def synchronize_async(self) -> None:
        """The awaitable twin of `synchronize`."""
        await asyncio.sleep(0)
        self.synchronize()

    # Housekeeping

    def stats(self) -> dict[str, int]:
        return {
            **self._counts,
            "live_buffers": self._pool.live_blocks,
            "reserved_bytes": self._pool.live_bytes + self._pool.free_bytes,
            "pooled_bytes": self._pool.free_bytes,
        }

    def trim(self) -> None:
        self._pool.trim()

    def failure(self) -> str | None:
        failure = self._failure
        # A loss is reported every time: it does not pass.
        if failure is not None and not failure.startswith("lost"):
            self._failure = None
        return failure

    def close(self) -> None:
        self._device.destroy()


def _numbered(source: str) -> str:
    return "\n".join(f"{n:4} {line}" for n, line in enumerate(source.splitlines(), 1))
