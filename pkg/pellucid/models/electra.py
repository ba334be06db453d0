"""ELECTRA: BERT whose embeddings may be narrower than its hidden states.

Clark et al. 2020, "ELECTRA: Pre-training text encoders as discriminators rather than generators". Attribute
paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn import functional as F
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field, one_of, text, whole
from .bert import BertEncoder
from .encoder import RATE, BertKeys, Embeddings, Encoder
from .heads import MaskedLM, QuestionAnswerer, TokenClassifier
from .output import EncoderOutput
from .roberta import FirstPositionHead, RobertaForSequenceClassification


@dataclass(frozen=True)
class ElectraConfig(BertKeys):
    """Fields are the keys of ``config.json``; those of summaries are read by no model here."""

    table: ClassVar[Mapping[str, Field]] = {
        **BertKeys.table,
        "embedding_size": whole(1, 1 << 20),
        "summary_activation": text(100),
        "summary_last_dropout": RATE,
        "summary_type": one_of("first", "last", "mean", "cls_index"),
        "summary_use_proj": FLAG,
    }
    hidden_size: int = 256
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    embedding_size: int = 128
    summary_activation: str = "gelu"
    summary_last_dropout: float = 0.1
    summary_type: str = "first"
    summary_use_proj: bool = True


class ElectraModel(Encoder):
    """ELECTRA without a head.

    Args:
        config: an `ElectraConfig`.
        add_pooling_layer: it never has one.
    """

    config_class = ElectraConfig
    prefix = "electra"
    model_types = ("electra",)

    def __init__(self, config: Any, add_pooling_layer: bool = False):
        super().__init__(config)
        narrow, dim = config.embedding_size, config.hidden_size
        self.embeddings = Embeddings(config, narrow, config.layer_norm_eps, config.hidden_dropout_prob)
        self.embeddings_project = Linear(narrow, dim) if narrow != dim else None
        self.encoder = BertEncoder(config)

    def blocks(self) -> Iterable[Module]:
        return self.encoder.layer

    def encode(self, x: Tensor, attention_mask: Tensor | None, keep: list[Tensor] | None) -> Tensor:
        x = self.embeddings_project(x) if self.embeddings_project is not None else x
        return super().encode(x, attention_mask, keep)


class ElectraGeneratorPredictions(Module):
    """``norm(gelu(dense(x)))``."""

    def __init__(self, config: ElectraConfig):
        super().__init__()
        self.LayerNorm = LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.dense = Linear(config.hidden_size, config.embedding_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.LayerNorm(F.gelu(self.dense(x)))


class ElectraForMaskedLM(MaskedLM):
    """ELECTRA's generator, which says which ids are behind masks."""

    model_class = ElectraModel
    tied = {"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"}

    def build(self, config: ElectraConfig) -> None:
        self.generator_predictions = ElectraGeneratorPredictions(config)
        self.generator_lm_head = Linear(config.embedding_size, config.vocab_size)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.generator_lm_head(self.generator_predictions(out.last_hidden_state))


class ElectraClassificationHead(FirstPositionHead):
    """The head of RoBERTa with GELU."""

    activation = staticmethod(F.gelu)


class ElectraForSequenceClassification(RobertaForSequenceClassification):
    """ELECTRA that gives a text a label."""

    model_class = ElectraModel
    head_class = ElectraClassificationHead


class ElectraForTokenClassification(TokenClassifier):
    """ELECTRA that gives every token a label."""

    model_class = ElectraModel


class ElectraForQuestionAnswering(QuestionAnswerer):
    """ELECTRA that finds the answer to a question in a text."""

    model_class = ElectraModel
