"""Tiny models as GGUF files, written as llama.cpp's converter writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from quant.samples import tame_blocks

# What a GGUF calls models whose name differs.
KINDS = {
    "cohere": "command-r", "deepseek_v2": "deepseek2",
    "gemma3_text": "gemma3", "gpt_bigcode": "starcoder", "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    "mistral": "llama", "mixtral": "llama", "phi": "phi2", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe",
    "qwen3_5_text": "qwen35", "qwen3_next": "qwen3next",
}  # fmt: skip
# Keys of a GGUF by those of a configuration of transformers.
KEYS = {
    "head_dim": "key_length", "rms_norm_eps": "layer_norm_rms_eps", "layer_norm_eps": "layer_norm_eps",
    "layer_norm_epsilon": "layer_norm_eps", "norm_epsilon": "layer_norm_eps", "logit_scale": "logit_scale",
    "norm_eps": "layer_norm_eps",
    "use_parallel_residual": "parallel_residual", "sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping", "logits_scaling": "logit_scale",
    "final_logit_softcapping": "final_logit_softcapping", "attention_multiplier": "attention_scale",
    "moe_intermediate_size": "expert_feed_forward_length", "num_experts_per_tok": "expert_used_count",
    "num_experts": "expert_count", "num_local_experts": "expert_count",
    "embedding_multiplier": "embedding_scale",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
    "residual_multiplier": "residual_scale",
}  # fmt: skip
# Architectures whose converter interleaves the halves of each head of queries and keys (`permute`).
INTERLEAVED = ("arcee", "granite", "llama", "smollm3")
# Architectures whose norms count from one, to whose weights the converter adds it.
FROM_ONE = ("gemma", "gemma2", "gemma3", "nemotron", "qwen35", "qwen3next")


def gguf_names(model: Any) -> dict[str, str]:
    """The name in a GGUF of every parameter of a model of transformers, as the package has them."""
    kind = architecture(model)
    arch = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    known = gguf.get_tensor_name_map(arch, model.config.num_hidden_layers)
    found = {}
    for path, _ in parameters(model):
        # As the converter calls it.
        stem, _, ending = (
            path.replace(".dt_bias", ".dt_proj.bias").replace(".sinks", ".sinks.weight").rpartition(".")
        )
        name = known.get_name(stem) or known.get_name(stem.removeprefix("transformer."))
        found[path] = (None if path.endswith("sinks") else known.get_name(path)) or f"{name}.{ending}"
    return found


def parameters(model: Any) -> Iterator[tuple[str, Any]]:
    """Names and values, with gates and ups of experts apart, as checkpoints have them."""
    for path, p in model.named_parameters():
        if architecture(model) == "gpt-oss" and ".experts." in path:
            ending = "bias" if path.endswith("_bias") else "weight"
            p = p if ending == "bias" else p.transpose(1, 2)
            stem = path.removesuffix("_bias").replace("gate_up", "gate")
            gates = "gate_up" in path
            yield f"{stem}.{ending}", (p[:, ::2] if gates else p).contiguous()
            if gates:
                yield f"{stem.replace('gate', 'up')}.{ending}", p[:, 1::2].contiguous()
        elif "in_proj_qkvz" in path:
            yield from value_gates(model, path, p)
        elif path.endswith("kv_b_proj.weight"):
            yield from latent_keys(model, path, p)
        elif path.endswith("experts.gate_up_proj"):
            for name, part in zip(("gate_proj", "up_proj"), p.chunk(2, 1), strict=True):
                yield f"{path.removesuffix('gate_up_proj')}{name}.weight", part
        elif path.endswith("experts.down_proj"):
            yield f"{path}.weight", p
        else:
            # Files have no axis of one element.
            yield path, p[0] if path.endswith("shared_expert_gate.weight") else p


def value_gates(model: Any, path: str, p: torch.Tensor) -> Iterator[tuple[str, Any]]:
    """All queries, keys and values, and the gates of values; a key head has its own beside each other."""
    c = model.config
    each = c.linear_num_value_heads // c.linear_num_key_heads * c.linear_value_head_dim
    columns = [c.linear_key_head_dim] * 2 + [each] * 2
    *first, gates = p.reshape(c.linear_num_key_heads, sum(columns), -1).split(columns, 1)
    yield path.replace("_qkvz", "_qkv"), torch.cat([part.flatten(0, 1) for part in first])
    yield path.replace("_qkvz", "_z"), gates.flatten(0, 1)


def latent_keys(model: Any, path: str, p: torch.Tensor) -> Iterator[tuple[str, Any]]:
    """Keys of a latent, transposed for each head, and its values."""
    c = model.config
    heads = p.view(c.num_attention_heads, -1, c.kv_lora_rank)
    keys, values = heads.split([c.qk_nope_head_dim, c.v_head_dim], 1)
    yield path.replace("kv_b_proj", "k_b_proj"), keys.transpose(1, 2).contiguous()
    yield path.replace("kv_b_proj", "v_b_proj"), values


def architecture(model: Any) -> str:
    """What a GGUF calls it."""
    kind = model.config.model_type
    return KINDS.get(kind, kind)


def feed_forward(model: Any) -> int:
    """Columns inside a feed-forward: of LFM2 others than its configuration says."""
    if model.config.model_type == "lfm2":
        return model.model.layers[0].feed_forward.w1.weight.shape[0]
    return getattr(model.config, "intermediate_size", None) or 4 * model.config.hidden_size


def key_heads(config: Any) -> Any:
    """Key heads of a configuration of transformers; of each layer, where some have none."""
    if config.model_type == "lfm2":
        return [config.num_key_value_heads if kind != "conv" else 0 for kind in config.layer_types]
    if not hasattr(config, "num_attention_heads"):
        return 0
    if config.model_type == "deepseek_v2":
        return 1
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


def recurrent(model: Any, path: str, value: np.ndarray) -> np.ndarray:
    """Values of recurrences as the converter changes them."""
    kind, config = architecture(model), model.config
    if value.ndim == 3 and value.shape[1] == 1:
        value = value[:, 0]
    if path.endswith("A_log"):
        value = -np.exp(value)
    if kind == "mamba2" and path.endswith(("A_log", ".D")):
        value = value[:, None]
    if kind == "mamba2" and path.endswith("mixer.norm.weight"):
        value = value.reshape(config.n_groups, -1)
    return turned_heads(config, path, value) if kind == "qwen35" and "linear_attn" in path else value


def turned_heads(config: Any, path: str, value: np.ndarray) -> np.ndarray:
    """Value heads in the order in which they take the key heads in turn."""
    keys, columns = config.linear_num_key_heads, config.linear_value_head_dim

    def turned(part: np.ndarray, each: int) -> np.ndarray:
        by_key = part.reshape(keys, -1, each, *part.shape[1:])
        return by_key.swapaxes(0, 1).reshape(part.shape)

    if "in_proj_qkv" in path or "conv1d" in path:
        at = 2 * keys * config.linear_key_head_dim
        return np.concatenate([value[:at], turned(value[at:], columns)])
    if "out_proj" in path:
        return np.ascontiguousarray(turned(value.T, columns).T)
    if "in_proj_z" in path:
        return turned(value, columns)
    return value if "norm" in path else turned(value, 1)


def add_recurrence(writer: gguf.GGUFWriter, config: Any) -> None:
    """Keys of models with recurrences and convolutions."""
    if config.model_type == "lfm2":
        writer.add_shortconv_l_cache(config.conv_L_cache)
        writer.add_layer_norm_rms_eps(config.norm_eps)
    elif config.model_type in ("mamba", "mamba2"):
        is_first = config.model_type == "mamba"
        inner = config.intermediate_size if is_first else config.expand * config.hidden_size
        writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
        writer.add_ssm_state_size(config.state_size)
        writer.add_ssm_conv_kernel(config.conv_kernel)
        writer.add_ssm_inner_size(inner)
        writer.add_ssm_time_step_rank(config.time_step_rank if is_first else config.num_heads)
        if not is_first:
            writer.add_ssm_group_count(config.n_groups)
    elif config.model_type in ("qwen3_5_text", "qwen3_next"):
        writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
        writer.add_ssm_state_size(config.linear_key_head_dim)
        writer.add_ssm_group_count(config.linear_num_key_heads)
        writer.add_ssm_time_step_rank(config.linear_num_value_heads)
        writer.add_ssm_inner_size(config.linear_num_value_heads * config.linear_value_head_dim)
        writer.add_full_attention_interval(config.layer_types.index("full_attention") + 1)


def add_latent(writer: gguf.GGUFWriter, config: Any) -> None:
    """Keys of DeepSeek-V2."""
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
    writer.add_value_length(config.kv_lora_rank)
    writer.add_key_length_mla(config.qk_nope_head_dim + config.qk_rope_head_dim)
    writer.add_value_length_mla(config.v_head_dim)
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_expert_weights_norm(False)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
    if config.topk_method != "greedy":
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)


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
    config, names, kind = model.config, gguf_names(model), architecture(model)
    writer = gguf.GGUFWriter(path, kind)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(getattr(config, "max_position_embeddings", 512))
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(feed_forward(model))
    writer.add_head_count(getattr(config, "num_attention_heads", 0))
    writer.add_head_count_kv(key_heads(config))
    if config.model_type == "gpt_oss":
        writer.add_expert_feed_forward_length(config.intermediate_size)
    add_recurrence(writer, config)
    if config.model_type == "deepseek_v2":
        add_latent(writer, config)
    if config.model_type == "gptj":
        writer.add_rope_dimension_count(config.rotary_dim)
    for key, name in KEYS.items():
        passed = (
            config.model_type in ("mamba", "mamba2")
            or (name == "key_length" and hasattr(config, "kv_lora_rank"))
            or (key == "norm_eps" and config.model_type == "lfm2")
        )
        value = None if passed else getattr(config, key, None)
        if value is not None:
            getattr(writer, f"add_{name}")(value)
    rope = getattr(config, "rope_parameters", None)
    if rope:
        columns = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        rope = rope.get("full_attention", rope)
        if rope["rope_type"] == "yarn":
            writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            writer.add_rope_scaling_factor(rope["factor"])
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
            if share := rope.get("mscale_all_dim"):
                writer.add_rope_scaling_yarn_log_mul(0.1 * share)
        writer.add_rope_freq_base(rope["rope_theta"])
        if config.model_type != "deepseek_v2":
            writer.add_rope_dimension_count(int(columns * rope.get("partial_rotary_factor", 1.0)))
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("none")
    writer.add_eos_token_id(config.eos_token_id)
    for key, value in (metadata or {}).items():
        add = writer.add_string if isinstance(value, str) else writer.add_float32
        add(key, value)
    number = gguf.GGMLQuantizationType[format.upper()]
    rng = np.random.default_rng(1)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors)
    for name, parameter in parameters(model):
        value = parameter.detach().numpy()
        if heads := headed(model, name):
            value = permuted(value, heads)
        value = recurrent(model, name, value)
        if kind in FROM_ONE and name.endswith("norm.weight") and "linear_attn" not in name:
            value = value + 1
        if kind == "gpt2" and value.ndim == 2 and ".h." in name:
            value = np.ascontiguousarray(value.T)
        value = joined(model, name, value)
        if value.ndim == 1 or format == "f32":
            writer.add_tensor(names[name], value)
            continue
        try:
            blocks = gguf.quants.quantize(value, number)
        except NotImplementedError:
            blocks = tame_blocks(format, *value.shape, rng).reshape(value.shape[0], -1)
        writer.add_tensor(names[name], blocks, raw_dtype=number)
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
