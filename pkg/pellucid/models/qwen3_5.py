"""Qwen3.5, the text model: three layers of gated delta rule, then one of gated attention.

Qwen Team 2025, "Qwen3-Next"; Yang, Kautz and Hatamizadeh 2024, "Gated Delta Networks". Attribute paths are
the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..nn import functional as F
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import RMSNorm
from ..nn.parameter import Parameter
from ..ops.recurrence.delta_rule import gated_delta_rule
from ..ops.shape.creation import empty, ones
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, check, listed, one_of, whole
from .decoder import Attention, Decoder, DecoderLayer, add_linear, part
from .decoder_config import PART_TURNED
from .gemma import GemmaRMSNorm
from .language_model import CausalLM
from .qwen3 import Qwen3Config
from .state_space import Mixer, held, rates_of


@dataclass(frozen=True)
class Qwen3_5TextConfig(Qwen3Config):
    """Fields are the keys of ``config.json``.

    A GGUF decides the last three: its norms have the one, its rates are no logarithms, and value heads lie so
    that they take the key heads in turn, where those of a folder share one with their neighbours.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **Qwen3Config.table, **PART_TURNED, "linear_conv_kernel_dim": whole(2, 64),
        "linear_key_head_dim": whole(1, 4096), "linear_value_head_dim": whole(1, 4096),
        "linear_num_key_heads": whole(1, 1 << 16), "linear_num_value_heads": whole(1, 1 << 16),
        "layer_types": listed(one_of("linear_attention", "full_attention"), 4096),
        "full_attention_interval": whole(1, 4096), "norms_from_one": FLAG, "rates_are_logs": FLAG,
        "key_heads_in_turn": FLAG,
    }  # fmt: skip
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **Qwen3Config.gguf_keys, "linear_conv_kernel_dim": "ssm.conv_kernel",
        "linear_key_head_dim": "ssm.state_size", "linear_num_key_heads": "ssm.group_count",
        "linear_num_value_heads": "ssm.time_step_rank",
    }  # fmt: skip
    gguf_settings: ClassVar[Mapping[str, Any]] = {
        **Qwen3Config.gguf_settings, "norms_from_one": False, "rates_are_logs": False,
        "key_heads_in_turn": True,
    }  # fmt: skip
    use_bias: ClassVar[bool] = False
    use_conv_bias: ClassVar[bool] = False
    head_dim: int | None = 256
    partial_rotary_factor: float = 0.25
    max_position_embeddings: int = 32768
    linear_conv_kernel_dim: int = 4
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 32
    full_attention_interval: int = 4
    norms_from_one: bool = True
    rates_are_logs: bool = True
    key_heads_in_turn: bool = False

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        keys, inner, interval = (
            checkpoint.metadata,
            f"{prefix}ssm.inner_size",
            f"{prefix}full_attention_interval",
        )
        check(checkpoint.name, keys, {inner: whole(1, 1 << 24), interval: whole(1, 4096)}, inner)
        every = keys.get(interval) or 4
        count = range(keys[f"{prefix}block_count"])
        kinds = ["linear_attention" if (k + 1) % every else "full_attention" for k in count]
        columns = keys[inner] // keys[f"{prefix}ssm.time_step_rank"]
        return {"layer_types": kinds, "linear_value_head_dim": columns}

    def to_gguf(self) -> dict[str, Any]:
        kinds = self.layer_types or []
        every = kinds.index("full_attention") + 1 if "full_attention" in kinds else len(kinds) + 1
        return super().to_gguf() | {"ssm.inner_size": self.inner, "full_attention_interval": every}

    def checked(self, where: str) -> Self:
        if self.layer_types is None:
            count = range(self.num_hidden_layers)
            every = self.full_attention_interval
            kinds = ["linear_attention" if (k + 1) % every else "full_attention" for k in count]
            return replace(self, layer_types=kinds).checked(where)
        return super().checked(where)

    @property
    def conv_kernel(self) -> int:
        """Positions that the convolution sees."""
        return self.linear_conv_kernel_dim

    @property
    def key_columns(self) -> int:
        """Columns of all keys of the delta rule."""
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def inner(self) -> int:
        """Columns of all values of the delta rule."""
        return self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def convolved(self) -> int:
        """Channels of the convolution."""
        return 2 * self.key_columns + self.inner

    @property
    def state_shape(self) -> tuple[int, ...]:
        """Axes of the delta rule's state."""
        return self.linear_num_value_heads, self.linear_key_head_dim, self.linear_value_head_dim

    def is_linear(self, layer: int) -> bool:
        """Whether a layer has the delta rule in the place of attention."""
        return (self.layer_types or ())[layer] == "linear_attention"

    def norm(self, columns: int | None = None) -> RMSNorm:
        kind = GemmaRMSNorm if self.norms_from_one else RMSNorm
        return kind(columns or self.hidden_size, eps=self.rms_norm_eps)

    def turning(self, layer: int) -> str:
        return "" if self.is_linear(layer) else "rotary_emb"

    def window(self, layer: int) -> int | None:
        return None

    def state(self, layer: int) -> tuple[int, int] | None:
        return held(self) if self.is_linear(layer) else None


class GatedDeltaNet(Mixer):
    """A causal convolution and the gated delta rule, normed by head and gated."""

    def add_parameters(self, config: Any) -> None:
        heads = config.linear_num_value_heads
        self.add_projections(config)
        self.dt_bias = Parameter(ones(heads))
        self.A_log = Parameter(empty(heads).uniform_(0.01, 16).log())
        self.norm = RMSNorm(config.linear_value_head_dim, eps=config.rms_norm_eps)

    def add_projections(self, config: Any) -> None:
        """Make the products for queries, keys, values, gates and steps."""
        dim, heads = config.hidden_size, config.linear_num_value_heads
        self.in_proj_qkv = Linear(dim, config.convolved, bias=False)
        self.in_proj_z = Linear(dim, config.inner, bias=False)
        self.in_proj_b = Linear(dim, heads, bias=False)
        self.in_proj_a = Linear(dim, heads, bias=False)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        steps = cat([self.in_proj_b(x), self.in_proj_a(x)], -1)
        return self.in_proj_z(x), self.in_proj_qkv(x), steps

    def scanned(self, x: Tensor, steps: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        c = self.config
        columns = [c.linear_key_head_dim] * 2 + [c.linear_value_head_dim]
        parts = x.split([c.key_columns, c.key_columns, c.inner], -1)
        query, key, value = (p.reshape(*x.shape[:2], -1, n) for p, n in zip(parts, columns, strict=True))
        query, key = (p * (p.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for p in (query, key))
        if c.key_heads_in_turn:
            times = c.linear_num_value_heads // c.linear_num_key_heads
            query, key = (p.repeat(1, 1, times, 1) for p in (query, key))
        beta, steps = steps.chunk(2, -1)
        fading = rates_of(c, self.A_log) * F.softplus(steps + self.dt_bias)
        return (query, key, value, fading, beta.sigmoid()), ()

    def scan(self, timed: Any, fixed: Any, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        query, key, value, fading, beta = timed
        return gated_delta_rule(query, key, value, fading, beta, initial_state=state)

    def gated(self, x: Tensor, gate: Tensor) -> Tensor:
        return self.norm(x).reshape(gate.shape) * F.silu(gate)


class GatedAttention(Attention):
    """Attention whose output is gated; every head's query and gate are neighbours of one product."""

    def add_projections(self, config: Any) -> None:
        super().add_projections(config)
        rows = 2 * self.heads * self.head_dim
        add_linear(self, config, self.names.query, config.hidden_size, rows, config.attention_bias)

    def forward(self, x: Tensor, rotary: Any, cache: Any = None, mask: Tensor | None = None) -> Tensor:
        names, position = self.names, 0 if cache is None else cache.length
        joined = part(self, names.query, x).view(*x.shape[:2], self.heads, -1)
        query, gate = joined.chunk(2, -1)
        key, value = (self.split(part(self, name, x)) for name in (names.key, names.value))
        query = part(self, names.query_norm, query).transpose(1, 2)
        key = part(self, names.key_norm, key).transpose(1, 2)
        query, key = rotary(query, position), rotary(key, position)
        out = self.attend(query, key, value.transpose(1, 2), cache, mask).transpose(1, 2)
        return part(self, names.output, (out * gate.sigmoid()).flatten(2))


class Qwen3_5DecoderLayer(DecoderLayer):
    """A layer with the delta rule or attention."""

    attention_class: ClassVar[type[Any]] = GatedAttention
    mixer_class: ClassVar[type[GatedDeltaNet]] = GatedDeltaNet

    def __init__(self, config: Qwen3_5TextConfig, layer: int):
        super().__init__(config, layer)
        if config.is_linear(layer):
            del self.self_attn
            self.linear_attn: Module = self.mixer_class(config, layer)
            self.names = replace(self.names, attention="linear_attn")


class Qwen3_5TextModel(Decoder):
    """A decoder with Qwen3.5's layers."""

    layer_class = Qwen3_5DecoderLayer


class Qwen3_5ForCausalLM(CausalLM):
    """Qwen3.5's text model with a head over the vocabulary.

    Args:
        config: a `Qwen3_5TextConfig`.
    """

    config_class = Qwen3_5TextConfig
    model_class = Qwen3_5TextModel
    model_types = ("qwen3_5_text",)
    gguf_architectures = ("qwen35",)
    gguf_names = {
        "blk.{}.post_attention_norm": "model.layers.{}.post_attention_layernorm",
        **{
            name: f"model.layers.{{}}.linear_attn.{path}"
            for name, path in {
                "blk.{}.attn_qkv": "in_proj_qkv", "blk.{}.attn_gate": "in_proj_z",
                "blk.{}.ssm_beta": "in_proj_b", "blk.{}.ssm_alpha": "in_proj_a", "blk.{}.ssm_a": "A_log",
                "blk.{}.ssm_conv1d": "conv1d", "blk.{}.ssm_dt.bias": "dt_bias", "blk.{}.ssm_norm": "norm",
                "blk.{}.ssm_out": "out_proj",
            }.items()
        },
    }  # fmt: skip
    points = {"q": None}
