"""ONNX files as modules: results against onnxruntime, the standard's node tests, bad files."""

import json
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import pellucid as torch
from pellucid import lens
from pellucid.errors import (
    ArgumentError,
    DTypeError,
    FormatError,
    MissingError,
    PellucidError,
    ShapeError,
    SourceError,
)
from pellucid.models.graph.onnx.skim import LONG

from paths import SCRIPTS

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

DEVICES = ("cpu", "webgpu")


def model(nodes, inputs, outputs, constants=None, opset=18, **more):
    """A model's bytes; inputs and outputs are shapes by name."""

    def declared(values):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in values.items()]

    initializers = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", declared(inputs), declared(outputs), initializers)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, **more).SerializeToString()


def network(channels=4) -> bytes:
    """A small convolutional network whose head reshapes by what Shape says."""
    draw = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv.first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["p"], ["s"], "shape", start=0, end=1),
        helper.make_node("Concat", ["s", "rest"], ["t"], "target", axis=0),
        helper.make_node("Reshape", ["p", "t"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"], "head"),
    ]
    constants = {
        "w": draw.standard_normal((channels, 1, 3, 3)).astype(np.float32),
        "b": draw.standard_normal(channels).astype(np.float32),
        "rest": np.array([-1], np.int64),
        "v": draw.standard_normal((channels * 16, 5)).astype(np.float32),
    }
    return model(nodes, {"x": ["n", 1, 8, 8]}, {"y": ["n", 5]}, constants)


@pytest.mark.parametrize("device", DEVICES)
def test_a_network_agrees_with_onnxruntime(device):
    import onnxruntime

    data = network()
    ours = torch.onnx.load(data, device=device)
    assert sum(p.numel() for p in ours.parameters()) == 4 * 9 + 4 + 64 * 5
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for batch in (2, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 1, 8, 8)).astype(np.float32)
        (expected,) = theirs.run(None, {"x": x})
        np.testing.assert_allclose(ours(x).numpy(), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ours.run(["y"], {"x": x})[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_nodes_are_seen_and_replaced_by_name():
    ours = torch.onnx.load(network(), device="cpu")
    x = torch.ones(1, 1, 8, 8, device="cpu")
    with lens.capture(ours, "**") as seen:
        y = ours(x=x)
    assert list(seen) == ["conv.first", "relu", "pool", "shape", "target", "Reshape_5", "head"]
    assert seen["target"].tolist() == [1, -1]
    with lens.patch(ours, {"conv.first": lambda value: value * 0}):
        assert not ours({"x": x}).any().item()
    assert y.any().item()


def write_external(folder, location="weights.bin", offset=4):
    """A product whose weight lies in another file; the path of the model."""
    weight = np.arange(600, dtype=np.float32).reshape(3, 200)
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.load_from_string(model([product], {"x": [2, 3]}, {"y": [2, 200]}, {"w": weight}))
    tensor = graph.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(weight.nbytes))):
        tensor.external_data.add(key=key, value=value)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    (folder / "weights.bin").write_bytes(bytes(4) + weight.tobytes())
    return folder / "model.onnx", weight


class Counting(torch.weights.MemorySource):
    """Remembers which bytes were read."""

    def __init__(self, data):
        super().__init__(data)
        self.ranges = []

    def chunks(self, start, stop):
        self.ranges.append((start, stop))
        return super().chunks(start, stop)


def test_weights_beside_the_file(tmp_path):
    path, weight = write_external(tmp_path)
    ours = torch.onnx.load(path, device="cpu")
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(ours(x).numpy(), x @ weight)
    for location in ("../weights.bin", "/etc/passwd", "a/../../b", "C:\\b", ""):
        path, _ = write_external(tmp_path, location)
        with pytest.raises(FormatError, match=r"initializer 'w' has external_data location"):
            torch.onnx.load(path, device="cpu")
    (tmp_path / "below").mkdir()
    path, _ = write_external(tmp_path / "below", "link")
    (tmp_path / "below" / "link").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(FormatError, match="a link out of the model's folder"):
        torch.onnx.load(path, device="cpu")
    with pytest.raises(SourceError, match="lies in another file"):
        torch.onnx.load(path.read_bytes(), device="cpu")


def test_the_graph_is_read_without_the_weights():
    weight = np.zeros((1000, 1000), np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    source = Counting(model([node], {"x": [1, 1000]}, {"y": [1, 1000]}, {"w": weight}))
    ours = torch.onnx.load(source, device="cpu")
    read = sum(min(stop, source.size) - start for start, stop in source.ranges)
    assert read < weight.nbytes + 3 * (1 << 18)  # the weight once, and windows before and behind it
    assert ours.get_parameter("w").shape == (1000, 1000)


def bad(data: bytes, error, match: str) -> None:
    with pytest.raises(error, match=match):
        torch.onnx.load(data, device="cpu")


def node_model(*nodes, **settings) -> bytes:
    return model([helper.make_node(*node) for node in nodes], {"x": [2, 3]}, {"y": [2, 3]}, **settings)


def test_what_is_refused_says_where():
    bad(b"", FormatError, "is empty")
    bad(b"\x08", FormatError, "model.ir_version at byte 1 has a number without an end")
    bad(b"\x3a\x7f\x00", FormatError, "model.graph at byte 0 has 127 bytes, of which 1 are there")
    bad(b"\x38\x01", FormatError, "model.graph at byte 0 is of wire type 0, not a Graph")
    bad(b"\x0b", FormatError, "has a field of number 1 and wire type 3")
    bad(b"\x12\x01\xff", FormatError, "is no ONNX model")
    bad(
        node_model(("Relu", ["z"], ["y"], "n")),
        FormatError,
        "node 'n' .* uses 'z', which nothing before it makes",
    )
    cycle = (("Relu", ["b"], ["a"], "first"), ("Relu", ["a"], ["b"]), ("Relu", ["x"], ["y"]))
    bad(node_model(*cycle), FormatError, "node 'first' .* uses 'b'")
    bad(node_model(("Relu", ["x"], ["x"], "n")), FormatError, "makes 'x', which is there already")
    bad(node_model(("Relu", ["x", "x"], ["y"], "n")), FormatError, "has 2 inputs, and the operator takes 1")
    newer = onnx.load_from_string(network())
    newer.opset_import[0].version = 99
    bad(newer.SerializeToString(), MissingError, "is of opset 99")
    odd = [helper.make_node("Relu", ["x"], ["y"], "n", color=3)]
    bad(model(odd, {"x": [2]}, {"y": [2]}), FormatError, "attributes that the operator does not have .*color")
    missing = (("Blur", ["x"], ["a"], "one"), ("Blur", ["a"], ["b"], "two"), ("Loop", ["b"], ["y"], "three"))
    bad(node_model(*missing), MissingError, r"2 operators .*Blur: one, two; Loop \(control flow.*three")


def test_tensors_that_contradict_themselves():
    def constant(change) -> bytes:
        graph = onnx.load_from_string(
            node_model(("Add", ["x", "w"], ["y"]), constants={"w": np.zeros(3, np.float32)})
        )
        change(graph.graph.initializer[0])
        return graph.SerializeToString()

    bad(constant(lambda t: t.dims.append(1 << 50)), FormatError, "initializer 'w' has dims")
    bad(constant(lambda t: t.dims.append(-1)), FormatError, "initializer 'w' has dims")
    bad(constant(lambda t: t.dims.append(2)), FormatError, "initializer 'w' has 12 bytes, and 24 are needed")
    bad(constant(lambda t: setattr(t, "data_type", 99)), FormatError, "data type number 99 is not taken")
    bad(constant(lambda t: setattr(t, "data_type", TensorProto.STRING)), FormatError, "data type string")
    bad(constant(lambda t: t.ClearField("name")), FormatError, "initializer 0 has no name")
    bad(constant(lambda t: t.ClearField("raw_data")), FormatError, "0 values in float_data, and 3 are needed")


def declared(change) -> bytes:
    """The network with other declarations."""
    graph = onnx.load_from_string(network())
    change(graph.graph)
    return graph.SerializeToString()


def value_info(name, shape, kind=TensorProto.FLOAT):
    return lambda graph: graph.value_info.append(helper.make_tensor_value_info(name, kind, shape))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (value_info("c", [None, 5, 8, 8]), r"node 'conv.first' .* \[1, 4, 8, 8\], and .* \[\?, 5, 8, 8\]"),
        (value_info("r", ["n", 4, 64]), r"node 'relu' .* \[1, 4, 8, 8\], and the file declares r: float32"),
        (value_info("t", [3], TensorProto.INT64), r"node 'target' .* gives t: int64 \[2\], and .* \[3\]"),
        (value_info("t", [2]), r"node 'target' .* gives t: int64 \[2\], and the file declares t: float32"),
        (
            lambda graph: graph.output[0].CopyFrom(
                helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 6])
            ),
            r"node 'head' \(Gemm\).* gives y: float32 \[1, 5\], and the file declares y: float32 \[n, 6\]",
        ),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_shapes_that_contradict_each_other_name_the_node(change, match, device):
    ours = torch.onnx.load(declared(change), device=device)
    with pytest.raises(ShapeError, match=match):
        ours(torch.ones(1, 1, 8, 8, device=device))


def test_declarations_that_contradict_each_other_are_refused_at_once():
    bad(
        declared(value_info("y", ["n", 6])),
        FormatError,
        r"'head', which makes it, also gives y: float32 \[n,",
    )
    bad(
        declared(value_info("w", [4, 3, 3])),
        FormatError,
        r"declares w: float32 \[4, 3, 3\], and it is w: \? ",
    )
    bad(declared(value_info("x", ["n", 3, 8, 8])), FormatError, r"and it is x: float32 \[n, 1, 8, 8\]")
    right = declared(
        lambda graph: [value_info("c", ["batch", 4, None, 8])(graph), value_info("r", [])(graph)]
    )
    graph = onnx.load_from_string(right)
    graph.graph.value_info[1].type.tensor_type.ClearField("shape")
    assert torch.onnx.load(graph.SerializeToString(), device="cpu")(np.ones((2, 1, 8, 8), "f")).shape == (
        2,
        5,
    )


def test_calls_that_do_not_fit():
    ours = torch.onnx.load(network(), device="cpu")
    x = torch.ones(2, 1, 8, 8, device="cpu")
    with pytest.raises(ArgumentError, match="inputs are x: float32"):
        ours()
    with pytest.raises(ArgumentError, match="outputs are y"):
        ours.run(["z"], {"x": x})
    with pytest.raises(DTypeError, match=r"input x: float32 .* is given as int64"):
        ours(x.long())
    with pytest.raises(ShapeError, match=r"input x: .* is given with shape \(2, 1, 8, 7\)"):
        ours(x[..., :7])
    twice = [helper.make_node("MatMul", ["x", "x"], ["y"], "square")]
    ours = torch.onnx.load(model(twice, {"x": ["a", "b"]}, {"y": ["a", "b"]}), device="cpu")
    with pytest.raises(ShapeError, match="node 'square'"):
        ours(np.ones((2, 3), np.float32))


def test_damaged_bytes_end_in_typed_errors():
    data, draw = network(), random.Random(0)
    assert len(data) > LONG
    for turn in range(150):
        damaged = bytearray(data[: draw.randrange(1, len(data))] if turn % 3 == 0 else data)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(damaged))
            damaged[at] = draw.randrange(256)
        with suppress(PellucidError):
            torch.onnx.load(bytes(damaged), device="cpu")(np.ones((1, 1, 8, 8), np.float32))


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_page(tmp_path):
    import onnxruntime

    data = network()
    (tmp_path / "model.onnx").write_bytes(data)
    program = Path(__file__).parent / "onnx_page.py"
    packages = "--packages=numpy,pellucid,protobuf"
    command = [sys.executable, SCRIPTS / "browser", program, "--mount", tmp_path, packages, "--timeout=120"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 1, 8, 8)
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (expected,) = theirs.run(None, {"x": x})
    np.testing.assert_allclose(said["y"], expected, rtol=1e-4, atol=1e-5)
    assert said["blocking"] == said["y"]
    assert said["relu"] == [2, 4, 8, 8]
