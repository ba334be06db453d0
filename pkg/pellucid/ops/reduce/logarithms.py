"""Logarithms of sums of exponentials along axes: logsumexp."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

import numpy as np

from ...op.call import Call
from ...op.declaration import function, op
from ...op.kernel import Launch
from ...op.rules import float_only
from ...tensors import dtypes as dt
from ...tensors.shape import axes
from ...tensors.tensor import Tensor
from .reductions import Through, fold, fold_into, reduced_shape, restore, sum

# The largest goes with the sum of exponentials beside it: what is read is read once, and there is one
# logarithm at the end.
LOG_SUM, NO_EXPONENTIALS = "log_sum_pair(a, b)", "vec2<f32>(infinity(-1.0), 0.0)"
LOGARITHM = Through("vec2<f32>", "vec2<f32>(value, 1.0)", "value.x + log_of(value.y)")
# A lane looks for the largest of several before it makes exponentials.
_SHARE = "lane_log_sum({0}, {1} * params.inner, (max(end, first) - first + {1} - 1u) / {1})"
_OF_ROWS = {"share": _SHARE.format("start", "LANES")}
_OF_STRIPS = {"share": _SHARE.format("base + first * params.inner", "STRIPS")}
_HOLES = {"rows": _OF_ROWS, "split_rows": _OF_ROWS, "strips": _OF_STRIPS, "split_strips": _OF_STRIPS}
_SUM = LOGARITHM._replace(holes=_HOLES)
_PAIR = _SUM._replace(result="value", out="vec2<f32>")


def pairs_into(call: Call, out: str) -> list[Launch]:
    """The launches that find these pairs."""
    return fold_into(call, out, {"f32": LOG_SUM}, {"f32": NO_EXPONENTIALS}, through={"f32": _PAIR})


def _numpy(x: np.ndarray, dim, keepdim: bool) -> np.ndarray:
    dims = axes(dim, x.ndim)
    x = x.astype(np.float64)
    with np.errstate(all="ignore"):
        largest = x.max(dims, keepdims=True)
        largest = np.where(np.isinf(largest), 0.0, largest)
        total = np.log(np.exp(x - largest).sum(dims, keepdims=True)) + largest
    return total if keepdim else total.squeeze(dims)


@op(
    dtype=float_only, shape=reduced_shape, reference=_numpy, public="logsumexp",
    kernel=fold({"f32": LOG_SUM}, {"f32": NO_EXPONENTIALS}, through={"f32": _SUM}),
    grad={"input": lambda g, input, out, dim, keepdim: _grad(g, input, out, dim, keepdim)},
)  # fmt: skip
def log_of_sum(input: Tensor, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """`logsumexp` of real numbers, of which there are some."""


def _grad(g, input, out, dim, keepdim):
    out = restore(out, input._meta, dim, keepdim)
    return restore(g, input._meta, dim, keepdim) * (input - out).exp()


@function(method=True, node="Logsumexp")
def logsumexp(input: Tensor, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """``log(sum(exp(input), dim))`` without overflow.

    Args:
        input: floating point or complex; integers become the default float.
        dim: axis or axes.
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        input = input.to(dt.get_default_dtype())
    if input.numel() == 0:
        return sum(input.exp(), dim, keepdim).log()
    if not input.dtype.is_complex:
        return log_of_sum(input, dim, keepdim)
    largest = input.detach().real.amax(dim, True)
    largest = largest.masked_fill(largest.isinf(), 0.0)
    total = sum((input - largest).exp(), dim, True).log() + largest
    return total if keepdim else total.squeeze(axes(dim, input.dim()))
