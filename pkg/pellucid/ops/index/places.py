"""Reading and writing at places: take, put, index_add, index_copy, index_fill, masked_scatter, argwhere."""

from __future__ import annotations

from math import prod

from ...errors import DimensionError, DTypeError, RangeError, ShapeError
from ...op.arguments import any_number, integers
from ...op.public import function
from ...tensors import dtypes as dt
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..shape.creation import arange, full
from ..shape.joining import stack
from ..shape.movement import contiguous
from ..shape.views import broadcast_tensors
from .rows import add_rows
from .selection import nonzero


def _line(dim: int, rank: int, at: Tensor) -> list[Tensor | None]:
    """Indices that take whole lines of an axis."""
    return [*[None] * axis(dim, rank), at.reshape(-1)]


def _check_line(name: str, index: Tensor) -> None:
    """Refuse what is no vector of integers: a mask would be places, and not as many."""
    if not index.dtype.is_integer:
        raise DTypeError(f"{name}: index is {index.dtype}; it must be int64. Convert it with .long().")
    if index.dim() > 1:
        raise DimensionError(f"{name}: index has shape {tuple(index.shape)}; it must be a vector.")


@function(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The indices of all elements that are not zero, one in each row. Waits for the device."""
    return nonzero(input)


@function(method=True, node="Take")
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements by their places in the flat tensor, in the shape of ``index``.

    Raises:
        IndexError: at the next read, a place is out of range.
    """
    if not index._meta.dtype.is_integer:
        raise DTypeError(f"take: index is {index._meta.dtype}; it must be int64. Convert it with .long().")
    return input.reshape(-1)[index]


@function(method=True, in_place=True, node="Put")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with ``source`` at places of the flat tensor, or added there.

    Args:
        input: any tensor.
        index: places, integers.
        source: as many elements, of the same dtype.
        accumulate: whether they are added.

    Raises:
        ShapeError: another number of elements.
        IndexError: at the next read, a place is out of range.
    """
    if index._meta.numel != source._meta.numel:
        raise ShapeError(f"put: {index._meta.numel} places for {source._meta.numel} elements.")
    if source._meta.dtype is not input._meta.dtype:
        raise DTypeError(f"put: source is {source._meta.dtype} and input {input._meta.dtype}. Convert one.")
    flat = input.reshape(-1).index_put((index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.reshape(input._meta.shape)


@function(method=True, in_place=True, node="IndexAdd")
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float | complex = 1
) -> Tensor:
    """A copy of ``input`` with ``out[..., index[n], ...] += alpha * source[..., n, ...]``, in the order of n.

    Args:
        input: any dtype.
        index: (n,) integers from 0 to the axis' length - 1.
        source: the input's shape, but n along the axis; same dtype.
        alpha: factor of the source.

    Raises:
        IndexError: at the next read, an index is out of range.
        ShapeError: the source does not fit.
    """
    k, alpha = axis(dim, input.dim()), any_number(alpha, "alpha")
    index = index if index.dim() else index.reshape(1)
    if not input.dim() and not source.dim():
        return index_add(input.reshape(1), 0, index, source.reshape(1), alpha=alpha).reshape(())
    expected = (*input.shape[:k], index.numel(), *input.shape[k + 1 :])
    if tuple(source.shape) != expected or not input.dim():
        raise ShapeError(f"index_add: source has shape {tuple(source.shape)}; it must have {expected}.")
    rows, source = input.transpose(0, k), source.transpose(0, k)
    width, added = prod(rows.shape[1:]), source if alpha == 1 else source * alpha
    base = rows.reshape(rows.shape[0], width)
    out = add_rows(index, added.reshape(source.shape[0], width), rows.shape[0], base)
    return contiguous(out.reshape(rows.shape).transpose(0, k))


@function(method=True, in_place=True, node="IndexCopy")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """A copy with lines of an axis replaced: ``out[..., index[n], ...] = source[..., n, ...]``.

    Args:
        input: any dtype.
        index: (n,) integers.
        source: the input's shape, but n along the axis; same dtype.

    Raises:
        ShapeError: the source does not fit.
        IndexError: at the next read, an index is out of range.
    """
    shape = input._meta.shape
    _check_line("index_copy", index)
    if not shape:
        return index_copy(input.reshape(1), dim, index, source.reshape(1)).reshape(())
    k = axis(dim, len(shape))
    expected = (*shape[:k], index._meta.numel, *shape[k + 1 :])
    if tuple(source._meta.shape) != expected:
        given = tuple(source._meta.shape)
        raise ShapeError(f"index_copy: source has shape {given}; it must have {expected}.")
    if source._meta.dtype is not input._meta.dtype:
        raise DTypeError(
            f"index_copy: source is {source._meta.dtype}, input {input._meta.dtype}. Convert one."
        )
    return input.index_put(_line(k, len(shape), index), source)


@function(
    method=True, in_place=True, aten=("index_fill.int_Scalar", "index_fill.int_Tensor"), node="IndexFill"
)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | float | complex) -> Tensor:
    """A copy with lines of an axis filled: ``out[..., index[n], ...] = value``.

    Args:
        input: any dtype.
        index: (n,) integers.
        value: a number or a tensor without axes.

    Raises:
        ShapeError: the value has axes.
        IndexError: at the next read, an index is out of range.
    """
    m = input._meta
    _check_line("index_fill", index)
    if not m.shape:
        return index_fill(input.reshape(1), dim, index, value).reshape(())
    if isinstance(value, Tensor) and value._meta.rank:
        raise ShapeError(f"index_fill: value has shape {tuple(value._meta.shape)}; give one number.")
    line = _line(dim, m.rank, index)
    if isinstance(value, Tensor):
        # A mask, so that a line that is named twice counts once in the value's gradient.
        k = axis(dim, m.rank)
        picked = full((m.shape[k],), False, dtype=dt.bool_, device=m.device)
        picked = picked.index_put(line[-1:], full((), True, dtype=dt.bool_, device=m.device))
        shape = [-1 if j == k else 1 for j in range(m.rank)]
        return where(picked.reshape(shape), value.to(m.device, m.dtype), input)
    filled = full((), any_number(value, "value"), dtype=m.dtype, device=m.device)
    return input.index_put(line, filled)


@function(method=True, in_place=True, node="MaskedScatter")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """A copy with the elements of ``source``, in order, where ``mask`` is true.

    Args:
        input: any dtype.
        mask: bool; both broadcast together.
        source: at least as many elements, of the same dtype.

    Raises:
        DTypeError: the mask is not bool, or dtypes differ.
        IndexError: at the next read, the source has too few elements.
    """
    if mask._meta.dtype is not dt.bool_:
        raise DTypeError(f"masked_scatter: the mask is {mask._meta.dtype}, not bool. Compare it first.")
    if source._meta.dtype is not input._meta.dtype:
        raise DTypeError(
            f"masked_scatter: source is {source._meta.dtype} and input {input._meta.dtype}. Convert one."
        )
    input, mask = broadcast_tensors(input, mask)
    if not input._meta.numel:
        return input.clone()
    flat = mask.reshape(-1)
    # Where the mask is false, the place is that of an element which is not taken: it must be there.
    places = where(flat, flat.cumsum(0) - 1, 0)
    if not source._meta.numel:
        source = source.new_zeros(1)
        places = places + flat.to(dt.int64)
    taken = source.reshape(-1)[places]
    return where(flat, taken, input.reshape(-1)).reshape(input._meta.shape)


@function(ours="made of remainder and floor_divide in PyTorch, in Python")
def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Flat places as places along each axis of a shape.

    Raises:
        DTypeError: the places are no integers.
        RangeError: a negative length.
    """
    if not indices._meta.dtype.is_integer:
        raise DTypeError(f"unravel_index: indices are {indices._meta.dtype}; they must be integers.")
    lengths = integers((shape,) if isinstance(shape, int) else shape, "unravel_index: shape")
    if min(lengths, default=0) < 0:
        raise RangeError(f"unravel_index: shape {lengths} has a negative length.")
    found, indices = [], indices.long()
    for length in reversed(lengths):
        found.append(indices % length)
        indices = indices // length
    return tuple(reversed(found))


@function(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first ``size`` indices of elements that are not zero, then rows of ``fill_value``. Does not
    wait."""
    size, shape = index(size, "nonzero_static: size"), input._meta.shape
    if size < 0:
        raise RangeError(f"nonzero_static: size must not be negative, not {size}.")
    value = index(fill_value, "nonzero_static: fill_value")
    out = full((size + 1, len(shape)), value, dtype=dt.int64, device=input.device)
    if not (shape and input._meta.numel and size):
        return out[:size]
    found = (input != 0).reshape(-1)
    order = found.cumsum(0) - 1
    # What is not taken goes into the row behind the last.
    rows = where(found & (order < size), order, size)
    columns = stack([*unravel_index(arange(input._meta.numel, device=input.device), tuple(shape))], 1)
    return out.index_put((rows,), columns)[:size]
