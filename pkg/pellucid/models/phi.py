"""Phi and Phi-2: rotary positions of a part of each head, and one norm for both branches of a layer.

Li et al. 2023, "Textbooks are all you need II: phi-1.5". Attribute paths are the tensor names of their
checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..weights.fields import Field
from .decoder_config import FEED_FORWARD, KEY_HEADS, PART_TURNED, ROTARY, LayerNormConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class PhiConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **FEED_FORWARD, **KEY_HEADS, **ROTARY, **PART_TURNED,
    }  # fmt: skip
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "num_key_value_heads": "attention.head_count_kv",
        "rope_theta": "rope.freq_base",
    }
    names: ClassVar[Names] = Names(
        norm="final_layernorm", before_mlp="", output="dense", gate="", up="fc1", down="fc2"
    )
    partial_rotary_factor: float = 0.5

    @property
    def is_parallel(self) -> bool:
        return True

    @property
    def head_bias(self) -> bool:
        return True


class PhiForCausalLM(CausalLM):
    """Phi with a head over the vocabulary.

    Args:
        config: a `PhiConfig`.
    """

    config_class = PhiConfig
    model_types = ("phi",)
    gguf_architectures = ("phi2",)
