"""How a sequence is continued: the settings, read and checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from ...ops.random.generator import Generator
from ...weights.fields import FLAG, either, listed, number, whole

_ID = whole(0)
# The settings that a generation_config.json may have, and what they may be there.
TABLE = {
    "max_new_tokens": whole(1),
    "min_new_tokens": whole(0),
    "do_sample": FLAG,
    "temperature": number(0, 1e6),
    "top_k": whole(0),
    "top_p": number(0, 1),
    "min_p": number(0, 1),
    "repetition_penalty": number(0, 1e6, above=True),
    "eos_token_id": either(_ID, listed(_ID, 1 << 16)),
    "pad_token_id": _ID,
    "decoder_start_token_id": _ID,
    "forced_bos_token_id": _ID,
    "forced_eos_token_id": _ID,
}
_NUMBERS = ("max_new_tokens", "min_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty")


@dataclass(frozen=True)
class GenerationConfig:
    """How to continue a sequence. Names and defaults are those of transformers.

    Args:
        max_new_tokens: how many ids at most.
        min_new_tokens: as many ids come before one that stops may be chosen.
        do_sample: draw by chance; without it the most likely id is taken.
        temperature, top_k, top_p, min_p: of the draw; see `pellucid.ops.random.token_sampling.sample`.
        repetition_penalty: above 1 makes ids that have appeared less likely.
        eos_token_id: id or ids that stop a sequence; the model's own if None, none if ().
        pad_token_id: what follows in a sequence that stopped before the others; the first stop id if None.
        decoder_start_token_id: with which decoders begin that write about a text; the model's own if None.
        forced_bos_token_id, forced_eos_token_id: what comes behind the first id, and as the last of
            ``max_new_tokens``.
        seed: of the draw; the default generator goes on if None.
        generator: a generator of one's own instead of a seed.
    """

    max_new_tokens: int = 20
    min_new_tokens: int = 0
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    min_p: float | None = None
    repetition_penalty: float = 1.0
    eos_token_id: int | tuple[int, ...] | list[int] | None = None
    pad_token_id: int | None = None
    decoder_start_token_id: int | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    seed: int | None = None
    generator: Generator | None = None

    @property
    def stops(self) -> tuple[int, ...]:
        """The ids that stop a sequence."""
        e = self.eos_token_id
        return () if e is None else (e,) if isinstance(e, int) else tuple(e)

    @property
    def padding(self) -> int:
        """The id that follows in a sequence that has stopped."""
        return self.pad_token_id if self.pad_token_id is not None else next(iter(self.stops), 0)


def settings_of(model: Any, given: dict[str, Any]) -> GenerationConfig:
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
    for name in (*_NUMBERS, *(["min_p"] if config.min_p is not None else [])):
        if not isinstance(value := getattr(config, name), Real):
            raise TypeError(f"generate: {name} is a {type(value).__name__}, not a number. Give a number.")
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
