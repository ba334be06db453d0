"""OPT: learned positions that begin at the third row, ReLU, and feed-forwards that lie in the layer itself.

Zhang et al. 2022, "OPT: Open pre-trained transformer language models". Attribute paths are the tensor names
of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Linear
from ..nn.modules.norm import LayerNorm
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field, whole
from .activations import activation
from .decoder import Attention, Decoder, DecoderLayer, add_linear
from .decoder_config import LayerNormConfig
from .language_model import CausalLM
from .names import Names

_FIRST = 2  # rows of the table before the first position


@dataclass(frozen=True)
class OPTConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``, but ``ffn_dim`` is ``intermediate_size``."""

    table: ClassVar[Mapping[str, Field]] = {
        **LayerNormConfig.table, "do_layer_norm_before": FLAG, "_remove_final_layer_norm": FLAG,
        "attention_bias": FLAG, "word_embed_proj_dim": whole(1, 1 << 20),
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "ffn_dim": "intermediate_size",
        "activation_function": "hidden_act",
        "enable_bias": "attention_bias",
    }
    neutral: ClassVar[Mapping[str, Any]] = {"layer_norm_elementwise_affine": True}
    names: ClassVar[Names] = Names(
        decoder="model.decoder", positions="embed_positions", norm="final_layer_norm", mlp="",
        before_attention="self_attn_layer_norm", before_mlp="final_layer_norm", output="out_proj", gate="",
        up="fc1", down="fc2",
    )  # fmt: skip
    hidden_act: str = "relu"
    tie_word_embeddings: bool = True
    do_layer_norm_before: bool = True
    _remove_final_layer_norm: bool = False
    word_embed_proj_dim: int | None = None

    @property
    def module_names(self) -> Names:
        if not self.do_layer_norm_before or self._remove_final_layer_norm:
            return replace(self.names, norm="")
        return self.names

    @property
    def embedding_columns(self) -> int:
        """Columns of the embedding and of the head."""
        return self.word_embed_proj_dim or self.hidden_size

    def turning(self, layer: int) -> str:
        return ""


class OPTDecoderLayer(DecoderLayer):
    """A layer that holds its feed-forward, with norms before or behind both parts."""

    self_attn: Attention
    self_attn_layer_norm: LayerNorm
    final_layer_norm: LayerNorm
    fc1: Linear
    fc2: Linear

    def __init__(self, config: OPTConfig, layer: int):
        super().__init__(config, layer)
        self.activation, self.is_before = activation(config.hidden_act), config.do_layer_norm_before

    def add_mlp(self, config: OPTConfig, layer: int) -> None:
        dim, columns, bias = config.hidden_size, config.intermediate_size, config.attention_bias
        add_linear(self, config, "fc1", dim, columns, bias)
        add_linear(self, config, "fc2", columns, dim, bias)

    def forward(self, x: Tensor, rotary: Any, cache: Any = None, mask: Tensor | None = None) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, rotary, cache, mask)

        def feed(x: Tensor) -> Tensor:
            return self.fc2(self.activation(self.fc1(x)))

        for norm, function in ((self.self_attn_layer_norm, attend), (self.final_layer_norm, feed)):
            x = x + function(norm(x)) if self.is_before else norm(x + function(x))
        return x


class OPTDecoder(Decoder):
    """A decoder whose embedding may have other columns than its layers."""

    layer_class = OPTDecoderLayer

    def add_embeddings(self, config: OPTConfig) -> None:
        columns, dim = config.embedding_columns, config.hidden_size
        self.embed_tokens = Embedding(config.vocab_size, columns)
        self.embed_positions = Embedding(config.max_position_embeddings + _FIRST, dim)
        if columns != dim:
            self.project_in = Linear(columns, dim, bias=False)
            self.project_out = Linear(dim, columns, bias=False)

    def embed(self, ids: Tensor, cache: Any, attention_mask: Tensor | None) -> Tensor:
        x = self.embed_tokens(ids)
        if self.config.embedding_columns != self.config.hidden_size:
            x = self.project_in(x)
        return x + self.embed_positions(self.places(ids, cache, attention_mask))

    def finish(self, x: Tensor) -> Tensor:
        x = super().finish(x)
        return self.project_out(x) if self.config.embedding_columns != self.config.hidden_size else x

    def places(self, ids: Tensor, cache: Any, attention_mask: Tensor | None) -> Tensor:
        places = super().places(ids, cache, attention_mask)
        if attention_mask is not None:  # padding takes no positions
            seen = attention_mask.long()
            places = seen.cumsum(1) * seen - 1
        return places + _FIRST


class OPTForCausalLM(CausalLM):
    """OPT with a head over the vocabulary.

    Args:
        config: an `OPTConfig`.
    """

    config_class = OPTConfig
    model_class = OPTDecoder
    model_types = ("opt",)

    def unembed(self, hidden: Tensor) -> Tensor:
        return self.logits(self.decoder.finish(hidden))
