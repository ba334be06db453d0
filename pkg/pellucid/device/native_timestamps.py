"""Times of dispatches on wgpu-py's devices: two queries for the pass of each, read together at the end."""

from __future__ import annotations

from array import array
from typing import Any

import wgpu
from wgpu.backends.wgpu_native import lib

# Passes of one submission, and bytes of all submissions between two looks: past that nothing is timed.
MOST_PASSES = 1024
RESULT_BYTES = 4 << 20
# Where the results of a submission may begin (https://www.w3.org/TR/webgpu/#dom-gpucommandencoder-resolvequeryset).
_STEP = 256
_NOTHING = -1
_native: Any = lib


class Timestamps:
    """The queries of a device, and what they brought so far.

    Args:
        device: one with the feature timestamp-query.
    """

    def __init__(self, device: wgpu.GPUDevice):
        self._device = device
        self._queries = device.create_query_set(type="timestamp", count=2 * MOST_PASSES)
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._results = device.create_buffer(size=RESULT_BYTES, usage=usage)
        # wgpu's timestamps count ticks of so many nanoseconds.
        self._tick: float = _native.wgpuQueueGetTimestampPeriod(device.queue._internal)
        self._passes = 0
        self._at = 0
        self._launches: list[int] = []
        self._places: list[int] = []

    @property
    def full(self) -> bool:
        """Whether the next pass belongs to another submission."""
        return self._passes == MOST_PASSES

    def begin(self) -> dict | None:
        """What a pass that begins is to write; None when there is no room for its times."""
        if self.full or self._at + 16 * (self._passes + 1) > RESULT_BYTES:
            return None
        first = 2 * self._passes
        self._passes += 1
        self._launches.append(_NOTHING)
        self._places.append(self._at // 8 + first)
        return {
            "query_set": self._queries,
            "beginning_of_pass_write_index": first,
            "end_of_pass_write_index": first + 1,
        }

    def ran(self, launch: int) -> None:
        """Say which launch the last timed pass holds."""
        self._launches[-1] = launch

    def resolve(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """End a submission: its times go where no later one writes."""
        if self._passes:
            encoder.resolve_query_set(self._queries, 0, 2 * self._passes, self._results, self._at)
            self._at += -(-16 * self._passes // _STEP) * _STEP
            self._passes = 0

    def take(self) -> list[tuple[int, int, int]]:
        """(launch, begin, end) of every timed dispatch since the last look, in nanoseconds; waits."""
        launches, places, nbytes = self._launches, self._places, self._at
        self._launches, self._places, self._at = [], [], 0
        if not nbytes:
            return []
        found: Any = self._device.queue.read_buffer(self._results, 0, nbytes)
        ticks = array("Q", bytes(found))
        return [
            (launch, round(ticks[place] * self._tick), round(ticks[place + 1] * self._tick))
            for launch, place in zip(launches, places, strict=True)
            if launch != _NOTHING
        ]

    def destroy(self) -> None:
        """Give the memory back."""
        self._results.destroy()
        self._queries.destroy()
