"""`pellucid.match` of files of every kind, the causes that it names, and recordings of PyTorch."""

import json
import warnings

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import pellucid
from models.gguf_files import written
from models.graph.programs import exported
from models.graph.programs import saved as saved_program
from models.tiny import made, saved, some_ids
from pellucid.errors import ArgumentError, FormatError
from pellucid.lens.pairs import pair
from pellucid.utils.command_line import main

IDS = some_ids(1, 9)


@pytest.fixture(scope="module")
def llama():
    model = made("llama", intermediate_size=64, num_hidden_layers=2)
    model.config.use_cache = False
    return model


@pytest.fixture(scope="module")
def files(llama, tmp_path_factory):
    """One model in every kind of file, and its inputs."""
    place = tmp_path_factory.mktemp("match")
    ids = torch.tensor(IDS)
    found = {
        "folder": saved(llama, place / "folder"),
        "gguf": written(llama, place / "model.gguf", "f32"),
        "q8_0": written(llama, place / "small.gguf", "q8_0"),
        "pt2": saved_program(exported(llama, (), {"input_ids": ids}), place / "model.pt2"),
        "npz": place / "recorded.npz",
        "safetensors": place / "recorded.safetensors",
        "inputs": place / "inputs.npz",
    }
    for kind in ("npz", "safetensors"):
        pellucid.record(llama, {"input_ids": IDS}, found[kind])
    np.savez(found["inputs"], input_ids=IDS)
    return {kind: str(path) for kind, path in found.items()}


@pytest.mark.parametrize("other", ["gguf", "pt2", "npz", "safetensors"])
def test_files_of_one_model_match(files, other):
    result = pellucid.match(files["folder"], files[other], files["inputs"], tolerance=1e-4, device="cpu")
    assert result, str(result)
    paths = {row.path for row in result.rows}
    for wanted in ("model.layers.1.self_attn.q_proj", "model.layers.1.mlp.down_proj", "model.layers.1"):
        assert wanted in paths
    assert {row.by for row in result.rows} <= {"name", "value", "shape"}
    assert result.names == (files["folder"], files[other])
    # Rows of queries and keys in a GGUF lie otherwise, and nothing follows from it.
    inner = {row.path for row in result.rows if row.is_inner}
    assert ("model.layers.0.self_attn.q_proj" in inner) is (other == "gguf")


def test_a_quantized_file_is_found_out(files, device):
    result = pellucid.match(files["q8_0"], files["folder"], files["inputs"], tolerance=1e-4, device=device)
    assert result.first.path == "model.embed_tokens"
    assert "quantization: weight is q8_0 and float32" in result.first.cause
    recorded = pellucid.match(files["q8_0"], files["safetensors"], tolerance=1e-4, device=device)
    assert "quantization: the weight is q8_0" in recorded.first.cause


@pytest.fixture(params=["cpu", "webgpu"])
def device(request):
    return request.param


class Block(nn.Module):
    """What models are made of, with the settings that people get wrong."""

    def __init__(self, approximate="none", epsilon=1e-5, act=None):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.act = nn.Linear(8, 32), act or nn.GELU(approximate)
        self.down, self.norm = nn.Linear(32, 8), nn.LayerNorm(8, epsilon)
        self.norm.bias.data.normal_()

    def forward(self, x):
        return self.norm(self.down(self.act(self.up(x))))


class Turned(Block):
    def forward(self, x):
        return super().forward(x).to(torch.bfloat16).float()


X = np.random.default_rng(0).standard_normal((1, 6, 8)).astype("float32")


@pytest.mark.parametrize(
    ("other", "path", "cause"),
    [
        (Block("tanh"), "act", "activation: gelu, recorded gelu(approximate='tanh')"),
        (Block(act=nn.SiLU()), "act", "activation: gelu, recorded silu"),
        (Block(epsilon=1e-2), "norm", "epsilon: every position is off by a factor of its own"),
        (Turned(), "output:0", "dtype: the recorded values are bfloat16"),
    ],
)
def test_causes_are_named(other, path, cause):
    model = pellucid.from_torch(Block().eval(), (torch.tensor(X),), device="cpu")
    result = pellucid.match(model, other, {"x": X}, tolerance=1e-6 if path == "norm" else 1e-5)
    assert result.first.path == path
    assert cause in result.first.cause


def test_what_happens_between_modules_is_seen_in_what_they_are_given():
    class Free(Block):
        def forward(self, x):
            return self.norm(self.down(nn.functional.gelu(self.up(x), approximate="tanh")))

    model = pellucid.from_torch(Block().eval(), (torch.tensor(X),), device="cpu")
    result = pellucid.match(model, pellucid.record(Free(), {"x": X}), tolerance=1e-5)
    assert result.first.path == "down:input"
    assert "recorded gelu(approximate='tanh')" in result.first.cause


def test_nodes_of_onnx_stand_for_modules(tmp_path):
    model = nn.Sequential(Block(), nn.Sequential(Block("tanh"), nn.Linear(8, 2))).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (torch.tensor(X),), tmp_path / "a.onnx", dynamo=False, opset_version=18)
    program = saved_program(exported(model, (torch.tensor(X),)), tmp_path / "a.pt2")
    result = pellucid.match(program, tmp_path / "a.onnx", X, tolerance=1e-5, device="cpu")
    assert result
    pairs = {row.path: (row.other, row.by) for row in result.rows}
    assert pairs["1.0.act"] == ("1/1.0/act", "name")
    assert {"0.up", "0.norm", "0", "1.0", "1.1", "1"} <= pairs.keys()
    with torch.no_grad():
        model[1][0].down.bias[0] += 1
    first = pellucid.match(tmp_path / "a.onnx", model, X, device="cpu").first
    assert (first.other, "a bias" in first.cause) == ("1.0.down", True)


def test_layouts_and_weights_are_told_apart():
    images = np.random.default_rng(1).standard_normal((1, 3, 4, 5))
    result = pellucid.match({"conv": images}, {"conv": images.transpose(0, 2, 3, 1)})
    assert "layout: the same values with axes in the order (0, 2, 3, 1) (channels last)" in result.first.cause
    with torch.no_grad():
        (other := Block()).up.weight[0] += 0.5
    given = (torch.tensor(X),)
    models = [pellucid.from_torch(m.eval(), given, device="cpu") for m in (Block(), other)]
    result = pellucid.match(*models, {"x": X})
    assert result.first.path == "up"
    assert "weights: weight is float32 and float32, " in result.first.cause


def test_points_without_common_names_are_aligned():
    rng = np.random.default_rng(0)
    values = [rng.standard_normal((2, 3)) for _ in range(5)]
    a = dict(zip("abcde", values))
    b = {"p": values[0], "q": values[1] + 1, "r": values[2], "s": values[4]}
    assert [(x, y, by) for x, y, by in pair(a, b, 1e-6)] == [
        ("a", "p", "value"), ("b", "q", "shape"), ("c", "r", "value"), ("e", "s", "value"),
    ]  # fmt: skip


def test_a_recording_has_inputs_and_outputs(tmp_path):
    found = pellucid.record(Block(), {"x": X}, tmp_path / "a.npz", pattern=lambda path: path != "norm")
    assert list(found) == ["call:x", "up:input", "up", "act:input", "act", "down:input", "down", "output:0"]

    class Random(nn.Linear):
        def forward(self, x):
            return super().forward(x) + torch.rand(())

    with pytest.raises(ArgumentError, match="output:0 differs between two runs"):
        pellucid.record(Random(8, 8), {"x": X})
    with pytest.raises(ArgumentError, match=r"must end in \.npz or \.safetensors"):
        pellucid.record(Block(), {"x": X}, tmp_path / "a.txt")
    with pytest.raises(ArgumentError, match=r"must be a torch\.nn\.Module"):
        pellucid.record(3, {"x": X})
    (tmp_path / "bad.npz").write_bytes(b"PK no")
    with pytest.raises(FormatError, match=r"bad\.npz: .* cut short"):
        pellucid.match(tmp_path / "bad.npz", {"up": X})


@pytest.mark.asyncio
async def test_there_is_an_awaitable_twin(files):
    assert await pellucid.match_async(files["gguf"], files["npz"], device="cpu", tolerance=1e-4)


def test_the_command_compares_and_records(files, tmp_path):
    def run(*words):
        return CliRunner().invoke(main, list(words))

    equal = run("match", files["gguf"], files["npz"], "--device", "cpu")
    assert equal.exit_code == 0, equal.output
    words = ("--ids", ",".join(map(str, IDS[0])), "--json", "--device", "cpu", "--tolerance", "1e-4")
    departs = run("match", files["q8_0"], files["folder"], *words)
    told = json.loads(departs.output)
    assert (departs.exit_code, told["first"], told["rows"][0]["state"]) == (
        1,
        "model.embed_tokens",
        "departs",
    )
    refused = run("match", files["gguf"], str(tmp_path / "none.npz"))
    assert refused.exit_code == 2
    assert "none.npz" in refused.stderr
    assert run("match", files["gguf"], files["npz"], "--ids", "1;2").exit_code == 2
    output = str(tmp_path / "again.npz")
    made = run("record", files["folder"], "--inputs", files["inputs"], "-o", output, "--points", "lm_head")
    assert made.exit_code == 0, made.output
    assert sorted(np.load(output)) == ["call:input_ids", "lm_head", "lm_head:input", "output:logits"]
    assert run("record", files["folder"], "-o", output).exit_code == 2
    assert "Compare two models" in run("--help").output
