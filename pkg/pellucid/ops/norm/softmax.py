"""Softmax and its logarithm along an axis."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...errors import DTypeError
from ...op.declaration import Call, docstring, op
from ...op.families import formed
from ...op.kernel import LONG, Launch, Params, flag, is_direct, load, per_element, rows_of
from ...op.rules import as_input, float_only
from ...tensors import dtypes as dt
from ...tensors.dtypes import DType
from ...tensors.shape import axis
from ...tensors.tensor import Tensor
from ..reduce.logarithms import pairs_into
from ..reduce.reductions import sum

# For an axis that is not the last: as many rows, or columns as few, are worth only a lane a row.
_MANY, _SHORT = 2048, 64
# Lanes that fill a large GPU: with fewer rows, lanes take parts of columns, of rows as near as these.
_FULL, _NEAR = 1 << 17, 32
# Neighbours in a column that a lane makes.
_HEIGHT = 8


def _types(call: Call):
    d = call["dtype"] or call["input"].dtype
    if not d.is_floating_point:
        raise DTypeError(
            f"softmax of {d}: its values lie between 0 and 1. Give dtype=pellucid.float32, or convert the "
            f"input with .float()."
        )
    axis(call["dim"], call["input"].rank)
    return d, d


def _launches(call: Call, log: bool) -> list[Launch]:
    shape = call["input"].shape
    k = axis(call["dim"], len(shape))
    columns = shape[k] if shape else 1
    inner = prod(shape[k + 1 :])
    rows = call.out.numel // max(columns, 1)
    holes = {"LOG": flag(log)}
    params: Params = {"rows": rows, "columns": columns, "inner": inner}
    bind = {"x": "input"}
    parts = min(-(-columns // _SHORT), _FULL // max(rows, 1))
    if inner >= _NEAR and parts > 1 and not is_direct():
        call.temporary("state", (rows,), dt.complex64)
        params["parts"] = -(-columns // _HEIGHT)
        file = load("norm/softmax_columns_finish").fill(holes)
        return [*pairs_into(call, "state"), per_element(file, rows * params["parts"], params, bind=bind)]
    if inner > 1 and (rows >= _MANY or columns <= _SHORT):
        return [Launch(load("norm/softmax_columns").fill(holes), -(-rows // 64), params, bind=bind)]
    lanes = rows_of(columns, rows)
    if lanes.quads and inner == 1:
        del params["inner"]
        return [Launch(lanes.fill("norm/softmax_held", holes), lanes.grid(rows), params, bind=bind)]
    if columns < LONG or (rows >= 256 and not is_direct()):
        alone = rows_of(columns, rows, several=False)
        return [Launch(alone.fill("norm/softmax_rows", holes), rows, params, bind=bind)]
    chunk = 2048 if is_direct() else 1024
    parts = -(-columns // chunk)
    lanes = rows_of(chunk, rows * parts, several=False)
    params |= {"parts": parts, "chunk": chunk}
    call.temporary("state", (rows, parts, 2))
    return [
        Launch(lanes.fill("norm/softmax_parts", holes), rows * parts, params, bind=bind),
        Launch(lanes.fill("norm/softmax_finish", holes), rows * parts, params, bind=bind),
    ]


def _numpy(x: np.ndarray, dim: int, log: bool) -> np.ndarray:
    x = x.astype(np.float64)
    if x.size == 0:
        return x
    if x.ndim == 0:
        return _numpy(x.reshape(1), 0, log).reshape(())
    shifted = x - x.max(dim, keepdims=True)
    total = np.exp(shifted).sum(dim, keepdims=True)
    return shifted - np.log(total) if log else np.exp(shifted) / total


def _along(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor: ...


def _softmax(name: str, log: bool, grad: Callable, sentence: str, dim: str, example: str = "") -> Callable:
    """Declare a softmax or its logarithm."""
    sections: dict[str, dict[str, str] | str] = {
        "Args": {"input": "floating point.", "dim": dim, "dtype": "type to convert to first."},
        "Raises": {"DTypeError": "an integer tensor.", "DimensionError": "the axis is out of range."},
    }
    return op(
        dtype=_types,
        shape=as_input,
        kernel=lambda call: _launches(call, log),
        reference=lambda input, dim, dtype: _numpy(input, dim, log),
        grad={"input": grad},
        method=True,
        aten=f"{name}.int",
    )(formed(_along, name, docstring(sentence, sections, example)))


softmax = _softmax(
    "softmax", False, lambda g, out, dim: out * (g - sum(g * out, dim, True)),
    "``out_i = exp(x_i) / sum_j exp(x_j)`` along an axis; a row of only -inf gives NaN.",
    "the axis along which the results sum to 1.",
    """>>> import pellucid as torch
>>> torch.softmax(torch.zeros(4, device="cpu"), 0).tolist()
[0.25, 0.25, 0.25, 0.25]""",
)  # fmt: skip
log_softmax = _softmax(
    "log_softmax", True, lambda g, out, dim: g - out.exp() * sum(g, dim, True),
    "``out_i = x_i - log(sum_j exp(x_j))`` along an axis, without overflow.",
    "the axis along which the exponentials of the results sum to 1.",
)  # fmt: skip


def _share_launches(call: Call) -> list[Launch]:
    count = call.out.numel
    call.temporary("state", (count,), dt.complex64)
    return [*pairs_into(call, "state"), per_element("norm/log_share", count, {"count": count})]


def _numpy_share(picked: np.ndarray, input: np.ndarray, dim: int) -> np.ndarray:
    x = input.astype(np.float64)
    largest = x.max(dim, keepdims=True)
    total = np.log(np.exp(x - largest).sum(dim, keepdims=True))
    return (picked - largest.squeeze(dim)) - total.squeeze(dim)


@op(
    dtype=float_only, shape=lambda call: call["picked"].shape, kernel=_share_launches, reference=_numpy_share,
    grad=None, public="cross_entropy",
)  # fmt: skip
def log_share(picked: Tensor, input: Tensor, dim: int) -> Tensor:
    """`log_softmax` along an axis, of one element of each line."""
