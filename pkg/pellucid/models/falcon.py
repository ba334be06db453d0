"""Falcon: rotary positions, few key heads, no biases, one or two norms for both branches of a layer.

Almazrouei et al. 2023, "The Falcon series of open language models". Attribute paths are the tensor names of
its checkpoints. Falcon-RW, whose scores have a bias by distance, is refused (``alibi``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, whole
from .decoder import Decoder, DecoderLayer, HeadwiseAttention
from .decoder_config import FEED_FORWARD, KEY_HEADS, ROTARY, LayerNormConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class FalconConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``, but ``ffn_hidden_size`` is ``intermediate_size`` and
    ``num_kv_heads`` is ``num_key_value_heads``. ``joined_by_head`` is not set for GGUF files."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **FEED_FORWARD, **KEY_HEADS, **ROTARY, "mlp_bias": FLAG, "multi_query": FLAG,
        "new_decoder_architecture": FLAG, "parallel_attn": FLAG, "num_ln_in_parallel_attn": whole(1, 2),
        "joined_by_head": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "n_head_kv": "num_key_value_heads",
        "num_kv_heads": "num_key_value_heads",
        "ffn_hidden_size": "intermediate_size",
        "activation": "hidden_act",
        "bias": "mlp_bias",
        "layer_norm_epsilon": "layer_norm_eps",
    }
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **LayerNormConfig.gguf_keys,
        "num_key_value_heads": "attention.head_count_kv",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {"rope_theta": "rope.freq_base"}
    gguf_settings: ClassVar[Mapping[str, Any]] = {"joined_by_head": False}
    names: ClassVar[Names] = Names(
        decoder="transformer", embedding="word_embeddings", layers="h", norm="ln_f",
        attention="self_attention", joined="query_key_value", output="dense", gate="", up="dense_h_to_4h",
        down="dense_4h_to_h",
    )  # fmt: skip
    intermediate_size: int | None = None  # type: ignore[assignment]
    hidden_act: str = "gelu"
    mlp_bias: bool = False
    tie_word_embeddings: bool = True
    multi_query: bool = True
    new_decoder_architecture: bool = False
    parallel_attn: bool = True
    num_ln_in_parallel_attn: int | None = None
    joined_by_head: bool = True

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        config = super().from_gguf(checkpoint)
        return replace(config, new_decoder_architecture="blk.0.attn_norm_2.weight" in checkpoint)

    def checked(self, where: str):
        if self.intermediate_size is None:
            return replace(self, intermediate_size=4 * self.hidden_size).checked(where)
        return replace(super().checked(where), attention_bias=self.mlp_bias)

    @property
    def kv_heads(self) -> int:
        if not self.new_decoder_architecture and self.joined_by_head:
            return 1 if self.multi_query else self.num_attention_heads
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def is_parallel(self) -> bool:
        return self.parallel_attn or self.new_decoder_architecture

    @property
    def module_names(self) -> Names:
        if not self.is_parallel:
            return self.names
        if self.new_decoder_architecture and self.num_ln_in_parallel_attn != 1:
            return replace(self.names, before_attention="ln_attn", before_mlp="ln_mlp")
        return replace(self.names, before_mlp="")


class FalconDecoderLayer(DecoderLayer):
    """A layer whose joined product goes by key heads."""

    attention_class = HeadwiseAttention


class FalconModel(Decoder):
    """A decoder with Falcon's layers."""

    layer_class = FalconDecoderLayer


class FalconForCausalLM(CausalLM):
    """Falcon with a head over the vocabulary.

    Args:
        config: a `FalconConfig`.
    """

    config_class = FalconConfig
    model_class = FalconModel
    model_types = ("falcon",)
    gguf_architectures = ("falcon",)

    def gguf_paths(self) -> dict[str, str]:
        paths, layer = super().gguf_paths(), f"{self.layers_path}.{{}}."
        if self.config.module_names.before_mlp == "ln_mlp":
            paths |= {"blk.{}.attn_norm": layer + "ln_mlp", "blk.{}.attn_norm_2": layer + "ln_attn"}
        return paths
