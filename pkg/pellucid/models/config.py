"""What configurations of architectures share: reading ``config.json`` and the metadata of a GGUF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from ..errors import FormatError, WeightError
from ..weights.checkpoint import Checkpoint
from ..weights.fields import Field, check, shown
from .names import Names

# Keys that say how a checkpoint was made or run elsewhere, and change nothing here.
IGNORED = frozenset({
    "_attn_implementation", "_name_or_path", "_num_labels", "architectures", "attention_dropout",
    "attn_pdrop", "auto_map", "bos_token_id", "chunk_size_feed_forward", "classif_dropout",
    "classifier_dropout", "cls_token_id", "decoder_layerdrop", "decoder_start_token_id",
    "directionality", "dropout", "dtype", "early_stopping", "embd_pdrop", "embedding_dropout",
    "encoder_layerdrop", "eos_token_id", "finetuning_task", "force_bos_token_to_be_generated",
    "forced_bos_token_id", "forced_eos_token_id", "generation_config", "generator_size",
    "gradient_checkpointing", "hidden_dropout", "id2label", "init_std", "initializer_cutoff_factor",
    "initializer_range", "is_encoder_decoder", "is_llama_config", "label2id", "language", "layerdrop",
    "length_penalty", "max_length", "max_window_layers", "min_length", "model_type", "name",
    "no_repeat_ngram_size", "num_beams", "num_labels", "output_attentions", "output_hidden_states",
    "output_past", "pad_token_id", "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "prefix", "pretraining_tp",
    "problem_type", "quantization_config", "reference_compile", "repad_logits_with_grad", "resid_pdrop",
    "residual_dropout", "return_dict", "router_aux_loss_coef", "sep_token_id", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params", "tie_weights_", "tokenizer_class", "torch_dtype", "transformers.js_config",
    "transformers_version", "unsloth_fixed", "use_cache",
})  # fmt: skip
# Values with which a key that is not a field changes nothing; unset ones never do.
NEUTRAL: dict[str, Any] = {"down_scale_factor": 1, "normalize_embedding": True, "partial_rotary_factor": 1.0}
UNSET = (None, False, 0, 0.0, [], {})


@dataclass(frozen=True)
class Config:
    """A model's configuration: fields are the keys of its ``config.json``.

    A subclass is a frozen dataclass with defaults. ``table`` says what each field may hold in a file,
    ``gguf_keys`` which key of a GGUF it is, without the architecture's name; keys of ``gguf_optional`` may be
    absent. ``renamed`` are keys by the field that has them; ``neutral`` are further values with which a
    key changes nothing. ``names`` are those of the model's modules. ``beside`` are fields and properties that
    the bare model does not compute by, such as those of heads and of training, or that others say again.
    """

    names: ClassVar[Names] = Names()
    renamed: ClassVar[Mapping[str, str]] = {}
    neutral: ClassVar[Mapping[str, Any]] = {}
    table: ClassVar[Mapping[str, Field]]
    gguf_keys: ClassVar[Mapping[str, str]] = {}
    gguf_optional: ClassVar[Mapping[str, str]] = {}
    beside: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Self:
        """Read the keys of a ``config.json``; those of `IGNORED` and unset ones are passed over.

        Raises:
            FormatError: a value is of the wrong type or out of range, or a key is unknown and set: the model
                would compute something else.
        """
        neutral = {**NEUTRAL, **cls.neutral}
        table = {key: cls.table[cls.renamed.get(key, key)] for key in (*cls.table, *cls.renamed)}
        unknown = {
            k: v
            for k, v in keys.items()
            if k not in table and k not in IGNORED and v not in UNSET and v != neutral.get(k)
        }
        if unknown:
            raise FormatError(
                f"config.json: {cls.__name__} does not know {shown(unknown)}. The architecture computes "
                "differently there; load a model without these keys."
            )
        check("config.json", keys, table)
        given = {cls.renamed.get(k, k): v for k, v in keys.items() if k in table}
        # Annotations are texts: a field that may be None is so where the file says null.
        optional = {f.name for f in fields(cls) if "None" in str(f.type)}
        given = {k: v for k, v in given.items() if v is not None or k in optional}
        return cls(**given).checked("config.json")

    @classmethod
    def from_gguf(cls, checkpoint: Checkpoint) -> Self:
        """Read the metadata of a GGUF; ``vocab_size`` and ``tie_word_embeddings`` follow from its tensors.

        Raises:
            FormatError: a needed key is missing, of the wrong type or out of range.
            WeightError: there is no embedding, or it is no matrix.

        Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, "LLM"
        """
        metadata, prefix = checkpoint.metadata, f"{checkpoint.metadata['general.architecture']}."
        keys = {**cls.gguf_keys, **cls.gguf_optional}
        table = {key: cls.table[field] for field, key in keys.items()}
        check(checkpoint.name, metadata, table, *cls.gguf_keys.values(), prefix=prefix)
        given = {f: v for f, key in keys.items() if (v := metadata.get(prefix + key)) is not None}
        embedding = checkpoint["token_embd.weight"]
        if len(embedding.shape) != 2:
            raise WeightError(
                f"{checkpoint.name}: token_embd.weight has the shape {embedding.shape}; rows and columns "
                "were expected. The file is damaged."
            )
        given |= cls.gguf_more(checkpoint, prefix)
        given["vocab_size"] = embedding.shape[0]
        given["tie_word_embeddings"] = "output.weight" not in checkpoint
        return cls(**given).checked(checkpoint.name)

    def to_gguf(self) -> dict[str, Any]:
        """The keys of a GGUF that `from_gguf` reads, without the architecture's name, with their values."""
        keys = {**self.gguf_keys, **self.gguf_optional}
        given = {key: getattr(self, field) for field, key in keys.items()}
        given["vocab_size"] = vars(self)["vocab_size"]
        return {key: value for key, value in given.items() if value is not None}

    @classmethod
    def gguf_more(cls, checkpoint: Checkpoint, prefix: str) -> dict[str, Any]:
        """Fields that follow from several keys or from tensors of a GGUF.

        Args:
            checkpoint: the file.
            prefix: of its architecture's keys.
        """
        return {}

    def checked(self, where: str) -> Self:
        """This configuration, if its values are those of a model.

        Args:
            where: the file that it was read from, for messages.

        Raises:
            FormatError: a value is out of range.
        """
        check(where, vars(self), self.table)
        return self

    @property
    def module_names(self) -> Names:
        """The names of this model's modules, where its settings decide some."""
        return self.names

    @property
    def embedding_columns(self) -> int:
        """Columns of the embedding and of the head."""
        return vars(self)["hidden_size"]

    @property
    def head_bias(self) -> bool:
        """Whether the head over the vocabulary has a bias."""
        return False

    @property
    def head_soft_cap(self) -> float:
        """What logits stay below; 0 for no limit."""
        return 0.0

    @property
    def logit_factor(self) -> float:
        """Factor of logits."""
        return 1.0
