"""Qwen2-MoE: Qwen2 with experts in most layers, beside one that every token takes.

Qwen Team 2024, "Qwen1.5-MoE". Attribute paths are the tensor names of its checkpoints, without the number of
an expert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..weights.fields import FLAG, Field, listed, whole
from .experts import SparseCausalLM, check_experts
from .qwen2 import Qwen2Config

_COLUMNS = whole(1, 1 << 24)


@dataclass(frozen=True)
class Qwen2MoeConfig(Qwen2Config):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **Qwen2Config.table, "num_experts": whole(1, 65536), "num_experts_per_tok": whole(1, 65536),
        "moe_intermediate_size": _COLUMNS, "shared_expert_intermediate_size": _COLUMNS,
        "norm_topk_prob": FLAG, "decoder_sparse_step": whole(1, 4096),
        "mlp_only_layers": listed(whole(0, 4096), 4096), "sliding_window": whole(0),
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {"qkv_bias": "attention_bias", "num_local_experts": "num_experts"}
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **{key: value for key, value in Qwen2Config.gguf_keys.items() if key != "intermediate_size"},
        "num_experts": "expert_count",
        "num_experts_per_tok": "expert_used_count",
        "moe_intermediate_size": "expert_feed_forward_length",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        **Qwen2Config.gguf_optional,
        "intermediate_size": "feed_forward_length",
        "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
    }
    expert_names: ClassVar[tuple[str, str, str]] = ("gate_proj", "up_proj", "down_proj")
    num_experts: int = 60
    num_experts_per_tok: int = 4
    moe_intermediate_size: int = 1408
    shared_expert_intermediate_size: int | None = 5632
    norm_topk_prob: bool = False
    decoder_sparse_step: int = 1
    mlp_only_layers: list[int] | None = None

    def checked(self, where: str):
        config = super().checked(where)
        check_experts(where, self.num_experts_per_tok, self.num_experts)
        return config

    @property
    def expert_columns(self) -> int:
        """Columns between the products of an expert."""
        return self.moe_intermediate_size

    @property
    def shared_columns(self) -> int:
        """Columns of the expert that every token takes; 0 for none."""
        return self.shared_expert_intermediate_size or 0

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return layer not in (self.mlp_only_layers or ()) and (layer + 1) % self.decoder_sparse_step == 0


class Qwen2MoeForCausalLM(SparseCausalLM):
    """Qwen2-MoE with a head over the vocabulary.

    Args:
        config: a `Qwen2MoeConfig`.
    """

    config_class = Qwen2MoeConfig
    model_types = ("qwen2_moe",)
    gguf_architectures = ("qwen2moe",)
