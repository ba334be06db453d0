"""ModernBERT: rotary positions, gated feed-forwards, norms before, and layers that see neighbours only.

Warner et al. 2024, "Smarter, better, faster, longer: A modern bidirectional encoder". Attribute paths are the
tensor names of its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ..errors import ArgumentError, FormatError
from ..nn.modules.container import ModuleList
from ..nn.modules.dropout import Dropout
from ..nn.modules.embedding import Embedding
from ..nn.modules.linear import Identity, Linear
from ..nn.modules.module import Module
from ..nn.modules.norm import LayerNorm
from ..ops.shape.creation import arange
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint
from ..weights.fields import FLAG, Field, listed, number, one_of, record, shown, text, whole
from .activations import activation
from .encoder import RATE, Encoder, EncoderConfig, attend, key_mask
from .heads import Head, MaskedLM, QuestionAnswerer, SequenceClassifier, TokenClassifier
from .output import EncoderOutput
from .rotary import SCALING, RotaryEmbedding, kind_of

_KINDS = ("full_attention", "sliding_attention")


@dataclass(frozen=True)
class ModernBertConfig(EncoderConfig):
    """Fields are the keys of ``config.json``, those of older files too."""

    table: ClassVar[Mapping[str, Field]] = {
        **EncoderConfig.table,
        "hidden_size": whole(1, 1 << 20),
        "num_hidden_layers": whole(1, 4096),
        "num_attention_heads": whole(1, 1 << 16),
        "intermediate_size": whole(1, 1 << 24),
        "hidden_activation": text(100),
        "norm_eps": number(0, 1, above=True),
        "norm_bias": FLAG,
        "attention_bias": FLAG,
        "mlp_bias": FLAG,
        "decoder_bias": FLAG,
        "attention_dropout": RATE,
        "embedding_dropout": RATE,
        "mlp_dropout": RATE,
        "layer_types": listed(one_of(*_KINDS), 4096),
        "rope_parameters": record(dict.fromkeys(_KINDS, SCALING)),
        "local_attention": whole(1),
        "global_attn_every_n_layers": whole(1, 4096),
        "global_rope_theta": number(1, 1e15),
        "local_rope_theta": number(1, 1e15),
        "classifier_pooling": one_of("cls", "mean"),
        "classifier_dropout": RATE,
        "classifier_bias": FLAG,
        "classifier_activation": text(100),
        "layer_norm_eps": number(0, 1, above=True),
        "position_embedding_type": one_of("absolute"),
        "sparse_prediction": FLAG,
        "sparse_pred_ignore_index": whole(-100, -100),
    }
    gguf_keys: ClassVar[Mapping[str, str]] = {
        "hidden_size": "embedding_length",
        "num_hidden_layers": "block_count",
        "num_attention_heads": "attention.head_count",
        "intermediate_size": "feed_forward_length",
        "max_position_embeddings": "context_length",
        "norm_eps": "attention.layer_norm_epsilon",
        "local_attention": "attention.sliding_window",
        "global_rope_theta": "rope.freq_base",
        "local_rope_theta": "rope.freq_base_swa",
    }
    gguf_optional: ClassVar[Mapping[str, str]] = {
        "global_attn_every_n_layers": "attention.sliding_window_pattern"
    }
    beside: ClassVar[frozenset[str]] = EncoderConfig.beside | {
        "attention_dropout", "classifier_activation", "classifier_bias", "classifier_pooling", "decoder_bias",
        "embedding_dropout", "global_attn_every_n_layers", "global_rope_theta", "layer_norm_eps",
        "local_rope_theta", "mlp_dropout", "sparse_pred_ignore_index", "sparse_prediction",
    }  # fmt: skip
    vocab_size: int = 50368
    max_position_embeddings: int = 8192
    pad_token_id: int | None = 50283
    hidden_size: int = 768
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    intermediate_size: int = 1152
    hidden_activation: str = "gelu"
    norm_eps: float = 1e-5
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    decoder_bias: bool = True
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0
    mlp_dropout: float = 0.0
    layer_types: list[str] | None = None
    rope_parameters: Mapping[str, Any] | None = None
    local_attention: int = 128
    global_attn_every_n_layers: int = 3
    global_rope_theta: float = 160000.0
    local_rope_theta: float = 10000.0
    classifier_pooling: str = "cls"
    classifier_dropout: float = 0.0
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    layer_norm_eps: float = 1e-5
    position_embedding_type: str = "absolute"
    sparse_prediction: bool = False
    sparse_pred_ignore_index: int = -100

    @property
    def sizes(self) -> tuple[int, int]:
        return self.hidden_size, self.num_attention_heads

    @property
    def activation(self) -> str:
        """Name of what feed-forwards compute."""
        return self.hidden_activation

    @property
    def kinds(self) -> list[str]:
        """Of every layer, whether it sees all or neighbours."""
        every = self.global_attn_every_n_layers
        return list(self.layer_types or (_KINDS[k % every > 0] for k in range(self.num_hidden_layers)))

    @property
    def rotations(self) -> list[tuple[str, float]]:
        """How layers of each kind scale their rotary positions, and the base of these."""
        scalings = [dict((self.rope_parameters or {}).get(kind) or {}) for kind in _KINDS]
        bases = self.global_rope_theta, self.local_rope_theta
        return [(kind_of(s), s.get("rope_theta", base)) for s, base in zip(scalings, bases, strict=True)]

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        key = f"{checkpoint.metadata['general.architecture']}.rope.scaling.type"
        if (kind := checkpoint.metadata.get(key)) not in (None, "none"):
            raise FormatError(
                f"{checkpoint.name}: {key} is {shown(kind)}; positions of ModernBERT are not scaled. "
                "The file is damaged."
            )
        return super().from_gguf(checkpoint)

    def to_gguf(self) -> dict[str, Any]:
        keys = super().to_gguf()
        for key, (_, base) in zip(("rope.freq_base", "rope.freq_base_swa"), self.rotations, strict=True):
            keys[key] = base
        repeats = (k for k in range(1, self.num_hidden_layers) if self.kinds[k] == _KINDS[0])
        keys["attention.sliding_window_pattern"] = next(repeats, self.num_hidden_layers)
        return keys | {"attention.causal": False, "rope.scaling.type": "none"}

    def norm(self) -> LayerNorm:
        """A norm of hidden states."""
        return LayerNorm(self.hidden_size, eps=self.norm_eps, bias=self.norm_bias)

    def rotary(self, kind: str) -> RotaryEmbedding:
        """The rotary embedding of layers of a kind."""
        scaling = dict((self.rope_parameters or {}).get(kind) or {})
        _, base = self.rotations[_KINDS.index(kind)]
        columns = self.hidden_size // self.num_attention_heads
        return RotaryEmbedding(columns, self.max_position_embeddings, base, scaling or None)


class ModernBertEmbeddings(Module):
    """Embeddings of ids, normed."""

    def __init__(self, config: ModernBertConfig):
        super().__init__()
        self.tok_embeddings = Embedding(
            config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id
        )
        self.norm, self.drop = config.norm(), Dropout(config.embedding_dropout)

    def forward(
        self,
        ids: Tensor | None,
        token_types: Tensor | None = None,
        positions: Tensor | None = None,
        embedded: Tensor | None = None,
    ) -> Tensor:
        if token_types is not None or positions is not None:
            raise ArgumentError(
                "forward: this model takes no token_type_ids or position_ids. Leave them out."
            )
        return self.drop(self.norm(self.tok_embeddings(ids) if embedded is None else embedded))


class ModernBertAttention(Module):
    """Attention whose queries, keys and values are columns of one product."""

    def __init__(self, config: ModernBertConfig):
        super().__init__()
        dim = config.hidden_size
        self.Wqkv = Linear(dim, 3 * dim, bias=config.attention_bias)
        self.Wo = Linear(dim, dim, bias=config.attention_bias)
        self.out_drop = Dropout(config.attention_dropout)
        self.heads, self.rate = config.num_attention_heads, config.attention_dropout

    def forward(self, x: Tensor, mask: Tensor | None, rotary: RotaryEmbedding) -> Tensor:
        query, key, value = self.Wqkv(x).chunk(3, -1)
        rate = self.rate if self.training else 0.0
        return self.out_drop(self.Wo(attend(query, key, value, self.heads, mask, rate, rotary)))


class ModernBertMLP(Module):
    """``Wo(activation(a) * b)``, where a and b are halves of one product."""

    def __init__(self, config: ModernBertConfig):
        super().__init__()
        self.Wi = Linear(config.hidden_size, 2 * config.intermediate_size, bias=config.mlp_bias)
        self.Wo = Linear(config.intermediate_size, config.hidden_size, bias=config.mlp_bias)
        self.activation, self.drop = activation(config.hidden_activation), Dropout(config.mlp_dropout)

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.Wi(x).chunk(2, -1)
        return self.Wo(self.drop(self.activation(first) * second))


class ModernBertLayer(Module):
    """Attention and feed-forward, each behind a norm and beside a residual."""

    def __init__(self, config: ModernBertConfig, number: int):
        super().__init__()
        self.attn_norm = config.norm() if number else Identity()
        self.attn, self.mlp_norm, self.mlp = ModernBertAttention(config), config.norm(), ModernBertMLP(config)
        self.kind = config.kinds[number]

    def forward(self, x: Tensor, mask: Tensor | None, rotary: RotaryEmbedding) -> Tensor:
        x = x + self.attn(self.attn_norm(x), mask, rotary)
        return x + self.mlp(self.mlp_norm(x))


class ModernBertModel(Encoder):
    """ModernBERT without a head.

    Args:
        config: a `ModernBertConfig`.
        add_pooling_layer: it never has one.
    """

    config_class = ModernBertConfig
    prefix = "model"
    model_types = ("modernbert",)
    gguf_architectures = ("modern-bert",)
    gguf_names = {
        "token_embd": "embeddings.tok_embeddings",
        "token_embd_norm": "embeddings.norm",
        "output_norm": "final_norm",
        "blk.{}.attn_norm": "layers.{}.attn_norm",
        "blk.{}.attn_qkv": "layers.{}.attn.Wqkv",
        "blk.{}.attn_output": "layers.{}.attn.Wo",
        "blk.{}.ffn_norm": "layers.{}.mlp_norm",
        "blk.{}.ffn_up": "layers.{}.mlp.Wi",
        "blk.{}.ffn_down": "layers.{}.mlp.Wo",
    }

    def __init__(self, config: Any, add_pooling_layer: bool = False):
        super().__init__(config)
        self.embeddings = ModernBertEmbeddings(config)
        self.layers = ModuleList([ModernBertLayer(config, k) for k in range(config.num_hidden_layers)])
        self.final_norm = config.norm()
        self.rotary = {kind: config.rotary(kind) for kind in _KINDS}

    def encode(self, x: Tensor, attention_mask: Tensor | None, keep: list[Tensor] | None) -> Tensor:
        seen, steps = key_mask(attention_mask, x), arange(x.shape[1], device=x.device)
        near = (steps - steps.unsqueeze(1)).abs() <= self.config.local_attention // 2
        masks = dict(zip(_KINDS, (seen, near if seen is None else near & seen), strict=True))
        for layer in self.layers:
            if keep is not None:
                keep.append(x)
            x = layer(x, masks[layer.kind], self.rotary[layer.kind])
        return self.final_norm(x)


class ModernBertPredictionHead(Module):
    """``norm(activation(dense(x)))``."""

    def __init__(self, config: ModernBertConfig):
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, bias=config.classifier_bias)
        self.activation, self.norm = activation(config.classifier_activation), config.norm()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))


class ModernBertForMaskedLM(MaskedLM):
    """ModernBERT that says which ids are behind masks."""

    model_class = ModernBertModel
    tied = {"decoder.weight": "model.embeddings.tok_embeddings.weight"}

    def build(self, config: ModernBertConfig) -> None:
        self.head = ModernBertPredictionHead(config)
        self.decoder = Linear(config.hidden_size, config.vocab_size, bias=config.decoder_bias)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.decoder(self.head(out.last_hidden_state))


class ModernBertClassifier(Head):
    """ModernBERT that classifies every position."""

    def build(self, config: ModernBertConfig) -> None:
        self.head, self.drop = ModernBertPredictionHead(config), Dropout(config.classifier_dropout)
        self.classifier = Linear(config.hidden_size, config.num_labels)

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        return self.classifier(self.drop(self.head(out.last_hidden_state)))


class ModernBertForSequenceClassification(ModernBertClassifier, SequenceClassifier):
    """ModernBERT that gives a text a label, by its first position or the mean of all."""

    model_class = ModernBertModel
    pooled = False

    def logits(self, out: EncoderOutput, attention_mask: Tensor | None) -> Tensor:
        x = out.last_hidden_state
        assert x is not None
        if self.config.classifier_pooling == "cls":
            x = x[:, 0]
        elif attention_mask is None:
            x = x.mean(1)
        else:
            x = (x * attention_mask.unsqueeze(-1)).sum(1) / attention_mask.sum(1, keepdim=True)
        return self.classifier(self.drop(self.head(x)))


class ModernBertForTokenClassification(ModernBertClassifier, TokenClassifier):
    """ModernBERT that gives every token a label."""

    model_class = ModernBertModel


class ModernBertForQuestionAnswering(ModernBertClassifier, QuestionAnswerer):
    """ModernBERT that finds the answer to a question in a text."""

    model_class = ModernBertModel
