"""Attention and rotary embeddings of the standard."""

from __future__ import annotations

from math import sqrt

from .....errors import ArgumentError, ShapeError
from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ..constants import data_type
from ..table import operator
from .elementwise import ops


def heads_first(x: Tensor, heads: int) -> Tensor:
    """(batch, length, heads * size) as (batch, heads, length, size); four axes stay as they are."""
    if len(x.shape) == 4:
        return x
    if not heads or x.shape[-1] % heads:
        raise ShapeError(f"shape {tuple(x.shape)} does not hold {heads} heads.")
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def repeated(x: Tensor, heads: int) -> Tensor:
    """Heads of keys or values, one for each head of the queries."""
    if heads % x.shape[1]:
        raise ShapeError(f"{heads} heads of queries do not share {x.shape[1]} of keys.")
    return x if x.shape[1] == heads else ops.repeat_interleave(x, heads // x.shape[1], dim=1)


@operator("Attention", since=23)
def attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, past_key: Tensor | None = None,
    past_value: Tensor | None = None, nonpad_kv_seqlen: Tensor | None = None, *, is_causal: int = 0,
    kv_num_heads: int = 0, q_num_heads: int = 0, qk_matmul_output_mode: int = 0, scale: float | None = None,
    softcap: float = 0.0, softmax_precision: int = 0, left_window_size: int = -1,
    right_window_size: int = -1, outputs: int = 1,
):  # fmt: skip
    flat = len(q.shape) == 3
    q, k, v = heads_first(q, q_num_heads), heads_first(k, kv_num_heads), heads_first(v, kv_num_heads)
    offset = 0
    if past_key is not None and past_value is not None:
        offset = past_key.shape[2]
        k, v = ops.cat([past_key, k], 2), ops.cat([past_value, v], 2)
    elif past_key is not None or past_value is not None:
        raise ArgumentError("of the past keys and values one is given without the other.")
    factor = 1 / sqrt(q.shape[-1]) if scale is None else scale
    keys, values = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    window = left_window_size, 0 if is_causal else right_window_size
    narrow = left_window_size >= 0 or right_window_size >= 0
    plain = attn_mask is None and nonpad_kv_seqlen is None and not softcap and not narrow and outputs < 4
    seen = None
    if plain and not (is_causal and offset):
        y = F.scaled_dot_product_attention(q, keys, values, is_causal=bool(is_causal), scale=factor)
    else:
        mask, hidden = _masks(q, keys, attn_mask, nonpad_kv_seqlen, window, offset)
        scores = ops.matmul(q * sqrt(factor), (keys * sqrt(factor)).transpose(-2, -1))
        seen = [scores]
        if softcap:
            scores = softcap * ops.tanh(scores / softcap)
        seen.append(scores)
        if mask is not None:
            scores = scores + mask
        if hidden is not None:
            scores = ops.masked_fill(scores, hidden, float("-inf"))
        seen.append(scores)
        wide = scores.to(data_type("softmax_precision", softmax_precision)) if softmax_precision else scores
        weights = ops.softmax(wide, -1)
        nothing = ops.amax(wide, -1, True) == float("-inf")
        weights = ops.masked_fill(weights, nothing, 0.0).to(q.dtype)
        seen.append(weights)
        y = ops.matmul(weights, values)
    if flat:
        y = y.transpose(1, 2).flatten(2)
    results = (y, k, v)
    return results if seen is None else (*results, seen[qk_matmul_output_mode])


def _masks(
    q: Tensor, k: Tensor, given: Tensor | None, filled: Tensor | None, window: tuple[int, int], offset: int
) -> tuple[Tensor | None, Tensor | None]:
    """What is added to the scores, and where a key takes no part."""
    rows, columns = q.shape[2], k.shape[2]
    added = hidden = None
    if given is not None:
        missing = columns - given.shape[-1]
        if given.dtype is dt.bool_:
            given = F.pad(given.to(dt.int32), (0, missing)) if missing > 0 else given
            hidden = given == 0
        else:
            added = F.pad(given, (0, missing), value=float("-inf")) if missing > 0 else given
    places = ops.arange(columns, device=q.device)
    if filled is not None:
        lengths = filled.to(dt.int64).reshape(-1, 1, 1, 1)
        empty = places >= lengths
        hidden = empty if hidden is None else hidden | empty
    own = ops.arange(rows, device=q.device).unsqueeze(1) + offset
    if filled is not None and not offset:
        own = own + (filled.to(dt.int64).reshape(-1, 1, 1, 1) - rows)
    for size, beyond in zip(window, (own - places, places - own)):
        if size >= 0:
            hidden = beyond > size if hidden is None else hidden | (beyond > size)
    return added, hidden


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, columns: int) -> Tensor:
    """Rotary embedding of the first ``columns`` of each head; ``cos`` and ``sin`` have half as many."""
    turned, rest = x[..., :columns], x[..., columns:]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = turned[..., : columns // 2], turned[..., columns // 2 :]
    first, second = a * cos - b * sin, b * cos + a * sin
    turned = ops.stack([first, second], -1).flatten(-2) if interleaved else ops.cat([first, second], -1)
    return ops.cat([turned, rest], -1) if rest.shape[-1] else turned


@operator("RotaryEmbedding", since=23)
def rotary_embedding(
    x: Tensor, cos_cache: Tensor, sin_cache: Tensor, position_ids: Tensor | None = None, *,
    interleaved: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0,
):  # fmt: skip
    heads = heads_first(x, num_heads)
    columns = rotary_embedding_dim or heads.shape[-1]
    if position_ids is not None:
        shape, flat = position_ids.shape, position_ids.reshape(-1).to(dt.int64)
        cos_cache, sin_cache = (
            ops.index_select(t, 0, flat).reshape(*shape, t.shape[-1]) for t in (cos_cache, sin_cache)
        )
    cos, sin = cos_cache.unsqueeze(1), sin_cache.unsqueeze(1)
    y = rotate(heads, cos, sin, bool(interleaved), columns)
    return y if len(x.shape) == 4 else y.transpose(1, 2).flatten(2)
