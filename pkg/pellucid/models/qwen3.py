"""Qwen3: Llama with a norm over each head's queries and keys.

Qwen Team 2025, "Qwen3 technical report". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from .language_model import CausalLM
from .names import Names
from .qwen2 import Qwen2Config


@dataclass(frozen=True)
class Qwen3Config(Qwen2Config):
    """Fields are the keys of ``config.json``."""

    names: ClassVar[Names] = replace(Qwen2Config.names, query_norm="q_norm", key_norm="k_norm")
    head_dim: int | None = 128
    rope_theta: float = 1e6
    attention_bias: bool = False

    @property
    def output_bias(self) -> bool:
        return self.attention_bias


class Qwen3ForCausalLM(CausalLM):
    """Qwen3 with a head over the vocabulary.

    Args:
        config: a `Qwen3Config`.
    """

    config_class = Qwen3Config
    model_types = ("qwen3",)
    gguf_architectures = ("qwen3",)
