"""Seed-OSS: Llama whose queries, keys and values have biases, and heads a width of their own.

ByteDance Seed 2025, "Seed-OSS". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..weights.fields import FLAG, Field
from .decoder_config import DecoderConfig
from .language_model import CausalLM


@dataclass(frozen=True)
class SeedOssConfig(DecoderConfig):
    """Fields are the keys of ``config.json``; ``attention_out_bias`` is of the product behind attention."""

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table, "attention_bias": FLAG, "attention_out_bias": FLAG, "mlp_bias": FLAG,
    }  # fmt: skip
    vocab_size: int = 155136
    intermediate_size: int = 27648
    num_hidden_layers: int = 64
    num_attention_heads: int = 80
    num_key_value_heads: int | None = 8
    head_dim: int | None = 128
    max_position_embeddings: int = 524288
    attention_bias: bool = True
    attention_out_bias: bool = False

    @property
    def output_bias(self) -> bool:
        return self.attention_out_bias


class SeedOssForCausalLM(CausalLM):
    """Seed-OSS with a head over the vocabulary.

    Args:
        config: a `SeedOssConfig`.
    """

    config_class = SeedOssConfig
    model_types = ("seed_oss",)
    gguf_architectures = ("seed_oss",)
    gguf_names = {"blk.{}.post_attention_norm": "model.layers.{}.post_attention_layernorm"}
