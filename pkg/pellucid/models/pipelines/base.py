"""What pipelines share: a model with its tokenizer, one input or several, blocking or awaited."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ...autograd.grad_mode import under
from ...device.steps import later, now
from ...errors import ArgumentError
from ...tensors.construct import tensor
from ...text.tokenizer import Tokenizer

Steps = Generator[tuple, Any, Any]


class Pipeline:
    """A task from text to a result, as `pellucid.pipeline` returns it.

    Args:
        model: with the head of the task.
        tokenizer: the model's.
        task: its name.
    """

    def __init__(self, model: Any, tokenizer: Tokenizer, task: str):
        self.model, self.tokenizer, self.task = model, tokenizer, task

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.task}, {type(self.model).__name__})"

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        """The result for a text; for a list of texts a list of results."""
        return now(self.steps(*inputs, **settings))

    async def run_async(self, *inputs: Any, **settings: Any) -> Any:
        """The awaitable twin of calling, for places where Python cannot block."""
        return await later(self.steps(*inputs, **settings))

    def steps(self, inputs: Any, **settings: Any) -> Steps:
        """Steps to the result, as `pellucid.device.steps` takes them."""
        if not isinstance(inputs, list | tuple):
            return (yield from self.one(inputs, **settings))
        found = []
        for given in inputs:
            found.append((yield from self.one(given, **settings)))
        return found

    def one(self, given: Any, **settings: Any) -> Steps:
        """Steps to the result of one input."""
        raise NotImplementedError

    def encoded(self, text: Any, pair: str | None = None, **settings: Any) -> dict[str, list[int]]:
        """The ids of a text, with token types where the model tells two texts apart.

        Raises:
            ArgumentError: it is no text.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"{self.task}: the input is a {type(text).__name__}, not a str.")
        typed = (getattr(self.model.config, "type_vocab_size", 0) or 0) > 1
        settings["truncation"] = settings.get("truncation", False)
        return dict(self.tokenizer(text, pair, return_token_type_ids=typed, **settings))

    def run(self, encoded: dict[str, list[int]]) -> Any:
        """What the model makes of one text."""
        names = ("input_ids", "attention_mask", "token_type_ids")
        given = {n: tensor([encoded[n]], device=self.model.device) for n in names if n in encoded}
        return under(False, self.model, **given)

    def is_special(self, ids: list[int]) -> np.ndarray:
        """Which ids frame a text, such as the one that begins it."""
        special = set(self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}
        return np.array([index in special for index in ids])


def softmax(x: np.ndarray) -> np.ndarray:
    """Shares of the last axis that add up to 1."""
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)
