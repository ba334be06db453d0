"""How a GGUF file says what a model is: metadata as a configuration, tensor names as attribute paths."""

from __future__ import annotations

import re
from typing import Any

from ..errors import FormatError, WeightError
from ..weights.checkpoint import Checkpoint, TensorInfo
from ..weights.fields import check, number, shown, text, whole
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
_BLOCK = re.compile(r"blk\.([0-9]{1,6})\.(\w+)\.(weight|bias)", re.ASCII)

_PREFIX = "llama."
_KEYS = {
    "attention.head_count": whole(1, 1 << 16),
    "attention.head_count_kv": whole(1, 1 << 16),
    "attention.key_length": whole(1),
    "attention.layer_norm_rms_epsilon": number(0, 1, above=True),
    "block_count": whole(1),
    "context_length": whole(1),
    "embedding_length": whole(1),
    "feed_forward_length": whole(1),
    "rope.dimension_count": whole(1),
    "rope.freq_base": number(1, 1e15),
    "rope.scaling.factor": number(1e-3, 1e6),
    "rope.scaling.type": text(100),
}
_NEEDED = (
    "attention.head_count", "attention.layer_norm_rms_epsilon", "block_count", "context_length",
    "embedding_length", "feed_forward_length",
)  # fmt: skip


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
    check(checkpoint.name, checkpoint.metadata, _KEYS, *_NEEDED, prefix=_PREFIX)
    get: dict[str, Any] = {name: checkpoint.metadata.get(_PREFIX + name) for name in _KEYS}
    heads, dim = get["attention.head_count"], get["embedding_length"]
    columns = get["attention.key_length"] or dim // heads
    if (get["rope.dimension_count"] or columns) != columns:
        raise FormatError(
            f"{checkpoint.name}: llama.rope.dimension_count is {get['rope.dimension_count']} for "
            f"{heads} heads of {columns} columns. Only whole heads are turned by this architecture."
        )
    scaling = get["rope.scaling.type"] or "none"
    if scaling not in ("none", "linear"):
        raise FormatError(
            f"{checkpoint.name}: llama.rope.scaling.type {shown(scaling)} is not known. There are none and "
            "linear."
        )
    embedding = checkpoint["token_embd.weight"]
    if len(embedding.shape) != 2:
        raise WeightError(
            f"{checkpoint.name}: token_embd.weight has the shape {embedding.shape}; rows and columns were "
            "expected. The file is damaged."
        )
    return LlamaConfig(
        vocab_size=embedding.shape[0],
        hidden_size=dim,
        intermediate_size=get["feed_forward_length"],
        num_hidden_layers=get["block_count"],
        num_attention_heads=heads,
        num_key_value_heads=get["attention.head_count_kv"] or heads,
        head_dim=columns,
        max_position_embeddings=get["context_length"],
        rms_norm_eps=float(get["attention.layer_norm_rms_epsilon"]),
        rope_theta=float(get["rope.freq_base"] or 10000.0),
        rope_scaling={"rope_type": "linear", "factor": get["rope.scaling.factor"]}
        if scaling == "linear"
        else None,
        tie_word_embeddings="output.weight" not in checkpoint,
        attention_bias="blk.0.attn_q.bias" in checkpoint,
        rope_interleaved=True,
    ).checked(checkpoint.name)


def check_factors(checkpoint: Checkpoint, columns: int) -> TensorInfo:
    """The tensor of factors of the rotary frequencies, if there is one for each pair of columns.

    Raises:
        WeightError: it is of another shape or type.
    """
    info = checkpoint[FREQUENCIES]
    if info.shape != (columns // 2,) or info.dtype != "float32":
        raise WeightError(
            f"{checkpoint.name}: {FREQUENCIES} is {info.dtype} of shape {info.shape}; for heads of {columns} "
            f"columns float32 of shape ({columns // 2},) was expected. The file is damaged."
        )
    return info
