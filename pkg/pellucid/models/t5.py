"""T5: an encoder and a decoder with relative positions, norms without means, and attention without a scale.

Raffel et al. 2020, "Exploring the limits of transfer learning with a unified text-to-text transformer".
Attribute paths are the tensor names of its checkpoints. Serves T5 1.0 and 1.1, Flan-T5 and mT5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..nn import functional as F
from ..nn.modules.container import ModuleList
from ..nn.modules.dropout import Dropout
from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..ops.elementwise.comparison import where
from ..ops.shape.creation import arange
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .activations import activation
from .encoder import key_mask, split_heads
from .relative import UNSEEN, additive, buckets, relative_bias
from .seq2seq import EncodedText, Heads, Seq2SeqCache, Seq2SeqLM, causal
from .t5_config import T5Config, gguf_names


class T5Attention(Module):
    """Attention of heads, without a scale.

    Args:
        config: the model's.
        relative: whether this layer has the table of relative positions, which all layers use.
    """

    def __init__(self, config: T5Config, relative: bool = False):
        super().__init__()
        inner = config.num_heads * config.d_kv
        self.q, self.k, self.v = (Linear(config.d_model, inner, bias=False) for _ in range(3))
        self.o, self.heads = Linear(inner, config.d_model, bias=False), config.num_heads
        if relative:
            self.relative_attention_bias = Embedding(config.relative_attention_num_buckets, self.heads)
        self.rate = config.dropout_rate

    def keys(self, x: Tensor) -> Heads:
        """Keys and values: (batch, heads, time, d_kv) each."""
        return split_heads(self.k(x), self.heads), split_heads(self.v(x), self.heads)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        query, rate = split_heads(self.q(x), self.heads), self.rate if self.training else 0.0
        out = F.scaled_dot_product_attention(query, keys, values, attn_mask=bias, dropout_p=rate, scale=1.0)
        return self.o(out.transpose(1, 2).reshape(*x.shape[:2], -1))


class T5SelfAttention(Module):
    """Attention to what is in the text itself."""

    def __init__(self, config: T5Config, relative: bool):
        super().__init__()
        self.SelfAttention, self.layer_norm = T5Attention(config, relative), config.norm()
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, x: Tensor, bias: Tensor | None, source: EncodedText | None, number: int) -> Tensor:
        h = self.layer_norm(x)
        keys, values = self.SelfAttention.keys(h)
        if source is not None and source.cache is not None:
            source.cache.write(number, keys, values)
            keys, values = source.cache.keys[number], source.cache.values[number]
        return x + self.dropout(self.SelfAttention(h, keys, values, bias))


class T5CrossAttention(Module):
    """Attention to the encoded text."""

    def __init__(self, config: T5Config):
        super().__init__()
        self.EncDecAttention, self.layer_norm = T5Attention(config), config.norm()
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, x: Tensor, bias: Tensor | None, source: EncodedText, number: int) -> Tensor:
        attention = self.EncDecAttention
        found = attention.keys(source.encoded) if source.encoded is not None else None
        keys, values = found or source.cache.cross[number]  # type: ignore[union-attr]
        return x + self.dropout(attention(self.layer_norm(x), keys, values, bias))


class T5DenseActDense(Module):
    """``wo(activation(wi(x)))``, or with a gate ``wo(activation(wi_0(x)) * wi_1(x))``."""

    wi: Linear
    wi_0: Linear
    wi_1: Linear

    def __init__(self, config: T5Config):
        super().__init__()
        self.gated = config.is_gated
        for name in ("wi_0", "wi_1") if self.gated else ("wi",):
            setattr(self, name, Linear(config.d_model, config.d_ff, bias=False))
        self.wo, self.dropout = Linear(config.d_ff, config.d_model, bias=False), Dropout(config.dropout_rate)
        self.activation = activation(config.activation)

    def forward(self, x: Tensor) -> Tensor:
        h = self.activation(self.wi_0(x)) * self.wi_1(x) if self.gated else self.activation(self.wi(x))
        return self.wo(self.dropout(h))


class T5LayerFF(Module):
    """The feed-forward beside its residual."""

    def __init__(self, config: T5Config):
        super().__init__()
        self.DenseReluDense, self.layer_norm = T5DenseActDense(config), config.norm()
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.DenseReluDense(self.layer_norm(x)))


class T5Block(Module):
    """Attention to itself, in a decoder to the text, and a feed-forward.

    Args:
        config: the model's.
        number: of the layer; the first has the table of relative positions.
        decodes: whether it is a decoder's.
    """

    def __init__(self, config: T5Config, number: int, decodes: bool):
        super().__init__()
        cross = [T5CrossAttention(config)] if decodes else []
        self.layer = ModuleList([T5SelfAttention(config, number == 0), *cross, T5LayerFF(config)])
        self.number = number

    def forward(
        self, x: Tensor, bias: Tensor | None, source: EncodedText | None, seen: Tensor | None
    ) -> Tensor:
        x = self.layer[0](x, bias, source, self.number)
        if source is not None:
            x = self.layer[1](x, seen, source, self.number)
        return self.layer[-1](x)


class T5Stack(Module):
    """The layers of an encoder or a decoder.

    Args:
        config: the model's.
        layers: how many.
        decodes: whether it is a decoder.
    """

    def __init__(self, config: T5Config, layers: int, decodes: bool):
        super().__init__()
        self.embed_tokens = Embedding(config.vocab_size, config.d_model)
        self.block = ModuleList([T5Block(config, k, decodes) for k in range(layers)])
        self.final_layer_norm, self.dropout = config.norm(), Dropout(config.dropout_rate)
        self.farthest, self.decodes = config.relative_attention_max_distance, decodes

    @property
    def table(self) -> Embedding:
        """What relative positions add to scores."""
        return self.block[0].layer[0].SelfAttention.relative_attention_bias

    def forward(
        self,
        x: Tensor,
        seen: Tensor | None,
        source: EncodedText | None = None,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        x, time = self.dropout(x), x.shape[1]
        if source is not None and source.cache is not None:
            bias = _bias_in_cache(self.table, source.cache, time)
        else:
            bias = relative_bias(self.table, time, self.farthest, not self.decodes) + additive(seen)
        text = additive(source.seen) if source is not None and source.seen is not None else None
        for block in self.block:
            if keep is not None:
                keep.append(x)
            x = block(x, bias, source, text)
        x = self.dropout(self.final_layer_norm(x))
        if keep is not None:
            keep.append(x)
        return x


class T5Cache(Seq2SeqCache):
    """A cache that also has the bucket of every distance to a position before.

    Args:
        config, args, device: as in `Seq2SeqCache`.
    """

    def __init__(self, config: T5Config, *args: Any, device: Any = None):
        super().__init__(config, *args, device=device)
        # All of the memory takes part in products, the unfilled with weights of 0.
        for x in (*self.keys, *self.values):
            x.zero_()
        farthest, count = config.relative_attention_max_distance, config.relative_attention_num_buckets
        found = buckets(-np.arange(self.capacity), count, farthest, False)
        self.buckets = tensor(found, device=self.keys[0].device)

    @property
    def memory(self) -> list[Tensor]:
        return [*super().memory, self.buckets]


def _bias_in_cache(table: Embedding, cache: Seq2SeqCache, time: int) -> Tensor:
    """What is added to the scores of new positions with all of a cache: (1, heads, time, capacity).

    The position is a number of the launches, so that steps of generation are one program.
    """
    assert isinstance(cache, T5Cache)
    device = cache.buckets.device
    back = (arange(time, device=device) + cache.length).unsqueeze(1) - arange(cache.capacity, device=device)
    bias = table(cache.buckets[back.clamp(min=0)]).permute(2, 0, 1)
    return where(back >= 0, bias, UNSEEN).unsqueeze(0)


class T5ForConditionalGeneration(Seq2SeqLM):
    """T5 with a head over the vocabulary.

    Args:
        config: a `T5Config`.
    """

    config_class = T5Config
    cache_class = T5Cache
    model_types = ("t5", "mt5")
    gguf_architectures = ("t5",)
    tied = {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
        "lm_head.weight": "shared.weight",
    }

    def __init__(self, config: T5Config):
        super().__init__()
        self.config = config
        self.shared = Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, config.num_layers, False)
        self.decoder = T5Stack(config, config.num_decoder_layers or config.num_layers, True)
        self.lm_head = Linear(config.d_model, config.vocab_size, bias=False)
        self.has_head = not config.tie_word_embeddings
        self.tie_weights()

    def gguf_paths(self) -> Mapping[str, str]:
        return gguf_names(self.config.is_gated)

    def ties(self) -> Mapping[str, str]:
        return {path: to for path, to in self.tied.items() if path != "lm_head.weight" or not self.has_head}

    def gguf_ties(self) -> Mapping[str, str]:
        # A file without a head is one of T5 1.0, whose head is given smaller states.
        kept = () if self.config.is_scaled else ("lm_head.weight",)
        return {path: to for path, to in self.ties().items() if path not in kept}

    def paths(self, names: Iterable[str]) -> dict[str, str]:
        names = [n for n in names if not n.endswith("EncDecAttention.relative_attention_bias.weight")]
        # Files of T5 1.1 have a head of their own, whether or not their configuration says so.
        self.has_head = "lm_head.weight" in names
        return super().paths(names)

    def encode(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        x = self.shared(input_ids) if inputs_embeds is None else inputs_embeds
        return self.encoder(x, key_mask(attention_mask, x), None, keep)

    def decode(
        self, ids: Tensor, source: EncodedText, mask: Tensor | None = None, keep: list[Tensor] | None = None
    ) -> Tensor:
        seen = causal(ids, mask) if source.cache is None else None
        hidden = self.decoder(self.shared(ids), seen, source, keep)
        if source.cache is not None:
            source.cache.advance(ids.shape[1])
        return hidden

    def cross(self, encoded: Tensor) -> list[Heads]:
        return [block.layer[1].EncDecAttention.keys(encoded) for block in self.decoder.block]

    def head(self, hidden: Tensor) -> Tensor:
        return self.lm_head(hidden * self.config.d_model**-0.5 if self.config.is_scaled else hidden)
