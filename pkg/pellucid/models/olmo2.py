"""OLMo 2: Llama with norms behind attention and feed-forward, and over whole queries and keys.

OLMo Team 2024, "2 OLMo 2 Furious". Attribute paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field
from .decoder import Attention, Decoder, DecoderLayer, part
from .decoder_config import DecoderConfig
from .language_model import CausalLM
from .names import Names


@dataclass(frozen=True)
class Olmo2Config(DecoderConfig):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {**DecoderConfig.table, "attention_bias": FLAG}
    names: ClassVar[Names] = replace(
        DecoderConfig.names, query_norm="q_norm", key_norm="k_norm", before_attention="",
        after_attention="post_attention_layernorm", before_mlp="", after_mlp="post_feedforward_layernorm",
    )  # fmt: skip


class Olmo2Attention(Attention):
    """Attention whose queries and keys are normed before they are heads."""

    def add_norms(self, config: Olmo2Config) -> None:
        for name, count in ((self.names.query_norm, self.heads), (self.names.key_norm, self.kv_heads)):
            setattr(self, name, config.norm(count * self.head_dim))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        names = self.names
        query = part(self, names.query_norm, part(self, names.query, x))
        key = part(self, names.key_norm, part(self, names.key, x))
        query, key, value = (self.split(own) for own in (query, key, part(self, names.value, x)))
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)


class Olmo2DecoderLayer(DecoderLayer):
    """A layer with OLMo 2's attention."""

    attention_class = Olmo2Attention


class Olmo2Model(Decoder):
    """A decoder with OLMo 2's layers."""

    layer_class = Olmo2DecoderLayer


class Olmo2ForCausalLM(CausalLM):
    """OLMo 2 with a head over the vocabulary.

    Args:
        config: an `Olmo2Config`.
    """

    config_class = Olmo2Config
    model_class = Olmo2Model
    model_types = ("olmo2",)
    gguf_architectures = ("olmo2",)
