"""Mixtral: Mistral with experts in every layer.

Jiang et al. 2024, "Mixtral of experts". Attribute paths are the tensor names of its checkpoints, without the
number of an expert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..weights.fields import Field, whole
from .decoder_config import WINDOW, DecoderConfig
from .experts import SparseCausalLM, check_experts
from .names import Names


@dataclass(frozen=True)
class MixtralConfig(DecoderConfig):
    """Fields are the keys of ``config.json``, but ``num_local_experts`` is ``num_experts``."""

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table, **WINDOW, "num_experts": whole(1, 65536),
        "num_experts_per_tok": whole(1, 65536),
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    neutral: ClassVar[Mapping[str, Any]] = {"output_router_logits": False}
    names: ClassVar[Names] = replace(DecoderConfig.names, mlp="block_sparse_moe")
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **DecoderConfig.gguf_keys,
        "num_experts": "expert_count",
        "num_experts_per_tok": "expert_used_count",
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"rope_interleaved": True}
    expert_names: ClassVar[tuple[str, str, str]] = ("w1", "w3", "w2")
    norm_topk_prob: ClassVar[bool] = True
    shared_columns: ClassVar[int] = 0
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    rope_theta: float = 1e6
    num_experts: int = 8
    num_experts_per_tok: int = 2

    def checked(self, where: str):
        config = super().checked(where)
        check_experts(where, self.num_experts_per_tok, self.num_experts)
        return config

    @property
    def expert_columns(self) -> int:
        """Columns between the products of an expert."""
        return self.intermediate_size

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has experts: all have."""
        return True


class MixtralForCausalLM(SparseCausalLM):
    """Mixtral with a head over the vocabulary.

    Args:
        config: a `MixtralConfig`.
    """

    config_class = MixtralConfig
    model_types = ("mixtral",)
    gguf_architectures = ("llama with experts",)
    gguf_like = "llama"
    gguf_experts: ClassVar[dict[str, str]] = {
        "ffn_gate_inp": "gate",
        "ffn_gate_exps": "experts.w1",
        "ffn_up_exps": "experts.w3",
        "ffn_down_exps": "experts.w2",
    }
