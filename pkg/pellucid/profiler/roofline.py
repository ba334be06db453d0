"""What the device can do in a second: bytes that it copies, and operations that it computes."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from ..device.host import Host
from ..device.stream import Storage, stream
from ..errors import DeviceError
from ..kernel import load
from ..launches import Node, register
from .recorder import active
from .text import with_unit

# A dispatch must take so many seconds to be believed; the best of so many counts.
_LONG_ENOUGH = 5e-3
_TRIES = 3
_MOST_ROUNDS = 1 << 20
_BYTES, _BYTES_ON_SOFTWARE = 1 << 27, 1 << 24
_INVOCATIONS, _INVOCATIONS_ON_SOFTWARE = 1 << 19, 1 << 12
_WORKGROUP = 256
# Of an invocation of the kernel in a round: four vectors of four, eight steps, two operations each.
_FLOPS = 4 * 4 * 8 * 2


@dataclass(frozen=True)
class Peak:
    """What a device was measured to do.

    Args:
        bandwidth: bytes a second that are read and written while a large buffer is copied.
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

    It takes some tens of milliseconds on a GPU, and its memory is given back.

    Raises:
        DeviceError: a trace or a profile is being recorded, or Python cannot wait here.
        OutOfMemoryError: there is no room for the buffers, 256 MiB together on a GPU.

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
        copy = Node(
            "peak", load("profiler/copy"), {"count": vectors, "shift": 4099 * _WORKGROUP, "rounds": 0},
            ("rounds",), (None, None), vectors // _WORKGROUP,
        )  # fmt: skip
        compute = Node(
            "peak", load("profiler/multiply_add"), {"scale": 0.999, "shift": 0.001, "rounds": 0},
            ("rounds",), (None,), invocations // _WORKGROUP,
        )  # fmt: skip
        copied = yield from _rounds_per_second(copy, (x.slot, out.slot))
        computed = yield from _rounds_per_second(compute, (out.slot,))
    finally:
        x = out = None
        stream().submit()
        host.timing(False)
        host.trim()
    found = Peak(2 * nbytes * copied, _FLOPS * invocations * computed)
    _measured[stream().opened] = found
    return found


def _rounds_per_second(
    node: Node, slots: tuple[int, ...]
) -> Generator[None, list[tuple[int, int, int]], float]:
    """The best rate among dispatches that take long enough."""
    register(node)
    rounds, best, tries = 1, 0.0, 0
    while tries < _TRIES:
        s = stream()
        s.words += (node.head, *slots, rounds)
        s.flush()
        times = yield
        seconds = (times[-1][2] - times[-1][1]) / 1e9
        if seconds < _LONG_ENOUGH and rounds < _MOST_ROUNDS:
            rounds *= 4
            continue
        tries += 1
        best = max(best, rounds / seconds)
    return best
