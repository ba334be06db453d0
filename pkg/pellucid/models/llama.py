"""Llama: RMSNorm, rotary positions, grouped-query attention, gated SiLU feed-forward.

Touvron et al. 2023, "LLaMA: Open and efficient foundation language models". Serves Llama 2 and 3, SmolLM2 and
others of that shape; attribute paths are the tensor names of their checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..weights.fields import FLAG, Field
from .decoder_config import DecoderConfig
from .language_model import CausalLM


@dataclass(frozen=True)
class LlamaConfig(DecoderConfig):
    """Fields are the keys of ``config.json``.

    ``rope_interleaved`` is set for GGUF files, whose query and key rows lie in another order.
    """

    table: ClassVar[Mapping[str, Field]] = {**DecoderConfig.table, "attention_bias": FLAG, "mlp_bias": FLAG}
    gguf_settings: ClassVar[Mapping[str, Any]] = {"rope_interleaved": True}


class LlamaForCausalLM(CausalLM):
    """Llama with a head over the vocabulary.

    Args:
        config: a `LlamaConfig`.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=1, **sizes))
        ...     model(torch.tensor([[1, 2, 3]])).logits.shape
        Size([1, 3, 16])
    """

    config_class = LlamaConfig
    model_types = ("llama",)
    gguf_architectures = ("llama",)
