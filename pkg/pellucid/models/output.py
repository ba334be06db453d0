"""What a language model returns: fields by name, by key or by position, as in transformers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..tensors.tensor import Tensor


@dataclass
class CausalLMOutput:
    """The result of a causal language model.

    Args:
        loss: mean cross entropy of the labels, where labels were given.
        logits: (batch, time, vocab).
        past_key_values: the cache, where one is used.
        hidden_states: (batch, time, dim) after the embedding and after each layer (the last one normed),
            where asked for.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    hidden_states: tuple[Tensor, ...] | None = None

    def __getitem__(self, key):
        return getattr(self, key) if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple:
        """The fields that are set, in order."""
        return tuple(v for f in fields(self) if (v := getattr(self, f.name)) is not None)
