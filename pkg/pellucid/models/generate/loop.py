"""The loop of generation: a step at a time, each with one small read, the next one running ahead of it."""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from typing import Any

import numpy as np

from ...device.stream import stream as device_stream
from ...errors import DimensionError, ShapeError
from ...nn.hooks import Tap
from ...nn.kept import Kept, Late
from ...nn.modules import module as modules
from ...ops.shape.joining import cat
from ...tensors.construct import tensor
from ...tensors.reading import ListRead
from ...tensors.tensor import Tensor
from .choice import Choice
from .config import GenerationConfig
from .step import step_of


def room(model: Any, ids: Tensor, config: GenerationConfig, cache: Any) -> Any:
    """The cache to write into: the one given, if what is asked for fits, or a new one."""
    batch, length = ids.shape
    positions = model.config.max_position_embeddings
    begun = cache.length if cache is not None else 0
    # The last id is chosen and never fed back.
    end = begun + length + config.max_new_tokens - 1
    if end > positions:
        raise DimensionError(
            f"generate: {begun + length} positions and {config.max_new_tokens} more are over the model's "
            f"{positions}. Shorten the prompt or max_new_tokens."
        )
    decoder = getattr(model, "decoder", None)
    for name in filter(None, {*getattr(decoder, "turnings", ())}) if begun else ():
        # Of what is there, the ids are not known.
        getattr(decoder, name).check_growth(begun + length, end)
    if cache is None:
        return model.new_cache(batch, min(positions, rounded(end + 1)))
    if end > cache.capacity:
        raise DimensionError(
            f"generate: {begun + length} positions and {config.max_new_tokens} more are over the cache's "
            f"{cache.capacity}. Make one with model.new_cache(batch, capacity), or lower max_new_tokens."
        )
    if cache.batch != batch:
        raise ShapeError(f"generate: {batch} sequences do not fit a cache of {cache.batch}.")
    return cache


def rounded(length: int) -> int:
    """Capacities in steps, so that runs of similar length share their plans."""
    return -(-length // 256) * 256


class _Watch:
    """Who looks into the model.

    Hooks that run Python must not see a step that may turn out not to be needed. Taps only keep values: those
    of the step that runs ahead are held back until it counts.
    """

    def __init__(self, model: Any):
        self._model = model
        self._seen_at = (-1, -1)
        self._watched = False
        self._beginning: list[Tap] = []
        # What taps keep values in, and under which names.
        self._kept: list[tuple[Kept, set[str]]] = []

    def __call__(self) -> bool:
        """Whether there are hooks that run Python."""
        if self._seen_at != (modules.version, modules.looks):
            self._seen_at = modules.version, modules.looks
            functions = [h.function for m in self._model.modules() for h in m._hooks.values()]
            taps = [f for f in functions if isinstance(f, Tap)]
            self._watched = len(taps) < len(functions)
            self._beginning = [t for t in taps if "begin" in vars(t) or type(t).begin is not Tap.begin]
            kept = {id(t.seen): (t.seen, set[str]()) for t in taps}
            for tap in taps:
                kept[id(tap.seen)][1].add(tap.path)
            self._kept = list(kept.values())
        return self._watched

    def shown(self) -> list[Late | dict[str, Any]]:
        """What taps keep, in the order of the run."""
        # As it is: what looks at a longer memory is cut to size when somebody reads it.
        return [seen.now(names) for seen, names in self._kept]

    def begin(self) -> None:
        """Let reads of this step begin before the next one runs ahead of them."""
        for tap in self._beginning:
            tap.begin()

    def show(self, values: list[Late | dict[str, Any]]) -> None:
        """Have taps keep these values and no others."""
        for (seen, names), shown in zip(self._kept, values, strict=True):
            seen.put(names, shown)


def steps(
    model: Any, ids: Tensor, config: GenerationConfig, cache: Any = None
) -> Generator[ListRead, list[int], None]:
    """The loop itself: gives the ids (batch,) of each step as a read under way, takes their values back.

    Whoever drives it decides how values are waited for. On webgpu the next step is submitted before, with the
    ids still on the device, so that it runs while they travel; when a sequence stops, that step was in vain.
    However the loop ends, the cache holds the prompt and all ids but the last one given, or nothing where it
    ends while a text is run again.
    """
    begun = 0 if cache is None else cache.length
    cache = room(model, ids, config, cache)
    batch, length = ids.shape
    choice = Choice(config, ids, rounded(length + config.max_new_tokens))
    stops = frozenset(config.stops)
    stopped = [False] * batch
    watched = _Watch(model)
    step = step_of(model)
    kept, original = begun, getattr(model, "original_positions", None)
    said = array("q")  # ids until then, those of a step one behind another

    def follow(chosen: Tensor) -> Tensor:
        """The logits behind ids that were chosen."""
        nonlocal kept
        if cache.length != original:
            return step.logits(chosen.unsqueeze(1), cache)
        # All positions turn otherwise from here on: the text is run again, once.
        kept = 0
        cache.crop(0)
        rows = np.array(said, np.int64).reshape(-1, batch).T
        return step.logits(cat([ids, tensor(rows, dtype=ids.dtype, device=ids.device)], 1), cache)

    try:
        logits = step.logits(ids, cache)
        for count in range(config.max_new_tokens):
            chosen = step.ids(*choice.inputs(logits, count))
            read = chosen.tolist_later()
            last = count + 1 == config.max_new_tokens
            logits = ahead = None
            version = modules.version, modules.looks
            is_ahead = chosen.device.type == "webgpu" and not last and cache.length != original
            if is_ahead and not watched():
                now = watched.shown()
                watched.begin()
                logits = follow(chosen)
                device_stream().flush()
                ahead = watched.shown()
                watched.show(now)
                del now
            kept = begun + length + count
            values = yield read
            if original is not None and kept <= original:
                said.extend(values)
            stopped = [s or v in stops for s, v in zip(stopped, values, strict=True)]
            if last or all(stopped):
                return
            if logits is not None and version != (modules.version, modules.looks):
                # The model was changed, or is looked into, since: that step counts for nothing.
                cache.crop(kept)
                logits = None
            if logits is None:
                logits = follow(chosen)
            elif ahead:
                watched.show(ahead)
    finally:
        cache.crop(min(kept, cache.length))


def each(loop: Generator[ListRead, list[int], None]) -> Generator[list[int], None, None]:
    """The ids of each step as numbers: drives the loop, waiting for every read."""
    with closing(loop):
        read = next(loop)
        while True:
            values = read.result()
            yield values
            try:
                read = loop.send(values)
            except StopIteration:
                return


async def each_async(loop: Generator[ListRead, list[int], None]) -> AsyncGenerator[list[int], None]:
    """The awaitable twin of `each`."""
    with closing(loop):
        read = next(loop)
        while True:
            values = await read.result_async()
            yield values
            try:
                read = loop.send(values)
            except StopIteration:
                return
