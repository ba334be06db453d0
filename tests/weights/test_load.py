"""Loads into slots: which writes a host gets, progress, cancellation."""

import asyncio
import threading
import time
from math import ceil

import numpy as np
import pytest

from pellucid import weights
from pellucid.errors import LoadCancelled, WeightError
from pellucid.weights import Cancel, Target, TensorInfo, plan
from pellucid.weights.progress import Meter
from pellucid.weights.source import MemorySource
from weights import samples


class Slots:
    """A host that keeps what it is given, and refuses what WebGPU refuses."""

    def __init__(self):
        self.data: dict[int, bytearray] = {}
        self.writes = 0
        self.largest = 0
        self.threads = set()

    def write(self, slot, nbytes, offset, data):
        held = self.data.setdefault(slot, bytearray(ceil(nbytes / 16) * 16))
        assert offset % 4 == 0
        assert len(data) % 4 == 0
        assert offset + len(data) <= len(held)
        held[offset : offset + len(data)] = data
        self.writes += 1
        self.largest = max(self.largest, len(data))
        self.threads.add(threading.get_ident())


@pytest.fixture
def checkpoint(server):
    """Ten megabytes behind HTTP, of tensors whose sizes are no multiples of 4."""
    random = np.random.default_rng(5)
    sizes = [3, 2_500_001, 1, 7, 5_000_002, 0, 13, 2_500_003, 4]
    arrays = {f"t{k}": random.integers(0, 255, n, dtype=np.uint8) for k, n in enumerate(sizes)}
    server.files["/model.safetensors"] = samples.safetensors_file(arrays)
    opened = weights.open(f"{server.url}/model.safetensors")
    opened.arrays = arrays  # type: ignore[attr-defined]
    return opened


def targets(checkpoint):
    return [(t, Target(slot, t.nbytes)) for slot, t in enumerate(checkpoint.values(), 1)]


def check(checkpoint, host):
    for slot, info in enumerate(checkpoint.values(), 1):
        if info.nbytes:
            assert host.data[slot][: info.nbytes] == checkpoint.arrays[info.name].tobytes(), info.name
            assert not any(host.data[slot][info.nbytes : ceil(info.nbytes / 4) * 4])


def test_every_slot_gets_its_bytes_from_the_callers_thread(checkpoint):
    host = Slots()
    weights.stream(checkpoint, targets(checkpoint), host)
    check(checkpoint, host)
    assert host.threads == {threading.get_ident()}
    assert host.largest <= 1 << 20


def test_the_awaitable_twin_lets_other_tasks_run(server, checkpoint):
    """P-094: ranges are fetched while other work runs."""
    server.delay = 0.005
    host, ticks = Slots(), 0

    async def clock():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.005)

    async def main():
        other = asyncio.create_task(clock())
        await weights.stream_async(checkpoint, targets(checkpoint), host)
        other.cancel()

    asyncio.run(main())
    check(checkpoint, host)
    assert ticks > 10


def test_tensors_may_share_a_slot_and_a_tensor_may_have_two(checkpoint):
    infos = list(checkpoint.values())
    host = Slots()
    items = [
        (infos[0], Target(1, 16, 0)),
        (infos[2], Target(1, 16, 4)),
        (infos[3], Target(1, 16, 8)),
        (infos[4], Target(2, infos[4].nbytes)),
        (infos[4], Target(3, infos[4].nbytes + 8, 8)),
    ]
    weights.stream(checkpoint, items, host)
    data = {name: array.tobytes() for name, array in checkpoint.arrays.items()}
    assert host.data[1] == data["t0"] + b"\0" + data["t2"] + b"\0\0\0" + data["t3"] + b"\0"
    assert host.data[2][: infos[4].nbytes] == data["t4"]
    assert host.data[3][8 : 8 + infos[4].nbytes] == data["t4"]


def test_a_slot_that_does_not_fit_is_refused_before_anything_is_fetched(server, checkpoint):
    info = checkpoint["t1"]
    before = len(server.log)
    for target in (Target(1, info.nbytes - 1), Target(1, info.nbytes + 4, 2), Target(1, info.nbytes, 4)):
        with pytest.raises(WeightError, match=r"t1: 2,500,001 bytes do not fit at offset"):
            weights.stream(checkpoint, [(info, target)], Slots())
    assert len(server.log) == before


def test_progress_begins_at_nothing_and_ends_at_all(server, checkpoint):
    server.delay = 0.01
    seen = []
    weights.stream(checkpoint, targets(checkpoint), Slots(), on_progress=seen.append)
    assert seen[0].bytes_done == 0
    assert seen[-1].bytes_done == seen[-1].bytes_total == checkpoint.nbytes
    assert [p.bytes_done for p in seen] == sorted(p.bytes_done for p in seen)
    assert len(seen) > 3
    assert all(p.name in checkpoint for p in seen)
    assert seen[-1].remaining_seconds == 0
    assert seen[-1].rate > 0


def test_rate_and_remaining_time_are_of_the_last_seconds():
    now = 0.0
    meter = Meter(1000, clock=lambda: now)
    assert meter.at(0, "") == (0, 1000, 0.0, None, "")
    now = 1.0
    assert meter.at(100, "a") == (100, 1000, 100.0, 9.0, "a")
    for _ in range(7):
        now += 1.0
        last = meter.at(100, "a")
    assert last.rate == 0.0
    assert last.remaining_seconds is None
    assert str(meter.at(1000, "b")).startswith("100 % of 0.0 MB")


@pytest.mark.parametrize("awaited", [False, True])
def test_a_host_is_told_to_hand_on_what_it_holds(monkeypatch, checkpoint, awaited):
    monkeypatch.setattr("pellucid.weights.pump._BACKLOG", 2 << 20)

    class Holding(Slots):
        held = most = 0

        def write(self, slot, nbytes, offset, data):
            super().write(slot, nbytes, offset, data)
            self.held += len(data)
            self.most = max(self.most, self.held)

        def synchronize(self):
            self.held = 0

        async def synchronize_async(self):
            self.held = 0

    host = Holding()
    if awaited:
        asyncio.run(weights.stream_async(checkpoint, targets(checkpoint), host))
    else:
        weights.stream(checkpoint, targets(checkpoint), host)
    check(checkpoint, host)
    assert host.most <= 3 << 20


def test_cancel_from_another_thread(server, checkpoint):
    server.delay = 0.05
    host, cancel = Slots(), Cancel()
    threading.Timer(0.3, cancel.cancel).start()
    began = time.monotonic()
    with pytest.raises(LoadCancelled):
        weights.stream(checkpoint, targets(checkpoint), host, cancel=cancel)
    assert time.monotonic() - began < 1.0
    writes = host.writes
    time.sleep(0.3)
    assert host.writes == writes
    assert server.sent() < checkpoint.nbytes


def test_cancel_from_the_progress_callback_and_before_the_start(server, checkpoint):
    server.delay = 0.01
    cancel = Cancel()

    def stop(progress):
        if progress.bytes_done > 1_000_000:
            cancel.cancel()

    with pytest.raises(LoadCancelled):
        weights.stream(checkpoint, targets(checkpoint), Slots(), on_progress=stop, cancel=cancel)
    before = len(server.log)
    with pytest.raises(LoadCancelled):
        weights.stream(checkpoint, targets(checkpoint), Slots(), cancel=cancel)
    assert len(server.log) == before


def test_an_error_of_the_callback_or_the_host_ends_the_load(checkpoint):
    class Full(Slots):
        def write(self, slot, nbytes, offset, data):
            raise MemoryError("full")

    with pytest.raises(MemoryError, match="full"):
        weights.stream(checkpoint, targets(checkpoint), Full())

    def fail(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        weights.stream(checkpoint, targets(checkpoint), Slots(), on_progress=fail)


def test_cancelling_the_task_stops_the_load(server, checkpoint):
    server.delay = 0.05
    host = Slots()

    async def main():
        task = asyncio.create_task(weights.stream_async(checkpoint, targets(checkpoint), host))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        writes = host.writes
        await asyncio.sleep(0.3)
        assert host.writes == writes

    asyncio.run(main())


@pytest.mark.parametrize("connections", [1, 4, 16])
@pytest.mark.parametrize("seed", range(5))
def test_a_plan_covers_each_byte_once(seed, connections):
    random = np.random.default_rng(seed)
    infos, at = [], 100
    for k in range(60):
        at += int(random.choice([0, 0, 5, 31, 5000]))
        size = int(random.choice([0, 1, 6, 4096, 999_999, 9_000_001, 20_000_000]))
        infos.append(TensorInfo(f"t{k}", (size,), "uint8", at, at + size, 0))
        at += size
    made = plan.make(
        [MemorySource(b"")], [(t, Target(k, t.nbytes)) for k, t in enumerate(infos)], connections
    )
    parts = [part for lane in made.lanes for part in lane]
    assert made.bytes_total == sum(t.nbytes for t in infos)
    assert all(0 < p.stop - p.start <= plan.LARGEST_PART for p in parts)
    covered = dict.fromkeys(range(60), 0)
    end = 0
    for part in parts:
        assert part.start >= end
        for row in part.rows:
            info = infos[row.item]
            assert part.start <= row.start < row.stop <= part.stop
            assert row.offset == covered[row.item] == row.start - info.start
            assert row.offset % 4 == 0
            covered[row.item] += row.stop - row.start
        end = part.stop
    assert covered == {k: t.nbytes for k, t in enumerate(infos)}


def test_a_source_in_order_has_one_lane():
    source = MemorySource(bytes(30_000_000))
    source.ordered = True
    infos = [TensorInfo("x", (30_000_000,), "uint8", 0, 30_000_000)]
    made = plan.make([source], [(infos[0], Target(1, 30_000_000))], 4)
    assert len(made.lanes) == 1
    assert len(made.lanes[0]) > 3
