"""scatter_reduce and index_reduce: products, means and extremes of what goes to each place."""

from __future__ import annotations

import numpy as np

from ...autograd.formulas import without
from ...autograd.grad_mode import is_grad_enabled
from ...errors import DTypeError, RangeError, ShapeError
from ...op.declaration import function, op
from ...tensors import dtypes as dt
from ...tensors.shape import axis
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..elementwise.complex import conj
from .gather import (
    gather,
    scatter_add,
    scatter_launches,
    scatter_lines,
    scatter_reference,
    scatter_shape,
    scatter_types,
    within,
)

# By reduction: expressions over a and b by register type, numpy's function, and what leaves a value as it is.
_WAYS: dict[str, tuple[dict[str, str], np.ufunc, float]] = {
    "prod": (
        dict.fromkeys(("f32", "i32", "u32"), "a * b")
        | {"vec2<u32>": "i64_mul(a, b)", "vec2<f32>": "complex_mul(a, b)"},
        np.multiply,
        1,
    ),
    "amax": (
        {"f32": "nan_max(a, b)", "i32": "max(a, b)", "u32": "max(a, b)", "vec2<u32>": "i64_max(a, b)"},
        np.maximum,
        -1,
    ),
    "amin": (
        {"f32": "nan_min(a, b)", "i32": "min(a, b)", "u32": "min(a, b)", "vec2<u32>": "i64_min(a, b)"},
        np.minimum,
        1,
    ),
}  # fmt: skip
# Of values ``{0}``, by register type: words whose order is theirs, from the other end for a minimum, and what
# makes values of such words.
_WORDS = {
    "amax": {
        "f32": ("largest_word({0})", "extreme_float({0})"),
        "i32": ("(bitcast<u32>({0}) ^ 0x80000000u)", "bitcast<i32>({0} ^ 0x80000000u)"),
        "u32": ("{0}", "{0}"),
    },
    "amin": {
        "f32": ("~smallest_word({0})", "extreme_float(~{0})"),
        "i32": ("(bitcast<u32>({0}) ^ 0x7fffffffu)", "bitcast<i32>({0} ^ 0x7fffffffu)"),
        "u32": ("~{0}", "~{0}"),
    },
}  # fmt: skip


def _input_grad(g, input, dim, index, src, reduce, own, out):
    if reduce == "prod":
        whole = input.masked_fill(input == 0, 1)
        return g * conj(scatter_combined(whole, dim, index, src, reduce) / whole)
    return without(_shared(g, input, dim, index, src, own, out), input != out)


def _src_grad(g, input, dim, index, src, reduce, own, out):
    if reduce != "prod":
        shared = _shared(g, input, dim, index, src, own, out)
        return without(gather(shared, dim, index), src != gather(out, dim, index))
    # A factor of 0 that is alone at its place has the product of the others.
    zero = src == 0
    zeros = scatter_add(out.new_zeros(out.shape), dim, index, zero.to(out.dtype))
    alone = zero & (gather(zeros, dim, index) == 1)
    others = scatter_combined(input, dim, index, src.masked_fill(alone, 1), reduce)
    plain = gather(g * conj(out), dim, index) / conj(src.masked_fill(zero, 1))
    return where(alone, gather(g * conj(others), dim, index), plain)


def _shared(g, input, dim, index, src, own, out):
    """The gradient of an extreme, in equal parts for all that have its value.

    PyTorch counts the input's own value among them also where it takes no part; its share is nobody's.
    """
    equal = (src == gather(out, dim, index)).to(out.dtype)
    return g / scatter_add(((input if own is None else own) == out).to(out.dtype), dim, index, equal)


@op(
    public="scatter_reduce",
    dtype=scatter_types,
    shape=scatter_shape,
    kernel=lambda call: scatter_launches(call, _WAYS[call["reduce"]][0], _WORDS.get(call["reduce"])),
    reference=lambda input, dim, index, src, reduce, own: scatter_reference(
        input, dim, index, src, _WAYS[reduce][1], "scatter_reduce"
    ),
    grad={"input": _input_grad, "src": _src_grad},
)
def scatter_combined(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, own: Tensor | None = None
) -> Tensor:
    """Combine sources with what lies at their places; index and sources of one shape.

    The gradient of extremes counts ``own``: what lay in the input before, where it takes no part.
    """


def _neutral(d: dt.DType, reduce: str) -> float:
    """What a reduction begins with where the input does not take part."""
    side = _WAYS[reduce][2]
    if reduce == "prod" or d is dt.bool_:
        return side > 0
    if d.is_floating_point:
        return side * float("inf")
    ends = np.iinfo(d.numpy)
    return int(ends.max if side > 0 else ends.min)


def _reduced(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    if reduce in ("sum", "mean"):
        base = input
        if not include_self:
            base = within(scatter_lines, input, dim, index, src.new_zeros(src.shape))
        total = within(scatter_add, base, dim, index, src)
        if reduce == "sum":
            return total
        counted = dt.float32 if input.dtype.is_complex else input.dtype
        ones = src.new_ones(src.shape, dtype=counted)
        own = input.new_full(input.shape, int(include_self), dtype=counted)
        count = within(scatter_add, own, dim, index, ones).clamp_min(1)
        return total / count if input.dtype.kind in "fc" else total.div(count, rounding_mode="floor")
    own = None
    if not include_self:
        if reduce != "prod" and is_grad_enabled() and (input.requires_grad or src.requires_grad):
            own = input.detach()
        neutral = src.new_full(src.shape, _neutral(src.dtype, reduce))
        input = within(scatter_lines, input, dim, index, neutral)

    def write(part: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
        covered = None if own is None else own[tuple(slice(n) for n in part.shape)]
        return scatter_combined(part, dim, index, src, reduce, covered)

    return within(write, input, dim, index, src)


def _known(name: str, reduce: str, known: tuple[str, ...], d: dt.DType, combined: tuple[str, ...]) -> None:
    """Refuse what is not one of the known ways to reduce, and of complex numbers what is not ``combined``."""
    if reduce not in known:
        raise RangeError(f"{name}: reduce={reduce!r} is not known. Give one of {', '.join(known)}.")
    if d.is_complex and reduce not in combined:
        raise DTypeError(
            f"{name}: reduce={reduce!r} takes no complex tensors. Work on their real and imaginary parts."
        )


@function(method=True, in_place=True, aten="scatter_reduce.two", node="ScatterReduce")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of ``input`` in which each place along an axis combines the sources that go there:
    ``out[index[i][j]][j] = reduce(out[index[i][j]][j], src[i][j])`` for dim 0, and so on.

    Args:
        input: any dtype; complex numbers have no order, so no "amax" and "amin".
        dim: the axis that is looked up.
        index: integers from 0 to the axis' length - 1.
        src: at least as long as the index along every axis, same dtype.
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether the input's own values take part; what nothing goes to stays.

    Returns:
        A tensor like ``input``.

    Raises:
        DTypeError: complex numbers have no such reduction.
        IndexError: at the next read, an index is out of range.
        RangeError: the reduction is not known.

    Example:
        >>> import pellucid as torch
        >>> x, at = torch.tensor([1.0, 2.0], device="cpu"), torch.tensor([0, 0, 1], device="cpu")
        >>> x.scatter_reduce(0, at, torch.tensor([4.0, 3.0, 5.0], device="cpu"), "amax").tolist()
        [4.0, 5.0]
    """
    numbers = ("sum", "prod", "mean")
    _known("scatter_reduce", reduce, (*numbers, "amax", "amin"), input.dtype, numbers)
    return _reduced(input, dim, index, src, reduce, include_self)


@function(method=True, in_place=True, node="IndexReduce")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A copy of ``input`` in which each line of an axis combines the lines of ``source`` that go there:
    ``out[index[n]] = reduce(out[index[n]], source[n])`` for dim 0, and so on.

    Args:
        input: any real dtype.
        index: (n,) integers from 0 to the axis' length - 1.
        source: the input's shape, but n along the axis; same dtype.
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether the input's own values take part; lines that nothing goes to stay.

    Returns:
        A tensor like ``input``.

    Raises:
        DTypeError: complex numbers have no such reduction.
        IndexError: at the next read, an index is out of range.
        RangeError: the reduction is not known.
        ShapeError: the source does not fit.
    """
    _known("index_reduce", reduce, ("prod", "mean", "amax", "amin"), input.dtype, ())
    shape = tuple(input.shape)
    if not shape:
        made = index_reduce(input.reshape(1), 0, index, source.reshape(1), reduce, include_self=include_self)
        return made.reshape(())
    k = axis(dim, len(shape))
    wanted = (*shape[:k], index.numel(), *shape[k + 1 :])
    if index.dim() > 1 or tuple(source.shape) != wanted:
        raise ShapeError(
            f"index_reduce: index {tuple(index.shape)} and source {tuple(source.shape)} must be a vector and "
            f"{wanted}."
        )
    line = [-1 if j == k else 1 for j in range(len(shape))]
    return _reduced(input, dim, index.reshape(line).expand(wanted), source, reduce, include_self)
