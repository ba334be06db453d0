"""Gemma 2: Gemma with norms behind attention and feed-forward, soft caps, and a window in every other layer.

Gemma Team 2024, "Gemma 2: Improving open language models at a practical size". Attribute paths are the tensor
names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ..weights.checkpoint import Checkpoint
from ..weights.fields import Field, number
from .decoder_config import LAYER_KINDS, WINDOW
from .gemma import GemmaConfig
from .language_model import CausalLM
from .names import Names

_CAP = number(0, 1e6, above=True)
# Numbers of layers of the models with 27B, whose scores a GGUF does not say to be scaled otherwise.
_WIDE = (46, 62)


@dataclass(frozen=True)
class Gemma2Config(GemmaConfig):
    """Fields are the keys of ``config.json``; without ``layer_types`` every other layer has a window."""

    table: ClassVar[Mapping[str, Field]] = {
        **GemmaConfig.table, **WINDOW, **LAYER_KINDS, "query_pre_attn_scalar": number(0, 1e6, above=True),
        "attn_logit_softcapping": _CAP, "final_logit_softcapping": _CAP,
    }  # fmt: skip
    gguf_optional: ClassVar[Mapping[str, str]] = {
        **GemmaConfig.gguf_optional,
        "sliding_window": "attention.sliding_window",
        "attn_logit_softcapping": "attn_logit_softcapping",
        "final_logit_softcapping": "final_logit_softcapping",
    }
    names: ClassVar[Names] = replace(
        GemmaConfig.names,
        after_attention="post_attention_layernorm",
        before_mlp="pre_feedforward_layernorm",
        after_mlp="post_feedforward_layernorm",
    )
    sliding_window: int | None = 4096
    query_pre_attn_scalar: float = 256
    attn_logit_softcapping: float | None = 50.0
    final_logit_softcapping: float | None = 30.0

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        config = super().from_gguf(checkpoint)
        is_wide = config.num_hidden_layers in _WIDE
        columns = config.hidden_size / config.num_attention_heads if is_wide else config.columns
        return replace(config, query_pre_attn_scalar=columns)

    @property
    def scale(self) -> float | None:
        return self.query_pre_attn_scalar**-0.5

    @property
    def soft_cap(self) -> float:
        return self.attn_logit_softcapping or 0.0

    @property
    def head_soft_cap(self) -> float:
        return self.final_logit_softcapping or 0.0

    def window(self, layer: int) -> int | None:
        if self.layer_types is None and layer % 2:
            return None
        return super().window(layer)


class Gemma2ForCausalLM(CausalLM):
    """Gemma 2 with a head over the vocabulary.

    Args:
        config: a `Gemma2Config`.
    """

    config_class = Gemma2Config
    model_types = ("gemma2",)
    gguf_architectures = ("gemma2",)
