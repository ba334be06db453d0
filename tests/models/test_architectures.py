"""Every architecture beside transformers' with the same checkpoint: hidden states, loss, cache, masks."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers

import pellucid
from models.tiny import MODELS, close, loaded, made, ours, saved, some_ids

# Rows that run everything on both devices; others run what a device has of its own.
CORE = ("llama", "llama_biased", "qwen3", "mistral_window", "gemma2")


def rows(device: str):
    """Parameters: all rows on this device, those of the core on the other one, too."""
    other = {"cpu": "webgpu", "webgpu": "cpu"}[device]
    pairs = [(name, device) for name in MODELS] + [(name, other) for name in CORE]
    return pytest.mark.parametrize(("name", "device"), pairs)


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_agrees(name, twin, device):
    """P-089, P-091: windows, grouped heads, experts, Mamba, beside transformers."""
    theirs, folder = twin(name)
    model = loaded(folder, device)
    ids = some_ids(2, 13)
    labels = ids.copy()
    labels[0, :4] = -100
    with torch.no_grad():
        expected = theirs(torch.tensor(ids), labels=torch.tensor(labels), output_hidden_states=True)
    with pellucid.no_grad():
        out = model(ours(ids, device), labels=ours(labels, device), output_hidden_states=True)
    assert len(out.hidden_states) == len(expected.hidden_states)
    for mine, other in zip(out.hidden_states, expected.hidden_states, strict=True):
        close(mine, other)
    close(out.logits, expected.logits)
    close(out.loss, expected.loss)


@rows("cpu")
def test_a_cache_changes_nothing(name, twin, device):
    """P-020, P-053: decoding with a cache gives what the whole text gives."""
    model = loaded(twin(name)[1], device)
    ids = ours(some_ids(2, 11), device)
    with pellucid.no_grad():
        whole = model(ids).logits.numpy()
        cache = model.new_cache(2, 32)
        for unfilled in (*cache.keys, *cache.values):
            unfilled.fill_(np.nan)
        parts = [
            model(ids[:, a:b], past_key_values=cache).logits.numpy()
            for a, b in [(0, 5), (5, 6), (6, 7), (7, 11)]
        ]
    assert cache.get_seq_length() == 11
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, atol=2e-5)


def test_use_cache_makes_one_and_crop_goes_back(twin, device):
    model = loaded(twin("llama")[1], device)
    ids = ours(some_ids(1, 6), device)
    with pellucid.no_grad():
        out = model(ids, use_cache=True)
        cache = out.past_key_values
        first = model(ids[:, :2], past_key_values=cache).logits.numpy()
        cache.crop(6)
        again = model(ids[:, :2], past_key_values=cache).logits.numpy()
    np.testing.assert_array_equal(first, again)
    with pytest.raises(pellucid.errors.DimensionError, match="cannot crop to 9"):
        cache.crop(9)


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_left_padding_is_not_seen(name, twin, device):
    theirs, folder = twin(name)
    model = loaded(folder, device)
    ids = some_ids(2, 9)
    mask = np.ones_like(ids)
    mask[0, :4] = 0
    with torch.no_grad():
        expected = theirs(torch.tensor(ids), attention_mask=torch.tensor(mask)).logits
    with pellucid.no_grad():
        logits = model(ours(ids, device), attention_mask=ours(mask, device)).logits
    close(logits[0, 4:], expected[0, 4:])
    close(logits[1], expected[1])


@pytest.mark.turns(3)
@rows("webgpu")
def test_greedy_text_is_that_of_transformers(name, twin, device):
    theirs, folder = twin(name)
    ids = some_ids(2, 7)
    settings = {"max_new_tokens": 12, "do_sample": False}
    wanted = theirs.generate(
        torch.tensor(ids), attention_mask=torch.ones(ids.shape, dtype=torch.long), **settings
    )
    got = loaded(folder, device).generate(ours(ids, device), **settings)
    padded = np.full(got.shape, theirs.config.eos_token_id)
    padded[:, : wanted.shape[1]] = wanted.numpy()
    np.testing.assert_array_equal(got.numpy(), padded)


# What transformers calls modules whose checkpoints have other names.
MIXTRAL = {"block_sparse_moe": "mlp", ".w1.": ".gate_proj.", ".w2.": ".down_proj.", ".w3.": ".up_proj."}


def gradients(model):
    """Names and gradients of a model of transformers; those of experts as they lie in checkpoints."""
    for path, p in model.named_parameters():
        if path.endswith(("experts.gate_up_proj", "experts.down_proj")):
            if hasattr(model.config, "swiglu_limit"):
                yield f"{path}.weight", p.grad.flatten(0, 1)
                continue
            parts = p.grad.chunk(2, 1) if path.endswith("gate_up_proj") else [p.grad]
            names = ("gate_proj", "up_proj") if len(parts) == 2 else ("down_proj",)
            for name, part in zip(names, parts, strict=True):
                yield f"{path.rpartition('.')[0]}.{name}.weight", part.flatten(0, 1)
        else:
            yield path.replace("_proj_bias", "_proj.bias"), p.grad


@rows("cpu")
def test_gradients_reach_every_parameter(name, twin, device):
    theirs, folder = made(name), twin(name)[1]
    model = loaded(folder, device)
    ids = some_ids(2, 9)
    theirs(torch.tensor(ids), labels=torch.tensor(ids)).loss.backward()
    model(ours(ids, device), labels=ours(ids, device)).loss.backward()
    head = model.config.names.head
    expected = {p.replace("lm_head", head): value for p, value in gradients(theirs)}
    found = {}
    for path, p in model.named_parameters():
        for old, new in MIXTRAL.items() if "block_sparse_moe" in path else ():
            path = path.replace(old, new)
        found[path] = p
    assert set(found) == set(expected)
    for path, p in found.items():
        wanted = expected[path]
        assert p.grad is not None, path
        # That of a key's bias is zero where nothing turns keys, but for rounding.
        scale = max(float(wanted.abs().max()), 1e-4)
        np.testing.assert_allclose(p.grad.numpy() / scale, wanted.numpy() / scale, atol=1e-3, err_msg=path)


def test_layers_attend_at_an_interval():
    keys = {"full_attention_interval": 3, "num_hidden_layers": 7}
    expected = transformers.Qwen3NextConfig(**keys).layer_types
    assert pellucid.models.Qwen3NextConfig.from_dict(keys).layer_types == expected


def test_local_adaptation_of_mamba_changes_b_and_c_alone(twin):
    model = loaded(twin("mamba")[1], "webgpu").train()
    ids, before = ours(some_ids(2, 12), "webgpu"), {n: p.numpy() for n, p in model.state_dict().items()}
    optimizer = pellucid.optim.AdamW(model.select_local(), lr=1e-3, weight_decay=0.0)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    for name, p in model.state_dict().items():
        same, rank = p.numpy() == before[name], model.config.rank
        assert same.all() != name.endswith("x_proj.weight")
        if name.endswith("x_proj.weight"):
            assert same[:rank].all()
            assert not same[rank:].any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("shards", [None, "20KB"])
def test_every_type_of_file_loads(dtype, shards, tmp_path, device):
    saved(
        made("llama_biased", getattr(torch, dtype)),
        tmp_path,
        **({"max_shard_size": shards} if shards else {}),
    )
    assert (tmp_path / "model.safetensors.index.json").exists() == (shards is not None)
    ids = some_ids(1, 10)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    with torch.no_grad():
        expected = theirs(torch.tensor(ids)).logits
    packed = {"float32": "float32", "bfloat16": "bf16", "float16": "f16"}[dtype]
    for wanted, settings in [(packed, {}), ("float32", {"dtype": pellucid.float32})]:
        model = loaded(tmp_path, device, **settings)
        assert model.model.layers[0].mlp.up_proj.weight.dtype.name == wanted
        assert model.model.norm.weight.dtype is pellucid.float32
        assert not model.training
        with pellucid.no_grad():
            close(model(ours(ids, device)).logits, expected)


def test_halves_of_transposed_matrices_and_names_without_the_first(tmp_path, device):
    """Old files of GPT-2 name the layers without the model; halves of its matrices lie as (in, out)."""
    model = made("gpt2", torch.float16)
    model.transformer.save_pretrained(tmp_path)
    ids = some_ids(2, 9)
    mine = loaded(tmp_path, device)
    assert mine.transformer.h[0].mlp.c_fc.weight.dtype.name == "f16"
    with torch.no_grad(), pellucid.no_grad():
        expected = model.float()(torch.tensor(ids)).logits
        close(mine(ours(ids, device)).logits, expected)
        close(mine(ours(ids[:1, :1], device)).logits, expected[:1, :1])


def test_a_window_forgets_and_says_so(twin):
    """P-089, P-094: sliding windows, and keys and values in a ring."""
    model = loaded(twin("mistral_window")[1], "cpu")  # a window of 6
    ids = ours(some_ids(1, 20), "cpu")
    with pellucid.no_grad():
        whole = model(ids).logits.numpy()
        cache = model.new_cache(1, 32)
        assert [k.shape[2] for k in cache.keys] == [6, 6, 6]
        parts, at = [], 0
        for time in (4, 5, 1, 1, 8, 1):
            parts.append(model(ids[:, at : at + time], past_key_values=cache).logits.numpy())
            at += time
        np.testing.assert_allclose(np.concatenate(parts, 1), whole, atol=2e-5)
        # One position may be taken back: what it overwrote, the next one does not see.
        cache.crop(19)
        again = model(ids[:, 19:20], past_key_values=cache).logits.numpy()
        np.testing.assert_allclose(again, whole[:, 19:], atol=2e-5)
    with pytest.raises(pellucid.errors.DimensionError, match="have forgotten"):
        cache.crop(17)


def test_a_state_goes_back_by_one_position(twin, device):
    model = loaded(twin("lfm2")[1], device)
    ids = some_ids(1, 7)
    settings = {"max_new_tokens": 6, "eos_token_id": ()}
    whole = model.generate(ours(ids, device), **{**settings, "max_new_tokens": 12}).tolist()[0]
    cache = model.new_cache(1, 64)
    # The step that ran ahead of the last id is taken back.
    first = model.generate(ours(ids, device), past_key_values=cache, **settings).tolist()[0]
    rest = model.generate(ours(np.array([first[-1:]]), device), past_key_values=cache, **settings)
    assert first + rest.tolist()[0][1:] == whole
    stopped = model.new_cache(1, 64)
    end = whole[9]
    text = model.generate(ours(ids, device), past_key_values=stopped, max_new_tokens=9, eos_token_id=(end,))
    rest = model.generate(text[:, -1:], past_key_values=stopped, max_new_tokens=2, eos_token_id=())
    count = text.shape[1]
    assert text.tolist()[0] + rest.tolist()[0][1:] == whole[: count + 2]
    with pytest.raises(pellucid.errors.DimensionError, match="states keep that of one position earlier"):
        cache.crop(4)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("falcon", {"alibi": True}, "does not know {'alibi': True}"),
        ("phi", {"qk_layernorm": True}, "does not know {'qk_layernorm': True}"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is set"),
        ("gemma2", {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 3 layers"),
        ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers has 1 entries"),
        ("mixtral", {"num_experts_per_tok": 9}, "a token takes 9 experts of 5"),
        ("deepseek_v2", {"num_key_value_heads": 2}, "every head has keys of its own"),
        ("deepseek_v2_groups", {"topk_group": 5}, "experts in 3 groups, of which 5"),
        ("gpt_neox", {"rope_parameters": {"rope_type": "ntk", "factor": 2.0}}, "'ntk' is not known"),
        ("opt", {"activation_function": "mish"}, "hidden_act 'mish' is not known"),
    ],
)
def test_settings_that_compute_something_else_are_refused(name, changes, message, twin, tmp_path):
    folder = shutil.copytree(twin(name)[1], tmp_path / "changed")
    keys = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(keys | changes))
    with pytest.raises(pellucid.errors.FormatError, match=message):
        loaded(folder, "cpu")


def test_weights_that_are_tied_share_memory(twin, device):
    model = loaded(twin("qwen3")[1], device)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert "lm_head.weight" not in dict(model.named_parameters())


def test_positions_past_the_model_are_refused(twin, device):
    model = loaded(twin("llama")[1], device)
    with pytest.raises(pellucid.errors.DimensionError, match="the model has 512 positions"):
        model(ours(some_ids(1, 513), device))
    learned = loaded(twin("gpt2")[1], device)
    with pytest.raises(pellucid.errors.DimensionError, match="the model has 512 positions"):
        learned(ours(some_ids(1, 513), device))


def test_wrong_calls_say_what_to_do(twin, device):
    model = loaded(twin("llama")[1], device)
    ids = ours(some_ids(1, 4), device)
    with pytest.raises(pellucid.errors.ShapeError, match=r"ids.unsqueeze\(0\)"):
        model(ids[0])
    with pytest.raises(pellucid.errors.ShapeError, match="shape of the ids"):
        model(ids, attention_mask=pellucid.ones(1, 3, device=device))
    with pytest.raises(pellucid.errors.ShapeError, match="cannot be used together with a cache"):
        model(ids, attention_mask=pellucid.ones(1, 4, device=device), use_cache=True)
    with pytest.raises(pellucid.errors.DimensionError, match="do not fit into 3"):
        model(ids, past_key_values=model.new_cache(1, 3))
