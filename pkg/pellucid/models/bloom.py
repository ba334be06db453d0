"""BLOOM: no positions but a bias of scores by distance (ALiBi), and a norm behind the embedding.

BigScience 2022, "BLOOM"; Press et al. 2022, "Train short, test long". Attribute paths are the tensor names of
its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, log2
from typing import Any, ClassVar

import numpy as np

from ..device.stream import stream
from ..ops.elementwise.comparison import where
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field
from .decoder import Decoder, DecoderLayer, HeadwiseAttention
from .decoder_config import LayerNormConfig
from .language_model import CausalLM
from .masks import HIDDEN, visible
from .names import Names


def alibi_slopes(heads: int) -> list[float]:
    """The factor of each head's distances.

    Source: Press et al. 2022, "Train short, test long", section 3, and their code where heads are no power
        of two

    Example:
        >>> alibi_slopes(4)
        [0.25, 0.0625, 0.015625, 0.00390625]
    """
    whole = 2 ** floor(log2(heads))
    first = [2 ** (-8 / whole * k) for k in range(1, whole + 1)]
    return first + [2 ** (-4 / whole * k) for k in range(1, 2 * (heads - whole), 2)]


@dataclass(frozen=True)
class BloomConfig(LayerNormConfig):
    """Fields are the keys of ``config.json``; ``joined_by_head`` is not set for GGUF files."""

    table: ClassVar[Mapping[str, Field]] = {
        **{k: v for k, v in LayerNormConfig.table.items() if k != "hidden_act"}, "joined_by_head": FLAG,
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "n_embed": "hidden_size",
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "seq_length": "max_position_embeddings",
        "layer_norm_epsilon": "layer_norm_eps",
    }
    neutral: ClassVar[Mapping[str, Any]] = {
        "bias_dropout_fusion": True, "offset_alibi": 100, "masked_softmax_fusion": True,
        "attention_softmax_in_fp32": True,
    }  # fmt: skip
    gguf_settings: ClassVar[Mapping[str, Any]] = {"joined_by_head": False}
    names: ClassVar[Names] = Names(
        decoder="transformer", embedding="word_embeddings", embedding_norm="word_embeddings_layernorm",
        layers="h", norm="ln_f", attention="self_attention", joined="query_key_value", output="dense",
        gate="", up="dense_h_to_4h", down="dense_4h_to_h",
    )  # fmt: skip
    intermediate_size: int | None = None  # type: ignore[assignment]
    max_position_embeddings: int = 2048
    tie_word_embeddings: bool = True
    joined_by_head: bool = True

    def checked(self, where: str):
        if self.intermediate_size is None:
            return replace(self, intermediate_size=4 * self.hidden_size).checked(where)
        return super().checked(where)

    @property
    def has_biased_scores(self) -> bool:
        """Whether scores have a bias."""
        return True

    def turning(self, layer: int) -> str:
        return ""


class BloomBlock(DecoderLayer):
    """A layer whose joined product goes by heads."""

    attention_class = HeadwiseAttention


class BloomModel(Decoder):
    """A decoder whose scores have a bias by distance."""

    layer_class = BloomBlock

    def __init__(self, config: BloomConfig):
        super().__init__(config)
        self._biases: dict[tuple, Tensor] = {}

    def masks(self, ids: Tensor, cache: Any, attention_mask: Tensor | None) -> dict:
        seen = visible(attention_mask, ids, cache)
        if cache is not None:
            return {None: self.bias(cache.capacity, ids.device)}
        if seen is None:
            seen = visible(ids == ids, ids, None)
        # Of a row only differences matter: the bias may begin at any position.
        return {None: where(seen, self.bias(ids.shape[1], ids.device), HIDDEN)}

    def bias(self, length: int, device: Any) -> Tensor:
        """What is added to the scores of each key: (1, heads, 1, length); made once for a length."""
        key = (length, device, stream().opened)
        if key not in self._biases:
            slopes = np.array(alibi_slopes(self.config.num_attention_heads), np.float32)
            table = slopes[None, :, None, None] * np.arange(length, dtype=np.float32)
            self._biases = {key: tensor(table, device=device)}
        return self._biases[key]


class BloomForCausalLM(CausalLM):
    """BLOOM with a head over the vocabulary.

    Args:
        config: a `BloomConfig`.
    """

    config_class = BloomConfig
    model_class = BloomModel
    model_types = ("bloom",)
    gguf_architectures = ("bloom",)
