"""Measures on request which kernel makes products of a shape the fastest on this device.

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
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from . import tuned
from .device.stream import MAX_WINDOW_WORDS, stream
from .dtypes import DType, float32
from .errors import ShapeError
from .fusion import fusion
from .op import forget_plans
from .ops.matmul import dense_matmul
from .ops.matmul_choice import candidates, forced, key
from .ops.matmul_variants import Shape, Variant
from .ops.random import randn
from .variants import is_direct

if TYPE_CHECKING:
    from .tensor import Tensor

# Squares, and products of a linear layer: rows are tokens, the weight lies as (columns, depth).
USUAL = (
    ("nn", (1, 512, 512, 512)),
    ("nn", (1, 1024, 1024, 1024)),
    ("nn", (1, 2048, 2048, 2048)),
    ("nn", (1, 4096, 4096, 4096)),
    ("nt", (1, 32, 4096, 4096)),
    ("nt", (1, 128, 4096, 4096)),
    ("nt", (1, 512, 4096, 4096)),
    ("nt", (1, 512, 1536, 576)),
    ("nt", (1, 512, 576, 1536)),
    ("nt", (1, 1, 4096, 4096)),
)
LAYOUTS = ("nn", "nt", "tn", "tt")
# A batch of calls takes this long at least; so many are recorded at most, and their threefold fits a window.
_BATCH_SECONDS, _MOST_CALLS = 2e-3, 224
# Pairs of lengths; fewer once they took so many seconds.
_PAIRS, _FEWEST_PAIRS, _LONG = 7, 3, 1.0
# Of a batch that takes so many seconds the wait for it is no part that counts.
_PLAIN = 0.05
# Seconds of work until a GPU's clocks are up: before a list of measurements, and before each of them.
_WARM_UP, _WARM_AGAIN = 0.5, 0.05
# How many tiles are tried for a shape, and how many cuts of the depth of one tile.
_MOST_TILES, _MOST_CUTS = 8, 2
# How much slower than the best so far a kernel may be that is measured on, and how many are.
_FAR, _MOST_MEASURED = 1.5, 4
# By how much results may differ, of their largest element.
_CLOSE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}

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


def shape_of(layout: str, sizes: tuple[int, ...]) -> Shape:
    """The shape that sizes (rows, columns, depth), with a batch before them or not, and a layout describe.

    Raises:
        ShapeError: they describe none.
    """
    whole = (1, *sizes) if len(sizes) == 3 else sizes
    if layout not in LAYOUTS or len(whole) != 4 or min(whole) < 1:
        raise ShapeError(
            f"tune: layout {layout!r} with sizes {sizes} is no product. Give one of {LAYOUTS} and positive "
            "(rows, columns, depth) or (batch, rows, columns, depth)."
        )
    return Shape(*whole, layout[0] == "n", layout[1] == "t")


def operands(shape: Shape, dtype: DType) -> tuple[Tensor, Tensor]:
    """Random matrices of a shape: what is multiplied changes how fast a device may run."""

    def made(rows: int, columns: int, by_row: bool) -> Tensor:
        sizes = (rows, columns) if by_row else (columns, rows)
        x = randn(*((shape.batch, *sizes) if shape.batch > 1 else sizes), device="webgpu").to(dtype)
        return x if by_row else x.transpose(-2, -1)

    return (
        made(shape.rows, shape.depth, shape.a_depth_first),
        made(shape.depth, shape.columns, not shape.b_depth_first),
    )


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
    yield from _busy(partial(dense_matmul.op.plan((a, b)), a, b), _WARM_UP)


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


def shortlist(shape: Shape) -> list[Variant]:
    """The candidates that are worth a measurement, the one that would be used without it first."""
    if is_direct():
        return [Variant("direct")]
    found: list[Variant] = []
    for variant in candidates(shape, stream().open().info):
        cuts = sum(v.tile == variant.tile and v.file == variant.file for v in found)
        if cuts < _MOST_CUTS and len({v.tile for v in found} | {variant.tile}) <= _MOST_TILES:
            found.append(variant)
    return found


@contextmanager
def _compiling_later() -> Iterator[None]:
    """Within it a GPU's kernels are compiled beside each other, and nobody waits for them."""
    host: Any = stream().open()
    if host.info.is_software:
        yield
        return
    host.pipeline = host.pipeline_later
    try:
        yield
    finally:
        del host.pipeline


def compare(shape: Shape, dtype: DType, variants: Iterable[Variant], until: float) -> Steps:
    """Steps that measure variants; they return variant -> seconds, without those that are wrong or slow.

    Args:
        shape: of the product.
        dtype: of its operands.
        variants: the first one is measured in any case, and its result is what the others are compared with.
        until: no other one is begun after this moment.
    """
    a, b = operands(shape, dtype)
    first, *others = variants

    def call_of(variant: Variant) -> Callable[[], Tensor]:
        with forced(variant):
            return partial(dense_matmul.op.plan((a, b)), a, b)

    with _compiling_later():
        later = {variant: call_of(variant) for variant in others}
    calls = {first: call_of(first), **later}
    expected = calls[first]()
    yield from _busy(calls[first], _WARM_AGAIN)
    count, seconds = yield from _enough(calls[first])
    found: dict[Variant, float] = {first: seconds}
    far = _FAR * seconds
    for variant, call in later.items():
        if time.perf_counter() > until:
            break
        seconds = yield from _better(call, count)
        if seconds > far:
            continue
        error = yield (call() - expected).abs().max() / expected.abs().max()
        if error is None or not error <= _CLOSE[dtype.name]:
            continue
        found[variant] = seconds
        far = min(far, _FAR * seconds)
    near = sorted((v for v in found if found[v] <= far), key=lambda v: found[v])[:_MOST_MEASURED]
    if near[0] is not first:  # a faster one needs more calls
        count, _ = yield from _enough(calls[near[0]])
    return (yield from _in_turns({v: calls[v] for v in dict.fromkeys((first, *near))}, count))


class Progress(NamedTuple):
    """State of `pellucid.webgpu.tune`, as ``on_progress`` gets it.

    Attributes:
        done: products that are measured.
        total: products to measure.
        name: of the product that was measured last.
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


def _teraflops(shape: Shape, seconds: float) -> float:
    return float(f"{shape.flops / seconds / 1e12:.4g}")


def steps(
    products: Iterable[tuple[str, tuple[int, ...]]] | None,
    dtype: DType,
    seconds: float,
    on_progress: Callable[[Progress], None] | None,
    results: Measurements,
) -> Steps:
    """The steps of `pellucid.webgpu.tune`: each product is used and among the results when it is measured."""
    info = stream().open().info
    shapes = [shape_of(layout, tuple(sizes)) for layout, sizes in (USUAL if products is None else products)]
    until = time.perf_counter() + seconds
    with fusion(False):  # which would plan the batches
        yield from warm_up()
        for done, shape in enumerate(shapes, 1):
            if results and time.perf_counter() > until:
                break
            found = yield from compare(shape, dtype, shortlist(shape), until)
            usual, best = next(iter(found)), min(found, key=lambda variant: found[variant])
            name = key(shape, dtype.name)
            results[name] = {
                "variant": str(best),
                "TFLOP/s": _teraflops(shape, found[best]),
                "untuned": str(usual),
                "untuned TFLOP/s": _teraflops(shape, found[usual]),
            }
            tuned.use(info, {name: str(best)})
            forget_plans()
            if on_progress is not None:
                on_progress(Progress(done, len(shapes), name, results[name]))
