"""Diagonals: matrices from them, what lies on them, their sum."""

from __future__ import annotations

from ...autograd.edges import labelled
from ...errors import ShapeError
from ...op.public import function
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from .creation import zeros
from .joining import cat
from .movement import clone, fill_
from .scatters import diagonal_scatter
from .slicing import diagonal
from .views import flatten, reshape


@function(method=True, node="DiagEmbed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last axis as a diagonal of two new axes, with zeros beside it.

    Args:
        input: at least one axis.
        offset: which diagonal: 0 is the main one, positive ones lie above it.
        dim1, dim2: the new axes of the result.

    Raises:
        ShapeError: no axes, or dim1 and dim2 are one.

    Example:
        >>> import pellucid as torch
        >>> torch.diag_embed(torch.tensor([1, 2], device="cpu"), 1).tolist()
        [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    shape = input._meta.shape
    rank = len(shape) + 1
    if not shape:
        raise ShapeError("diag_embed: takes at least one axis, not a tensor without axes.")
    a, b = sorted((axis(dim1, rank), axis(dim2, rank)))
    if a == b:
        raise ShapeError(f"diag_embed: dim1 and dim2 are both axis {a}. Name two.")
    if axis(dim1, rank) > axis(dim2, rank):
        offset = -index(offset, "diag_embed: offset")
    wide = list(shape[:-1])
    for k in (a, b):
        wide.insert(k, shape[-1] + abs(index(offset, "diag_embed: offset")))
    return diagonal_scatter(input.new_zeros(wide), input, offset, a, b)


@function(method=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on a diagonal, or the vector on a diagonal of a matrix.

    Args:
        input: a vector or a matrix.
        diagonal: which: 0 is the main one, positive ones lie above it.

    Raises:
        ShapeError: neither a vector nor a matrix.
    """
    rank = input._meta.rank
    if rank not in (1, 2):
        raise ShapeError(f"diag: takes a vector or a matrix, not {rank} axes. Use diagonal or diag_embed.")
    if rank == 2:
        return clone(input.diagonal(diagonal))
    return labelled("DiagEmbedBackward0", diag_embed(input, diagonal))


@function(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return diag_embed(flatten(input), offset)


@function(method=True, node="Trace")
def trace(input: Tensor) -> Tensor:
    """Sum of the main diagonal of a matrix.

    Raises:
        ShapeError: not a matrix.
    """
    if input._meta.rank != 2:
        raise ShapeError(f"trace: takes a matrix, not {input._meta.rank} axes. Use diagonal(...).sum(-1).")
    return diagonal(input).sum()


@function(exports=None, method=True)
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Overwrite the main diagonal with a number.

    Args:
        input: at least two axes; more than two must be of one length.
        fill_value: the number.
        wrap: begin again below a matrix that is taller than wide, one row after the end.

    Raises:
        ShapeError: fewer than two axes, or more of different lengths.
    """
    m = input._meta
    if m.rank < 2 or (m.rank > 2 and len(set(m.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal_: takes a matrix, or more axes of one length, not shape {tuple(m.shape)}."
        )
    height, width = m.shape[:2]
    # Where it wraps, the diagonal begins again in every block of width + 1 rows.
    for row in range(0, height, width + 1) if wrap and m.rank == 2 else (0,):
        part = input[row:] if row else input
        while part._meta.rank > 1:
            part = diagonal(part)
        fill_(part, fill_value)
    return input


@function(node="BlockDiag")
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one, with zeros beside them.

    Args:
        tensors: of at most two axes; vectors are rows.

    Raises:
        ShapeError: more than two axes.
    """
    if not tensors:
        return zeros(1, 0)
    for k, x in enumerate(tensors):
        if x._meta.rank > 2:
            raise ShapeError(f"block_diag: tensor {k} has {x._meta.rank} axes. Give at most two.")
    blocks = [x if x._meta.rank == 2 else reshape(x, 1, x._meta.numel) for x in tensors]
    width, at, rows = sum(x._meta.shape[1] for x in blocks), 0, []
    for x in blocks:
        height, own = x._meta.shape
        sides = [x.new_zeros(height, at), x, x.new_zeros(height, width - at - own)]
        rows.append(cat(sides, 1))
        at += own
    return cat(rows)
