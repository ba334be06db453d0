"""Encoders beside the package gguf, and checkpoints that are quantized and loaded again."""

import asyncio

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import pellucid
from models.gguf_files import written
from models.tiny import loaded, made, ours, saved, some_ids
from pellucid import weights
from pellucid.errors import ArgumentError, DTypeError, ShapeError
from pellucid.quant import ENCODERS, encode_blocks
from pellucid.quant.quality import quality

# The largest relative error of normal numbers, root of mean square, that a format is allowed.
ERRORS = {
    "q2_k": 0.3,
    "q3_k": 0.16,
    "q4_k": 0.076,
    "q5_k": 0.039,
    "q6_k": 0.02,
    "iq4_nl": 0.083,
    "f16": 0.001,
}
WIDE = {
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 1,
    "vocab_size": 128,
    "head_dim": 64,
}


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders(name):
    x = np.random.default_rng(0).standard_normal((9, 512)).astype(np.float32)
    x[1], x[2, :300] = 0, 0
    blocks = encode_blocks(x, name)
    kind = gguf.GGMLQuantizationType[name.upper()]
    values = gguf.quants.dequantize(blocks, kind)
    assert not values[1].any()
    if name in ERRORS:
        assert np.sqrt(np.square(values - x).mean()) < ERRORS[name]
    else:
        assert np.array_equal(blocks, gguf.quants.quantize(x, kind).view(np.uint8))


def test_what_has_no_blocks_is_refused():
    with pytest.raises(DTypeError, match="not encoded to 'iq1_s'"):
        encode_blocks(np.ones((1, 256), np.float32), "iq1_s")
    with pytest.raises(ShapeError, match="no matrix"):
        encode_blocks(np.ones(32, np.float32), "q4_0")
    with pytest.raises(ShapeError, match="whole blocks"):
        encode_blocks(np.ones((1, 33), np.float32), "q4_0")
    for bad in (np.nan, np.inf, 1e6):
        with pytest.raises(ArgumentError, match="not finite or beyond"):
            encode_blocks(np.full((1, 32), bad, np.float32), "q4_0")


def of_file(values, name):
    blocks = encode_blocks(values, name)
    return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[name.upper()])


@pytest.mark.parametrize("kind", ["gguf", "folder"])
def test_a_quantized_model_has_the_values_of_its_blocks(kind, tmp_path, device):
    model = made("llama", **WIDE)
    formats = {"*embd*": "q8_0", "*embed*": "q8_0", "*output.weight": None, "lm_head*": None, "*": "q4_k"}
    if kind == "gguf":
        source, target = written(model, tmp_path / "a.gguf", "f32"), tmp_path / "b.gguf"
    else:
        source, target = saved(model, tmp_path / "a"), tmp_path / "b"
    encoded = weights.quantize(source, target, formats)
    mine = loaded(target, device)
    assert set(encoded.values()) == {"q8_0", "q4_k"}
    expected = dict(model.named_parameters())
    for path, p in mine.named_parameters():
        if p.dtype.name in encoded.values():
            wanted = of_file(expected[path].detach().numpy(), p.dtype.name)
            # A GGUF has the rows of queries and keys in another order.
            assert sorted(map(bytes, p.dequantize().numpy())) == sorted(map(bytes, wanted)), path
            with torch.no_grad():
                expected[path].copy_(torch.from_numpy(wanted))
    assert mine.model.layers[0].mlp.up_proj.weight.dtype.name == "q4_k"
    ids = some_ids(1, 5)
    if kind == "folder":
        with torch.no_grad(), pellucid.no_grad():
            theirs, got = model(torch.tensor(ids)).logits, mine(ours(ids, device)).logits
        np.testing.assert_allclose(got.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-3)
    else:
        theirs = gguf.GGUFReader(target)
        keys = {k for k in gguf.GGUFReader(source).fields if not k.startswith("GGUF.")} - {
            "general.file_type"
        }
        assert keys <= set(theirs.fields)
        assert {t.name: t.tensor_type.name.lower() for t in theirs.tensors if t.name in encoded} == encoded


def test_halves_and_what_does_not_fit_stay(tmp_path):
    path = tmp_path / "a.safetensors"
    torch.manual_seed(0)
    tensors = {
        "a.weight": torch.randn(3, 64).bfloat16(),
        "b.weight": torch.randn(3, 40),
        "b.bias": torch.randn(64).half(),
        "c.table": torch.randn(2, 32),
    }
    save_file(tensors, path, {"format": "pt"})
    assert weights.quantize(path, tmp_path / "b.safetensors", {"a*": "q8_0"}) == {"a.weight": "q8_0"}
    new = weights.open(tmp_path / "b.safetensors")
    assert {*new} == {"a.q8_0_quants", "a.q8_0_scales", "b.weight", "b.bias", "c.table"}
    raw = weights.read(new, [new["b.weight"], new["b.bias"], new["a.q8_0_scales"]])
    assert np.array_equal(raw[0].view(np.float32).reshape(3, 40), tensors["b.weight"].numpy())
    assert np.array_equal(raw[1].view(np.float16), tensors["b.bias"].numpy())
    blocks = encode_blocks(tensors["a.weight"].float().numpy(), "q8_0").reshape(-1, 34)
    assert np.array_equal(raw[2], blocks[:, :2].reshape(-1))
    assert weights.quantize(path, tmp_path / "c.safetensors", "bf16").keys() == {"a.weight", "b.weight"}
    for target, format, words in (
        ("d.gguf", "q8_0", "would be something else"),
        ("d.safetensors", {"z*": "q8_0"}, "no matrix of floats"),
    ):
        with pytest.raises(ArgumentError, match=words):
            weights.quantize(path, tmp_path / target, format)
    with pytest.raises(DTypeError, match="not encoded"):
        weights.quantize(path, tmp_path / "d.safetensors", "iq1_s")


def test_what_was_there_stays_until_all_is_written(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"a.weight": torch.ones(1, 32), "b.weight": torch.full((1, 32), float("nan"))}, path)
    before = path.read_bytes()
    with pytest.raises(ArgumentError, match="not finite"):
        weights.quantize(path, path, "q4_0")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]
    save_file({"a.weight": torch.ones(1, 32)}, path)
    weights.quantize(path, path, "q4_0")
    assert {*weights.open(path)} == {"a.q4_0_quants", "a.q4_0_scales"}
    with pytest.raises(ArgumentError, match="not empty"):
        weights.quantize(path, tmp_path, "q4_0")


def test_without_blocking(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"a.weight": torch.ones(1, 32)}, path)
    assert asyncio.run(weights.quantize_async(path, tmp_path / "b", "q4_0")) == {"a.weight": "q4_0"}
    assert (tmp_path / "b" / "model.safetensors").exists()


def test_the_table_of_quality(device, tmp_path):
    model = made("llama", **WIDE)
    mine = loaded(saved(model, tmp_path / "a"), device, dtype=pellucid.float32)
    before = dict(mine.named_parameters())
    ids = some_ids(2, 6)
    rows = quality(mine, ours(ids, device), ["q8_0", "q4_k", "q2_k"])
    assert [row.format for row in rows] == ["float32", "q8_0", "q4_k", "q2_k"]
    errors = [row.logit_error for row in rows]
    assert errors == sorted(errors)
    assert errors[1] < 0.05 < errors[3]
    assert [row.bits for row in rows] == [32, 8.5, 4.5, 2.625]
    with torch.no_grad():
        given = torch.tensor(ids)
        logits = model(given).logits[:, :-1].flatten(0, 1)
        expected = torch.nn.functional.cross_entropy(logits, given[:, 1:].flatten()).exp().item()
    assert rows[0].perplexity == pytest.approx(expected, rel=1e-4)
    assert all(p is before[name] for name, p in mine.named_parameters())
    with pytest.raises(DTypeError, match="not encoded"):
        quality(mine, ours(ids, device), ["iq1_s"])
