"""GPT-J: rotary positions of neighbouring columns, and one norm for both branches of a layer.

Wang and Komatsuzaki 2021, "GPT-J-6B". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ..weights.fields import FLAG, Field, whole
from .decoder_config import LayerNormConfig
from .gpt2 import GPT_KEYS
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class GPTJConfig(LayerNormConfig):
    """Fields are the keys of ``config.json`` by their newer names: ``n_embd`` is ``hidden_size``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, "rotary_dim": whole(2, 4096), "scale_attn_weights": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = GPT_KEYS
    gguf_keys: ClassVar[Mapping[str, str]] = {
        k: v for k, v in LayerNormConfig.gguf_keys.items() if k != "intermediate_size"
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "intermediate_size": "feed_forward_length",
        "rotary_dim": "rope.dimension_count",
    }
    names: ClassVar[Names] = Names(
        decoder="transformer", embedding="wte", layers="h", norm="ln_f", attention="attn",
        before_attention="ln_1", before_mlp="", output="out_proj", gate="", up="fc_in", down="fc_out",
    )  # fmt: skip
    intermediate_size: int | None = None  # type: ignore[assignment]
    attention_bias: bool = False
    rope_interleaved: bool = True
    rotary_dim: int | None = 64
    scale_attn_weights: bool = True

    def checked(self, where: str):
        if self.intermediate_size is None:
            return replace(self, intermediate_size=4 * self.hidden_size).checked(where)
        return super().checked(where)

    @property
    def turned(self) -> int:
        return min(self.rotary_dim or self.columns, self.columns)

    @property
    def is_parallel(self) -> bool:
        return True

    @property
    def head_bias(self) -> bool:
        return True


class GPTJForCausalLM(CausalLM):
    """GPT-J with a head over the vocabulary.

    Args:
        config: a `GPTJConfig`.
    """

    config_class = GPTJConfig
    model_types = ("gptj",)
    gguf_architectures = ("gptj",)
