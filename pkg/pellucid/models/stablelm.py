"""StableLM: Llama with LayerNorm, a quarter of each head turned, and maybe parallel residuals.

Bellagamba et al. 2024, "Stable LM 2 1.6B technical report". Attribute paths are the tensor names of its
checkpoints. Norms of each head's own (qk_layernorm) are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ..weights.fields import FLAG, Field
from .decoder_config import FEED_FORWARD, KEY_HEADS, PART_TURNED, ROTARY, LayerNormConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class StableLmConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **FEED_FORWARD, **KEY_HEADS, **ROTARY, **PART_TURNED,
        "attention_bias": FLAG, "use_parallel_residual": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {"use_qkv_bias": "attention_bias"}
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "attention.head_count_kv",
        "rope_theta": "rope.freq_base",
        "use_parallel_residual": "use_parallel_residual",
    }
    is_gated: ClassVar[bool] = True
    hidden_act: str = "silu"
    max_position_embeddings: int = 4096
    partial_rotary_factor: float = 0.25
    attention_bias: bool = False
    mlp_bias: bool = False
    use_parallel_residual: bool = False

    @property
    def is_parallel(self) -> bool:
        return self.use_parallel_residual

    @property
    def module_names(self) -> Names:
        return replace(self.names, before_mlp="") if self.use_parallel_residual else self.names

    @property
    def output_bias(self) -> bool:
        return False


class StableLmForCausalLM(CausalLM):
    """StableLM with a head over the vocabulary.

    Args:
        config: a `StableLmConfig`.
    """

    config_class = StableLmConfig
    model_types = ("stablelm",)
    gguf_architectures = ("stablelm",)
