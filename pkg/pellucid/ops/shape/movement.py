"""Copies that move elements: clone, cast, copy_, fill_ and triangles."""

from __future__ import annotations

import numpy as np

from ...autograd.formulas import zeros
from ...errors import ShapeError, warn
from ...op.declaration import Call, function, moved, op
from ...op.inplace import in_place
from ...op.kernel import Launch, register_type
from ...op.rules import lone, same
from ...tensors.dtypes import DType
from ...tensors.formats import contiguous_format, memory_format, packed, preserve_format
from ...tensors.shape import Size
from ...tensors.tensor import Tensor


def _in_order(input: Tensor, memory_format: memory_format | None) -> Tensor | None:
    """A copy whose axes lie in another order than the usual one; None for the usual one."""
    if memory_format is None or memory_format is preserve_format:
        return None
    strides = packed(memory_format, input.shape)
    order = sorted(range(input.ndim), key=lambda axis: -strides[axis])
    if order == list(range(input.ndim)):
        return None
    back = sorted(range(input.ndim), key=order.__getitem__)
    return clone(input.permute(order)).permute(back)


@op(
    dtype=same,
    kernel=moved("input"),
    reference=lambda input, memory_format: input,
    grad={"input": lambda g: g},
    prepare=_in_order,
    method=True,
)
def clone(input: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """A copy, contiguous or in a memory format.

    Args:
        memory_format: the order of axes in memory, such as `channels_last`.
    """


@function(exports=None, method=True)
def contiguous(input: Tensor, memory_format=contiguous_format) -> Tensor:
    """The tensor itself if its elements lie in row-major order, or in that of ``memory_format``, else a copy
    that does."""
    if memory_format is preserve_format or input.is_contiguous(memory_format):
        return input
    return clone(input, memory_format=memory_format)


def warn_of_lost_parts(source: DType, target: DType) -> None:
    """Say that imaginary parts go, where they do."""
    if source.is_complex and not target.is_complex and target.kind != "b":
        warn("Casting complex values to real discards the imaginary part.")


@op(
    public="to",
    dtype=lambda call: (call["dtype"], call["input"].dtype),
    kernel=moved("input"),
    reference=lambda input, dtype: input,
    grad={"input": lambda g: g},
)
def cast(input: Tensor, dtype: DType) -> Tensor:
    """The values as another element type; floats are truncated toward zero when they become integers."""


def _copy_types(call: Call):
    warn_of_lost_parts(call["src"].dtype, call["input"].dtype)
    return call["input"].dtype, call["src"].dtype


def _copy_shape(call: Call):
    target, source = call["input"].shape, call["src"].shape
    tail = target[len(target) - len(source) :]
    if len(source) > len(target) or any(n not in (1, m) for n, m in zip(source, tail, strict=True)):
        raise ShapeError(
            f"src of shape {tuple(source)} does not broadcast to {tuple(target)}. Reshape it so that its "
            "lengths agree, counted from the right, or are 1."
        )
    return target


@op(
    dtype=_copy_types,
    shape=_copy_shape,
    kernel=moved("src"),
    reference=lambda input, src: np.broadcast_to(src, input.shape),
    grad={"input": zeros, "src": lambda g: g},
    exports=None,
    aten="copy.default(self, src, non_blocking=False)",
)
def copy(input: Tensor, src: Tensor) -> Tensor:
    """``src`` broadcast to the shape of ``input`` and converted to its dtype."""


copy_ = in_place(copy.op)


@op(
    dtype=lone("value", "copy_"),
    kernel=moved("{value}"),
    reference=lambda input, value: np.broadcast_to(value, input.shape),
    grad={"input": zeros, "value": lambda g: g},
    exact=("value",),
    fits=("value",),
    aten=("fill.Scalar", "fill.Tensor"),
)
def fill(input: Tensor, value: Tensor | float) -> Tensor:
    """One value in the shape and dtype of ``input``, whose gradient is zero."""


fill_ = in_place(fill.op)


@function()
def zero_(input: Tensor) -> Tensor:
    """Write 0 over every element; the tensor itself is returned."""
    return fill_(input, 0)


# Triangles


def _triangle_shape(call: Call) -> Size:
    shape = call["input"].shape
    if len(shape) < 2:
        raise ShapeError(f"takes at least two axes, not shape {tuple(shape)}.")
    return shape


def _triangle(keep: str):
    def launches(call: Call) -> Launch:
        m = call.out
        rows, columns = m.shape[-2:]
        diagonal = max(-rows, min(call["diagonal"], columns))  # beyond which all go or stay
        params = {"count": m.numel, "rows": rows, "columns": columns, "diagonal": diagonal}
        return Launch(
            "shape/triangle", -(-m.numel // 256), params, {"keep": keep, "T": register_type(m.dtype)}
        )

    return launches


@op(
    dtype=same,
    shape=_triangle_shape,
    kernel=_triangle("column <= row + params.diagonal"),
    reference=lambda input, diagonal: np.tril(input, diagonal),
    grad={"input": lambda g, diagonal: g.tril(diagonal)},
    in_place=True,
)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two axes; zero above the diagonal."""


@op(
    dtype=same,
    shape=_triangle_shape,
    kernel=_triangle("column >= row + params.diagonal"),
    reference=lambda input, diagonal: np.triu(input, diagonal),
    grad={"input": lambda g, diagonal: g.triu(diagonal)},
    in_place=True,
)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two axes; zero below the diagonal."""
