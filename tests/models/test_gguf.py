"""Tiny models in GGUF files of every architecture and format, beside transformers with their values."""

import numpy as np
import pytest
import torch
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

import pellucid
from models import gguf_files
from models.gguf_files import dequantized, written
from models.tiny import close, loaded, made, ours, saved, some_ids
from pellucid.errors import FormatError, WeightError
from pellucid.models import GGUF_ARCHITECTURES
from quant.samples import THOROUGH

FORMATS = ["f32", *THOROUGH]
WIDE = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "vocab_size": 128,
    "head_dim": 64,
}


def wide(name: str = "llama"):
    model = made(name, **WIDE)
    with torch.no_grad():
        for path, p in model.named_parameters():
            if p.ndim == 2:
                p.mul_(0.3 if "embed" in path else 0.15)
    return model


@pytest.mark.turns(3)
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_gives_the_logits_of_its_values(format, tmp_path, device):
    model = wide()
    path = written(model, tmp_path / "tiny.gguf", format)
    model.load_state_dict({k: torch.tensor(v) for k, v in dequantized(path, model).items()})
    ids = some_ids(2, 9)
    with torch.no_grad():
        expected = model(torch.tensor(ids), output_hidden_states=True)
    for settings in ({}, {"dtype": pellucid.float32}):
        mine = loaded(path, device, **settings)
        kept = "float32" if settings or format == "f32" else format
        assert mine.model.layers[1].mlp.down_proj.weight.dtype.name == kept
        assert mine.model.embed_tokens.weight.dtype.name == kept
        with pellucid.no_grad():
            out = mine(ours(ids, device), output_hidden_states=True)
            for got, wanted in zip(out.hidden_states, expected.hidden_states, strict=True):
                close(got, wanted, 2e-4)
            close(out.logits, expected.logits, 2e-4)
            # One position takes the kernels for vectors, several those for tiles.
            one = mine(ours(ids[:1, :1], device)).logits
        close(one, expected.logits[:1, :1], 2e-4)


# The row of an architecture that has another name than its file.
ROWS = {kind: name.removesuffix("_text") for name, kind in gguf_files.KINDS.items() if kind != "llama"}
ROWS["llama with experts"] = "mixtral"
# How far logits are from those of the folder: where norms have the one already, it is rounded with them, and
# recurrent layers make more of it.
ROUNDED = {"qwen3next": 5e-5, "qwen35": 5e-5}
# What a GGUF does not say: llama.cpp knows these numbers.
FIXED = {
    "gemma2": {"query_pre_attn_scalar": 16},
    "gemma3": {"query_pre_attn_scalar": 16, "layer_types": None, "num_hidden_layers": 6},
    "qwen3_5": {
        "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
        "num_hidden_layers": 4,
    },
    "gpt_oss": {"swiglu_limit": 7.0},
    "qwen2_moe": {"mlp_only_layers": []},
    "qwen3_next": {
        "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
        "mlp_only_layers": [],
        "num_hidden_layers": 4,
    },
    "smollm3": {"no_rope_layer_interval": 4, "num_hidden_layers": 4},
}


@pytest.mark.parametrize("kind", GGUF_ARCHITECTURES)
def test_every_architecture_gives_the_logits_of_its_folder(kind, tmp_path, device):
    name = ROWS.get(kind, kind)
    model = made(name, **FIXED.get(name, {}))
    ids = some_ids(2, 9)
    folder, path = saved(model, tmp_path / "folder"), written(model, tmp_path / "tiny.gguf", "f32")
    with torch.no_grad(), pellucid.no_grad():
        mine = loaded(path, device)
        assert type(mine) is GGUF_ARCHITECTURES[kind]
        logits = mine(ours(ids, device)).logits
        close(logits, model(torch.tensor(ids)).logits)
        np.testing.assert_allclose(
            logits.numpy(),
            loaded(folder, device)(ours(ids, device)).logits.numpy(),
            atol=ROUNDED.get(kind, 1e-5),
        )


@pytest.mark.parametrize(
    ("name", "apart", "weight", "shape"),
    [  # gates of values beside queries, keys and values; keys and values of a latent in one weight
        ("qwen3_next", "value_gates", "linear_attn.in_proj_qkvz", (88, 32)),
        ("deepseek_v2", "latent_keys", "self_attn.kv_b_proj", (40, 16)),
    ],
)
def test_first_files_have_weights_joined_as_folders_do(
    name, apart, weight, shape, tmp_path, device, monkeypatch
):
    model, ids = made(name, **FIXED.get(name, {})), some_ids(2, 9)
    monkeypatch.setattr(gguf_files, apart, lambda model, path, p: [(path, p)])
    path = written(model, tmp_path / "tiny.gguf", "f32")
    with torch.no_grad(), pellucid.no_grad():
        mine = loaded(path, device)
        assert mine.model.layers[0].get_submodule(weight).weight.shape == shape
        close(mine(ours(ids, device)).logits, model(torch.tensor(ids)).logits)


def test_a_quantized_latent_and_its_positions(tmp_path, device):
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128,
               "mscale": 0.7, "mscale_all_dim": 0.7}  # fmt: skip
    sizes = {"kv_lora_rank": 32, "qk_nope_head_dim": 32, "v_head_dim": 32, "moe_intermediate_size": 32,
             "intermediate_size": 64}  # fmt: skip
    model, ids = made("deepseek_v2", q_lora_rank=None, rope_scaling=scaling, **sizes), some_ids(2, 9)
    path = written(model, tmp_path / "tiny.gguf", "q8_0")
    mine, plain = loaded(path, device), loaded(path, device, dtype=pellucid.float32)
    assert mine.model.layers[0].self_attn.k_b_proj.weight.dtype.name == "q8_0"
    with torch.no_grad(), pellucid.no_grad():
        logits = mine(ours(ids, device)).logits
        np.testing.assert_allclose(logits.numpy(), plain(ours(ids, device)).logits.numpy(), atol=1e-4)
        exact = loaded(written(model, tmp_path / "exact.gguf", "f32"), device)
        close(exact(ours(ids, device)).logits, model(torch.tensor(ids)).logits)
        mine.save_gguf(tmp_path / "again.gguf", format="float32")
        again = loaded(tmp_path / "again.gguf", device)(ours(ids, device)).logits
        np.testing.assert_allclose(again.numpy(), logits.numpy(), atol=1e-4)


def test_experts_of_deepseek_v3_are_refused(tmp_path):
    path = written(made("deepseek_v2"), tmp_path / "tiny.gguf", "f32")
    key = b"deepseek2.expert_gating_func\x04\0\0\0"
    data = path.read_bytes()
    assert key + b"\1" in data
    path.write_bytes(data.replace(key + b"\1", key + b"\2"))
    with pytest.raises(FormatError, match=r"expert_gating_func is 2 .* DeepSeek-V3"):
        loaded(path, "cpu")


def test_experts_stay_quantized(tmp_path, device):
    model = made("qwen3_moe", moe_intermediate_size=32)
    path = written(model, tmp_path / "tiny.gguf", "q8_0")
    mine, plain = loaded(path, device), loaded(path, device, dtype=pellucid.float32)
    assert mine.model.layers[1].mlp.experts.up_proj.weight.dtype.name == "q8_0"
    ids = some_ids(2, 9)
    with torch.no_grad(), pellucid.no_grad():
        logits = mine(ours(ids, device)).logits
        np.testing.assert_allclose(logits.numpy(), plain(ours(ids, device)).logits.numpy(), atol=1e-4)
        close(logits, model(torch.tensor(ids)).logits, 5e-2)  # eight bits


def test_experts_of_halves_are_one_weight(tmp_path, device):
    model = made("mixtral", torch.float16, intermediate_size=32)
    mine = loaded(saved(model, tmp_path), device)
    weight = mine.model.layers[0].block_sparse_moe.experts.w1.weight
    assert (weight.dtype.name, tuple(weight.shape)) == ("f16", (160, 32))
    ids = some_ids(2, 9)
    with torch.no_grad(), pellucid.no_grad():
        close(mine(ours(ids, device)).logits, model.float()(torch.tensor(ids)).logits)


def test_our_oracle_reads_files_as_transformers_does(tmp_path):
    model = wide("llama_tied")
    path = written(model, tmp_path / "tiny.gguf", "q4_1")
    theirs = load_gguf_checkpoint(path, return_tensors=True, model_to_load=model)["tensors"]
    mine = dequantized(path, model)
    assert set(theirs) == set(mine)
    for name, value in mine.items():
        np.testing.assert_array_equal(theirs[name].numpy(), value, err_msg=name)


def test_a_tied_head_stays_quantized_and_shares_its_buffer(tmp_path, device):
    path = written(wide("llama_tied"), tmp_path / "tiny.gguf", "q8_0")
    model = loaded(path, device)
    assert model.config.tie_word_embeddings
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.lm_head.weight.dtype.name == "q8_0"
    assert not any(p.requires_grad for p in model.parameters())
    assert model.generation_config.eos_token_id == 2


def test_a_folder_with_one_gguf_is_a_model(tmp_path):
    written(wide(), tmp_path / "tiny.gguf", "q8_0")
    assert loaded(tmp_path, "cpu").config.num_hidden_layers == 2


def test_linear_scaling_of_positions_is_read(tmp_path, device):
    model = wide("llama_linear")
    path = written(
        model,
        tmp_path / "tiny.gguf",
        "f32",
        {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
    )
    ids = some_ids(1, 9)
    with torch.no_grad(), pellucid.no_grad():
        close(loaded(path, device)(ours(ids, device)).logits, model(torch.tensor(ids)).logits, 2e-4)


def test_other_scaling_is_refused(tmp_path):
    path = written(wide(), tmp_path / "tiny.gguf", "f16", {"llama.rope.scaling.type": "longrope"})
    with pytest.raises(FormatError, match="'longrope' is not known"):
        loaded(path, "cpu")


def test_factors_of_frequencies_are_read(tmp_path, device):
    """Llama 3's scaling lies in a GGUF as one factor per frequency."""
    model = wide("llama_rope3")
    plain = 500000.0 ** (-np.arange(0, 64, 2) / 64)
    factors = (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32)
    path = written(model, tmp_path / "tiny.gguf", "f32", factors=factors)
    ids = some_ids(1, 60)
    with torch.no_grad(), pellucid.no_grad():
        close(loaded(path, device)(ours(ids, device)).logits, model(torch.tensor(ids)).logits, 2e-4)


def test_an_unknown_architecture_is_refused(tmp_path):
    path = written(wide(), tmp_path / "tiny.gguf", "f16")
    data = (
        path.read_bytes()
        .replace(b"llama.", b"rwkv7.")
        .replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0rwkv7")
    )
    path.write_bytes(data)
    with pytest.raises(
        FormatError,
        match=f"'rwkv7' of a GGUF is not known. There are {', '.join(sorted(GGUF_ARCHITECTURES))}",
    ):
        loaded(path, "cpu")


def test_a_missing_key_or_embedding_is_said(tmp_path):
    path = written(wide(), tmp_path / "tiny.gguf", "f16")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"llama.attention.head_count\x04", b"llama.attention.head_cound\x04"))
    with pytest.raises(FormatError, match=r"llama\.attention\.head_count is missing"):
        loaded(path, "cpu")
    path.write_bytes(data.replace(b"token_embd.weight", b"token_embx.weight"))
    with pytest.raises(WeightError, match=r"token_embd\.weight"):
        loaded(path, "cpu")
