"""Qwen3-Next: gated delta rule or gated attention, then experts beside one that every token takes.

Qwen Team 2025, "Qwen3-Next"; Yang, Kautz and Hatamizadeh 2024, "Gated Delta Networks". Attribute paths are
the tensor names of its checkpoints, without the number of an expert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn.modules.linear import Linear
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from ..weights.fields import Field
from .experts import SparseCausalLM, SparseDecoderLayer
from .qwen2_moe import Qwen2MoeConfig
from .qwen3_5 import GatedDeltaNet, Qwen3_5DecoderLayer, Qwen3_5TextConfig, Qwen3_5TextModel


@dataclass(frozen=True)
class Qwen3NextConfig(Qwen3_5TextConfig, Qwen2MoeConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **Qwen2MoeConfig.table, **Qwen3_5TextConfig.table,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = Qwen2MoeConfig.renamed
    gguf_keys: ClassVar[Mapping[str, str]] = {}
    num_experts: int = 512
    num_experts_per_tok: int = 10
    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int | None = 512
    norm_topk_prob: bool = True


class JoinedDeltaNet(GatedDeltaNet):
    """The gated delta rule whose products are two; each has the rows of a key head beside each other."""

    def add_projections(self, config: Any) -> None:
        dim, heads = config.hidden_size, config.linear_num_value_heads
        self.in_proj_qkvz = Linear(dim, config.convolved + config.inner, bias=False)
        self.in_proj_ba = Linear(dim, 2 * heads, bias=False)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        c = self.config
        keys, each = c.linear_num_key_heads, c.linear_num_value_heads // c.linear_num_key_heads
        columns = [c.linear_key_head_dim] * 2 + [each * c.linear_value_head_dim] * 2
        joined = self.in_proj_qkvz(x).unflatten(-1, (keys, -1)).split(columns, -1)
        query, key, value, gate = (part.flatten(2) for part in joined)
        steps = self.in_proj_ba(x).unflatten(-1, (keys, 2, each)).transpose(2, 3)
        return gate, cat([query, key, value], -1), steps.flatten(2)


class Qwen3NextDecoderLayer(SparseDecoderLayer, Qwen3_5DecoderLayer):
    """A layer with the delta rule or attention, and with experts."""

    mixer_class = JoinedDeltaNet


class Qwen3NextModel(Qwen3_5TextModel):
    """A decoder with such layers."""

    layer_class = Qwen3NextDecoderLayer


class Qwen3NextForCausalLM(SparseCausalLM):
    """Qwen3-Next with a head over the vocabulary.

    Args:
        config: a `Qwen3NextConfig`.
    """

    config_class = Qwen3NextConfig
    model_class = Qwen3NextModel
    model_types = ("qwen3_next",)
    passed = ("mtp.",)
    points = {"q": None}
