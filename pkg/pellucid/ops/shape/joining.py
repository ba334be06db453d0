"""New tensors put together from parts: joined, repeated, flipped, rolled."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, groupby
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...autograd.edges import labelled
from ...errors import ArgumentError, DimensionError, DTypeError, OutOfMemoryError, PellucidError, ShapeError
from ...op.arguments import by_name
from ...op.declaration import Call, function, op
from ...op.elementwise import launch_copy
from ...op.families import called
from ...op.kernel import Launch, Params, load, physical, register_type
from ...op.kernel.frame import MANY
from ...op.planning import metas_of
from ...tensors.construct import tensor
from ...tensors.dtypes import int32, int64, result_type
from ...tensors.meta import Meta, meta
from ...tensors.shape import Size, axis, index, sizes
from ...tensors.tensor import Tensor
from .creation import arange
from .movement import clone
from .slicing import slice_dim
from .views import expand_size, flatten, reshape, unsqueeze

# Bindings of shape/join, which joins so many tensors at once: WebGPU promises eight buffers.
_PLACES = "abcdefg"
_MOST = len(_PLACES)
# Of two tensors each is copied by itself: the copies go into the kernels that make them more often than not.
_FEWEST = 3
# Bytes that a GPU writes at once: of less each copy would write the others' share again.
_SECTOR = 32


def _cat_types(call: Call):
    d = result_type([m.dtype for m in call["tensors"]], [], [])
    return d, d


def _cat_shape(call: Call):
    shapes = {j: m.shape for j, m in enumerate(call["tensors"]) if m.shape != (0,)}
    if not shapes:
        return Size((0,))
    for j, shape in shapes.items():
        if not shape:
            raise ShapeError(f"tensor {j} has no axis to be joined along. Use stack, or unsqueeze(0) first.")
    place, first = next(iter(shapes.items()))
    k = axis(call["dim"], len(first))
    for j, shape in shapes.items():
        if len(shape) != len(first):
            raise ShapeError(
                f"tensor {place} has shape {tuple(first)} and tensor {j} {tuple(shape)}. Bring both to the "
                "same number of axes, for example with unsqueeze."
            )
        if shape[:k] != first[:k] or shape[k + 1 :] != first[k + 1 :]:
            raise ShapeError(
                f"tensor {place} has shape {tuple(first)} and tensor {j} {tuple(shape)}: they must agree in "
                f"every axis but {k}. Join along the axis where they differ, or slice or pad one of them."
            )
    return Size((*first[:k], sum(shape[k] for shape in shapes.values()), *first[k + 1 :]))


def _cat_launches(call: Call) -> list[Launch]:
    if not call.out.numel:
        return []
    k = axis(call["dim"], call.out.rank)
    parts, at = [], 0
    for j, m in enumerate(call["tensors"]):
        if m.numel:
            parts.append(_Part(f"tensors[{j}]", m, at))
            at += m.shape[k]
    launches: list[Launch] = []
    width = prod(call.out.shape[k + 1 :]) * call.out.dtype.itemsize

    def is_joined(part: _Part) -> bool:
        """Whether it is worth no dispatch of its own. Neighbours must not write to one word."""
        m = part.meta
        is_one = m.shape[k] * width < _SECTOR if m.numel >= MANY else len(parts) >= _FEWEST
        return is_one and m.is_contiguous and physical(call.out.dtype)[1] == 1

    for joined, run in groupby(parts, is_joined):
        run = list(run)
        for at in range(0, len(run), _MOST if joined else 1):
            some = run[at : at + _MOST] if joined else [run[at]]
            launches.append(_join(call.out, k, some) if len(some) > 1 else _copy(call.out, k, some[0]))
    return launches


class _Part(NamedTuple):
    """A tensor that becomes a part of another, and where it begins on the joined axis."""

    name: str
    meta: Meta
    begin: int


def _copy(out: Meta, k: int, part: _Part) -> Launch:
    """One tensor of any strides and size; an expression, which may become a part of another kernel."""
    seen = meta(part.meta.shape, out.dtype, out.device, out.strides)
    return launch_copy(part.name, part.meta, "out", seen, part.begin * out.strides[k])


def _join(out: Meta, k: int, parts: list[_Part]) -> Launch:
    """Several tensors at once."""
    inner = prod(out.shape[k + 1 :])
    ends = list(accumulate(part.meta.shape[k] * inner for part in parts))
    count = prod(out.shape[:k]) * ends[-1]
    params: Params = {"count": count, "out_columns": out.shape[k] * inner, "first": parts[0].begin * inner}
    bind = {}
    for j, binding in enumerate(_PLACES):
        params[f"{binding}_end"] = ends[min(j, len(ends) - 1)]
        bind[binding] = parts[j if j < len(parts) else 0].name
    lanes = 256 if count >= MANY else 64
    file = load("shape/join").fill({"T": register_type(out.dtype), "WORKGROUP": f"{lanes}u"})
    return Launch(file, -(-count // (4 * lanes)), params, bind=bind)


def _cat_reference(tensors, dim):
    some = [t for t in tensors if t.shape != (0,)]
    return np.concatenate(some, dim) if some else np.concatenate(tensors)


def _cat_grad(g, tensors_meta, dim):
    parts, at = [], 0
    for m in tensors_meta:
        if m.shape == (0,):
            parts.append(g.new_zeros((0,)))
            continue
        k = axis(dim, m.rank)
        parts.append(slice_dim(g, k, at, at + m.shape[k], 1))
        at += m.shape[k]
    return parts


@op(
    dtype=_cat_types,
    shape=_cat_shape,
    kernel=_cat_launches,
    reference=_cat_reference,
    grad={"tensors": _cat_grad},
    strided=("tensors",),
    out=True,
)
def cat(tensors: list[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after the other along an axis.

    Args:
        tensors: equal shapes but for axis ``dim``; of empty ones of shape (0,) only the dtype counts.

    Returns:
        A tensor of the common dtype.

    Raises:
        ShapeError: other axes differ, a tensor has no axes, or there are no tensors.

    Example:
        >>> import pellucid as torch
        >>> torch.cat([torch.zeros(1, device="cpu"), torch.ones(2, device="cpu")]).tolist()
        [0.0, 1.0, 1.0]
    """


def _join_as(name: str, tensors: list[Tensor], dim: int, out: Tensor | None) -> Tensor:
    """`cat` for the functions that are made of it: its errors say their names."""
    try:
        return cat(tensors, dim) if out is None else cat(tensors, dim, out=out)
    except PellucidError as error:
        raise type(error)(f"{name}: {str(error).removeprefix('cat: ')}") from None


@function()
def stack(tensors: list[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape along a new axis.

    Raises:
        DimensionError: the result has no such axis.
        ShapeError: shapes differ, or there are no tensors.
    """
    metas = metas_of("stack", "tensors", tensors)
    first = metas[0].shape
    k = axis(dim, len(first) + 1)
    for j, m in enumerate(metas):
        if m.shape != first:
            raise ShapeError(
                f"stack: tensor 0 has shape {tuple(first)} and tensor {j} {tuple(m.shape)}; all must have "
                "the same. Use cat to join along an axis that they have."
            )
    return labelled("StackBackward0", _join_as("stack", [unsqueeze(x, k) for x in tensors], k, out))


def _stack(name: str, doc: str, as_part: Callable, dim: int | None) -> Callable[..., Tensor]:
    """Declare a way to join tensors that gives each more axes first; along the first of vectors, else the
    second, if `dim` is None."""

    def call(tensors: list[Tensor], *, out: Tensor | None = None) -> Tensor:
        metas = metas_of(name, "tensors", tensors)
        parts = [as_part(x, m) for x, m in zip(tensors, metas, strict=True)]
        return _join_as(name, parts, min(metas[0].rank, 2) // 2 if dim is None else dim, out)

    return called(name, doc, call)


hstack = _stack(
    "hstack", "Tensors side by side: along axis 1, or 0 for tensors of one axis.",
    lambda x, m: x if m.rank else reshape(x, 1), None,
)  # fmt: skip
vstack = _stack(
    "vstack", "Tensors below one another: along axis 0, each of fewer than two axes as a row.",
    lambda x, m: x if m.rank > 1 else reshape(x, 1, m.numel), 0,
)  # fmt: skip
dstack = _stack(
    "dstack", "Tensors behind one another: along axis 2, each of one axis as a row, of two as they are.",
    lambda x, m: x if m.rank > 2 else reshape(x, *(m.shape if m.rank > 1 else (1, m.numel)), 1), 2,
)  # fmt: skip
column_stack = _stack(
    "column_stack", "Tensors side by side: along axis 1, each of fewer than two axes as a column.",
    lambda x, m: x if m.rank > 1 else reshape(x, m.numel, 1), 1,
)  # fmt: skip


@function(exports=None, method=True, node="Repeat")
@by_name
def repeat(input: Tensor, *given, repeats=None) -> Tensor:
    """The tensor copied several times along each axis."""
    counts = sizes(given if repeats is None else (*given, repeats), "repeat: a count")
    shape = input._meta.shape
    if len(counts) < len(shape):
        raise ShapeError(f"repeat: {len(counts)} counts for {len(shape)} axes. Give at least as many.")
    shape = (1,) * (len(counts) - len(shape)) + tuple(shape)
    spread = [v for n in shape for v in (1, n)]
    wide = [v for c, n in zip(counts, shape, strict=True) for v in (c, n)]
    out = expand_size(reshape(input, *spread), tuple(wide))
    return copied(reshape(out, *[c * n for c, n in zip(counts, shape, strict=True)]), input)


def copied(out: Tensor, input: Tensor) -> Tensor:
    """The result of what promises a copy, also where there was nothing to move."""
    return clone(out) if getattr(out, "is_batched", False) or out._storage is input._storage else out


@function(method=True, node="Repeat")
@by_name
def tile(input: Tensor, *given, dims=None) -> Tensor:
    """`repeat` with missing leading counts taken as 1."""
    counts = sizes(given if dims is None else (*given, dims))
    return repeat(input, *(1,) * (input._meta.rank - len(counts)), *counts)


@function(method=True, aten=("repeat_interleave.self_Tensor", "repeat_interleave.self_int"))
def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Every element of an axis repeated in place.

    Args:
        input: any tensor; alone it is how often each of 0, 1, 2, ... is repeated.
        repeats: how often; or a tensor of int64 or int32, one for each element, which is read: this waits.
        dim: the axis; without it the flat tensor.
        output_size: how long the axis of the result will be, if that is known.

    Raises:
        ShapeError: there are not as many counts as elements, one is negative, or ``output_size`` is wrong.
        DTypeError: the counts are no integers.
    """
    if repeats is None:
        return repeat_interleave(
            arange(input.numel(), device=input.device), input, 0, output_size=output_size
        )
    if dim is None:
        input, dim = flatten(input), 0
    k = axis(dim, input._meta.rank)
    if not input._meta.rank:
        input = reshape(input, 1)
    shape = input._meta.shape
    if hasattr(repeats, "_meta"):
        return _repeated_each(input, k, repeats, output_size)
    count = index(repeats, "repeat_interleave: repeats")
    if count < 0:
        raise ShapeError(f"repeat_interleave: repeats is {count}; it must not be negative.")
    _check_length(shape[k] * count, output_size)
    wide = expand_size(unsqueeze(input, k + 1), (*shape[: k + 1], count, *shape[k + 1 :]))
    return copied(reshape(wide, *shape[:k], shape[k] * count, *shape[k + 1 :]), input)


def _check_length(length: int, wanted: int | None) -> None:
    if wanted is not None and index(wanted, "repeat_interleave: output_size") != length:
        raise ShapeError(
            f"repeat_interleave: output_size is {wanted} and the result has {length}. Leave it out."
        )


def _repeated_each(input: Tensor, k: int, repeats: Any, output_size: int | None) -> Tensor:
    """Positions of an axis, each as often as a tensor says."""
    m = repeats._meta
    length = input._meta.shape[k]
    if m.dtype not in (int32, int64):
        raise DTypeError(
            f"repeat_interleave: repeats is {m.dtype}; it must be int64 or int32. Convert it with .long()."
        )
    if m.rank > 1 or m.numel not in (1, length):
        raise ShapeError(
            f"repeat_interleave: repeats of shape {tuple(m.shape)} for {length} elements. Give one count, or "
            "one for each."
        )
    counts = repeats.detach().numpy().reshape(-1)
    if (counts < 0).any():
        raise ShapeError(f"repeat_interleave: a count is {counts.min()}; none may be negative.")
    total = sum(counts.tolist()) * (1 if m.numel == length else length)
    if total > np.iinfo(np.int32).max:
        raise OutOfMemoryError(f"repeat_interleave: {total:,} positions are more than an axis may have.")
    # In a page numpy counts in 32 bits.
    counts = counts.astype(np.intp)
    places = np.repeat(np.arange(length), counts if m.numel == length else counts[0])
    _check_length(places.size, output_size)
    return input.index_select(k, tensor(places, device=input.device))


@function(method=True, aten="flip.default(self, dims)", node="Flip")
def flip(input: Tensor, *axes, dims=()) -> Tensor:
    """A copy with the order of some axes reversed, which are given by place or as ``dims``."""
    if axes and dims != ():
        raise ArgumentError("flip: axes are given by place and as dims. Give them once.")
    for d in sizes(axes or (dims,)):
        if not input._meta.rank:
            axis(d, 0)
            continue
        input = slice_dim(input, d, None, None, -1)
    return clone(input)


@function(method=True, node="Roll")
def roll(input: Tensor, shifts, dims=None) -> Tensor:
    """Elements moved along axes; those that leave at one end come in at the other."""
    if dims is None:
        return reshape(roll(flatten(input), shifts, 0), *input._meta.shape)
    shifts, dims = sizes((shifts,)), sizes((dims,))
    if len(shifts) != len(dims):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(dims)} axes. Give one for each.")
    if dims and not input._meta.rank:
        raise DimensionError("roll: a tensor without axes has none to roll along. Leave dims out.")
    out = input
    for s, d in zip(shifts, dims, strict=True):
        total = input._meta.shape[axis(d, input._meta.rank)]
        cut = -s % total if total else 0
        if cut:
            out = cat([slice_dim(out, d, cut, None, 1), slice_dim(out, d, 0, cut, 1)], d)
    return copied(out, input)
