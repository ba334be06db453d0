"""The graph of a TensorFlow Lite file as steps: nodes with their rows of the table, in an order that runs."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from ....errors import ArgumentError, FormatError
from ....weights.checkpoint import TensorInfo
from ....weights.fields import shown
from ..lowered import FileGraph, GraphStep, GraphValue, find_early, is_small, unique
from ..rows import refuse
from .constants import TensorTables, data_type, quantization
from .flat import absent
from .quantized import Quantization, lowered
from .schema import CODES, OPTIONS, fields
from .table import REFUSED, TABLE


def build(model: Any, constants: TensorTables) -> Generator[Any, Any, FileGraph]:
    """Steps that make the graph of a model's tables.

    Args:
        model: the root table.
        constants: reads its tensors.

    Raises:
        FormatError: the graph is malformed; names node and value.
        MissingError: it has operators that are not computed; lists them all.
    """
    where = constants.source.name
    if not model.subgraphs:
        raise FormatError(f"{where}: has no graph. The file is damaged.")
    return (yield from _Builder(where, model, constants).build())


class _Builder:
    """The first of a file's graphs; the others are branches of control flow."""

    def __init__(self, where: str, model: Any, constants: TensorTables):
        self.where, self.constants = where, constants
        self.codes, self.graphs, self.graph = model.operator_codes, model.subgraphs, model.subgraphs[0]
        taken: set[str] = set()
        self.names = [unique(t.name or f"tensor_{k}", taken) for k, t in enumerate(self.graph.tensors)]
        self.values: dict[str, np.ndarray | TensorInfo] = {}
        self.scales: list[Quantization | None] = []
        self.held: dict[int, str] = {}  # by the number of a handle, the name of its variable

    def build(self) -> Generator[Any, Any, FileGraph]:
        for name, t in zip(self.names, self.graph.tensors):
            at = f"{self.where}: tensor {shown(name)}"
            value = yield from self.constants.read(at, t, name)
            if value is None and t.is_variable:  # a state, which begins with zeros
                value = self.constants.zeros(at, t)
                self.held[len(self.scales)] = name
            if value is not None:
                self.values[name] = value
            self.scales.append(quantization(at, t, value is not None))
        self.refuse_missing()
        yield from self.variables()
        names: set[str] = set()
        steps = [
            self.step(k, node, names)
            for k, node in enumerate(self.graph.operators)
            if self.code(k, node) not in ("CALL_ONCE", "VAR_HANDLE")
        ]
        inputs = [self.declared(k) for k in self.graph.inputs]
        outputs = [self.declared(k) for k in self.graph.outputs]
        early = {n for n, value in self.values.items() if is_small(value) and n not in self.held.values()}
        find_early(steps, early, set(self.values))
        return FileGraph(self.where, inputs, outputs, steps, self.values, early)

    def name(self, k: int, what: str) -> str:
        if not 0 <= k < len(self.names):
            raise FormatError(
                f"{self.where}: {what} is tensor {k} of {len(self.names)}. The file is damaged."
            )
        return self.names[k]

    def declared(self, k: int) -> GraphValue:
        name = self.name(k, "an input or output of the graph")
        t = self.graph.tensors[k]
        return GraphValue(name, data_type(f"{self.where}: {shown(name)}", t.type), self.shape(k))

    def shape(self, k: int) -> tuple[int | None, ...]:
        t = self.graph.tensors[k]
        return tuple(None if n < 0 else n for n in t.shape_signature or t.shape)

    def code(self, k: int, node: Any) -> str:
        if not 0 <= node.opcode_index < len(self.codes):
            raise FormatError(
                f"{self.where}: node {k} has operator code {node.opcode_index} of {len(self.codes)}. It is "
                "damaged."
            )
        code = self.codes[node.opcode_index]
        number = max(code.builtin_code, code.deprecated_builtin_code)
        if not 0 <= number < len(CODES):
            return f"number {number}"
        return code.custom_code or "CUSTOM" if CODES[number] == "CUSTOM" else CODES[number]

    def refuse_missing(self) -> None:
        missing: dict[str, list[str]] = {}
        for k, node in enumerate(self.graph.operators):
            code = self.code(k, node)
            if code not in TABLE:
                reason = REFUSED.get(code, "")
                full = f"{code} ({reason})" if reason else shown(code).strip("'")
                missing.setdefault(full, []).append(self.called(k, node))
        refuse(self.where, missing, "docs/tflite.md")

    def called(self, k: int, node: Any) -> str:
        """A node's name is that of its first result, for it has none of its own."""
        return self.name(node.outputs[0], f"the output of node {k}") if node.outputs else f"node_{k}"

    def variables(self) -> Generator[Any, Any, None]:
        """Steps that find what outlives a call: handles by name, and the constants that they begin with."""
        first: dict[str, np.ndarray | TensorInfo] = {}
        for k, node in enumerate(self.graph.operators):
            if self.code(k, node) == "CALL_ONCE":
                number = self.options(f"{self.where}: node {k} (CALL_ONCE)", node, "CallOnce")
                index = number["init_subgraph_index"]
                if not 0 < index < len(self.graphs):
                    raise FormatError(f"{self.where}: has no graph {index} of first values. It is damaged.")
                yield from self.begin(self.graphs[index], first)
        for k, node in enumerate(self.graph.operators):
            if self.code(k, node) == "VAR_HANDLE":
                name = self.handle(k, node)
                if name not in first:
                    raise FormatError(
                        f"{self.where}: variable {shown(name)} begins with no constant. Convert the model "
                        "with its state as inputs and outputs."
                    )
                self.held.update(dict.fromkeys(node.outputs, name))
                self.values[name] = first[name]

    def handle(self, k: int, node: Any) -> str:
        options = self.options(f"{self.where}: node {k} (VAR_HANDLE)", node, "VarHandle")
        return f"variable:{options['shared_name']}"

    def begin(self, graph: Any, first: dict[str, np.ndarray | TensorInfo]) -> Generator[Any, Any, None]:
        """Steps that run a graph that gives variables their first values."""
        held: dict[int, str] = {}
        for k, node in enumerate(graph.operators):
            code = self.code(k, node)
            if code == "VAR_HANDLE":
                held.update(dict.fromkeys(node.outputs, self.handle(k, node)))
                continue
            handle, value = node.inputs if len(node.inputs) == 2 else (-1, -1)
            if code != "ASSIGN_VARIABLE" or handle not in held or not 0 <= value < len(graph.tensors):
                raise FormatError(
                    f"{self.where}: the first values of variables are computed ({code}), which is not taken. "
                    "Convert the model with its state as inputs and outputs."
                )
            at = f"{self.where}: the first value of {shown(held[handle])}"
            found = yield from self.constants.read(at, graph.tensors[value], held[handle])
            if found is None:
                raise FormatError(f"{at} is no constant. The file is damaged.")
            first[held[handle]] = found

    def step(self, k: int, node: Any, names: set[str]) -> GraphStep:
        code = self.code(k, node)
        name = unique(self.called(k, node), names)
        full = f"{self.where}: node {shown(name)} ({code})"
        row = TABLE[code]
        if len(node.inputs) > len(row.inputs) and not row.variadic:
            raise FormatError(
                f"{full} has {len(node.inputs)} inputs, and the operator takes {len(row.inputs)}. It is "
                "damaged."
            )
        attributes = self.options(full, node, row.options)
        activation = attributes.pop("fused_activation_function", 0)
        # -1 is an input that is left out.
        what = f"an input of node {shown(name)}"
        inputs = ["" if i == -1 else self.held.get(i) or self.name(i, what) for i in node.inputs]
        outputs = [self.name(i, f"an output of node {shown(name)}") for i in node.outputs]
        given = [None if i == -1 else self.scales[i] for i in node.inputs]
        if any(i in self.held and self.scales[i] for i in node.inputs):
            raise FormatError(f"{full} keeps a quantized state, which is not taken. Convert it with floats.")
        try:
            found = lowered(row, activation, given, [self.scales[i] for i in node.outputs])
        except ArgumentError as error:
            raise FormatError(f"{full}: {error}") from None
        if "kind" in row.attributes and outputs:  # the dtype of the result
            attributes["kind"] = data_type(full, self.graph.tensors[node.outputs[0]].type)
        # Without lengths it is a number, or not known.
        shapes = {n: self.shape(i) for n, i in zip(outputs, node.outputs)}
        declared = {n: GraphValue(n, None, shape) for n, shape in shapes.items() if shape}
        return GraphStep(name, found, inputs, outputs, attributes, declared=declared)

    def options(self, full: str, node: Any, table: str) -> dict[str, Any]:
        number = node.options_type
        if not table:
            return {}
        if not number:  # absent: each option is what the schema says
            return {f.name: absent(f) for f in fields(table)}
        if OPTIONS.get(number, ("",))[0] != table or node.options is None:
            raise FormatError(
                f"{full} has options of type {number}, not {table}Options. The file is damaged."
            )
        return dict(vars(node.options))
