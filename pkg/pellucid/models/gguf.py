"""How a GGUF file says what a model is: metadata as a configuration, tensor names as attribute paths."""

from __future__ import annotations

import re
from typing import Any

from ..errors import FormatError
from ..weights.checkpoint import Checkpoint
from .llama import LlamaConfig

FREQUENCIES = "rope_freqs.weight"

_OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_INSIDE = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")


def llama_name(name: str) -> str:
    """The attribute path of a tensor; a name that is not one of Llama's stays as it is, to be reported.

    Example:
        >>> llama_name("blk.3.attn_q.weight")
        'model.layers.3.self_attn.q_proj.weight'
    """
    found = _BLOCK.fullmatch(name)
    if found and found[2] in _INSIDE:
        return f"model.layers.{found[1]}.{_INSIDE[found[2]]}.{found[3]}"
    stem, _, kind = name.rpartition(".")
    return f"{_OUTSIDE[stem]}.{kind}" if stem in _OUTSIDE else name


def llama_config(checkpoint: Checkpoint) -> LlamaConfig:
    """The configuration in a file's metadata.

    Raises:
        FormatError: a needed key is missing or has the wrong type.

    Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, "LLM"
    """
    data = checkpoint.metadata

    def get(key: str, kind: type, default: Any = None) -> Any:
        value = data.get(f"llama.{key}", default)
        if value is None:
            raise FormatError(
                f"{checkpoint.name}: metadata key llama.{key} is missing. The file is not a complete model."
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise FormatError(f"{checkpoint.name}: metadata key llama.{key} is {value!r}, not a number.")
        return kind(value)

    heads = get("attention.head_count", int)
    dim = get("embedding_length", int)
    columns = get("attention.key_length", int, dim // heads if heads else 0)
    if heads < 1 or get("rope.dimension_count", int, columns) != columns:
        raise FormatError(
            f"{checkpoint.name}: llama.rope.dimension_count is {data.get('llama.rope.dimension_count')} for "
            f"{heads} heads of {columns} columns. Only whole heads are turned by this architecture."
        )
    scaling = data.get("llama.rope.scaling.type", "none")
    if scaling not in ("none", "linear"):
        raise FormatError(
            f"{checkpoint.name}: llama.rope.scaling.type {scaling!r} is not known. There are none and linear."
        )
    factor = (
        {"rope_type": "linear", "factor": get("rope.scaling.factor", float)} if scaling == "linear" else None
    )
    embedding = checkpoint["token_embd.weight"]
    return LlamaConfig(
        vocab_size=embedding.shape[0],
        hidden_size=dim,
        intermediate_size=get("feed_forward_length", int),
        num_hidden_layers=get("block_count", int),
        num_attention_heads=heads,
        num_key_value_heads=get("attention.head_count_kv", int, heads),
        head_dim=columns,
        max_position_embeddings=get("context_length", int),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon", float),
        rope_theta=get("rope.freq_base", float, 10000.0),
        rope_scaling=factor,
        tie_word_embeddings="output.weight" not in checkpoint,
        attention_bias="blk.0.attn_q.bias" in checkpoint,
        rope_interleaved=True,
    )
