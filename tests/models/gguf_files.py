"""Tiny models as GGUF files, written as llama.cpp's converter writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from quant.samples import tame_blocks

# What a GGUF calls models whose name differs.
KINDS = {
    "cohere": "command-r", "gemma3_text": "gemma3", "gpt_bigcode": "starcoder", "gpt_neox": "gptneox",
    "mistral": "llama", "phi": "phi2", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe",
}  # fmt: skip
# Keys of a GGUF by those of a configuration of transformers.
KEYS = {
    "head_dim": "key_length", "rms_norm_eps": "layer_norm_rms_eps", "layer_norm_eps": "layer_norm_eps",
    "layer_norm_epsilon": "layer_norm_eps", "norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale",
    "use_parallel_residual": "parallel_residual", "sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping", "logits_scaling": "logit_scale",
    "final_logit_softcapping": "final_logit_softcapping", "attention_multiplier": "attention_scale",
    "moe_intermediate_size": "expert_feed_forward_length", "num_experts_per_tok": "expert_used_count",
    "num_experts": "expert_count", "embedding_multiplier": "embedding_scale",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
    "residual_multiplier": "residual_scale",
}  # fmt: skip
# Architectures whose converter interleaves the halves of each head of queries and keys (`permute`).
INTERLEAVED = ("arcee", "granite", "llama", "smollm3")


def gguf_names(model: Any) -> dict[str, str]:
    """The name in a GGUF of every parameter of a model of transformers, as the package has them."""
    kind = architecture(model)
    arch = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    known = gguf.get_tensor_name_map(arch, model.config.num_hidden_layers)
    found = {}
    for path, _ in parameters(model):
        stem, _, ending = path.rpartition(".")
        name = known.get_name(stem) or known.get_name(stem.removeprefix("transformer."))
        found[path] = f"{name}.{ending}"
    return found


def parameters(model: Any) -> Iterator[tuple[str, Any]]:
    """Names and values, with gates and ups of experts apart, as checkpoints have them."""
    for path, p in model.named_parameters():
        if path.endswith("experts.gate_up_proj"):
            for name, part in zip(("gate_proj", "up_proj"), p.chunk(2, 1), strict=True):
                yield f"{path.removesuffix('gate_up_proj')}{name}.weight", part
        elif path.endswith("experts.down_proj"):
            yield f"{path}.weight", p
        else:
            # Files have no axis of one element.
            yield path, p[0] if path.endswith("shared_expert_gate.weight") else p


def architecture(model: Any) -> str:
    """What a GGUF calls it."""
    kind = model.config.model_type
    return KINDS.get(kind, kind)


def key_heads(config: Any) -> int:
    """Key heads of a configuration of transformers."""
    if config.model_type == "falcon":
        return config.num_kv_heads if config.new_decoder_architecture else 1
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


def headed(model: Any, path: str) -> int:
    """Heads whose rows the converter interleaves."""
    config = model.config
    if architecture(model) not in INTERLEAVED:
        return 0
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    return heads.get(path.split(".")[-2], 0)


def joined(model: Any, path: str, value: np.ndarray) -> np.ndarray:
    """Rows of queries, keys and values one after another, where they lie by heads."""
    kind, config = architecture(model), model.config
    if "query_key_value" not in path or kind not in ("gptneox", "bloom", "falcon"):
        return value
    heads = config.num_attention_heads
    groups = value.reshape(key_heads(config), -1, config.hidden_size // heads, *value.shape[1:])
    parts = groups[:, :-2], groups[:, -2], groups[:, -1]
    return np.concatenate([p.reshape(-1, *value.shape[1:]) for p in parts])


def permuted(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of queries or keys with the halves of each head interleaved, as the converter lays them."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def written(
    model: Any,
    path: Path,
    format: str,
    metadata: dict[str, Any] | None = None,
    factors: np.ndarray | None = None,
) -> Path:
    """A model of transformers as a GGUF whose matrices are in a format; norms stay float32.

    ``factors`` divide the frequencies of the rotary embedding.
    Formats that the package cannot quantize to get random blocks of the size of a model's weights.
    """
    config, names = model.config, gguf_names(model)
    writer = gguf.GGUFWriter(path, architecture(model))
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(getattr(config, "max_position_embeddings", 512))
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(getattr(config, "intermediate_size", None) or 4 * config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(key_heads(config))
    for key, name in KEYS.items():
        if (value := getattr(config, key, None)) is not None:
            getattr(writer, f"add_{name}")(value)
    rope = getattr(config, "rope_parameters", None)
    if rope:
        columns = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        rope = rope.get("full_attention", rope)
        writer.add_rope_freq_base(rope["rope_theta"])
        writer.add_rope_dimension_count(int(columns * rope.get("partial_rotary_factor", 1.0)))
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("none")
    writer.add_eos_token_id(config.eos_token_id)
    for key, value in (metadata or {}).items():
        add = writer.add_string if isinstance(value, str) else writer.add_float32
        add(key, value)
    kind = gguf.GGMLQuantizationType[format.upper()]
    rng = np.random.default_rng(1)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors)
    for name, parameter in parameters(model):
        value = parameter.detach().numpy()
        if heads := headed(model, name):
            value = permuted(value, heads)
        if architecture(model).startswith("gemma") and "norm" in name:
            value = value + 1  # as the converter does
        if architecture(model) == "gpt2" and value.ndim == 2 and ".h." in name:
            value = np.ascontiguousarray(value.T)
        value = joined(model, name, value)
        if value.ndim == 1 or format == "f32":
            writer.add_tensor(names[name], value)
            continue
        try:
            blocks = gguf.quants.quantize(value, kind)
        except NotImplementedError:
            blocks = tame_blocks(format, *value.shape, rng).reshape(value.shape[0], -1)
        writer.add_tensor(names[name], blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def dequantized(path: Path, model: Any) -> dict[str, np.ndarray]:
    """The values in a file as the package reads them, by the names and in the layout of transformers."""
    names = gguf_names(model)
    tensors = {t.name: t for t in gguf.GGUFReader(path).tensors}
    found = {}
    for name, parameter in model.named_parameters():
        t = tensors[names[name]]
        value = gguf.quants.dequantize(t.data, t.tensor_type).reshape(tuple(parameter.shape))
        if heads := headed(model, name):
            halves = value.reshape(heads, -1, 2, *value.shape[1:])
            value = halves.swapaxes(1, 2).reshape(value.shape)
        found[name] = np.ascontiguousarray(value, np.float32)
    return found
