"""Whole rows by number: reading them (embedding, index_select) and writing them.

Bad indices are found on the device and raised as IndexError by the next read. Writes that meet are done in
the order of the sources: the same bits on every run.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...autograd.composed import composed
from ...autograd.edges import LEAF
from ...errors import DimensionError, ShapeError
from ...op.declaration import Call, op
from ...op.families import formed
from ...op.kernel import PIECE, Launch, Params, flag, is_direct, load, per_element, register_type
from ...op.rules import alike
from ...quant.rows import row_chunks
from ...tensors import dtypes as dt
from ...tensors.shape import Size, axis
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..quant.products import quant_embedding
from .bounds import of, outside
from .sources import collect_launches, put_launches

# Reading


def _embedding_shape(call: Call) -> Size:
    if call["weight"].rank != 2:
        raise ShapeError(f"weight has shape {tuple(call['weight'].shape)}; it must be (rows, columns).")
    return Size((*call["indices"].shape, call["weight"].shape[1]))


def _lookup(call: Call, x: str, ids: str, k: int, wraps: bool = False) -> Launch:
    """The dispatch of ``out[..., j, ...] = x[..., ids[j], ...]`` along axis k; ``wraps`` says whether
    negative ids count from the end."""
    table, picked = call[x], call[ids].numel
    inner, limit = prod(table.shape[k + 1 :]), table.shape[k] if table.rank else 1
    count = prod(table.shape[:k]) * picked * inner
    file = load("index/select").fill({"T": register_type(table.dtype), "WRAP": flag(wraps)})
    params = {"count": count, "limit": limit, "picked": picked, "inner": inner}
    return per_element(file, -(-count // 4), params, bind={"x": x, "ids": ids})


def _embedding_reference(weight, indices, padding_idx):
    outside(indices, weight.shape[0], "embedding")
    return weight[indices]


def _embedding_grad(g, indices, weight_meta, padding_idx):
    rows, columns = weight_meta.shape
    g, indices = g.reshape(indices.numel(), columns), indices.reshape(-1)
    if padding_idx >= 0:
        g = g.masked_fill((indices == padding_idx).unsqueeze(1), 0.0)
    return add_rows(indices, g, rows)


@composed(name="embedding", weight=_embedding_grad)
def _through(weight: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    """Rows of a quantized table that stands for a float one, which has the gradient."""
    return quant_embedding(row_chunks(weight.detach()), indices)


def _quantized(weight, indices, padding_idx):
    held = getattr(weight, "_meta", None)
    if not (held and held.dtype.is_quantized):
        return None
    if weight._node is not None and weight._node is not LEAF:
        return _through(weight, indices, padding_idx)
    return quant_embedding(row_chunks(weight), indices)


@op(
    dtype=of("weight", "indices"),
    shape=_embedding_shape,
    kernel=lambda call: _lookup(call, "weight", "indices", 0),
    reference=_embedding_reference,
    grad={"weight": _embedding_grad},
    aten="embedding.default(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
    prepare=_quantized,
)
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor:
    """Rows of a table: ``out[..., :] = weight[indices[...], :]``.

    Args:
        weight: (rows, columns); rows of a quantized one come out as float32.
        indices: any shape, integers from 0 to rows - 1.
        padding_idx: a row that gets no gradient; none if negative.

    Returns:
        (*indices.shape, columns).

    Raises:
        IndexError: at the next read, an index is out of range.
        DTypeError: the indices are not integers.
    """


def _from_the_end(weight, indices):
    rows = len(weight)
    outside(indices, rows, "index", wrap=True)
    return weight[np.where(indices < 0, indices + rows, indices)]


@op(
    public="index",
    dtype=of("weight", "indices"),
    shape=_embedding_shape,
    kernel=lambda call: _lookup(call, "weight", "indices", 0, wraps=True),
    reference=_from_the_end,
    grad={
        "weight": lambda g, indices, weight_meta: _embedding_grad(
            g, where(indices < 0, indices + weight_meta.shape[0], indices), weight_meta, -1
        )
    },
)
def rows_at(weight: Tensor, indices: Tensor) -> Tensor:
    """Rows of a table as `embedding` takes them; negative indices count from the end."""


def _select_shape(call: Call) -> Size:
    x, index = call["input"], call["index"]
    if index.rank > 1:
        raise DimensionError(
            f"index has shape {tuple(index.shape)}; it must be one list of indices. Use gather or x[index]."
        )
    k = axis(call["dim"], x.rank)
    return Size((*x.shape[:k], index.numel, *x.shape[k + 1 :])) if x.rank else Size()


def _select_reference(input, dim, index):
    outside(index, input.shape[dim] if input.ndim else 1, "index_select")
    return input.take(index.reshape(-1), dim) if input.ndim else input


def _select_grad(g, index, input_meta, dim):
    if not input_meta.rank:
        return g
    k = axis(dim, input_meta.rank)
    rows = g.transpose(0, k)
    added = add_rows(
        index.reshape(-1), rows.reshape(rows.shape[0], prod(rows.shape[1:])), input_meta.shape[k]
    )
    return added.reshape(input_meta.shape[k], *rows.shape[1:]).transpose(0, k)


@op(
    dtype=of("input"),
    shape=_select_shape,
    kernel=lambda call: _lookup(call, "input", "index", axis(call["dim"], call["input"].rank)),
    reference=_select_reference,
    grad={"input": _select_grad},
    method=True,
)
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """``out[..., j, ...] = input[..., index[j], ...]`` along one axis.

    Args:
        input: any dtype.
        index: (n,) integers from 0 to the axis' length - 1.

    Raises:
        IndexError: at the next read, an index is out of range.
    """


# Writing

# Sources up to which every workgroup looks through all of them; more are sorted by where they go.
_SOURCES = 8192
# And elements of these.
_LARGE = 1 << 22
# Words of workgroup memory for marks, and workgroups that fill a large GPU.
_MARKS, _GROUPS = 2048, 1024


def _shape(call: Call) -> Size:
    index, src, x = call["index"], call["src"], call["input"]
    if index.rank != 1 or src.rank != 2 or src.shape[0] != index.numel:
        raise ShapeError(f"index {tuple(index.shape)}, src {tuple(src.shape)}: give (n,), (n, width).")
    shape = Size((call["rows"], src.shape[1]))
    if x is not None and x.shape != shape:
        raise ShapeError(f"input {tuple(x.shape)} must have the shape of the result, {tuple(shape)}.")
    return shape


def _launches(call: Call, add: bool) -> list[Launch]:
    """Few sources: one dispatch. Else where each source goes, their order, and what each row collects."""
    index, out = call["index"], call.out
    base = "src" if call["input"] is None else "input"  # any buffer will do where it is not read
    kind = register_type(out.dtype)
    rows, width = out.shape
    sources = index.numel
    holes = {
        "T": kind, "ADD": flag(add), "HAS_BASE": flag(base == "input"),
        "apply": "i64_add(a, b)" if kind == "vec2<u32>" else "a + b",
    }  # fmt: skip
    if sources <= _SOURCES and sources * width < _LARGE:
        return [_rows_launch(rows, width, sources, holes, base)]
    params: Params = {"count": sources, "limit": rows, "sources": sources, "inner": 1}
    if not add:
        return put_launches(call, params, rows, width)
    call.temporary("keys", (sources,), dt.uint32)
    keys = per_element("index/scatter_keys", sources, params, bind={"out": "keys"})
    return [keys, *collect_launches(call, base, sources, rows, width, holes)]


def _rows_launch(rows: int, width: int, sources: int, holes: dict[str, str], base: str) -> Launch:
    words = max(-(-sources // 32), 1)
    # Rows share the search for their sources, as long as there are workgroups enough; else columns are split.
    together = max(1, min(16, _MARKS // words, rows // _GROUPS))
    groups = max(-(-rows // together), 1)
    span = max(64, -(-width // max(_GROUPS // groups, 1)))
    if is_direct():
        lanes, span = _direct_lanes(together, span, sources, words)
    else:
        lanes = min(256, max(64, 1 << (together * span).bit_length() - 1))
    own = {"WORKGROUP": f"{lanes}u", "ROWS": f"{together}u", "MARKS": f"{together * words}u"}
    params: Params = {"rows": rows, "width": width, "span": span, "sources": sources, "words": words}
    file = load("index/scatter_rows").fill({**holes, **own})
    return Launch(file, groups * -(-width // span), params, bind={"x": base})


def _direct_lanes(together: int, span: int, sources: int, words: int) -> tuple[int, int]:
    """Lanes and columns of a workgroup on an adapter that runs on the CPU: few lanes, unless many sources may
    go into a row."""
    lanes = 16
    while (span // lanes + 2) * (together * (words + 1) + sources) > PIECE // 2 and (
        lanes < 256 or span > 64
    ):
        if lanes < 256:
            lanes *= 2
        else:
            span = max(span // 2, 64)
    return lanes, span


def _form(index: Tensor, src: Tensor, rows: int, input: Tensor | None = None) -> Tensor: ...


def _writing(name: str, public: str, add: bool, grad: Callable, doc: str) -> Callable[..., Tensor]:
    """Declare a way to write rows, with the formula of what they are written over."""

    def reference(index, src, rows, input):
        outside(index, rows, name)
        out = np.zeros((rows, src.shape[1]), src.dtype) if input is None else input.copy()
        if add:
            np.add.at(out, index, src)
        else:
            last = dict(zip(index.tolist(), range(index.size), strict=True))
            out[list(last)] = src[list(last.values())]
        return out

    return op(
        public=public,
        dtype=alike(of("src"), "src", "input"),
        shape=_shape,
        kernel=lambda call: _launches(call, add),
        reference=reference,
        grad={"input": grad, "src": lambda g, index: embedding(g, index)},
    )(formed(_form, name, doc))


add_rows = _writing(
    "add_rows", "index_add", True, lambda g: g,
    """A copy of ``input``, zeros if None, with ``out[index[n], :] += src[n, :]``, added in the order of n.

    Args:
        index: (n,) integers from 0 to rows - 1.
        src: (n, width).
        rows: of the result.
        input: (rows, width), same dtype as the source.

    Raises:
        IndexError: at the next read, an index is out of range.""",
)  # fmt: skip
put_rows = _writing(
    "put_rows", "index_put", False,
    lambda g, index, src_meta, rows: put_rows(index, g.new_zeros(src_meta.shape), rows, g),
    "A copy of ``input`` with ``out[index[n], :] = src[n, :]``, of which the last stays; see `add_rows`.",
)  # fmt: skip
