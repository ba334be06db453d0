"""What configurations of architectures share: reading ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from ..errors import FormatError

# Keys that say how a checkpoint was made or run elsewhere, and change nothing here.
IGNORED = frozenset({
    "_attn_implementation", "_name_or_path", "architectures", "attention_dropout", "auto_map", "bos_token_id", "chunk_size_feed_forward",
    "dtype", "eos_token_id", "generation_config", "gradient_checkpointing", "id2label", "initializer_range", "is_llama_config", "label2id", "model_type",
    "output_attentions", "output_hidden_states", "pad_token_id", "pretraining_tp", "problem_type", "quantization_config", "return_dict", "rope_interleaved",
    "torch_dtype", "transformers.js_config", "transformers_version", "unsloth_fixed", "use_cache", "use_sliding_window", "max_window_layers", "layer_types",
    "is_encoder_decoder", "partial_rotary_factor",
})  # fmt: skip


@dataclass(frozen=True)
class Config:
    """A model's configuration: fields are the keys of its ``config.json``."""

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Self:
        """Read the keys of a ``config.json``; those of `IGNORED` and unset ones are passed over.

        Raises:
            FormatError: a needed key is missing, or one is unknown and set: the model would compute something else.
        """
        known = {f.name for f in fields(cls)}
        unknown = {k: v for k, v in keys.items() if k not in known and k not in IGNORED and v not in (None, False, 0, 0.0, [], {})}
        if unknown:
            raise FormatError(
                f"config.json: {cls.__name__} does not know {unknown}. The architecture computes differently there; load a model without these keys."
            )
        try:
            return cls(**{k: v for k, v in keys.items() if k in known and (v is not None or k in cls._optional())})
        except TypeError as error:
            raise FormatError(f"config.json: {str(error).removeprefix('Config.__init__() ')}.") from None

    @classmethod
    def _optional(cls) -> set[str]:
        return {f.name for f in fields(cls) if f.default is None}
