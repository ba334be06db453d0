"""One window of commands on its way to wgpu: interpreted, encoded, submitted.

A command that fails is left out; the rest runs.
"""

from __future__ import annotations

import gc
import signal
import threading
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import wgpu

from .commands import ALLOC, CODE_BITS, COPY, FREE, RUN, UPLOAD, heads

if TYPE_CHECKING:
    from .native import NativeHost

ARENA_STEP = 256
ARENA_BYTES = 1 << 20


class NativeWindow:
    """An encoder and what belongs to it.

    Args:
        host: whose buffers, launches and counters the commands mean.
    """

    def __init__(self, host: NativeHost):
        self.host = host
        self._begin()

    def _begin(self) -> None:
        self.encoder = self.host.device.create_command_encoder()
        self.compute: Any = None
        self.timed = False
        self.arena = bytearray()
        self.touched: set[int] = set()
        self.current: Any = None

    def interpret(self, words: array, at: int, end: int) -> tuple[int, Exception | None]:
        """Records from ``at`` on, as many as one submit takes.

        Returns:
            Where the next window part begins, and the first error; its command alone was left out.
        """
        failed: Exception | None = None
        for begin, head, code, after in heads(words, at, end, self.host.launches):
            if code == RUN and (len(self.arena) >= ARENA_BYTES or self._is_timed_full()):
                return begin, failed
            try:
                self._command(head, code, words[begin + 1 : after])
            except Exception as error:  # raised once the others are submitted
                failed = failed or error
        return end, failed

    def _is_timed_full(self) -> bool:
        timestamps = self.host.timestamps
        return timestamps is not None and timestamps.full

    def _command(self, head: int, code: int, words: array) -> None:
        if code == RUN:
            self._run(head, words)
            return
        slot = head >> CODE_BITS
        if code == ALLOC:
            self.host.slots[slot] = (None, words[0])
        elif code == FREE:
            # A slot whose direct write was cancelled never existed here.
            block, nbytes = self.host.slots.pop(slot, (None, 0))
            if block is not None:
                self.host.pool.give(block, nbytes)
        elif code == UPLOAD:
            self._upload(slot, words[0], words[2:].tobytes())
        elif code == COPY:
            self._copy(slot, *words)
        else:
            raise KeyError(code)

    def _run(self, head: int, words: array) -> None:
        host = self.host
        launch, timestamps = host.launches[head], host.timestamps
        count = launch.slot_count
        slots = words[:count]
        buffers = tuple([host.buffer(s) for s in slots])
        self.touched.update(map(id, buffers))
        params = launch.params
        for position, value in zip(launch.patches, words[count:], strict=True):
            params[position] = value
        if launch.turn >= 0:
            host.turn = params[launch.turn] = 1 - host.turn
        if launch.pipeline is None:
            return  # its validation error is already waiting in failure()
        group = host.group(launch, buffers, slots)
        if self.compute is None:
            writes: Any = timestamps.begin() if timestamps is not None else None
            self.compute = self.encoder.begin_compute_pass(timestamp_writes=writes)
            self.timed = writes is not None
            self.current = None
            host.counts["passes"] += 1
        if launch.pipeline is not self.current:
            self.current = launch.pipeline
            self.compute.set_pipeline(self.current)
        self.compute.set_bind_group(0, group)
        if params:
            if launch.immediate:
                self.compute.set_immediates(0, params, 0, 4 * len(params))
            else:
                self.compute.set_bind_group(1, host.arena_group, [len(self.arena)])
                self.arena += params.tobytes().ljust(ARENA_STEP, b"\0")
        self.compute.dispatch_workgroups(*launch.grid)
        host.counts["dispatches"] += 1
        if timestamps is not None:
            if self.timed:
                timestamps.ran(head >> CODE_BITS)
            self._end_pass()

    def _upload(self, slot: int, offset: int, data: bytes) -> None:
        host, target = self.host, self.host.buffer(slot)
        host.counts["uploads"] += 1
        if id(target) not in self.touched:
            # Takes effect before the window, in which nothing has used the block so far.
            host.device.queue.write_buffer(target, offset, data)
            return
        self._end_pass()
        staging = host.device.create_buffer_with_data(data=data, usage=wgpu.BufferUsage.COPY_SRC)
        self.encoder.copy_buffer_to_buffer(staging, 0, target, offset, len(data))

    def _copy(self, source: int, target: int, source_offset: int, target_offset: int, nbytes: int) -> None:
        self._end_pass()
        origin, goal = self.host.buffer(source), self.host.buffer(target)
        self.encoder.copy_buffer_to_buffer(origin, source_offset, goal, target_offset, nbytes)
        self.touched.update((id(origin), id(goal)))

    def _end_pass(self) -> None:
        if self.compute is not None:
            self.compute.end()
            self.compute = None

    def submit(self) -> None:
        """Hand everything encoded to the queue."""
        self._end_pass()
        if self.host.timestamps is not None:
            self.host.timestamps.resolve(self.encoder)
        if self.arena:
            self.host.device.queue.write_buffer(self.host.arena, 0, self.arena)
        self.host.device.queue.submit([self.encoder.finish()])
        self.host.counts["submits"] += 1

    def submit_part(self) -> None:
        """Hand what is encoded so far to the queue, and go on."""
        self.submit()
        self._begin()


@contextmanager
def uninterrupted():
    """Hold Ctrl-C and Python's collector back: half a window would leave tensors without their values, and a
    finalizer that reads one would read it too early."""
    collects = gc.isenabled()
    gc.disable()
    try:
        with _interrupted_later():
            yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _interrupted_later():
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list = []
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda *arguments: caught.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        before(*caught[0])
