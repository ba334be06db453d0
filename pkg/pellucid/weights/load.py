"""Streams tensors of a checkpoint into slots of a device, each byte once, with progress and cancellation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import LoadCancelled
from . import plan as planning
from .checkpoint import Checkpoint, TensorInfo
from .plan import Target
from .progress import Cancel, Meter, Progress
from .pump import SerialPump, ThreadPump, Tick
from .source import IN_PAGE

CONNECTIONS = 4
_REPORT = 0.1  # seconds between two reports of progress


class Writer(Protocol):
    """What a load needs of a host.

    In a page, a host with an attribute ``stream`` (a JavaScript object with the same ``write``) gets bytes
    without Python touching them.
    """

    def write(self, slot: int, nbytes: int, offset: int, data) -> None: ...


class _Load:
    """One running load: a pump, its meter and the token that may stop it."""

    def __init__(
        self, checkpoint: Checkpoint, items, host, on_progress, cancel: Cancel | None, connections: int
    ):
        if connections < 1:
            raise ValueError(f"stream: connections is {connections}. Give at least 1.")
        self.cancel = cancel or Cancel()
        self.cancel.check()
        plan = planning.make(checkpoint.shards, items, connections)
        self.names, self.report, self.meter = plan.names, on_progress, Meter(plan.bytes_total)
        self._tell(Tick(0, 0, False))
        self.pump = _pump(plan, host, connections)
        self.unwatch = self.cancel.watch(self.pump.close)

    def after(self, tick: Tick) -> bool:
        """Report, and say whether to go on."""
        if not tick.finished:
            self.cancel.check()
        self._tell(tick)
        return not tick.finished

    def _tell(self, tick: Tick) -> None:
        if self.report is not None:
            self.report(self.meter.at(tick.bytes_done, self.names[tick.item] if self.names else ""))

    def close(self) -> None:
        self.unwatch()
        self.pump.close()


def _pump(plan: planning.LoadPlan, host, connections: int) -> Any:
    if not IN_PAGE:
        return ThreadPump(plan, host, connections)
    from .source_browser import BrowserPump, in_javascript

    return (
        BrowserPump(plan, host, connections)
        if all(map(in_javascript, plan.shards))
        else SerialPump(plan, host)
    )


def stream(
    checkpoint: Checkpoint,
    items: Sequence[tuple[TensorInfo, Target]],
    host: Writer,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Cancel | None = None,
    connections: int = CONNECTIONS,
) -> None:
    """Move tensors' bytes into slots; each byte of the files at most once.

    Neighbours share a request, large tensors are cut, several requests are in flight; a broken connection
    goes on at the byte where it stopped. Writes are multiples of 4 bytes; a tensor's last one is padded with
    zeros. After this returns or raises nothing is written any more.

    Args:
        checkpoint: from `pellucid.weights.open`.
        items: (tensor, target) pairs.
        host: the device's host, or any object with its ``write(slot, nbytes, offset, data)``, which copies
        ``data`` before it returns.
        on_progress: called in this thread, about ten times a second.
        cancel: token that stops the load.
        connections: requests in flight.

    Raises:
        LoadCancelled: the token was used.
        SourceError: bytes cannot be had, also after retries; or the file changed since it was opened.
        WeightError: a target does not fit its tensor.

    Example:
        >>> from pellucid import weights
        >>> checkpoint = weights.open(open("model.gguf", "rb").read())  # doctest: +SKIP
        >>> tensors = checkpoint.values()  # doctest: +SKIP
        >>> items = [(t, weights.Target(k, t.nbytes)) for k, t in enumerate(tensors, 1)]  # doctest: +SKIP
        >>> weights.stream(checkpoint, items, host)  # doctest: +SKIP
    """
    if IN_PAGE:
        from .source_browser import wait

        return wait(
            stream_async(
                checkpoint, items, host, on_progress=on_progress, cancel=cancel, connections=connections
            ),
            "stream",
        )
    load = _Load(checkpoint, items, host, on_progress, cancel, connections)
    try:
        while load.after(load.pump.step(_REPORT)):
            pass
    finally:
        load.close()


async def stream_async(
    checkpoint: Checkpoint,
    items: Sequence[tuple[TensorInfo, Target]],
    host: Writer,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Cancel | None = None,
    connections: int = CONNECTIONS,
) -> None:
    """`stream` for a caller that must not block."""
    load = _Load(checkpoint, items, host, on_progress, cancel, connections)
    try:
        while load.after(await _step(load)):
            pass
    finally:
        load.close()


async def _step(load: _Load) -> Tick:
    try:
        return await load.pump.step_async(_REPORT)
    except LoadCancelled:
        raise
    except Exception:
        load.cancel.check()  # an aborted request fails in its own way; its cause is the cancellation
        raise


class _Arrays:
    """A host whose slots are numpy arrays."""

    def __init__(self, sizes: list[int]):
        self.arrays = [np.zeros(nbytes + 3 & ~3, np.uint8) for nbytes in sizes]

    def write(self, slot: int, nbytes: int, offset: int, data) -> None:
        self.arrays[slot][offset : offset + len(data)] = np.frombuffer(data, np.uint8)


def _into_arrays(infos: Sequence[TensorInfo]) -> tuple[_Arrays, list[tuple[TensorInfo, Target]]]:
    arrays = _Arrays([t.nbytes for t in infos])
    return arrays, [(t, Target(k, len(arrays.arrays[k]))) for k, t in enumerate(infos)]


def read(
    checkpoint: Checkpoint,
    infos: Sequence[TensorInfo],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Cancel | None = None,
    connections: int = CONNECTIONS,
) -> list[np.ndarray]:
    """Tensors' bytes in memory, for the ``cpu`` device.

    Args:
        checkpoint: from `pellucid.weights.open`.
        infos: which tensors.
        on_progress, cancel, connections: as in `stream`.

    Returns:
        One uint8 array of ``info.nbytes`` elements per tensor, as the file has them; ``.view(...)``
        makes elements of them.

    Raises:
        LoadCancelled, SourceError: as `stream`.
    """
    arrays, items = _into_arrays(infos)
    stream(checkpoint, items, arrays, on_progress=on_progress, cancel=cancel, connections=connections)
    return [a[: t.nbytes] for a, t in zip(arrays.arrays, infos, strict=True)]


async def read_async(
    checkpoint: Checkpoint,
    infos: Sequence[TensorInfo],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Cancel | None = None,
    connections: int = CONNECTIONS,
) -> list[np.ndarray]:
    """`read` for a caller that must not block."""
    arrays, items = _into_arrays(infos)
    await stream_async(
        checkpoint, items, arrays, on_progress=on_progress, cancel=cancel, connections=connections
    )
    return [a[: t.nbytes] for a, t in zip(arrays.arrays, infos, strict=True)]
