"""Granite: Llama with factors of embeddings, residuals, scores and logits.

Granite Team 2024, "Granite 3.0 language models". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..weights.fields import FLAG, Field, number
from .decoder_config import DecoderConfig
from .language_model import CausalLM

_FACTOR = number(0, 1e6, above=True)


@dataclass(frozen=True)
class GraniteConfig(DecoderConfig):
    """Fields are the keys of ``config.json``; logits are divided by ``logits_scaling``."""

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table, "attention_bias": FLAG, "mlp_bias": FLAG, "embedding_multiplier": _FACTOR,
        "residual_multiplier": _FACTOR, "attention_multiplier": _FACTOR, "logits_scaling": _FACTOR,
    }  # fmt: skip
    gguf_optional: ClassVar[Mapping[str, str]] = {
        **DecoderConfig.gguf_optional,
        "embedding_multiplier": "embedding_scale",
        "residual_multiplier": "residual_scale",
        "attention_multiplier": "attention.scale",
        "logits_scaling": "logit_scale",
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"rope_interleaved": True}
    embedding_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    attention_multiplier: float = 1.0
    logits_scaling: float = 1.0

    @property
    def scale(self) -> float | None:
        return self.attention_multiplier

    @property
    def embedding_scale(self) -> float:
        return self.embedding_multiplier

    @property
    def residual_scale(self) -> float:
        return self.residual_multiplier

    @property
    def logit_factor(self) -> float:
        return 1 / self.logits_scaling


class GraniteForCausalLM(CausalLM):
    """Granite with a head over the vocabulary.

    Args:
        config: a `GraniteConfig`.
    """

    config_class = GraniteConfig
    model_types = ("granite",)
    gguf_architectures = ("granite",)
