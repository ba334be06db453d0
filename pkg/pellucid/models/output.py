"""What models return: fields by name, by key or by position, as in transformers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..tensors.tensor import Tensor


@dataclass
class ModelOutput:
    """Fields that are set count, in order."""

    def __getitem__(self, key):
        return getattr(self, key) if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self) -> tuple:
        """The fields that are set, in order."""
        return tuple(v for f in fields(self) if (v := getattr(self, f.name)) is not None)


@dataclass
class CausalLMOutput(ModelOutput):
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


@dataclass
class EncoderOutput(ModelOutput):
    """The result of an encoder.

    Args:
        last_hidden_state: (batch, time, dim).
        pooler_output: (batch, dim) of the first position, where the model has a pooler.
        hidden_states: (batch, time, dim) before the first layer and after each, where asked for.
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None


@dataclass
class HeadOutput(ModelOutput):
    """The result of an encoder with a head.

    Args:
        loss: of the labels, where labels were given.
        logits: (batch, labels) of texts, or (batch, time, labels) of positions.
        hidden_states: as in `EncoderOutput`.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None


@dataclass
class AnswerOutput(ModelOutput):
    """The result of a model that finds answers.

    Args:
        loss: mean of the cross entropies of both ends, where their positions were given.
        start_logits, end_logits: (batch, time), how likely an answer begins or ends at each position.
        hidden_states: as in `EncoderOutput`.
    """

    loss: Tensor | None = None
    start_logits: Tensor | None = None
    end_logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None


@dataclass
class Seq2SeqOutput(ModelOutput):
    """The result of an encoder and a decoder.

    Args:
        loss: mean cross entropy of the labels, where labels were given.
        logits: (batch, time, vocab).
        past_key_values: the cache, where one is used.
        decoder_hidden_states, encoder_hidden_states: as in `EncoderOutput`, where asked for.
        encoder_last_hidden_state: (batch, time, dim).
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    past_key_values: Any = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
