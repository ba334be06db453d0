"""Picking the next ids from logits: greedily or by chance, with penalties and ids that must not come yet."""

from __future__ import annotations

from dataclasses import dataclass

from ...ops.elementwise.comparison import where
from ...ops.random.distributions import rand
from ...ops.random.generator import Generator
from ...ops.random.token_sampling import repetition_penalty, sample
from ...ops.reduce.extremum import argmax
from ...ops.shape.creation import arange, full, zeros
from ...ops.shape.joining import cat
from ...tensors.tensor import Tensor
from .config import GenerationConfig

# Added to the logits of ids that must not come; finite, as WGSL knows no infinity.
_BANNED = -1e30


@dataclass(frozen=True)
class Rule:
    """The settings by which an id is picked. Calls of one rule run the same launches.

    Args:
        do_sample, temperature, top_k, top_p, min_p, repetition_penalty: as in `GenerationConfig`.
    """

    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float


@dataclass
class SeenIds:
    """The ids of every row so far, which the repetition penalty asks for.

    Args:
        ids: (batch, room); the room is filled up with an id that is in it anyway, so that its shape stays.
        columns: (room,) the numbers of its columns.
    """

    ids: Tensor
    columns: Tensor


def pick(
    logits: Tensor,
    column: int,
    rule: Rule,
    seen: SeenIds | None,
    ban: Tensor | None,
    chance: Generator | None,
) -> Tensor:
    """The next id of every row: (batch, vocab) to (batch,).

    Args:
        logits: of the next ids.
        column: where the ids go among those seen.
        rule: how they are picked.
        seen: ids so far, with a penalty; those that are picked are added.
        ban: added to the logits.
        chance: of the draw.
    """
    logits = logits.float()
    if seen is not None:
        logits = repetition_penalty(logits, seen.ids, rule.repetition_penalty)
    if ban is not None:
        logits = logits + ban
    if rule.do_sample:
        uniforms = rand(logits.shape[0], device=logits.device, generator=chance)
        cuts = {"top_k": rule.top_k, "top_p": rule.top_p, "min_p": rule.min_p}
        chosen = sample(logits, uniforms, temperature=rule.temperature, **cuts)
    else:
        chosen = argmax(logits, -1)
    if seen is not None:
        # The column is a number of the launch: unlike a slice it is no part of any plan.
        seen.ids.copy_(where(seen.columns == column, chosen.unsqueeze(1), seen.ids))
    return chosen


class Choice:
    """What picking needs to know of one generation.

    Args:
        config: its settings.
        ids: (batch, time), the prompt.
        room: ids that there will be, at least.
    """

    def __init__(self, config: GenerationConfig, ids: Tensor, room: int):
        self._config = config
        self._chance = config.generator
        if config.seed is not None and self._chance is None:
            self._chance = Generator().manual_seed(config.seed)
        batch, self._length = ids.shape
        penalty = config.repetition_penalty
        least = config.min_p or 0.0
        self._rule = Rule(config.do_sample, config.temperature, config.top_k, config.top_p, least, penalty)
        self._seen = None
        if penalty != 1.0:
            more = ids[:, :1].expand(batch, room - self._length)
            self._seen = SeenIds(cat([ids, more], 1), arange(room, device=ids.device))
        self._ban: Tensor | None = None
        bos, eos, most = config.forced_bos_token_id, config.forced_eos_token_id, config.max_new_tokens
        self._forced = {}  # by how many ids have been chosen before
        if bos is not None and self._length == 1:
            self._forced[0] = bos
        if eos is not None:
            self._forced[most - 1] = eos

    def inputs(self, logits: Tensor, count: int) -> tuple:
        """The arguments of `pick` where ``count`` ids have been chosen before."""
        ban = None
        if count < self._config.min_new_tokens and self._config.stops:
            if self._ban is None:
                self._ban = _ban(self._config.stops, logits)
            ban = self._ban
        if count in self._forced:
            ban = full((logits.shape[-1],), _BANNED, device=logits.device)
            ban[self._forced[count]] = 0.0
        return logits, self._length + count, self._rule, self._seen, ban, self._chance


def _ban(stops: tuple[int, ...], logits: Tensor) -> Tensor:
    ban = zeros(logits.shape[-1], device=logits.device)
    ban[[s for s in stops if s < logits.shape[-1]]] = _BANNED
    return ban
