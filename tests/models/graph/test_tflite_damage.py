"""Damaged and hostile TensorFlow Lite files: typed errors, in bounded time; files read by ranges."""

import json
import random
import re
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import pellucid as torch
from pellucid.errors import ArgumentError, DTypeError, FormatError, MissingError, PellucidError, ShapeError
from pellucid.models.graph.tflite import flat
from pellucid.weights.source import Source

from paths import SCRIPTS

pytest.importorskip("ai_edge_litert")
from models.graph.test_tflite import floats, network, quantized, with_blocks
from models.graph.tflite_files import File, expected


def bad(data: bytes, error, match: str) -> None:
    with pytest.raises(error, match=match):
        torch.tflite.load(data, device="cpu")


def test_what_is_refused_says_where():
    bad(b"", FormatError, "TensorFlow Lite")
    bad(b"\0" * 64, FormatError, "'TFL3' was expected")
    f = File(x=((2, 3),))
    y = f.node("UNIQUE", [f.node("WHERE", [0], f.tensor("a", ()))], f.tensor("b", ()))
    bad(f.bytes(y), MissingError, r"2 operators .*UNIQUE.*: b; WHERE .*: a\.")
    f = File(x=((2, 3),))
    bad(f.bytes(f.node("ABS", [0, 0], f.tensor("y", ()))), FormatError, "'y'.*2 inputs.*takes 1")
    f = File(x=((2, 3),))
    bad(f.bytes(f.node("ABS", [7], f.tensor("y", ()))), FormatError, "tensor 7 of 2")
    f = File(x=((2, 3),))
    y = f.node("ADD", [0, 0], f.tensor("y", ()), options="Mul")
    bad(f.bytes(y), FormatError, "options of type 21, not AddOptions")
    f = File(x=((2, 3),))
    bad(f.bytes(f.node("ABS", [1], f.tensor("y", ()))), FormatError, "nothing before it makes")
    f = File(x=((2, 3),))
    f.constant(floats(4), name="w")
    f.graph.tensors[1].shape = [5]
    bad(f.bytes(0), FormatError, r"'w'.*16 bytes, and 20 are needed for float32 of shape \(5,\)")
    f = File(x=((2, 3),))
    f.constant(np.int8([1, 2]), ([0.1, 0.2, 0.3], [0, 0, 0], 0), name="w")
    bad(f.bytes(0), FormatError, r"'w'.*3 scales along axis 0 of shape \(2,\)")


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 1), (-1, 5)])
def test_shapes_that_contradict_each_other_name_the_node(shape):
    f = File(x=((2, 3),))
    y = f.node("ABS", [0], f.tensor("y", [max(n, 1) for n in shape]))
    f.graph.tensors[y].shapeSignature = list(shape)
    model = torch.tflite.load(f.bytes(f.node("NEG", [y], f.tensor("z", (2, 3)))), device="cpu")
    declared = ", ".join("?" if n < 0 else str(n) for n in shape)
    with pytest.raises(
        ShapeError, match=rf"node 'y' \(ABS\).* \[2, 3\], .*declares y: \? \[{re.escape(declared)}\]"
    ):
        model(torch.zeros(2, 3, device="cpu"))
    f.graph.tensors[y].shape, f.graph.tensors[y].shapeSignature = [1, 3], [-1, 3]
    model = torch.tflite.load(f.bytes(2), device="cpu")
    assert model(torch.ones(2, 3, device="cpu")).tolist() == [[-1.0] * 3] * 2


def test_calls_that_do_not_fit():
    model = torch.tflite.load(network(), device="cpu")
    with pytest.raises(ShapeError, match="x: float32"):
        model(torch.zeros(1, 9, 9, 4))
    with pytest.raises(DTypeError, match="given as int32"):
        model(torch.zeros(1, 9, 9, 3, dtype=torch.int32))
    with pytest.raises(ArgumentError, match="inputs are"):
        model()
    f = File(x=((2, 3),))
    y = f.node("FULLY_CONNECTED", [0, f.constant(floats(4, 5))], f.tensor("y", ()), options="FullyConnected")
    with pytest.raises(PellucidError, match="node 'y'"):
        torch.tflite.load(f.bytes(y), device="cpu")(torch.zeros(2, 3))


@pytest.mark.parametrize("made", [network, lambda: quantized("int8")], ids=["float", "quantized"])
def test_damaged_bytes_end_in_typed_errors(made):
    data, rng = made(), random.Random(0)
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(data) - 4)
            word = rng.choice((0, 1, 0xFFFFFFFF, 0x7FFFFFFF, rng.randrange(1 << 32), rng.randrange(64)))
            changed[at : at + 4] = rng.choice((struct.pack("<I", word), bytes([word & 255])))[:4]
        if rng.random() < 0.2:
            del changed[rng.randrange(len(changed)) :]
        begun = time.monotonic()
        with suppress(PellucidError):
            model = torch.tflite.load(bytes(changed), device="cpu")
            if all(i.shape and None not in i.shape and np.prod(i.shape) < 1e6 for i in model.inputs):
                model(*[torch.zeros(i.shape, dtype=i.dtype, device="cpu") for i in model.inputs])
        assert time.monotonic() - begun < 5


def test_tables_that_all_refer_to_one_another_end():
    """A vector that says it has very many tables, all of them the same."""
    root = 16
    data = bytearray(struct.pack("<I4sHHHHHH", root, b"TFL3", 8, 8, 0, 0, 4, 0))
    data += struct.pack("<iI", 12 - 4, 4)  # the vtable at 8; subgraphs behind it
    data += struct.pack("<I", 1 << 20) + struct.pack("<I", 0) * (1 << 20)
    begun = time.monotonic()
    bad(bytes(data), FormatError, "no TensorFlow Lite")
    assert time.monotonic() - begun < 10


class Ranges(Source):
    """Bytes that count what is asked for."""

    def __init__(self, data):
        self.data, self.name, self.size, self.asked = data, "counted", len(data), 0

    def chunks(self, start, stop):
        self.asked += stop - start
        yield self.data[start:stop]


def test_weights_are_left_in_the_file_while_the_graph_is_read(monkeypatch):
    monkeypatch.setattr(flat, "_SMALL_FILE", 0)
    f = File(x=((1, 1000),))
    y = f.node("FULLY_CONNECTED", [0, f.constant(floats(1000, 1000))], f.tensor("y", (1, 1000)),
               options="FullyConnected")  # fmt: skip
    source = Ranges(f.bytes(y))
    assert torch.tflite.load(source, device="cpu")(torch.zeros(1, 1000)).sum() == 0
    assert source.asked < 4_000_000 + 5 * (1 << 16)
    source.data = source.data[: source.size // 2]
    with pytest.raises(PellucidError):
        torch.tflite.load(source, device="cpu")


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_page(tmp_path):
    data = network()
    (tmp_path / "model.tflite").write_bytes(data)
    blocks = with_blocks()[0]
    (tmp_path / "sparse.tflite").write_bytes(blocks)
    program = Path(__file__).parent / "tflite_page.py"
    command = [sys.executable, SCRIPTS / "browser", program, "--mount", tmp_path, "--timeout=120"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    x = np.linspace(-1, 1, 243, dtype=np.float32).reshape(1, 9, 9, 3)
    np.testing.assert_allclose(said["y"], expected(data, x)[0], rtol=1e-4, atol=1e-5)
    assert said["blocking"] == said["y"]
    assert said["add"] == [1, 5, 5, 8]
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    np.testing.assert_allclose(said["sparse"], expected(blocks, x)[0], rtol=1e-5, atol=1e-5)
