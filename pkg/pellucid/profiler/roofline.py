"""What the device can do in a second: bytes that it copies, and operations that it computes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from ..device.host import Host
from ..device.stream import Storage, stream
from ..errors import DeviceError
from ..op.kernel.source import load
from ..op.launches import RegisteredLaunch, register
from .recorder import active
from .text import with_unit

# A dispatch must take so many seconds to be believed, and so many must pass until a GPU's clocks are up; the
# best of so many counts.
_LONG_ENOUGH = 5e-3
_WARM_UP = 0.3
_TRIES = 5
_MOST_ROUNDS = 1 << 16
# Of each of two buffers: together several times the largest cache of any GPU.
_BYTES, _BYTES_ON_SOFTWARE = 1 << 28, 1 << 24
_INVOCATIONS, _INVOCATIONS_ON_SOFTWARE = 1 << 19, 1 << 12
_WORKGROUP = 256
# Vectors that a workgroup copies.
_COPIED = 4 * _WORKGROUP
# Of an invocation of the kernel in a round: four vectors of four, eight steps, two operations each.
_FLOPS = 4 * 4 * 8 * 2


@dataclass(frozen=True)
class Peak:
    """What a device was measured to do.

    Args:
        bandwidth: bytes a second that are read and written while a buffer is copied that no cache holds.
        flop_rate: float32 operations a second in multiplications with addition, which count as two.
    """

    bandwidth: float
    flop_rate: float

    def __str__(self) -> str:
        return f"{with_unit(self.bandwidth, 'B/s')} copied, {with_unit(self.flop_rate, 'flop/s')}"


# By the opening of the device.
_measured: dict[int, Peak] = {}


def known_peak() -> Peak | None:
    """What `peak` found of the device that is open; None if it was not asked."""
    return _measured.get(stream().opened)


def peak() -> Peak:
    """Measure once what the device can do, by two kernels; a profile's table then has shares of it.

    It takes about a second on a GPU, and its memory is given back.

    Raises:
        DeviceError: a trace or a profile is being recorded, or Python cannot wait here.
        OutOfMemoryError: there is no room for the buffers, 512 MiB together on a GPU.

    Example:
        >>> import pellucid as torch
        >>> torch.profiler.peak().bandwidth > 0
        True
    """
    found = known_peak()
    if found is not None:
        return found
    host = stream().open()
    measuring = _measuring(host)
    try:
        next(measuring)
        while True:
            measuring.send(host.timings())
    except StopIteration as end:
        return end.value
    finally:
        measuring.close()


async def peak_async() -> Peak:
    """The awaitable twin of `peak`."""
    found = known_peak()
    if found is not None:
        return found
    await stream().open_async()
    host = stream().open()
    measuring = _measuring(host)
    try:
        next(measuring)
        while True:
            measuring.send(await host.timings_async())
    except StopIteration as end:
        return end.value
    finally:
        measuring.close()


def _measuring(host: Host) -> Generator[None, list[tuple[int, int, int]], Peak]:
    """Submits one dispatch after another and wants to be told the time of each."""
    if active:
        raise DeviceError(
            "device webgpu: peak() cannot measure while a trace or a profile is being recorded. Call it "
            "before or after."
        )
    limits, software = host.info.limits, host.info.is_software
    most = min(limits["maxStorageBufferBindingSize"], limits["maxBufferSize"])
    nbytes = min(_BYTES_ON_SOFTWARE if software else _BYTES, 1 << most.bit_length() - 1)
    vectors = nbytes // 16
    invocations = _INVOCATIONS_ON_SOFTWARE if software else _INVOCATIONS
    stream().flush()
    host.timing(True)
    try:
        x, out = Storage(nbytes), Storage(nbytes)
        slots = x.slot, out.slot

        def copy(rounds: int) -> tuple[int, ...]:
            groups = rounds * vectors // _COPIED
            node = RegisteredLaunch(
                "peak", load("profiler/copy"), {"count": vectors, "groups": groups}, (), (None, None), groups
            )  # fmt: skip
            register(node)
            return node.head, *slots

        compute = RegisteredLaunch(
            "peak", load("profiler/multiply_add"), {"scale": 0.999, "shift": 0.001, "rounds": 0},
            ("rounds",), (None,), invocations // _WORKGROUP,
        )  # fmt: skip
        register(compute)
        warm_up = 0.0 if software else _WARM_UP
        copied = yield from _rounds_per_second(copy, warm_up)
        computed = yield from _rounds_per_second(lambda rounds: (compute.head, slots[1], rounds), warm_up)
    finally:
        x = out = None
        stream().submit()
        host.timing(False)
        host.trim()
    found = Peak(2 * nbytes * copied, _FLOPS * invocations * computed)
    _measured[stream().opened] = found
    return found


def _rounds_per_second(
    record: Callable[[int], tuple[int, ...]], warm_up: float
) -> Generator[None, list[tuple[int, int, int]], float]:
    """The best rate among dispatches that take long enough, once the device has worked for a while.

    Args:
        record: gives the words of a dispatch of so many rounds.
        warm_up: seconds of work before what counts.
    """
    rounds, best, tries, began = 1, 0.0, 0, time.perf_counter()
    while tries < _TRIES:
        s = stream()
        s.words += record(rounds)
        s.flush()
        times = yield
        seconds = (times[-1][2] - times[-1][1]) / 1e9
        if seconds < _LONG_ENOUGH and rounds < _MOST_ROUNDS:
            rounds *= 4
            continue
        if time.perf_counter() - began < warm_up:
            continue
        tries += 1
        best = max(best, rounds / seconds)
    return best
