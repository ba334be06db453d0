"""Tiny models as GGUF files, written as llama.cpp's converter writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from quant.samples import tame_blocks


def gguf_names(model: Any) -> dict[str, str]:
    """The name in a GGUF of every parameter of a model of transformers, as the package has them."""
    kind = architecture(model)
    arch = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    known = gguf.get_tensor_name_map(arch, model.config.num_hidden_layers)
    found = {}
    for path, _ in model.named_parameters():
        stem, _, ending = path.rpartition(".")
        found[path] = f"{known.get_name(stem)}.{ending}"
    return found


def architecture(model: Any) -> str:
    """What a GGUF calls it."""
    kind = model.config.model_type
    return "llama" if kind == "mistral" else kind


def headed(model: Any, path: str) -> int:
    """Heads whose rows the converter interleaves: of queries and keys of a Llama."""
    config = model.config
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    part = path.split(".")[-2]
    return heads.get(part, 0) if architecture(model) == "llama" else 0


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
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    if getattr(config, "head_dim", None):
        writer.add_key_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
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
    for name, parameter in model.named_parameters():
        value = parameter.detach().numpy()
        if heads := headed(model, name):
            value = permuted(value, heads)
        if architecture(model) == "gemma" and "norm" in name:
            value = value + 1  # as the converter does
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
