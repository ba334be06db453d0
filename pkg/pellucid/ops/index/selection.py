"""Tuples of index tensors and masks: what ``x[i, j]`` and ``x[mask] = v`` come down to."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...errors import ArgumentError, DimensionError, DTypeError, ShapeError
from ...op.arguments import boolean
from ...op.declaration import Call, function, op
from ...op.kernel import Launch, Params, flag, load, per_element, register_type
from ...op.rules import as_input, same
from ...tensors import dtypes as dt
from ...tensors.shape import Size, broadcast_shapes
from ...tensors.tensor import Tensor
from ..shape.movement import contiguous, copy_
from ..shape.views import broadcast_tensors
from .bounds import integers, outside
from .rows import add_rows, embedding, index_select, put_rows, rows_at


def _linear_types(call: Call):
    integers(call, "index")
    return dt.int64, dt.int64


def _linear_launch(call: Call) -> Launch:
    m = call["index"]
    params = {"count": m.numel, "limit": call["limit"]}
    file = load("index/linear").fill({"HAS_PREVIOUS": flag(call["previous"] is not None)})
    return per_element(file, m.numel, params)


def _linear_reference(index, limit, previous):
    outside(index, limit, "index", wrap=True)
    place = np.where(index < 0, index + limit, index).astype(np.int64)
    return place if previous is None else previous * limit + place


@op(
    public="index",
    dtype=_linear_types,
    shape=as_input,
    kernel=_linear_launch,
    reference=_linear_reference,
    grad=None,
)
def linear_index(index: Tensor, limit: int, previous: Tensor | None = None) -> Tensor:
    """The row-major position of a tuple of indices, one axis of length ``limit`` at a time; negative
    indices count from the end.
    """


def _plan(input: Tensor, indices) -> tuple[list[int], list[Tensor], Size, bool]:
    """Axes that are indexed, their indices broadcast, the shape of these, and whether the axes are
    neighbours.
    """
    if len(indices) > input.dim():
        raise DimensionError(f"index: {len(indices)} indices for a tensor of {input.dim()} axes.")
    dims = [k for k, i in enumerate(indices) if i is not None]
    found = broadcast_tensors(*[indices[k] for k in dims])
    return dims, list(found), found[0].shape, dims == list(range(dims[0], dims[-1] + 1))


def _front(input: Tensor, dims: list[int], found: list[Tensor]) -> tuple[Tensor, Tensor, list[int]]:
    """The tensor as rows along the indexed axes, the row numbers, and the order of axes that brings those
    to the front.
    """
    order = dims + [k for k in range(input.dim()) if k not in dims]
    rows = prod(input.shape[k] for k in dims)
    position = None
    for k, i in zip(dims, found, strict=True):
        if input.shape[k] == 0 and i.numel():
            raise DimensionError(f"index: axis {k} has length 0 and cannot be indexed.")
        position = linear_index(i, input.shape[k], position)
    width = prod(input.shape[k] for k in order[len(dims) :])
    return input.permute(*order).reshape(rows, width), position, order


def index_get(input: Tensor, indices) -> Tensor:
    """``input[indices]`` for integer tensors that broadcast together, one per axis or None for a whole axis.

    The indexed axes are replaced by the shape of the indices: in place where they are neighbours, else at the
    front.

    Source: https://numpy.org/doc/stable/user/basics.indexing.html#advanced-indexing
    """
    dims, found, shape, neighbours = _plan(input, indices)
    if len(dims) == 1 and dims[0] and input.shape[dims[0]]:
        k = dims[0]
        position = linear_index(found[0], input.shape[k]).reshape(-1)
        return index_select(input, k, position).reshape(*input.shape[:k], *shape, *input.shape[k + 1 :])
    if dims == [0] and input.shape[0] and not any(getattr(x, "is_batched", False) for x in (input, *found)):
        rows = input.reshape(input.shape[0], prod(input.shape[1:]))
        return rows_at(rows, found[0]).reshape(*shape, *input.shape[1:])
    rows, position, order = _front(input, dims, found)
    rest = [input.shape[k] for k in order[len(dims) :]]
    out = embedding(rows, position).reshape(*shape, *rest)
    if neighbours and dims[0]:
        out = out.movedim(tuple(range(len(shape))), tuple(range(dims[0], dims[0] + len(shape))))
    return contiguous(out)


@function(method=True, in_place=True, aten=("index_put.default", "index_put.hacked_twin"), node="IndexPut")
def index_put(input: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of ``input`` with ``out[indices] = values``, or added with ``accumulate``.

    Args:
        input: any dtype.
        indices: as `index_get`; a mask stands for the places where it is true, which are read.
        values: broadcasts to the shape of ``input[indices]``; same dtype.
        accumulate: add, in the order of the indices; else the last of equal places stays.

    Raises:
        IndexError: at the next read, an index is out of range.
        ShapeError: the values do not broadcast.
    """
    if not isinstance(indices, (tuple, list)):
        raise ArgumentError("index_put: indices are a tuple of tensors, such as (i,).")
    parts = []
    for i in indices:
        is_mask = isinstance(i, Tensor) and i.dtype is dt.bool_
        parts += nonzero(i, as_tuple=True) if is_mask else [i]
    dims, found, shape, neighbours = _plan(input, parts)
    rows, position, order = _front(input, dims, found)
    rest = [input.shape[k] for k in order[len(dims) :]]
    at = dims[0] if neighbours else 0
    full = (*rest[:at], *shape, *rest[at:])
    if broadcast_shapes(values.shape, full) != full:
        raise ShapeError(
            f"index_put: values of shape {tuple(values.shape)} do not broadcast to {full}. Reshape them."
        )
    values = values.expand(*full)
    if at:
        values = values.movedim(tuple(range(at, at + len(shape))), tuple(range(len(shape))))
    write = add_rows if accumulate else put_rows
    out = write(position.reshape(-1), values.reshape(position.numel(), rows.shape[1]), rows.shape[0], rows)
    out = out.reshape(*[input.shape[k] for k in order])
    return contiguous(out.permute(*[order.index(k) for k in range(len(order))]))


def take_at(input: Tensor, index: dict[int, Tensor]) -> Tensor:
    """`index_get` with the index tensors by axis."""
    return index_get(input, [index.get(k) for k in range(max(index) + 1)])


def put_at(input: Tensor, index: dict[int, Tensor], value: Tensor) -> None:
    """Write at index tensors by axis into the tensor itself, outside the graph; the value is converted."""
    each, target = [index.get(k) for k in range(max(index) + 1)], input.detach()
    copy_(target, index_put(target, each, value.detach().to(input.dtype)))


def _true_launches(call: Call) -> list[Launch]:
    """A dispatch for each axis."""
    count, shape, made = call["running"].numel, call["shape"], []
    for k, length in enumerate(shape):
        params = {"count": count, "places": call["count"], "axis": k, "length": length}
        params["inner"] = prod(shape[k + 1 :])
        made.append(per_element("index/true_places", -(-count // 4), params, bind={"ends": "running"}))
    return made


@op(
    public="nonzero",
    dtype=lambda call: (dt.int64, dt.int64),
    shape=lambda call: Size((len(call["shape"]), call["count"])),
    kernel=_true_launches,
    reference=lambda running, count, shape: np.stack(
        np.unravel_index(np.flatnonzero(np.diff(running, prepend=0)), shape)
    ).astype(np.int64),
    grad=None,
)
def true_places(running: Tensor, count: int, shape: tuple[int, ...]) -> Tensor:
    """The places of what is true, in order, a row for each axis.

    ``running`` is the running sum of what is true in the shape, int32, and ``count`` its last element.
    """


def _chosen_launch(call: Call, rows: int, places: int, spread: bool) -> Launch:
    """The dispatch between all rows and those that are chosen."""
    x = call["input"]
    params: Params = {"inner": prod(x.shape[1:]), "places": places}
    params["count"] = rows * params["inner"]
    file = load("index/chosen").fill({"T": register_type(x.dtype), "SPREAD": flag(spread)})
    return per_element(file, -(-int(params["count"]) // 4), params, bind={"x": "input", "ends": "running"})


def _spread_reference(input, running):
    is_chosen = np.diff(running, prepend=0) > 0
    out = np.zeros((len(running), *input.shape[1:]), input.dtype)
    out[is_chosen] = input
    return out


def _chosen_grad(g: Tensor, running: Tensor) -> Tensor:
    return spread_rows(g, running)


@op(
    public="masked_select",
    dtype=same,
    shape=lambda call: Size((call["count"], *call["input"].shape[1:])),
    kernel=lambda call: _chosen_launch(call, call["running"].numel, call["count"], False),
    reference=lambda input, running, count: input[np.diff(running, prepend=0) > 0],
    grad={"input": _chosen_grad},
)
def chosen_rows(input: Tensor, running: Tensor, count: int) -> Tensor:
    """The rows that are chosen, in order.

    ``running`` and ``count`` are those of `true_places`.
    """


@op(
    public="masked_select",
    dtype=same,
    shape=lambda call: Size((call["running"].numel, *call["input"].shape[1:])),
    kernel=lambda call: _chosen_launch(call, call["running"].numel, call["input"].shape[0], True),
    reference=_spread_reference,
    grad={"input": lambda g, running, input_meta: chosen_rows(g, running, input_meta.shape[0])},
)
def spread_rows(input: Tensor, running: Tensor) -> Tensor:
    """The gradient of `chosen_rows`: its rows where they come from, and zeros elsewhere."""


def select_rows(input: Tensor, mask: Tensor) -> Tensor:
    """``input[mask]``, for a mask over the first axes. Waits for the device: their number is data."""
    ends = running_count(mask)
    count = int(ends[-1].item()) if mask._meta.numel else 0
    rows = input.reshape(mask._meta.numel, *input.shape[mask._meta.rank :])
    if getattr(input, "is_batched", False):
        return rows.index_select(0, true_places(ends, count, (mask._meta.numel,)).reshape(-1))
    return chosen_rows(rows, ends, count)


def running_count(mask: Tensor) -> Tensor:
    """How many elements of a mask are true up to each, int32, as one axis."""
    return mask.reshape(-1).cumsum(0, dtype=dt.int32)


def _is_true(input: Tensor) -> Tensor:
    """A mask of what is not zero."""
    return input if input._meta.dtype is dt.bool_ else input.detach() != 0


@function(method=True)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of all elements that are not zero, in row-major order. Waits for the device: their
    number is data.

    Returns:
        (n, axes) int64; with ``as_tuple`` a tuple of (n,) tensors, one per axis.
    """
    ends = running_count(_is_true(input))
    return _places(input, ends, ends[-1].item() if input._meta.numel else 0, as_tuple)


@function(exports=None, method=True, ours="waits without blocking, which PyTorch does not need")
async def nonzero_async(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The awaitable twin of `nonzero`."""
    ends = running_count(_is_true(input))
    return _places(input, ends, await ends[-1].item_async() if input._meta.numel else 0, as_tuple)


def _places(input: Tensor, ends: Tensor, count: Any, as_tuple: bool):
    """The columns of a result, of which there are as many as axes; a number is a vector of one."""
    shape = tuple(input._meta.shape)
    columns = true_places(ends, int(count), shape or (1,))
    if boolean(as_tuple, "as_tuple"):
        return columns.unbind(0)
    if len(shape) == 1:
        return columns.reshape(-1, 1)
    return contiguous(columns.t()) if shape else columns.new_zeros((int(count), 0))


@function(method=True, node="MaskedSelect")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where ``mask`` is true, as one axis. Waits for the device: their number is data.

    Args:
        input: any dtype.
        mask: bool; both broadcast together.

    Raises:
        DTypeError: the mask is not bool.
    """
    if mask.dtype is not dt.bool_:
        raise DTypeError(
            f"masked_select: the mask is {mask.dtype}, not bool. Compare it first, for example mask != 0."
        )
    input, mask = broadcast_tensors(input, mask)
    return select_rows(input, mask)
