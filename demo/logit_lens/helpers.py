"""What the programs behind the pictures share: tokens as texts, and arrays as the views take them."""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from pellucid import lens


class PairError(ValueError):
    """Two prompts or two models that cannot be compared."""


class PromptError(ValueError):
    """A prompt of which nothing is left to read."""


class Words:
    """The texts of a tokenizer's ids: ``words([5, 17])``."""

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self.name = functools.cache(self.name)

    def __call__(self, ids: Iterable[int]) -> list[str]:
        return [self.name(i) for i in ids]

    def name(self, token: int) -> str:
        """A token's own text, special or not."""
        text = self.tokenizer.decode([token])
        if "�" not in text:
            return text
        return "".join(map(written, self.tokenizer.convert_ids_to_tokens(token) or text))

    def candidates(self, best: Iterable[tuple[int, float]]) -> list[list[Any]]:
        """Ids and probabilities, with the tokens' texts between them."""
        return [[i, self.name(i), p] for i, p in best]


def written(sign: str) -> str:
    """A sign of a vocabulary of bytes, as GPT-2's, where they make no whole character: its byte."""
    if "!" <= sign <= "~":
        return sign
    if "¡" <= sign <= "ÿ":
        return f"<{ord(sign):02X}>"
    unseen = [*range(33), *range(127, 161), 173]  # bytes that the vocabulary gives the signs from 256 on
    index = ord(sign) - 256
    return f"<{unseen[index]:02X}>" if 0 <= index < len(unseen) else sign


def flat(values: np.ndarray) -> np.ndarray:
    """An array as views take it: float32, in one row."""
    return np.ascontiguousarray(values, dtype=np.float32).reshape(-1)


def numbered(names: list[str]) -> list[str]:
    """Labels of layers: the number behind the address."""
    return [name.split(".")[-1] for name in names]


async def continued(model: Any, names: Words, ids: list[int], plan: lens.Plan, count: int) -> str:
    """A text with at most so many tokens more, its last token and these read under a plan."""
    session = lens.Session(model, ids)
    if session.at.parent is not None:
        session.go(session.at.parent)
        session.plan = plan
        await session.token_async(ids[-1])
    session.plan = plan
    for _ in range(count):
        if (await session.token_async()).id in model.generation_config.stops:
            break
    return "".join(names(session.ids))
