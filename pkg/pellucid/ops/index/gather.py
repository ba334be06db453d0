"""Single elements by their places along an axis: gather and scatter.

Bad indices are found on the device and raised as IndexError by the next read. Writes that meet are done in
the order of the sources: the same bits on every run.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...autograd.composed import composed
from ...errors import ArgumentError, DTypeError, RangeError, ShapeError
from ...op.arguments import text
from ...op.declaration import Call, function, op
from ...op.kernel import Launch, Params, flag, load, per_element, register_type
from ...op.rules import alike
from ...tensors import dtypes as dt
from ...tensors.shape import Size, axis, broadcast_shapes
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..shape.joining import cat
from .bounds import of, outside
from .sources import collect_launches, extreme_launches, put_launches

# Sources per line up to which every output looks at all of them; more are sorted by where they go.
_LINES = 16


def _along_shape(call: Call) -> Size:
    x, index = call["input"], call["index"]
    k = axis(call["dim"], x.rank)
    if index.numel == 0:
        return index.shape
    if max(x.rank, 1) != max(index.rank, 1) or any(
        n > m for j, (n, m) in enumerate(zip(index.shape, x.shape, strict=False)) if j != k
    ):
        raise ShapeError(
            f"index {tuple(index.shape)} must have as many axes as input {tuple(x.shape)} and not be longer "
            f"but along axis {k}."
        )
    return index.shape


def _line(shape, k: int) -> tuple[int, int, int]:
    return prod(shape[:k]), shape[k] if shape else 1, prod(shape[k + 1 :])


def _gather_launch(call: Call) -> Launch:
    x, index = call["input"], call["index"]
    k = axis(call["dim"], x.rank)
    _, limit, _ = _line(x.shape, k)
    _, picked, inner = _line(index.shape, k)
    params: Params = {"count": index.numel, "limit": limit, "picked": picked, "inner": inner}
    return per_element(
        load("index/gather").fill({"T": register_type(x.dtype)}), index.numel, params, bind={"x": "input"}
    )


def _gather_reference(input, dim, index, sparse_grad):
    if not index.size:
        return np.empty(index.shape, input.dtype)
    outside(index, input.shape[dim] if input.ndim else 1, "gather")
    return np.take_along_axis(input, index, dim) if input.ndim else np.broadcast_to(input, index.shape)


def _cut(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The part of a tensor that an index covers."""
    k = axis(dim, input.dim())
    for j, n in enumerate(index.shape):
        if j != k and j < input.dim() and n < input.shape[j]:
            input = input.narrow(j, 0, n)
    return input


def _covered(input, dim, index, sparse_grad):
    part = _cut(input, dim, index)
    return None if part is input else gather(part, dim, index)


@op(
    dtype=of("input"),
    shape=_along_shape,
    kernel=_gather_launch,
    reference=_gather_reference,
    grad={
        "input": lambda g, index, input_meta, dim: scatter_add(g.new_zeros(input_meta.shape), dim, index, g)
    },
    method=True,
    prepare=_covered,
)
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other axes.

    Args:
        input: any dtype.
        dim: the axis that is looked up.
        index: integers from 0 to the axis' length - 1; as many axes as the input and not longer along others.
        sparse_grad: accepted; gradients are dense.

    Returns:
        The shape of the index.

    Raises:
        IndexError: at the next read, an index is out of range.
        ShapeError: the index does not fit.
    """


@function(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with broadcasting of the other axes; all elements are counted through if ``dim`` is None.
    Along an axis negative indices count from the end.
    """
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    k = axis(dim, input.dim())
    if input.dim() != indices.dim():
        shapes = f"input {tuple(input.shape)} and indices {tuple(indices.shape)}"
        raise ShapeError(f"take_along_dim: {shapes} need as many axes each.")
    if not indices.dtype.is_integer:
        raise DTypeError(f"take_along_dim: indices are {indices.dtype}. Convert them with .long().")
    others = [tuple(1 if j == k else n for j, n in enumerate(t.shape)) for t in (input, indices)]
    shape = broadcast_shapes(*others)
    wide = input.expand(*shape[:k], input.shape[k], *shape[k + 1 :])
    places = indices.expand(*shape[:k], indices.shape[k], *shape[k + 1 :])
    return gather(wide, dim, where(places < 0, places + input.shape[k], places))


# Writing


scatter_types = alike(of("input"), "input", "src")


def scatter_shape(call: Call) -> Size:
    _along_shape(call)
    if call["src"].shape != call["index"].shape:
        shapes = f"src {tuple(call['src'].shape)} and index {tuple(call['index'].shape)}"
        raise ShapeError(f"{shapes} must have one shape.")
    return call["input"].shape


_SUM = {"f32": "a + b", "i32": "a + b", "u32": "a + b", "vec2<u32>": "i64_add(a, b)", "vec2<f32>": "a + b"}


def scatter_launches(
    call: Call, combine: dict[str, str] | None, words: dict[str, tuple[str, str]] | None = None
) -> list[Launch]:
    """Few sources a line: one dispatch. Else where each source goes, their order, and what each output
    collects by ``combine``, an expression over what is there and a source; without it the last one stays.
    Extremes do not depend on an order: ``words`` are those of `extreme_launches`."""
    x, index = call["input"], call["index"]
    kind = register_type(x.dtype)
    k = axis(call["dim"], x.rank)
    outer, limit, inner = _line(x.shape, k)
    sources = _line(index.shape, k)[1] if index.numel else 0
    total = outer * sources * inner
    params: Params = {"count": total, "limit": limit, "sources": sources, "inner": inner}
    holes = {"T": kind, "ADD": flag(combine is not None), "apply": (combine or _SUM)[kind]}
    if sources <= _LINES:
        params["count"] = x.numel
        return [per_element(load("index/scatter_lines").fill(holes), x.numel, params, bind={"x": "input"})]
    if words and kind in words:
        return extreme_launches(call, words[kind], params, kind)
    if combine is None:
        return put_launches(call, params, x.numel, 1)
    call.temporary("keys", (total,), dt.uint32)
    keys = per_element("index/scatter_keys", total, params, bind={"out": "keys"})
    return [keys, *collect_launches(call, "input", total, x.numel, 1, {**holes, "HAS_BASE": "true"})]


def scatter_reference(input, dim, index, src, combine: np.ufunc | None, name: str = "scatter"):
    """What numpy makes of `scatter_launches`; without ``combine`` the last source of a place stays."""
    out = input.copy().reshape(input.shape or (1,))
    index, src = index.reshape(index.shape or (1,)), src.reshape(src.shape or (1,))
    outside(index, out.shape[dim], name)
    places = list(np.indices(index.shape))
    places[dim] = index
    if combine is not None:
        combine.at(out, tuple(places), src)
    else:
        # numpy leaves the order of assignments open: write the last source of every place.
        flat = np.ravel_multi_index(tuple(places), out.shape).reshape(-1)
        last = dict(zip(flat.tolist(), range(flat.size), strict=True))
        out.reshape(-1)[list(last)] = src.reshape(-1)[list(last.values())]
    return out.reshape(input.shape)


def _unreplaced(g, dim, index) -> Tensor:
    return scatter_lines(g, dim, index, g.new_zeros(index.shape))


@op(
    public="scatter",
    dtype=scatter_types,
    shape=scatter_shape,
    kernel=lambda call: scatter_launches(call, None),
    reference=lambda input, dim, index, src: scatter_reference(input, dim, index, src, None),
    grad={"input": _unreplaced, "src": lambda g, dim, index: g.gather(dim, index)},
)
def scatter_lines(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Write along an axis, for an index and sources of one shape; see `scatter`."""


@composed(
    name="scatter",
    input=lambda g: g,
    src=lambda g, src_meta: g.new_zeros(src_meta.shape, dtype=src_meta.dtype),
)
def _untouched(input: Tensor, src: Tensor) -> Tensor:
    """What an index without elements leaves: sources take part in the graph all the same."""
    return input.clone()


def within(write, input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Scatter by ``write`` where the index covers only a part of the input, and the source has more."""
    if index.numel() == 0:
        return _untouched(input, src)
    for j, n in enumerate(index.shape):
        if j < src.dim() and n > src.shape[j]:
            raise ShapeError(
                f"scatter: index {tuple(index.shape)} is longer than src {tuple(src.shape)} along axis {j}."
            )
        if j < src.dim() and n < src.shape[j]:
            src = src.narrow(j, 0, n)
    k = axis(dim, input.dim())
    cuts = [j for j, n in enumerate(index.shape) if j != k and j < input.dim() and n < input.shape[j]]
    out = write(_cut(input, dim, index), dim, index, src)
    # What the index does not cover is put back, one axis at a time.
    while cuts:
        j = cuts.pop()
        rest = input
        for c in cuts:
            rest = rest.narrow(c, 0, index.shape[c])
        out = cat([out, rest.narrow(j, index.shape[j], input.shape[j] - index.shape[j])], j)
    return out


@function(
    method=True,
    in_place=True,
    aten=(
        "scatter.src",
        "scatter.value(self, dim, index, value)",
        "scatter.reduce",
        "scatter.value_reduce(self, dim, index, value, *, reduce)",
    ),
    node="Scatter",
)
def scatter(
    input: Tensor, dim: int, index: Tensor, src=None, *, value: float | None = None, reduce: str | None = None
) -> Tensor:
    """A copy of ``input`` with ``out[index[i][j]][j] = src[i][j]`` for dim 0, and so on; of equal places
    the last source stays.

    Args:
        input: any dtype.
        dim: the axis that is looked up.
        index: integers from 0 to the axis' length - 1.
        src: a tensor at least as long as the index along every axis, same dtype; or a number.
        value: the number, by name.
        reduce: "add" adds instead, "multiply" multiplies.

    Raises:
        IndexError: at the next read, an index is out of range.
        RangeError: another ``reduce``.
    """
    if reduce is not None and text(reduce, "reduce") not in ("add", "multiply"):
        raise RangeError(f"scatter: reduce={reduce!r} is not known. Give 'add', 'multiply' or nothing.")
    source: Any = value if src is None else src
    if src is not None and value is not None:
        raise ArgumentError("scatter: src and value are both given. Give one.")
    if not hasattr(source, "_meta"):
        source = input.new_full(index.shape, source)
    if reduce == "multiply":
        return input.scatter_reduce(dim, index, source, "prod")
    return within(scatter_add if reduce == "add" else scatter_lines, input, dim, index, source)


def _added(input, dim, index, src):
    longer = any(n != m for n, m in zip(index.shape, src.shape, strict=False))
    if longer or not index.numel() or _cut(input, dim, index) is not input:
        return within(scatter_add, input, dim, index, src)
    return None


@op(
    dtype=scatter_types,
    shape=scatter_shape,
    kernel=lambda call: scatter_launches(call, _SUM),
    reference=lambda input, dim, index, src: scatter_reference(input, dim, index, src, np.add),
    grad={"input": lambda g: g, "src": lambda g, dim, index: g.gather(dim, index)},
    in_place=True,
    prepare=_added,
    node="ScatterAdd",
)
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """A copy of ``input`` with ``out[index[i][j]][j] += src[i][j]`` for dim 0, and so on, added in the
    order of the sources.

    Args:
        input: any dtype.
        dim: the axis that is looked up.
        index: integers from 0 to the axis' length - 1.
        src: at least as long as the index along every axis, same dtype.

    Raises:
        IndexError: at the next read, an index is out of range.
    """
