"""BERT: learned positions, token types, attention to both sides, norms behind the residuals.

Devlin et al. 2018, "BERT: Pre-training of deep bidirectional transformers". Attribute paths are the tensor
names of its checkpoints. Serves MiniLM, E5, BGE and GTE, which are BERTs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ..nn.modules.container import ModuleList
from ..nn.modules.dropout import Dropout
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..nn.parameter import Parameter
from ..ops.shape.creation import zeros
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from .activations import activation
from .encoder import BertKeys, Embeddings, Encoder, Pooler, attend
from .heads import MaskedLM, QuestionAnswerer, SequenceClassifier, TokenClassifier
from .output import EncoderOutput

# Keys of a GGUF by fields, of all whose files are BERT's.
GGUF_KEYS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length",
    "layer_norm_eps": "attention.layer_norm_epsilon",
}


@dataclass(frozen=True)
class BertConfig(BertKeys):
    """Fields are the keys of ``config.json``."""

    gguf_keys: ClassVar[Mapping[str, str]] = GGUF_KEYS
    # What the file of a model with other positions has changed: its table begins with the first one used.
    gguf_settings: ClassVar[Mapping[str, Any]] = {"first_position": 0}

    def to_gguf(self) -> dict[str, Any]:
        return super().to_gguf() | {"attention.causal": False}

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        shape = checkpoint["token_types.weight"].shape if "token_types.weight" in checkpoint else (0, 0)
        types = shape[0] if len(shape) > 1 else 1  # older converters left out axes of one element
        return replace(super().from_gguf(checkpoint), type_vocab_size=types)


class BertSelfAttention(Module):
    """Attention to both sides.

    Args:
        config: the model's.
    """

    def __init__(self, config: BertKeys):
        super().__init__()
        dim = config.hidden_size
        self.query, self.key, self.value = Linear(dim, dim), Linear(dim, dim), Linear(dim, dim)
        self.heads, self.rate = config.num_attention_heads, config.attention_probs_dropout_prob

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        rate = self.rate if self.training else 0.0
        return attend(self.query(x), self.key(x), self.value(x), self.heads, mask, rate)


class BertOutput(Module):
    """``norm(dense(x) + residual)``.

    Args:
        config: the model's.
        columns: of x.
    """

    def __init__(self, config: BertKeys, columns: int):
        super().__init__()
        self.dense = Linear(columns, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class BertAttention(Module):
    """Attention, and what makes its result part of the hidden states."""

    def __init__(self, config: BertKeys):
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = BertOutput(config, config.hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(x, mask), x)


class BertIntermediate(Module):
    """``activation(dense(x))``."""

    def __init__(self, config: BertKeys):
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size)
        self.activation = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.dense(x))


class BertLayer(Module):
    """Attention and feed-forward.

    Args:
        config: the model's.
    """

    attention_class: type[Any] = BertAttention

    def __init__(self, config: BertKeys):
        super().__init__()
        self.attention = self.attention_class(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config, config.intermediate_size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BertEncoder(Module):
    """The layers.

    Args:
        config: the model's.
        layer_class: what makes one.
    """

    def __init__(self, config: BertKeys, layer_class: type[BertLayer] = BertLayer):
        super().__init__()
        self.layer = ModuleList([layer_class(config) for _ in range(config.num_hidden_layers)])


class BertModel(Encoder):
    """BERT without a head.

    Args:
        config: a `BertConfig`.
        add_pooling_layer: whether ``pooler_output`` is computed.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.models import BertConfig, BertModel
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = BertModel(BertConfig(num_hidden_layers=1, **sizes)).eval()
        ...     model(torch.tensor([[1, 2, 3]])).last_hidden_state.shape
        Size([1, 3, 8])
    """

    config_class = BertConfig
    prefix = "bert"
    model_types = ("bert",)
    gguf_architectures = ("bert",)
    gguf_names = {
        "token_embd": "embeddings.word_embeddings",
        "token_types": "embeddings.token_type_embeddings",
        "position_embd": "embeddings.position_embeddings",
        "token_embd_norm": "embeddings.LayerNorm",
        "blk.{}.attn_q": "encoder.layer.{}.attention.self.query",
        "blk.{}.attn_k": "encoder.layer.{}.attention.self.key",
        "blk.{}.attn_v": "encoder.layer.{}.attention.self.value",
        "blk.{}.attn_output": "encoder.layer.{}.attention.output.dense",
        "blk.{}.attn_output_norm": "encoder.layer.{}.attention.output.LayerNorm",
        "blk.{}.ffn_up": "encoder.layer.{}.intermediate.dense",
        "blk.{}.ffn_down": "encoder.layer.{}.output.dense",
        "blk.{}.layer_output_norm": "encoder.layer.{}.output.LayerNorm",
    }
    # llama.cpp makes embeddings of texts, for which this is not used.
    gguf_passed = ("pooler.",)
    embeddings_class: type[Embeddings] = Embeddings
    layer_class = BertLayer

    def __init__(self, config: Any, add_pooling_layer: bool = True):
        super().__init__(config)
        dim, rate = config.hidden_size, config.hidden_dropout_prob
        self.embeddings = self.embeddings_class(config, dim, config.layer_norm_eps, rate)
        self.encoder = BertEncoder(config, self.layer_class)
        self.pooler = Pooler(dim) if add_pooling_layer else None

    def blocks(self) -> Iterable[Module]:
        return self.encoder.layer


class BertTransform(Module):
    """``norm(activation(dense(x)))``."""

    def __init__(self, config: BertKeys):
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size)
        self.activation = activation(config.hidden_act)
        self.LayerNorm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.LayerNorm(self.activation(self.dense(x)))


class BertPredictions(Module):
    """Hidden states to logits of ids."""

    def __init__(self, config: BertKeys):
        super().__init__()
        self.transform = BertTransform(config)
        self.decoder = Linear(config.hidden_size, config.vocab_size)
        self.bias = Parameter(zeros(config.vocab_size))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.transform(x))


class BertOnlyMLMHead(Module):
    """The head that checkpoints call ``cls``."""

    def __init__(self, config: BertKeys):
        super().__init__()
        self.predictions = BertPredictions(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.predictions(x)


class BertForMaskedLM(MaskedLM):
    """BERT that says which ids are behind masks."""

    model_class = BertModel
    tied = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def build(self, config: BertKeys) -> None:
        self.cls = BertOnlyMLMHead(config)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.cls(out.last_hidden_state)


class BertForSequenceClassification(SequenceClassifier):
    """BERT that gives a text a label."""

    model_class = BertModel


class BertForTokenClassification(TokenClassifier):
    """BERT that gives every token a label."""

    model_class = BertModel


class BertForQuestionAnswering(QuestionAnswerer):
    """BERT that finds the answer to a question in a text."""

    model_class = BertModel
