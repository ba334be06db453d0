"""Gemma: Llama with scaled embeddings, norms whose weights count from one, and a gated GELU.

Gemma Team 2024, "Gemma: Open models based on Gemini research and technology". Attribute paths are the tensor
names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from ..nn import functional as F
from ..nn.modules.embedding import Embedding
from ..nn.modules.norm import RMSNorm
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, text
from .language_model import CausalLM
from .llama import LlamaConfig, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP, LlamaModel


@dataclass(frozen=True)
class GemmaConfig(LlamaConfig):
    """Fields are the keys of ``config.json``.

    ``norms_from_one`` is not set for GGUF files, whose norms have the one already.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **LlamaConfig.table,
        "hidden_activation": text(100),
        "norms_from_one": FLAG,
    }
    gguf_interleaved: ClassVar[bool] = False
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    hidden_activation: str | None = None
    max_position_embeddings: int = 8192
    tie_word_embeddings: bool = True
    norms_from_one: bool = True

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        return replace(super().from_gguf(checkpoint), norms_from_one=False)

    @property
    def activation(self) -> str:
        return self.hidden_activation or self.hidden_act

    def norm(self) -> RMSNorm:
        kind = GemmaRMSNorm if self.norms_from_one else RMSNorm
        return kind(self.hidden_size, eps=self.rms_norm_eps)


class GemmaRMSNorm(RMSNorm):
    """``input / sqrt(mean(input^2) + eps) * (1 + weight)``."""

    def forward(self, input: Tensor) -> Tensor:
        assert self.weight is not None
        return F.rms_norm(input, self.normalized_shape, self.weight + 1, self.eps)


class GemmaEmbedding(Embedding):
    """Rows of the table times the square root of their length."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) * self.embedding_dim**0.5


class GemmaMLP(LlamaMLP):
    """Gated feed-forward: ``down(gelu(gate(x)) * up(x))``."""

    activations: ClassVar[Mapping[str, Callable]] = {
        "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh")
    }


class GemmaDecoderLayer(LlamaDecoderLayer):
    """A Llama layer with Gemma's norms and feed-forward."""

    mlp_class = GemmaMLP


class GemmaModel(LlamaModel):
    """A Llama model with Gemma's embedding and layers."""

    embedding_class = GemmaEmbedding
    layer_class = GemmaDecoderLayer


class GemmaForCausalLM(CausalLM):
    """Gemma with a head over the vocabulary.

    Args:
        config: a `GemmaConfig`.
    """

    config_class = GemmaConfig
    model_class = GemmaModel
    model_types = ("gemma",)
    gguf_architectures = ("gemma",)
    gguf_names = LlamaForCausalLM.gguf_names
