"""Writes the graphs that ONNX Runtime runs, with the package onnx: python graphs.py ROWS.json FOLDER

A graph for each row, NAME.onnx, with all values as inputs; and llm.onnx, a decoder of SmolLM2-135M's shape
with 4-bit matrices, whose values are in a file of their own: llm.json says how weights.py fills it.
"""

# pyright: reportMissingImports=false
# onnx lies apart from the virtual environment.

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper

FLOAT, CONTRIB = TensorProto.FLOAT, "com.microsoft"
Value = tuple[str, list[int | str]]


def save(path: Path, nodes: list, inputs: list, outputs: list, values: Sequence = ()) -> None:
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, values)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), str(path))


def floats(*values: Value) -> list:
    return [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in values]


def node(kind: str, inputs: str, output: str, **attributes):
    return helper.make_node(kind, inputs.split(), output.split(), **attributes)


def chain(row: dict) -> list:
    """The row's ops one after the other, from x to y."""
    names = ["x", *(f"t{k}" for k in range(1, row["ops"])), "y"]
    return [
        node("Add" if k % 2 else "Mul", f"{names[k]} {'c' if k % 2 else 'm'}", names[k + 1])
        for k in range(row["ops"])
    ]


def attention(tokens: int, d: int, heads: int) -> tuple[list, list]:
    """Attention of standard ops, from qh, kh and vh to mixed; and its constants."""
    split = helper.make_tensor("split", TensorProto.INT64, [4], [1, tokens, heads, d // heads])
    join = helper.make_tensor("join", TensorProto.INT64, [3], [1, tokens, d])
    scale = helper.make_tensor("scale", FLOAT, [], [(d // heads) ** -0.5])
    nodes = []
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes.append(node("Reshape", f"{name}h split", f"{name}_heads"))
        nodes.append(node("Transpose", f"{name}_heads", f"{name}_t", perm=order))
    nodes += [
        node("MatMul", "q_t k_t", "products"),
        node("Mul", "products scale", "scores"),
        node("Softmax", "scores", "shares", axis=-1),
        node("MatMul", "shares v_t", "mixed_heads"),
        node("Transpose", "mixed_heads", "mixed_t", perm=[0, 2, 1, 3]),
        node("Reshape", "mixed_t join", "mixed"),
    ]
    return nodes, [split, join, scale]


def block(attention: list) -> list:
    """One transformer block around its attention."""
    norm = {"axis": -1, "epsilon": 1e-5}
    return [
        node("LayerNormalization", "x gain shift", "h", **norm),
        *(node("MatMul", f"h {name}", f"{name}h") for name in "qkv"),
        *attention,
        node("MatMul", "mixed o", "projected"),
        node("Add", "x projected", "y1"),
        node("LayerNormalization", "y1 ff_gain ff_shift", "h2", **norm),
        node("MatMul", "h2 up", "wide"),
        node("FastGelu", "wide", "bent", domain=CONTRIB),
        node("MatMul", "bent down", "narrow"),
        node("Add", "y1 narrow", "y"),
    ]


def small(rows: dict[str, dict], folder: Path) -> None:
    """The graphs of the rows."""
    n = rows["chain"]["n"]
    vectors = floats(*((name, [n]) for name in "xmc"))
    save(folder / "chain.onnx", chain(rows["chain"]), vectors, floats(("y", [n])))
    for kind in ("Mul", "Add"):
        save(
            folder / f"{kind.lower()}.onnx",
            [node(kind, "a b", "y")],
            floats(("a", [n]), ("b", [n])),
            floats(("y", [n])),
        )
    square = floats(("a", ["M", "K"]), ("b", ["K", "N"]))
    save(folder / "matmul.onnx", [node("MatMul", "a b", "y")], square, floats(("y", ["M", "N"])))
    matrix = [rows["softmax"]["rows"], rows["softmax"]["columns"]]
    x, y = floats(("x", matrix)), floats(("y", matrix))
    save(folder / "softmax.onnx", [node("Softmax", "x", "y", axis=-1)], x, y)
    norm = node("LayerNormalization", "x gain shift", "y", axis=-1, epsilon=1e-5)
    save(folder / "layer_norm.onnx", [norm], x + floats(("gain", matrix[1:]), ("shift", matrix[1:])), y)
    save(
        folder / "sum.onnx",
        [node("ReduceSum", "x", "y", keepdims=0)],
        floats(("x", ["N"])),
        floats(("y", [])),
    )
    save(folder / "upload.onnx", [node("Identity", "x", "y")], floats(("x", ["N"])), floats(("y", ["N"])))
    row = rows["conv2d"]
    size, kernel = [row["size"]] * 2, [row["kernel"]] * 2
    save(
        folder / "conv2d.onnx",
        [node("Conv", "x w", "y", pads=[row["kernel"] // 2] * 4, kernel_shape=kernel)],
        floats(("x", [1, row["channels"], *size]), ("w", [row["out"], row["channels"], *kernel])),
        floats(("y", [1, row["out"], *size])),
    )
    row = rows["block"]
    d, ff, tokens = row["d"], row["ff"], [1, row["tokens"], row["d"]]
    vectors = [(name, [d]) for name in ("gain", "shift", "ff_gain", "ff_shift")]
    matrices = [*((name, [d, d]) for name in "qkvo"), ("up", [d, ff]), ("down", [ff, d])]
    inputs, outputs = floats(("x", tokens), *vectors, *matrices), floats(("y", tokens))
    standard, constants = attention(row["tokens"], d, row["heads"])
    save(folder / "block.onnx", block(standard), inputs, outputs, constants)
    contributed = node("MultiHeadAttention", "qh kh vh", "mixed", domain=CONTRIB, num_heads=row["heads"])
    save(folder / "block_fused.onnx", block([contributed]), inputs, outputs)


class Weights:
    """Values that lie in a file beside the graph, and how that file is filled."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._end = 0
        self.tensors: list = []
        self.fillings: list[dict] = []

    def add(
        self, name: str, kind: int, shape: list[int], nbytes: int, filling: str, scale: float = 0.0
    ) -> str:
        """A tensor of so many bytes; `filling` is a word that weights.py knows."""
        tensor = onnx.TensorProto(name=name, data_type=kind, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._file), ("offset", self._end), ("length", nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        self._end += nbytes
        self.tensors.append(tensor)
        self.fillings.append({"bytes": nbytes, "filling": filling, "scale": scale})
        return name

    def floats(self, name: str, shape: list[int], filling: str, scale: float = 0.0) -> str:
        count = 1
        for length in shape:
            count *= length
        return self.add(name, FLOAT, shape, 4 * count, filling, scale)


def linear(weights: Weights, x: str, name: str, columns: int, rows: int, y: str, block: int = 32):
    """A product with a matrix of 4-bit values with a scale and a zero point for each block."""
    blocks = columns // block
    weights.add(f"{name}.q", TensorProto.UINT8, [rows, blocks, block // 2], rows * columns // 2, "random")
    weights.floats(f"{name}.s", [rows * blocks], "constant", 0.2 * columns**-0.5)
    zeros = rows * ((blocks + 1) // 2)
    weights.add(f"{name}.z", TensorProto.UINT8, [zeros], zeros, "eights")
    inputs = f"{x} {name}.q {name}.s {name}.z"
    settings = {"K": columns, "N": rows, "bits": 4, "block_size": block, "accuracy_level": 4}
    return node("MatMulNBits", inputs, y, domain=CONTRIB, **settings)


def decoder_layer(weights: Weights, i: int, x: str, row: dict) -> list:
    """Grouped attention over a cache, then the gated feed-forward part; the output is `{i}.out`."""
    d, heads, kv, hd, ff = (row[key] for key in ("d", "heads", "kv_heads", "head_dim", "ff"))
    norm = {"axis": -1, "epsilon": 1e-5}

    def product(source: str, name: str, columns: int, rows: int):
        return linear(weights, f"{i}.{source}", f"{i}.{name}", columns, rows, f"{i}.{name}_out")

    for name in ("norm", "ff_norm"):
        weights.floats(f"{i}.{name}", [d], "ones")
    past = f"past_key_values.{i}.key past_key_values.{i}.value"
    present = f"present.{i}.key present.{i}.value"
    return [
        node("SimplifiedLayerNormalization", f"{x} {i}.norm", f"{i}.h", **norm),
        product("h", "q", d, heads * hd),
        product("h", "k", d, kv * hd),
        product("h", "v", d, kv * hd),
        node(
            "GroupQueryAttention",
            f"{i}.q_out {i}.k_out {i}.v_out {past} last total cosines sines",
            f"{i}.mixed {present}",
            domain=CONTRIB,
            num_heads=heads,
            kv_num_heads=kv,
            do_rotary=1,
            scale=hd**-0.5,
        ),
        product("mixed", "o", heads * hd, d),
        node("Add", f"{x} {i}.o_out", f"{i}.y"),
        node("SimplifiedLayerNormalization", f"{i}.y {i}.ff_norm", f"{i}.h2", **norm),
        product("h2", "gate", d, ff),
        product("h2", "up", d, ff),
        node("Sigmoid", f"{i}.gate_out", f"{i}.sigmoid"),
        node("Mul", f"{i}.gate_out {i}.sigmoid", f"{i}.silu"),
        node("Mul", f"{i}.silu {i}.up_out", f"{i}.product"),
        product("product", "down", ff, d),
        node("Add", f"{i}.y {i}.down_out", f"{i}.out"),
    ]


def decoder(row: dict, folder: Path) -> None:
    """llm.onnx and llm.json; inputs and outputs are named as exporters name them."""
    weights = Weights("llm.bin")
    d, vocabulary, layers, hd = (row[key] for key in ("d", "vocabulary", "layers", "head_dim"))
    weights.floats("embedding", [vocabulary, d], "floats", 0.05)
    weights.floats("norm", [d], "ones")
    for name in ("cosines", "sines"):
        weights.floats(name, [row["context"], hd // 2], "floats", 0.7)
    constants = [helper.make_tensor(name, TensorProto.INT64, [1], [1]) for name in ("one", "axis")]
    integer = helper.make_tensor("place", TensorProto.INT64, [], [1])
    nodes = [
        node("Gather", "embedding input_ids", "x"),
        node("ReduceSum", "attention_mask axis", "length", keepdims=0),
        node("Sub", "length one", "last_long"),
        node("Cast", "last_long", "last", to=TensorProto.INT32),
        node("Shape", "attention_mask", "mask_shape"),
        node("Gather", "mask_shape place", "total_long"),
        node("Cast", "total_long", "total", to=TensorProto.INT32),
    ]
    x = "x"
    for i in range(layers):
        nodes += decoder_layer(weights, i, x, row)
        x = f"{i}.out"
    nodes.append(node("SimplifiedLayerNormalization", f"{x} norm", "hidden", axis=-1, epsilon=1e-5))
    nodes.append(linear(weights, "hidden", "head", d, vocabulary, "logits"))
    long = TensorProto.INT64
    inputs = [
        helper.make_tensor_value_info("input_ids", long, [1, "tokens"]),
        helper.make_tensor_value_info("attention_mask", long, [1, "total"]),
    ]
    outputs = floats(("logits", [1, "tokens", vocabulary]))
    for i in range(layers):
        for part in ("key", "value"):
            inputs += floats((f"past_key_values.{i}.{part}", [1, row["kv_heads"], "past", hd]))
            outputs += floats((f"present.{i}.{part}", [1, row["kv_heads"], "total", hd]))
    save(folder / "llm.onnx", nodes, inputs, outputs, [*weights.tensors, *constants, integer])
    (folder / "llm.json").write_text(json.dumps(weights.fillings))


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    by_name = {row["name"]: row for row in json.loads(source.read_text(encoding="utf-8"))}
    small(by_name, target)
    decoder(by_name["decode"], target)
