"""MPNet: BERT without token types, whose attention also knows how far apart two positions are.

Song et al. 2020, "MPNet: Masked and permuted pre-training for language understanding". Attribute paths are
the tensor names of its checkpoints. Serves all-mpnet-base, which embeds sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn.modules.dropout import Dropout
from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..tensors.tensor import Tensor
from ..weights.fields import Field, whole
from .bert import BertEncoder, BertLayer
from .encoder import BertKeys, Encoder, Pooler, attend
from .heads import MaskedLM, QuestionAnswerer, TokenClassifier
from .output import EncoderOutput
from .relative import additive, relative_bias
from .roberta import RobertaEmbeddings, RobertaForSequenceClassification, RobertaLMHead


@dataclass(frozen=True)
class MPNetConfig(BertKeys):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **BertKeys.table,
        "relative_attention_num_buckets": whole(4, 1 << 16),
    }
    vocab_size: int = 30527
    pad_token_id: int | None = 1
    type_vocab_size: int = 0
    relative_attention_num_buckets: int = 32

    @property
    def positions(self) -> int:
        return self.max_position_embeddings - 2


class MPNetSelfAttention(Module):
    """Attention to both sides."""

    def __init__(self, config: MPNetConfig):
        super().__init__()
        dim = config.hidden_size
        self.q, self.k, self.v, self.o = (Linear(dim, dim) for _ in range(4))
        self.heads, self.rate = config.num_attention_heads, config.attention_probs_dropout_prob

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        rate = self.rate if self.training else 0.0
        return self.o(attend(self.q(x), self.k(x), self.v(x), self.heads, mask, rate))


class MPNetAttention(Module):
    """Attention beside the residual."""

    def __init__(self, config: MPNetConfig):
        super().__init__()
        self.attn = MPNetSelfAttention(config)
        self.LayerNorm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.LayerNorm(self.dropout(self.attn(x, mask)) + x)


class MPNetLayer(BertLayer):
    """A layer of BERT with this attention."""

    attention_class = MPNetAttention


class MPNetEncoder(BertEncoder):
    """The layers, and what they add to scores by distance."""

    def __init__(self, config: MPNetConfig):
        super().__init__(config, MPNetLayer)
        buckets, heads = config.relative_attention_num_buckets, config.num_attention_heads
        self.relative_attention_bias = Embedding(buckets, heads)


class MPNetModel(Encoder):
    """MPNet without a head.

    Args:
        config: an `MPNetConfig`.
        add_pooling_layer: whether ``pooler_output`` is computed.
    """

    config_class = MPNetConfig
    prefix = "mpnet"
    model_types = ("mpnet",)

    def __init__(self, config: Any, add_pooling_layer: bool = True):
        super().__init__(config)
        dim, rate = config.hidden_size, config.hidden_dropout_prob
        self.embeddings = RobertaEmbeddings(config, dim, config.layer_norm_eps, rate)
        self.encoder = MPNetEncoder(config)
        self.pooler = Pooler(dim) if add_pooling_layer else None

    def blocks(self) -> Iterable[Module]:
        return self.encoder.layer

    def mask(self, keys: Tensor | None, x: Tensor) -> Tensor:
        bias = relative_bias(self.encoder.relative_attention_bias, x.shape[1], 128)
        return bias + additive(keys)


class MPNetForMaskedLM(MaskedLM):
    """MPNet that says which ids are behind masks."""

    model_class = MPNetModel
    tied = {
        "lm_head.decoder.weight": "mpnet.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def build(self, config: MPNetConfig) -> None:
        self.lm_head = RobertaLMHead(config)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.lm_head(out.last_hidden_state)


class MPNetForSequenceClassification(RobertaForSequenceClassification):
    """MPNet that gives a text a label."""

    model_class = MPNetModel


class MPNetForTokenClassification(TokenClassifier):
    """MPNet that gives every token a label."""

    model_class = MPNetModel


class MPNetForQuestionAnswering(QuestionAnswerer):
    """MPNet that finds the answer to a question in a text."""

    model_class = MPNetModel
