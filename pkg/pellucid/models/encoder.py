"""Encoders: what BERT and its kin share. Configuration, attention to both sides, and embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ..errors import ArgumentError, DimensionError, FormatError, ShapeError
from ..nn import functional as F
from ..nn.modules.activation import Tanh
from ..nn.modules.dropout import Dropout
from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..ops.shape.creation import arange
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, named, number, one_of, shown, text, whole
from .config import Config
from .output import EncoderOutput
from .pretrained import PretrainedModel
from .rotary import RotaryEmbedding

RATE = number(0, 1)
LABELS = named(text(20), text(1000), 1 << 20)


@dataclass(frozen=True)
class EncoderConfig(Config):
    """Keys of ``config.json`` that all encoders have."""

    table: ClassVar[Mapping[str, Field]] = {
        "vocab_size": whole(1, 1 << 24),
        "max_position_embeddings": whole(1),
        "pad_token_id": whole(0),
        "tie_word_embeddings": FLAG,
        "id2label": LABELS,
        "problem_type": one_of("regression", "single_label_classification", "multi_label_classification"),
    }
    beside: ClassVar[frozenset[str]] = frozenset({
        "classifier_dropout", "head_dropout", "max_position_embeddings", "problem_type",
        "tie_word_embeddings",
    })  # fmt: skip
    vocab_size: int = 30522
    max_position_embeddings: int = 512
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True
    id2label: Mapping[str, str] | None = None
    problem_type: str | None = None

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        pad = checkpoint.metadata.get("tokenizer.ggml.padding_token_id")
        is_one = isinstance(pad, int) and 0 <= pad < checkpoint["token_embd.weight"].shape[0]
        return {"pad_token_id": pad if is_one else None}

    @property
    def labels(self) -> list[str]:
        """The names of what a classifier tells apart, by number.

        Raises:
            FormatError: numbers are missing.
        """
        found = self.id2label or {"0": "LABEL_0", "1": "LABEL_1"}
        if set(found) != {str(k) for k in range(len(found))}:
            raise FormatError(
                f"config.json: id2label names {shown(sorted(found))}; it must be all numbers from 0 on."
            )
        return [found[str(k)] for k in range(len(found))]

    @property
    def num_labels(self) -> int:
        """How many labels there are."""
        return len(self.labels)

    @property
    def first_position(self) -> int:
        """The row of the position table that a text begins with."""
        return 0

    @property
    def positions(self) -> int:
        """How long a text may be."""
        return self.max_position_embeddings - self.first_position

    def checked(self, where: str) -> Self:
        super().checked(where)
        dim, heads = self.sizes
        if dim % heads:
            raise FormatError(
                f"{where}: {heads} heads do not share {dim} columns evenly. The file is damaged."
            )
        return self

    @property
    def sizes(self) -> tuple[int, int]:
        """Columns of attention, and heads."""
        raise NotImplementedError


@dataclass(frozen=True)
class BertKeys(EncoderConfig):
    """Keys of ``config.json`` that BERT has, and what was made of it."""

    table: ClassVar[Mapping[str, Field]] = {
        **EncoderConfig.table,
        "hidden_size": whole(1, 1 << 20),
        "num_hidden_layers": whole(1, 4096),
        "num_attention_heads": whole(1, 1 << 16),
        "intermediate_size": whole(1, 1 << 24),
        "hidden_act": text(100),
        "hidden_dropout_prob": RATE,
        "attention_probs_dropout_prob": RATE,
        "classifier_dropout": RATE,
        "type_vocab_size": whole(0, 1 << 20),
        "layer_norm_eps": number(0, 1, above=True),
        "position_embedding_type": one_of("absolute"),
    }
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    classifier_dropout: float | None = None
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    position_embedding_type: str = "absolute"

    @property
    def sizes(self) -> tuple[int, int]:
        return self.hidden_size, self.num_attention_heads

    @property
    def activation(self) -> str:
        """Name of what feed-forwards compute."""
        return self.hidden_act

    @property
    def head_dropout(self) -> float:
        """Dropout before a classifier."""
        return self.hidden_dropout_prob if self.classifier_dropout is None else self.classifier_dropout


def key_mask(attention_mask: Tensor | None, x: Tensor) -> Tensor | None:
    """Which keys are seen: (batch, 1, 1, time), or None where all are.

    Raises:
        ShapeError: the mask does not fit.
    """
    if attention_mask is None:
        return None
    if attention_mask.shape != x.shape[:2]:
        raise ShapeError(
            f"attention_mask of shape {tuple(attention_mask.shape)} must have the shape of the ids "
            f"{tuple(x.shape[:2])}."
        )
    return attention_mask.bool()[:, None, None, :]


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, time, heads * columns) to (batch, heads, time, columns)."""
    batch, time, _ = x.shape
    return x.view(batch, time, heads, -1).transpose(1, 2)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: int,
    mask: Tensor | None,
    dropout: float = 0.0,
    rotary: RotaryEmbedding | None = None,
) -> Tensor:
    """Attention of heads that are columns: (batch, time, heads * columns) of each to the same."""
    q, k, v = (split_heads(x, heads) for x in (query, key, value))
    if rotary is not None:
        q, k = rotary(q, 0), rotary(k, 0)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    return out.transpose(1, 2).reshape(query.shape)


class Encoder(PretrainedModel):
    """Ids (batch, time) to hidden states (batch, time, dim); every position sees both sides.

    A subclass has ``embeddings``, ``blocks()`` and, where it has one, ``pooler``.

    Args:
        config: of the class's ``config_class``.
        add_pooling_layer: whether there is a pooler, for models that may have one.
    """

    auto = "AutoModel"
    passed = ("pooler.",)
    embeddings: Any

    def __init__(self, config: Any, add_pooling_layer: bool = True):
        super().__init__()
        self.config = config
        self.pooler: Any = None

    def fit(self, names: Iterable[str]) -> None:
        if not any("pooler." in name for name in names):
            self.pooler = None

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> EncoderOutput:
        """Hidden states of every position.

        Args:
            input_ids: (batch, time), integers.
            attention_mask: (batch, time), 0 where padding is.
            token_type_ids: (batch, time), which text an id is of; zeros if not given.
            position_ids: (batch, time) or (1, time); 0, 1, ... if not given.
            inputs_embeds: (batch, time, dim), instead of ids.
            output_hidden_states: also return what every layer is given, and the last one returns.

        Returns:
            An `EncoderOutput`.

        Raises:
            ArgumentError: not one of ids and embeddings, or token types for a model without.
            ShapeError: ids or the mask are not (batch, time).
            DimensionError: there are more positions than the model has.
            IndexOutOfRange: an id is not in the vocabulary; raised by the next read.
        """
        given = inputs_embeds if input_ids is None else input_ids
        if given is None or (input_ids is not None and inputs_embeds is not None):
            raise ArgumentError("forward: give one of input_ids and inputs_embeds.")
        if given.ndim != (3 if input_ids is None else 2):
            raise ShapeError(
                f"forward: input_ids or inputs_embeds of shape {tuple(given.shape)} must be (batch, time) or "
                "(batch, time, dim). Use ids.unsqueeze(0) for one sequence."
            )
        if position_ids is None and given.shape[1] > self.config.positions:
            raise DimensionError(
                f"forward: {given.shape[1]} positions, and the model has {self.config.positions}. Cut the "
                "text; a tokenizer does with truncation=True."
            )
        x = self.embeddings(input_ids, token_type_ids, position_ids, inputs_embeds)
        keep: list[Tensor] | None = [] if output_hidden_states else None
        x = self.encode(x, attention_mask, keep)
        if keep is not None:
            keep.append(x)
        pooled = self.pool(x) if self.pooler is not None else None
        return EncoderOutput(x, pooled, tuple(keep) if keep is not None else None)

    def blocks(self) -> Iterable[Module]:
        """The layers in order, each of hidden states and mask."""
        raise NotImplementedError

    def encode(self, x: Tensor, attention_mask: Tensor | None, keep: list[Tensor] | None) -> Tensor:
        """The layers, from embeddings on."""
        mask = self.mask(key_mask(attention_mask, x), x)
        for layer in self.blocks():
            if keep is not None:
                keep.append(x)
            x = layer(x, mask)
        return x

    def pool(self, x: Tensor) -> Tensor:
        """``pooler_output`` of the hidden states."""
        return self.pooler(x)

    def mask(self, keys: Tensor | None, x: Tensor) -> Tensor | None:
        """What the layers' attention takes as its mask."""
        return keys


class Pooler(Module):
    """``tanh(dense(x))`` of the first position."""

    def __init__(self, dim: int):
        super().__init__()
        self.dense, self.activation = Linear(dim, dim), Tanh()

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.dense(x[:, 0]))


class Embeddings(Module):
    """Embeddings of ids, positions and, where the model has them, token types; their sum is normed.

    Args:
        config: with ``vocab_size``, ``max_position_embeddings``, ``type_vocab_size`` (0 without token types).
        dim: columns.
        eps, dropout: of the norm and of what follows.
    """

    padded_positions: ClassVar[bool] = False  # whether padding has a position of its own

    def __init__(self, config: Any, dim: int, eps: float, dropout: float):
        super().__init__()
        pad = config.pad_token_id
        self.word_embeddings = Embedding(config.vocab_size, dim, padding_idx=pad)
        self.position_embeddings = Embedding(
            config.max_position_embeddings, dim, padding_idx=pad if self.padded_positions else None
        )
        types = getattr(config, "type_vocab_size", 0)
        self.token_type_embeddings = Embedding(types, dim) if types else None
        self.LayerNorm, self.dropout = LayerNorm(dim, eps=eps), Dropout(dropout)

    def position_ids(self, ids: Tensor | None, x: Tensor) -> Tensor:
        """The positions of ids, or of embeddings that came instead."""
        return arange(x.shape[1], device=x.device)

    def forward(
        self,
        ids: Tensor | None,
        token_types: Tensor | None = None,
        positions: Tensor | None = None,
        embedded: Tensor | None = None,
    ) -> Tensor:
        x = self.word_embeddings(ids) if embedded is None else embedded
        positions = self.position_ids(ids, x) if positions is None else positions
        x = x + self.position_embeddings(positions)
        if self.token_type_embeddings is not None:
            if token_types is None:
                token_types = arange(1, device=x.device)
            x = x + self.token_type_embeddings(token_types)
        elif token_types is not None:
            raise ArgumentError("forward: this model has no token types. Leave token_type_ids out.")
        return self.dropout(self.LayerNorm(x))
