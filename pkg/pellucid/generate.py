"""Text from a language model: greedy or sampled, one small read per token, with or without blocking."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from typing import Any

from .autograd import no_grad
from .device.stream import stream as device_stream
from .errors import DimensionError, ShapeError
from .nn import module as modules
from .ops.comparison import where
from .ops.creation import arange, zeros
from .ops.extremum import argmax
from .ops.movement import cat
from .ops.random import rand
from .ops.sampling import repetition_penalty, sample
from .random import Generator as RandomGenerator
from .tensor import ListRead, Tensor, tensor

# Added to the logits of ids that must not come; finite, as WGSL knows no infinity.
_BANNED = -1e30


@dataclass(frozen=True)
class GenerationConfig:
    """How to continue a sequence. Names and defaults are those of transformers.

    Args:
        max_new_tokens: how many ids at most.
        min_new_tokens: as many ids come before one that stops may be chosen.
        do_sample: draw by chance; without it the most likely id is taken.
        temperature, top_k, top_p: of the draw; see `pellucid.ops.sampling.sample`.
        repetition_penalty: above 1 makes ids that have appeared less likely.
        eos_token_id: id or ids that stop a sequence; the model's own if None, none if ().
        pad_token_id: what follows in a sequence that stopped before the others; the first stop id if None.
        seed: of the draw; the default generator goes on if None.
        generator: a generator of one's own instead of a seed.
    """

    max_new_tokens: int = 20
    min_new_tokens: int = 0
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    eos_token_id: int | tuple[int, ...] | list[int] | None = None
    pad_token_id: int | None = None
    seed: int | None = None
    generator: RandomGenerator | None = None

    @property
    def stops(self) -> tuple[int, ...]:
        """The ids that stop a sequence."""
        e = self.eos_token_id
        return () if e is None else (e,) if isinstance(e, int) else tuple(e)

    @property
    def padding(self) -> int:
        """The id that follows in a sequence that has stopped."""
        return self.pad_token_id if self.pad_token_id is not None else next(iter(self.stops), 0)


def _settings(model: Any, given: dict[str, Any]) -> GenerationConfig:
    own = getattr(model, "generation_config", None) or GenerationConfig()
    config = given.pop("generation_config", None) or own
    if "max_length" in given:
        raise TypeError("generate: max_length counts the prompt too and is not taken. Give max_new_tokens.")
    try:
        config = replace(config, **given)
    except TypeError:
        known = set(GenerationConfig.__dataclass_fields__)
        raise TypeError(
            f"generate: there are no settings {sorted(set(given) - known)}. There are {sorted(known)}."
        ) from None
    if config.eos_token_id is None:
        config = replace(config, eos_token_id=own.eos_token_id)
    if config.pad_token_id is None:
        config = replace(config, pad_token_id=own.pad_token_id)
    if config.max_new_tokens < 1:
        raise ValueError(f"generate: max_new_tokens must be at least 1, not {config.max_new_tokens}.")
    if config.repetition_penalty <= 0:
        raise ValueError(f"generate: repetition_penalty must be above 0, not {config.repetition_penalty}.")
    if config.do_sample and config.temperature <= 0:
        raise ValueError(
            f"generate: temperature must be above 0, not {config.temperature}. Leave do_sample out for "
            "greedy choice."
        )
    return config


def _prompt(model: Any, ids: Any) -> Tensor:
    if isinstance(ids, dict) or hasattr(ids, "keys"):
        ids = ids["input_ids"]
    if not isinstance(ids, Tensor):
        ids = tensor(ids, device=model.device)
    if ids.ndim == 1:
        ids = ids.unsqueeze(0)
    if ids.ndim != 2 or not ids.shape[1]:
        raise ShapeError(
            f"generate: ids of shape {tuple(ids.shape)} must be (batch, time) with at least one position."
        )
    return ids.to(model.device)


def _room(model: Any, ids: Tensor, config: GenerationConfig, cache: Any) -> Any:
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
    if cache is None:
        return model.new_cache(batch, min(positions, _rounded(end + 1)))
    if end > cache.capacity:
        raise DimensionError(
            f"generate: {begun + length} positions and {config.max_new_tokens} more are over the cache's "
            f"{cache.capacity}. Make one with model.new_cache(batch, capacity), or lower max_new_tokens."
        )
    if cache.keys[0].shape[0] != batch:
        raise ShapeError(f"generate: {batch} sequences do not fit a cache of {cache.keys[0].shape[0]}.")
    return cache


def _rounded(length: int) -> int:
    """Capacities in steps, so that runs of similar length share their plans."""
    return -(-length // 256) * 256


class _Choice:
    """Picks the next ids from logits, knowing those before."""

    def __init__(self, config: GenerationConfig, ids: Tensor):
        self._config = config
        self._chance = config.generator
        if config.seed is not None and self._chance is None:
            self._chance = RandomGenerator().manual_seed(config.seed)
        batch, length = ids.shape
        self._seen = None
        if config.repetition_penalty != 1.0:
            # Room for all ids, filled up with one that is in it anyway, so that its shape stays.
            room = ids[:, :1].expand(batch, config.max_new_tokens)
            self._seen = cat([ids, room], 1)
            self._columns = arange(length + config.max_new_tokens, device=ids.device)
        self._length = length
        self._ban: Tensor | None = None

    def __call__(self, logits: Tensor, count: int) -> Tensor:
        """The id of every row: (batch, vocab) to (batch,), where ``count`` ids have been chosen before."""
        config = self._config
        logits = logits.float()
        if self._seen is not None:
            logits = repetition_penalty(logits, self._seen, config.repetition_penalty)
        if count < config.min_new_tokens and config.stops:
            if self._ban is None:
                self._ban = _ban(config.stops, logits)
            logits = logits + self._ban
        if config.do_sample:
            uniforms = rand(logits.shape[0], device=logits.device, generator=self._chance)
            chosen = sample(
                logits, uniforms, temperature=config.temperature, top_k=config.top_k, top_p=config.top_p
            )
        else:
            chosen = argmax(logits, -1)
        if self._seen is not None:
            # The column is a number of the launch: unlike a slice it is no part of any plan.
            self._seen = where(self._columns == self._length + count, chosen.unsqueeze(1), self._seen)
        return chosen


def _ban(stops: tuple[int, ...], logits: Tensor) -> Tensor:
    ban = zeros(logits.shape[-1], device=logits.device)
    ban[[s for s in stops if s < logits.shape[-1]]] = _BANNED
    return ban


class _Watch:
    """Whether somebody looks into the model: then nothing is computed that may turn out not to be needed."""

    def __init__(self, model: Any):
        self._model = model
        self._version = -1
        self._watched = False

    def __call__(self) -> bool:
        if self._version != modules.version:
            self._version = modules.version
            self._watched = any(m._hooks for m in self._model.modules())
        return self._watched


def steps(
    model: Any, ids: Tensor, config: GenerationConfig, cache: Any = None
) -> Generator[ListRead, list[int], None]:
    """The loop itself: gives the ids (batch,) of each step as a read under way, takes their values back.

    Whoever drives it decides how values are waited for. On webgpu the next step is submitted before, with the
    ids still on the device, so that it runs while they travel; when a sequence stops, that step was in vain.
    However the loop ends, the cache holds the prompt and all ids but the last one given.
    """
    begun = 0 if cache is None else cache.length
    cache = _room(model, ids, config, cache)
    batch, length = ids.shape
    choose = _Choice(config, ids)
    stops = frozenset(config.stops)
    stopped = [False] * batch
    watched = _Watch(model)
    kept = begun

    def forward(new: Tensor) -> Tensor:
        with no_grad():
            return model(new, past_key_values=cache, logits_to_keep=1).logits[:, -1]

    try:
        logits = forward(ids)
        for count in range(config.max_new_tokens):
            with no_grad():
                chosen = choose(logits, count)
            read = chosen.tolist_later()
            last = count + 1 == config.max_new_tokens
            logits = None
            version = modules.version
            if chosen.device.type == "webgpu" and not last and not watched():
                logits = forward(chosen.unsqueeze(1))
                device_stream().flush()
            kept = begun + length + count
            values = yield read
            stopped = [s or v in stops for s, v in zip(stopped, values, strict=True)]
            if last or all(stopped):
                return
            if logits is not None and version != modules.version:
                # The model was changed, or is looked into, since: that step counts for nothing.
                cache.crop(kept)
                logits = None
            if logits is None:
                logits = forward(chosen.unsqueeze(1))
    finally:
        cache.crop(min(kept, cache.length))


def _values(loop: Generator[ListRead, list[int], None]) -> Generator[list[int], None, None]:
    """Drive the loop, waiting for each read."""
    with closing(loop):
        read = next(loop)
        while True:
            values = read.result()
            yield values
            try:
                read = loop.send(values)
            except StopIteration:
                return


async def _values_async(loop: Generator[ListRead, list[int], None]) -> AsyncGenerator[list[int], None]:
    with closing(loop):
        read = next(loop)
        while True:
            values = await read.result_async()
            yield values
            try:
                read = loop.send(values)
            except StopIteration:
                return


class _Collected:
    """The ids of all sequences, padded where one stopped before the others."""

    def __init__(self, config: GenerationConfig, batch: int):
        self.columns: list[list[int]] = []
        self._done = [False] * batch
        self._stops = frozenset(config.stops)
        self._pad = config.padding

    def add(self, values: list[int]) -> list[int]:
        shown = [self._pad if d else v for d, v in zip(self._done, values, strict=True)]
        self.columns.append(shown)
        self._done = [d or v in self._stops for d, v in zip(self._done, values, strict=True)]
        return shown

    def after(self, prompt: Tensor) -> Tensor:
        rows = [list(row) for row in zip(*self.columns, strict=True)]
        return cat([prompt, tensor(rows, dtype=prompt.dtype, device=prompt.device)], 1)


def generate(
    model: Any, input_ids: Any, *, streamer: Any = None, past_key_values: Any = None, **settings: Any
) -> Tensor:
    """Continue sequences of ids.

    Args:
        model: a causal language model.
        input_ids: (batch, time) or (time,) ids, a list of them, or what a tokenizer returns. Sequences have
            one length.
        streamer: an object with ``put(ids)`` and ``end()``, such as `pellucid.text.TextStreamer`, which is
            given the prompt and then ids as they come.
        past_key_values: a cache that the ids continue; afterwards it holds all ids but the last new one. The
            repetition penalty counts only ``input_ids`` and what follows.
        settings: those of `GenerationConfig`, or ``generation_config=`` as a whole.

    Returns:
        Ids with the prompt: (batch, time + new).

    Raises:
        DimensionError: the model or the cache has not as many positions.
        IndexOutOfRange: an id of the prompt is not in the vocabulary.
        ShapeError: ids are not a matrix.
        TypeError: there is no such setting.
        ValueError: a setting is out of range.

    Source: https://huggingface.co/docs/transformers/main_classes/text_generation

    Example:
        >>> import pellucid as torch
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
        ...     model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=4).shape
        Size([1, 7])
    """
    config, prompt = _settings(model, settings), _prompt(model, input_ids)
    collected = _Collected(config, prompt.shape[0])
    if streamer is not None:
        streamer.put(prompt.tolist())
    for values in _values(steps(model, prompt, config, past_key_values)):
        shown = collected.add(values)
        if streamer is not None:
            streamer.put(shown)
    if streamer is not None:
        streamer.end()
    return collected.after(prompt)


async def generate_async(
    model: Any, input_ids: Any, *, streamer: Any = None, past_key_values: Any = None, **settings: Any
) -> Tensor:
    """The awaitable twin of `generate`, for places where Python cannot block."""
    config, prompt = _settings(model, settings), _prompt(model, input_ids)
    collected = _Collected(config, prompt.shape[0])
    if streamer is not None:
        streamer.put(await prompt.tolist_async())
    async for values in _values_async(steps(model, prompt, config, past_key_values)):
        shown = collected.add(values)
        if streamer is not None:
            streamer.put(shown)
    if streamer is not None:
        streamer.end()
    return collected.after(prompt)


def stream(model: Any, input_ids: Any, *, past_key_values: Any = None, **settings: Any) -> Iterator[int]:
    """The new ids of one sequence, one by one as they come. Stop by leaving the loop.

    Args:
        model, input_ids, past_key_values, settings: as in `generate`, for one sequence.

    Raises:
        ShapeError: several sequences.
    """
    config, prompt = _settings(model, settings), _single(model, input_ids)
    with closing(_values(steps(model, prompt, config, past_key_values))) as found:
        for values in found:
            yield values[0]


async def stream_async(
    model: Any, input_ids: Any, *, past_key_values: Any = None, **settings: Any
) -> AsyncIterator[int]:
    """The asynchronous twin of `stream`."""
    config, prompt = _settings(model, settings), _single(model, input_ids)
    async with aclosing(_values_async(steps(model, prompt, config, past_key_values))) as found:
        async for values in found:
            yield values[0]


def _single(model: Any, input_ids: Any) -> Tensor:
    prompt = _prompt(model, input_ids)
    if prompt.shape[0] != 1:
        raise ShapeError(f"stream: takes one sequence, not {prompt.shape[0]}. Use generate for several.")
    return prompt


__all__ = ["GenerationConfig", "generate", "generate_async", "steps", "stream", "stream_async"]
