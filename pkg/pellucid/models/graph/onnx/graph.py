"""The graph of an ONNX file as steps: nodes with their rows of the table, in an order that runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ....errors import FormatError, MissingError
from ....weights.checkpoint import TensorInfo
from ....weights.fields import shown
from ..lowered import FileGraph, GraphStep, GraphValue, find_early, is_small, unique
from ..rows import refuse
from .constants import TYPES, Constants, data_type
from .functions import inlined
from .table import REFUSED, find

NEWEST = 28  # the opset up to which the table was compared with the standard's tests


def build(model: Any, constants: Constants) -> FileGraph:
    """The graph of a model's message.

    Args:
        model: the message.
        constants: reads its tensors.

    Raises:
        FormatError: the graph is malformed; names node and value.
        MissingError: it has operators that are not computed; lists them all.
    """
    where = constants.name
    if not model.HasField("graph") or not model.opset_import:
        raise FormatError(f"{where}: has no graph with an opset. It is no ONNX model, or damaged.")
    graph = model.graph
    opsets = {_domain(o.domain): o.version for o in model.opset_import}
    if opsets.get("", 0) > NEWEST:
        raise MissingError(
            f"{where}: is of opset {opsets['']}, and operators up to opset {NEWEST} are known here. "
            "Export it with an older opset."
        )
    if graph.sparse_initializer:
        raise FormatError(f"{where}: has sparse initializers, which are not taken. Export them dense.")
    values: dict[str, np.ndarray | TensorInfo] = {}
    for k, message in enumerate(graph.initializer):
        name = _name(where, message.name, f"initializer {k}")
        if name in values:
            raise FormatError(f"{where}: has two initializers {shown(name)}. The file is damaged.")
        values[name] = constants.read(message, f"initializer {shown(name)}")
    inputs = [_declared(where, v) for v in graph.input if v.name not in values]
    nodes = inlined(where, graph.node, model.functions)
    steps = _steps(where, nodes, opsets, constants, values)
    outputs = [_declared(where, v) for v in graph.output]
    _compare(where, graph, {i.name: i for i in inputs}, steps, values)
    early = {name for name, value in values.items() if is_small(value)}
    find_early(steps, early, set(values))
    return FileGraph(where, inputs, outputs, steps, values, early)


def _name(where: str, name: str, what: str) -> str:
    if not name:
        raise FormatError(f"{where}: {what} has no name. The file is damaged.")
    return name


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _declared(where: str, value: Any) -> GraphValue:
    name = _name(where, value.name, "an input or output of the graph")
    if not value.HasField("type"):
        return GraphValue(name, None, None)
    if not value.type.HasField("tensor_type"):
        raise MissingError(
            f"{where}: {shown(name)} is a sequence, map or optional value, which are no tensors. Export the "
            "model with tensors as its inputs and outputs."
        )
    tensor = value.type.tensor_type
    return GraphValue(name, data_type(f"{where}: {shown(name)}", tensor.elem_type), _shape(tensor))


def _shape(tensor: Any) -> tuple[int | str | None, ...] | None:
    if not tensor.HasField("shape"):
        return None
    # A length that is not known is written as nothing, a name, "?", 0 or -1.
    return tuple(
        (d.dim_param if d.dim_param.isidentifier() else None) or max(d.dim_value, 0) or None
        for d in tensor.shape.dim
    )


def _compare(
    where: str,
    graph: Any,
    inputs: dict[str, GraphValue],
    steps: list[GraphStep],
    values: dict[str, np.ndarray | TensorInfo],
) -> None:
    """Have steps know what is declared of their outputs; refuse what differs from what is there at once."""
    makers = {name: step for step in steps for name in step.outputs if name}
    for value in (*graph.value_info, *graph.output, *graph.input):
        tensor = value.type.tensor_type
        known = GraphValue(value.name, TYPES.get(tensor.elem_type, ("", None))[1], _shape(tensor))
        step, constant = makers.get(value.name), values.get(value.name)
        there = step.declared.get(value.name) if step is not None else inputs.get(value.name)
        if constant is not None:
            there = GraphValue(value.name, None, tuple(constant.shape))
        if there is not None and not known.fits(there.shape, there.dtype):
            by = f"node {shown(step.name)}, which makes it, also gives" if step is not None else "it is"
            raise FormatError(
                f"{where}: declares {known!r}, and {by} {there!r}. The file contradicts itself: export it "
                "again, or take that declaration out of it."
            )
        if step is not None and there is None:
            step.declared[value.name] = known


def _steps(
    where: str, nodes: Iterable[Any], opsets: dict[str, int], constants: Constants, values: dict[str, Any]
) -> list[GraphStep]:
    steps: list[GraphStep] = []
    names: set[str] = set()
    missing: dict[str, list[str]] = {}
    for k, node in enumerate(nodes):
        kind = _name(where, node.op_type, f"node {k} ({shown(node.name)})")
        name = unique(node.name or f"{kind}_{k}", names)
        domain = _domain(node.domain)
        if kind == "Constant" and not domain:
            attributes = {a.name: _attribute(where, name, a, constants) for a in node.attribute}
            made = node.output[0] if len(node.output) == 1 else ""
            values[_name(where, made, f"the output of {shown(name)}")] = _constant(where, name, attributes)
            continue
        row = find(domain, kind, opsets.get(domain, NEWEST if domain else 0))
        full = f"{domain}.{kind}" if domain else kind
        if row is None:
            reason = REFUSED.get(kind, "") if not domain else ""
            missing.setdefault(f"{full} ({reason})" if reason else full, []).append(name)
            continue
        attributes = {a.name: _attribute(where, name, a, constants) for a in node.attribute}
        extra = sorted(set(attributes) - row.attributes)
        if extra:
            raise FormatError(
                f"{where}: node {shown(name)} ({full}) has attributes that the operator does not have in "
                f"opset {opsets.get(domain)}: {shown(extra)}. The file is damaged, or newer than this reader."
            )
        if len(node.input) > len(row.inputs) and not row.variadic:
            raise FormatError(
                f"{where}: node {shown(name)} ({full}) has {len(node.input)} inputs, and the operator takes "
                f"{len(row.inputs)}. The file is damaged."
            )
        steps.append(GraphStep(name, row, list(node.input), list(node.output), attributes))
    refuse(where, missing, "docs/onnx.md")
    return steps


_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}


def _attribute(where: str, node: str, a: Any, constants: Constants) -> Any:
    kind = _FIELDS.get(a.type) or next((n for n in _FIELDS.values() if getattr(a, n, None)), "i")
    if kind == "t":
        return constants.read(a.t, f"node {shown(node)}: attribute {a.name}")
    value = getattr(a, kind)
    try:
        if kind == "s":
            return value.decode()
        return value if kind in "fi" else [v.decode() for v in value] if kind == "strings" else list(value)
    except UnicodeDecodeError:
        raise FormatError(
            f"{where}: node {shown(node)}: attribute {a.name} is not UTF-8. The file is damaged."
        ) from None


def _constant(where: str, name: str, attributes: dict[str, Any]) -> np.ndarray | TensorInfo:
    for kind, dtype in (
        ("value", None), ("value_float", np.float32), ("value_int", np.int64),
        ("value_floats", np.float32), ("value_ints", np.int64),
    ):  # fmt: skip
        if kind in attributes:
            return attributes[kind] if dtype is None else np.array(attributes[kind], dtype)
    raise MissingError(
        f"{where}: node {shown(name)} (Constant) has {', '.join(attributes) or 'no value'}, which is not "
        "taken. Use one with a dense tensor, numbers or lists of numbers."
    )
