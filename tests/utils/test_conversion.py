"""`pellucid.convert` to GGUF files and others: as those of loaded models, a tensor in memory at a time."""

import tracemalloc

import gguf
import numpy as np
import pytest
import torch

import pellucid
from models.gguf_files import written
from models.test_gguf import FIXED
from models.test_gguf_saving import WIDE, contents, logits
from models.tiny import loaded, made, made_encoder, saved
from pellucid.errors import ArgumentError, FormatError
from pellucid.models import AutoModel
from pellucid.text import AutoTokenizer
from utils.test_command_line import run

LARGE = {**WIDE, "vocab_size": 32768, "num_hidden_layers": 2}  # two tables of 32 MiB


@pytest.mark.parametrize(
    "name", ["llama", "gpt2", "gpt_oss", "deepseek_v2", "mixtral", "qwen3_next", "qwen3"]
)
@pytest.mark.parametrize("format", [None, "f16"])
def test_a_folder_becomes_the_file_of_its_loaded_model(name, format, tmp_path):
    folder = saved(made(name, **FIXED.get(name, {})), tmp_path / "folder")
    formats = loaded(folder, "cpu").save_gguf(tmp_path / "a.gguf", format=format)
    assert pellucid.convert(folder, tmp_path / "b.gguf", format=format) == len(formats)
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()


def test_an_encoder_and_a_file_of_halves(tmp_path):
    folder = saved(made_encoder("bert", "Model"), tmp_path / "folder")
    AutoModel.from_pretrained(str(folder), device="cpu").save_gguf(tmp_path / "a.gguf")
    pellucid.convert(folder, tmp_path / "b.gguf")
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
    halves = saved(made("qwen3", torch.bfloat16, **WIDE), tmp_path / "halves")
    pellucid.convert(halves, tmp_path / "c.gguf")
    assert contents(tmp_path / "c.gguf")[1]["blk.0.ffn_up.weight"].tensor_type.name == "BF16"
    pellucid.convert(halves, tmp_path / "d.gguf", dtype="float32")
    assert contents(tmp_path / "d.gguf")[1]["blk.0.ffn_up.weight"].tensor_type.name == "F32"


@pytest.mark.parametrize("format", pellucid.quant.ENCODERS)
def test_every_block_format(format, tmp_path):
    folder = saved(made("llama", **WIDE), tmp_path / "folder")
    pellucid.convert(folder, tmp_path / "a.gguf", format=format)
    tensor = contents(tmp_path / "a.gguf")[1]["blk.0.ffn_up.weight"]
    model = loaded(tmp_path / "a.gguf", "cpu")
    mine = model.model.layers[0].mlp.up_proj.weight
    assert mine.dtype.name == format
    np.testing.assert_array_equal(
        gguf.quants.dequantize(tensor.data, tensor.tensor_type), mine.dequantize().numpy()
    )


def test_a_gguf_in_other_formats_keeps_its_keys(tmp_path):
    path = written(made("llama", **WIDE), tmp_path / "a.gguf", "q8_0", {"general.name": "tiny"})
    words = ["--format", "*embd*=q8_0", "--format", "q4_k"]
    assert run("convert", path, tmp_path / "b.gguf", *words).exit_code == 0
    keys, tensors = contents(tmp_path / "b.gguf")
    assert keys["general.name"] == "tiny"
    kinds = {name: t.tensor_type.name for name, t in tensors.items()}
    assert (kinds["token_embd.weight"], kinds["blk.0.attn_q.weight"]) == ("Q8_0", "Q4_K")
    before = contents(path)[1]["token_embd.weight"]
    np.testing.assert_array_equal(tensors["token_embd.weight"].data, before.data)
    up = contents(path)[1]["blk.0.ffn_up.weight"]
    blocks = pellucid.quant.encode_blocks(gguf.quants.dequantize(up.data, up.tensor_type), "q4_k")
    assert tensors["blk.0.ffn_up.weight"].data.tobytes() == blocks.tobytes()


def test_quantized_folders_and_tokenizers(tmp_path):
    folder = saved(made("llama", **WIDE), tmp_path / "folder")
    assert run("convert", folder, tmp_path / "small", "--format", "q4_k").exit_code == 0
    small = loaded(tmp_path / "small", "cpu")
    words = AutoTokenizer.from_pretrained({
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.tokens": [chr(k) for k in range(33, 127)] + ["ab"],
    })  # fmt: skip
    words.save_pretrained(tmp_path / "small")
    seen = []
    pellucid.convert(tmp_path / "small", tmp_path / "a.gguf", on_progress=seen.append)
    assert seen[-1].bytes_done == seen[-1].bytes_total > 0
    assert contents(tmp_path / "a.gguf")[1]["blk.0.attn_q.weight"].tensor_type.name == "Q4_K"
    np.testing.assert_allclose(logits(loaded(tmp_path / "a.gguf", "cpu")), logits(small), atol=1e-3)
    assert AutoTokenizer.from_pretrained(tmp_path / "a.gguf").encode("abba") == words.encode("abba")


def test_a_tensor_is_in_memory_at_a_time(tmp_path):
    folder = saved(made("llama", **LARGE), tmp_path / "folder")
    tracemalloc.start()
    try:
        for name in ("a.safetensors", "a.npz", "a.gguf"):
            tracemalloc.reset_peak()
            pellucid.convert(folder, tmp_path / name, dtype="float16")
            assert tracemalloc.get_traced_memory()[1] < 150 << 20, name
    finally:
        tracemalloc.stop()


def test_what_has_no_gguf_is_refused(tmp_path):
    folder = saved(made("opt"), tmp_path / "opt")
    with pytest.raises(ArgumentError, match="'opt' is no architecture with a GGUF here"):
        pellucid.convert(folder, tmp_path / "a.gguf")
    with pytest.raises(ArgumentError, match=r"there is no config\.json"):
        pellucid.convert(folder / "model.safetensors", tmp_path / "a.gguf")
    with pytest.raises(ArgumentError, match="dtype= or format=, not both"):
        pellucid.convert(folder, tmp_path / "a.gguf", dtype="float16", format="q8_0")
    with pytest.raises(ArgumentError, match="npz has no quantized weights"):
        pellucid.convert(folder, tmp_path / "a.npz", format="q8_0")
    assert run("convert", folder, tmp_path / "a.gguf").exit_code == 2
    broken = saved(made("llama"), tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{}")
    with pytest.raises(FormatError):
        pellucid.convert(broken, tmp_path / "a.gguf")
    assert not (tmp_path / "a.gguf").exists()
