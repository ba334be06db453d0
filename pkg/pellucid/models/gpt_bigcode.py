"""GPT-BigCode, the StarCoder of 2023: GPT-2 with one key head for all queries.

Li et al. 2023, "StarCoder: may the source be with you!". Attribute paths are the tensor names of its
checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..weights.fields import FLAG, Field
from .decoder import Decoder, DecoderLayer, HeadwiseAttention
from .decoder_config import KEY_HEADS, LayerNormConfig
from .gpt2 import GPT2Config
from .language_model import CausalLM


@dataclass(frozen=True)
class GPTBigCodeConfig(GPT2Config):
    """Fields are the keys of ``config.json`` by their newer names: ``n_embd`` is ``hidden_size``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, **KEY_HEADS, "multi_query": FLAG, "scale_attn_weights": FLAG,
    }  # fmt: skip
    neutral: ClassVar[Mapping[str, Any]] = {
        "attention_softmax_in_fp32": True, "scale_attention_softmax_in_fp32": True, "inference_runner": 0,
        "validate_runner_input": True, "pre_allocate_kv_cache": False, "max_batch_size": None,
    }  # fmt: skip
    gguf_settings: ClassVar[Mapping[str, Any]] = {}
    hidden_act: str = "gelu_pytorch_tanh"
    multi_query: bool = True

    @property
    def kv_heads(self) -> int:
        return 1 if self.multi_query else self.num_attention_heads

    @property
    def joined_by_head(self) -> bool:
        """Whether a head's query, key and value are beside each other."""
        return not self.multi_query

    def linear(self, inputs: int, outputs: int, bias: bool) -> Module:
        return Linear(inputs, outputs, bias=bias)


class GPTBigCodeBlock(DecoderLayer):
    """A layer with GPT-BigCode's attention."""

    attention_class = HeadwiseAttention


class GPTBigCodeModel(Decoder):
    """A decoder with GPT-BigCode's layers."""

    layer_class = GPTBigCodeBlock


class GPTBigCodeForCausalLM(CausalLM):
    """GPT-BigCode with a head over the vocabulary.

    Args:
        config: a `GPTBigCodeConfig`.
    """

    config_class = GPTBigCodeConfig
    model_class = GPTBigCodeModel
    model_types = ("gpt_bigcode",)
    gguf_architectures = ("starcoder",)
