"""What loading takes beside the weights, for every reader: bytes of Python's heap, and of the device."""

import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load_file

import pellucid
from models import quantized_folders
from models.gguf_files import written
from models.graph.tflite_files import File
from models.test_checkpoints import WAYS
from models.tiny import loaded, made, saved
from pellucid.device.stream import Storage, stream

# Of Python's heap: what is read at once on the way to a device, and the configuration, names and modules.
HEAP = 24 << 20
# Of the device, as a share of the weights: raw bytes go tensor by tensor while planes are made of them.
SHARE = 1.6
SIZES: dict[str, Any] = {
    "vocab_size": 24576,
    "hidden_size": 512,
    "intermediate_size": 512,
    "num_hidden_layers": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model of 100 MB, most of it in two tables."""
    return saved(made("llama", **SIZES), tmp_path_factory.mktemp("large"))


def in_folder(way: str) -> Callable[[Path, Path], Any]:
    """The same weights in another kind of checkpoint."""

    def load(folder: Path, target: Path) -> Any:
        (target / "config.json").write_bytes((folder / "config.json").read_bytes())
        WAYS[way](load_file(folder / "model.safetensors"), target)
        return lambda: loaded(target, "webgpu")

    return load


def of_gguf(format: str) -> Callable[[Path, Path], Any]:
    def load(folder: Path, target: Path) -> Any:
        file = written(made("llama", **SIZES), target / "a.gguf", format)
        return lambda: loaded(file, "webgpu")

    return load


def of_export(folder: Path, target: Path) -> Any:
    layer = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.Linear(4096, 1024))
    torch.export.save(torch.export.export(layer, (torch.zeros(1, 4096),)), target / "a.pt2")
    export = pellucid.export  # imported before anything is counted
    return lambda: export.load(str(target / "a.pt2")).module()


def of_onnx(folder: Path, target: Path) -> Any:
    value = np.random.default_rng(0).random((4096, 4096), np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4096]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(value, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), target / "a.onnx")
    onnx_models = pellucid.onnx
    return lambda: onnx_models.load(str(target / "a.onnx"))


def of_tflite(folder: Path, target: Path) -> Any:
    file, value = File(x=((1, 4096),)), np.random.default_rng(0).random((4096, 4096), np.float32)
    inputs, out = [0, file.constant(value), -1], file.tensor("y", (1, 4096))
    y = file.node("FULLY_CONNECTED", inputs, out, options="FullyConnected")
    (target / "a.tflite").write_bytes(file.bytes(y))
    tflite = pellucid.tflite
    return lambda: tflite.load(str(target / "a.tflite"))


def of_words(case: str) -> Callable[[Path, Path], Any]:
    """Weights of 4 bits."""

    def load(folder: Path, target: Path) -> Any:
        wide = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 1, "head_dim": 256}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(quantized_folders, "SIZES", wide)
            ways = {**quantized_folders.CASES, **quantized_folders.WAYS}
            quantized_folders.quantized(target, *ways[case][:2])
        return lambda: loaded(target, "webgpu")

    return load


READERS = {
    "safetensors": lambda folder, target: lambda: loaded(folder, "webgpu"),
    **{way: in_folder(way) for way in ("bin", "pt", "npz")},
    "gguf f32": of_gguf("f32"),
    "gguf q8_0": of_gguf("q8_0"),
    "gptq": of_words("gptq"),
    "awq": of_words("awq"),
    "torchao": of_words("int4, tiles of torchao"),
    "pt2": of_export,
    "onnx": of_onnx,
    "tflite": of_tflite,
}
# Files whose matrices lie column after column are turned, a tensor at a time on each connection, of which two
# have all of this model.
TURNED = dict.fromkeys(("pt", "npz"), 200 << 20)


@pytest.fixture
def watched(monkeypatch) -> list[int]:
    """Bytes that were alive on the device whenever some were asked for."""
    seen: list[int] = []
    make = Storage.__init__

    def made(self: Storage, *args: Any, **settings: Any) -> None:
        make(self, *args, **settings)
        seen.append(stream().allocated)

    monkeypatch.setattr(Storage, "__init__", made)
    return seen


@pytest.mark.skipif(os.environ.get("PELLUCID_CHECK") == "1", reason="the check keeps arrays of its own")
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_keeps_its_budget(reader, folder, tmp_path, watched):
    load = READERS[reader](folder, tmp_path)
    gc.collect()
    pellucid.webgpu.synchronize()  # which gives back what earlier tests left
    watched.clear()
    before = pellucid.webgpu.memory_allocated()
    tracemalloc.start()
    try:
        model = load()
        heap = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    weights = pellucid.webgpu.memory_allocated() - before
    assert weights > 8e6
    assert max(watched) - before <= SHARE * weights
    assert heap <= TURNED.get(reader, HEAP)
    del model
