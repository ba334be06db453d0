"""RoBERTa and XLM-RoBERTa: BERT whose positions count ids that are no padding, behind the padding id.

Liu et al. 2019, "RoBERTa: A robustly optimized BERT pretraining approach". Attribute paths are the tensor
names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn import functional as F
from ..nn.modules.dropout import Dropout
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..nn.parameter import Parameter
from ..ops.shape.creation import arange, zeros
from ..tensors.tensor import Tensor
from .bert import GGUF_KEYS, BertModel
from .encoder import BertKeys, Embeddings
from .heads import MaskedLM, QuestionAnswerer, SequenceClassifier, TokenClassifier
from .output import EncoderOutput


@dataclass(frozen=True)
class RobertaConfig(BertKeys):
    """Fields are the keys of ``config.json``."""

    gguf_keys: ClassVar[Mapping[str, str]] = GGUF_KEYS
    vocab_size: int = 50265
    pad_token_id: int | None = 1

    @property
    def first_position(self) -> int:
        return 1 + (self.pad_token_id or 0)

    def to_gguf(self) -> dict[str, Any]:
        return super().to_gguf() | {"context_length": self.positions, "attention.causal": False}


class RobertaEmbeddings(Embeddings):
    """Embeddings whose positions leave padding out."""

    padded_positions = True

    def position_ids(self, ids: Tensor | None, x: Tensor) -> Tensor:
        pad = self.word_embeddings.padding_idx or 0
        if ids is None:
            return arange(pad + 1, pad + 1 + x.shape[1], device=x.device)
        is_text = (ids != pad).int()
        return is_text.cumsum(1) * is_text + pad


class RobertaModel(BertModel):
    """RoBERTa without a head.

    Args:
        config: a `RobertaConfig`.
        add_pooling_layer: whether ``pooler_output`` is computed.
    """

    config_class = RobertaConfig
    prefix = "roberta"
    model_types = ("roberta", "xlm-roberta", "camembert")
    gguf_like = "bert"
    embeddings_class = RobertaEmbeddings


class RobertaLMHead(Module):
    """Hidden states to logits of ids.

    Args:
        config: the model's.
    """

    def __init__(self, config: BertKeys):
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size)
        self.layer_norm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = Linear(config.hidden_size, config.vocab_size)
        self.bias = Parameter(zeros(config.vocab_size))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.layer_norm(F.gelu(self.dense(x))))


class RobertaForMaskedLM(MaskedLM):
    """RoBERTa that says which ids are behind masks."""

    model_class = RobertaModel
    tied = {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def build(self, config: BertKeys) -> None:
        self.lm_head = RobertaLMHead(config)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.lm_head(out.last_hidden_state)


class FirstPositionHead(Module):
    """``out_proj(activation(dense(x)))`` of the first position, with dropout before both products.

    Args:
        config: the model's.
    """

    activation = staticmethod(F.tanh)

    def __init__(self, config: BertKeys):
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size)
        self.dropout = Dropout(config.head_dropout)
        self.out_proj = Linear(config.hidden_size, config.num_labels)

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(self.dropout(self.activation(self.dense(self.dropout(x[:, 0])))))


class RobertaForSequenceClassification(SequenceClassifier):
    """RoBERTa that gives a text a label."""

    model_class = RobertaModel
    pooled = False
    head_class = FirstPositionHead

    def build(self, config: BertKeys) -> None:
        self.classifier = self.head_class(config)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out.last_hidden_state)


class RobertaForTokenClassification(TokenClassifier):
    """RoBERTa that gives every token a label."""

    model_class = RobertaModel


class RobertaForQuestionAnswering(QuestionAnswerer):
    """RoBERTa that finds the answer to a question in a text."""

    model_class = RobertaModel
