"""Mistral: Llama whose attention sees a window of the last positions.

Jiang et al. 2023, "Mistral 7B". Attribute paths are the tensor names of its checkpoints. A GGUF of Mistral
says that it is a Llama, and has no window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..weights.fields import Field
from .decoder_config import WINDOW, DecoderConfig
from .language_model import CausalLM


@dataclass(frozen=True)
class MistralConfig(DecoderConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {**DecoderConfig.table, **WINDOW}
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    sliding_window: int | None = 4096


class MistralForCausalLM(CausalLM):
    """Mistral with a head over the vocabulary.

    Args:
        config: a `MistralConfig`.
    """

    config_class = MistralConfig
    model_types = ("mistral",)
    gguf_like = "llama"
