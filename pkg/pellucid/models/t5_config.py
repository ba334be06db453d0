"""The configuration of T5, and what its GGUF calls its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn.modules.norm import RMSNorm
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, number, text, whole
from .config import Config
from .encoder import RATE


@dataclass(frozen=True)
class T5Config(Config):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        "vocab_size": whole(1, 1 << 24),
        "d_model": whole(1, 1 << 20),
        "d_kv": whole(1, 4096),
        "d_ff": whole(1, 1 << 24),
        "num_layers": whole(1, 4096),
        "num_decoder_layers": whole(1, 4096),
        "num_heads": whole(1, 1 << 16),
        "relative_attention_num_buckets": whole(4, 1 << 16),
        "relative_attention_max_distance": whole(4),
        "dropout_rate": RATE,
        "classifier_dropout": RATE,
        "layer_norm_epsilon": number(0, 1, above=True),
        "initializer_factor": number(0, 1e6),
        "feed_forward_proj": text(100),
        "dense_act_fn": text(100),
        "is_gated_act": FLAG,
        "n_positions": whole(1),
        "decoder_start_token_id": whole(0),
        "pad_token_id": whole(0),
        "tie_word_embeddings": FLAG,
        "scale_decoder_outputs": FLAG,
    }
    gguf_keys: ClassVar[Mapping[str, str]] = {
        "d_model": "embedding_length",
        "num_layers": "block_count",
        "num_heads": "attention.head_count",
        "d_kv": "attention.key_length",
        "d_ff": "feed_forward_length",
        "layer_norm_epsilon": "attention.layer_norm_rms_epsilon",
        "relative_attention_num_buckets": "attention.relative_buckets_count",
        "n_positions": "context_length",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "num_decoder_layers": "decoder_block_count",
        "decoder_start_token_id": "decoder_start_token_id",
    }
    beside: ClassVar[frozenset[str]] = frozenset({
        "classifier_dropout", "dense_act_fn", "dropout_rate", "feed_forward_proj", "initializer_factor",
        "is_gated_act", "scale_decoder_outputs", "tie_word_embeddings",
    })  # fmt: skip
    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    classifier_dropout: float = 0.0
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: str = "relu"
    dense_act_fn: str | None = None
    is_gated_act: bool | None = None
    n_positions: int = 512
    decoder_start_token_id: int = 0
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True
    scale_decoder_outputs: bool | None = None

    @property
    def num_hidden_layers(self) -> int:
        """Layers of the encoder."""
        return self.num_layers

    @property
    def embedding_columns(self) -> int:
        return self.d_model

    @property
    def max_position_embeddings(self) -> int:
        """How long texts may be: positions are relative, so only memory limits them."""
        return 1 << 20

    @property
    def is_gated(self) -> bool:
        """Whether feed-forwards have a gate."""
        return self.feed_forward_proj.startswith("gated-")

    @property
    def activation(self) -> str:
        """Name of what feed-forwards compute."""
        name = self.feed_forward_proj.removeprefix("gated-")
        return "gelu_new" if self.feed_forward_proj == "gated-gelu" else name

    @property
    def is_scaled(self) -> bool:
        """Whether the head is given smaller states: where its weight is the embedding's, in older files."""
        return self.tie_word_embeddings and self.scale_decoder_outputs is not False

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        is_gated = "enc.blk.0.ffn_gate.weight" in checkpoint  # by which llama.cpp chooses, too
        return {"feed_forward_proj": "gated-gelu" if is_gated else "relu"}

    def to_gguf(self) -> dict[str, Any]:
        keys = {"attention.layer_norm_epsilon": self.layer_norm_epsilon, "attention.value_length": self.d_kv}
        return super().to_gguf() | keys

    def norm(self) -> RMSNorm:
        """A norm of hidden states."""
        return RMSNorm(self.d_model, eps=self.layer_norm_epsilon)


def gguf_names(gated: bool) -> dict[str, str]:
    """Attribute paths by name in a GGUF."""
    found = {"token_embd": "shared", "output": "lm_head"}
    for side, stack, last in (("enc", "encoder", 1), ("dec", "decoder", 2)):
        own, layers = f"{side}.blk.{{}}", f"{stack}.block.{{}}.layer"
        found |= {f"{own}.attn_{k}": f"{layers}.0.SelfAttention.{k}" for k in "qkvo"}
        if side == "dec":
            found |= {f"{own}.cross_attn_{k}": f"{layers}.1.EncDecAttention.{k}" for k in "qkvo"}
            found[f"{own}.cross_attn_norm"] = f"{layers}.1.layer_norm"
        products = {"gate": "wi_0", "up": "wi_1", "down": "wo"} if gated else {"up": "wi", "down": "wo"}
        found |= {f"{own}.ffn_{k}": f"{layers}.{last}.DenseReluDense.{v}" for k, v in products.items()}
        found |= {
            f"{own}.attn_rel_b": f"{layers}.0.SelfAttention.relative_attention_bias",
            f"{own}.attn_norm": f"{layers}.0.layer_norm",
            f"{own}.ffn_norm": f"{layers}.{last}.layer_norm",
            f"{side}.output_norm": f"{stack}.final_layer_norm",
        }
    return found
