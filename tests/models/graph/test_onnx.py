"""ONNX files as modules: results against onnxruntime, the standard's node tests, bad files."""

import numpy as np
import pytest

import pellucid as torch
from pellucid import lens

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
