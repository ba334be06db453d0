"""Operators that onnxruntime adds (com.microsoft): fused layers and attention of exported transformers.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

from .....errors import ArgumentError, ShapeError
from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...rows import one_of
from ..table import MICROSOFT, operator
from .attention import heads_first, repeated, rotate
from .elementwise import ops
from .products import gemm
from .windows import conv

contributed = partial(operator, domain=MICROSOFT)

_ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "Relu": ops.relu, "Tanh": ops.tanh, "Sigmoid": ops.sigmoid, "LeakyRelu": F.leaky_relu,
    "Clip": ops.clamp, "HardSigmoid": lambda x, a=0.2, b=0.5: ops.clamp(a * x + b, 0, 1), "Gelu": F.gelu,
}  # fmt: skip


def _fast_gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


@contributed("Gelu")
def gelu(x: Tensor):
    return F.gelu(x)


@contributed("BiasGelu")
def bias_gelu(x: Tensor, bias: Tensor):
    return F.gelu(x + bias)


@contributed("FastGelu")
def fast_gelu(x: Tensor, bias: Tensor | None = None):
    return _fast_gelu(x if bias is None else x + bias)


@contributed("QuickGelu")
def quick_gelu(x: Tensor, *, alpha: float = 1.702):
    return x * ops.sigmoid(alpha * x)


@contributed("BiasAdd")
def bias_add(x: Tensor, bias: Tensor, skip: Tensor):
    return x + bias + skip


@contributed("BiasSplitGelu")
def bias_split_gelu(x: Tensor, bias: Tensor):
    value, gate = ops.chunk(x + bias, 2, -1)
    return value * F.gelu(gate)


@contributed("ExpandDims")
def expand_dims(x: Tensor, axis: Tensor):
    return x.unsqueeze(int(axis.item()))


@contributed("FusedMatMul", "TransposeMatMul")
def fused_matmul(
    a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
):  # fmt: skip
    if transBatchA or transBatchB:
        raise ArgumentError(
            "transBatchA and transBatchB are not computed here. Transpose before the product."
        )
    y = ops.matmul(a.transpose(-2, -1) if transA else a, b.transpose(-2, -1) if transB else b)
    return y if alpha == 1 else y * alpha


def _activated(y: Tensor, activation: str, settings: Any) -> Tensor:
    if not activation:
        return y
    return one_of("activation", activation, _ACTIVATIONS)(y, *settings)


@contributed("FusedGemm")
def fused_gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, activation: str = "",
    activation_alpha: float | None = None, activation_beta: float | None = None,
    activation_gamma: float | None = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0,
):  # fmt: skip
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _activated(y, activation, [v for v in (activation_alpha, activation_beta) if v is not None])


@contributed("FusedConv")
def fused_conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, z: Tensor | None = None, *, activation: str = "",
    activation_params: list | None = None, auto_pad: str = "NOTSET", dilations: list | None = None,
    group: int = 1, kernel_shape: list | None = None, pads: list | None = None, strides: list | None = None,
):  # fmt: skip
    y = conv(
        x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
        strides=strides,
    )  # fmt: skip
    return _activated(y if z is None else y + z, activation, activation_params or [])


def _skipped(x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
    total = x + skip
    return total if bias is None else total + bias


@contributed("SkipLayerNormalization")
def skip_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None = None, bias: Tensor | None = None, *,
    epsilon: float = 1e-12,
):  # fmt: skip
    total = _skipped(x, skip, bias)
    return F.layer_norm(total, total.shape[-1:], gamma, beta, epsilon), None, None, total


@contributed("SkipSimplifiedLayerNormalization")
def skip_rms_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: float = 1e-12
):
    total = _skipped(x, skip, bias)
    return F.rms_norm(total, total.shape[-1:], gamma, epsilon), None, None, total


@contributed("SimplifiedLayerNormalization")
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
):
    return F.rms_norm(x, x.shape[axis:], scale, epsilon)


@contributed("EmbedLayerNormalization")
def embed_layer_normalization(
    input_ids: Tensor, segment_ids: Tensor | None, word_embedding: Tensor, position_embedding: Tensor,
    segment_embedding: Tensor | None, gamma: Tensor, beta: Tensor, mask: Tensor | None = None,
    position_ids: Tensor | None = None, *, epsilon: float = 1e-12, mask_index_type: int = 0,
):  # fmt: skip
    batch, length = input_ids.shape
    places = (
        ops.arange(length, device=input_ids.device).unsqueeze(0) if position_ids is None else position_ids
    )
    total = F.embedding(input_ids.to(dt.int64), word_embedding) + F.embedding(
        places.to(dt.int64), position_embedding
    )
    if segment_ids is not None and segment_embedding is not None:
        total = total + F.embedding(segment_ids.to(dt.int64), segment_embedding)
    if mask is None:
        counts = ops.zeros((batch,), dtype=dt.int32, device=input_ids.device)
    else:
        counts = ops.sum(mask, 1).to(dt.int32)
    return F.layer_norm(total, total.shape[-1:], gamma, beta, epsilon), counts, total


@contributed("RotaryEmbedding")
def rotary_embedding(
    x: Tensor, position_ids: Tensor, cos_cache: Tensor, sin_cache: Tensor, *, interleaved: int = 0,
    is_packed_batching: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0, scale: float = 1.0,
):  # fmt: skip
    if is_packed_batching or scale != 1:
        raise ArgumentError("is_packed_batching and scale of RotaryEmbedding are not computed here.")
    columns = rotary_embedding_dim or 2 * cos_cache.shape[-1]
    heads = num_heads if num_heads or len(x.shape) == 4 else x.shape[-1] // columns
    y = heads_first(x, heads)
    places = position_ids.to(dt.int64)
    if len(places.shape) == 1:
        places = places + ops.arange(y.shape[2], device=x.device).unsqueeze(0)
    cos, sin = (F.embedding(places, t).unsqueeze(1) for t in (cos_cache, sin_cache))
    y = rotate(y, cos, sin, bool(interleaved), columns)
    return y if len(x.shape) == 4 else y.transpose(1, 2).flatten(2)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, added: Tensor | None, scale: float | None, softcap: float = 0.0,
    sink: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(batch, length, heads * size) of heads first; ``added`` is what the scores are moved by."""
    k, v = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    factor = scale or 1 / sqrt(q.shape[-1])
    if softcap or sink is not None:
        scores = ops.matmul(q * factor, k.transpose(-2, -1))
        scores = softcap * ops.tanh(scores / softcap) if softcap else scores
        scores = scores if added is None else scores + added
        if sink is not None:
            wall = sink.reshape(1, -1, 1, 1).to(scores.dtype).expand(*scores.shape[:3], 1)
            weights = ops.softmax(ops.cat([scores, wall], -1), -1)[..., :-1]
        else:
            weights = ops.softmax(scores, -1)
        y = ops.matmul(weights, v)
    else:
        y = F.scaled_dot_product_attention(q, k, v, added, scale=factor)
    return y.transpose(1, 2).flatten(2)


def _padding(mask: Tensor | None, rows: int, columns: int, like: Tensor, low: float) -> Tensor | None:
    """What scores are moved by where a mask of keys is 0; of lengths, (batch,), from there on."""
    if mask is None:
        return None
    if len(mask.shape) == 1:
        if mask.shape[0] != like.shape[0]:
            raise ShapeError(f"a mask of shape {tuple(mask.shape)} is not computed here. Give two axes.")
        kept = ops.arange(columns, device=like.device) < mask.to(dt.int64).unsqueeze(1)
    else:
        kept = mask != 0
    shape = {2: (kept.shape[0], 1, 1, columns), 3: (kept.shape[0], 1, rows, columns)}
    kept = kept.reshape(shape[len(kept.shape)]) if len(kept.shape) < 4 else kept
    return ops.where(kept, 0.0, low).to(like.dtype)


def _sum(*parts: Tensor | None) -> Tensor | None:
    given = [p for p in parts if p is not None]
    return sum(given[1:], given[0]) if given else None


def _causal(rows: int, columns: int, like: Tensor, low: float, window: int = -1) -> Tensor:
    own = ops.arange(rows, device=like.device).unsqueeze(1) + (columns - rows)
    keys = ops.arange(columns, device=like.device)
    hidden = keys > own
    if window >= 0:
        hidden = hidden | (keys <= own - window)
    return ops.where(hidden, low, 0.0).to(like.dtype)


@contributed("MultiHeadAttention")
def multi_head_attention(
    query: Tensor, key: Tensor | None = None, value: Tensor | None = None, bias: Tensor | None = None,
    key_padding_mask: Tensor | None = None, attention_bias: Tensor | None = None,
    past_key: Tensor | None = None, past_value: Tensor | None = None, *, num_heads: int,
    mask_filter_value: float = -10000.0, scale: float | None = None, unidirectional: int = 0,
):  # fmt: skip
    if key is None:
        packed = query.reshape(*query.shape[:2], num_heads, 3, -1)
        query, key, value = (packed.select(3, n).flatten(2) for n in range(3))
    elif value is None:
        packed = key.reshape(*key.shape[:2], num_heads, 2, -1)
        key, value = (packed.select(3, n).flatten(2) for n in range(2))
    if bias is not None:
        size = query.shape[-1]
        query = query + bias[:size]
        if len(key.shape) == 3 and value is not None:
            key, value = key + bias[size : 2 * size], value + bias[2 * size :]
    assert value is not None
    q, k, v = (heads_first(t, num_heads) for t in (query, key, value))
    if past_key is not None and past_value is not None:
        k, v = ops.cat([past_key, k], 2), ops.cat([past_value, v], 2)
    rows, columns = q.shape[2], k.shape[2]
    mask = (
        None if key_padding_mask is None else _padding(key_padding_mask, rows, columns, q, mask_filter_value)
    )
    causal = _causal(rows, columns, q, mask_filter_value) if unidirectional else None
    return _attend(q, k, v, _sum(attention_bias, mask, causal), scale), k, v


@contributed("Attention")
def attention(
    x: Tensor, weights: Tensor, bias: Tensor | None = None, mask_index: Tensor | None = None,
    past: Tensor | None = None, attention_bias: Tensor | None = None, *, num_heads: int, do_rotary: int = 0,
    mask_filter_value: float = -10000.0, past_present_share_buffer: int = 0,
    qkv_hidden_sizes: list | None = None, rotary_embedding_dim: int = 0, scale: float | None = None,
    unidirectional: int = 0,
):  # fmt: skip
    if do_rotary or past_present_share_buffer:
        raise ArgumentError("do_rotary and past_present_share_buffer are not computed here. Export without.")
    y = ops.matmul(x, weights)
    y = y if bias is None else y + bias
    parts = list(qkv_hidden_sizes or [y.shape[-1] // 3] * 3)
    q, k, v = (heads_first(t, num_heads) for t in ops.split_with_sizes(y, parts, -1))
    if past is not None:
        k, v = ops.cat([past[0], k], 2), ops.cat([past[1], v], 2)
    rows, columns = q.shape[2], k.shape[2]
    mask = _padding(mask_index, rows, columns, q, mask_filter_value)
    causal = _causal(rows, columns, q, mask_filter_value) if unidirectional else None
    return _attend(q, k, v, _sum(attention_bias, mask, causal), scale), ops.stack([k, v])


@contributed("GroupQueryAttention")
def group_query_attention(
    query: Tensor, key: Tensor | None, value: Tensor | None, past_key: Tensor | None,
    past_value: Tensor | None, seqlens_k: Tensor, total_sequence_length: Tensor,
    cos_cache: Tensor | None = None, sin_cache: Tensor | None = None, position_ids: Tensor | None = None,
    attention_bias: Tensor | None = None, head_sink: Tensor | None = None, *, num_heads: int,
    kv_num_heads: int, causal: int = 1, do_rotary: int = 0, local_window_size: int = -1,
    rotary_interleaved: int = 0, scale: float | None = None, smooth_softmax: int = 0, softcap: float = 0.0,
):  # fmt: skip
    """Past keys and values are as long as they are, without room for more: the new ones are joined to them,
    and each member of a batch attends to its own ``seqlens_k + 1``."""
    if key is None or value is None:
        each = query.shape[-1] // (num_heads + 2 * kv_num_heads)
        parts = [num_heads * each, kv_num_heads * each, kv_num_heads * each]
        query, keys, values = ops.split_with_sizes(query, parts, -1)
    else:
        keys, values = key, value
    q, k, v = heads_first(query, num_heads), *(heads_first(t, kv_num_heads) for t in (keys, values))
    batch, _, rows, _ = q.shape
    before = 0 if past_key is None else past_key.shape[2]
    lengths = seqlens_k.reshape(-1).to(dt.int64) + 1
    # The first new key of each member stands behind its own past.
    first = (lengths - rows).clamp(min=0) if before else ops.zeros_like(lengths)
    own = first.unsqueeze(1) + ops.arange(rows, device=q.device)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise ArgumentError("do_rotary needs cos_cache and sin_cache.")
        places = own if position_ids is None else position_ids.to(dt.int64)
        cos, sin = (F.embedding(places, t).unsqueeze(1) for t in (cos_cache, sin_cache))
        turned = 2 * cos_cache.shape[-1]
        q, k = (rotate(t, cos, sin, bool(rotary_interleaved), turned) for t in (q, k))
    if past_key is not None and past_value is not None and before:
        k, v = ops.cat([past_key, k], 2), ops.cat([past_value, v], 2)
        if batch > 1:
            # Behind a shorter past there must be no gap: each member's new keys move to its own place.
            index = own.reshape(batch, 1, rows, 1)
            k, v = (_moved(t, index, before) for t in (k, v))
    columns = ops.arange(k.shape[2], device=q.device)
    hidden = columns >= lengths.reshape(-1, 1, 1, 1)
    if causal:
        hidden = hidden | (columns > own.reshape(batch, 1, rows, 1))
    if local_window_size >= 0:
        hidden = hidden | (columns <= own.reshape(batch, 1, rows, 1) - local_window_size)
    added = _sum(ops.where(hidden, -1e4 if q.dtype is dt.float16 else -1e30, 0.0).to(q.dtype), attention_bias)
    sink = head_sink
    if smooth_softmax and sink is None:
        sink = ops.zeros((num_heads,), dtype=q.dtype, device=q.device)
    return _attend(q, k, v, added, scale, softcap, sink), k, v


def _moved(joined: Tensor, index: Tensor, before: int) -> Tensor:
    new = joined.narrow(2, before, joined.shape[2] - before)
    return ops.scatter(joined, 2, index.expand(*new.shape), new)
