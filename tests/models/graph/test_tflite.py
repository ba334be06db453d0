"""TensorFlow Lite files as modules: results against the runtime, quantized graphs, bad files."""

import numpy as np
import pytest

import pellucid as torch
from pellucid import lens

pytest.importorskip("ai_edge_litert")
from models.graph.tflite_files import File, expected

DEVICES = ("cpu", "webgpu")
draw = np.random.default_rng(0)


def floats(*shape) -> np.ndarray:
    return draw.standard_normal(shape).astype(np.float32)


def network() -> bytes:
    """A convolutional network whose head reshapes by a shape that is computed."""
    f = File(x=((1, 9, 9, 3),))
    c = f.node(
        "CONV_2D", [0, f.constant(floats(8, 3, 3, 3)), f.constant(floats(8))],
        f.tensor("block/conv", (1, 5, 5, 8)), options="Conv2D", strideW=2, strideH=2,
        fusedActivationFunction=3,
    )  # fmt: skip
    d = f.node(
        "DEPTHWISE_CONV_2D", [c, f.constant(floats(1, 3, 3, 8)), f.constant(floats(8))],
        f.tensor("block/depthwise", (1, 5, 5, 8)), options="DepthwiseConv2D", strideW=1, strideH=1,
        depthMultiplier=1,
    )  # fmt: skip
    a = f.node("ADD", [c, d], f.tensor("add", (1, 5, 5, 8)), options="Add", fusedActivationFunction=1)
    p = f.node(
        "MAX_POOL_2D", [a], f.tensor("pool", (1, 2, 2, 8)), options="Pool2D", strideW=2, strideH=2,
        filterWidth=2, filterHeight=2, padding=1,
    )  # fmt: skip
    s = f.node("SHAPE", [p], f.tensor("shape", (4,), "int32"), options="Shape", outType=2)
    one = f.node(
        "STRIDED_SLICE", [s, *(f.constant(np.int32([k])) for k in (0, 1, 1))], f.tensor("batch", (), "int32"),
        options="StridedSlice", shrinkAxisMask=1,
    )  # fmt: skip
    t = f.node(
        "PACK", [one, f.constant(np.int32(-1))], f.tensor("target", (2,), "int32"), options="Pack",
        valuesCount=2,
    )  # fmt: skip
    r = f.node("RESHAPE", [p, t], f.tensor("flat", (1, 32)))
    y = f.node("FULLY_CONNECTED", [r, f.constant(floats(5, 32)), -1], f.tensor("head", (1, 5)),
               options="FullyConnected")  # fmt: skip
    y = f.node("SOFTMAX", [y], f.tensor("y", (1, 5)), options="Softmax", beta=1.0)
    return f.bytes(y)


@pytest.mark.parametrize("device", DEVICES)
def test_a_network_agrees_with_the_runtime(device):
    data, x = network(), floats(1, 9, 9, 3)
    model = torch.tflite.load(data, device=device)
    assert repr(model.inputs) == "[x: float32 [1, 9, 9, 3]]"
    with lens.capture(model, "block/*") as seen:
        y = model(torch.tensor(x, device=device))
    np.testing.assert_allclose(y.cpu().numpy(), expected(data, x)[0], rtol=1e-4, atol=1e-6)
    assert {name: tuple(v.shape) for name, v in seen.items()} == {
        "block/conv": (1, 5, 5, 8),
        "block/depthwise": (1, 5, 5, 8),
    }
    with lens.patch(model, {"head": lambda v: v * 0}):
        assert np.allclose(model(x=x).cpu().numpy(), 0.2)
