"""Tiny random models of transformers, saved as their checkpoints, and what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers

import pellucid
from pellucid.models import AutoModelForCausalLM

VOCABULARY = 96
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
# name -> (configuration class of transformers, what differs from SIZES)
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {"tie_word_embeddings": False}),
    "llama_tied": ("LlamaConfig", {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "llama_biased": ("LlamaConfig", {"attention_bias": True, "mlp_bias": True}),
    "llama_linear": ("LlamaConfig", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "llama_rope3": ("LlamaConfig", {"rope_theta": 500000.0, "rope_scaling": LLAMA3}),
    "llama_one_head": ("LlamaConfig", {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16}),
    "mistral": ("MistralConfig", {"sliding_window": None, "head_dim": 8}),
    "mistral_window": ("MistralConfig", {"sliding_window": 6}),
    "arcee": ("ArceeConfig", {"head_dim": 8, "rope_parameters": {"rope_type": "default", "rope_theta": 1e5}}),
    "bloom": ("BloomConfig", {"num_attention_heads": 6, "hidden_size": 48}),
    "cohere": ("CohereConfig", {"pad_token_id": 0, "logit_scale": 0.5}),
    "cohere_normed": ("CohereConfig", {"pad_token_id": 0, "use_qk_norm": True}),
    "falcon": ("FalconConfig", {"num_attention_heads": 4}),
    "falcon_new": ("FalconConfig", {"new_decoder_architecture": True, "num_kv_heads": 2, "bias": True}),
    "falcon_serial": ("FalconConfig", {"parallel_attn": False, "multi_query": False, "bias": True}),
    "gemma": ("GemmaConfig", {"head_dim": 16}),
    "gemma2": (
        "Gemma2Config",
        {
            "head_dim": 16,
            "sliding_window": 6,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 3.0,
            "query_pre_attn_scalar": 20,
        },
    ),
    "gemma3": (
        "Gemma3TextConfig",
        {
            "head_dim": 16,
            "sliding_window": 6,
            "query_pre_attn_scalar": 20,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "gpt2": ("GPT2Config", {}),
    "gpt_bigcode": ("GPTBigCodeConfig", {}),
    "gpt_bigcode_heads": ("GPTBigCodeConfig", {"multi_query": False}),
    "gpt_neox": ("GPTNeoXConfig", {"hidden_size": 64}),
    "gpt_neox_serial": ("GPTNeoXConfig", {"hidden_size": 64, "use_parallel_residual": False}),
    "gptj": ("GPTJConfig", {"rotary_dim": 4}),
    "gpt_oss": (
        "GptOssConfig",
        {
            "num_local_experts": 5,
            "num_experts_per_tok": 2,
            "head_dim": 8,
            "sliding_window": 6,
            "swiglu_limit": 0.5,
            "rope_parameters": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 64,
                "rope_theta": 1e4,
                "truncate": False,
            },
        },
    ),
    "granite": (
        "GraniteConfig",
        {
            "attention_multiplier": 0.3,
            "embedding_multiplier": 2.0,
            "logits_scaling": 4.0,
            "residual_multiplier": 0.5,
        },
    ),
    "deepseek_v2": (
        "DeepseekV2Config",
        {
            "n_routed_experts": 6,
            "kv_lora_rank": 16,
            "q_lora_rank": 12,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 4,
            "v_head_dim": 6,
            "moe_intermediate_size": 16,
            "num_key_value_heads": 4,
            "num_experts_per_tok": 2,
            "first_k_dense_replace": 1,
            "routed_scaling_factor": 1.5,
        },
    ),
    "deepseek_v2_groups": (
        "DeepseekV2Config",
        {
            "n_routed_experts": 6,
            "kv_lora_rank": 16,
            "q_lora_rank": None,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 4,
            "v_head_dim": 8,
            "moe_intermediate_size": 16,
            "num_key_value_heads": 4,
            "num_experts_per_tok": 2,
            "n_group": 3,
            "topk_group": 2,
            "topk_method": "group_limited_greedy",
        },
    ),
    "lfm2": ("Lfm2Config", {"layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 16}),
    "mamba": ("MambaConfig", {"state_size": 5, "use_bias": True}),
    "mamba2": (
        "Mamba2Config",
        {"num_heads": 4, "head_dim": 16, "n_groups": 2, "state_size": 6, "chunk_size": 8},
    ),
    "mixtral": ("MixtralConfig", {"num_local_experts": 5}),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        {
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 24,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "mlp_only_layers": [1],
        },
    ),
    "qwen3_moe": (
        "Qwen3MoeConfig",
        {
            "moe_intermediate_size": 16,
            "num_experts": 5,
            "num_experts_per_tok": 3,
            "head_dim": 8,
            "norm_topk_prob": True,
        },
    ),
    "nemotron": ("NemotronConfig", {}),
    "nemotron_biased": ("NemotronConfig", {"head_dim": 16, "attention_bias": True, "mlp_bias": True}),
    "olmo2": ("Olmo2Config", {}),
    "opt": ("OPTConfig", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "opt_projected": ("OPTConfig", {"ffn_dim": 48, "word_embed_proj_dim": 16, "do_layer_norm_before": False}),
    "phi": ("PhiConfig", {}),
    "seed_oss": ("SeedOssConfig", {"head_dim": 16}),
    "seed_oss_biased": ("SeedOssConfig", {"head_dim": 8, "attention_out_bias": True, "mlp_bias": True}),
    "smollm3": ("SmolLM3Config", {"pad_token_id": 0, "no_rope_layer_interval": 2}),
    "stablelm": ("StableLmConfig", {"hidden_size": 64, "use_qkv_bias": True}),
    "stablelm_parallel": ("StableLmConfig", {"hidden_size": 64, "use_parallel_residual": True}),
    "starcoder2": ("Starcoder2Config", {"sliding_window": 6}),
    "phi3": ("Phi3Config", {"pad_token_id": 0}),
    "qwen2": ("Qwen2Config", {"tie_word_embeddings": True, "rope_theta": 1e6}),
    "qwen3": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True, "rope_theta": 1e6}),
    "qwen3_5": (
        "Qwen3_5TextConfig",
        {
            "head_dim": 16,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 6,
            "linear_value_head_dim": 8,
        },
    ),
    "qwen3_next": (
        "Qwen3NextConfig",
        {
            "head_dim": 16,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 6,
            "linear_value_head_dim": 8,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 24,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "mlp_only_layers": [1],
        },
    ),
    "qwen3_untied": ("Qwen3Config", {"head_dim": 24, "tie_word_embeddings": False}),
}


ENCODER_SIZES = {
    key: SIZES[key] for key in ("vocab_size", "hidden_size", "intermediate_size", "num_attention_heads")
} | {"num_hidden_layers": 2, "max_position_embeddings": 40, "num_labels": 3, "pad_token_id": 1}
# name -> (name of the classes of transformers, what differs from ENCODER_SIZES)
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", {}),
    "roberta": ("Roberta", {"type_vocab_size": 1}),
    "xlm-roberta": ("XLMRoberta", {"tie_word_embeddings": False}),
    "distilbert": ("DistilBert", {"hidden_dim": 48, "intermediate_size": None}),
    "electra": ("Electra", {"embedding_size": 16}),
    "albert": ("Albert", {"embedding_size": 16, "num_hidden_groups": 2, "num_hidden_layers": 4}),
    "mpnet": ("MPNet", {}),
    "modernbert": (
        "ModernBert",
        {"num_hidden_layers": 3, "local_attention": 6, "classifier_pooling": "mean"},
    ),
}


BART_SIZES = {
    "d_model": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 2, "max_position_embeddings": 40,
    "pad_token_id": 1, "eos_token_id": 2, "forced_eos_token_id": 2, "num_labels": 3,
}  # fmt: skip
T5_SIZES = {
    "d_model": 32, "d_kv": 12, "d_ff": 48, "num_layers": 2, "num_heads": 4,
    "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
# name -> (name of the classes of transformers, the configuration)
SEQ2SEQ: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("T5", T5_SIZES),
    "t5_gated": ("T5", {**T5_SIZES, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "bart": ("Bart", BART_SIZES),
    "bart_scaled": ("Bart", {**BART_SIZES, "scale_embedding": True, "activation_function": "relu"}),
}


def made_seq2seq(name: str) -> Any:
    """An encoder-decoder of transformers with random weights."""
    kind, settings = SEQ2SEQ[name]
    config = getattr(transformers, f"{kind}Config")(vocab_size=VOCABULARY, **settings)
    return randomized(getattr(transformers, f"{kind}ForConditionalGeneration")(config), name)


def randomized(model: Any, name: str) -> Any:
    """The model with random weights, the same at every call.

    Norms and biases are random, too: at their usual start, ones and zeros, a missing one would not show.
    """
    torch.manual_seed(sum(name.encode()))
    with torch.no_grad():
        for path, p in model.named_parameters():
            if "norm" in path.lower() and path.endswith("weight"):
                p.uniform_(0.5, 1.5)
            else:
                p.normal_(0, 0.2)
    return model.eval()


def made_encoder(name: str, head: str) -> Any:
    """An encoder of transformers with a head ("Model" for none) and random weights."""
    kind, differs = ENCODERS[name]
    labels = {"num_labels": 2} if head == "ForQuestionAnswering" else {}
    config = getattr(transformers, f"{kind}Config")(**{**ENCODER_SIZES, **differs, **labels})
    return randomized(getattr(transformers, kind + head)(config), name)


def made(name: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """A causal language model of transformers with random weights."""
    kind, differs = MODELS[name]
    made_by = getattr(transformers, kind)
    known = made_by().to_dict() | made_by.attribute_map
    sizes = {key: value for key, value in SIZES.items() if key in known}
    config = made_by(**{**sizes, **differs, **changes})
    model = randomized(transformers.AutoModelForCausalLM.from_config(config), name)
    return model.to(dtype)


def saved(model: Any, folder: Path, **settings: Any) -> Path:
    """The model's folder: config.json and safetensors."""
    model.save_pretrained(folder, safe_serialization=True, **settings)
    return folder


def with_words(folder: Path) -> Path:
    """The folder with a tokenizer of words: w5 is the id 5."""
    words = {f"w{k}": k for k in range(VOCABULARY)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return folder


def loaded(folder: Path, device: str, **settings: Any) -> Any:
    """Ours, from such a folder."""
    return AutoModelForCausalLM.from_pretrained(str(folder), device=device, **settings)


def some_ids(batch: int = 1, time: int = 13, seed: int = 0) -> np.ndarray:
    """Random ids without the special ones."""
    return np.random.default_rng(seed).integers(3, VOCABULARY, (batch, time))


def ours(array: np.ndarray, device: str) -> pellucid.Tensor:
    """An array as a tensor on one of our devices."""
    return pellucid.tensor(array, device=device)


def close(got: pellucid.Tensor, wanted: torch.Tensor, tolerance: float = 1e-4) -> None:
    """Assert equal shapes and values within a share of the largest one."""
    assert tuple(got.shape) == tuple(wanted.shape)
    expected = wanted.detach().float().numpy()
    scale = max(float(np.abs(expected).max(initial=0)), 1.0)
    np.testing.assert_allclose(got.detach().float().numpy() / scale, expected / scale, rtol=0, atol=tolerance)
