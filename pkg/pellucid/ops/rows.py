"""Writing whole rows at indices, and tuples of index tensors: what ``x[i, j]`` and ``x[i, j] = v`` come down to."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .. import dtype as dt
from ..errors import DTypeError, ShapeError
from ..kernel import Launch, load, register_type
from ..op import Call, as_input, op
from ..shape import Size, axis, broadcast_shapes
from .index import integers, outside, select_launch
from .sort import order_launches

if TYPE_CHECKING:
    from ..tensor import Tensor


def _types(call: Call):
    integers(call, "index")
    x, src = call["input"], call["src"]
    if x.dtype is not src.dtype:
        raise DTypeError(f"'input' is {x.dtype} and 'src' is {src.dtype}. They must be equal.")
    return x.dtype, x.dtype


def _shape(call: Call) -> Size:
    x, index, src = call["input"], call["index"], call["src"]
    if x.rank != 2 or index.rank != 1 or tuple(src.shape) != (index.numel, x.shape[1]):
        raise ShapeError(f"input {tuple(x.shape)}, index {tuple(index.shape)}, src {tuple(src.shape)}: give (rows, width), (n,), (n, width).")
    return x.shape


def _launches(call: Call, add: bool) -> list[Launch]:
    x, index = call["input"], call["index"]
    kind = register_type(x.dtype)
    count = index.numel
    call.temporary("keys", (max(count, 1),), dt.uint32)
    params = {"count": count, "limit": x.shape[0], "sources": max(count, 1), "inner": 1}
    before = [Launch("index/scatter_keys", -(-count // 64), params, bind={"out": "keys"})] if count else []
    before += order_launches(call, "keys", dt.uint32, 1, max(count, 1), False, "order")
    holes = {"T": kind, "ADD": str(add).lower(), "apply": "i64_add(a, b)" if kind == "vec2<u32>" else "a + b"}
    params = {"count": x.numel, "sources": count, "width": x.shape[1]}
    return [*before, Launch(load("index/segments").fill(holes), -(-x.numel // 64), params, bind={"x": "input"})]


def _add_reference(input, index, src):
    outside(index, input.shape[0], "add_rows")
    out = input.copy()
    np.add.at(out, index, src)
    return out


def _put_reference(input, index, src):
    outside(index, input.shape[0], "put_rows")
    out = input.copy()
    last = dict(zip(index.tolist(), range(index.size), strict=True))
    out[list(last)] = src[list(last.values())]
    return out
