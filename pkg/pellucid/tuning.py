"""Measures on request which kernel makes products of a shape the fastest on this device.

Every candidate gives the same result but for the order of additions; one whose result is not that of the
others is left out. Times are those of the device: calls are recorded, then submitted together, until they
take long enough for a clock that is coarse, and the time of two lengths is subtracted; the median of several
such pairs counts, after the device has been at work for a while.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from . import tuned
from .device.stream import MAX_WINDOW_WORDS, stream
from .dtypes import DType, float32
from .errors import ShapeError
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
# Seconds of work until a GPU's clocks are up: before a list of measurements, and before each of them.
_WARM_UP, _WARM_AGAIN = 0.5, 0.05
# How many tiles are tried for a shape, and how many cuts of the depth of one tile.
_MOST_TILES, _MOST_CUTS = 8, 2
# By how much results may differ, of their largest element.
_CLOSE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}

# What steps ask for: None, that everything submitted is done; a tensor, its value.
Steps = Generator["Tensor | None", "float | None", Any]


def run(steps: Steps) -> Any:
    """Take steps, waiting for what they ask for; their result."""
    answer = None
    while True:
        try:
            asked = steps.send(answer)
        except StopIteration as end:
            return end.value
        answer = stream().synchronize() if asked is None else asked.item()


async def run_async(steps: Steps) -> Any:
    """The awaitable twin of `run`."""
    answer = None
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
    """Steps that keep a GPU at work for so long: one that had nothing to do begins slowly."""
    if stream().open().info.is_software:
        return
    calls, until = 1, time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        for _ in range(calls):
            call()
        yield None
        if time.perf_counter() - began < _BATCH_SECONDS and calls < _MOST_CALLS:
            calls = min(2 * calls, _MOST_CALLS)


def warm_up() -> Steps:
    """Steps that bring the clocks of a GPU up, before a list of measurements."""
    a, b = operands(Shape(1, 1024, 1024, 1024, True, False), float32)
    yield from _busy(partial(dense_matmul.op.plan((a, b)), a, b), _WARM_UP)


def seconds_of(call: Callable[[], Any], hold: bool = False) -> Steps:
    """Steps that measure the device's time for one call; they return seconds.

    Args:
        call: what is measured.
        hold: keep what the calls of a batch return until they are done, so that none waits for the memory of
            another.
    """

    def timed(calls: int) -> Steps:
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

    calls = 1
    yield from timed(1)
    yield from _busy(call, _WARM_AGAIN)
    while calls < _MOST_CALLS:
        # The better of two: one that was held up says nothing.
        if min((yield from timed(calls)), (yield from timed(calls))) >= 2 * _BATCH_SECONDS:
            break
        calls = min(2 * calls, _MOST_CALLS)
    found: list[float] = []
    until = time.perf_counter() + _LONG
    while len(found) < (_PAIRS if time.perf_counter() < until else _FEWEST_PAIRS):
        short = yield from timed(calls)
        long = yield from timed(3 * calls)
        # What a submission and the wait for it cost is in both; on a busy processor it drowns in the noise.
        found.append((long - short) / (2 * calls) if long > 2 * short else long / (3 * calls))
    return statistics.median(found)


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


def compare(shape: Shape, dtype: DType, variants: Iterable[Variant], until: float) -> Steps:
    """Steps that measure variants; they return variant -> seconds, without those that are wrong.

    Args:
        shape: of the product.
        dtype: of its operands.
        variants: the first one's result is what the others are compared with.
        until: no variant but the first is begun after this moment.
    """
    a, b = operands(shape, dtype)
    expected: Tensor | None = None
    found: dict[Variant, float] = {}
    for variant in variants:
        if found and time.perf_counter() > until:
            break
        with forced(variant):
            plan = dense_matmul.op.plan((a, b))
        if expected is None:
            expected = plan(a, b)
        else:
            error = yield (plan(a, b) - expected).abs().max() / expected.abs().max()
            if error is None or not error <= _CLOSE[dtype.name]:
                continue
        found[variant] = yield from seconds_of(partial(plan, a, b))
    return found


def _teraflops(shape: Shape, seconds: float) -> float:
    return float(f"{shape.flops / seconds / 1e12:.4g}")


def steps(
    products: Iterable[tuple[str, tuple[int, ...]]] | None,
    dtype: DType,
    seconds: float,
    keep: bool,
    report: Callable[[str], None] | None,
) -> Steps:
    """The steps of `pellucid.webgpu.tune`."""
    info = stream().open().info
    shapes = [shape_of(layout, tuple(sizes)) for layout, sizes in (USUAL if products is None else products)]
    until = time.perf_counter() + seconds
    yield from warm_up()
    results: dict[str, dict[str, Any]] = {}
    for shape in shapes:
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
        if report is not None:
            report(f"{name}: " + ", ".join(str(value) for value in results[name].values()))
    tuned.record(info, {name: result["variant"] for name, result in results.items()}, keep)
    forget_plans()
    return results
