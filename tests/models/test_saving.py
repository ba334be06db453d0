"""`save_pretrained`: folders that are the ones that models came from, and that transformers opens."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

import pellucid
from models.gguf_files import written
from models.quantized_folders import CASES, quantized
from models.test_gguf import FIXED, ROWS
from models.tiny import (
    MODELS,
    close,
    loaded,
    made,
    made_encoder,
    made_seq2seq,
    ours,
    saved,
    some_ids,
    with_words,
)
from pellucid.errors import ArgumentError
from pellucid.models import GGUF_ARCHITECTURES, AutoModelForMaskedLM, AutoModelForSeq2SeqLM
from pellucid.models.generate import GenerationConfig
from pellucid.quant import BLOCK_FORMATS
from pellucid.quant.weight import planes_of
from pellucid.text import AutoTokenizer

WIDE = {"hidden_size": 64, "intermediate_size": 64, "head_dim": 16}


def contents(folder: Path) -> tuple[dict, dict, dict]:
    """The keys, settings of generation and tensors of a folder."""
    texts = [json.loads((folder / f"{name}.json").read_text()) for name in ("config", "generation_config")]
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(file)
    return texts[0], texts[1], tensors


def logits(model, ids):
    with pellucid.no_grad():
        return model(ours(ids, model.device.type)).logits


def theirs(folder: Path, ids) -> torch.Tensor:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        return model(torch.tensor(ids)).logits


def same(first: dict, second: dict) -> bool:
    return first.keys() == second.keys() and all(
        first[k].dtype == second[k].dtype and torch.equal(first[k], second[k]) for k in first
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_is_written_as_it_was(name, twin, tmp_path):
    folder = twin(name)[1]
    loaded(folder, "cpu").save_pretrained(tmp_path)
    config, _, tensors = contents(tmp_path)
    wanted, _, before = contents(folder)
    assert config == wanted
    assert same(tensors, before)


@pytest.mark.parametrize("auto", [AutoModelForMaskedLM, AutoModelForSeq2SeqLM])
def test_other_heads(auto, tmp_path):
    model = made_encoder("bert", "ForMaskedLM") if auto is AutoModelForMaskedLM else made_seq2seq("t5")
    folder = saved(model, tmp_path / "theirs")
    auto.from_pretrained(str(folder), device="cpu").save_pretrained(tmp_path / "ours")
    before, tensors = (load_file(tmp_path / k / "model.safetensors") for k in ("theirs", "ours"))
    assert same(tensors, before)


@pytest.mark.parametrize("name", ["llama_tied", "qwen3", "gpt2", "falcon"])
def test_a_model_that_was_made_here(name, twin, device, tmp_path):
    kind = type(loaded(twin(name)[1], "cpu"))
    with pellucid.device(device):
        model = kind(loaded(twin(name)[1], "cpu").config).eval()
    model.save_pretrained(tmp_path, max_shard_size="20 KB")
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 2
    ids = some_ids()
    again = loaded(tmp_path, device)
    assert again.config == model.config
    np.testing.assert_array_equal(logits(again, ids).numpy(), logits(model, ids).numpy())
    close(logits(model, ids), theirs(tmp_path, ids))
    # A smaller number of files leaves none of the index behind.
    model.save_pretrained(tmp_path)
    assert not (tmp_path / "model.safetensors.index.json").exists()


def test_what_was_learned_and_settings_are_written(twin, device, tmp_path):
    model = loaded(twin("llama")[1], device)
    with pellucid.no_grad():
        model.model.layers[0].mlp.up_proj.weight.mul_(2)
    model.generation_config = GenerationConfig(eos_token_id=(5, 7), do_sample=True)
    model.save_pretrained(tmp_path)
    again = loaded(tmp_path, device)
    assert logits(again, some_ids()).equal(logits(model, some_ids()))
    assert again.generation_config == model.generation_config
    with_words(tmp_path)
    assert AutoTokenizer.from_pretrained(str(tmp_path))("w5 w7").input_ids == [5, 7]


def test_halves_keep_their_bits(device, tmp_path):
    folder = saved(made("llama", torch.bfloat16), tmp_path / "theirs")
    loaded(folder, device).save_pretrained(tmp_path / "ours")
    config, _, tensors = contents(tmp_path / "ours")
    _, _, before = contents(folder)
    assert config["dtype"] == "bfloat16"
    assert {k: v.float().tolist() for k, v in tensors.items()} == {
        k: v.float().tolist() for k, v in before.items()
    }


@pytest.mark.parametrize("name", ["llama", "llama_biased", "qwen3", "granite"])
def test_a_gguf_becomes_the_folder_that_it_was_made_of(name, twin, tmp_path):
    model, folder = twin(name)
    file = written(model, tmp_path / "tiny.gguf", "f32")
    of_gguf = loaded(file, "cpu")
    of_gguf.save_pretrained(tmp_path / "folder")
    assert same(contents(tmp_path / "folder")[2], contents(folder)[2])
    close(logits(loaded(tmp_path / "folder", "cpu"), some_ids()), theirs(folder, some_ids()))


@pytest.mark.parametrize("name", [*(ROWS.get(kind, kind) for kind in GGUF_ARCHITECTURES), "falcon_new"])
def test_every_gguf_becomes_the_folder_that_it_was_made_of(name, tmp_path):
    model = made(name, **FIXED.get(name, {}))
    folder = saved(model, tmp_path / "folder")
    loaded(written(model, tmp_path / "tiny.gguf", "f32"), "cpu").save_pretrained(tmp_path / "again")
    before, tensors = contents(folder)[2], contents(tmp_path / "again")[2]
    assert tensors.keys() == before.keys()
    for key, value in before.items():
        # Norms that count from one are rounded with it.
        torch.testing.assert_close(tensors[key], value, rtol=0, atol=2e-7, msg=key)
    mine = logits(loaded(tmp_path / "again", "cpu"), some_ids())
    keys = json.loads((tmp_path / "again" / "config.json").read_text())  # the usual padding is no tiny row
    (tmp_path / "again" / "config.json").write_text(json.dumps({**keys, "pad_token_id": None}))
    close(mine, theirs(tmp_path / "again", some_ids()))


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "deepseek_v2"])
def test_experts_that_were_made_here(name, twin, tmp_path):
    of_folder = loaded(twin(name)[1], "cpu")
    with pellucid.device("cpu"):
        model = type(of_folder)(of_folder.config).eval()
    model.save_pretrained(tmp_path)
    written, before = (load_file(folder / "model.safetensors") for folder in (tmp_path, twin(name)[1]))
    assert written.keys() == before.keys()
    close(logits(model, some_ids()), theirs(tmp_path, some_ids()))


def test_factors_of_frequencies_are_written(tmp_path):
    model = made("llama_rope3")
    factors = np.array([1.0, 1.5, 2.5, 8.0], np.float32)
    of_gguf = loaded(written(model, tmp_path / "tiny.gguf", "f32", factors=factors), "cpu")
    of_gguf.save_pretrained(tmp_path / "folder")
    ids = some_ids(1, 60)
    close(logits(of_gguf, ids), theirs(tmp_path / "folder", ids))
    again = loaded(tmp_path / "folder", "cpu")
    close(logits(again, ids), theirs(tmp_path / "folder", ids))
    again.save_gguf(tmp_path / "again.gguf")
    close(logits(loaded(tmp_path / "again.gguf", "cpu"), ids), theirs(tmp_path / "folder", ids))


def bits(model) -> dict:
    """What lies in memory, by path."""
    found = {}
    for path, value in model.state_dict().items():
        quantized = value.dtype.is_quantized
        found[path] = [p.tolist() for p in planes_of(value)] if quantized else value.tolist()
    return found


@pytest.mark.parametrize("format", [*BLOCK_FORMATS])
def test_blocks_of_a_gguf_become_a_folder_with_the_same_bits(format, device, tmp_path):
    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "head_dim": 64}
    of_gguf = loaded(written(made("llama", **sizes), tmp_path / "tiny.gguf", format), device)
    of_gguf.save_pretrained(tmp_path / "folder", max_shard_size="200 KB")
    again = loaded(tmp_path / "folder", device)
    if format not in ("f16", "bf16"):
        keys = contents(tmp_path / "folder")[0]
        assert keys["quantization_config"] == {"quant_method": "pellucid"}
        assert again.model.layers[0].mlp.up_proj.weight.dtype.name == format
        before, mine = bits(of_gguf), bits(again)
        assert mine["model.layers.0.mlp.up_proj.weight"] == before["model.layers.0.mlp.up_proj.weight"]
    close(logits(again, some_ids()), torch.tensor(logits(of_gguf, some_ids()).numpy()))


@pytest.mark.parametrize("case", CASES)
def test_quantized_folders_keep_their_bits(case, tmp_path):
    quantize, settings, _ = CASES[case]
    _, folder = quantized(tmp_path / "theirs", quantize, settings)
    model = loaded(folder, "cpu")
    model.save_pretrained(tmp_path / "ours")
    again = loaded(tmp_path / "ours", "cpu")
    assert bits(again) == bits(model)
    np.testing.assert_array_equal(logits(again, some_ids()).numpy(), logits(model, some_ids()).numpy())


def test_what_cannot_be_written(twin, tmp_path):
    file = written(made("llama", **WIDE), tmp_path / "q.gguf", "q8_0")
    gpt2 = written(made("gpt2", hidden_size=64), tmp_path / "g.gguf", "q8_0")
    latent = {"kv_lora_rank": 32, "qk_nope_head_dim": 32, "v_head_dim": 32, "hidden_size": 64}
    whole = loaded(saved(made("deepseek_v2", **latent), tmp_path / "theirs"), "cpu")
    whole.save_gguf(tmp_path / "d.gguf", format={"*k_b*": "q8_0"})
    for model, reason in (
        (loaded(tmp_path / "d.gguf", "cpu"), r"k_b_proj\.weight is .*q8_0.* dtype=pellucid\.float32"),
        (loaded(gpt2, "cpu"), r"c_attn\.weight is .*q8_0.* dtype=pellucid\.float32"),
        (type(m := loaded(twin("gpt_oss")[1], "cpu"))(m.config), "experts of gpt-oss transposed"),
    ):
        with pytest.raises(ArgumentError, match=reason):
            model.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    model = loaded(twin("llama")[1], "cpu")
    with pytest.raises(ArgumentError, match="is a file"):
        model.save_pretrained(file)
    for size in (0, True, "5 apples", 1.5):
        with pytest.raises(ArgumentError, match="max_shard_size is"):
            model.save_pretrained(tmp_path / "new", max_shard_size=size)


@pytest.mark.parametrize(
    ("name", "joined"),
    [("qwen3_next", "linear_attn.in_proj_qkvz"), ("gpt_oss", "mlp.experts.gate_up_proj")],
)
def test_blocks_that_a_gguf_has_apart_are_joined(name, joined, device, tmp_path):
    sizes = {"hidden_size": 64, "intermediate_size": 64}
    if name == "qwen3_next":
        sizes |= {"moe_intermediate_size": 64, "linear_key_head_dim": 32, "linear_value_head_dim": 32}
    model = made(name, **FIXED[name], **sizes)
    loaded(saved(model, tmp_path / "theirs"), "cpu").save_gguf(tmp_path / "q.gguf", format="q8_0")
    of_gguf = loaded(tmp_path / "q.gguf", device)
    of_gguf.save_pretrained(tmp_path / "folder")
    again = loaded(tmp_path / "folder", device)
    assert again.model.layers[0].get_submodule(joined).weight.dtype.name == "q8_0"
    np.testing.assert_allclose(
        logits(again, some_ids()).numpy(), logits(of_gguf, some_ids()).numpy(), atol=1e-4
    )


def test_halves_that_a_gguf_has_apart_are_joined(tmp_path):
    for name in ("deepseek_v2", "gpt_oss"):
        of_gguf = loaded(written(made(name, **FIXED.get(name, {})), tmp_path / "h.gguf", "bf16"), "cpu")
        of_gguf.save_pretrained(tmp_path / name)
        assert contents(tmp_path / name)[0]["dtype"] == "bfloat16"
        close(logits(of_gguf, some_ids()), theirs(tmp_path / name, some_ids()))


def test_a_quantized_file_in_floats(twin, tmp_path):
    file = written(made("llama", **WIDE), tmp_path / "q.gguf", "q8_0")
    model = loaded(file, "cpu", dtype=pellucid.float32)
    model.save_pretrained(tmp_path / "floats")
    close(logits(model, some_ids()), theirs(tmp_path / "floats", some_ids()))
