"""DeepSeek-V2: keys and values from a narrow latent (MLA), experts beside some that every token takes.

DeepSeek-AI 2024, "DeepSeek-V2". Attribute paths are the tensor names of its checkpoints, without the number
of an expert. The cache holds keys and values of the heads, not the latent. Files whose scores are scaled
with their positions (mscale_all_dim) or whose shares are normed (norm_topk_prob) are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import FormatError
from ..nn.modules.norm import RMSNorm
from ..ops.elementwise.comparison import where
from ..ops.index.sort import topk
from ..ops.norm.softmax import softmax
from ..ops.shape.creation import arange
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field, number, one_of, whole
from .attend import Attend
from .decoder import Attention, Decoder, FeedForward, add_linear, part
from .decoder_config import DecoderConfig
from .experts import Experts, Router, SparseCausalLM, SparseDecoderLayer, check_experts

_COUNT = whole(1, 65536)


@dataclass(frozen=True)
class DeepseekV2Config(DecoderConfig):
    """Fields are the keys of ``config.json``, but ``n_routed_experts`` is ``num_experts``."""

    table: ClassVar[Mapping[str, Field]] = {
        **{key: field for key, field in DecoderConfig.table.items() if key != "head_dim"},
        "attention_bias": FLAG, "mlp_bias": FLAG, "q_lora_rank": whole(1, 1 << 20),
        "kv_lora_rank": whole(1, 1 << 20), "qk_nope_head_dim": whole(1, 2048),
        "qk_rope_head_dim": whole(2, 2048), "v_head_dim": whole(1, 4096), "num_experts": _COUNT,
        "num_experts_per_tok": _COUNT, "n_shared_experts": whole(0, 1024),
        "moe_intermediate_size": whole(1, 1 << 24), "first_k_dense_replace": whole(0, 4096),
        "routed_scaling_factor": number(0, 1e6, above=True), "n_group": _COUNT,
        "topk_group": _COUNT, "topk_method": one_of("greedy", "group_limited_greedy"),
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "n_routed_experts": "num_experts",
        "num_local_experts": "num_experts",
    }
    expert_names: ClassVar[tuple[str, str, str]] = ("gate_proj", "up_proj", "down_proj")
    norm_topk_prob: ClassVar[bool] = False
    num_key_value_heads: int | None = None
    rope_interleaved: bool = True
    q_lora_rank: int | None = None
    kv_lora_rank: int = 512
    qk_nope_head_dim: int = 128
    qk_rope_head_dim: int = 64
    v_head_dim: int = 128
    num_experts: int = 64
    num_experts_per_tok: int = 6
    n_shared_experts: int = 2
    moe_intermediate_size: int = 1407
    first_k_dense_replace: int = 0
    routed_scaling_factor: float = 1.0
    n_group: int | None = None
    topk_group: int | None = None
    topk_method: str = "greedy"

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]):
        # What follows from others stands in newer files, too.
        follows = ("head_dim", "qk_head_dim", "moe_layer_freq", "aux_loss_alpha", "seq_aux", "scoring_func")
        return super().from_dict({k: v for k, v in keys.items() if k not in follows})

    def checked(self, where: str):
        config = super().checked(where)
        check_experts(where, self.num_experts_per_tok, self.num_experts)
        if self.kv_heads != self.num_attention_heads:
            raise FormatError(
                f"{where}: num_key_value_heads is {self.kv_heads} of {self.num_attention_heads}; every head "
                "has keys of its own here. The file is damaged."
            )
        if self.topk_method != "greedy" and (
            self.num_experts % (self.n_group or 1) or (self.topk_group or 1) > (self.n_group or 1)
        ):
            raise FormatError(
                f"{where}: {self.num_experts} experts in {self.n_group} groups, of which {self.topk_group} "
                "are taken, are not possible. The file is damaged."
            )
        return config

    @property
    def columns(self) -> int:
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def turned(self) -> int:
        return self.qk_rope_head_dim

    @property
    def value_columns(self) -> int:
        return self.v_head_dim

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return layer >= self.first_k_dense_replace


class LatentAttention(Attention):
    """Attention whose keys and values are made of a latent, beside a turned key that all heads share."""

    def __init__(self, config: DeepseekV2Config, layer: int):
        super().__init__(config, layer)
        self.attend = Attend(layer, config.columns**-0.5)

    def add_projections(self, config: DeepseekV2Config) -> None:
        dim, rank, heads, bias = config.hidden_size, config.q_lora_rank, self.heads, config.attention_bias
        self.rank, self.plain, self.turned = config.kv_lora_rank, config.qk_nope_head_dim, config.turned
        self.query_parts = ("q_proj",) if rank is None else ("q_a_proj", "q_a_layernorm", "q_b_proj")
        rows = heads * config.columns
        if rank is None:
            add_linear(self, config, "q_proj", dim, rows, False)
        else:
            add_linear(self, config, "q_a_proj", dim, rank, bias)
            self.q_a_layernorm = RMSNorm(rank, eps=1e-6)
            add_linear(self, config, "q_b_proj", rank, rows, False)
        add_linear(self, config, "kv_a_proj_with_mqa", dim, self.rank + self.turned, bias)
        self.kv_a_layernorm = RMSNorm(self.rank, eps=1e-6)
        both = self.plain + config.v_head_dim
        add_linear(self, config, "kv_b_proj", self.rank, heads * both, False)
        add_linear(self, config, "o_proj", heads * config.v_head_dim, dim, bias)

    def forward(self, x: Tensor, rotary: Any, cache: Any = None, mask: Tensor | None = None) -> Tensor:
        batch, time, _ = x.shape
        position = cache.length if cache is not None else 0
        query = x
        for name in self.query_parts:
            query = part(self, name, query)
        query = query.view(batch, time, self.heads, -1).transpose(1, 2)
        query = cat([query[..., : self.plain], rotary(query[..., self.plain :], position)], -1)
        latent, turned = part(self, "kv_a_proj_with_mqa", x).split([self.rank, self.turned], -1)
        both = part(self, "kv_b_proj", self.kv_a_layernorm(latent))
        both = both.view(batch, time, self.heads, -1).transpose(1, 2)
        shared = rotary(turned.unsqueeze(1), position).expand(-1, self.heads, -1, -1)
        key = cat([both[..., : self.plain], shared], -1)
        out = self.attend(query, key, both[..., self.plain :], cache, mask)
        return part(self, "o_proj", out.transpose(1, 2).reshape(batch, time, -1))


class DeepseekV2Router(Router):
    """A router that may choose groups of experts first: those with the most likely one."""

    def __init__(self, config: DeepseekV2Config):
        super().__init__(config)
        self.factor = config.routed_scaling_factor
        self.groups = config.n_group if config.topk_method != "greedy" else None
        self.taken_groups = config.topk_group or 1

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shares = softmax(self.logits(x), -1)
        if self.groups is not None:
            groups = shares.view(x.shape[0], self.groups, -1)
            _, best = topk(groups.amax(-1), self.taken_groups, -1)
            numbers = arange(self.groups, device=x.device)
            is_taken = (best.unsqueeze(-1) == numbers).any(1).unsqueeze(-1)
            shares = where(is_taken, groups, 0.0).reshape(shares.shape)
        shares, chosen = topk(shares, self.taken, -1)
        return shares * self.factor, chosen


class DeepseekV2MoE(FeedForward):
    """Experts that the router chooses, and one that every token takes."""

    def __init__(self, config: DeepseekV2Config):
        super(FeedForward, self).__init__()
        self.gate = DeepseekV2Router(config)
        columns = config.moe_intermediate_size
        self.experts = Experts(config, config.num_experts, columns, config.expert_names)
        self.has_shared = config.n_shared_experts > 0
        if self.has_shared:
            self.shared_experts = FeedForward(config, columns * config.n_shared_experts)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        shares, chosen = self.gate(flat)
        out = self.experts(flat, chosen, shares)
        return (out + self.shared_experts(flat) if self.has_shared else out).reshape(x.shape)


class DeepseekV2DecoderLayer(SparseDecoderLayer):
    """A layer with latent attention, and experts from some layer on."""

    attention_class = LatentAttention
    sparse_class = DeepseekV2MoE


class DeepseekV2Model(Decoder):
    """A decoder with DeepSeek-V2's layers."""

    layer_class = DeepseekV2DecoderLayer


class DeepseekV2ForCausalLM(SparseCausalLM):
    """DeepSeek-V2 with a head over the vocabulary.

    Args:
        config: a `DeepseekV2Config`.
    """

    config_class = DeepseekV2Config
    model_class = DeepseekV2Model
    model_types = ("deepseek_v2",)
    points = {"q": None, "k": None}
