"""`save_gguf`: files that are those of llama.cpp's converter, read by the package gguf and by us."""

import tracemalloc

import gguf
import numpy as np
import pytest
import torch

import pellucid
from models.gguf_files import written
from models.test_gguf import FIXED, ROUNDED, ROWS
from models.tiny import MODELS, loaded, made, made_encoder, ours, saved, some_ids
from pellucid.errors import ArgumentError, DTypeError
from pellucid.models import GGUF_ARCHITECTURES, AutoModel, AutoModelForMaskedLM
from pellucid.quant import ENCODERS
from pellucid.text import AutoTokenizer

from paths import WEIGHTS

WIDE = {
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 1,
    "vocab_size": 128,
    "head_dim": 64,
}
# Keys that are about the file.
ABOUT = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.file_type"}
# Keys of which the samples have a guess, since transformers has no such setting.
UNSURE = {
    "bloom": ("context_length",), "falcon": ("attention.key_length",),
    "mamba": ("context_length", "feed_forward_length"),
    "mamba2": ("context_length", "feed_forward_length"), "starcoder": ("attention.head_count_kv",),
}  # fmt: skip
# What not every architecture has a use for.
UNUSED = ("feed_forward_length", "attention.sliding_window", "attention.key_length")


def contents(path) -> tuple[dict, dict]:
    """Values and tensors by name, as the package reads them."""
    reader = gguf.GGUFReader(path)
    keys = {name: field.contents() for name, field in reader.fields.items() if name not in ABOUT}
    return keys, {t.name: t for t in reader.tensors}


def same_tensors(first: dict, second: dict, atol: float = 0) -> None:
    assert first.keys() == second.keys()
    for name, t in first.items():
        other = second[name]
        assert (t.tensor_type, t.shape.tolist()) == (other.tensor_type, other.shape.tolist()), name
        if t.data.dtype == np.float32:
            np.testing.assert_allclose(t.data, other.data, rtol=atol, atol=0, err_msg=name)
        else:
            np.testing.assert_array_equal(t.data, other.data, err_msg=name)


def logits(model, ids=None):
    with pellucid.no_grad():
        return model(ours(some_ids(2, 9) if ids is None else ids, model.device.type)).logits.numpy()


@pytest.mark.parametrize("kind", GGUF_ARCHITECTURES)
def test_a_folder_becomes_the_file_of_llama_cpp(kind, tmp_path, device):
    name = ROWS.get(kind, kind)
    theirs = made(name, **FIXED.get(name, {}))
    model = loaded(saved(theirs, tmp_path / "folder"), device)
    formats = model.save_gguf(tmp_path / "ours.gguf")
    wanted, tensors = contents(written(theirs, tmp_path / "theirs.gguf", "f32"))
    keys, mine = contents(tmp_path / "ours.gguf")
    assert set(formats) == set(mine)
    assert set(formats.values()) == {"float32"}
    same_tensors(mine, tensors, 1e-6)
    for key, value in wanted.items():
        if key.partition(".")[2] in UNSURE.get(kind, ()):
            continue
        if key in keys:
            assert keys[key] == pytest.approx(value) if isinstance(value, float) else keys[key] == value, key
        else:
            assert key.partition(".")[2] in UNUSED, key
    again = loaded(tmp_path / "ours.gguf", device)
    np.testing.assert_allclose(logits(again), logits(model), atol=ROUNDED.get(kind, 1e-5))


@pytest.mark.parametrize("kind", GGUF_ARCHITECTURES)
def test_a_gguf_is_written_as_it_was(kind, tmp_path, device):
    name = ROWS.get(kind, kind)
    file = written(made(name, **FIXED.get(name, {})), tmp_path / "a.gguf", "f32", {"general.name": "tiny"})
    loaded(file, device).save_gguf(tmp_path / "b.gguf")
    (keys, tensors), (again, mine) = contents(file), contents(tmp_path / "b.gguf")
    added = {"general.alignment", "general.quantization_version"}
    assert {k: v for k, v in again.items() if k not in added} == keys
    same_tensors(mine, tensors)


@pytest.mark.parametrize("format", pellucid.quant.BLOCK_FORMATS)
def test_blocks_stay_what_they_are(format, tmp_path, device):
    file = written(made("llama", **WIDE), tmp_path / "a.gguf", format)
    loaded(file, device).save_gguf(tmp_path / "b.gguf")
    same_tensors(contents(file)[1], contents(tmp_path / "b.gguf")[1])


@pytest.mark.parametrize("format", ENCODERS)
def test_every_format_that_is_encoded(format, tmp_path, device):
    model = loaded(saved(made("qwen3", **WIDE), tmp_path / "folder"), device)
    formats = model.save_gguf(tmp_path / "a.gguf", format=format)
    assert formats["blk.0.ffn_up.weight"] == format
    assert formats["blk.0.attn_norm.weight"] == "float32"
    again = loaded(tmp_path / "a.gguf", device)
    assert again.model.layers[0].mlp.up_proj.weight.dtype.name == format
    tensor = contents(tmp_path / "a.gguf")[1]["blk.0.ffn_up.weight"]
    np.testing.assert_array_equal(
        gguf.quants.dequantize(tensor.data, tensor.tensor_type),
        again.model.layers[0].mlp.up_proj.weight.dequantize().numpy(),
    )
    tensor = contents(tmp_path / "a.gguf")[1]["blk.0.ffn_up.weight"]
    blocks = pellucid.quant.encode_blocks(model.model.layers[0].mlp.up_proj.weight.detach().numpy(), format)
    assert tensor.data.tobytes() == blocks.tobytes()


def test_formats_by_name_and_rows_of_no_whole_blocks(tmp_path, device):
    model = loaded(saved(made("llama", hidden_size=64), tmp_path / "folder"), device)
    formats = model.save_gguf(
        tmp_path / "a.gguf", format={"*ffn_*": "q4_0", "token_embd*": None, "*": "q8_0"}
    )
    assert formats["blk.0.ffn_up.weight"] == "q4_0"
    assert formats["blk.0.attn_q.weight"] == "q8_0"
    assert formats["token_embd.weight"] == formats["blk.0.ffn_down.weight"] == "float32"  # 48 columns
    assert np.abs(logits(loaded(tmp_path / "a.gguf", device)) - logits(model)).max() < 2


@pytest.mark.parametrize("name", ["gpt2", "gpt_oss", "bloom", "llama", "qwen3_5", "gemma"])
def test_halves_keep_their_bits(name, tmp_path, device):
    theirs = made(name, torch.bfloat16, **FIXED.get(name, {}))
    model = loaded(saved(theirs, tmp_path / "folder"), device)
    formats = model.save_gguf(tmp_path / "a.gguf")
    assert "bf16" in formats.values()
    model.save_gguf(tmp_path / "b.gguf", format="float32")
    mine, floats = contents(tmp_path / "a.gguf")[1], contents(tmp_path / "b.gguf")[1]
    for key, t in floats.items():
        values = gguf.quants.dequantize(mine[key].data, mine[key].tensor_type)
        np.testing.assert_array_equal(values.reshape(t.data.shape), t.data, err_msg=key)
    np.testing.assert_allclose(logits(loaded(tmp_path / "b.gguf", device)), logits(model), atol=2e-2)


def test_quantized_folders(tmp_path, device):
    folder = saved(made("llama", **WIDE), tmp_path / "folder")
    pellucid.weights.quantize(str(folder), tmp_path / "small", "q4_k")
    model = loaded(tmp_path / "small", device)
    assert model.save_gguf(tmp_path / "a.gguf")["blk.0.attn_q.weight"] == "q4_k"  # rows move, blocks stay
    np.testing.assert_allclose(logits(loaded(tmp_path / "a.gguf", device)), logits(model), atol=1e-3)
    model.save_gguf(tmp_path / "b.gguf", format="q8_0")
    assert np.abs(logits(loaded(tmp_path / "b.gguf", device)) - logits(model)).max() < 0.5


def test_what_was_learned_is_written(tmp_path, device):
    model = loaded(written(made("llama"), tmp_path / "a.gguf", "f32"), device)
    with pellucid.no_grad():
        model.model.layers[0].mlp.up_proj.weight.mul_(2)
    model.save_gguf(tmp_path / "a.gguf")  # over the file that it came from
    np.testing.assert_array_equal(logits(loaded(tmp_path / "a.gguf", device)), logits(model))


def test_merged_adapters(tmp_path, device):
    from pellucid.train import LoraConfig, get_peft_model

    base = loaded(saved(made("llama", **WIDE), tmp_path / "folder"), device)
    model = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    with pytest.raises(ArgumentError, match=r"no place for .*lora.* merge_and_unload\(\)"):
        base.save_gguf(tmp_path / "a.gguf")
    wanted = logits(model)
    model.merge_and_unload().save_gguf(tmp_path / "a.gguf")
    np.testing.assert_allclose(logits(loaded(tmp_path / "a.gguf", device)), wanted, atol=1e-4)


def test_the_real_smollm2_is_written_as_it_was(tmp_path):
    file = WEIGHTS / "SmolLM2-135M-Instruct.Q4_1.gguf"
    loaded(file, "webgpu").save_gguf(tmp_path / "a.gguf")
    (keys, tensors), (again, mine) = contents(file), contents(tmp_path / "a.gguf")
    assert again == {**keys, "general.alignment": 32}
    same_tensors(mine, tensors)


def test_a_tokenizer_goes_into_the_file(tmp_path):
    model = loaded(saved(made("llama", vocab_size=260), tmp_path / "folder"), "cpu")
    words = [chr(k) for k in range(33, 127)] + ["ab"]
    tokenizer = AutoTokenizer.from_pretrained({
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": 3,
    })  # fmt: skip
    model.save_gguf(tmp_path / "a.gguf", tokenizer=tokenizer)
    again = AutoTokenizer.from_pretrained(tmp_path / "a.gguf")
    assert again.encode("abba") == tokenizer.encode("abba") == [94, 65, 64]
    # A model of a GGUF keeps the tokenizer of that file.
    model = loaded(tmp_path / "a.gguf", "cpu")
    assert model.generation_config.eos_token_id == 3
    model.save_gguf(tmp_path / "b.gguf", format="f16")
    assert AutoTokenizer.from_pretrained(tmp_path / "b.gguf").encode("abba") == [94, 65, 64]


def test_mistral_without_a_window_is_a_llama(tmp_path, device):
    model = loaded(saved(made("mistral"), tmp_path / "folder"), device)
    model.save_gguf(tmp_path / "a.gguf")
    again = loaded(tmp_path / "a.gguf", device)
    assert type(again).__name__ == "LlamaForCausalLM"
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-5)


def test_an_encoder(tmp_path, device):
    folder = saved(made_encoder("bert", "Model"), tmp_path / "folder")
    model = AutoModel.from_pretrained(str(folder), device=device)
    formats = model.save_gguf(tmp_path / "a.gguf")
    assert formats["token_types.weight"] == "float32"
    assert not any("pooler" in name for name in formats)
    again, ids = AutoModel.from_pretrained(tmp_path / "a.gguf", device=device), ours(some_ids(), device)
    with pellucid.no_grad():
        hidden = [m(ids).last_hidden_state.numpy() for m in (again, model)]
    np.testing.assert_array_equal(*hidden)


# What each of these computes, and no key of a GGUF says.
REFUSED = {
    "mistral_window": "what window of this MistralForCausalLM",
    "cohere_normed": "use_qk_norm",
    "falcon_serial": "is_parallel",
    "gemma2": "scale",
    "gemma3": "window, turning",
    "gpt_bigcode_heads": "kv_heads",
    "gpt_oss": "swiglu_limit",
    "qwen2_moe": "is_sparse",
    "qwen3_next": "is_sparse",
    "seed_oss_biased": "attention_out_bias",
    "smollm3": "turning",
} | dict.fromkeys(
    ("opt", "opt_projected"),
    "llama.cpp has no file for",
)


@pytest.mark.parametrize("name", MODELS)
def test_what_a_file_cannot_say_is_refused_and_all_else_is_written(name, twin, tmp_path):
    model = loaded(twin(name)[1], "cpu")
    if name in REFUSED:
        with pytest.raises(ArgumentError, match=REFUSED[name]):
            model.save_gguf(tmp_path / "a.gguf")
        assert not list(tmp_path.iterdir())
    else:
        model.save_gguf(tmp_path / "a.gguf")
        np.testing.assert_allclose(logits(loaded(tmp_path / "a.gguf", "cpu")), logits(model), atol=1e-5)


def test_what_cannot_be_written(tmp_path):
    model = loaded(saved(made("llama"), tmp_path / "folder"), "cpu")
    file = tmp_path / "a.gguf"
    with pytest.raises(DTypeError, match="not encoded to 'iq1_s'"):
        model.save_gguf(file, format="iq1_s")
    with pytest.raises(ArgumentError, match="no matrix's name and columns fit"):
        model.save_gguf(file, format="q4_k")
    model.extra = pellucid.nn.Linear(2, 2)
    with pytest.raises(ArgumentError, match=r"no place for extra\.weight, extra\.bias"):
        model.save_gguf(file)
    del model.extra
    with pellucid.no_grad():
        model.lm_head.weight.fill_(float("inf"))
    with pytest.raises(ArgumentError, match="not finite"):
        model.save_gguf(file, format="f16")
    head = AutoModelForMaskedLM.from_pretrained(
        str(saved(made_encoder("bert", "ForMaskedLM"), tmp_path / "b"))
    )
    with pytest.raises(ArgumentError, match=r"llama\.cpp has no file for BertForMaskedLM"):
        head.save_gguf(file)
    assert not file.exists()
    assert not list(tmp_path.glob("*.part"))


def test_a_few_rows_are_in_memory_at_a_time(tmp_path):
    wide = {**WIDE, "vocab_size": 32768, "num_hidden_layers": 2}
    model = loaded(saved(made("llama", **wide), tmp_path / "folder"), "cpu")
    tracemalloc.start()
    try:
        model.save_gguf(tmp_path / "a.gguf", format="q8_0")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20  # the two tables of the vocabulary alone are 64 MiB
