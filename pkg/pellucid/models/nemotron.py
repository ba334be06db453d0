"""Nemotron and Minitron: LayerNorm whose weights count from one, a squared ReLU, half of each head turned.

Parmar et al. 2024, "Nemotron-4 15B technical report". Attribute paths are the tensor names of its
checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..nn import functional as F
from ..nn.modules.norm import LayerNorm
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field
from .decoder_config import FEED_FORWARD, HEAD_COLUMNS, KEY_HEADS, PART_TURNED, ROTARY, LayerNormConfig
from .language_model import CausalLM
from .names import Names


class NemotronLayerNorm1P(LayerNorm):
    """LayerNorm with the weight ``1 + weight``."""

    counts_from_one: ClassVar[bool] = True

    def forward(self, input: Tensor) -> Tensor:
        assert self.weight is not None
        return F.layer_norm(input, self.normalized_shape, self.weight + 1, self.bias, self.eps)


@dataclass(frozen=True)
class NemotronConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``, but ``norm_eps`` is ``layer_norm_eps``.

    ``norms_from_one`` is not set for GGUF files, whose norms have the one already.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **FEED_FORWARD, **KEY_HEADS, **HEAD_COLUMNS, **ROTARY, **PART_TURNED,
        "attention_bias": FLAG, "mlp_bias": FLAG, "norms_from_one": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {"norm_eps": "layer_norm_eps"}
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "attention.head_count_kv",
        "head_dim": "attention.key_length",
        "rope_theta": "rope.freq_base",
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"norms_from_one": False}
    names: ClassVar[Names] = replace(LayerNormConfig.names, gate="")
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    partial_rotary_factor: float = 0.5
    attention_bias: bool = False
    mlp_bias: bool = False
    norms_from_one: bool = True

    def norm(self, columns: int | None = None) -> LayerNorm:
        kind = NemotronLayerNorm1P if self.norms_from_one else LayerNorm
        return kind(columns or self.hidden_size, eps=self.layer_norm_eps)


class NemotronForCausalLM(CausalLM):
    """Nemotron with a head over the vocabulary.

    Args:
        config: a `NemotronConfig`.
    """

    config_class = NemotronConfig
    model_types = ("nemotron",)
    gguf_architectures = ("nemotron",)
