"""GPT-2: learned positions, LayerNorm, a joined product for queries, keys and values.

Radford et al. 2019, "Language models are unsupervised multitask learners". Attribute paths are the tensor
names of its checkpoints, whose matrices lie transposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..errors import FormatError
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.matmul.dense import matmul
from ..ops.shape.creation import empty
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field
from .decoder_config import LayerNormConfig
from .language_model import CausalLM
from .names import Names

GPT_KEYS = {
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_layer": "num_hidden_layers",
    "n_positions": "max_position_embeddings",
    "n_ctx": "max_position_embeddings",
    "activation_function": "hidden_act",
    "layer_norm_epsilon": "layer_norm_eps",
}


class Conv1D(Module):
    """``input @ weight + bias``: a linear layer whose weight lies as (in, out).

    Args:
        inputs, outputs: columns before and after.
    """

    transposed_parts: ClassVar[int] = 1

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = Parameter(empty(inputs, outputs).normal_(0, 0.02))
        self.bias = Parameter(empty(outputs).zero_())

    def forward(self, input: Tensor) -> Tensor:
        return matmul(input, self.weight) + self.bias


@dataclass(frozen=True)
class GPT2Config(LayerNormConfig):
    """Fields are the keys of ``config.json`` by their newer names: ``n_embd`` is ``hidden_size``.

    ``transposed`` is not set for GGUF files, whose matrices lie as those of others.
    """

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, "scale_attn_by_inverse_layer_idx": FLAG, "scale_attn_weights": FLAG,
        "transposed": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = GPT_KEYS
    gguf_settings: ClassVar[Mapping[str, Any]] = {"transposed": False}
    names: ClassVar[Names] = Names(
        decoder="transformer", embedding="wte", positions="wpe", layers="h", norm="ln_f", attention="attn",
        before_attention="ln_1", before_mlp="ln_2", joined="c_attn", output="c_proj", gate="", up="c_fc",
        down="c_proj",
    )  # fmt: skip
    vocab_size: int = 50257
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int | None = None  # type: ignore[assignment]
    max_position_embeddings: int = 1024
    tie_word_embeddings: bool = True
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    transposed: bool = True

    def checked(self, where: str):
        if self.intermediate_size is None:
            return replace(self, intermediate_size=4 * self.hidden_size).checked(where)
        if self.scale_attn_by_inverse_layer_idx:
            raise FormatError(
                f"{where}: scale_attn_by_inverse_layer_idx is set, and scores of layers with factors of "
                "their own are not known here. Load a model without it."
            )
        return super().checked(where)

    @property
    def scale(self) -> float | None:
        return None if self.scale_attn_weights else 1.0

    def turning(self, layer: int) -> str:
        return ""

    def linear(self, inputs: int, outputs: int, bias: bool) -> Module:
        return Conv1D(inputs, outputs) if self.transposed else Linear(inputs, outputs, bias=bias)


class GPT2LMHeadModel(CausalLM):
    """GPT-2 with a head over the vocabulary.

    Args:
        config: a `GPT2Config`.
    """

    config_class = GPT2Config
    model_types = ("gpt2",)
    gguf_architectures = ("gpt2",)
