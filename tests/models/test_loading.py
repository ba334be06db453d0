"""Files that do not fit, loads that are cancelled, limits of memory and of buffers: nothing stays behind."""

import asyncio
import dataclasses
import gc
import json
import shutil
import struct
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import pellucid
from fuzz.interrupts import Interrupt, places
from models.gguf_files import written
from models.tiny import close, loaded, made, ours, saved, some_ids
from pellucid.device.stream import stream
from pellucid.errors import (
    DeviceError,
    FormatError,
    LoadCancelled,
    OutOfMemoryError,
    SourceError,
    WeightError,
)
from pellucid.models import MODEL_TYPES, AutoModelForCausalLM, auto
from pellucid.quant.rows import row_chunks


@pytest.fixture
def copy(twin, tmp_path):
    """A folder of one's own to damage."""
    return shutil.copytree(twin("llama")[1], tmp_path / "model")


@pytest.fixture
def frees_everything():
    """Bytes and buffers in use are the same afterwards."""

    def used() -> tuple[int, int]:
        gc.collect()
        stats = pellucid.webgpu.memory_stats()
        return stats["allocated_bytes"], stats["live_buffers"]

    # The buffer that tells of mistakes gets its memory at its first use, and stays.
    pellucid.ones(2, device="webgpu")[pellucid.tensor([0], device="webgpu")].tolist()
    before = used()
    yield
    assert used() == before


def configure(folder, **keys) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def refuse(folder, device: str, error: type[Exception] | tuple, words: str | None, **settings) -> str:
    with pytest.raises(error, match=words) as info:
        loaded(folder, device, **settings)
    return str(info.value)


# Configurations


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"model_type": "clip"},
            f"model_type 'clip' is not known. There are {', '.join(sorted(MODEL_TYPES))}",
        ),
        ({"model_type": None}, "model_type None is not known"),
        ({"model_type": ["llama"]}, "is not known"),
        ({"num_experts": 8}, r"does not know \{'num_experts': 8\}"),
        ({"partial_rotary_factor": 0.5}, "does not know"),
        ({"hidden_act": "mish"}, "hidden_act 'mish' is not known"),
        ({"hidden_size": "32"}, "hidden_size is '32'; it must be a whole number from 1 to 1,048,576"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"num_hidden_layers": 4000}, "claims 4000 layers"),
        ({"rms_norm_eps": None, "rope_theta": "big"}, "rope_theta is 'big'; it must be a number"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings is 1; it must be a bool"),
        (
            {"rope_parameters": {"rope_type": "ntk", "factor": 2.0}},
            "rope_scaling of type 'ntk' is not known",
        ),
        ({"rope_scaling": {"type": "linear"}}, "factor of rope_scaling is None"),
        ({"rope_scaling": [1]}, r"rope_scaling is \[1\]; it must be an object"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_configurations_that_would_compute_something_else_are_refused(copy, frees_everything, keys, words):
    configure(copy, **keys)
    refuse(copy, "webgpu", FormatError, words)


@pytest.mark.parametrize("value", ["largest", 2**41, 10**400], ids=["largest", "above", "beyond float64"])
@pytest.mark.parametrize(
    ("key", "largest"),
    [("head_dim", 1 << 12), ("hidden_size", 1 << 20), ("vocab_size", 1 << 24), ("rms_norm_eps", 1)],
)
def test_a_number_that_claims_gigabytes_is_refused_before_any_table_is_made(copy, key, largest, value):
    configure(copy, **{key: largest if value == "largest" else value})
    tracemalloc.start()
    try:
        if key == "rms_norm_eps" and value == "largest":  # It claims no memory: the model loads.
            loaded(copy, "webgpu")
        else:
            refuse(copy, "webgpu", (FormatError, WeightError), None if value == "largest" else key)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_neutral_keys_change_nothing(copy):
    configure(copy, partial_rotary_factor=1.0, use_sliding_window=False, num_experts=0, torch_dtype="float16")
    assert loaded(copy, "cpu").config.hidden_size == 32


def test_a_folder_without_configuration_or_weights_is_refused(copy, frees_everything):
    (copy / "config.json").unlink()
    refuse(copy, "webgpu", FormatError, "there is no config.json beside the weights")
    refuse(copy / "model.safetensors", "webgpu", FormatError, "there is no config.json")
    (copy / "model.safetensors").unlink()
    refuse(copy, "webgpu", SourceError, "has neither")
    refuse(copy / "nowhere", "webgpu", SourceError, "nowhere")


def test_malformed_json_is_a_format_error(copy, frees_everything):
    (copy / "config.json").write_text("{")
    refuse(copy, "webgpu", FormatError, r"config\.json")
    (copy / "config.json").write_text("[1]")
    refuse(copy, "webgpu", FormatError, r"config\.json")


def test_other_dtypes_are_refused(copy, frees_everything):
    refuse(copy, "webgpu", FormatError, "dtype pellucid.float16 is not taken", dtype=pellucid.float16)


# Tensors


def test_all_mismatches_are_told_at_once(copy, device, frees_everything):
    tensors = load_file(copy / "model.safetensors")
    del tensors["model.norm.weight"], tensors["model.layers.1.mlp.up_proj.weight"]
    tensors["model.layers.7.mlp.up_proj.weight"] = torch.zeros(2, 2)
    tensors["lm_head.weight"] = torch.zeros(95, 32)
    save_file(tensors, copy / "model.safetensors")
    text = refuse(copy, device, WeightError, "3 mismatches")
    assert "missing in the file: model.layers.1.mlp.up_proj.weight, model.norm.weight" in text
    assert "not in the model: model.layers.7.mlp.up_proj.weight" in text
    assert "lm_head.weight has shape (95, 32) in the file and (96, 32) in the model" in text


def test_tables_that_can_be_computed_are_passed_over(copy):
    tensors = load_file(copy / "model.safetensors")
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(4)
    save_file(tensors, copy / "model.safetensors")
    assert loaded(copy, "cpu").config.num_hidden_layers == 3


# Ends that come early


def test_a_gguf_that_is_cut_short_is_a_format_error(tmp_path, device, frees_everything):
    path = written(made("llama"), tmp_path / "tiny.gguf", "f16")
    data = path.read_bytes()
    for size in (len(data) - 1000, len(data) // 2, 700, 20, 3):
        path.write_bytes(data[:size])
        refuse(path, device, FormatError, r"tiny\.gguf")


def test_safetensors_that_are_cut_short_are_a_format_error(copy, device, frees_everything):
    path = copy / "model.safetensors"
    data = path.read_bytes()
    for size in (len(data) - 4, len(data) // 2, 100, 5):
        path.write_bytes(data[:size])
        refuse(copy, device, FormatError, "safetensors")


def test_a_shard_that_is_missing_is_said(tmp_path, device, frees_everything):
    saved(made("llama"), tmp_path, max_shard_size="20KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    shards[1].unlink()
    refuse(tmp_path, device, FormatError, f"names a shard that is not beside it.*{shards[1].name}")


def test_a_cancelled_load_leaves_nothing(copy, device, frees_everything):
    cancel = pellucid.weights.Cancel()
    cancel.cancel()
    refuse(copy, device, LoadCancelled, None, cancel=cancel)
    later = pellucid.weights.Cancel()

    def at_once(progress):
        later.cancel()

    refuse(copy, device, LoadCancelled, None, cancel=later, on_progress=at_once)
    assert loaded(copy, device).config.hidden_size == 32


def test_a_report_that_fails_leaves_nothing(copy, device, frees_everything):
    refuse(copy, device, ZeroDivisionError, None, on_progress=lambda progress: 1 / 0)


def test_progress_rises_to_the_whole(tmp_path, device):
    saved(made("llama"), tmp_path, max_shard_size="20KB")
    told = []
    loaded(tmp_path, device, on_progress=told.append)
    assert [p.bytes_done for p in told] == sorted(p.bytes_done for p in told)
    assert told[0].bytes_done == 0
    assert told[-1].bytes_done == told[-1].bytes_total == pellucid.weights.open(str(tmp_path)).nbytes


def test_the_awaitable_twin_loads_the_same(copy, device):
    model = asyncio.run(AutoModelForCausalLM.from_pretrained_async(str(copy), device=device))
    ids = ours(some_ids(1, 5), device)
    with pellucid.no_grad():
        np.testing.assert_array_equal(model(ids).logits.numpy(), loaded(copy, device)(ids).logits.numpy())


def test_a_load_gives_the_memory_of_the_raw_bytes_back(copy):
    model = loaded(copy, "webgpu")
    stats = pellucid.webgpu.memory_stats()
    assert stats["weight_bytes"] > 0
    assert stats["pooled_bytes"] == 0
    del model


def test_a_model_that_is_dropped_frees_its_memory(copy, frees_everything):
    model = loaded(copy, "webgpu")
    model.generate([[3, 4, 5]], max_new_tokens=3)
    with pellucid.lens.capture(model, "**"):
        model(pellucid.tensor([[3, 4]]), labels=pellucid.tensor([[3, 4]])).loss.backward()
    assert pellucid.webgpu.memory_stats()["weight_bytes"] > 0
    del model


# Limits


def test_the_memory_limit_is_seen_before_anything_is_read(copy, frees_everything):
    pellucid.webgpu.set_memory_limit(pellucid.webgpu.memory_allocated() + 50_000)
    try:
        told = []
        refuse(copy, "webgpu", OutOfMemoryError, "do not fit beside", on_progress=told.append)
        assert not told
    finally:
        pellucid.webgpu.set_memory_limit(None)
    loaded(copy, "webgpu")


@pytest.fixture
def small_buffers(monkeypatch):
    """A device whose buffers hold a megabyte."""
    host = stream().open()
    limits = {**host.info.limits, "maxStorageBufferBindingSize": 1 << 20, "maxBufferSize": 1 << 20}
    monkeypatch.setattr(host, "info", dataclasses.replace(host.info, limits=limits))
    return 1 << 20


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["qwen3", "qwen3_untied"])
def test_an_embedding_above_the_binding_limit_lies_in_several_buffers(tmp_path, small_buffers, dtype, name):
    theirs = made(name, getattr(torch, dtype), vocab_size=20000)
    saved(theirs, tmp_path)
    theirs = type(theirs).from_pretrained(tmp_path, dtype=torch.float32)
    model = loaded(tmp_path, "webgpu")
    chunks = row_chunks(model.model.embed_tokens.weight)
    assert len(chunks) >= 2
    assert sum(c.shape[0] for c in chunks) == 20000
    assert all(c._storage.nbytes <= small_buffers for c in chunks)
    ids = np.concatenate([[[0, 19999, 16383, 16384, 16385]], some_ids(1, 6)], 1)
    with torch.no_grad(), pellucid.no_grad():
        expected = theirs(torch.tensor(ids), output_hidden_states=True)
        out = model(pellucid.tensor(ids), output_hidden_states=True)
        for got, wanted in zip(out.hidden_states, expected.hidden_states, strict=True):
            close(got, wanted)
        close(out.logits, expected.logits)
        close(model(pellucid.tensor(ids[:, :1])).logits, expected.logits[:, :1])
    text = model.generate(pellucid.tensor(ids), max_new_tokens=6, eos_token_id=())
    wanted = theirs.generate(
        torch.tensor(ids), attention_mask=torch.ones(ids.shape), max_new_tokens=6, do_sample=False,
        eos_token_id=None,
    )  # fmt: skip
    assert text.tolist() == wanted.tolist()


@pytest.mark.parametrize("format", ["q8_0", "q4_k", "q6_k"])
def test_a_quantized_matrix_above_the_limit_lies_in_several_buffers(tmp_path, small_buffers, format):
    path = written(
        made("llama", hidden_size=256, vocab_size=8000, num_hidden_layers=1, intermediate_size=256),
        tmp_path / "tiny.gguf",
        format,
    )
    ids = some_ids(1, 7)
    model = loaded(path, "webgpu")
    assert len(row_chunks(model.lm_head.weight)) >= 2
    with pellucid.no_grad():
        got = model(pellucid.tensor(ids)).logits
        wanted = loaded(path, "cpu")(ours(ids, "cpu")).logits
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), atol=2e-3)


def test_a_float32_matrix_above_the_limit_is_refused_with_a_way_out(
    tmp_path, small_buffers, frees_everything
):
    saved(made("qwen3", vocab_size=20000), tmp_path)
    told = []
    text = refuse(tmp_path, "webgpu", DeviceError, "2560000 bytes in float32", on_progress=told.append)
    assert "model.embed_tokens.weight of shape (20000, 32)" in text
    assert "half precision or a quantized one" in text
    assert not told
    assert loaded(tmp_path, "cpu").config.vocab_size == 20000
    saved(made("qwen3", torch.bfloat16, vocab_size=20000), tmp_path)
    refuse(tmp_path, "webgpu", DeviceError, "in float32", dtype=pellucid.float32)


def test_a_header_that_lies_is_a_format_error(copy, device, frees_everything):
    path = copy / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(struct.pack("<Q", 1 << 60) + data[8:])
    refuse(copy, device, FormatError, "safetensors")


def test_an_interrupt_while_a_model_is_built_leaves_the_default_device():
    folder, config = SimpleNamespace(checkpoint={"weight": None}), SimpleNamespace(num_hidden_layers=1)
    before, files = pellucid.get_default_device(), ("models/auto.py", "device/__init__.py")

    def architecture(config):
        made = pellucid.nn.Linear(2, 1)
        made.fit = lambda checkpoint: None
        return made

    def program():
        auto._build(architecture, config, folder)

    everywhere = places(program, files)
    assert len(everywhere) > 4
    for at in everywhere:
        interrupt = Interrupt(at, files)
        interrupt.run(program)
        assert pellucid.get_default_device() is before, interrupt.where
