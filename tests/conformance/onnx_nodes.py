"""The node tests of the ONNX standard, run here: `scripts/conformance onnx` runs all, for docs/onnx.md.

Every case of ``onnx.backend.test`` has a model of one node (or of the nodes that its operator is a function
of), inputs and outputs. A case is left out, with a reason, where it has types that no tensor here holds,
random numbers, or an operator out of scope.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pellucid as torch
from pellucid.errors import DTypeError, MissingError, PellucidError
from pellucid.models.graph.onnx.constants import TYPES
from pellucid.models.graph.onnx.table import MICROSOFT, REFUSED, TABLE

_RANDOM = {
    "Bernoulli",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
}
_NOTHING = {"float64", "complex128"}  # what webgpu does not hold
# Cases of what was added after opset 23 count when the operator is there, else not.
NEWEST = 23


class Case(NamedTuple):
    """A case: its name, the operator that it is about, the model and the sets of inputs and outputs."""

    name: str
    operator: str
    model: Any
    sets: list[tuple[list, list]]
    rtol: float
    atol: float


@cache
def cases() -> list[Case]:
    """All cases of the standard's operators."""
    from onnx.backend.test.case.node import collect_testcases  # noqa: F401
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    operators = {k.name: k.model.graph.node[0] for k in found if len(k.model.graph.node)}
    out = []
    for k in found:
        base = re.sub(r"_expanded(_ver\d+)?$", "", re.sub(r"_expanded_function_.*$", "", k.name))
        node = operators.get(base, operators.get(k.name))
        if node is None:
            continue
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        out.append(Case(k.name, name, k.model, k.data_sets or [], k.rtol, k.atol))
    return out


def left_out(case: Case, device: str) -> str:
    """Why a case does not count on a device; "" for one that does."""
    for node in case.model.graph.node:
        if node.op_type in REFUSED:
            return REFUSED[node.op_type].split(",")[0]
        if node.op_type in _RANDOM or (node.op_type == "Dropout" and "train" in case.name):
            return "random numbers"
        if node.domain not in ("", "ai.onnx", "com.microsoft"):
            return f"domain {node.domain}"
    opset = max((o.version for o in case.model.opset_import if not o.domain), default=0)
    missing = [n.op_type for n in case.model.graph.node if ("", n.op_type) not in TABLE]
    if opset > NEWEST and missing:
        return f"newer than opset {NEWEST}"
    for number in _types(case.model):
        name, dtype = TYPES.get(number, ("?", None))
        if dtype is None or number in (21, 22):
            return f"type {name}"
        if device == "webgpu" and dtype.name in _NOTHING:
            return f"type {name} on webgpu"
    return ""


def _types(model: Any) -> Iterator[int]:
    graph = model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.type.tensor_type.elem_type
    for tensor in graph.initializer:
        yield tensor.data_type
    for node in graph.node:
        for a in node.attribute:
            if a.name in ("to", "dtype", "output_dtype", "softmax_precision") and a.i:
                yield a.i
            if a.HasField("t"):
                yield a.t.data_type


def failure(case: Case, device: str) -> str:
    """What is wrong with our results; "" for nothing."""
    try:
        model = torch.onnx.load(case.model.SerializeToString(), device=device)
        for inputs, wanted in case.sets:
            given = [_tensor(x, device) for x in inputs]
            out = model(*given)
            out = out if isinstance(out, tuple) else (out,)
            for k, (a, b) in enumerate(zip(out, wanted, strict=True)):
                if wrong := _difference(a, b, case):
                    return f"output {k}: {wrong}"
    except (PellucidError, MissingError, DTypeError) as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"! {type(error).__name__}: {error}"
    return ""


def _array(x: Any) -> np.ndarray:
    if hasattr(x, "SerializeToString"):
        from onnx.numpy_helper import to_array

        return to_array(x)
    return np.asarray(x)


def _tensor(x: Any, device: str) -> Any:
    x = _array(x)
    if x.dtype.name == "bfloat16":
        return torch.tensor(x.astype(np.float32), device=device).to(torch.bfloat16)
    return torch.tensor(x, device=device)


def _difference(ours: Any, wanted: Any, case: Case) -> str:
    wanted = _array(wanted)
    name = wanted.dtype.name
    if ours.dtype.name != name:
        return f"is {ours.dtype.name}, expected {name}"
    a = ours.to(torch.float32).numpy() if name == "bfloat16" else ours.numpy()
    b = wanted.astype(np.float32) if name == "bfloat16" else wanted
    if a.shape != b.shape:
        return f"has shape {a.shape}, expected {b.shape}"
    # Halves are rounded more often where they are computed in their own type.
    rtol, atol = (max(case.rtol, 5e-3), 5e-3) if name in ("float16", "bfloat16") else (case.rtol, 1e-6)
    if not np.allclose(a, b, rtol, max(atol, case.atol), equal_nan=True):
        if a.dtype.kind == "b":
            return f"{np.sum(a != b)} of {a.size} differ"
        with np.errstate(all="ignore"):
            return f"differs by {np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64)))}"
    return ""


class Row(NamedTuple):
    """Of one operator: cases that pass, cases that count, and why others do not count."""

    passed: Counter
    counted: Counter
    out: Counter
    failures: list[str]


def results(devices: tuple[str, ...], only: str = "") -> dict[str, Row]:
    """Every operator's row; ``only`` is a pattern of operators."""
    rows: dict[str, Row] = {}
    for case in cases():
        if only and not re.fullmatch(only, case.operator):
            continue
        row = rows.setdefault(case.operator, Row(Counter(), Counter(), Counter(), []))
        for device in devices:
            reason = left_out(case, device)
            if reason:
                row.out[reason] += 1
                continue
            row.counted[device] += 1
            wrong = failure(case, device)
            if wrong:
                row.failures.append(f"{case.name} on {device}: {wrong}")
            else:
                row.passed[device] += 1
    return rows


DEVICES = ("cpu", "webgpu")
PAGE = Path(__file__).parents[2] / "docs" / "onnx.md"
BEGIN, END = "<!-- nodes -->", "<!-- /nodes -->"


def table(rows: dict[str, Row]) -> str:
    """The rows as the page has them."""
    from onnx import defs

    lines = [
        "",
        "| operator | in opsets | cpu | webgpu | cases left out |",
        "| --- | --- | --- | --- | --- |",
    ]
    standard = {s.name for s in defs.get_all_schemas() if not s.domain and not s.deprecated}
    for name in sorted({*rows, *(n for d, n in TABLE if not d and n in standard)}):
        row = rows.get(name, Row(Counter(), Counter(), Counter(), []))
        said = "; ".join(sorted(row.out))
        if ("", name) not in TABLE:
            if said:
                lines.append(f"| {name} | not computed | | | {said} |")
            continue
        since = ", ".join(f"{r.since}" for r in TABLE["", name])
        counts = [f"{row.passed[d]} of {row.counted[d]}" if row.counted[d] else "" for d in DEVICES]
        lines.append(f"| {name} | {since} | {' | '.join(counts)} | {said} |")
    passed, counted = (sum((r[k] for r in rows.values()), Counter()) for k in (0, 1))
    total = ", ".join(f"{passed[d]} of {counted[d]} on {d}" for d in DEVICES)
    added = ", ".join(sorted(f"`{n}`" for d, n in TABLE if d == MICROSOFT))
    lines += ["", f"Of com.microsoft, compared with onnxruntime: {added}."]
    return "\n".join([f"Cases of onnx {version('onnx')} that pass: {total}.", *lines])


def main() -> None:
    """Run all cases, print what fails, and write the table of docs/onnx.md."""
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    rows = results(DEVICES, only)
    for name, row in sorted(rows.items()):
        print(
            name, *(f"{row.passed[d]}/{row.counted[d]} on {d}" for d in DEVICES), *sorted(row.out), sep=", "
        )
        for text in row.failures:
            print("   ", text)
    if not only:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
