"""Copies of a tensor with a part overwritten: select_scatter, slice_scatter, diagonal_scatter,
as_strided_scatter."""

from __future__ import annotations

from ...errors import ShapeError
from ...op.public import function
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .movement import clone, copy_
from .slicing import as_strided, diagonal, select, slice_dim


def _written(name: str, part: Tensor, src: Tensor, out: Tensor) -> Tensor:
    if part._meta.shape != src._meta.shape:
        raise ShapeError(
            f"{name}: src has shape {tuple(src._meta.shape)} and the part to be written "
            f"{tuple(part._meta.shape)}. Give one of that shape."
        )
    copy_(part, src)
    return out


@function(method=True, node="SelectScatter")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``input`` with ``src`` at one position of an axis.

    Raises:
        ShapeError: src has not the shape of what it overwrites.
    """
    out = clone(input)
    return _written("select_scatter", select(out, dim, index), src, out)


@function(method=True, node="SliceScatter")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of ``input`` with ``src`` in a slice of an axis.

    Raises:
        ShapeError: src has not the shape of what it overwrites.
    """
    if index(step, "slice_scatter: step") < 1:
        raise ShapeError(f"slice_scatter: step must be positive, not {step}.")
    out = clone(input)
    return _written("slice_scatter", slice_dim(out, dim, start, end, step), src, out)


@function(method=True, node="DiagonalScatter")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of ``input`` with ``src`` on a diagonal of two axes.

    Raises:
        ShapeError: src has not the shape of what it overwrites.
    """
    out = clone(input)
    return _written("diagonal_scatter", diagonal(out, offset, dim1, dim2), src, out)


@function(method=True, node="AsStridedScatter")
def as_strided_scatter(input: Tensor, src: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """A copy of ``input`` with ``src`` in what `as_strided` would show.

    Raises:
        ShapeError: src has not the shape of what it overwrites, or that lies outside the copy.
    """
    out = clone(input)
    return _written("as_strided_scatter", as_strided(out, size, stride, storage_offset), src, out)
