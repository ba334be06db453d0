"""Flips, rotations and axes by name: functions made of views and `flip`."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import ShapeError
from ...op.arguments import integers, wrong
from ...op.families import called
from ...op.public import function
from ...tensors.shape import axis, index
from ...tensors.tensor import Tensor
from .joining import flip
from .movement import clone
from .slicing import slice_dim
from .views import reshape, transpose, unsqueeze


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


@function(method=True, node="Rot90")
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
    if turns == 1:
        return clone(transpose(slice_dim(input, b, None, None, -1), a, b))
    return flip(transpose(input, a, b), b)


def _at_least(x: Tensor, rank: int) -> Tensor:
    """Axes of length 1 around those that there are: (), (1,), (1, n) and (1, n, 1)."""
    for own in range(x._meta.rank, rank):
        x = unsqueeze(x, own if own == 2 else 0)
    return x


def _atleast(rank: int, doc: str) -> Callable:
    """Declare the least number of axes, of a tensor or several."""
    name = f"atleast_{rank}d"

    def call(*tensors) -> Tensor | tuple[Tensor, ...]:
        is_list = len(tensors) == 1 and isinstance(tensors[0], (tuple, list))
        given = tuple(tensors[0]) if is_list else tensors
        for x in given:
            if not isinstance(x, Tensor):
                raise wrong(f"{name}: tensors", "Tensor", x)
        made = tuple([_at_least(x, rank) for x in given])
        return made[0] if len(tensors) == 1 and not is_list else made

    return called(name, doc, call, aten=(f"{name}.default(self)", f"{name}.Sequence"))


atleast_1d = _atleast(1, "Tensors without axes as ones of one element, others as they are.")
atleast_2d = _atleast(2, "Tensors of fewer than two axes as rows, others as they are.")
atleast_3d = _atleast(
    3, "Tensors of fewer than three axes with axes of length 1 around theirs, others as they are."
)


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
