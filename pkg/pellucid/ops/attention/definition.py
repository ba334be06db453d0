"""Attention by its definition, with weights in memory: the derivatives, and attention with dropout."""

from __future__ import annotations

from math import sqrt

from ...tensors.dtypes import bool_
from ...tensors.tensor import Tensor
from ..elementwise.comparison import where
from ..matmul.dense import matmul
from ..norm.softmax import softmax
from ..random.dropouts import dropout
from ..reduce.reductions import sum
from ..shape.creation import ones


def scale_of(query_shape, scale: float | None) -> float:
    """The factor of scores."""
    return 1.0 / sqrt(max(query_shape[-1], 1)) if scale is None else scale


def _weights(query, key, attn_mask, is_causal, scale):
    scores = matmul(query * scale, key.transpose(-2, -1))
    if is_causal:
        later = ones(*scores.shape[-2:], dtype=bool_, device=query.device).triu(1)
        return softmax(scores.masked_fill(later, float("-inf")), -1)
    if attn_mask is None:
        return softmax(scores, -1)
    if attn_mask.dtype.kind == "b":
        # Added, as in PyTorch: NaN stays NaN also where it is hidden.
        attn_mask = where(attn_mask, 0.0, float("-inf")).to(scores.dtype)
    scores = scores + attn_mask
    is_blind = (scores == float("-inf")).all(-1, keepdim=True)
    return softmax(scores.masked_fill(is_blind, 0.0), -1).masked_fill(is_blind, 0.0)


def _each_head(query: Tensor, key: Tensor, value: Tensor) -> tuple[int, Tensor, Tensor]:
    """How many query heads share a key head; keys and values for each of them."""
    group = query.shape[-3] // key.shape[-3] if query.dim() > 2 else 1
    if group > 1:
        key, value = key.repeat_interleave(group, -3), value.repeat_interleave(group, -3)
    return group, key, value


def derivatives(g, query, key, value, attn_mask, is_causal, scale, out, needs):
    """All derivatives from the weights, which are computed again: Dao 2023, algorithm 2, over whole rows.
    Halves are computed in float32, as in PyTorch: they would round scores, and what cancels below."""
    if (d := query.dtype).itemsize < 4:
        g, query, key, value = g.float(), query.float(), key.float(), value.float()
        found = derivatives(g, query, key, value, attn_mask, is_causal, scale, None, needs)
        return {k: x.to(attn_mask.dtype if k == "attn_mask" else d) for k, x in found.items()}
    group, keys, values = _each_head(query, key, value)
    scale = scale_of(query.shape, scale)
    weights = _weights(query, keys, attn_mask, is_causal, scale)

    def of_keys(found: Tensor) -> Tensor:
        return found if group == 1 else sum(found.unflatten(-3, (key.shape[-3], group)), -3)

    found = {}
    if "value" in needs:
        found["value"] = of_keys(matmul(weights.transpose(-2, -1), g))
    if needs != {"value"}:
        along = matmul(g, values.transpose(-2, -1))
        total = sum(weights * along if out is None else g * out, -1, True)
        scores = weights * (along - total)
        if "attn_mask" in needs:
            found["attn_mask"] = scores
        if "query" in needs:
            found["query"] = matmul(scores, keys) * scale
        if "key" in needs:
            found["key"] = of_keys(matmul(scores.transpose(-2, -1), query) * scale)
    return found


def by_definition(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """Attention with weights in memory, some of which may be dropped; halves as in `derivatives`."""
    d, (_, key, value) = query.dtype, _each_head(query, key, value)
    if d.itemsize < 4:
        query, key, value = query.float(), key.float(), value.float()
    weights = _weights(query, key, attn_mask, is_causal, scale_of(query.shape, scale))
    return matmul(dropout(weights, dropout_p), value).to(d)
