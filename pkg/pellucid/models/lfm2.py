"""LFM2: short gated convolutions in most layers, attention in the others.

Liquid AI 2025, "LFM2". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..errors import FormatError
from ..nn import functional as F
from ..nn.modules.conv import Conv1d
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, check, listed, number, one_of, whole
from .decoder import Decoder, DecoderLayer
from .decoder_config import EPSILON, DecoderConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class Lfm2Config(DecoderConfig):
    """Fields are the keys of ``config.json``, but ``norm_eps`` is ``rms_norm_eps``."""

    table: ClassVar[Mapping[str, Field]] = {
        **{key: field for key, field in DecoderConfig.table.items() if key not in ("head_dim", "hidden_act")},
        "rms_norm_eps": EPSILON, "conv_L_cache": whole(2, 64), "conv_bias": FLAG,
        "layer_types": listed(one_of("conv", "full_attention"), 4096),
        "full_attn_idxs": listed(whole(0, 4095), 4096), "block_multiple_of": whole(1, 65536),
        "block_ffn_dim_multiplier": number(0, 1e3, above=True), "block_auto_adjust_ff_dim": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "norm_eps": "rms_norm_eps",
        "block_norm_eps": "rms_norm_eps",
        "block_ff_dim": "intermediate_size",
        "tie_embedding": "tie_word_embeddings",
    }
    names: ClassVar[Names] = replace(
        DecoderConfig.names, before_attention="operator_norm", before_mlp="ffn_norm", norm="embedding_norm",
        mlp="feed_forward", gate="w1", up="w3", down="w2", output="out_proj", query_norm="q_layernorm",
        key_norm="k_layernorm",
    )  # fmt: skip
    gguf_keys: ClassVar[Mapping[str, str]] = {
        **DecoderConfig.gguf_keys, "conv_L_cache": "shortconv.l_cache",
    }  # fmt: skip
    gguf_optional: ClassVar[Mapping[str, str]] = {"rope_theta": "rope.freq_base"}
    max_position_embeddings: int = 128000
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e6
    tie_word_embeddings: bool = True
    conv_L_cache: int = 3
    conv_bias: bool = False
    full_attn_idxs: list[int] | None = None
    block_multiple_of: int = 256
    block_ffn_dim_multiplier: float | None = 1.0
    block_auto_adjust_ff_dim: bool = True

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        # Layers without key heads are convolutions.
        key = f"{prefix}attention.head_count_kv"
        check(checkpoint.name, checkpoint.metadata, {key: listed(whole(0, 1 << 16), 4096)}, key)
        heads = checkpoint.metadata[key]
        return {
            "layer_types": ["full_attention" if n else "conv" for n in heads],
            "num_key_value_heads": max(heads, default=0),
            "conv_bias": "blk.0.shortconv.in_proj.bias" in checkpoint,
            "block_auto_adjust_ff_dim": False,
        }

    def to_gguf(self) -> dict[str, Any]:
        count = range(self.num_hidden_layers)
        heads = [0 if self.is_conv(k) else self.kv_heads for k in count]
        return super().to_gguf() | {"attention.head_count_kv": heads}

    def checked(self, where: str):
        if self.layer_types is None:
            if self.full_attn_idxs is None:
                raise FormatError(f"{where}: there is neither layer_types nor full_attn_idxs.")
            attends = set(self.full_attn_idxs)
            count = range(self.num_hidden_layers)
            kinds = ["full_attention" if k in attends else "conv" for k in count]
            return replace(self, layer_types=kinds).checked(where)
        if self.block_auto_adjust_ff_dim:
            columns, unit = 2 * self.intermediate_size // 3, self.block_multiple_of
            if self.block_ffn_dim_multiplier is not None:
                columns = -(-int(self.block_ffn_dim_multiplier * columns) // unit) * unit
            adjusted = replace(self, intermediate_size=columns, block_auto_adjust_ff_dim=False)
            return adjusted.checked(where)
        return super().checked(where)

    def is_conv(self, layer: int) -> bool:
        """Whether a layer is a convolution."""
        return (self.layer_types or ())[layer] == "conv"

    def turning(self, layer: int) -> str:
        return "" if self.is_conv(layer) else "rotary_emb"

    def window(self, layer: int) -> int | None:
        return None

    def state(self, layer: int) -> tuple[int, int] | None:
        return (self.hidden_size, self.conv_L_cache - 1) if self.is_conv(layer) else None


class Lfm2ShortConv(Module):
    """``out(c * conv(b * x))``, where b, c and x are parts of one product.

    Args:
        config: the model's.
        layer: which layer of the cache is its own.
    """

    def __init__(self, config: Lfm2Config, layer: int):
        super().__init__()
        dim, bias = config.hidden_size, config.conv_bias
        self.layer, self.past = layer, config.conv_L_cache - 1
        self.conv = Conv1d(dim, dim, config.conv_L_cache, groups=dim, bias=bias)
        self.in_proj = Linear(dim, 3 * dim, bias=bias)
        self.out_proj = Linear(dim, dim, bias=bias)

    def forward(self, x: Tensor, rotary: Any, cache: Any = None, mask: Tensor | None = None) -> Tensor:
        if mask is not None:  # padding gives nothing
            x = x * mask.diagonal(0, 2, 3).transpose(1, 2)
        before, after, x = self.in_proj(x).transpose(1, 2).chunk(3, 1)
        x = before * x
        x = F.pad(x, (self.past, 0)) if cache is None else cache.shift(self.layer, x)
        return self.out_proj((after * self.conv(x)).transpose(1, 2))


class Lfm2DecoderLayer(DecoderLayer):
    """A layer with a convolution or attention."""

    def __init__(self, config: Lfm2Config, layer: int):
        super().__init__(config, layer)
        if config.is_conv(layer):
            del self.self_attn
            self.conv = Lfm2ShortConv(config, layer)
            self.names = replace(self.names, attention="conv")


class Lfm2Model(Decoder):
    """A decoder with LFM2's layers."""

    layer_class = Lfm2DecoderLayer


class Lfm2ForCausalLM(CausalLM):
    """LFM2 with a head over the vocabulary.

    Args:
        config: an `Lfm2Config`.
    """

    config_class = Lfm2Config
    model_class = Lfm2Model
    model_types = ("lfm2",)
    gguf_architectures = ("lfm2",)
    gguf_names = {
        "token_embd_norm": "model.embedding_norm",
        **{f"blk.{{}}.shortconv.{p}": f"model.layers.{{}}.conv.{p}" for p in ("conv", "in_proj", "out_proj")},
    }
