"""Text from a language model: greedy or sampled, one small read per token, with or without blocking."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .autograd import no_grad
from .errors import DimensionError, ShapeError
from .ops.extremum import argmax
from .ops.movement import cat
from .ops.random import rand
from .ops.sampling import repetition_penalty, sample
from .random import Generator as RandomGenerator
from .tensor import Tensor, tensor


@dataclass(frozen=True)
class GenerationConfig:
    """How to continue a sequence. Names and defaults are those of transformers.

    Args:
        max_new_tokens: how many ids at most.
        min_new_tokens: before as many, a stop id does not stop.
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
    def stops(self) -> frozenset[int]:
        """The ids that stop a sequence."""
        e = self.eos_token_id
        return frozenset() if e is None else frozenset({e} if isinstance(e, int) else e)


def _settings(model: Any, given: dict[str, Any]) -> GenerationConfig:
    config = given.pop("generation_config", None) or getattr(model, "generation_config", None) or GenerationConfig()
    if "max_length" in given:
        raise TypeError("generate: max_length counts the prompt too and is not taken. Give max_new_tokens.")
    try:
        config = replace(config, **given)
    except TypeError:
        known = set(GenerationConfig.__dataclass_fields__)
        raise TypeError(f"generate: there are no settings {sorted(set(given) - known)}. There are {sorted(known)}.") from None
    if config.max_new_tokens < 1:
        raise ValueError(f"generate: max_new_tokens must be at least 1, not {config.max_new_tokens}.")
    if config.do_sample and config.temperature <= 0:
        raise ValueError(f"generate: temperature must be above 0, not {config.temperature}. Leave do_sample out for greedy choice.")
    return config


def _prompt(model: Any, ids: Any) -> Tensor:
    if isinstance(ids, dict) or hasattr(ids, "keys"):
        ids = ids["input_ids"]
    if not isinstance(ids, Tensor):
        ids = tensor(ids, device=model.device)
    if ids.ndim == 1:
        ids = ids.unsqueeze(0)
    if ids.ndim != 2 or not ids.shape[1]:
        raise ShapeError(f"generate: ids of shape {tuple(ids.shape)} must be (batch, time) with at least one position.")
    return ids.to(model.device)


def steps(model: Any, ids: Tensor, config: GenerationConfig, cache: Any = None) -> Generator[Tensor, list[int], None]:
    """The loop itself: gives the ids (batch,) of each step as a tensor, takes their values back.

    Whoever drives it decides how values are read (blocking, awaited).
    """
    batch, length = ids.shape
    positions = model.config.max_position_embeddings
    begun = cache.length if cache is not None else 0
    end = begun + length + config.max_new_tokens
    if end - 1 > positions:
        raise DimensionError(
            f"generate: {begun + length} positions and {config.max_new_tokens} more are over the model's {positions}. Shorten the prompt or max_new_tokens."
        )
    if cache is None:
        cache = model.new_cache(batch, min(positions, _rounded(end)))
    chance = config.generator or (RandomGenerator().manual_seed(config.seed) if config.seed is not None else None)
    seen = None
    if config.repetition_penalty != 1.0:
        # Room for all ids, filled up with one that is in it anyway, so that its shape stays.
        seen = cat([ids, ids[:, :1].expand(batch, config.max_new_tokens)], 1)
    stopped = [False] * batch
    stops = config.stops
    step = ids
    for count in range(config.max_new_tokens):
        with no_grad():
            logits = model(step, past_key_values=cache, logits_to_keep=1).logits[:, -1]
            chosen = _choose(logits, config, seen, chance)
            if seen is not None:
                seen[:, length + count] = chosen
        values = yield chosen
        if count + 1 >= config.min_new_tokens:
            stopped = [s or v in stops for s, v in zip(stopped, values, strict=True)]
        if all(stopped):
            return
        step = chosen.unsqueeze(1)


def _rounded(length: int) -> int:
    """Capacities in steps, so that runs of similar length share their plans."""
    return -(-length // 256) * 256


def _choose(logits: Tensor, config: GenerationConfig, seen: Tensor | None, chance: RandomGenerator | None) -> Tensor:
    logits = logits.float()
    if not config.do_sample:
        if seen is not None:
            logits = repetition_penalty(logits, seen, config.repetition_penalty)
        return argmax(logits, -1)
    uniforms = rand(logits.shape[0], device=logits.device, generator=chance)
    return sample(
        logits,
        uniforms,
        temperature=config.temperature,
        top_k=config.top_k,
        top_p=config.top_p,
        seen=seen,
        penalty=config.repetition_penalty,
    )


class _Collected:
    """The ids of all sequences, padded where one stopped before the others."""

    def __init__(self, config: GenerationConfig, batch: int):
        self.columns: list[list[int]] = []
        self._done = [False] * batch
        self._config = config
        self._pad = config.pad_token_id if config.pad_token_id is not None else min(config.stops, default=0)

    def add(self, values: list[int]) -> list[int]:
        shown = [self._pad if d else v for d, v in zip(self._done, values, strict=True)]
        self.columns.append(shown)
        if len(self.columns) >= self._config.min_new_tokens:
            self._done = [d or v in self._config.stops for d, v in zip(self._done, values, strict=True)]
        return shown

    def after(self, prompt: Tensor) -> Tensor:
        new = tensor([list(row) for row in zip(*self.columns, strict=True)], dtype=prompt.dtype, device=prompt.device)
        return cat([prompt, new], 1)


def generate(model: Any, input_ids: Any, *, streamer: Any = None, past_key_values: Any = None, **settings: Any) -> Tensor:
    """Continue sequences of ids.

    Args:
        model: a causal language model.
        input_ids: (batch, time) or (time,) ids, a list of them, or what a tokenizer returns. Sequences have one length.
        streamer: an object with ``put(ids)`` and ``end()``, such as `pellucid.text.TextStreamer`, which is given ids as they come.
        past_key_values: a cache that the ids continue.
        settings: those of `GenerationConfig`, or ``generation_config=`` as a whole.

    Returns:
        Ids with the prompt: (batch, time + new).

    Raises:
        DimensionError: the model has not as many positions.
        ShapeError: ids are not a matrix.
        TypeError: there is no such setting.

    Source: https://huggingface.co/docs/transformers/main_classes/text_generation

    Example:
        >>> import pellucid as torch
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=16, hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     LlamaForCausalLM(config).generate(torch.tensor([[1, 2, 3]]), max_new_tokens=4).shape
        Size([1, 7])
    """
    config, prompt = _settings(model, settings), _prompt(model, input_ids)
    collected = _Collected(config, prompt.shape[0])
    if streamer is not None:
        streamer.put(prompt)
    loop = steps(model, prompt, config, past_key_values)
    chosen = next(loop)
    while True:
        values = chosen.tolist()
        shown = collected.add(values)
        if streamer is not None:
            streamer.put(shown)
        try:
            chosen = loop.send(values)
        except StopIteration:
            break
    if streamer is not None:
        streamer.end()
    return collected.after(prompt)


async def generate_async(model: Any, input_ids: Any, *, streamer: Any = None, past_key_values: Any = None, **settings: Any) -> Tensor:
    """The awaitable twin of `generate`, for places where Python cannot block."""
    config, prompt = _settings(model, settings), _prompt(model, input_ids)
    collected = _Collected(config, prompt.shape[0])
    if streamer is not None:
        streamer.put(await prompt.tolist_async())
    loop = steps(model, prompt, config, past_key_values)
    chosen = next(loop)
    while True:
        values = await chosen.tolist_async()
        shown = collected.add(values)
        if streamer is not None:
            streamer.put(shown)
        try:
            chosen = loop.send(values)
        except StopIteration:
            break
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
    loop = steps(model, prompt, config, past_key_values)
    chosen = next(loop)
    while True:
        values = chosen.tolist()
        yield values[0]
        try:
            chosen = loop.send(values)
        except StopIteration:
            return


async def stream_async(model: Any, input_ids: Any, *, past_key_values: Any = None, **settings: Any) -> AsyncIterator[int]:
    """The asynchronous twin of `stream`."""
    config, prompt = _settings(model, settings), _single(model, input_ids)
    loop = steps(model, prompt, config, past_key_values)
    chosen = next(loop)
    while True:
        values = await chosen.tolist_async()
        yield values[0]
        try:
            chosen = loop.send(values)
        except StopIteration:
            return


def _single(model: Any, input_ids: Any) -> Tensor:
    prompt = _prompt(model, input_ids)
    if prompt.shape[0] != 1:
        raise ShapeError(f"stream: takes one sequence, not {prompt.shape[0]}. Use generate for several.")
    return prompt


__all__ = ["GenerationConfig", "generate", "generate_async", "steps", "stream", "stream_async"]
