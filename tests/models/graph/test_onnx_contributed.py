"""Operators of com.microsoft against onnxruntime, one node each."""

import numpy as np
import pytest

import pellucid as torch

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import helper  # noqa: E402

draw = np.random.default_rng(0)


def floats(*shape, dtype=np.float32):
    return draw.standard_normal(shape).astype(dtype)


def whole(*shape, dtype=np.uint8, low=0, high=256):
    return draw.integers(low, high, shape).astype(dtype)


def number(value, dtype=np.float32):
    return np.array(value, dtype)


X, SKIP, GAMMA = floats(2, 4, 8), floats(2, 4, 8), floats(8)
IDS = whole(2, 4, dtype=np.int32, high=5)
COS, SIN = np.cos(floats(12, 4)), np.sin(floats(12, 4))
SCALE, ZERO = number(0.02), number(120, np.uint8)
QKV = [floats(2, 4, 16), floats(2, 4, 16), floats(2, 4, 16)]
PAST = [floats(2, 2, 3, 8), floats(2, 2, 3, 8)]
GQA = {"num_heads": 4, "kv_num_heads": 2}
KV = [floats(2, 4, 16), floats(2, 4, 16)]
WIDE = np.cos(floats(12, 8)), np.sin(floats(12, 8))
ONE = [floats(1, 1, 64), floats(1, 1, 32), floats(1, 1, 32), floats(1, 2, 5, 16), floats(1, 2, 5, 16)]
LENGTH = [number([3, 3], np.int32), number(4, np.int32)]

# Operator, inputs (None is left out), attributes, number of outputs that are compared, tolerance.
ROWS = [
    ("Gelu", [X], {}, 1),
    ("BiasGelu", [X, GAMMA], {}, 1),
    ("FastGelu", [X, GAMMA], {}, 1),
    ("QuickGelu", [X], {}, 1),
    ("FusedMatMul", [X, floats(2, 5, 8)], {"transB": 1, "alpha": 0.5}, 1),
    (
        "FusedGemm", [X[0], floats(5, 8), floats(5)],
        {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.2}, 1,
    ),
    ("FusedConv", [floats(1, 2, 5, 5), floats(3, 2, 3, 3), floats(3)], {"activation": "Relu"}, 1),
    ("SkipLayerNormalization", [X, SKIP, GAMMA, floats(8), floats(8)], {"epsilon": 1e-5}, (0, 3)),
    ("SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA], {"epsilon": 1e-5}, (0, 3)),
    (
        "EmbedLayerNormalization",
        [IDS, IDS % 2, floats(5, 8), floats(6, 8), floats(2, 8), GAMMA, floats(8), np.ones((2, 4), np.int32)],
        {"epsilon": 1e-5}, 2,
    ),
    ("RotaryEmbedding", [floats(2, 4, 16), IDS.astype(np.int64), COS, SIN], {}, 1),
    ("RotaryEmbedding", [floats(2, 2, 4, 8), number([1], np.int64), COS, SIN], {"interleaved": 1}, 1),
    ("MultiHeadAttention", [*QKV, None, number([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)], {"num_heads": 2}, 1),
    ("MultiHeadAttention", [*QKV, floats(48), None, floats(1, 2, 4, 7), *PAST], {"num_heads": 2}, 3),
    ("MultiHeadAttention", QKV, {"num_heads": 2, "unidirectional": 1}, 1),
    ("Attention", [X, floats(8, 24), floats(24), number([[1, 1, 1, 0]] * 2, np.int32)], {"num_heads": 2}, 1),
    ("Attention", [X, floats(8, 24), floats(24)], {"num_heads": 2, "unidirectional": 1}, 1),
    ("GroupQueryAttention", [floats(2, 4, 32), *KV, None, None, *LENGTH], GQA, 3),
    (
        "GroupQueryAttention",
        [floats(2, 4, 128), None, None, None, None, *LENGTH, *WIDE],
        {**GQA, "do_rotary": 1, "local_window_size": 2, "softcap": 3.0}, 3,
    ),
    (
        "GroupQueryAttention",
        [*ONE, number([5], np.int32), number(6, np.int32), *WIDE],
        {**GQA, "do_rotary": 1, "rotary_interleaved": 1}, 3,
    ),
    (
        "MatMulNBits",
        [floats(3, 64), whole(8, 2, 16), floats(8, 2)],
        {"K": 64, "N": 8, "block_size": 32, "bits": 4}, 1,
    ),
    (
        "MatMulNBits",
        [floats(3, 48), whole(8, 3, 8), floats(24), whole(8, 2)],
        {"K": 48, "N": 8, "block_size": 16, "bits": 4}, 1,
    ),
    (
        "MatMulNBits",
        [floats(3, 64, dtype=np.float16), whole(8, 2, 16), floats(8, 2, dtype=np.float16), whole(8, 1)],
        {"K": 64, "N": 8, "block_size": 32, "bits": 4}, 1,
    ),
    (
        "GatherBlockQuantized",
        [whole(5, 16), IDS.astype(np.int64), floats(5, 2), whole(5, 1)],
        {"block_size": 16, "bits": 4, "quantize_axis": 1, "gather_axis": 0}, 1,
    ),
    ("MatMulIntegerToFloat", [whole(3, 4), whole(4, 5), SCALE, floats(5), ZERO, whole(5), floats(5)], {}, 1),
    ("DynamicQuantizeMatMul", [X, whole(8, 5), floats(5), whole(5)], {}, 1),
    ("QLinearAdd", [whole(2, 3), SCALE, ZERO, whole(2, 3), SCALE, ZERO, number(0.03), ZERO], {}, 1),
    ("QLinearMul", [whole(2, 3), SCALE, ZERO, whole(2, 3), SCALE, ZERO, number(0.03), ZERO], {}, 1),
    ("QLinearSigmoid", [whole(2, 3), SCALE, ZERO, number(0.004), number(0, np.uint8)], {}, 1),
    ("QLinearLeakyRelu", [whole(2, 3), SCALE, ZERO, SCALE, ZERO], {"alpha": 0.1}, 1),
    ("QLinearSoftmax", [whole(2, 3), SCALE, ZERO, number(0.004), number(0, np.uint8)], {"opset": 13}, 1),
    ("QLinearConcat", [SCALE, ZERO, whole(2, 3), SCALE, ZERO, whole(2, 2), SCALE, ZERO], {"axis": 1}, 1),
    ("QLinearGlobalAveragePool", [whole(1, 2, 3, 3), SCALE, ZERO, SCALE, ZERO], {}, 1),
    (
        "QLinearAveragePool", [whole(1, 2, 4, 4), SCALE, ZERO, SCALE, ZERO],
        {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1]}, 1,
    ),
    ("QuantizeLinear", [X, SCALE, ZERO], {}, 1),
    ("DequantizeLinear", [whole(2, 3), SCALE, ZERO], {}, 1),
]  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda k: f"{ROWS[k][0]}-{k}")
def test_agrees_with_onnxruntime(number, device):
    name, arrays, attributes, compared = ROWS[number]
    compared = range(compared) if isinstance(compared, int) else compared
    feeds = {f"x{k}": a for k, a in enumerate(arrays) if a is not None}
    outputs = [f"y{k}" if k in compared else "" for k in range(max(compared) + 1)]
    inputs = [f"x{k}" if a is not None else "" for k, a in enumerate(arrays)]
    node = helper.make_node(name, inputs, outputs, name, domain="com.microsoft", **attributes)
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    made = [helper.make_empty_tensor_value_info(n) for n in outputs if n]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", declared, made)
    data = helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    model = torch.onnx.load(data, device=device)
    ours = model.run(None, feeds)
    half = any(a.dtype == np.float16 for a in feeds.values())
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype.name == b.dtype.name
        # Whole numbers may be rounded the other way at halves.
        atol = 1 if b.dtype.kind in "iu" else 0.02 if half else 1e-4
        np.testing.assert_allclose(
            a.numpy().astype(np.float64), b.astype(np.float64), 1e-2 if half else 1e-3, atol
        )
