"""Qwen3-Next: gated delta rule or gated attention, then experts beside one that every token takes.

Qwen Team 2025, "Qwen3-Next"; Yang, Kautz and Hatamizadeh 2024, "Gated Delta Networks". Attribute paths are
the tensor names of its checkpoints, without the number of an expert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..nn.modules.linear import Linear
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field
from .experts import SparseCausalLM, SparseDecoderLayer
from .qwen2_moe import Qwen2MoeConfig
from .qwen3_5 import (
    GatedDeltaNet,
    Qwen3_5DecoderLayer,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
    Qwen3_5TextModel,
)


@dataclass(frozen=True)
class Qwen3NextConfig(Qwen3_5TextConfig, Qwen2MoeConfig):
    """Fields are the keys of ``config.json``.

    A GGUF decides ``value_gates_apart``: it has the gates of values in a weight of their own, and all
    queries, keys and values one after another in the other, unless it is one of the first such files, which
    have ``ssm_in``.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **Qwen2MoeConfig.table, **Qwen3_5TextConfig.table, "value_gates_apart": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = Qwen2MoeConfig.renamed
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **{key: value for key, value in Qwen3_5TextConfig.gguf_keys.items() if key != "intermediate_size"},
        **Qwen2MoeConfig.gguf_keys,
    }
    gguf_optional: ClassVar[Mapping[str, str]] = Qwen2MoeConfig.gguf_optional
    gguf_settings: ClassVar[Mapping[str, Any]] = {
        "norms_from_one": False, "rates_are_logs": False, "norm_topk_prob": True, "value_gates_apart": True,
    }  # fmt: skip
    num_experts: int = 512
    num_experts_per_tok: int = 10
    moe_intermediate_size: int = 512
    shared_expert_intermediate_size: int | None = 512
    norm_topk_prob: bool = True
    value_gates_apart: bool = False

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        config = super().from_gguf(checkpoint)
        return replace(config, value_gates_apart="blk.0.ssm_in.weight" not in checkpoint)


class JoinedDeltaNet(GatedDeltaNet):
    """The gated delta rule whose products are two; each has the rows of a key head beside each other.

    In a GGUF the first one is two, whose rows are in the order in which they are used.
    """

    def add_projections(self, config: Any) -> None:
        dim, heads = config.hidden_size, config.linear_num_value_heads
        if config.value_gates_apart:
            self.in_proj_qkv = Linear(dim, config.convolved, bias=False)
            self.in_proj_z = Linear(dim, config.inner, bias=False)
        else:
            self.in_proj_qkvz = Linear(dim, config.convolved + config.inner, bias=False)
        self.in_proj_ba = Linear(dim, 2 * heads, bias=False)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        c = self.config
        keys, each = c.linear_num_key_heads, c.linear_num_value_heads // c.linear_num_key_heads
        steps = self.in_proj_ba(x).unflatten(-1, (keys, 2, each)).transpose(2, 3).flatten(2)
        if c.value_gates_apart:
            return self.in_proj_z(x), self.in_proj_qkv(x), steps
        columns = [c.linear_key_head_dim] * 2 + [each * c.linear_value_head_dim] * 2
        joined = self.in_proj_qkvz(x).unflatten(-1, (keys, -1)).split(columns, -1)
        query, key, value, gate = (part.flatten(2) for part in joined)
        return gate, cat([query, key, value], -1), steps


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
    gguf_architectures = ("qwen3next",)
    gguf_names = {
        **Qwen3_5ForCausalLM.gguf_names,
        "blk.{}.ssm_in": "model.layers.{}.linear_attn.in_proj_qkvz",
        "blk.{}.ssm_ba": "model.layers.{}.linear_attn.in_proj_ba",
    }
    passed = ("mtp.",)
    points = {"q": None}
