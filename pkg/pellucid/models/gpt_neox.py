"""GPT-NeoX and Pythia: rotary positions of a quarter of each head, parallel residuals.

Black et al. 2022, "GPT-NeoX-20B"; Biderman et al. 2023, "Pythia". Attribute paths are the tensor names of
their checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..weights.fields import FLAG, Field
from .decoder import Decoder, DecoderLayer, HeadwiseAttention
from .decoder_config import FEED_FORWARD, PART_TURNED, ROTARY, LayerNormConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class GPTNeoXConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``; ``joined_by_head`` is not set for GGUF files."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **FEED_FORWARD, **ROTARY, **PART_TURNED, "attention_bias": FLAG,
        "use_parallel_residual": FLAG, "joined_by_head": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "rotary_pct": "partial_rotary_factor",
        "rotary_emb_base": "rope_theta",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "rope_theta": "rope.freq_base",
        "use_parallel_residual": "use_parallel_residual",
    }
    gguf_settings: ClassVar[Mapping[str, Any]] = {"joined_by_head": False}
    names: ClassVar[Names] = Names(
        decoder="gpt_neox", head="embed_out", embedding="embed_in", norm="final_layer_norm",
        attention="attention", joined="query_key_value", output="dense", gate="", up="dense_h_to_4h",
        down="dense_4h_to_h",
    )  # fmt: skip
    hidden_act: str = "gelu"
    partial_rotary_factor: float = 0.25
    use_parallel_residual: bool = True
    joined_by_head: bool = True

    @property
    def is_parallel(self) -> bool:
        return self.use_parallel_residual


class GPTNeoXLayer(DecoderLayer):
    """A layer whose joined product goes by heads."""

    attention_class = HeadwiseAttention


class GPTNeoXModel(Decoder):
    """A decoder with GPT-NeoX's layers."""

    layer_class = GPTNeoXLayer


class GPTNeoXForCausalLM(CausalLM):
    """GPT-NeoX with a head over the vocabulary.

    Args:
        config: a `GPTNeoXConfig`.
    """

    config_class = GPTNeoXConfig
    model_class = GPTNeoXModel
    model_types = ("gpt_neox",)
    gguf_architectures = ("gptneox",)
