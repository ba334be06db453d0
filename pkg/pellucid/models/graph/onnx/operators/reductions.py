"""Operators that fold axes: sums, means, extrema, running sums, the largest few."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...rows import Ints, Number, axes_of, axis_of
from ..table import operator, row
from .elementwise import ops


def _product(x: Tensor, axes: list[int]) -> Tensor:
    for axis in axes:
        x = ops.prod(x, axis, True)
    return x


def _extremum(function: Callable, empty: Callable) -> Callable[[Tensor, list[int]], Tensor]:
    def run(x: Tensor, axes: list[int]) -> Tensor:
        if x.dtype is dt.bool_:
            return run(x.to(dt.uint8), axes).to(dt.bool_)
        if any(not x.shape[a] for a in axes):
            sizes = [1 if k in axes else n for k, n in enumerate(x.shape)]
            return ops.full(sizes, empty(x.dtype), dtype=x.dtype, device=x.device)
        return function(x, axes, True)

    return run


def _bound(sign: int) -> Callable:
    def run(dtype: dt.DType):
        if dtype.is_floating_point:
            return sign * float("inf")
        limits = np.iinfo(dtype.numpy)
        return limits.max if sign > 0 else limits.min

    return run


_REDUCTIONS: dict[str, Callable[[Tensor, list[int]], Tensor]] = {
    "ReduceSum": lambda x, axes: ops.sum(x, axes, True),
    "ReduceMean": lambda x, axes: ops.mean(x if x.dtype.is_floating_point else x.to(dt.float32), axes, True),
    "ReduceProd": _product,
    "ReduceMax": _extremum(ops.amax, _bound(-1)),
    "ReduceMin": _extremum(ops.amin, _bound(1)),
    "ReduceL1": lambda x, axes: ops.sum(ops.abs(x), axes, True),
    "ReduceL2": lambda x, axes: ops.sqrt(ops.sum(x * x, axes, True)),
    "ReduceSumSquare": lambda x, axes: ops.sum(x * x, axes, True),
    "ReduceLogSum": lambda x, axes: ops.log(ops.sum(x, axes, True)),
    "ReduceLogSumExp": lambda x, axes: ops.logsumexp(x, axes, True),
}


def _reduction(function: Callable[[Tensor, list[int]], Tensor]) -> Callable:
    def run(data: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0):
        rank = len(data.shape)
        if not axes:
            axes = [] if noop_with_empty_axes else list(range(rank))
        chosen = axes_of(axes, rank)
        # Every element by itself: what a sum of one makes of it still counts.
        x = function(data, chosen) if chosen else function(data.unsqueeze(0), [0]).squeeze(0)
        if not keepdims:
            x = x.reshape([n for k, n in enumerate(data.shape) if k not in chosen])
        return x.to(data.dtype)

    return run


for _name, _function in _REDUCTIONS.items():
    row(_name, _reduction(_function))


def _place_of_extremum(function: Callable) -> Callable:
    def run(data: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0):
        axis = axis_of(axis, len(data.shape))
        if not select_last_index:
            return function(data, axis, bool(keepdims))
        return data.shape[axis] - 1 - function(ops.flip(data, [axis]), axis, bool(keepdims))

    return run


row("ArgMax", _place_of_extremum(ops.argmax))
row("ArgMin", _place_of_extremum(ops.argmin))


def _running(function: Callable, neutral: int) -> Callable:
    def run(x: Tensor, axis: Number, *, exclusive: int = 0, reverse: int = 0):
        axis = axis_of(int(axis), len(x.shape))
        y = ops.flip(x, [axis]) if reverse else x
        y = function(y, axis).to(x.dtype)
        if exclusive and x.shape[axis]:
            first = ops.full_like(y.narrow(axis, 0, 1), neutral)
            y = ops.cat([first, y.narrow(axis, 0, x.shape[axis] - 1)], axis)
        return ops.flip(y, [axis]) if reverse else y

    return run


row("CumSum", _running(ops.cumsum, 0), since=11)
row("CumProd", _running(ops.cumprod, 1), since=26)


@operator("TopK")
def top_k(x: Tensor, k: Number, *, axis: int = -1, largest: int = 1, sorted: int = 1):
    values, indices = ops.sort(x, axis, bool(largest), True)
    return values.narrow(axis, 0, int(k)), indices.narrow(axis, 0, int(k))


def _flat(function: Callable[[Tensor, int], Tensor]) -> Callable:
    """Before opset 13 all axes from ``axis`` on are one row."""

    def run(x: Tensor, *, axis: int = 1):
        first = axis_of(axis, len(x.shape))
        rows = x.reshape(int(np.prod(x.shape[:first], dtype=np.int64)), -1)
        return function(rows, 1).reshape(x.shape)

    return run


def _along(function: Callable[[Tensor, int], Tensor]) -> Callable:
    def run(x: Tensor, *, axis: int = -1):
        return function(x, axis_of(axis, len(x.shape)))

    return run


def _hardmax(x: Tensor, axis: int) -> Tensor:
    places = ops.arange(x.shape[axis], device=x.device)
    places = places.reshape([-1 if k == axis else 1 for k in range(len(x.shape))])
    return (places == ops.argmax(x, axis, True)).to(x.dtype)


for _name, _function in {"Softmax": ops.softmax, "LogSoftmax": ops.log_softmax, "Hardmax": _hardmax}.items():
    row(_name, _flat(_function))
    row(_name, _along(_function), since=13)
