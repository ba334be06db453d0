"""Phi-3: Llama whose queries, keys and values are one product, and so are gate and up.

Abdin et al. 2024, "Phi-3 technical report". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ..weights.fields import FLAG, Field, whole
from .decoder_config import PART_TURNED, WINDOW, DecoderConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class Phi3Config(DecoderConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **DecoderConfig.table, **PART_TURNED, **WINDOW, "attention_bias": FLAG,
        "original_max_position_embeddings": whole(1),
    }  # fmt: skip
    gguf_optional: ClassVar[Mapping[str, str]] = {
        **DecoderConfig.gguf_optional,
        "sliding_window": "attention.sliding_window",
    }
    names: ClassVar[Names] = replace(DecoderConfig.names, joined="qkv_proj", gate="", up="gate_up_proj")
    original_max_position_embeddings: int | None = None


class Phi3ForCausalLM(CausalLM):
    """Phi-3 with a head over the vocabulary.

    Args:
        config: a `Phi3Config`.
    """

    config_class = Phi3Config
    model_types = ("phi3",)
    gguf_architectures = ("phi3",)
