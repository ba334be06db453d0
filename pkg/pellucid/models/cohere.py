"""Cohere's Command R: Llama with LayerNorm without bias, one norm for both branches, and scaled logits.

Cohere 2024, "Command R". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..nn.modules.norm import LayerNorm
from ..nn.parameter import Parameter
from ..ops.shape.creation import ones
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field, number
from .decoder import Attention, Decoder, DecoderLayer
from .decoder_config import FEED_FORWARD, KEY_HEADS, ROTARY, LayerNormConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class CohereConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **FEED_FORWARD, **KEY_HEADS, **ROTARY, "attention_bias": FLAG,
        "logit_scale": number(0, 1e6, above=True), "use_qk_norm": FLAG,
    }  # fmt: skip
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "attention.head_count_kv",
        "rope_theta": "rope.freq_base",
        "logit_scale": "logit_scale",
    }
    names: ClassVar[Names] = replace(LayerNormConfig.names, before_mlp="")
    is_gated: ClassVar[bool] = True
    hidden_act: str = "silu"
    max_position_embeddings: int = 8192
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = True
    rope_interleaved: bool = True
    logit_scale: float = 0.0625
    use_qk_norm: bool = False

    @property
    def is_parallel(self) -> bool:
        return True

    @property
    def module_names(self) -> Names:
        return replace(self.names, query_norm="q_norm", key_norm="k_norm") if self.use_qk_norm else self.names

    @property
    def logit_factor(self) -> float:
        return self.logit_scale

    def norm(self, columns: int | None = None) -> LayerNorm:
        return LayerNorm(columns or self.hidden_size, eps=self.layer_norm_eps, bias=False)


class CohereHeadNorm(LayerNorm):
    """LayerNorm without bias whose weight has a row for each head.

    Args:
        heads, columns: of the weight.
        eps: added to the variance.
    """

    def __init__(self, heads: int, columns: int, eps: float):
        super().__init__(columns, eps=eps, elementwise_affine=False)
        self.weight = Parameter(ones(heads, columns))

    def forward(self, input: Tensor) -> Tensor:
        centred = input - input.mean(-1, True)
        return centred * (centred.square().mean(-1, True) + self.eps).rsqrt() * self.weight


class CohereAttention(Attention):
    """Attention that may norm each head's queries and keys with weights of their own."""

    def add_norms(self, config: Any) -> None:
        for name, heads in ((self.names.query_norm, self.heads), (self.names.key_norm, self.kv_heads)):
            if name:
                setattr(self, name, CohereHeadNorm(heads, self.head_dim, config.layer_norm_eps))


class CohereDecoderLayer(DecoderLayer):
    """A layer with Cohere's attention."""

    attention_class = CohereAttention


class CohereModel(Decoder):
    """A decoder with Cohere's layers."""

    layer_class = CohereDecoderLayer


class CohereForCausalLM(CausalLM):
    """Command R with a head over the vocabulary.

    Args:
        config: a `CohereConfig`.
    """

    config_class = CohereConfig
    model_class = CohereModel
    model_types = ("cohere",)
    gguf_architectures = ("command-r",)
