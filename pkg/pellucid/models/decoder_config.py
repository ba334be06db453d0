"""Configurations of decoders: the keys that many share, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..errors import FormatError
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm, RMSNorm
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, check, listed, number, one_of, shown, text, whole
from .config import Config
from .rotary import SCALING, RotaryEmbedding, completed, kind_of

_MOST_COLUMNS = 4096  # of a head
# Groups of fields. Bounds are far above what there is, and small enough that a model's own numbers never make
# tables of gigabytes.
SIZES: dict[str, Field] = {
    "vocab_size": whole(1, 1 << 24),
    "hidden_size": whole(1, 1 << 20),
    "num_hidden_layers": whole(1, 4096),
    "num_attention_heads": whole(1, 1 << 16),
    "max_position_embeddings": whole(1),
    "hidden_act": text(100),
    "tie_word_embeddings": FLAG,
}
FEED_FORWARD: dict[str, Field] = {"intermediate_size": whole(1, 1 << 24)}
KEY_HEADS: dict[str, Field] = {"num_key_value_heads": whole(1, 1 << 16)}
HEAD_COLUMNS: dict[str, Field] = {"head_dim": whole(1, _MOST_COLUMNS)}
ROTARY: dict[str, Field] = {
    "rope_theta": number(1, 1e15),
    "rope_scaling": SCALING,
    "rope_parameters": SCALING,
    "rope_interleaved": FLAG,
}
PART_TURNED: dict[str, Field] = {"partial_rotary_factor": number(0, 1, above=True)}
WINDOW: dict[str, Field] = {"sliding_window": whole(1)}
KINDS = ("full_attention", "sliding_attention")
LAYER_KINDS: dict[str, Field] = {"layer_types": listed(one_of(*KINDS), 4096)}
EPSILON = number(0, 1, above=True)
# Parts of a GGUF's layer that have a bias if the field says so.
_BIASES = {"attention_bias": ("attn_q", "attn_qkv"), "mlp_bias": ("ffn_up",)}
# Keys of a GGUF that are no field.
_ROPE_KEYS = {
    "rope.dimension_count": whole(1),
    "rope.scaling.factor": number(1e-3, 1e6),
    "rope.scaling.attn_factor": number(1e-3, 1e6),
    "rope.scaling.type": text(100),
    "rope.scaling.original_context_length": whole(1),
}


@dataclass(frozen=True)
class DecoderConfig(Config):
    """A decoder's configuration: RMSNorm, rotary positions and gated feed-forwards unless a subclass differs.

    ``gguf_settings`` are the fields whose values a GGUF has decided: its converter changed some weights.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **SIZES, **FEED_FORWARD, **KEY_HEADS, **HEAD_COLUMNS, **ROTARY, "rms_norm_eps": EPSILON,
    }  # fmt: skip
    gguf_keys: ClassVar[Mapping[str, str]] = {
        "hidden_size": "embedding_length",
        "intermediate_size": "feed_forward_length",
        "num_hidden_layers": "block_count",
        "num_attention_heads": "attention.head_count",
        "max_position_embeddings": "context_length",
        "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "attention.head_count_kv",
        "head_dim": "attention.key_length",
        "rope_theta": "rope.freq_base",
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {}
    norm_class: ClassVar[type[RMSNorm | LayerNorm]] = RMSNorm
    is_gated: ClassVar[bool] = True
    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    partial_rotary_factor: float = 1.0
    rope_interleaved: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    layer_types: list[str] | None = None

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        config = replace(super().from_gguf(checkpoint), **cls.gguf_settings)
        if "rope_theta" in cls.table:
            config = replace(config, **_gguf_rotary(config, checkpoint))
        for field, parts in _BIASES.items():
            if field in cls.table:
                has = any(f"blk.0.{part}.bias" in checkpoint for part in parts)
                config = replace(config, **{field: has})
        return config.checked(checkpoint.name)

    def to_gguf(self) -> dict[str, Any]:
        keys = super().to_gguf() | {"attention.head_count_kv": self.kv_heads}
        if "head_dim" in self.gguf_optional:
            keys |= {"attention.key_length": self.columns, "attention.value_length": self.value_columns}
        if "rope_theta" not in self.table:
            return keys
        keys["rope.dimension_count"] = self.turned
        return keys | self.rotary("rotary_emb").to_gguf()

    def checked(self, where: str) -> Self:
        super().checked(where)
        if (
            not 0 < self.columns <= _MOST_COLUMNS
            or self.turned % 2
            or self.num_attention_heads % self.kv_heads
        ):
            raise FormatError(
                f"{where}: {self.num_attention_heads} heads of {self.columns} columns, {self.turned} of them "
                f"turned, that share {self.kv_heads} key heads are not possible: heads have an even number "
                f"of columns, from 2 to {_MOST_COLUMNS:,}, and key heads divide them. The file is damaged."
            )
        if self.layer_types is not None and len(self.layer_types) != self.num_hidden_layers:
            raise FormatError(
                f"{where}: layer_types has {len(self.layer_types)} entries for {self.num_hidden_layers} "
                "layers. The file is damaged."
            )
        return self

    @property
    def is_parallel(self) -> bool:
        """Whether attention and feed-forward are beside one residual."""
        return False

    @property
    def kv_heads(self) -> int:
        """Key heads; neighbouring query heads share one."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def columns(self) -> int:
        """Columns of a head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def value_columns(self) -> int:
        """Columns of a value's head."""
        return self.columns

    @property
    def turned(self) -> int:
        """Columns of a head that are turned by their positions."""
        parameters = self.rope_parameters or {}
        if kind_of(parameters) == "proportional":  # all are, some by an angle of zero
            return self.columns
        return int(self.columns * parameters.get("partial_rotary_factor", self.partial_rotary_factor))

    @property
    def output_bias(self) -> bool:
        """Whether attention's output has a bias."""
        return self.attention_bias

    @property
    def activation(self) -> str:
        """Name of what feed-forwards compute."""
        return self.hidden_act

    @property
    def scale(self) -> float | None:
        """Factor of attention's scores; ``1 / sqrt(columns)`` if None."""
        return None

    @property
    def soft_cap(self) -> float:
        """What attention's scores stay below, as ``cap * tanh(score / cap)``; 0 for no limit."""
        return 0.0

    @property
    def embedding_scale(self) -> float:
        """Factor of embeddings."""
        return 1.0

    @property
    def residual_scale(self) -> float:
        """Factor of what attention and feed-forward add."""
        return 1.0

    def window(self, layer: int) -> int | None:
        """Positions that attention of a layer sees, where they are limited."""
        if self.layer_types is not None and self.layer_types[layer] == "full_attention":
            return None
        return self.sliding_window or None

    def state(self, layer: int) -> tuple[int, int] | None:
        """Channels and columns of what a layer keeps of past positions, where it does not attend."""
        return None

    def norm(self, columns: int | None = None) -> Module:
        """A norm of hidden states, or of so many columns."""
        return self.norm_class(columns or self.hidden_size, eps=self.rms_norm_eps)

    def linear(self, inputs: int, outputs: int, bias: bool) -> Module:
        """A layer that multiplies."""
        return Linear(inputs, outputs, bias=bias)

    def turning(self, layer: int) -> str:
        """Attribute of the rotary embedding that a layer uses; empty for none."""
        return "rotary_emb"

    def rotary(self, name: str) -> RotaryEmbedding:
        """The rotary embedding that the keys describe.

        Older files have rope_theta and rope_scaling, newer ones rope_parameters.
        """
        parameters = dict(self.rope_parameters or {})
        if "partial_rotary_factor" in self.table and kind_of(parameters) != "proportional":
            parameters.pop("partial_rotary_factor", None)
        base = parameters.get("rope_theta", self.rope_theta)
        return self.turned_by(base, self.rope_scaling or parameters or None)

    def turned_by(self, base: float, scaling: dict[str, Any] | None) -> RotaryEmbedding:
        """The rotary embedding of a base and a scaling."""
        original = getattr(self, "original_max_position_embeddings", None)
        known = completed(scaling, self.max_position_embeddings, original)
        return RotaryEmbedding(self.turned, self.max_position_embeddings, base, known, self.rope_interleaved)


@dataclass(frozen=True)
class LayerNormConfig(DecoderConfig):
    """A decoder with LayerNorm and feed-forwards that are not gated."""

    table: ClassVar[Mapping[str, Field]] = {**SIZES, **FEED_FORWARD, "layer_norm_eps": EPSILON}
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **{k: v for k, v in DecoderConfig.gguf_keys.items() if k != "rms_norm_eps"},
        "layer_norm_eps": "attention.layer_norm_epsilon",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {}
    norm_class = LayerNorm
    is_gated: ClassVar[bool] = False
    hidden_act: str = "gelu_new"
    layer_norm_eps: float = 1e-5
    attention_bias: bool = True
    mlp_bias: bool = True

    def norm(self, columns: int | None = None) -> Module:
        return self.norm_class(columns or self.hidden_size, eps=self.layer_norm_eps)


def _gguf_rotary(config: DecoderConfig, checkpoint: Checkpoint) -> dict[str, Any]:
    """The fields of rotary positions that a GGUF's metadata say."""
    metadata, prefix = checkpoint.metadata, f"{checkpoint.metadata['general.architecture']}."
    check(checkpoint.name, metadata, _ROPE_KEYS, prefix=prefix)
    heads, columns = config.num_attention_heads, config.columns
    turned = metadata.get(f"{prefix}rope.dimension_count") or columns
    in_part = "partial_rotary_factor" in config.table or turned == config.turned
    if turned > columns or (turned != columns and not in_part):
        raise FormatError(
            f"{checkpoint.name}: {prefix}rope.dimension_count is {turned} for {heads} heads of {columns} "
            "columns. Only whole heads are turned by this architecture."
        )
    scaling = metadata.get(f"{prefix}rope.scaling.type") or "none"
    if scaling not in ("none", "linear", "yarn"):
        raise FormatError(
            f"{checkpoint.name}: {prefix}rope.scaling.type {shown(scaling)} is not known. There are none, "
            "linear and yarn."
        )
    scaled = {"rope_type": scaling, "factor": metadata.get(f"{prefix}rope.scaling.factor")}
    if scaling == "yarn":
        length = metadata.get(f"{prefix}rope.scaling.original_context_length")
        scaled["original_max_position_embeddings"] = length
    return {
        "num_key_value_heads": config.kv_heads,
        "head_dim": columns,
        "rope_theta": metadata.get(f"{prefix}rope.freq_base") or 10000.0,
        "rope_scaling": scaled if scaling != "none" else None,
        "partial_rotary_factor": turned / columns,
    }
