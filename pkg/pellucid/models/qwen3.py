"""Qwen3: Llama with a norm over each head's queries and keys.

Qwen Team 2025, "Qwen3 technical report". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..nn.modules.norm import RMSNorm
from ..tensors.tensor import Tensor
from .language_model import CausalLM
from .llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM, LlamaModel
from .qwen2 import Qwen2Config


@dataclass(frozen=True)
class Qwen3Config(Qwen2Config):
    """Fields are the keys of ``config.json``."""

    head_dim: int | None = 128
    rope_theta: float = 1e6
    attention_bias: bool = False


class Qwen3Attention(LlamaAttention):
    """Attention whose queries and keys are normed head by head before they are turned.

    Args:
        config: the model's.
        layer: which layer of the cache is its own.
    """

    def __init__(self, config: Qwen3Config, layer: int):
        super().__init__(config, layer)
        self.q_norm = RMSNorm(self.head_dim, eps=config.rms_norm_eps)
        self.k_norm = RMSNorm(self.head_dim, eps=config.rms_norm_eps)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, time, _ = x.shape
        query = self.q_norm(self.q_proj(x).view(batch, time, -1, self.head_dim)).transpose(1, 2)
        key = self.k_norm(self.k_proj(x).view(batch, time, -1, self.head_dim)).transpose(1, 2)
        return query, key, self.split(self.v_proj(x))


class Qwen3DecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Qwen3's attention."""

    attention_class = Qwen3Attention


class Qwen3Model(LlamaModel):
    """A Llama model with Qwen3's layers."""

    layer_class = Qwen3DecoderLayer


class Qwen3ForCausalLM(CausalLM):
    """Qwen3 with a head over the vocabulary.

    Args:
        config: a `Qwen3Config`.
    """

    config_class = Qwen3Config
    model_class = Qwen3Model
    model_types = ("qwen3",)
    gguf_architectures = ("qwen3",)
    gguf_names = {
        **LlamaForCausalLM.gguf_names,
        "blk.{}.attn_q_norm": "model.layers.{}.self_attn.q_norm",
        "blk.{}.attn_k_norm": "model.layers.{}.self_attn.k_norm",
    }
