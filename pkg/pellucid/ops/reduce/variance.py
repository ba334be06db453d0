"""Variances and standard deviations along axes."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from math import prod as product

import numpy as np

from ...autograd.composed import composed
from ...errors import ArgumentError
from ...op.arguments import boolean, number
from ...op.declaration import op
from ...op.elementwise import elementwise
from ...op.public import function
from ...op.rules import as_input, float_only
from ...tensors.dtypes import LARGEST_HALF
from ...tensors.shape import axes
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from .reductions import _ZERO, _fold, mean, no_complex, reduced_shape, restore


def _overloads(name: str) -> tuple[str, ...]:
    """ATen's overloads of a variance; the older two say whether it is unbiased."""
    older = "{0}.default(self, unbiased=True)", "{0}.dim(self, dim, unbiased=True, keepdim=False)"
    return *[each.format(name) for each in older], f"{name}.correction"


def _correction(unbiased, correction):
    if unbiased is not None and correction is not None:
        raise ArgumentError("var: give correction or unbiased, not both")
    if unbiased is not None:
        return 1 if boolean(unbiased, "unbiased") else 0
    return 1 if correction is None else number(correction, "correction")


def _spread_of(input: Tensor, dim, unbiased, correction) -> tuple:
    """The axes of a variance, None for all of a tensor, and the degrees of freedom."""
    no_complex("var", input)
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = _correction(unbiased, correction)
    dims = axes(dim, input.dim())
    count = product(input.shape[d] for d in dims)
    return (None if dim is None else dims or None), count - correction


def _variance_grad(g, input, dims, keepdim, freedom):
    g, centre = restore(g, input._meta, dims, keepdim), mean(input, dims, True)
    if dims is None and freedom <= 0:  # PyTorch's, for a whole tensor
        return g * where(input == centre, nan, inf)
    return g * (2.0 / freedom if freedom else inf) * (input - centre)


# Sums of squares may leave float32 where variances do not, and variances where deviations do not; PyTorch
# adds them up in float64. In float32 a negative number stands here for its size times 2^120.
_FAR = 2.0**120


def _squares(x):
    far = x * np.asarray(_FAR**-0.5, x.dtype)
    return np.where((np.abs(x) >= 2.0**63) & (x.dtype == np.float32), -(far * far), x * x)


def _whole(total):
    wide = np.asarray(total, np.float64)
    return np.where(wide < 0, wide * -_FAR, wide)


def _sum_of_squares(total, dim, keepdim):
    found = _whole(total).sum(axes(dim, total.ndim), keepdims=keepdim)
    return np.where((found >= 2.0**127) & (total.dtype == np.float32), found / -_FAR, found)


@op(
    dtype=float_only, shape=as_input, kernel=elementwise("square_of(input)", i32=False), reference=_squares,
    grad=None, public="var",
)  # fmt: skip
def squares(input: Tensor) -> Tensor:
    """Squares, as `sum_of_squares` adds them up."""


@op(
    dtype=float_only, shape=reduced_shape, kernel=_fold({"f32": "squares_added(a, b)"}, _ZERO),
    reference=_sum_of_squares, grad=None, public="var",
)  # fmt: skip
def sum_of_squares(input: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    """The sum over axes of what `squares` gives, in the same form: its own range is that of no float."""


@op(
    dtype=float_only, shape=as_input, kernel=elementwise("squares_over(input, freedom)", i32=False),
    reference=lambda input, freedom: _whole(input) / freedom, grad=None, public="var",
)  # fmt: skip
def variance_of(input: Tensor, freedom: float) -> Tensor:
    """The variance of which `sum_of_squares` has given the sum."""


@op(
    dtype=float_only, shape=as_input, kernel=elementwise("squares_root(input, freedom)", i32=False),
    reference=lambda input, freedom: np.sqrt(_whole(input) / freedom), grad=None, public="std",
)  # fmt: skip
def deviation_of(input: Tensor, freedom: float) -> Tensor:
    """The standard deviation of which `sum_of_squares` has given the sum."""


def _spread(made: Callable, input: Tensor, dims, keepdim: bool, freedom: float) -> Tensor:
    """The variance or deviation, of halves in float32: their squares add up past what they hold."""
    wide = input.float() if input.dtype in LARGEST_HALF else input
    total = sum_of_squares(squares(wide - mean(wide, dims, True)), dims, keepdim)
    return made(total, freedom if freedom > 0 else 0.0).to(input.dtype)


@composed(name="var", input=_variance_grad)
def _variance(input: Tensor, dims, keepdim: bool, freedom: float) -> Tensor:
    return _spread(variance_of, input, dims, keepdim, freedom)


def _deviation_grad(g, input, dims, keepdim, freedom, out):
    # Of equal values the slope is infinite; there it is taken as 0.
    return _variance_grad((g / (out * 2)).masked_fill(out == 0, 0.0), input, dims, keepdim, freedom)


@composed(name="std", input=_deviation_grad)
def _deviation(input: Tensor, dims, keepdim: bool, freedom: float) -> Tensor:
    return _spread(deviation_of, input, dims, keepdim, freedom)


@function(
    method=True,
    aten=_overloads("var"),
)
def var(
    input: Tensor,
    dim=None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Variance over axes: ``sum((input - mean)^2) / max(count - correction, 0)``.

    Args:
        input: floating point.
        dim: axis or axes; all if None. A bool here is ``unbiased``.
        unbiased: True means correction=1, False correction=0.
        keepdim: keep the axes, with length 1.
        correction: what is taken from the count; 1 unless given.

    Source: https://pytorch.org/docs/stable/generated/torch.var.html
    """
    dims, freedom = _spread_of(input, dim, unbiased, correction)
    return _variance(input, dims, keepdim, freedom)


@function(
    method=True,
    aten=_overloads("std"),
)
def std(
    input: Tensor,
    dim=None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation over axes: the square root of `var`, same arguments.

    Source: https://pytorch.org/docs/stable/generated/torch.std.html
    """
    dims, freedom = _spread_of(input, dim, unbiased, correction)
    return _deviation(input, dims, keepdim, freedom)


@function(aten=_overloads("var_mean"))
def var_mean(
    input: Tensor,
    dim=None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
):
    """``(var(input, ...), mean(input, ...))``.

    Source: https://pytorch.org/docs/stable/generated/torch.var_mean.html
    """
    dims = None if isinstance(dim, bool) else dim
    return var(input, dim, unbiased, keepdim, correction=correction), mean(input, dims, keepdim)


@function(aten=_overloads("std_mean"))
def std_mean(
    input: Tensor,
    dim=None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
):
    """``(std(input, ...), mean(input, ...))``.

    Source: https://pytorch.org/docs/stable/generated/torch.std_mean.html
    """
    dims = None if isinstance(dim, bool) else dim
    return std(input, dim, unbiased, keepdim, correction=correction), mean(input, dims, keepdim)
