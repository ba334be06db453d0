"""ALBERT: BERT whose layers share their weights, with narrow embeddings.

Lan et al. 2019, "ALBERT: A lite BERT for self-supervised learning of language representations". Attribute
paths are the tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import FormatError
from ..nn import functional as F
from ..nn.modules.container import ModuleList
from ..nn.modules.dropout import Dropout
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..nn.parameter import Parameter
from ..ops.shape.creation import zeros
from ..tensors.tensor import Tensor
from ..weights.fields import Field, whole
from .activations import activation
from .encoder import RATE, BertKeys, Embeddings, Encoder, attend
from .heads import MaskedLM, QuestionAnswerer, SequenceClassifier, TokenClassifier
from .output import EncoderOutput


@dataclass(frozen=True)
class AlbertConfig(BertKeys):
    """Fields are the keys of ``config.json``."""

    table: ClassVar[Mapping[str, Field]] = {
        **BertKeys.table,
        "embedding_size": whole(1, 1 << 20),
        "num_hidden_groups": whole(1, 4096),
        "inner_group_num": whole(1, 4096),
        "classifier_dropout_prob": RATE,
    }
    vocab_size: int = 30000
    hidden_size: int = 4096
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    embedding_size: int = 128
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    classifier_dropout_prob: float = 0.1

    @property
    def head_dropout(self) -> float:
        return self.classifier_dropout_prob

    def checked(self, where: str):
        super().checked(where)
        if self.num_hidden_groups > self.num_hidden_layers:
            raise FormatError(
                f"{where}: {self.num_hidden_layers} layers are not of {self.num_hidden_groups} groups. "
                "The file is damaged."
            )
        return self


class AlbertAttention(Module):
    """Attention to both sides, beside the residual."""

    def __init__(self, config: AlbertConfig):
        super().__init__()
        dim = config.hidden_size
        self.query, self.key, self.value = Linear(dim, dim), Linear(dim, dim), Linear(dim, dim)
        self.dense, self.LayerNorm = Linear(dim, dim), LayerNorm(dim, eps=config.layer_norm_eps)
        self.output_dropout = Dropout(config.hidden_dropout_prob)
        self.heads, self.rate = config.num_attention_heads, config.attention_probs_dropout_prob

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        rate = self.rate if self.training else 0.0
        out = attend(self.query(x), self.key(x), self.value(x), self.heads, mask, rate)
        return self.LayerNorm(x + self.output_dropout(self.dense(out)))


class AlbertLayer(Module):
    """Attention and feed-forward.

    Args:
        config: the model's.
    """

    def __init__(self, config: AlbertConfig):
        super().__init__()
        self.full_layer_layer_norm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.attention = AlbertAttention(config)
        self.ffn = Linear(config.hidden_size, config.intermediate_size)
        self.ffn_output = Linear(config.intermediate_size, config.hidden_size)
        self.activation = activation(config.hidden_act)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        return self.full_layer_layer_norm(self.ffn_output(self.activation(self.ffn(x))) + x)


class AlbertLayerGroup(Module):
    """Layers that run one behind the other, several times."""

    def __init__(self, config: AlbertConfig):
        super().__init__()
        self.albert_layers = ModuleList([AlbertLayer(config) for _ in range(config.inner_group_num)])


class AlbertTransformer(Module):
    """What widens embeddings, and the groups of layers."""

    def __init__(self, config: AlbertConfig):
        super().__init__()
        self.embedding_hidden_mapping_in = Linear(config.embedding_size, config.hidden_size)
        self.albert_layer_groups = ModuleList(
            [AlbertLayerGroup(config) for _ in range(config.num_hidden_groups)]
        )


class AlbertModel(Encoder):
    """ALBERT without a head.

    Args:
        config: an `AlbertConfig`.
        add_pooling_layer: whether ``pooler_output`` is computed.
    """

    config_class = AlbertConfig
    prefix = "albert"
    model_types = ("albert",)

    def __init__(self, config: Any, add_pooling_layer: bool = True):
        super().__init__(config)
        narrow, rate = config.embedding_size, config.hidden_dropout_prob
        self.embeddings = Embeddings(config, narrow, config.layer_norm_eps, rate)
        self.encoder = AlbertTransformer(config)
        self.pooler = Linear(config.hidden_size, config.hidden_size) if add_pooling_layer else None

    def blocks(self) -> Iterable[Module]:
        c, groups = self.config, list(self.encoder.albert_layer_groups)
        turns = [k * c.num_hidden_groups // c.num_hidden_layers for k in range(c.num_hidden_layers)]
        return [layer for turn in turns for layer in groups[turn].albert_layers]

    def encode(self, x: Tensor, attention_mask: Tensor | None, keep: list[Tensor] | None) -> Tensor:
        return super().encode(self.encoder.embedding_hidden_mapping_in(x), attention_mask, keep)

    def pool(self, x: Tensor) -> Tensor:
        return F.tanh(self.pooler(x[:, 0]))


class AlbertMLMHead(Module):
    """Hidden states to logits of ids."""

    def __init__(self, config: AlbertConfig):
        super().__init__()
        self.LayerNorm = LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.dense = Linear(config.hidden_size, config.embedding_size)
        self.decoder = Linear(config.embedding_size, config.vocab_size)
        self.bias, self.activation = Parameter(zeros(config.vocab_size)), activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.LayerNorm(self.activation(self.dense(x))))


class AlbertForMaskedLM(MaskedLM):
    """ALBERT that says which ids are behind masks."""

    model_class = AlbertModel
    tied = {
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    }

    def build(self, config: AlbertConfig) -> None:
        self.predictions = AlbertMLMHead(config)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.predictions(out.last_hidden_state)


class AlbertForSequenceClassification(SequenceClassifier):
    """ALBERT that gives a text a label."""

    model_class = AlbertModel


class AlbertForTokenClassification(TokenClassifier):
    """ALBERT that gives every token a label."""

    model_class = AlbertModel


class AlbertForQuestionAnswering(QuestionAnswerer):
    """ALBERT that finds the answer to a question in a text."""

    model_class = AlbertModel
