"""Operators that fold axes, and those that compare along one."""

from __future__ import annotations

from collections.abc import Callable

from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...onnx.operators.elementwise import ops
from ...rows import Ints, Number, axis_of
from ..table import operator


def _folds(fold: Callable[[Tensor, list[int], bool], Tensor]) -> Callable:
    def run(x: Tensor, axes: Ints, *, keep_dims: bool = False):
        chosen = sorted({axis_of(a, len(x.shape)) for a in axes})
        return fold(x, chosen, keep_dims) if chosen else x

    return run


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in reversed(axes):
        x = ops.prod(x, axis, keep)
    return x


def _mean(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.dtype.is_integer:  # of whole numbers, cut
        return ops.mean(x.to(dt.float32), axes, keep).to(x.dtype)
    return ops.mean(x, axes, keep)


for _name, _fold in {
    "MEAN": _mean,
    "SUM": lambda x, axes, keep: ops.sum(x, axes, keep, dtype=x.dtype),
    "REDUCE_PROD": _product,
    "REDUCE_MAX": ops.amax,
    "REDUCE_MIN": ops.amin,
    "REDUCE_ANY": ops.any,
    "REDUCE_ALL": ops.all,
}.items():
    operator(_name, options="Reducer")(_folds(_fold))


@operator("SOFTMAX", options="Softmax")
def softmax(x: Tensor, *, beta: float = 0.0):
    return ops.softmax(x if beta == 1 else x * beta, -1)


@operator("LOG_SOFTMAX")
def log_softmax(x: Tensor):
    return ops.log_softmax(x, -1)


@operator("L2_NORMALIZATION", options="L2Norm")
def l2_normalization(x: Tensor):
    return x / ops.sqrt(ops.clamp(ops.sum(ops.square(x), -1, True), min=1e-6))


def _extreme(function: Callable) -> Callable:
    def run(x: Tensor, axis: Number, *, output_type: int = 0, kind: dt.DType = dt.int64):
        return function(x, axis_of(axis, len(x.shape))).to(kind)

    return run


operator("ARG_MAX", options="ArgMax")(_extreme(ops.argmax))
operator("ARG_MIN", options="ArgMin")(_extreme(ops.argmin))


@operator("TOPK_V2")
def top_k(x: Tensor, k: Number):
    values, places = ops.topk(x, k, -1)
    return values, places.to(dt.int32)


@operator("CUMSUM", options="Cumsum")
def cumsum(x: Tensor, axis: Number, *, exclusive: bool = False, reverse: bool = False):
    axis = axis_of(axis, len(x.shape))
    y = ops.flip(x, [axis]) if reverse else x
    y = ops.cumsum(y, axis, dtype=x.dtype) - y if exclusive else ops.cumsum(y, axis, dtype=x.dtype)
    return ops.flip(y, [axis]) if reverse else y
