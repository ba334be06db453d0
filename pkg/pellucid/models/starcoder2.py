"""StarCoder2: rotary positions and shared key heads with LayerNorm, biases, a plain GELU and a window.

Lozhkov et al. 2024, "StarCoder 2 and The Stack v2". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ..weights.fields import FLAG, Field
from .decoder_config import FEED_FORWARD, KEY_HEADS, ROTARY, WINDOW, LayerNormConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class Starcoder2Config(LayerNormConfig):
    """Fields are the keys of ``config.json``, but ``norm_epsilon`` is ``layer_norm_eps``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **FEED_FORWARD, **KEY_HEADS, **ROTARY, **WINDOW,
        "attention_bias": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {"norm_epsilon": "layer_norm_eps", "use_bias": "attention_bias"}
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "attention.head_count_kv",
        "rope_theta": "rope.freq_base",
        "sliding_window": "attention.sliding_window",
    }
    names: ClassVar[Names] = replace(LayerNormConfig.names, gate="", up="c_fc", down="c_proj")
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 4096
    num_key_value_heads: int | None = 2
    tie_word_embeddings: bool = True

    def checked(self, where: str):
        return replace(super().checked(where), mlp_bias=self.attention_bias)


class Starcoder2ForCausalLM(CausalLM):
    """StarCoder2 with a head over the vocabulary.

    Args:
        config: a `Starcoder2Config`.
    """

    config_class = Starcoder2Config
    model_types = ("starcoder2",)
    gguf_architectures = ("starcoder2",)
