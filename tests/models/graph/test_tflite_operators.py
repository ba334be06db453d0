"""Operators of TensorFlow Lite, each in a graph of its own, against the runtime's own kernels."""

import re

import numpy as np
import pytest

import pellucid as torch
from pellucid.models.graph import tflite

from paths import ROOT

pytest.importorskip("ai_edge_litert")
from models.graph.tflite_files import File, expected

draw = np.random.default_rng(0)


def r(*shape) -> np.ndarray:
    return draw.standard_normal(shape).astype(np.float32)


def i(*values) -> np.ndarray:
    return np.int32(values)


def b(*values) -> np.ndarray:
    return np.array(values, bool)


IMAGE = r(2, 5, 6, 4)
WINDOW = {"strideW": 1, "strideH": 2}
POOL = {"o": "Pool2D", "filterWidth": 3, "filterHeight": 2, **WINDOW}
COUNTS = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
UNARY = """ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOGISTIC NEG RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND
SIGN SIN SQUARE TANH"""
BINARY = """EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL MAXIMUM MINIMUM NOT_EQUAL
SQUARED_DIFFERENCE"""
COMPARE = "EQUAL GREATER LESS"
# Operator: inputs, constants (behind the inputs unless "order" says otherwise), settings: "o" are
# its options, "out" the types of its outputs.
CASES = [
    *((code, [r(2, 3)], [], {}) for code in UNARY.split()),
    *((code, [np.abs(r(3))], [], {}) for code in ("LOG", "SQRT", "RSQRT")),
    *((code, [r(2, 3), r(3)], [], {}) for code in BINARY.split()),
    *((code, [r(2, 3), r(1, 3)], [], {"o": code.title()}) for code in ("ADD", "SUB", "MUL", "DIV")),
    ("ADD", [r(3), r(3)], [], {"o": "Add", "fusedActivationFunction": 2}),
    ("DIV", [i(7, -7), i(2, 2)], [], {"o": "Div"}),
    ("ATAN2", [r(3), r(3)], [], {}),
    *((code, [i(6, 5), i(1, 2)], [], {}) for code in ("BITWISE_XOR", "RIGHT_SHIFT")),
    ("POW", [np.abs(r(3)), r(3)], [], {}),
    ("PRELU", [IMAGE], [r(1, 1, 4)], {}),
    ("LEAKY_RELU", [r(2, 3)], [], {"o": "LeakyRelu", "alpha": 0.2}),
    ("GELU", [r(2, 3)], [], {"o": "Gelu", "approximate": True}),
    ("GELU", [r(2, 3)], [], {"o": "Gelu"}),
    ("LOGICAL_AND", [b(1, 0), b(1, 1)], [], {}),
    ("LOGICAL_OR", [b(1, 0), b(0, 0)], [], {}),
    ("LOGICAL_NOT", [b(1, 0)], [], {}),
    ("SELECT_V2", [b(1, 0, 1), r(2, 3), r(3)], [], {}),
    ("SELECT", [b(1, 0), r(2, 3), r(2, 3)], [], {}),
    ("ADD_N", [r(3), r(3), r(3)], [], {}),
    ("CAST", [r(3) * 9], [], {"out": "int32"}),
    ("CAST", [i(1, 0)], [], {"out": "bool"}),
    ("ZEROS_LIKE", [r(3)], [], {}),
    # Windows, products, images
    ("CONV_2D", [IMAGE], [r(3, 3, 2, 4), r(3)], {"o": "Conv2D", "padding": 1, **WINDOW}),
    (
        "CONV_2D",
        [IMAGE],
        [r(6, 3, 3, 2), r(6)],
        {"o": "Conv2D", "dilationWFactor": 2, "strideW": 1, "strideH": 1},
    ),
    (
        "DEPTHWISE_CONV_2D",
        [IMAGE],
        [r(1, 3, 3, 8), r(8)],
        {"o": "DepthwiseConv2D", "depthMultiplier": 2, "strideW": 2, "strideH": 2},
    ),
    (
        "TRANSPOSE_CONV",
        [r(1, 3, 4, 2)],
        [i(1, 6, 8, 3), r(3, 3, 3, 2)],
        {"o": "TransposeConv", "strideW": 2, "strideH": 2, "order": (1, 2, 0)},
    ),
    (
        "TRANSPOSE_CONV",
        [r(1, 3, 4, 2)],
        [i(1, 5, 6, 3), r(3, 3, 3, 2)],
        {"o": "TransposeConv", "strideW": 1, "strideH": 1, "order": (1, 2, 0), "padding": 1},
    ),
    ("MAX_POOL_2D", [IMAGE], [], POOL),
    ("AVERAGE_POOL_2D", [IMAGE], [], POOL),
    ("L2_POOL_2D", [IMAGE], [], POOL | {"padding": 1}),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        [IMAGE],
        [],
        {"o": "LocalResponseNormalization", "radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.75},
    ),
    (
        "FULLY_CONNECTED",
        [r(2, 2, 3)],
        [r(4, 3), r(4)],
        {"o": "FullyConnected", "keepNumDims": True, "fusedActivationFunction": 1},
    ),
    ("BATCH_MATMUL", [r(2, 4, 3), r(2, 5, 4)], [], {"o": "BatchMatMul", "adjX": True, "adjY": True}),
    *(
        ("RESIZE_BILINEAR", [IMAGE], [i(7, 3)], {"o": "ResizeBilinear", **s})
        for s in ({}, {"alignCorners": True}, {"halfPixelCenters": True})
    ),
    *(
        ("RESIZE_NEAREST_NEIGHBOR", [IMAGE], [i(7, 3)], {"o": "ResizeNearestNeighbor", **s})
        for s in ({}, {"alignCorners": True}, {"halfPixelCenters": True})
    ),
    # Reductions
    *((code, [IMAGE], [i(1, -2)], {"o": "Reducer", "keepDims": k}) for k, code in enumerate(("MEAN", "SUM"))),
    *((code, [IMAGE], [i(3)], {"o": "Reducer"}) for code in ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")),
    ("REDUCE_ANY", [IMAGE > 1], [i(3)], {"o": "Reducer"}),
    ("REDUCE_ALL", [IMAGE > -1], [i(3)], {"o": "Reducer"}),
    ("SOFTMAX", [r(2, 3)], [], {"o": "Softmax", "beta": 0.5}),
    ("LOG_SOFTMAX", [r(2, 3)], [], {}),
    ("L2_NORMALIZATION", [r(2, 3)], [], {"o": "L2Norm"}),
    ("ARG_MAX", [IMAGE], [np.int32(2)], {"o": "ArgMax", "outputType": 4, "out": "int64"}),
    ("ARG_MIN", [IMAGE], [np.int32(-1)], {"o": "ArgMin", "outputType": 2, "out": "int32"}),
    ("TOPK_V2", [r(2, 6)], [np.int32(3)], {"out": ("float32", "int32")}),
    ("CUMSUM", [r(2, 4)], [np.int32(1)], {"o": "Cumsum", "exclusive": True, "reverse": True}),
    # Shapes
    ("RESHAPE", [COUNTS], [i(4, -1)], {}),
    ("RESHAPE", [COUNTS], [], {"o": "Reshape", "newShape": [6, 4]}),
    ("SQUEEZE", [r(1, 3, 1)], [], {"o": "Squeeze", "squeezeDims": [-1]}),
    ("EXPAND_DIMS", [COUNTS], [np.int32(-1)], {}),
    ("TRANSPOSE", [COUNTS], [i(2, 0, 1)], {}),
    ("PAD", [IMAGE], [np.int32([[0, 0], [1, 2], [0, 1], [0, 3]])], {}),
    ("PADV2", [r(2, 3)], [np.int32([[0, 1], [2, 0]]), np.float32(5)], {}),
    ("MIRROR_PAD", [COUNTS], [np.int32([[0, 0], [2, 1], [3, 0]])], {"o": "MirrorPad"}),
    ("MIRROR_PAD", [COUNTS], [np.int32([[0, 2], [2, 1], [3, 0]])], {"o": "MirrorPad", "mode": 1}),
    ("CONCATENATION", [IMAGE, IMAGE], [], {"o": "Concatenation", "axis": -1}),
    ("CONCATENATION", [COUNTS, COUNTS], [], {"o": "Concatenation", "axis": 1}),
    ("PACK", [COUNTS, COUNTS], [], {"o": "Pack", "axis": -1, "valuesCount": 2}),
    ("UNPACK", [COUNTS], [], {"o": "Unpack", "axis": 1, "num": 3, "out": ("int32",) * 3}),
    (
        "SPLIT",
        [COUNTS],
        [np.int32(2)],
        {"o": "Split", "numSplits": 2, "out": ("int32",) * 2, "order": (1, 0)},
    ),
    ("SPLIT_V", [COUNTS], [i(1, -1), np.int32(2)], {"o": "SplitV", "numSplits": 2, "out": ("int32",) * 2}),
    ("SLICE", [COUNTS], [i(0, 1, 1), i(-1, 2, 2)], {}),
    (
        "STRIDED_SLICE",
        [COUNTS],
        [i(0, 2, -3), i(2, 0, 9), i(1, -1, 2)],
        {"o": "StridedSlice", "beginMask": 1},
    ),
    (
        "STRIDED_SLICE",
        [COUNTS],
        [i(0, 0, 3), i(0, 0, -9), i(1, 1, -2)],
        {"o": "StridedSlice", "ellipsisMask": 1, "newAxisMask": 2, "endMask": 4},
    ),
    ("STRIDED_SLICE", [COUNTS], [i(1, 0), i(2, 2), i(1, 1)], {"o": "StridedSlice", "shrinkAxisMask": 1}),
    ("TILE", [COUNTS], [i(1, 2, 2)], {}),
    ("BROADCAST_TO", [r(3, 1)], [i(2, 3, 4)], {"version": 2}),
    ("SHAPE", [COUNTS], [], {"o": "Shape", "outType": 4, "out": "int64"}),
    ("RANK", [COUNTS], [], {"out": "int32"}),
    ("RANGE", [], [np.int32(1), np.int32(9), np.int32(3)], {"out": "int32"}),
    ("FILL", [np.float32(2)], [i(2, 3)], {"order": (1, 0)}),
    ("REVERSE_V2", [COUNTS], [i(1)], {}),
    ("SPACE_TO_DEPTH", [r(1, 4, 6, 2)], [], {"o": "SpaceToDepth", "blockSize": 2}),
    ("DEPTH_TO_SPACE", [r(1, 2, 3, 8)], [], {"o": "DepthToSpace", "blockSize": 2}),
    ("SPACE_TO_BATCH_ND", [r(2, 5, 6, 3)], [i(2, 3), np.int32([[1, 0], [0, 3]])], {}),
    ("BATCH_TO_SPACE_ND", [r(12, 3, 3, 2)], [i(2, 3), np.int32([[1, 0], [0, 2]])], {}),
    ("GATHER", [COUNTS, np.int32([[2, 0], [1, 1]])], [], {"o": "Gather", "axis": 1}),
    ("GATHER", [COUNTS, np.int32([[2, 0], [1, 1]])], [], {"o": "Gather", "axis": 1, "batchDims": 1}),
    ("EMBEDDING_LOOKUP", [i(2, 0)], [r(4, 3)], {"out": "float32"}),
    ("GATHER_ND", [COUNTS, np.int32([[1, 2], [0, 1]])], [], {}),
    ("SCATTER_ND", [np.int32([[1], [3], [1]]), r(3, 2)], [i(4, 2)], {"out": "float32"}),
    (
        "ONE_HOT",
        [i(1, 0, 5)],
        [np.int32(3), np.float32(2), np.float32(-1)],
        {"o": "OneHot", "axis": -1, "out": "float32"},
    ),
    ("DYNAMIC_UPDATE_SLICE", [COUNTS, COUNTS[:1, :2, :2] + 50], [i(1, 2, 1)], {}),
    ("REVERSE_SEQUENCE", [r(2, 4, 3), i(3, 1)], [], {"o": "ReverseSequence", "seqDim": 1}),
]


def written(code, inputs, constants, settings) -> bytes:
    """The file of a case."""
    more = dict(settings)
    kinds, order, options = (more.pop(name, "") for name in ("out", "order", "o"))
    compares = any(w in code for w in COMPARE.split()) and code != "LOGICAL_NOT"
    kinds = kinds or ("bool" if compares else inputs[1 if "SELECT" in code else 0].dtype.name)
    f = File(**{f"x{k}": (x.shape, x.dtype.name) for k, x in enumerate(inputs)})
    given = [*range(len(inputs)), *map(f.constant, constants)]
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    outputs = [f.tensor(f"y{k}", (), kind) for k, kind in enumerate(kinds)]
    f.node(code, [given[k] for k in order] if order else given, *outputs, options=options, **more)
    return f.bytes(*outputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_an_operator(case):
    data = written(*case)
    model = torch.tflite.load(data, device="webgpu")
    y = model(*[torch.tensor(x, device="webgpu") for x in case[1]])
    wanted = expected(data, *case[1])
    for one, reference in zip(y if isinstance(y, tuple) else (y,), wanted, strict=True):
        found = one.cpu().numpy()
        assert (found.dtype, found.shape) == (reference.dtype, reference.shape)
        np.testing.assert_allclose(found, reference, rtol=1e-5, atol=1e-5)


def test_spectra():
    """The magnitude, and the parts, of a signal's spectrum."""
    x = r(2, 1, 16)
    f = File(x=(x.shape,))
    lengths = f.constant(i(1, 16))
    z = f.node("RFFT2D", [0, lengths], f.tensor("z", (2, 1, 9), "complex64"))
    parts = [f.node(code, [z], f.tensor(code, (2, 1, 9))) for code in ("COMPLEX_ABS", "REAL", "IMAG")]
    found = torch.tflite.load(f.bytes(*parts), device="webgpu")(np.ascontiguousarray(x))
    wanted = np.fft.rfft2(x, (1, 16))
    for one, other in zip(found, (np.abs(wanted), wanted.real, wanted.imag), strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), other, rtol=1e-4, atol=1e-4)


def test_the_page_lists_the_operators():
    page = (ROOT / "docs" / "tflite.md").read_text(encoding="utf-8")
    listed = page.split("<!-- operators -->")[1].split("<!-- /operators -->")[0]
    assert re.findall(r"`(\w+)`", listed) == sorted(tflite.TABLE)
