"""Measures on request which kernel makes a product or a convolution of a shape the fastest on this device.

The kernels of a shape are compiled beside each other. Then each runs shortly, the one that is estimated to be
the fastest first, and only those that are not far behind the best so far stay; of these the best few are
measured in turns, so that what slows the device for a while slows them all. Every candidate gives the same
result but for the order of additions; one whose result is not that of the first is left out.

Times are those of the device: calls are recorded, then submitted together, until they take long enough for a
clock that is coarse, and the time of two lengths is subtracted; the median of several such pairs counts,
after the device has been at work for a while.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ....device.stream import MAX_WINDOW_WORDS, stream
from ....ops.matmul.dense import matmul
from ....ops.matmul.variants import Shape
from ....tensors.dtypes import DType, float32
from ....tensors.tensor import Tensor
from ...fusion import fusion
from ...plan_cache import forget_plans
from . import measured as tuned
from .candidates import USUAL, Contest, contest_of, operands

# A batch of calls takes this long at least; so many are recorded at most, and their threefold fits a window.
_BATCH_SECONDS, _MOST_CALLS = 2e-3, 224
# Pairs of lengths; fewer once they took so many seconds.
_PAIRS, _FEWEST_PAIRS, _LONG = 7, 3, 1.0
# Of a batch that takes so many seconds the wait for it is no part that counts.
_PLAIN = 0.05
# Seconds of work until a GPU's clocks are up: before a list of measurements, and before each of them.
_WARM_UP, _WARM_AGAIN = 0.5, 0.05
# How much slower than the best so far a kernel may be that is measured on, and how many are.
_FAR, _MOST_MEASURED = 1.5, 4
# What steps ask for: None, that everything submitted is done; a tensor, its value.
Steps = Generator["Tensor | None", "float | None", Any]
Kind = TypeVar("Kind")


def run(steps: Steps) -> Any:
    """Take steps, waiting for what they ask for; their result."""
    answer = None
    with closing(steps):
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = stream().synchronize() if asked is None else asked.item()


async def run_async(steps: Steps) -> Any:
    """The awaitable twin of `run`."""
    answer = None
    with closing(steps):
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration as end:
                return end.value
            answer = await (stream().synchronize_async() if asked is None else asked.item_async())


def _busy(call: Callable[[], Any], seconds: float) -> Steps:
    """Steps that keep a GPU at work for so long, and until its kernels are compiled: one that had nothing to
    do begins slowly."""
    host = stream().open()
    if host.info.is_software:
        return
    calls, until = 1, time.perf_counter() + seconds
    while (began := time.perf_counter()) < until or host.stats()["compiling"]:
        for _ in range(calls):
            call()
        yield None
        if time.perf_counter() - began < _BATCH_SECONDS and calls < _MOST_CALLS:
            calls = min(2 * calls, _MOST_CALLS)


def warm_up() -> Steps:
    """Steps that bring the clocks of a GPU up, before a list of measurements."""
    a, b = operands(Shape(1, 1024, 1024, 1024, True, False), float32)
    yield from _busy(partial(matmul.op.plan((a, b)), a, b), _WARM_UP)


def _timed(call: Callable[[], Any], calls: int, hold: bool = False) -> Steps:
    """Steps that measure a batch of calls, with the wait for it."""
    yield None
    stream().window_words = MAX_WINDOW_WORDS  # all in one window, though it is the first after a wait
    held = []
    for _ in range(calls):
        result = call()
        if hold:
            held.append(result)
    began = time.perf_counter()
    yield None
    return time.perf_counter() - began


def _better(call: Callable[[], Any], calls: int) -> Steps:
    """Steps that measure a batch twice; they return the better, for one that was held up says nothing."""
    once = yield from _timed(call, calls)
    return once if once > _PLAIN else min(once, (yield from _timed(call, calls)))


def _enough(call: Callable[[], Any]) -> Steps:
    """Steps that find how many calls the clock needs; they return these and the seconds of their batch."""
    calls = 1
    while (seconds := (yield from _better(call, calls))) < 2 * _BATCH_SECONDS and calls < _MOST_CALLS:
        calls = min(2 * calls, _MOST_CALLS)
    return calls, seconds


def _in_turns(kinds: Mapping[Kind, Callable[[], Any]], calls: int, hold: bool = False) -> Steps:
    """Steps that measure one call of each kind, in turns; they return kind -> seconds."""
    found: dict[Kind, list[float]] = {kind: [] for kind in kinds}
    until = time.perf_counter() + _LONG
    for turn in range(_PAIRS):
        if turn >= _FEWEST_PAIRS and time.perf_counter() > until:
            break
        for kind, call in kinds.items():
            seconds = yield from _timed(call, calls, hold)
            if seconds > _PLAIN:
                found[kind].append(seconds / calls)
                continue
            # What a submission and the wait for it cost is in both; on a busy processor it drowns in the
            # noise.
            long = yield from _timed(call, 3 * calls, hold)
            found[kind].append((long - seconds) / (2 * calls) if long > 2 * seconds else long / (3 * calls))
    return {kind: statistics.median(times) for kind, times in found.items()}


def seconds_of(call: Callable[[], Any], hold: bool = False) -> Steps:
    """Steps that measure the device's time for one call; they return seconds.

    Args:
        call: what is measured.
        hold: keep what the calls of a batch return until they are done, so that none waits for the memory of
            another.
    """
    yield from _timed(call, 1, hold)
    yield from _busy(call, _WARM_AGAIN)
    calls, _ = yield from _enough(call)
    return (yield from _in_turns({None: call}, calls, hold))[None]


def compare(contest: Contest, until: float) -> Steps:
    """Steps that measure kernels; they return kernel -> seconds, without those that are wrong or slow.

    Args:
        contest: its first kernel is measured in any case, and makes what the others' results are compared
            with.
        until: no other one is begun after this moment.
    """
    first, *others = contest.kernels
    calls = {kernel: contest.call_of(kernel) for kernel in (first, *others)}
    expected = calls[first]()
    yield from _busy(calls[first], _WARM_AGAIN)
    count, seconds = yield from _enough(calls[first])
    found: dict[Any, float] = {first: seconds}
    far = _FAR * seconds
    for kernel in others:
        call = calls[kernel]
        if time.perf_counter() > until:
            break
        seconds = yield from _better(call, count)
        if seconds > far:
            continue
        error = yield (call() - expected).abs().max() / expected.abs().max()
        if error is None or not error <= contest.close:
            continue
        found[kernel] = seconds
        far = min(far, _FAR * seconds)
    near = sorted((k for k in found if found[k] <= far), key=lambda k: found[k])[:_MOST_MEASURED]
    if near[0] is not first:  # a faster one needs more calls
        count, _ = yield from _enough(calls[near[0]])
    return (yield from _in_turns({k: calls[k] for k in dict.fromkeys((first, *near))}, count))


class TuneProgress(NamedTuple):
    """State of `pellucid.webgpu.tune`, as ``on_progress`` gets it.

    Attributes:
        done: products and convolutions that are measured.
        total: those to measure.
        name: of the one that was measured last.
        measured: what was found for it.
    """

    done: int
    total: int
    name: str
    measured: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.done} of {self.total}: {self.name}: {', '.join(map(str, self.measured.values()))}"


class Measurements(dict[str, dict[str, Any]]):
    """What `pellucid.webgpu.tune` found, by product.

    Attributes:
        kept: where it was written down; empty if it was not.
    """

    kept: str = ""

    @property
    def variants(self) -> dict[str, str]:
        """The fastest variant of each product."""
        return {name: measured["variant"] for name, measured in self.items()}


def _teraflops(flops: int, seconds: float) -> float:
    return float(f"{flops / seconds / 1e12:.4g}")


def steps(
    products: Iterable[tuple[str, Iterable[int]]] | None,
    dtype: DType,
    seconds: float,
    on_progress: Callable[[TuneProgress], None] | None,
    results: Measurements,
) -> Steps:
    """The steps of `pellucid.webgpu.tune`: each product is used and among the results when it is measured."""
    info = stream().open().info
    asked = [contest_of(product, dtype) for product in (USUAL if products is None else products)]
    until = time.perf_counter() + seconds
    with fusion(False):  # which would plan the batches
        yield from warm_up()
        for done, contest_asked in enumerate(asked, 1):
            if results and time.perf_counter() > until:
                break
            contest = contest_asked()
            found = yield from compare(contest, until)
            usual, best = next(iter(found)), min(found, key=lambda kernel: found[kernel])
            results[contest.name] = {
                "variant": str(best),
                "TFLOP/s": _teraflops(contest.flops, found[best]),
                "untuned": str(usual),
                "untuned TFLOP/s": _teraflops(contest.flops, found[usual]),
            }
            tuned.use(info, {contest.name: str(best)})
            forget_plans()
            if on_progress is not None:
                on_progress(TuneProgress(done, len(asked), contest.name, results[contest.name]))
