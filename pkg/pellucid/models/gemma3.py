"""Gemma 3, the text model: five layers with a window and rotary positions of their own, then one without.

Gemma Team 2025, "Gemma 3 technical report". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..weights.fields import Field, either, number, record, whole
from .decoder_config import KINDS
from .gemma2 import Gemma2Config
from .language_model import CausalLM
from .names import Names
from .rotary import SCALING, RotaryEmbedding


@dataclass(frozen=True)
class Gemma3TextConfig(Gemma2Config):
    """Fields are the keys of ``config.json``; without ``layer_types`` each sixth has no window."""

    table: ClassVar[Mapping[str, Field]] = {
        **Gemma2Config.table,
        "rope_local_base_freq": number(1, 1e15),
        "rope_parameters": either(SCALING, record(dict.fromkeys(KINDS, SCALING))),
        "sliding_window_pattern": whole(1, 4096),
    }
    renamed: ClassVar[Mapping[str, str]] = {"_sliding_window_pattern": "sliding_window_pattern"}
    gguf_optional: ClassVar[Mapping[str, str]] = {
        key: value for key, value in Gemma2Config.gguf_optional.items() if "softcapping" not in key
    }
    names: ClassVar[Names] = replace(Gemma2Config.names, query_norm="q_norm", key_norm="k_norm")
    max_position_embeddings: int = 131072
    rope_theta: float = 1e6
    rope_local_base_freq: float = 10000.0
    sliding_window_pattern: int = 6
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None

    @property
    def turned(self) -> int:
        return self.columns

    def window(self, layer: int) -> int | None:
        if self.layer_types is None:
            return None if (layer + 1) % self.sliding_window_pattern == 0 else self.sliding_window
        return None if self.layer_types[layer] == "full_attention" else self.sliding_window

    def turning(self, layer: int) -> str:
        return "rotary_emb" if self.window(layer) is None else "rotary_emb_local"

    def rotary(self, name: str) -> RotaryEmbedding:
        is_local = name == "rotary_emb_local"
        kinds: dict[str, Any] = self.rope_parameters or {}
        if KINDS[is_local] in kinds:
            own = kinds[KINDS[is_local]]
            return self.turned_by(own.get("rope_theta", 10000.0 if is_local else self.rope_theta), own)
        return self.turned_by(self.rope_local_base_freq, None) if is_local else super().rotary(name)


class Gemma3ForCausalLM(CausalLM):
    """Gemma 3 with a head over the vocabulary.

    Args:
        config: a `Gemma3TextConfig`.
    """

    config_class = Gemma3TextConfig
    model_types = ("gemma3_text",)
    gguf_architectures = ("gemma3",)
