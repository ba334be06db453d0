"""DistilBERT: half of BERT's layers, without token types and pooler.

Sanh et al. 2019, "DistilBERT, a distilled version of BERT". Attribute paths are the tensor names of its
checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..nn import functional as F
from ..nn.modules.container import ModuleList
from ..nn.modules.dropout import Dropout
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..tensors.tensor import Tensor
from ..weights.fields import FLAG, Field, text, whole
from .activations import activation
from .encoder import RATE, Embeddings, Encoder, EncoderConfig, attend
from .heads import MaskedLM, QuestionAnswerer, SequenceClassifier, TokenClassifier
from .output import EncoderOutput

_EPS = 1e-12


@dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """Fields are the keys of ``config.json``. Sinusoidal positions are stored like learned ones."""

    table: ClassVar[Mapping[str, Field]] = {
        **EncoderConfig.table,
        "dim": whole(1, 1 << 20),
        "hidden_dim": whole(1, 1 << 24),
        "n_layers": whole(1, 4096),
        "n_heads": whole(1, 1 << 16),
        "activation": text(100),
        "dropout": RATE,
        "attention_dropout": RATE,
        "qa_dropout": RATE,
        "seq_classif_dropout": RATE,
        "sinusoidal_pos_embds": FLAG,
    }
    gguf_keys: ClassVar[Mapping[str, str]] = {
        "dim": "embedding_length",
        "n_layers": "block_count",
        "n_heads": "attention.head_count",
        "hidden_dim": "feed_forward_length",
        "max_position_embeddings": "context_length",
    }
    dim: int = 768
    hidden_dim: int = 3072
    n_layers: int = 6
    n_heads: int = 12
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    qa_dropout: float = 0.1
    seq_classif_dropout: float = 0.2
    sinusoidal_pos_embds: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        return self.dim, self.n_heads

    @property
    def hidden_size(self) -> int:
        """Columns of hidden states."""
        return self.dim

    @property
    def embedding_columns(self) -> int:
        return self.dim

    @property
    def num_hidden_layers(self) -> int:
        """How many layers there are."""
        return self.n_layers

    @property
    def head_dropout(self) -> float:
        """Dropout before labels of tokens."""
        return self.dropout

    def to_gguf(self) -> dict[str, Any]:
        return super().to_gguf() | {"attention.layer_norm_epsilon": _EPS, "attention.causal": False}


class DistilBertSelfAttention(Module):
    """Attention to both sides."""

    def __init__(self, config: DistilBertConfig):
        super().__init__()
        self.q_lin, self.k_lin, self.v_lin, self.out_lin = (Linear(config.dim, config.dim) for _ in range(4))
        self.heads, self.rate = config.n_heads, config.attention_dropout

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        rate = self.rate if self.training else 0.0
        return self.out_lin(attend(self.q_lin(x), self.k_lin(x), self.v_lin(x), self.heads, mask, rate))


class DistilBertFFN(Module):
    """``lin2(activation(lin1(x)))``."""

    def __init__(self, config: DistilBertConfig):
        super().__init__()
        self.lin1, self.lin2 = Linear(config.dim, config.hidden_dim), Linear(config.hidden_dim, config.dim)
        self.activation, self.dropout = activation(config.activation), Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.lin2(self.activation(self.lin1(x))))


class DistilBertLayer(Module):
    """Attention and feed-forward, each beside a residual and before a norm."""

    def __init__(self, config: DistilBertConfig):
        super().__init__()
        self.attention, self.ffn = DistilBertSelfAttention(config), DistilBertFFN(config)
        self.sa_layer_norm = LayerNorm(config.dim, eps=_EPS)
        self.output_layer_norm = LayerNorm(config.dim, eps=_EPS)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.sa_layer_norm(self.attention(x, mask) + x)
        return self.output_layer_norm(self.ffn(x) + x)


class DistilBertTransformer(Module):
    """The layers."""

    def __init__(self, config: DistilBertConfig):
        super().__init__()
        self.layer = ModuleList([DistilBertLayer(config) for _ in range(config.n_layers)])


class DistilBertModel(Encoder):
    """DistilBERT without a head.

    Args:
        config: a `DistilBertConfig`.
        add_pooling_layer: it never has one.
    """

    config_class = DistilBertConfig
    prefix = "distilbert"
    model_types = ("distilbert",)
    gguf_like = "bert"
    gguf_names = {
        "token_embd": "embeddings.word_embeddings",
        "position_embd": "embeddings.position_embeddings",
        "token_embd_norm": "embeddings.LayerNorm",
        "blk.{}.attn_q": "transformer.layer.{}.attention.q_lin",
        "blk.{}.attn_k": "transformer.layer.{}.attention.k_lin",
        "blk.{}.attn_v": "transformer.layer.{}.attention.v_lin",
        "blk.{}.attn_output": "transformer.layer.{}.attention.out_lin",
        "blk.{}.attn_output_norm": "transformer.layer.{}.sa_layer_norm",
        "blk.{}.ffn_up": "transformer.layer.{}.ffn.lin1",
        "blk.{}.ffn_down": "transformer.layer.{}.ffn.lin2",
        "blk.{}.layer_output_norm": "transformer.layer.{}.output_layer_norm",
    }

    def __init__(self, config: Any, add_pooling_layer: bool = False):
        super().__init__(config)
        self.embeddings = Embeddings(config, config.dim, _EPS, config.dropout)
        self.transformer = DistilBertTransformer(config)

    def blocks(self) -> Iterable[Module]:
        return self.transformer.layer


class DistilBertForMaskedLM(MaskedLM):
    """DistilBERT that says which ids are behind masks."""

    model_class = DistilBertModel
    tied = {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}

    def build(self, config: DistilBertConfig) -> None:
        self.activation = activation(config.activation)
        self.vocab_transform = Linear(config.dim, config.dim)
        self.vocab_layer_norm = LayerNorm(config.dim, eps=_EPS)
        self.vocab_projector = Linear(config.dim, config.vocab_size)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        x = self.vocab_layer_norm(self.activation(self.vocab_transform(out.last_hidden_state)))
        return self.vocab_projector(x)


class DistilBertForSequenceClassification(SequenceClassifier):
    """DistilBERT that gives a text a label."""

    model_class = DistilBertModel
    pooled = False

    def build(self, config: DistilBertConfig) -> None:
        self.pre_classifier = Linear(config.dim, config.dim)
        self.classifier = Linear(config.dim, config.num_labels)
        self.dropout = Dropout(config.seq_classif_dropout)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        assert out.last_hidden_state is not None
        return self.classifier(self.dropout(F.relu(self.pre_classifier(out.last_hidden_state[:, 0]))))


class DistilBertForTokenClassification(TokenClassifier):
    """DistilBERT that gives every token a label."""

    model_class = DistilBertModel


class DistilBertForQuestionAnswering(QuestionAnswerer):
    """DistilBERT that finds the answer to a question in a text."""

    model_class = DistilBertModel

    def build(self, config: DistilBertConfig) -> None:
        super().build(config)
        self.dropout = Dropout(config.qa_dropout)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        assert out.last_hidden_state is not None
        return self.qa_outputs(self.dropout(out.last_hidden_state))
