"""Qwen2 and Qwen2.5: Llama whose queries, keys and values have biases.

Qwen Team 2024, "Qwen2 technical report". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..weights.fields import FLAG, Field, whole
from .decoder_config import LAYER_KINDS, WINDOW, DecoderConfig
from .language_model import CausalLM


@dataclass(frozen=True)
class Qwen2Config(DecoderConfig):
    """Fields are the keys of ``config.json``; the first ``max_window_layers`` have no window."""

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table, **WINDOW, **LAYER_KINDS,
        "use_sliding_window": FLAG, "max_window_layers": whole(0), "attention_bias": FLAG,
    }  # fmt: skip
    max_position_embeddings: int = 32768
    attention_bias: bool = True
    use_sliding_window: bool = False
    max_window_layers: int = 28

    @property
    def output_bias(self) -> bool:
        return False

    def window(self, layer: int) -> int | None:
        if not self.use_sliding_window or (self.layer_types is None and layer < self.max_window_layers):
            return None
        return super().window(layer)


class Qwen2ForCausalLM(CausalLM):
    """Qwen2 with a head over the vocabulary.

    Args:
        config: a `Qwen2Config`.
    """

    config_class = Qwen2Config
    model_types = ("qwen2",)
    gguf_architectures = ("qwen2",)
