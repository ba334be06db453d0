"""What a decoder does with positions: rotary embedding, writing keys and values into a cache, and
attention over it.

Positions and lengths are parameters of the launches: a growing sequence plans nothing anew.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...errors import DimensionError, DTypeError, KernelError, ShapeError
from ...op.declaration import Call, op
from ...op.kernel import Launch, flag, load
from ...op.rules import as_input, float_input
from ...tensors.construct import tensor
from ...tensors.dtypes import float32
from ...tensors.meta import Meta
from ...tensors.shape import Size, broadcast_shapes, merge_axes
from ...tensors.tensor import Tensor
from .definition import scale_of
from .scaled_dot_product import _types, attention_launches, numpy_attention


def _rotary_shape(call: Call) -> Size:
    x, cos, sin = call["input"], call["cos"], call["sin"]
    if x.rank < 2 or cos.rank != 2 or cos.shape != sin.shape or 2 * cos.shape[1] > x.shape[-1]:
        raise ShapeError(
            f"input {tuple(x.shape)}, cos {tuple(cos.shape)}, sin {tuple(sin.shape)}: give (..., time, "
            "head_dim) and two tables (positions, half) with 2 * half <= head_dim."
        )
    return as_input(call)


@lru_cache(maxsize=1024)
def _walk(m: Meta) -> tuple[int, tuple[int, ...]] | None:
    """(heads, strides) by which (..., time, head_dim) is walked as (batch, heads, time, head_dim); None where
    its leading axes are more than two."""
    lengths, (strides,) = merge_axes(m.shape[:-2], [m.strides[:-2]])
    if len(lengths) > 2:
        return None
    return ((1, *lengths)[-1], (*(0, 0, *strides)[-2:], *m.strides[-2:]))


def _rotary_launch(call: Call) -> Launch:
    x, walk = call["input"], _walk(call["input"])
    if walk is None:
        raise KernelError("the leading axes of the input cannot be walked as two.")
    holes = {"INTERLEAVED": flag(call["interleaved"]), "INVERSE": flag(call["inverse"])}
    params = {
        "count": x.numel, "heads": walk[0], "time": x.shape[-2], "head_dim": x.shape[-1],
        "half": call["cos"].shape[1], "x_strides": walk[1],
    }  # fmt: skip
    bind = {"x": "input", "cosines": "cos", "sines": "sin"}
    return Launch(load("attention/rotary").fill(holes), -(-x.numel // 64), params, bind=bind)


def _rotary_reference(input, cos, sin, position, interleaved, inverse):
    half, time = cos.shape[1], input.shape[-2]
    c, s = cos[position : position + time], sin[position : position + time]
    s = -s if inverse else s
    end, step = 2 * half, 2 if interleaved else 1
    pick = slice(0, end if interleaved else half, step), slice(1 if interleaved else half, end, step)
    first, second = input[..., pick[0]], input[..., pick[1]]
    out = input.copy()
    out[..., pick[0]] = first * c - second * s
    out[..., pick[1]] = second * c + first * s
    return out


def _turned_back(g, cos, sin, position, interleaved, inverse) -> Tensor:
    return rotary_embedding(g, cos, sin, position, interleaved=interleaved, inverse=not inverse)


def _walkable(input, cos, sin, position, interleaved, inverse) -> Tensor | None:
    if _walk(input._meta) is None:
        return rotary_embedding(
            input.contiguous(), cos, sin, position, interleaved=interleaved, inverse=inverse
        )


def _check_positions(input, cos, sin, position, interleaved, inverse) -> None:
    (rows, _), (*_, time, _) = cos.shape, input.shape
    if not 0 <= position <= rows - time:
        raise DimensionError(
            f"rotary_embedding: positions {position} to {position + input.shape[-2] - 1} are outside the "
            f"tables, which end at {cos.shape[0] - 1}. Make the tables longer."
        )


@op(
    dtype=float_input,
    shape=_rotary_shape,
    kernel=_rotary_launch,
    reference=_rotary_reference,
    grad={"input": _turned_back},
    dynamic=("position",),
    strided=("input",),
    check=_check_positions,
    prepare=_walkable,
    exports=None,
    ours="made of slices, products and sums in PyTorch",
)
def rotary_embedding(
    input: Tensor,
    cos: Tensor,
    sin: Tensor,
    position: int = 0,
    *,
    interleaved: bool = False,
    inverse: bool = False,
) -> Tensor:
    """Rotary position embedding: ``(x1 cos - x2 sin, x2 cos + x1 sin)`` for the pairs (x1, x2) of every head.

    Args:
        input: (..., time, head_dim).
        cos, sin: (positions, half), from `rotary_tables`; columns from 2 * half on are left as they are.
        position: position of the first time step.
        interleaved: pairs are (0, 1), (2, 3), ... instead of (p, p + half).
        inverse: turn back, which is also the derivative.

    Returns:
        Shape and dtype of the input.

    Raises:
        ShapeError: the tables do not fit the head.
        DimensionError: a position lies past the tables.

    Source: Su et al. 2021, "RoFormer", equation 34
    """


def rotary_tables(
    inverse_frequencies, positions: int, *, factor: float = 1.0, device=None
) -> tuple[Tensor, Tensor]:
    """Tables of ``cos(p * f)`` and ``sin(p * f)``, computed in float64 and rounded once.

    Args:
        inverse_frequencies: (half,) angles in radians per position, or (positions, half) with those of each;
            a list or numpy array.
        positions: rows of the tables.
        factor: factor of both tables (YaRN's attention factor).
        device: where; the default device if not given.

    Returns:
        Two float32 tensors (positions, half).
    """
    angles = np.arange(positions, dtype=np.float64)[:, None] * np.asarray(inverse_frequencies, np.float64)
    return tuple(tensor((f(angles) * factor).astype(np.float32), device=device) for f in (np.cos, np.sin))


def _cached_shape(call: Call) -> Size:
    query, key, value = call["query"], call["key_cache"], call["value_cache"]
    if {query.rank, key.rank, value.rank} != {4} or query.shape[::3] != key.shape[::3]:
        raise ShapeError(
            f"query {tuple(query.shape)} and caches {tuple(key.shape)}, {tuple(value.shape)} must be "
            f"(batch, heads, time, head_dim)."
        )
    sinks = call["sinks"]
    if sinks is not None and sinks.shape != (query.shape[1],):
        given, heads = tuple(sinks.shape), query.shape[1]
        raise ShapeError(f"sinks of shape {given} must be a number for each of {heads} heads.")
    mask, scores = call["attn_mask"], Size((*query.shape[:3], key.shape[2]))
    if mask is not None and broadcast_shapes(mask.shape, scores) != scores:
        raise ShapeError(
            f"attn_mask of shape {tuple(mask.shape)} does not broadcast to the scores {tuple(scores)}."
        )
    return Size((*query.shape[:3], value.shape[3]))


def _cached_launches(call: Call) -> list[Launch]:
    capacity = call["key_cache"].shape[2]
    scale = scale_of(call["query"].shape, call["scale"])
    mask, sinks = (name if call[name] is not None else None for name in ("attn_mask", "sinks"))
    return attention_launches(
        call, "key_cache", "value_cache", capacity, True, True, scale, mask, "length", call["soft_cap"], sinks
    )


def _cached_reference(query, key_cache, value_cache, length, attn_mask, scale, soft_cap, sinks):
    keys, values = key_cache[:, :, :length], value_cache[:, :, :length]
    mask = None if attn_mask is None else attn_mask[..., :length]
    begun, scale = length - query.shape[2], scale_of(query.shape, scale)
    return numpy_attention(query, keys, values, mask, begun, scale, soft_cap, sinks)


def _check_length(query, key_cache, value_cache, length, attn_mask, scale, soft_cap, sinks) -> None:
    if not query.shape[-2] <= length <= key_cache.shape[-2]:
        raise DimensionError(
            f"cached_attention: length {length} must lie between the query's {query.shape[-2]} positions "
            f"and the cache's {key_cache.shape[-2]}."
        )


@op(
    dtype=_types,
    shape=_cached_shape,
    kernel=_cached_launches,
    reference=_cached_reference,
    grad=None,
    dynamic=("length",),
    check=_check_length,
    strided=("attn_mask",),
    exports=None,
    ours="made of writes into a cache and attention in PyTorch",
)
def cached_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    length: int,
    attn_mask: Tensor | None = None,
    *,
    scale: float | int | None = None,
    soft_cap: float | int = 0.0,
    sinks: Tensor | None = None,
) -> Tensor:
    """Causal attention of the last ``time`` positions over the first ``length`` of a preallocated cache.

    Query t stands at position ``length - time + t`` and sees the keys up to it. There is no gradient.

    Args:
        query: (batch, heads, time, head_dim).
        key_cache: (batch, kv_heads, capacity, head_dim); heads are a multiple of kv_heads.
        value_cache: (batch, kv_heads, capacity, value_dim).
        length: positions that are filled, those of the query included.
        attn_mask: broadcasts to (batch, heads, time, capacity), added to the scores.
        scale: factor of the scores, ``1 / sqrt(head_dim)`` if None.
        soft_cap: scores become ``soft_cap * tanh(score / soft_cap)``; 0 leaves them.
        sinks: (heads,), scores of one more key of each head, whose value is 0.

    Returns:
        (batch, heads, time, value_dim).

    Raises:
        DimensionError: ``length`` is less than ``time`` or more than the capacity.
        ShapeError, DTypeError: shapes or dtypes do not fit.
    """


def _write_launch(call: Call) -> Launch:
    cache, rows = call["cache"], call["rows"]
    if cache.rank != 4 or cache.shape[:2] + cache.shape[3:] != rows.shape[:2] + rows.shape[3:]:
        raise ShapeError(
            f"rows {tuple(rows.shape)} do not fit into a cache {tuple(cache.shape)}: only axis 2 may differ."
        )
    if cache.dtype is not float32 or rows.dtype is not float32:
        raise DTypeError(f"rows are {rows.dtype} and the cache is {cache.dtype}. Both must be float32.")
    if not cache.is_contiguous:
        raise ShapeError(
            "the cache must be contiguous. Allocate it with zeros and write into the whole of it."
        )
    _, heads, time, head_dim = rows.shape
    params = {
        "count": rows.numel, "heads": heads, "time": time, "head_dim": head_dim, "capacity": cache.shape[2],
        "rows_strides": rows.strides,
    }  # fmt: skip
    return Launch("attention/cache_write", -(-rows.numel // 64), params)


def _write_reference(cache, rows, position):
    cache[:, :, position : position + rows.shape[2]] = rows


@op(
    public="cache_write",
    kernel=_write_launch,
    reference=_write_reference,
    grad=None,
    dynamic=("position",),
    mutates="cache",
    outputs=(),
    strided=("rows",),
)
def write_rows(cache: Tensor, rows: Tensor, position: int) -> Tensor:
    """Overwrite part of a cache; see `cache_write`."""


def cache_write(cache: Tensor, new: Tensor, position: int) -> Tensor:
    """``cache[:, :, position : position + time] = new``, in place and outside the graph.

    Args:
        cache: (batch, kv_heads, capacity, head_dim), contiguous, float32.
        new: (batch, kv_heads, time, head_dim), same dtype.
        position: where the first of the new rows goes.

    Returns:
        The cache.

    Raises:
        DimensionError: the rows do not fit at that position.
        ShapeError, DTypeError: shapes or dtypes do not fit.
    """
    (*_, rows, _), (*_, time, _) = cache.shape, new.shape
    if not 0 <= position <= rows - time:
        raise DimensionError(
            f"cache_write: positions {position} to {position + time - 1} are outside the cache's {rows}. "
            "Allocate a longer cache."
        )
    if new._storage is cache._storage:
        new = new.clone()
    return write_rows(cache, new, position)
