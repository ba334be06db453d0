"""Files of TensorFlow Lite, written by the schema's own classes, and what the runtime computes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

PLAIN = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
KINDS = """float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64
resource"""
TYPES = {name: k for k, name in enumerate(KINDS.split())}


class File:
    """A graph that is written node by node.

    Args:
        inputs: shape, type and quantization by name.
    """

    def __init__(self, **inputs: Any):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs = [self.tensor(name, *given) for name, given in inputs.items()]
        self.graph.outputs = []

    def tensor(self, name: str, shape: Sequence[int], kind: str = "float32", q: Any = None) -> int:
        """A tensor's number. ``q`` is a scale and a zero point, or lists of these and their axis."""
        t = schema.TensorT()
        t.name, t.shape, t.type, t.buffer = name, list(shape), TYPES[kind], 0
        if q is not None:
            t.quantization = made = schema.QuantizationParametersT()
            made.scale, made.zeroPoint = (list(np.atleast_1d(part)) for part in q[:2])
            made.quantizedDimension = q[2] if len(q) > 2 else 0
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def constant(self, value: Any, q: Any = None, name: str = "") -> int:
        """The number of a constant's tensor."""
        array = np.asarray(value)
        made = self.tensor(name or f"c{len(self.graph.tensors)}", array.shape, array.dtype.name, q)
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(array.tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        self.graph.tensors[made].buffer = len(self.model.buffers) - 1
        return made

    def node(self, code: str, inputs: Sequence[int], *outputs: int, options: str = "", **fields: Any) -> Any:
        """A node with its options; the number of its first output."""
        number = getattr(schema.BuiltinOperator, code)
        known = [c.builtinCode for c in self.model.operatorCodes]
        if number not in known:
            operator = schema.OperatorCodeT()
            operator.builtinCode, operator.deprecatedBuiltinCode = number, min(number, 127)
            operator.version = fields.pop("version", 1)
            self.model.operatorCodes.append(operator)
            known.append(number)
        node = schema.OperatorT()
        node.opcodeIndex, node.inputs, node.outputs = known.index(number), list(inputs), list(outputs)
        if options:
            node.builtinOptionsType = getattr(schema.BuiltinOptions, f"{options}Options")
            node.builtinOptions = getattr(schema, f"{options}OptionsT")()
            for name, value in fields.items():
                setattr(node.builtinOptions, name, value)
        self.graph.operators.append(node)
        return outputs[0] if outputs else None

    def bytes(self, *outputs: int, more: Sequence[Any] = ()) -> bytes:
        """The file. ``more`` are other graphs."""
        self.graph.outputs = list(outputs)
        self.model.subgraphs = [self.graph, *more]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def sparse(order: list[int], blocks: list[int], levels: list[Any]) -> Any:
    """What says where sparse values lie; a level is a length, or segments and indices."""
    made = schema.SparsityParametersT()
    made.traversalOrder, made.blockMap, made.dimMetadata = order, blocks, []
    for level in levels:
        one = schema.DimensionMetadataT()
        if isinstance(level, int):
            one.format, one.denseSize = 0, level
        else:
            one.format, one.arraySegmentsType, one.arrayIndicesType = 1, 1, 3
            one.arraySegments, one.arrayIndices = schema.Int32VectorT(), schema.Uint8VectorT()
            one.arraySegments.values, one.arrayIndices.values = level
        made.dimMetadata.append(one)
    return made


def expected(data: bytes, *inputs: np.ndarray, times: int = 1) -> list[np.ndarray]:
    """What the runtime's own kernels make of the inputs, given so many times, one after the other."""
    runtime = Interpreter(model_content=data, experimental_op_resolver_type=PLAIN)
    runtime.allocate_tensors()
    made = []
    for _ in range(times):
        for detail, x in zip(runtime.get_input_details(), inputs, strict=True):
            runtime.set_tensor(detail["index"], x)
        runtime.invoke()
        made += [runtime.get_tensor(detail["index"]) for detail in runtime.get_output_details()]
    return made
