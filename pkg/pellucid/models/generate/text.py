"""Text from a language model: whole or as it comes, with or without blocking."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, closing, nullcontext
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...ops.shape.joining import cat
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from .assisted import assisted_steps, check
from .config import GenerationConfig, settings_of
from .loop import each, each_async, steps


def _prompt(model: Any, ids: Any, mask: Any) -> tuple[Tensor, Any]:
    """Ids as (batch, time) on the model's device, and the mask that came beside or among them."""
    if isinstance(ids, Mapping) or hasattr(ids, "keys"):
        mask = ids["attention_mask"] if mask is None and "attention_mask" in ids else mask
        if "input_ids" not in ids:
            raise ArgumentError("generate: a dictionary must have 'input_ids', as a tokenizer returns it.")
        ids = ids["input_ids"]
    if not isinstance(ids, Tensor):
        ids = tensor(ids, device=model.device)
    if ids.ndim == 1:
        ids = ids.unsqueeze(0)
    if ids.ndim != 2 or not ids.shape[1]:
        raise ShapeError(
            f"generate: ids of shape {tuple(ids.shape)} must be (batch, time) with at least one position."
        )
    return ids.to(model.device), mask


def _refuse_padding(mask: Any) -> None:
    """A mask may come along, as tokenizers give one, but it must hide nothing."""
    hidden = 0 if mask is None else int(np.sum(np.asarray(mask) == 0))
    if hidden:
        raise ShapeError(
            f"generate: the attention_mask hides {hidden} positions, and padded prompts are not continued. "
            "Give prompts of one length together, and others one by one."
        )


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
    model: Any,
    input_ids: Any,
    *,
    attention_mask: Any = None,
    streamer: Any = None,
    past_key_values: Any = None,
    plan: Any = None,
    assistant_model: Any = None,
    num_assistant_tokens: int = 5,
    **settings: Any,
) -> Tensor:
    """Continue sequences of ids.

    Args:
        model: a causal language model.
        input_ids: (batch, time) or (time,) ids, a list of them, or what a tokenizer returns. Sequences have
            one length.
        attention_mask: (batch, time) ones, as tokenizers give them; padding is not taken.
        streamer: an object with ``put(ids)`` and ``end()``, such as `pellucid.text.TextStreamer`, which is
            given the prompt and then ids as they come.
        past_key_values: a cache that the ids continue; afterwards it holds all ids but the last new one. The
            repetition penalty counts only ``input_ids`` and what follows.
        plan: a `pellucid.lens.Plan` of what is changed in every step. To see values too, open
            `pellucid.lens.attach` around the loop over `stream`.
        assistant_model: a smaller model of the same vocabulary that drafts ids, which this one verifies
            (speculative decoding): the same greedy ids in fewer of its steps, of one sequence.
        num_assistant_tokens: ids of a draft.
        settings: those of `GenerationConfig`, or ``generation_config=`` as a whole.

    Returns:
        Ids with the prompt: (batch, time + new).

    Raises:
        ArgumentError: ``assistant_model`` with settings that are not greedy, or a model that cannot go back.
        DimensionError: the model or the cache has not as many positions.
        IndexOutOfRange: an id of the prompt is not in the vocabulary.
        ShapeError: ids are not a matrix, or the mask hides some.
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
    config = settings_of(model, settings)
    prompt, mask = _prompt(model, input_ids, attention_mask)
    _refuse_padding(mask.tolist() if isinstance(mask, Tensor) else mask)
    collected = _Collected(config, prompt.shape[0])
    if streamer is not None:
        streamer.put(prompt.tolist())
    loop = _loop(model, prompt, config, past_key_values, plan, assistant_model, num_assistant_tokens)
    with _following(model, plan):
        for values in _each(loop):
            shown = collected.add(values)
            if streamer is not None:
                streamer.put(shown)
    if streamer is not None:
        streamer.end()
    return collected.after(prompt)


async def generate_async(
    model: Any,
    input_ids: Any,
    *,
    attention_mask: Any = None,
    streamer: Any = None,
    past_key_values: Any = None,
    plan: Any = None,
    assistant_model: Any = None,
    num_assistant_tokens: int = 5,
    **settings: Any,
) -> Tensor:
    """The awaitable twin of `generate`, for places where Python cannot block."""
    config = settings_of(model, settings)
    prompt, mask = _prompt(model, input_ids, attention_mask)
    _refuse_padding(await mask.tolist_async() if isinstance(mask, Tensor) else mask)
    collected = _Collected(config, prompt.shape[0])
    if streamer is not None:
        streamer.put(await prompt.tolist_async())
    loop = _loop(model, prompt, config, past_key_values, plan, assistant_model, num_assistant_tokens)
    with _following(model, plan):
        async for values in _each_async(loop):
            shown = collected.add(values)
            if streamer is not None:
                streamer.put(shown)
    if streamer is not None:
        streamer.end()
    return collected.after(prompt)


def stream(
    model: Any,
    input_ids: Any,
    *,
    attention_mask: Any = None,
    past_key_values: Any = None,
    plan: Any = None,
    assistant_model: Any = None,
    num_assistant_tokens: int = 5,
    **settings: Any,
) -> Iterator[int]:
    """The new ids of one sequence, one by one as they come. Stop by leaving the loop.

    Args:
        model, input_ids, attention_mask, past_key_values, plan, settings: as in `generate`, for one sequence.
        assistant_model, num_assistant_tokens: as there.

    Raises:
        ShapeError: several sequences.
    """
    config = settings_of(model, settings)
    prompt, mask = _prompt(model, input_ids, attention_mask)
    _refuse_padding(mask.tolist() if isinstance(mask, Tensor) else mask)
    _refuse_several(prompt)
    loop = _loop(model, prompt, config, past_key_values, plan, assistant_model, num_assistant_tokens)
    with _following(model, plan), closing(_each(loop)) as found:
        for values in found:
            yield values[0]


async def stream_async(
    model: Any,
    input_ids: Any,
    *,
    attention_mask: Any = None,
    past_key_values: Any = None,
    plan: Any = None,
    assistant_model: Any = None,
    num_assistant_tokens: int = 5,
    **settings: Any,
) -> AsyncIterator[int]:
    """The asynchronous twin of `stream`."""
    config = settings_of(model, settings)
    prompt, mask = _prompt(model, input_ids, attention_mask)
    _refuse_padding(await mask.tolist_async() if isinstance(mask, Tensor) else mask)
    _refuse_several(prompt)
    loop = _loop(model, prompt, config, past_key_values, plan, assistant_model, num_assistant_tokens)
    with _following(model, plan):
        async with aclosing(_each_async(loop)) as found:
            async for values in found:
                yield values[0]


def _loop(model: Any, prompt: Tensor, config: Any, cache: Any, plan: Any, assistant: Any, count: int) -> Any:
    """The loop of generation, with or without a model that drafts."""
    if assistant is None:
        return steps(model, prompt, config, cache)
    if plan is not None:
        raise ArgumentError("generate: assistant_model drafts for a model as it is. Leave out plan.")
    check(model, assistant, prompt, config, count, cache is not None)
    return assisted_steps(model, assistant, prompt, config, count)


def _each(loop: Any) -> Generator[Any, None, None]:
    """The ids of each position; a step that verifies gives several, of one sequence."""
    with closing(each(loop)) as found:
        for values in found:
            yield from values if isinstance(values[0], list) else [values]


async def _each_async(loop: Any) -> AsyncGenerator[Any, None]:
    """The awaitable twin of `_each`."""
    async with aclosing(each_async(loop)) as found:
        async for values in found:
            for one in values if isinstance(values[0], list) else [values]:
                yield one


def _following(model: Any, plan: Any) -> AbstractContextManager:
    """A plan of the lens is followed within; the lens is loaded where there is one."""
    if plan is None:
        return nullcontext()
    from ...lens.run import attach

    return attach(model, plan)


def _refuse_several(prompt: Tensor) -> None:
    if prompt.shape[0] != 1:
        raise ShapeError(f"stream: takes one sequence, not {prompt.shape[0]}. Use generate for several.")
