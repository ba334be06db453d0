"""Speculative decoding: a small model drafts ids, the large one verifies all of them in one step.

Greedy generation gives the ids that it gives alone. Both models must have one vocabulary.

Source: Leviathan, Kalman and Matias 2023, "Fast Inference from Transformers via Speculative Decoding"
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ...autograd.grad_mode import under
from ...errors import ArgumentError, ShapeError
from ...ops.reduce.extremum import argmax
from ...ops.shape.joining import cat
from ...tensors.construct import tensor
from ...tensors.reading import ListRead
from ...tensors.tensor import Tensor
from .config import GenerationConfig
from .loop import room
from .step import step_of


class Verified:
    """A read of drafted ids and of those that the large model chooses behind each; its values are those that
    stay, a list of one for each position.

    Args:
        ids: (drafted + drafted + 1,), both behind each other.
        drafted: how many.
        stops: ids behind which none stays.
    """

    def __init__(self, ids: Tensor, drafted: int, stops: frozenset[int]):
        self._read, self._drafted, self._stops = ListRead(ids), drafted, stops

    def _stay(self, values: list[int]) -> list[list[int]]:
        draft, chosen = values[: self._drafted], values[self._drafted :]
        stay = []
        for k, value in enumerate(chosen):
            stay.append([value])
            if k == len(draft) or draft[k] != value or value in self._stops:
                break
        return stay

    def result(self) -> list[list[int]]:
        """The ids, waiting for them."""
        return self._stay(self._read.result())

    async def result_async(self) -> list[list[int]]:
        """The awaitable twin of `result`."""
        return self._stay(await self._read.result_async())


def check(model: Any, assistant: Any, ids: Tensor, config: GenerationConfig, count: int, begun: bool) -> None:
    """Refuse what is not decoded so.

    Raises:
        ArgumentError: the settings are not greedy, or a model keeps what cannot be taken back.
        ShapeError: there are several sequences, or the vocabularies differ.
    """
    if ids.shape[0] != 1:
        raise ShapeError(f"generate: assistant_model is for one sequence, not {ids.shape[0]}.")
    sizes = assistant.config.vocab_size, model.config.vocab_size
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"generate: assistant_model has a vocabulary of {sizes[0]} ids, and the model one of {sizes[1]}. "
            "Give a smaller model of the same family."
        )
    if type(count) is not int or count < 1:
        raise ArgumentError(f"generate: num_assistant_tokens must be a positive integer, not {count!r}.")
    if config.do_sample or config.repetition_penalty != 1 or config.min_new_tokens:
        raise ArgumentError(
            "generate: with assistant_model ids are chosen greedily. Leave out do_sample, "
            "repetition_penalty and min_new_tokens."
        )
    if config.forced_bos_token_id is not None or config.forced_eos_token_id is not None or begun:
        raise ArgumentError(
            "generate: assistant_model takes no forced ids and no past_key_values. Give the whole text."
        )


def _new_cache(model: Any, ids: Tensor, config: GenerationConfig) -> Any:
    cache = room(model, ids, config, None)
    end = ids.shape[1] + config.max_new_tokens
    window = min(filter(None, cache.windows), default=end)
    if any(cache.states) or window < end or (cache.original_positions or end) < end:
        raise ArgumentError(
            f"generate: {type(model).__name__} forgets earlier positions or keeps a state of them, so that "
            "drafts cannot be taken back. Leave out assistant_model, or shorten the text."
        )
    return cache


def assisted_steps(
    model: Any, assistant: Any, ids: Tensor, config: GenerationConfig, count: int
) -> Generator[Verified, list[list[int]], None]:
    """The loop, as `steps`: gives reads whose values are all ids of a step that stay, and takes them back.

    Args:
        model, assistant: the large and the small one.
        ids: (1, time), the prompt.
        config: greedy settings, checked.
        count: ids that are drafted for a step.
    """
    cache, own = _new_cache(model, ids, config), _new_cache(assistant, ids, config)
    draft, stops, begun = step_of(assistant), frozenset(config.stops), ids.shape[1]
    said: list[int] = []
    unknown = given = ids  # what the small and the large model have not seen
    while True:
        drafted: list[Tensor] = []
        for _ in range(min(count, config.max_new_tokens - len(said) - 1)):
            logits = draft.logits(unknown, own)
            drafted.append(argmax(logits.float(), -1))
            unknown = drafted[-1].unsqueeze(1)
        # The prompt's own positions are given once, with the first draft behind it.
        together = cat([given, *(d.unsqueeze(1) for d in drafted)], 1)
        keep = len(drafted) + 1
        logits = under(False, model, together, past_key_values=cache, logits_to_keep=keep).logits
        chosen = argmax(logits[0, -keep:].float(), -1)
        stay = yield Verified(cat([*drafted, chosen]), len(drafted), stops)
        said += [value for (value,) in stay]
        if len(said) >= config.max_new_tokens or said[-1] in stops:
            return
        known = begun + len(said) - 1  # the last one is fed next
        cache.crop(known)
        own.crop(min(known, own.length))
        given = tensor([said[-1:]], dtype=ids.dtype, device=ids.device)
        unknown = tensor([said[own.length - begun :]], dtype=ids.dtype, device=ids.device)
