"""Flips, rotations and axes by name: functions made of views and `flip`."""

from __future__ import annotations

from ...errors import ShapeError
from ...op.arguments import integers, wrong
from ...op.public import function
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from .joining import flip
from .movement import clone
from .views import reshape, transpose, unsqueeze, view_size


@function(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements along one axis."""
    return reshape(input, -1)


@function(exports=None, method=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.reshape(other.shape)``."""
    return reshape(input, *other._meta.shape)


@function(method=True)
def fliplr(input: Tensor) -> Tensor:
    """A copy with the order of axis 1 reversed.

    Raises:
        ShapeError: fewer than two axes.
    """
    if input._meta.rank < 2:
        raise ShapeError(f"fliplr: takes at least two axes, not {input._meta.rank}. Use flipud or flip.")
    return flip(input, 1)


@function(method=True)
def flipud(input: Tensor) -> Tensor:
    """A copy with the order of axis 0 reversed.

    Raises:
        ShapeError: no axes.
    """
    if not input._meta.rank:
        raise ShapeError("flipud: takes at least one axis, not a tensor without axes.")
    return flip(input, 0)


@function(method=True)
def rot90(input: Tensor, k: int = 1, dims: tuple[int, ...] = (0, 1)) -> Tensor:
    """A copy rotated by ``k`` times 90 degrees in the plane of two axes, from the first towards the second.

    Args:
        input: at least two axes.
        k: how often; negative turns the other way.
        dims: the two axes.

    Raises:
        ShapeError: not two different axes.
    """
    dims, rank = integers(dims, "rot90: dims"), input._meta.rank
    if len(dims) != 2 or rank < 2:
        raise ShapeError(f"rot90: takes two of at least two axes, not dims {dims} of {rank}.")
    a, b = axis(dims[0], rank), axis(dims[1], rank)
    if a == b:
        raise ShapeError(f"rot90: dims {dims} are one axis. Name two.")
    turns = index(k, "rot90: k") % 4
    if turns == 2:
        return flip(input, a, b)
    if not turns:
        return clone(input)
    return transpose(flip(input, b), a, b).clone() if turns == 1 else flip(transpose(input, a, b), b)


def _each(name: str, tensors: tuple, change) -> Tensor | tuple[Tensor, ...]:
    for x in tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors:
        if not isinstance(x, Tensor):
            raise wrong(f"{name}: tensors", "Tensor", x)
    if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
        return change(tensors[0])
    if len(tensors) == 1:
        tensors = tuple(tensors[0])
    return tuple([change(x) for x in tensors])


def _at_least_1d(x: Tensor) -> Tensor:
    return x if x._meta.rank else view_size(x, (1,))


def _at_least_2d(x: Tensor) -> Tensor:
    return x if x._meta.rank > 1 else unsqueeze(_at_least_1d(x), 0)


@function(aten=("atleast_1d.default(self)", "atleast_1d.Sequence"))
def atleast_1d(*tensors) -> Tensor | tuple[Tensor, ...]:
    """Tensors without axes as ones of one element, others as they are."""
    return _each("atleast_1d", tensors, _at_least_1d)


@function(aten=("atleast_2d.default(self)", "atleast_2d.Sequence"))
def atleast_2d(*tensors) -> Tensor | tuple[Tensor, ...]:
    """Tensors of fewer than two axes as rows, others as they are."""
    return _each("atleast_2d", tensors, _at_least_2d)


@function(aten=("atleast_3d.default(self)", "atleast_3d.Sequence"))
def atleast_3d(*tensors) -> Tensor | tuple[Tensor, ...]:
    """Tensors of fewer than three axes with axes of length 1 around theirs, others as they are."""
    return _each("atleast_3d", tensors, lambda x: x if x._meta.rank > 2 else unsqueeze(_at_least_2d(x), 2))


@function(method=True)
def adjoint(input: Tensor) -> Tensor:
    """The matrices of the last two axes transposed, and conjugated if complex.

    Raises:
        ShapeError: fewer than two axes.
    """
    if input._meta.rank < 2:
        raise ShapeError(f"adjoint: takes at least two axes, not {input._meta.rank}.")
    out = transpose(input, -2, -1)
    return out.conj() if input._meta.dtype.is_complex else out
