"""BART: an encoder and a decoder with learned positions, norms behind the residuals.

Lewis et al. 2019, "BART: Denoising sequence-to-sequence pre-training for natural language generation,
translation, and comprehension". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ..errors import DimensionError, FormatError
from ..nn import functional as F
from ..nn.modules.container import ModuleList
from ..nn.modules.dropout import Dropout
from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..ops.attention.cache import cached_attention
from ..ops.shape.creation import arange, zeros
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field, text, whole
from .activations import activation
from .config import Config
from .encoder import LABELS, RATE, key_mask, split_heads
from .seq2seq import EncodedText, Heads, Seq2SeqLM, causal

_OFFSET = 2  # of positions, in the table


@dataclass(frozen=True)
class BartConfig(Config):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        "vocab_size": whole(1, 1 << 24),
        "max_position_embeddings": whole(1),
        "d_model": whole(1, 1 << 20),
        "encoder_layers": whole(1, 4096),
        "decoder_layers": whole(1, 4096),
        "encoder_attention_heads": whole(1, 1 << 16),
        "decoder_attention_heads": whole(1, 1 << 16),
        "encoder_ffn_dim": whole(1, 1 << 24),
        "decoder_ffn_dim": whole(1, 1 << 24),
        "activation_function": text(100),
        "dropout": RATE,
        "attention_dropout": RATE,
        "activation_dropout": RATE,
        "classifier_dropout": RATE,
        "scale_embedding": FLAG,
        "decoder_start_token_id": whole(0),
        "pad_token_id": whole(0),
        "tie_word_embeddings": FLAG,
        "id2label": LABELS,
    }
    vocab_size: int = 50265
    max_position_embeddings: int = 1024
    d_model: int = 1024
    encoder_layers: int = 12
    decoder_layers: int = 12
    encoder_attention_heads: int = 16
    decoder_attention_heads: int = 16
    encoder_ffn_dim: int = 4096
    decoder_ffn_dim: int = 4096
    activation_function: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    classifier_dropout: float = 0.0
    scale_embedding: bool = False
    decoder_start_token_id: int = 2
    pad_token_id: int | None = 1
    tie_word_embeddings: bool = True
    id2label: Mapping[str, str] | None = None

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Self:
        # Files name the encoder's layers twice.
        return super().from_dict({k: v for k, v in keys.items() if k != "num_hidden_layers"})

    @property
    def num_hidden_layers(self) -> int:
        """Layers of the encoder."""
        return self.encoder_layers

    def checked(self, where: str) -> Self:
        super().checked(where)
        for heads in (self.encoder_attention_heads, self.decoder_attention_heads):
            if self.d_model % heads:
                raise FormatError(
                    f"{where}: {heads} heads do not share {self.d_model} columns evenly. The file is damaged."
                )
        return self


class BartAttention(Module):
    """Attention of heads.

    Args:
        config: the model's.
        heads: how many.
    """

    def __init__(self, config: BartConfig, heads: int):
        super().__init__()
        dim = config.d_model
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (Linear(dim, dim) for _ in range(4))
        self.heads, self.rate = heads, config.attention_dropout

    def keys(self, x: Tensor) -> Heads:
        """Keys and values: (batch, heads, time, head_dim) each."""
        return split_heads(self.k_proj(x), self.heads), split_heads(self.v_proj(x), self.heads)

    def forward(self, x: Tensor, keys: Heads, mask: Tensor | None, length: int | None = None) -> Tensor:
        """``length``: the keys are those of a cache that is filled up to it."""
        query, rate = split_heads(self.q_proj(x), self.heads), self.rate if self.training else 0.0
        if length is not None:
            out = cached_attention(query, *keys, length)
        else:
            out = F.scaled_dot_product_attention(query, *keys, attn_mask=mask, dropout_p=rate)
        return self.out_proj(out.transpose(1, 2).reshape(x.shape))


class BartEncoderLayer(Module):
    """Attention to the text and a feed-forward, each beside a residual and before a norm.

    Args:
        config: the model's.
        heads, columns: of attention and of the feed-forward.
    """

    def __init__(self, config: BartConfig, heads: int, columns: int):
        super().__init__()
        dim = config.d_model
        self.self_attn, self.self_attn_layer_norm = BartAttention(config, heads), LayerNorm(dim)
        self.fc1, self.fc2, self.final_layer_norm = Linear(dim, columns), Linear(columns, dim), LayerNorm(dim)
        self.activation, self.dropout = activation(config.activation_function), Dropout(config.dropout)
        self.activation_dropout = Dropout(config.activation_dropout)

    def forward(self, x: Tensor, mask: Tensor | None, source: EncodedText | None = None) -> Tensor:
        out = self.self_attn(x, self.self_attn.keys(x), mask)
        return self.feed(self.self_attn_layer_norm(x + self.dropout(out)))

    def feed(self, x: Tensor) -> Tensor:
        """The feed-forward."""
        out = self.fc2(self.activation_dropout(self.activation(self.fc1(x))))
        return self.final_layer_norm(x + self.dropout(out))


class BartDecoderLayer(BartEncoderLayer):
    """An encoder's layer that also looks at the encoded text.

    Args:
        config: the model's.
        heads, columns: of attention and of the feed-forward.
        number: which layer of the cache is its own.
    """

    def __init__(self, config: BartConfig, heads: int, columns: int, number: int):
        super().__init__(config, heads, columns)
        self.encoder_attn = BartAttention(config, heads)
        self.encoder_attn_layer_norm = LayerNorm(config.d_model)
        self.number = number

    def forward(self, x: Tensor, mask: Tensor | None, source: EncodedText | None = None) -> Tensor:
        assert source is not None
        keys, length, cache = self.self_attn.keys(x), None, source.cache
        if cache is not None:
            cache.write(self.number, *keys)
            keys = cache.keys[self.number], cache.values[self.number]
            length = cache.length + x.shape[1]
        x = self.self_attn_layer_norm(x + self.dropout(self.self_attn(x, keys, mask, length)))
        if source.encoded is not None:
            keys = self.encoder_attn.keys(source.encoded)
        else:
            assert cache is not None
            keys = cache.cross[self.number]
        out = self.encoder_attn(x, keys, source.seen)
        return self.feed(self.encoder_attn_layer_norm(x + self.dropout(out)))


class BartStack(Module):
    """Embeddings and layers of the encoder or of the decoder.

    Args:
        config: the model's.
        decodes: whether it is the decoder.
    """

    def __init__(self, config: BartConfig, decodes: bool):
        super().__init__()
        dim = config.d_model
        self.embed_tokens = Embedding(config.vocab_size, dim, padding_idx=config.pad_token_id)
        self.embed_positions = Embedding(config.max_position_embeddings + _OFFSET, dim)
        if decodes:
            sizes = config.decoder_attention_heads, config.decoder_ffn_dim
            layers = [BartDecoderLayer(config, *sizes, k) for k in range(config.decoder_layers)]
        else:
            sizes = config.encoder_attention_heads, config.encoder_ffn_dim
            layers = [BartEncoderLayer(config, *sizes) for _ in range(config.encoder_layers)]
        self.layers, self.layernorm_embedding = ModuleList(layers), LayerNorm(dim)
        self.dropout, self.scale = Dropout(config.dropout), dim**0.5 if config.scale_embedding else 1.0
        self.most = config.max_position_embeddings

    def forward(
        self,
        ids: Tensor | None,
        mask: Tensor | None,
        *source: EncodedText,
        embedded: Tensor | None = None,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        x = self.embed_tokens(ids) * self.scale if embedded is None else embedded
        cache = source[0].cache if source else None
        first, time = cache.length if cache is not None else 0, x.shape[1]
        if first + time > self.most:
            raise DimensionError(
                f"{first + time} positions, and the model has {self.most}. Shorten the text."
            )
        x = x + self.embed_positions(arange(time, device=x.device) + (first + _OFFSET))
        x = self.dropout(self.layernorm_embedding(x))
        for layer in self.layers:
            if keep is not None:
                keep.append(x)
            x = layer(x, mask, *source)
        if keep is not None:
            keep.append(x)
        return x


class BartModel(Module):
    """The two halves of BART.

    Args:
        config: a `BartConfig`.
    """

    def __init__(self, config: BartConfig):
        super().__init__()
        self.shared = Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        self.encoder, self.decoder = BartStack(config, False), BartStack(config, True)


class BartForConditionalGeneration(Seq2SeqLM):
    """BART with a head over the vocabulary.

    Args:
        config: a `BartConfig`.
    """

    config_class = BartConfig
    prefix = "model"
    model_types = ("bart",)
    tied = {
        "model.encoder.embed_tokens.weight": "model.shared.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
        "lm_head.weight": "model.shared.weight",
    }

    final_logits_bias: Tensor | None

    def __init__(self, config: BartConfig):
        super().__init__()
        self.config = config
        self.model = BartModel(config)
        self.register_buffer("final_logits_bias", zeros(1, config.vocab_size))
        self.lm_head = Linear(config.d_model, config.vocab_size, bias=False)
        self.tie_weights()

    def fit(self, names: Iterable[str]) -> None:
        if "final_logits_bias" not in names:
            self.register_buffer("final_logits_bias", None)

    def written(self, input_ids: Tensor | None, labels: Tensor | None) -> Tensor:
        given = input_ids if labels is None else labels
        return super().written(None, given)

    def encode(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        given = input_ids if inputs_embeds is None else inputs_embeds
        assert given is not None
        mask = key_mask(attention_mask, given)
        return self.model.encoder(input_ids, mask, embedded=inputs_embeds, keep=keep)

    def decode(
        self, ids: Tensor, source: EncodedText, mask: Tensor | None = None, keep: list[Tensor] | None = None
    ) -> Tensor:
        seen = causal(ids, mask) if source.cache is None else None
        hidden = self.model.decoder(ids, seen, source, keep=keep)
        if source.cache is not None:
            source.cache.advance(ids.shape[1])
        return hidden

    def cross(self, encoded: Tensor) -> list[Heads]:
        layers: Any = self.model.decoder.layers
        return [layer.encoder_attn.keys(encoded) for layer in layers]

    def head(self, hidden: Tensor) -> Tensor:
        logits = self.lm_head(hidden)
        return logits if self.final_logits_bias is None else logits + self.final_logits_bias
