"""Rotary positions: every scaling of transformers, and texts that grow past the original positions."""

import gc
import json

import gguf
import numpy as np
import pytest
import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

import pellucid
from models.tiny import LLAMA3, close, loaded, made, ours, saved, some_ids
from pellucid.errors import ArgumentError, DimensionError, FormatError
from pellucid.models import AutoConfig

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
LONG = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.1, 1.3, 2.0],
    "long_factor": [1.5, 2.5, 4.0, 9.0],
    "original_max_position_embeddings": 16,
}
# Each with what differs from the model of 512 positions.
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "llama3": LLAMA3,
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "factor": 2.0},
    "yarn": YARN,
    "yarn_without_a_length": {"rope_type": "yarn", "factor": 2.0},
    "yarn_beta": {**YARN, "beta_fast": 8, "beta_slow": 2, "truncate": False},
    "yarn_attention_factor": {**YARN, "attention_factor": 1.5},
    "yarn_mscale": {**YARN, "mscale": 0.7, "mscale_all_dim": 1.2},
    "longrope": LONG,
    "longrope_factor": {**LONG, "factor": 8.0},
    "longrope_attention_factor": {**LONG, "attention_factor": 1.25},
}


@pytest.mark.parametrize("name", SCALINGS)
def test_frequencies_are_those_of_transformers(name):
    scaling = {"rope_theta": 1e4, **SCALINGS[name]}
    config = transformers.LlamaConfig(
        hidden_size=32, num_attention_heads=4, max_position_embeddings=512, rope_parameters=dict(scaling)
    )
    kind = scaling["rope_type"]
    wanted, factor = ROPE_INIT_FUNCTIONS[kind](config)
    keys = json.loads(config.to_json_string(use_diff=False))
    mine = pellucid.models.LlamaConfig.from_dict(
        {"hidden_size": 32, "num_attention_heads": 4, "max_position_embeddings": 512,
         "rope_parameters": {k: v for k, v in keys["rope_parameters"].items() if k in scaling}}
    ).rotary("rotary_emb")  # fmt: skip
    cos, sin = mine.tables(8, "cpu")
    angles = torch.outer(torch.arange(8).double(), wanted.double())
    np.testing.assert_allclose(cos[:8].numpy(), (angles.cos() * factor).numpy(), atol=1e-5)
    np.testing.assert_allclose(sin[:8].numpy(), (angles.sin() * factor).numpy(), atol=1e-5)
    if kind == "longrope":
        wanted, _ = ROPE_INIT_FUNCTIONS[kind](config, seq_len=17)
        cos, _ = mine.tables(17, "cpu", is_long=True)
        angles = torch.outer(torch.arange(17).double(), wanted.double())
        np.testing.assert_allclose(cos[:17].numpy(), (angles.cos() * factor).numpy(), atol=1e-5)


def endless(**changes):
    """A model that no id ends."""
    model = made("phi3", **changes)
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    return model


@pytest.mark.parametrize("length", [5, 16, 17, 30])
def test_a_text_shorter_or_longer_than_the_original_positions(length, tmp_path, device):
    theirs = endless(rope_scaling=dict(LONG), original_max_position_embeddings=16)
    model, ids = loaded(saved(theirs, tmp_path), device), some_ids(1, length)
    with torch.no_grad():
        close(model(ours(ids, device)).logits, theirs(torch.tensor(ids)).logits)
    settings = {"max_new_tokens": 16 if device == "cpu" else 8}
    wanted = theirs.generate(torch.tensor(ids), do_sample=False, **settings)[0, length:]
    assert model.generate(ours(ids, device), **settings)[0, length:].tolist() == wanted.tolist()


@pytest.mark.parametrize("watched", [False, True])
def test_a_text_that_grows_past_the_original_positions_is_run_again(watched, tmp_path, device):
    changes = {"original_max_position_embeddings": 16, "sliding_window": 9}
    theirs = endless(rope_scaling={**LONG, "type": "su"}, **changes)
    model, ids = loaded(saved(theirs, tmp_path), device), some_ids(2, 12, seed=3)
    cache, lengths = model.new_cache(2, 32), []
    if watched:  # without a step that runs ahead
        model.model.register_forward_hook(lambda _, args, out: lengths.append(args[0].shape[1]))
    whole, wanted = torch.tensor(ids), []
    with torch.no_grad():
        for _ in range(9):
            wanted.append(theirs(whole).logits[:, -1].argmax(-1))
            whole = torch.cat([whole, wanted[-1].unsqueeze(1)], 1)
    got = model.generate(ours(ids, device), max_new_tokens=9, past_key_values=cache)
    assert got.tolist() == whole.tolist()
    assert lengths == ([12, 1, 1, 1, 1, 17, 1, 1, 1] if watched else [])
    assert cache.length == 20
    with pytest.raises(DimensionError, match="cannot crop to 16; 20 positions were filled, and texts of"):
        cache.crop(16)
    cache.crop(0)
    again = model.generate(ours(ids, device), max_new_tokens=4, past_key_values=cache)
    assert again.tolist() == whole[:, :16].tolist()


def test_ids_that_may_be_run_again_take_no_memory_of_the_device(tmp_path):
    theirs = endless(rope_scaling=LONG | {"original_max_position_embeddings": 100},
        original_max_position_embeddings=100)  # fmt: skip
    model, used = loaded(saved(theirs, tmp_path), "webgpu"), []
    for k, _ in enumerate(model.stream(some_ids(1, 5).tolist(), max_new_tokens=90)):
        if k in (20, 80):
            gc.collect()
            pellucid.webgpu.synchronize()
            used.append(pellucid.webgpu.memory_stats()["live_buffers"])
    assert used[1] <= used[0]


def test_what_a_cache_holds_does_not_grow_past_the_original_positions(tmp_path):
    theirs = made("phi3", rope_scaling=dict(LONG), original_max_position_embeddings=16)
    model, ids = loaded(saved(theirs, tmp_path), "cpu"), ours(some_ids(1, 12), "cpu")
    cache = model.new_cache(1, 32)
    model(ids, past_key_values=cache)
    with pytest.raises(DimensionError, match="positions 12 to 23: past 16"):
        model(ids, past_key_values=cache)
    with pytest.raises(DimensionError, match="past 16 this model turns all positions by other factors"):
        model.generate(ids[:, :2], max_new_tokens=6, past_key_values=cache)
    assert cache.length == 12


def test_factors_of_long_texts_in_a_gguf(tmp_path, device):
    theirs = made("phi3", rope_scaling=dict(LONG), original_max_position_embeddings=16)
    folder = loaded(saved(theirs, tmp_path / "folder"), device)
    folder.save_gguf(tmp_path / "a.gguf")
    reader = gguf.GGUFReader(tmp_path / "a.gguf")
    tensors = {t.name: t.data.tolist() for t in reader.tensors}
    for name in ("short", "long"):
        np.testing.assert_allclose(tensors[f"rope_factors_{name}.weight"], LONG[f"{name}_factor"], rtol=1e-6)
    keys = {name: field.contents() for name, field in reader.fields.items()}
    assert keys["phi3.rope.scaling.original_context_length"] == 16
    assert keys["phi3.rope.scaling.attn_factor"] == pytest.approx((1 + np.log(32) / np.log(16)) ** 0.5)
    model = loaded(tmp_path / "a.gguf", device)
    model.save_gguf(tmp_path / "b.gguf")
    for again in (model, loaded(tmp_path / "b.gguf", device)):
        for length in (9, 30):
            ids = some_ids(1, length)
            with torch.no_grad():
                close(again(ours(ids, device)).logits, theirs(torch.tensor(ids)).logits)


def test_only_phi_3_has_such_factors_in_a_gguf(tmp_path):
    model = loaded(saved(made("llama", rope_scaling=dict(LONG)), tmp_path / "folder"), "cpu")
    with pytest.raises(ArgumentError, match=r"cannot say what .*rope_scaling"):
        model.save_gguf(tmp_path / "a.gguf")


def test_deepseek_scales_its_scores(tmp_path, device):
    scaling = {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707, "beta_fast": 32, "beta_slow": 1}
    theirs = made("deepseek_v2", rope_scaling=scaling)
    model, ids = loaded(saved(theirs, tmp_path), device), some_ids(1, 9)
    assert model.config.scale > 12**-0.5
    with torch.no_grad():
        close(model(ours(ids, device)).logits, theirs(torch.tensor(ids)).logits)


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ({**LONG, "long_factor": [1.0]}, r"long_factor of rope_scaling is \[1.0\]; it must be a list of 4"),
        ({**LONG, "short_factor": [1.0, 0.0, 1.0, 1.0]}, r"short_factor\[1\] is 0.0; it must be a number"),
        ({**YARN, "mscale_all_dim": "1"}, "mscale_all_dim is '1'; it must be a number"),
    ],
)
def test_scalings_that_are_damaged(scaling, message, tmp_path):
    folder = saved(made("phi3"), tmp_path)
    keys = json.loads((folder / "config.json").read_text())
    del keys["rope_parameters"]
    (folder / "config.json").write_text(json.dumps({**keys, "rope_scaling": scaling}))
    with pytest.raises(FormatError, match=message):
        AutoConfig.from_pretrained(str(folder)).rotary("rotary_emb")
