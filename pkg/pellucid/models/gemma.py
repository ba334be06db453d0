"""Gemma: Llama with scaled embeddings, norms whose weights count from one, and a gated GELU.

Gemma Team 2024, "Gemma: Open models based on Gemini research and technology". Attribute paths are the tensor
names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn import functional as F
from ..nn.modules.norm import RMSNorm
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field, text
from .decoder_config import DecoderConfig
from .language_model import CausalLM


class GemmaRMSNorm(RMSNorm):
    """``input / sqrt(mean(input^2) + eps) * (1 + weight)``."""

    counts_from_one: ClassVar[bool] = True

    def forward(self, x: Tensor) -> Tensor:
        assert self.weight is not None
        return F.rms_norm(x, self.normalized_shape, self.weight + 1, self.eps)


@dataclass(frozen=True)
class GemmaConfig(DecoderConfig):
    """Fields are the keys of ``config.json``.

    ``norms_from_one`` is not set for GGUF files, whose norms have the one already.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table,
        "hidden_activation": text(100),
        "attention_bias": FLAG,
        "norms_from_one": FLAG,
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"norms_from_one": False}
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    hidden_activation: str | None = None
    max_position_embeddings: int = 8192
    tie_word_embeddings: bool = True
    norms_from_one: bool = True

    @property
    def activation(self) -> str:
        return self.hidden_activation or self.hidden_act

    @property
    def embedding_scale(self) -> float:
        return self.hidden_size**0.5

    def norm(self, columns: int | None = None) -> RMSNorm:
        kind = GemmaRMSNorm if self.norms_from_one else RMSNorm
        return kind(columns or self.hidden_size, eps=self.rms_norm_eps)


class GemmaForCausalLM(CausalLM):
    """Gemma with a head over the vocabulary.

    Args:
        config: a `GemmaConfig`.
    """

    config_class = GemmaConfig
    model_types = ("gemma",)
    gguf_architectures = ("gemma",)
