"""Phi-3: Llama whose queries, keys and values are one product, and so are gate and up.

Abdin et al. 2024, "Phi-3 technical report". Attribute paths are the tensor names of its checkpoints. Files
with the factors of long contexts (longrope) are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..nn.modules.linear import Linear
from ..tensors.tensor import Tensor
from ..weights.fields import Field, whole
from .language_model import CausalLM
from .llama import (
    LlamaAttention,
    LlamaConfig,
    LlamaDecoderLayer,
    LlamaForCausalLM,
    LlamaMLP,
    LlamaModel,
)


@dataclass(frozen=True)
class Phi3Config(LlamaConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LlamaConfig.table,
        "original_max_position_embeddings": whole(1),
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        **LlamaConfig.gguf_optional,
        "sliding_window": "attention.sliding_window",
    }
    gguf_interleaved: ClassVar[bool] = False
    original_max_position_embeddings: int | None = None


class Phi3Attention(LlamaAttention):
    """Attention whose queries, keys and values are columns of one product.

    Args:
        config: the model's.
        layer: which layer of the cache is its own.
    """

    def __init__(self, config: Phi3Config, layer: int):
        super().__init__(config, layer)
        del self.q_proj, self.k_proj, self.v_proj
        self.columns = [n * self.head_dim for n in (self.heads, self.kv_heads, self.kv_heads)]
        self.qkv_proj = Linear(config.hidden_size, sum(self.columns), bias=config.attention_bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (self.split(part) for part in self.qkv_proj(x).split(self.columns, -1))
        return query, key, value


class Phi3MLP(LlamaMLP):
    """Gated feed-forward whose gate and up are halves of one product.

    Args:
        config: the model's.
    """

    def __init__(self, config: Phi3Config):
        super().__init__(config)
        del self.gate_proj, self.up_proj
        self.gate_up_proj = Linear(config.hidden_size, 2 * config.intermediate_size, bias=config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, -1)
        return self.down_proj(self.activation(gate) * up)


class Phi3DecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Phi-3's attention and feed-forward."""

    attention_class = Phi3Attention
    mlp_class = Phi3MLP


class Phi3Model(LlamaModel):
    """A Llama model with Phi-3's layers."""

    layer_class = Phi3DecoderLayer


class Phi3ForCausalLM(CausalLM):
    """Phi-3 with a head over the vocabulary.

    Args:
        config: a `Phi3Config`.
    """

    config_class = Phi3Config
    model_class = Phi3Model
    model_types = ("phi3",)
    gguf_architectures = ("phi3",)
    points = {"q": "{attention}.qkv_proj:0", "k": "{attention}.qkv_proj:1", "mlp_pre": None}
    gguf_names = {
        **LlamaForCausalLM.gguf_names,
        "blk.{}.attn_qkv": "model.layers.{}.self_attn.qkv_proj",
        "blk.{}.ffn_up": "model.layers.{}.mlp.gate_up_proj",
    }
