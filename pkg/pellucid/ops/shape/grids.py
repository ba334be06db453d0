"""Grids and products of positions: meshgrid, cartesian_prod, combinations, triangle indices, vander."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable

import numpy as np

from ...errors import ArgumentError, RangeError, ShapeError, warn
from ...op.arguments import number, wrong
from ...op.declaration import docstring, function
from ...op.families import called
from ...tensors import dtypes as dt
from ...tensors.construct import tensor
from ...tensors.dtypes import DType, float32, get_default_dtype
from ...tensors.shape import Size, index
from ...tensors.shape import broadcast_shapes as common_shape
from ...tensors.tensor import Tensor
from .creation import arange
from .joining import flip, stack
from .views import expand_size, flatten, reshape, unsqueeze


@function(ours="sizes alone, no tensors")
def broadcast_shapes(*shapes) -> Size:
    """The shape that all shapes broadcast to.

    Args:
        shapes: tuples of lengths; a number is a shape of one axis.

    Raises:
        ShapeError: two lengths at the same place differ and neither is 1.

    Example:
        >>> import pellucid as torch
        >>> torch.broadcast_shapes((2,), (3, 1), (1, 1, 1))
        Size([1, 3, 2])
    """
    each = [s if isinstance(s, (tuple, list)) else (index(s, "broadcast_shapes: shapes"),) for s in shapes]
    return common_shape(*each)


@function(aten=("meshgrid.default", "meshgrid.indexing(tensors, *, indexing)"))
def meshgrid(*tensors, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Grids of coordinates: result ``k`` has the value of tensor ``k`` at every point of the grid.

    Args:
        tensors: vectors or numbers, also as one list.
        indexing: "ij": axis ``k`` of the results is that of tensor ``k``; "xy": the first two are exchanged.

    Raises:
        ArgumentError: another indexing, or no tensors.
        ShapeError: a tensor of more than one axis.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if not tensors or indexing not in ("ij", "xy"):
        raise ArgumentError(
            f"meshgrid: takes a tensor or more and indexing 'ij' or 'xy', not {len(tensors)} and {indexing!r}"
        )
    for x in tensors:
        if not isinstance(x, Tensor):
            raise wrong("meshgrid: tensors", "Tensor", x)
    if any(x._meta.rank > 1 for x in tensors):
        raise ShapeError("meshgrid: takes tensors of at most one axis. Flatten them.")
    order = list(tensors)
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    shape = tuple([x._meta.numel for x in order])
    along = [[-1 if k == j else 1 for j in builtins.range(len(order))] for k in builtins.range(len(order))]
    grids = [expand_size(reshape(x, *own), shape) for x, own in zip(order, along, strict=True)]
    if indexing == "xy":
        grids[:2] = grids[:2][::-1]
    return tuple(grids)


@function()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of elements, one of each vector, as rows.

    Raises:
        ShapeError: a tensor that is no vector.
    """
    for k, x in enumerate(tensors):
        if x._meta.rank != 1:
            raise ShapeError(f"cartesian_prod: tensor {k} has {x._meta.rank} axes. Give vectors.")
    if len(tensors) == 1:
        return tensors[0]
    return stack([flatten(g) for g in meshgrid(*tensors)], 1)


@function()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All sets of ``r`` elements of a vector as rows, in the order of `itertools.combinations`.

    Raises:
        ShapeError: not a vector.
        RangeError: r is negative.
    """
    if input._meta.rank != 1:
        raise ShapeError(f"combinations: takes a vector, not {input._meta.rank} axes.")
    if index(r, "combinations: r") < 0:
        raise RangeError(f"combinations: r must not be negative, not {r}.")
    if r == 0:
        return input.new_empty(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(builtins.range(input._meta.numel), r)), np.int64).reshape(-1, r)
    return input[tensor(places, device=input.device)]


def _triangle_indices(name: str, places: Callable, which: str, part: str) -> Callable[..., Tensor]:
    """Declare the places of a triangle."""

    def call(row: int, col: int, offset: int = 0, *, dtype: DType = dt.int64, device=None) -> Tensor:
        rows, columns = index(row, f"{name}: row"), index(col, f"{name}: col")
        if rows < 0 or columns < 0:
            raise ShapeError(f"{name}: row {rows} and col {columns} must not be negative.")
        found = places(rows, index(offset, f"{name}: offset"), columns)
        return tensor(np.stack(found), dtype=dtype, device=device)

    known = {"row, col": "size of the matrix.", "offset": f"the diagonal {part} elements count."}
    sentence = f"Rows and columns of the {which} triangle of a matrix, as two rows, by rows."
    return called(name, docstring(sentence, {"Args": known}), call)


tril_indices = _triangle_indices("tril_indices", np.tril_indices, "lower", "up to which")
triu_indices = _triangle_indices("triu_indices", np.triu_indices, "upper", "from which on")


@function()
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Vandermonde matrix: column ``j`` is ``x ** (N - 1 - j)``, or ``x ** j`` if increasing.

    Args:
        x: a vector.
        N: columns; as many as rows if not given.
        increasing: the order of the powers.

    Raises:
        ShapeError: not a vector, or a negative N.
    """
    count = x._meta.numel if N is None else index(N, "vander: N")
    if x._meta.rank != 1 or count < 0:
        raise ShapeError(f"vander: takes a vector and N >= 0, not {x._meta.rank} axes and N {count}.")
    d = x._meta.dtype
    rows = unsqueeze(x.to(dt.int64) if not (d.is_floating_point or d.is_complex) else x, 1)
    powers = arange(count, device=x.device)
    return rows ** (powers if increasing else flip(powers, 0)) if count else rows.new_empty(len(x), 0)


@function(aten="range.step(start, end, step=1, *, dtype=None, layout=None, device=None, pin_memory=None)")
def range(
    start=0, end=None, step=1, *, dtype: DType | None = None, device=None, requires_grad: bool = False
) -> Tensor:
    """Numbers from ``start`` to ``end``, which is one of them where a step ends there; deprecated.

    Raises:
        RangeError: ``step`` is zero or leads away from ``end``.
    """
    start, end = (0, start) if end is None else (start, end)
    start, end, step = number(start, "start"), number(end, "end"), number(step, "step")
    if not step or (end - start) / step < 0:
        raise RangeError(f"step {step} does not lead from {start} to {end}.")
    warn("torch.range is deprecated. Use torch.arange, which ends before its end.")
    d = get_default_dtype() if dtype is None else dtype
    places = arange(int((end - start) / step) + 1, dtype=d if d.itemsize >= 4 else float32, device=device)
    return (places * step + start).to(d).requires_grad_(requires_grad)
