"""Qwen2 and Qwen2.5: Llama whose queries, keys and values have biases.

Qwen Team 2024, "Qwen2 technical report". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..nn.modules.linear import Linear
from ..weights.fields import FLAG, Field, listed, text
from .language_model import CausalLM
from .llama import LlamaAttention, LlamaConfig, LlamaDecoderLayer, LlamaForCausalLM, LlamaModel


@dataclass(frozen=True)
class Qwen2Config(LlamaConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LlamaConfig.table,
        "layer_types": listed(text(100), 4096),
        "use_sliding_window": FLAG,
    }
    gguf_interleaved: ClassVar[bool] = False
    max_position_embeddings: int = 32768
    attention_bias: bool = True
    layer_types: list[str] | None = None
    use_sliding_window: bool = False

    @property
    def window(self) -> int | None:
        return self.sliding_window if self.use_sliding_window else None


class Qwen2Attention(LlamaAttention):
    """Attention whose output has no bias.

    Args:
        config: the model's.
        layer: which layer of the cache is its own.
    """

    def __init__(self, config: Qwen2Config, layer: int):
        super().__init__(config, layer)
        self.o_proj = Linear(self.heads * self.head_dim, config.hidden_size, bias=False)


class Qwen2DecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Qwen2's attention."""

    attention_class = Qwen2Attention


class Qwen2Model(LlamaModel):
    """A Llama model with Qwen2's layers."""

    layer_class = Qwen2DecoderLayer


class Qwen2ForCausalLM(CausalLM):
    """Qwen2 with a head over the vocabulary.

    Args:
        config: a `Qwen2Config`.
    """

    config_class = Qwen2Config
    model_class = Qwen2Model
    model_types = ("qwen2",)
    gguf_architectures = ("qwen2",)
    gguf_names = LlamaForCausalLM.gguf_names
