"""Arcee (AFM): Llama whose feed-forward has no gate and squares its ReLU.

Arcee AI 2025, "AFM-4.5B"; the square is of So et al. 2021, "Primer". Attribute paths are the tensor names
of its checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from .language_model import CausalLM
from .llama import LlamaConfig
from .names import Names


@dataclass(frozen=True)
class ArceeConfig(LlamaConfig):
    """Fields are the keys of ``config.json``."""

    names: ClassVar[Names] = replace(LlamaConfig.names, gate="")
    is_gated: ClassVar[bool] = False
    hidden_size: int = 2560
    intermediate_size: int = 18432
    hidden_act: str = "relu2"
    max_position_embeddings: int = 4096
    rms_norm_eps: float = 1e-5


class ArceeForCausalLM(CausalLM):
    """Arcee with a head over the vocabulary.

    Args:
        config: an `ArceeConfig`.
    """

    config_class = ArceeConfig
    model_types = ("arcee",)
    gguf_architectures = ("arcee",)
