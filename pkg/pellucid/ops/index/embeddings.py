"""Tables of vectors: rows of bounded norm, bags of rows, gradients by frequency."""

from __future__ import annotations

from ...autograd import no_grad
from ...autograd.composed import composed
from ...errors import ArgumentError, DimensionError, DTypeError, RangeError, ShapeError
from ...op.arguments import number
from ...op.public import function
from ...tensors.dtypes import int64
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..linalg.norms import norm
from ..reduce.reductions import sum
from ..shape.creation import arange
from ..shape.grids import triu_indices
from .counting import searchsorted
from .places import index_copy
from .rows import add_rows
from .rows import embedding as rows_of
from .scatter_reduce import index_reduce

_MODES = ("sum", "mean", "max")


@no_grad
def _renew(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are looked up, in place, where they are longer than ``max_norm``."""
    flat = indices.reshape(-1)
    rows = rows_of(weight, flat)
    length = norm(rows, norm_type, -1, True)
    scaled = where(length > max_norm, rows * (max_norm / (length + 1e-7)), rows)
    weight.copy_(index_copy(weight, 0, flat, scaled))


@composed(name="embedding", rows=lambda g, factor: g * factor)
def _counted(rows: Tensor, factor: Tensor) -> Tensor:
    """The rows; their gradient is multiplied."""
    return rows.view_as(rows)


def _looked_up(name: str, indices: Tensor, weight: Tensor, padding_idx: int, settings: tuple) -> Tensor:
    max_norm, norm_type, scale_grad_by_freq, sparse = settings
    if sparse:
        raise ArgumentError(f"{name}: gradients are dense here. Leave out sparse=True.")
    if max_norm is not None:
        _renew(weight, indices, number(max_norm, f"{name}: max_norm"), number(norm_type, "norm_type"))
    out = rows_of(weight, indices, padding_idx)
    if not scale_grad_by_freq or not out.requires_grad:
        return out
    flat = indices.reshape(-1)
    ones = out.new_ones((flat.numel(), 1))
    counts = rows_of(add_rows(flat, ones, weight.shape[0]), flat)
    return _counted(out, (1 / counts).reshape(*indices.shape, 1))


def row_of(name: str, padding_idx: int | None, rows: int) -> int:
    """A row that counts for nothing, from the front; -1 if there is none."""
    if padding_idx is None:
        return -1
    place = index(padding_idx, f"{name}: padding_idx")
    if not -rows <= place < rows:
        raise DimensionError(f"{name}: padding_idx {padding_idx} is not one of the {rows} rows.")
    return place % rows


@function(exports="nn.functional", ours="the form of nn.functional; `pellucid.embedding` is that of ATen")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table: ``out[..., :] = weight[input[...], :]``.

    Args:
        input: any shape, integers from 0 to rows - 1.
        weight: (rows, columns), float or quantized.
        padding_idx: a row that gets no gradient; negative ones count from the end.
        max_norm: rows that are looked up are scaled down to this norm first, in place.
        norm_type: order of that norm.
        scale_grad_by_freq: divide the gradient of a row by how often it is looked up.
        sparse: refused: gradients are dense.

    Raises:
        DimensionError: ``padding_idx`` is no row.
        IndexError: at the next read, an index is out of range.
    """
    if len(weight.shape) != 2:
        raise ShapeError(f"embedding: weight has shape {tuple(weight.shape)}; it must be (rows, columns).")
    row = row_of("embedding", padding_idx, weight.shape[0])
    settings = max_norm, norm_type, scale_grad_by_freq, sparse
    return _looked_up("embedding", input, weight, row, settings)


def _bags(input: Tensor, offsets: Tensor | None, include_last_offset: bool) -> tuple[Tensor, int]:
    """The bag of every index, and how many bags there are; what lies behind the last has the number after."""
    if input.dim() == 2:
        if offsets is not None:
            raise ShapeError("embedding_bag: rows of a matrix are the bags: offsets must be None.")
        count, length = input.shape
        return arange(count, device=input.device).repeat_interleave(length), count
    if input.dim() != 1 or offsets is None or offsets.dim() != 1:
        raise ShapeError(
            f"embedding_bag: input has shape {tuple(input.shape)}; it must be (bags, length), or (n,) with "
            "offsets of shape (bags,)."
        )
    if not offsets.dtype.is_integer:
        raise DTypeError(f"embedding_bag: offsets are {offsets.dtype}; they must be integers.")
    places = arange(input.numel(), device=input.device)
    last = 1 if include_last_offset else 0
    return searchsorted(offsets.to(int64).contiguous(), places, right=True) - 1, offsets.numel() - last


@function(exports="nn.functional", ours="ATen's has four results", node="EmbeddingBag")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or largest of the rows of every bag of indices; 0 for a bag without any.

    Args:
        input: (bags, length), or (n,): integers from 0 to rows - 1.
        weight: (rows, columns).
        offsets: (bags,) where the bags begin in an input of one axis.
        max_norm, norm_type, scale_grad_by_freq, sparse: as `embedding` has them.
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor of every index, with mode "sum".
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that counts for nothing.

    Returns:
        (bags, columns).

    Raises:
        ShapeError: the shapes do not fit.
    """
    if mode not in _MODES:
        raise RangeError(f"embedding_bag: mode must be one of {', '.join(_MODES)}, not {mode!r}.")
    if mode == "max" and scale_grad_by_freq:
        raise RangeError("embedding_bag: max mode does not support scaling the gradient by the frequency.")
    if weight.dim() != 2:
        given = tuple(weight.shape)
        raise ShapeError(f"embedding_bag: weight has shape {given}; it must be (rows, columns).")
    if per_sample_weights is not None:
        if mode != "sum":
            raise DTypeError("embedding_bag: per_sample_weights need mode='sum'.")
        if tuple(per_sample_weights.shape) != tuple(input.shape):
            raise ShapeError(
                f"embedding_bag: per_sample_weights have shape {tuple(per_sample_weights.shape)}, the input "
                f"{tuple(input.shape)}. They must be equal."
            )
    bag, count = _bags(input, offsets, include_last_offset)
    row, flat = row_of("embedding_bag", padding_idx, weight.shape[0]), input.reshape(-1)
    settings = max_norm, norm_type, scale_grad_by_freq, sparse
    rows = _looked_up("embedding_bag", flat, weight, row, settings)
    skipped = (flat == row).unsqueeze(1) if row >= 0 else None
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    if skipped is not None:
        rows = rows.masked_fill(skipped, float("-inf") if mode == "max" else 0.0)
    if mode == "sum":
        return add_rows(bag, rows, count + 1)[:count]
    ones = rows.new_ones((flat.numel(), 1))
    held = add_rows(bag, ones if skipped is None else ones.masked_fill(skipped, 0.0), count + 1)[:count]
    if mode == "mean":
        return add_rows(bag, rows, count + 1)[:count] / held.clamp(min=1)
    most = index_reduce(rows.new_zeros((count + 1, rows.shape[1])), 0, bag, rows, "amax", include_self=False)
    return most[:count].masked_fill(held == 0, 0.0)


@function(exports=("torch", "nn.functional"))
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``out[..., k] = input1[..., :] @ weight[k] @ input2[..., :] + bias[k]``.

    Args:
        input1, input2: (..., columns), the axes before the last equal.
        weight: (outputs, columns of input1, columns of input2).
        bias: (outputs,) or None.

    Raises:
        ShapeError: the shapes do not fit.
    """
    shapes = tuple(input1.shape), tuple(input2.shape), tuple(weight.shape)
    fits = weight.dim() == 3 and input1.dim() > 0 and input2.dim() > 0
    if not (fits and shapes[0][:-1] == shapes[1][:-1] and (shapes[0][-1], shapes[1][-1]) == shapes[2][1:]):
        raise ShapeError(
            f"bilinear: inputs of shapes {shapes[0]} and {shapes[1]} do not fit a weight of shape "
            f"{shapes[2]}, (outputs, columns of the first, columns of the second)."
        )
    outputs, first, second = shapes[2]
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise ShapeError(f"bilinear: bias has shape {tuple(bias.shape)}; it must be ({outputs},).")
    by_first = weight.permute(1, 0, 2).reshape(first, outputs * second)
    products = (input1 @ by_first).reshape(*shapes[0][:-1], outputs, second)
    out = sum(products * input2.unsqueeze(-2), -1, dtype=products.dtype)
    return out if bias is None else out + bias


@function(exports=("torch", "nn.functional"), node="Pdist")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows: ``norm(input[i] - input[j], p)`` for i < j.

    Args:
        input: (rows, columns), floating point.
        p: order of the norm, not negative.

    Returns:
        (rows * (rows - 1) / 2,).

    Raises:
        ShapeError: the input is no matrix.
        RangeError: ``p`` is negative.
    """
    if input.dim() != 2:
        raise ShapeError(f"pdist: the input has shape {tuple(input.shape)}; it must be (rows, columns).")
    p = number(p, "pdist: p")
    if not p >= 0:
        raise RangeError(f"pdist: p must not be negative, not {p}.")
    first, second = triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    return norm(rows_of(input, first) - rows_of(input, second), p, -1)
