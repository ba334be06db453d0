"""Picking the next ids from logits: greedily or by chance, with penalties and ids that must not come yet."""

from __future__ import annotations

from ..ops.comparison import where
from ..ops.creation import arange, zeros
from ..ops.extremum import argmax
from ..ops.joining import cat
from ..ops.random import rand
from ..ops.sampling import repetition_penalty, sample
from ..random import Generator
from ..tensor import Tensor
from .config import GenerationConfig

# Added to the logits of ids that must not come; finite, as WGSL knows no infinity.
_BANNED = -1e30


class Choice:
    """Picks the next ids from logits, knowing those before."""

    def __init__(self, config: GenerationConfig, ids: Tensor):
        self._config = config
        self._chance = config.generator
        if config.seed is not None and self._chance is None:
            self._chance = Generator().manual_seed(config.seed)
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
