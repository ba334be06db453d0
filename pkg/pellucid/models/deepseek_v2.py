"""DeepSeek-V2: keys and values from a narrow latent (MLA), experts beside some that every token takes.

DeepSeek-AI 2024, "DeepSeek-V2". Attribute paths are the tensor names of its checkpoints, without the number
of an expert. The cache holds keys and values of the heads, not the latent. Files whose shares are normed
(norm_topk_prob) are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..errors import FormatError
from ..nn import functional as F
from ..nn.modules.module import Module
from ..nn.modules.norm import RMSNorm
from ..nn.parameter import Parameter
from ..ops.elementwise.comparison import where
from ..ops.index.sort import topk
from ..ops.matmul.dense import matmul
from ..ops.norm.softmax import softmax
from ..ops.shape.creation import arange, empty
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, check, number, one_of, whole
from .attend import Attend
from .decoder import Attention, Decoder, FeedForward, add_linear, part
from .decoder_config import DecoderConfig
from .experts import Experts, Router, SparseCausalLM, SparseDecoderLayer, check_experts
from .rotary import kind_of, yarn_scale

_COUNT = whole(1, 65536)
# Keys of a GGUF that are no field.
_GGUF = {
    "attention.key_length": _COUNT, "attention.value_length": _COUNT, "attention.key_length_mla": _COUNT,
    "attention.value_length_mla": _COUNT, "expert_gating_func": whole(0, 100), "expert_weights_norm": FLAG,
    "rope.scaling.yarn_log_multiplier": number(0, 1e3),
}  # fmt: skip


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
        "topk_group": _COUNT, "keys_apart": FLAG, "topk_method": one_of("greedy", "group_limited_greedy"),
    }  # fmt: skip
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **DecoderConfig.gguf_keys,
        "kv_lora_rank": "attention.kv_lora_rank",
        "qk_rope_head_dim": "rope.dimension_count",
        "num_experts": "expert_count",
        "num_experts_per_tok": "expert_used_count",
        "moe_intermediate_size": "expert_feed_forward_length",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "q_lora_rank": "attention.q_lora_rank",
        "rope_theta": "rope.freq_base",
        "n_shared_experts": "expert_shared_count",
        "first_k_dense_replace": "leading_dense_block_count",
        "routed_scaling_factor": "expert_weights_scale",
        "n_group": "expert_group_count",
        "topk_group": "expert_group_used_count",
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"keys_apart": True}
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
    keys_apart: bool = False

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        metadata = checkpoint.metadata
        check(checkpoint.name, metadata, _GGUF, prefix=prefix)
        gate, normed = (metadata.get(prefix + key) for key in ("expert_gating_func", "expert_weights_norm"))
        if normed or gate not in (None, 1):
            raise FormatError(
                f"{checkpoint.name}: {prefix}expert_gating_func is {gate} and {prefix}expert_weights_norm "
                f"{normed}. Experts of DeepSeek-V3 are shared otherwise; DeepSeek-V2 and its Lite are read."
            )
        # Files whose cache may hold the latent say the heads' columns by keys of their own.
        key, value = (
            metadata.get(f"{prefix}attention.{kind}_length_mla")
            or metadata.get(f"{prefix}attention.{kind}_length")
            for kind in ("key", "value")
        )
        if key is None or value is None:
            raise FormatError(
                f"{checkpoint.name}: {prefix}attention.key_length or value_length is missing; they say how "
                "many columns heads have. The file is damaged."
            )
        in_groups = (metadata.get(f"{prefix}expert_group_count") or 1) > 1
        return {
            "qk_nope_head_dim": key - metadata[f"{prefix}rope.dimension_count"],
            "v_head_dim": value,
            "topk_method": "group_limited_greedy" if in_groups else "greedy",
        }

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        config, prefix = super().from_gguf(checkpoint), f"{checkpoint.metadata['general.architecture']}."
        share = 10 * (checkpoint.metadata.get(f"{prefix}rope.scaling.yarn_log_multiplier") or 0)
        scaling = config.rope_scaling and {**config.rope_scaling, "mscale": share, "mscale_all_dim": share}
        # The first files have both in one weight, as folders do.
        apart = "blk.0.attn_kv_b.weight" not in checkpoint
        return replace(config, num_key_value_heads=None, rope_scaling=scaling, keys_apart=apart)

    def to_gguf(self) -> dict[str, Any]:
        keys = super().to_gguf() | {"expert_weights_norm": False, "expert_gating_func": 1}
        shared = {"key": self.kv_lora_rank + self.turned, "value": self.kv_lora_rank}
        own = {"key": self.columns, "value": self.v_head_dim}
        keys |= {f"attention.{kind}_length": count for kind, count in shared.items()}
        keys |= {f"attention.{kind}_length_mla": count for kind, count in own.items()}
        keys["attention.head_count_kv"] = 1
        if self.topk_method == "greedy":
            keys = {key: value for key, value in keys.items() if not key.startswith("expert_group")}
        return keys

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

    @property
    def scale(self) -> float:
        """Factor of scores, larger where YaRN spreads positions (``mscale_all_dim``)."""
        scaling = self.rotary("rotary_emb").scaling
        share = scaling.get("mscale_all_dim") if kind_of(scaling) == "yarn" else None
        return self.columns**-0.5 * (yarn_scale(scaling, share) ** 2 if share else 1.0)

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer has experts."""
        return layer >= self.first_k_dense_replace


class KeysOfLatent(Module):
    """The keys of each head from the latent, by weights that a GGUF has the other way round.

    Args:
        heads: how many.
        rank: columns of the latent.
        columns: of a head's key.

    Attributes:
        weight: (heads * rank, columns), those of a head beside each other; float or quantized.
    """

    def __init__(self, heads: int, rank: int, columns: int):
        super().__init__()
        self.heads, self.transposed_parts = heads, heads
        self.weight = Parameter(empty(heads * rank, columns).normal_(0, 0.02))

    def forward(self, latent: Tensor) -> Tensor:
        """(batch, time, rank) to (batch, heads, time, columns)."""
        rows = arange(self.weight.shape[0], device=latent.device).view(self.heads, -1)
        return matmul(latent.unsqueeze(1), F.embedding(rows, self.weight))


class LatentAttention(Attention):
    """Attention whose keys and values are made of a latent, beside a turned key that all heads share."""

    def __init__(self, config: DeepseekV2Config, layer: int):
        super().__init__(config, layer)
        self.attend = Attend(layer, config.scale)

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
        self.keys_apart, values = config.keys_apart, config.v_head_dim
        if self.keys_apart:
            self.k_b_proj = KeysOfLatent(heads, self.rank, self.plain)
            add_linear(self, config, "v_b_proj", self.rank, heads * values, False)
        else:
            add_linear(self, config, "kv_b_proj", self.rank, heads * (self.plain + values), False)
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
        own, value = self.expand(self.kv_a_layernorm(latent))
        shared = rotary(turned.unsqueeze(1), position).expand(-1, self.heads, -1, -1)
        out = self.attend(query, cat([own, shared], -1), value, cache, mask)
        return part(self, "o_proj", out.transpose(1, 2).reshape(batch, time, -1))

    def expand(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Keys without the turned columns, and values, of the heads: (batch, heads, time, columns) each."""
        name = "v_b_proj" if self.keys_apart else "kv_b_proj"
        made = part(self, name, latent).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        if self.keys_apart:
            return part(self, "k_b_proj", latent), made
        return made[..., : self.plain], made[..., self.plain :]


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
    gguf_architectures = ("deepseek2",)
    gguf_names = {
        f"blk.{{}}.attn_{name}": f"model.layers.{{}}.self_attn.{path}"
        for name, path in {
            "q_a": "q_a_proj", "q_a_norm": "q_a_layernorm", "q_b": "q_b_proj",
            "kv_a_mqa": "kv_a_proj_with_mqa", "kv_a_norm": "kv_a_layernorm", "kv_b": "kv_b_proj",
            "k_b": "k_b_proj", "v_b": "v_b_proj",
        }.items()
    }  # fmt: skip
    gguf_experts: ClassVar[dict[str, str]] = {
        name: path.replace("shared_expert.", "shared_experts.")
        for name, path in SparseCausalLM.gguf_experts.items()
        if name != "ffn_gate_inp_shexp"
    }
    points = {"q": None, "k": None}

    def gguf_shape(self, path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        heads = self.config.num_attention_heads
        if path.endswith(("k_b_proj.weight", "v_b_proj.weight")):
            return heads, shape[0] // heads, shape[1]
        return super().gguf_shape(path, shape)
