"""Qwen3-MoE: Qwen3 with experts in most layers.

Qwen Team 2025, "Qwen3 technical report". Attribute paths are the tensor names of its checkpoints, without the
number of an expert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..weights.fields import Field
from .experts import SparseCausalLM
from .names import Names
from .qwen2_moe import Qwen2MoeConfig
from .qwen3 import Qwen3Config


@dataclass(frozen=True)
class Qwen3MoeConfig(Qwen2MoeConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        key: field for key, field in Qwen2MoeConfig.table.items() if not key.startswith("shared")
    }
    renamed: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    gguf_optional: ClassVar[Mapping[str, str]] = {
        key: value for key, value in Qwen2MoeConfig.gguf_optional.items() if not key.startswith("shared")
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"norm_topk_prob": True}
    names: ClassVar[Names] = Qwen3Config.names
    num_experts: int = 128
    num_experts_per_tok: int = 8
    moe_intermediate_size: int = 768
    shared_expert_intermediate_size: int | None = None
    rope_theta: float = 1e6
    attention_bias: bool = False

    @property
    def output_bias(self) -> bool:
        return self.attention_bias


class Qwen3MoeForCausalLM(SparseCausalLM):
    """Qwen3-MoE with a head over the vocabulary.

    Args:
        config: a `Qwen3MoeConfig`.
    """

    config_class = Qwen3MoeConfig
    model_types = ("qwen3_moe",)
    gguf_architectures = ("qwen3moe",)
