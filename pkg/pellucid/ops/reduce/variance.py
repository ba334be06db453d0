"""Variances and standard deviations along axes."""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from math import prod as product
from typing import Any

import numpy as np

from ...autograd.composed import composed
from ...autograd.grad_mode import under
from ...errors import ArgumentError, DTypeError
from ...op.arguments import boolean, number
from ...op.declaration import Call, docstring, elementwise, op
from ...op.families import called
from ...op.kernel import Launch, is_direct, rows_of
from ...op.rules import as_input, broadcast, float_only
from ...tensors.dtypes import LARGEST_HALF
from ...tensors.shape import axes
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..elementwise.complex import imag, real
from ..elementwise.functions import hypot
from .passes import runs, strip
from .reductions import _ZERO, count_of, fold, mean, mean_grad, reduced_shape, restore


def _spread_of(input: Tensor, dim, unbiased, correction) -> tuple:
    """The axes of a variance, None for all of a tensor, and the degrees of freedom."""
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise DTypeError(
            f"std and var take floating point or complex numbers, not {input.dtype}. Convert with .float()."
        )
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise ArgumentError("var: give correction or unbiased, not both")
    if unbiased is not None:
        correction = 1 if boolean(unbiased, "unbiased") else 0
    correction = 1 if correction is None else number(correction, "correction")
    dims = axes(dim, input.dim())
    count = product(input.shape[d] for d in dims)
    return (None if dim is None else dims or None), count - correction


def _variance_grad(g, input, dims, keepdim, freedom):
    g, centre = restore(g, input._meta, dims, keepdim), mean(input, dims, True)
    if dims is None and freedom <= 0:  # PyTorch's, for a whole tensor
        return g * where(input == centre, nan, inf)
    return g * (2.0 / freedom if freedom else inf) * (input - centre)


# Sums of squares may leave float32 where variances do not, variances where deviations do not, and sums where
# means do not; PyTorch adds them up in float64. In float32 a negative number stands here for its size times
# 2^168.
_FAR = 2.0**168


def _squares(x, centre, factor):
    far = x * np.asarray(_FAR**-0.5, x.dtype)
    far = far - centre * np.asarray(_FAR**-0.5, x.dtype) * factor
    near = x - centre * factor
    return np.where((np.abs(far) >= 2.0**-21) & (x.dtype == np.float32), -(far * far), near * near)


def _whole(total):
    wide = np.asarray(total, np.float64)
    return np.where(wide < 0, wide * -_FAR, wide)


def _as_sum(found, like):
    return np.where((found >= 2.0**127) & (like.dtype == np.float32), found / -_FAR, found)


@op(
    dtype=float_only, shape=broadcast, kernel=elementwise("square_of(input, centre, factor)", i32=False),
    reference=_squares, grad=None, public="var",
)  # fmt: skip
def squares(input: Tensor, centre: Tensor, factor: float) -> Tensor:
    """Squares of the distances to ``centre * factor``, as `sum_of_squares` adds them up."""


@op(
    dtype=float_only, shape=reduced_shape, kernel=fold({"f32": "squares_added(a, b)"}, _ZERO),
    reference=lambda total, dim, keepdim: _as_sum(
        _whole(total).sum(axes(dim, total.ndim), keepdims=keepdim), total
    ),
    grad=None, public="var",
)  # fmt: skip
def sum_of_squares(input: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False) -> Tensor:
    """The sum over axes of what `squares` gives, in the same form: its own range is that of no float."""


# Elements of a tile, which the registers of a workgroup's lanes hold; parts that fill a large GPU.
_TILE, _PARTS = 4096, 528
# Columns beside each other, and rows, from which on lanes take parts of columns.
_BESIDE, _LONG = 32, 64


def _about_mean(call: Call) -> list[Launch]:
    m = call["input"]
    (outer, columns, inner), = runs(m.shape, axes(call["dim"], m.rank))  # fmt: skip
    if inner > 1:
        step = strip(outer, columns, inner)
        return [Launch("reduce/variance_strips", step.grid, step.params, bind={"x": "input"})]
    params = {"outputs": outer, "columns": columns}
    if columns <= _TILE:
        lanes = rows_of(columns, outer)
        file = lanes.fill("reduce/variance_rows", {})
        return [Launch(file, lanes.grid(outer), params, bind={"x": "input"})]
    chunk = -(-columns // (_TILE * -(-_PARTS // outer))) * _TILE
    params |= {"parts": -(-columns // chunk), "chunk": chunk}
    return [Launch("reduce/variance_split", outer * params["parts"], params, bind={"x": "input"})]


def _about_mean_reference(input, dim, keepdim):
    wide = input.astype(np.float64)
    dims = axes(dim, input.ndim)
    with np.errstate(all="ignore"):
        found = np.square(wide - wide.mean(dims, keepdims=True)).sum(dims, keepdims=keepdim)
    return _as_sum(found, input)


@op(
    dtype=float_only, shape=reduced_shape, kernel=_about_mean, reference=_about_mean_reference, grad=None,
    public="var",
)  # fmt: skip
def squares_about_mean(
    input: Tensor, dim: int | tuple[int, ...] | None = None, keepdim: bool = False
) -> Tensor:
    """The sum of the squares of the distances from the mean, of rows or of long columns, in the form of
    `sum_of_squares`."""


def _is_one_pass(input: Tensor, dims) -> bool:
    """Whether what a variance is of is read once: by a GPU, and on the cpu device, in float64."""
    m = input._meta
    if m.device.type == "cpu":
        return m.numel > 0
    if m.device.type != "webgpu" or not m.is_contiguous or not m.numel or is_direct():
        return False
    found = runs(m.shape, axes(dims, m.rank))
    _, reduced, inner = found[0]
    return len(found) == 1 and (inner == 1 or (inner >= _BESIDE and reduced >= _LONG))


@op(
    dtype=float_only, shape=as_input,
    reference=lambda input, freedom, root: (np.sqrt if root else np.positive)(_whole(input) / freedom),
    kernel=elementwise(lambda call: f"squares_{('over', 'root')[call['root']]}(input, freedom)", i32=False),
    grad=None, public="var",
)  # fmt: skip
def variance_of(input: Tensor, freedom: float, root: bool) -> Tensor:
    """The variance, or its root, of which `sum_of_squares` has given the sum."""


def _centre(input: Tensor, dims) -> tuple[Tensor, float]:
    """The mean, and a power of two that it is divided by: no sum of numbers so divided leaves float32."""
    factor = 2.0 ** (count_of(input._meta, dims).bit_length() + 1)
    return mean(_wide(input) * (1 / factor), dims, True), factor


def _wide(input: Tensor) -> Tensor:
    """Halves as float32: their squares add up past what they hold."""
    return input.float() if input.dtype in LARGEST_HALF else input


def _spread(root: bool, input: Tensor, dims, keepdim: bool, freedom: float, centre) -> Tensor:
    """The variance or deviation."""
    if centre is None and _is_one_pass(input, dims):
        total = squares_about_mean(_wide(input), dims, keepdim)
    else:
        total = sum_of_squares(squares(_wide(input), *(centre or _centre(input, dims))), dims, keepdim)
    return variance_of(total, freedom if freedom > 0 else 0.0, root).to(input.dtype)


@composed(name="var", input=_variance_grad)
def _variance(input: Tensor, dims, keepdim: bool, freedom: float, centre=None) -> Tensor:
    return _spread(False, input, dims, keepdim, freedom, centre)


def _deviation_grad(g, input, dims, keepdim, freedom, out):
    # Of equal values the slope is infinite; there it is taken as 0.
    return _variance_grad((g / (out * 2)).masked_fill(out == 0, 0.0), input, dims, keepdim, freedom)


@composed(name="std", input=_deviation_grad)
def _deviation(input: Tensor, dims, keepdim: bool, freedom: float, centre=None) -> Tensor:
    return _spread(True, input, dims, keepdim, freedom, centre)


@composed(name="mean", input=mean_grad)
def _mean(input: Tensor, dim, keepdim: bool, centre) -> Tensor:
    """The mean, which is finite where the sum is not."""
    plain, whole = mean(input, dim, keepdim), centre[0] * centre[1]
    return where(plain.isinf(), whole.reshape(plain.shape).to(plain.dtype), plain)


def _of_parts(spread_of: Callable, input: Tensor, dims, keepdim: bool, freedom: float) -> Tensor:
    """Of complex numbers: that of both parts together, which is real."""
    a, b = (spread_of(part, dims, keepdim, freedom) for part in (real(input), imag(input)))
    if spread_of is _variance:
        return a + b
    # The slope of a deviation of 0 is taken as 0.
    nothing = (a == 0) & (b == 0)
    return hypot(a.masked_fill(nothing, 1.0), b).masked_fill(nothing, 0.0)


def _over(name: str, spread_of: Callable, doc: str, with_mean: bool = False) -> Any:
    """Declare a variance or deviation, or the pair of one and the mean."""

    def call(
        input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None,
    ):  # fmt: skip
        dims, freedom = _spread_of(input, dim, unbiased, correction)
        if input.dtype.is_complex:
            found = _of_parts(spread_of, input, dims, keepdim, freedom)
            return (found, mean(input, dims, keepdim)) if with_mean else found
        if not with_mean:
            return spread_of(input, dims, keepdim, freedom)
        centre = under(False, _centre, input, dims)
        return spread_of(input, dims, keepdim, freedom, centre), _mean(input, dims, keepdim, centre)

    call.__annotations__["return"] = "tuple[Tensor, Tensor]" if with_mean else "Tensor"
    # The older two overloads say whether it is unbiased.
    older = f"{name}.default(self, unbiased=True)", f"{name}.dim(self, dim, unbiased=True, keepdim=False)"
    return called(name, doc, call, method=not with_mean, aten=(*older, f"{name}.correction"))


_ARGS = {
    "input": "floating point or complex; of complex numbers the result is real.",
    "dim": "axis or axes; all if None. A bool here is ``unbiased``.",
    "unbiased": "True means correction=1, False correction=0.",
    "correction": "what is taken from the count; 1 unless given.",
}
var = _over(
    "var",
    _variance,
    docstring("Variance over axes: ``sum((input - mean)^2) / max(count - correction, 0)``.", {"Args": _ARGS}),
)
std = _over("std", _deviation, "Standard deviation over axes: the square root of `var`, same arguments.")
var_mean = _over("var_mean", _variance, "``(var(input, ...), mean(input, ...))``.", True)
std_mean = _over("std_mean", _deviation, "``(std(input, ...), mean(input, ...))``.", True)
