"""Graphs and checkpoints of strangers: good files of each reader with bytes, words or documents changed.

What loads runs, too. Both end in values or an error of `pellucid.errors`, in bounded time and memory.
"""

from __future__ import annotations

import io
import json
import random
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

import pellucid
from fuzz.readers import Made, examine
from models.graph.damage import disturb, packed, parts
from models.graph.tflite_files import File
from pellucid import weights

COUNT = 100
WORDS = (0, 1, 2, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


class Model(torch.nn.Module):
    """A product, a split and a view."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 3)

    def forward(self, x):
        first, rest = torch.split(torch.relu(self.inner(x)), [1, 2], 1)
        return first * 2, rest.flatten()


def _onnx() -> bytes:
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="/gemm", transB=1),
        helper.make_node("Shape", ["y"], ["s"], name="/shape"),
        helper.make_node("Reshape", ["y", "s"], ["z"], name="/reshape"),
        helper.make_node("Softmax", ["z"], ["p"], name="/softmax", axis=-1),
    ]
    constants = {"w": np.ones((3, 4), np.float32), "b": np.zeros(3, np.float32)}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model.SerializeToString()


def _tflite() -> bytes:
    f = File(x=((2, 4),))
    weight = f.constant(np.ones((3, 4), np.float32))
    y = f.node("FULLY_CONNECTED", [0, weight], f.tensor("y", (2, 3)), options="FullyConnected")
    return f.bytes(f.node("ABS", [y], f.tensor("z", (2, 3))))


@cache
def _program() -> dict[str, bytes]:
    """The entries of an exported program; made when the first of them is needed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.pt2"
        torch.export.save(torch.export.export(Model(), (torch.ones(2, 4),)), path)
        return parts(path)


def _saved(save: Callable, *given: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    save(file, *given, **named)
    return file.getvalue()


ARRAYS = {"a": np.ones((3, 4), np.float32), "b": np.asfortranarray(np.arange(6.0).reshape(2, 3))}
STATE = {"a": torch.ones(3, 4), "b": torch.arange(6.0).reshape(2, 3).T, "more": [1, "x"]}
ONNX, TFLITE = _onnx(), _tflite()
CHECKPOINTS = [
    _saved(np.savez, **ARRAYS),
    _saved(np.savez_compressed, **ARRAYS),
    _saved(np.save, ARRAYS["b"]),
    _saved(lambda file: torch.save(STATE, file)),
    _saved(lambda file: torch.save(STATE, file, _use_new_zipfile_serialization=False)),
]


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Bytes and words changed, taken out or repeated, and the end cut off."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(out))
        word = struct.pack("<I", rng.choice((*WORDS, rng.randrange(1 << 32))))
        match rng.randrange(5):
            case 0:
                out[at : at + 4] = word
            case 1:
                out[at : at + 1] = word[:1]
            case 2:
                out[at] ^= 1 << rng.randrange(8)
            case 3:
                del out[at : at + rng.choice((1, 4, 30))]
            case _:
                out[at:at] = out[at : at + rng.choice((1, 4, 30))]
        if not out:
            break
    return bytes(out[: rng.randrange(len(out) + 1)] if rng.random() < 0.15 else out)


def called(model: Any) -> None:
    """A model that was read also runs, unless a damaged shape asks for much."""
    with pellucid.no_grad(), np.errstate(all="ignore"):
        model(pellucid.ones(2, 4, device="cpu"))


def onnx_file(rng: random.Random) -> Made:
    data = damaged(rng, ONNX)
    return data, lambda: called(pellucid.onnx.load(data, device="cpu"))


def tflite_file(rng: random.Random) -> Made:
    data = damaged(rng, TFLITE)
    return data, lambda: called(pellucid.tflite.load(data, device="cpu"))


def program_file(rng: random.Random) -> Made:
    """An exported program, damaged in its documents or in the archive."""
    entries = dict(_program())
    if rng.random() < 0.7:
        name = rng.choice([n for n in entries if n.endswith(".json")])
        document = json.loads(entries[name])
        disturb(document, rng)
        entries[name] = json.dumps(document).encode()
    with tempfile.TemporaryDirectory() as folder:
        data = packed(entries, Path(folder) / "m.pt2").read_bytes()
    if entries == _program():
        data = damaged(rng, data)
    return data, lambda: called(pellucid.export.load(data, device="cpu"))


def checkpoint_file(rng: random.Random) -> Made:
    """A file of PyTorch or numpy."""
    data = damaged(rng, rng.choice(CHECKPOINTS))

    def read() -> None:
        checkpoint = weights.open(data)
        weights.read(checkpoint, list(checkpoint.values()))

    return data, read


KINDS = (onnx_file, tflite_file, program_file, checkpoint_file)


def run(seed: int) -> None:
    """Read one damaged graph or checkpoint."""
    examine(seed, KINDS)
