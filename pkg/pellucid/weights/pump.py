"""Moves a plan's bytes from sources to a host in desktop Python: threads read, the caller's thread writes.

In a page the twin is `Load` in web/runtime/load.js, which `source_browser` drives. What lies in Python's
memory there (bytes, files of Pyodide's file system) goes through `SerialPump`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import SourceError
from .plan import LoadPlan, Part, Row

STAGING = 1 << 20  # bytes of one write
_WAITING = 8  # writes that may wait for the writer
_NAP = 0.002
_BACKLOG = 64 << 20  # bytes that a host may hold as copies


class Tick(NamedTuple):
    """State of a pump: bytes written, the item of the last write, whether everything is written."""

    bytes_done: int
    item: int
    finished: bool


def cut(part: Part, shard) -> Iterator[tuple[list[Row], int, bytearray]]:
    """The writes of one part: the rows that get them, the offset within the row and at most `STAGING` bytes.

    A row's writes are multiples of 4 bytes; only its last one may not be.
    """
    at, first = part.start, 0
    rows = part.rows
    staging = bytearray()
    for data in shard.chunks(part.start, part.stop):
        taken = 0
        while taken < len(data) and first < len(rows):
            row = rows[first]
            if at < row.start:  # padding between tensors
                step = min(len(data) - taken, row.start - at)
            else:
                step = min(len(data) - taken, row.stop - at, STAGING - len(staging))
                staging += memoryview(data)[taken : taken + step]
            at += step
            taken += step
            if staging and (len(staging) == STAGING or at == row.stop):
                last = first + 1
                while last < len(rows) and rows[last].start == row.start:
                    last += 1
                yield rows[first:last], at - row.start - len(staging), staging
                staging = bytearray()
                if at == row.stop:
                    first = last
    if first < len(rows):
        raise SourceError(
            f"{shard.name}: ended at byte {at:,} of {part.stop:,}. The file is cut short; download it again."
        )


class _Writes:
    """The writes to one host, counted. A host holds copies until the device has them: `drain` bounds them."""

    def __init__(self, host):
        self._host = host
        self._backlog = 0
        self.done, self.item = 0, 0

    def add(self, rows: list[Row], offset: int, data: bytearray) -> None:
        """One write, padded to the 4 bytes that WebGPU asks for."""
        self.done += len(data)
        self.item = rows[0].item
        self._backlog += len(data) * len(rows)
        if len(data) % 4:
            data = data.ljust(len(data) + 3 & ~3, b"\0")
        for row in rows:
            self._host.write(row.slot, row.nbytes, row.offset + offset, data)

    def full(self) -> bool:
        if self._backlog < _BACKLOG or not hasattr(self._host, "synchronize"):
            return False
        self._backlog = 0
        return True

    def drain(self) -> None:
        if self.full():
            self._host.synchronize()

    async def drain_async(self) -> None:
        if self.full():
            await self._host.synchronize_async()


class SerialPump:
    """Reads and writes in turns, in one thread."""

    def __init__(self, plan: LoadPlan, host):
        self._writes = _Writes(host)
        parts = (part for lane in plan.lanes for part in lane)
        self._left = (write for part in parts for write in cut(part, plan.shards[part.shard]))

    async def step_async(self, seconds: float) -> Tick:
        """Work for about ``seconds``, then give other tasks their turn."""
        until = time.monotonic() + seconds
        finished = True
        for write in self._left:
            self._writes.add(*write)
            await self._writes.drain_async()
            if time.monotonic() >= until:
                finished = False
                break
        await asyncio.sleep(0)
        return Tick(self._writes.done, self._writes.item, finished)

    def close(self) -> None:
        """Write nothing more."""
        self._left = iter(())


class ThreadPump:
    """Several readers in threads of their own and one writer, the caller's; few bytes wait in between."""

    def __init__(self, plan: LoadPlan, host, connections: int):
        self._plan = plan
        self._writes = _Writes(host)
        self._lanes = iter(plan.lanes)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ready: queue.Queue = queue.Queue(_WAITING)
        self._running = max(1, min(connections, len(plan.lanes)))
        for k in range(self._running):
            threading.Thread(target=self._read, name=f"pellucid-load-{k}", daemon=True).start()

    def _read(self) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    lane = next(self._lanes, None)
                if lane is None:
                    break
                for part in lane:
                    for item in cut(part, self._plan.shards[part.shard]):
                        if not self._put(item):
                            return
        except Exception as error:  # raised again in the caller's thread
            self._put(error)
            return
        self._put(None)

    def _put(self, item) -> bool:
        while not self._stop.is_set():
            try:
                self._ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def _take(self, item) -> None:
        if item is None:
            self._running -= 1
        elif isinstance(item, Exception):
            raise item
        else:
            self._writes.add(*item)

    def _tick(self) -> Tick:
        return Tick(self._writes.done, self._writes.item, self._running == 0)

    def step(self, seconds: float) -> Tick:
        """Write what arrives within about ``seconds``."""
        until = time.monotonic() + seconds
        while self._running and (left := until - time.monotonic()) > 0:
            try:
                self._take(self._ready.get(timeout=left))
            except queue.Empty:
                break
            self._writes.drain()
        return self._tick()

    async def step_async(self, seconds: float) -> Tick:
        """`step` that gives other tasks their turn while nothing has arrived."""
        until = time.monotonic() + seconds
        while self._running and time.monotonic() < until:
            try:
                self._take(self._ready.get_nowait())
            except queue.Empty:
                await asyncio.sleep(_NAP)
            else:
                await self._writes.drain_async()
        return self._tick()

    def close(self) -> None:
        """Write nothing more. Readers end by themselves: at once, or when a silent connection times out."""
        self._stop.set()
