"""Llama: RMSNorm, rotary positions, grouped-query attention, gated SiLU feed-forward.

Touvron et al. 2023, "LLaMA: Open and efficient foundation language models". Serves Llama 2 and 3, SmolLM2,
Mistral and others of that shape; attribute paths are the tensor names of their checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..errors import DimensionError, FormatError
from ..nn import functional as F
from ..nn.modules.container import ModuleList
from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import RMSNorm
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, check, number, shown, text, whole
from .attend import Attend
from .cache import KVCache
from .config import Config
from .language_model import CausalLM, causal_mask
from .rotary import SCALING, RotaryEmbedding

_MOST_COLUMNS = 4096  # of a head
# Keys of a GGUF that are no field.
_ROPE_KEYS = {
    "rope.dimension_count": whole(1),
    "rope.scaling.factor": number(1e-3, 1e6),
    "rope.scaling.type": text(100),
}


@dataclass(frozen=True)
class LlamaConfig(Config):
    """Fields are the keys of ``config.json``.

    ``rope_interleaved`` is set for GGUF files, whose query and key rows lie in another order.
    """

    # Far above what there is, and small enough that a model's own numbers never make tables of gigabytes.
    table: ClassVar[Mapping[str, Field]] = {
        "vocab_size": whole(1, 1 << 24),
        "hidden_size": whole(1, 1 << 20),
        "intermediate_size": whole(1, 1 << 24),
        "num_hidden_layers": whole(1, 4096),
        "num_attention_heads": whole(1, 1 << 16),
        "num_key_value_heads": whole(1, 1 << 16),
        "head_dim": whole(1, _MOST_COLUMNS),
        "hidden_act": text(100),
        "max_position_embeddings": whole(1),
        "rms_norm_eps": number(0, 1, above=True),
        "rope_theta": number(1, 1e15),
        "rope_scaling": SCALING,
        "rope_parameters": SCALING,
        "attention_bias": FLAG,
        "mlp_bias": FLAG,
        "tie_word_embeddings": FLAG,
        "sliding_window": whole(1),
        "rope_interleaved": FLAG,
    }
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
    gguf_interleaved: ClassVar[bool] = True  # whether a GGUF has pairs of columns beside each other
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
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    rope_interleaved: bool = False

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        config = super().from_gguf(checkpoint)
        metadata, prefix = checkpoint.metadata, f"{checkpoint.metadata['general.architecture']}."
        check(checkpoint.name, metadata, _ROPE_KEYS, prefix=prefix)
        heads = config.num_attention_heads
        columns = metadata.get(f"{prefix}attention.key_length") or config.hidden_size // heads
        turned = metadata.get(f"{prefix}rope.dimension_count") or columns
        if turned != columns:
            raise FormatError(
                f"{checkpoint.name}: {prefix}rope.dimension_count is {turned} for {heads} heads of {columns} "
                "columns. Only whole heads are turned by this architecture."
            )
        scaling = metadata.get(f"{prefix}rope.scaling.type") or "none"
        if scaling not in ("none", "linear"):
            raise FormatError(
                f"{checkpoint.name}: {prefix}rope.scaling.type {shown(scaling)} is not known. There are none "
                "and linear."
            )
        linear = {"rope_type": "linear", "factor": metadata.get(f"{prefix}rope.scaling.factor")}
        return replace(
            config,
            num_key_value_heads=config.kv_heads,
            head_dim=columns,
            rope_theta=metadata.get(f"{prefix}rope.freq_base") or 10000.0,
            rope_scaling=linear if scaling == "linear" else None,
            attention_bias="blk.0.attn_q.bias" in checkpoint,
            rope_interleaved=cls.gguf_interleaved,
        ).checked(checkpoint.name)

    def checked(self, where: str) -> Self:
        super().checked(where)
        if (
            not 0 < self.columns <= _MOST_COLUMNS
            or self.columns % 2
            or self.num_attention_heads % self.kv_heads
        ):
            raise FormatError(
                f"{where}: {self.num_attention_heads} heads of {self.columns} columns that share "
                f"{self.kv_heads} key heads are not possible: heads have an even number of columns, from 2 "
                f"to {_MOST_COLUMNS:,}, and key heads divide them. The file is damaged."
            )
        return self

    @property
    def kv_heads(self) -> int:
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def window(self) -> int | None:
        """Positions that attention sees, where they are limited."""
        return self.sliding_window

    @property
    def columns(self) -> int:
        """Columns of a head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def activation(self) -> str:
        """Name of what feed-forwards compute of the gate."""
        return self.hidden_act

    def norm(self) -> RMSNorm:
        """A norm of hidden states."""
        return RMSNorm(self.hidden_size, eps=self.rms_norm_eps)

    def rotary(self) -> RotaryEmbedding:
        """The rotary embedding that the keys describe.

        Older files have rope_theta and rope_scaling, newer ones rope_parameters.
        """
        parameters = self.rope_parameters or {}
        base = parameters.get("rope_theta", self.rope_theta)
        return RotaryEmbedding(
            self.columns,
            self.max_position_embeddings,
            base,
            self.rope_scaling or parameters or None,
            self.rope_interleaved,
        )


class LlamaAttention(Module):
    """Causal self-attention with rotary positions; neighbouring query heads share a key head.

    Args:
        config: the model's.
        layer: which layer of the cache is its own.
    """

    def __init__(self, config: LlamaConfig, layer: int):
        super().__init__()
        self.attend = Attend(layer)
        self.heads, self.kv_heads, self.head_dim = config.num_attention_heads, config.kv_heads, config.columns
        self.window = config.window
        dim, bias = config.hidden_size, config.attention_bias
        self.q_proj = Linear(dim, self.heads * self.head_dim, bias=bias)
        self.k_proj = Linear(dim, self.kv_heads * self.head_dim, bias=bias)
        self.v_proj = Linear(dim, self.kv_heads * self.head_dim, bias=bias)
        self.o_proj = Linear(self.heads * self.head_dim, dim, bias=bias)

    def forward(
        self, x: Tensor, rotary: RotaryEmbedding, cache: KVCache | None = None, mask: Tensor | None = None
    ) -> Tensor:
        batch, time, _ = x.shape
        position = cache.length if cache is not None else 0
        if self.window and position + time > self.window:
            raise DimensionError(
                f"{position + time} positions are more than the sliding window of {self.window}, past which "
                "attention would have to forget. Shorten the prompt or what is generated."
            )
        query, key, value = self.project(x)
        query, key = rotary(query, position), rotary(key, position)
        out = self.attend(query, key, value, cache, mask)
        return self.o_proj(out.transpose(1, 2).reshape(batch, time, -1))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values: (batch, heads or kv_heads, time, head_dim)."""
        return self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))

    def split(self, x: Tensor) -> Tensor:
        """Columns as heads: (batch, time, heads * head_dim) to (batch, heads, time, head_dim)."""
        batch, time, _ = x.shape
        return x.view(batch, time, -1, self.head_dim).transpose(1, 2)


class LlamaMLP(Module):
    """Gated feed-forward: ``down(silu(gate(x)) * up(x))``.

    Args:
        config: the model's.
    """

    activations: ClassVar[Mapping[str, Callable]] = {"silu": F.silu}

    def __init__(self, config: LlamaConfig):
        super().__init__()
        if config.activation not in self.activations:
            raise FormatError(
                f"config.json: hidden_act {shown(config.activation)} is not known for this architecture. "
                f"It is {', '.join(self.activations)}."
            )
        self.activation = self.activations[config.activation]
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, bias=config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(Module):
    """Attention and feed-forward, each behind a norm and beside a residual.

    Args:
        config: the model's.
        layer: its number.
    """

    attention_class = LlamaAttention
    mlp_class = LlamaMLP

    def __init__(self, config: LlamaConfig, layer: int):
        super().__init__()
        self.self_attn = self.attention_class(config, layer)
        self.mlp = self.mlp_class(config)
        self.input_layernorm, self.post_attention_layernorm = config.norm(), config.norm()

    def forward(
        self, x: Tensor, rotary: RotaryEmbedding, cache: KVCache | None = None, mask: Tensor | None = None
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rotary, cache, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(Module):
    """Embedding, layers, final norm: ids (batch, time) to hidden states (batch, time, dim).

    Args:
        config: the model's.
    """

    embedding_class = Embedding
    layer_class = LlamaDecoderLayer

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.embed_tokens = self.embedding_class(config.vocab_size, config.hidden_size)
        self.layers = ModuleList([self.layer_class(config, k) for k in range(config.num_hidden_layers)])
        self.norm = config.norm()
        self.rotary_emb = config.rotary()

    def forward(
        self,
        ids: Tensor,
        cache: KVCache | None = None,
        attention_mask: Tensor | None = None,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        mask = causal_mask(attention_mask, ids, cache)
        x = self.embed_tokens(ids)
        for layer in self.layers:
            if keep is not None:
                keep.append(x)
            x = layer(x, self.rotary_emb, cache, mask)
        if cache is not None:
            cache.advance(ids.shape[1])
        x = self.norm(x)
        if keep is not None:
            keep.append(x)
        return x


class LlamaForCausalLM(CausalLM):
    """Llama with a head over the vocabulary.

    Args:
        config: a `LlamaConfig`.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
        ...     model(torch.tensor([[1, 2, 3]])).logits.shape
        Size([1, 3, 16])
    """

    config_class = LlamaConfig
    model_class = LlamaModel
    # Mistral computes what Llama does, within its window.
    model_types = ("llama", "mistral")
    gguf_architectures = ("llama",)
    gguf_names = {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "output": "lm_head",
        "blk.{}.attn_norm": "model.layers.{}.input_layernorm",
        "blk.{}.attn_q": "model.layers.{}.self_attn.q_proj",
        "blk.{}.attn_k": "model.layers.{}.self_attn.k_proj",
        "blk.{}.attn_v": "model.layers.{}.self_attn.v_proj",
        "blk.{}.attn_output": "model.layers.{}.self_attn.o_proj",
        "blk.{}.ffn_norm": "model.layers.{}.post_attention_layernorm",
        "blk.{}.ffn_gate": "model.layers.{}.mlp.gate_proj",
        "blk.{}.ffn_up": "model.layers.{}.mlp.up_proj",
        "blk.{}.ffn_down": "model.layers.{}.mlp.down_proj",
    }
