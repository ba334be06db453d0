"""What configurations of architectures share: reading ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from ..errors import FormatError

# Keys that say how a checkpoint was made or run elsewhere, and change nothing here.
IGNORED = frozenset({
    "_attn_implementation", "_name_or_path", "architectures", "attention_dropout", "auto_map", "bos_token_id",
    "chunk_size_feed_forward", "dtype", "eos_token_id", "generation_config", "gradient_checkpointing",
    "id2label", "initializer_range", "is_encoder_decoder", "is_llama_config", "label2id", "max_window_layers",
    "model_type", "output_attentions", "output_hidden_states", "pad_token_id", "pretraining_tp",
    "problem_type", "quantization_config", "return_dict", "torch_dtype", "transformers.js_config",
    "transformers_version", "unsloth_fixed", "use_cache",
})  # fmt: skip
# Values with which a key that is not a field changes nothing; unset ones never do.
_NEUTRAL: dict[str, Any] = {"partial_rotary_factor": 1.0}
_UNSET = (None, False, 0, 0.0, [], {})


@dataclass(frozen=True)
class Config:
    """A model's configuration: fields are the keys of its ``config.json``."""

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Self:
        """Read the keys of a ``config.json``; those of `IGNORED` and unset ones are passed over.

        Raises:
            FormatError: a value is of the wrong type, or a key is unknown and set: the model would compute
                something else.
        """
        known = {f.name: f for f in fields(cls)}
        unknown = {
            k: v
            for k, v in keys.items()
            if k not in known and k not in IGNORED and v not in _UNSET and v != _NEUTRAL.get(k)
        }
        if unknown:
            raise FormatError(
                f"config.json: {cls.__name__} does not know {unknown}. The architecture computes differently "
                "there; load a model without these keys."
            )
        given = {k: v for k, v in keys.items() if k in known and (v is not None or k in cls._optional())}
        for name, value in given.items():
            _check(name, value, str(known[name].type))
        return cls(**given)

    @classmethod
    def _optional(cls) -> set[str]:
        return {f.name for f in fields(cls) if f.default is None}


def _check(name: str, value: Any, kind: str) -> None:
    """Refuse a value that is not what the field's annotation says; sizes are above 0."""
    first = kind.split(" ")[0].split("[")[0]
    right = {
        "int": type(value) is int and value > 0,
        "float": type(value) in (int, float) and value > 0,
        "bool": type(value) is bool,
        "str": isinstance(value, str),
        "dict": isinstance(value, dict),
        "list": isinstance(value, list),
    }[first]
    if not right and value is not None:
        wanted = {"int": "a whole number above 0", "float": "a number above 0"}.get(first, f"a {first}")
        raise FormatError(f"config.json: {name} is {value!r}; it must be {wanted}.")
