"""Attention of decoders without a cache, and which positions it sees."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..nn import functional as F
from ..ops.elementwise.comparison import where
from ..ops.matmul.dense import matmul
from ..ops.norm.softmax import softmax
from ..ops.shape.creation import arange
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor

# Of scores that are not seen; finite, so that a row that sees nothing is no NaN.
HIDDEN = -1e30


def visible(
    attention_mask: Tensor | None, ids: Tensor, cache: Any, window: int | None = None
) -> Tensor | None:
    """Which keys each position sees where that is not all up to its own: bool, (batch or 1, 1, time, time).

    Raises:
        ShapeError: the mask does not fit the ids, or comes with a cache.
    """
    time = ids.shape[1]
    if attention_mask is None:
        if cache is not None or window is None or time <= window:
            return None
        return _causal(time, window, ids.device)[None, None]
    if cache is not None:
        raise ShapeError(
            "attention_mask cannot be used together with a cache. Give prompts of one length, or call "
            "without past_key_values."
        )
    if attention_mask.shape != ids.shape:
        raise ShapeError(
            f"attention_mask of shape {tuple(attention_mask.shape)} must have the shape of the ids "
            f"{tuple(ids.shape)}."
        )
    return _causal(time, window, ids.device) & attention_mask.bool()[:, None, None, :]


def _causal(time: int, window: int | None, device) -> Tensor:
    steps = arange(time, device=device)
    seen = steps <= steps.unsqueeze(1)
    return seen if window is None else seen & (steps > steps.unsqueeze(1) - window)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float | None = None,
    soft_cap: float = 0.0,
    sinks: Tensor | None = None,
) -> Tensor:
    """Attention whose scores may stay below a cap: ``soft_cap * tanh(score / soft_cap)``, or have sinks.

    Args:
        query, key, value, mask, scale: as in `functional.scaled_dot_product_attention`.
        causal: each position sees those up to its own.
        soft_cap: 0 for no limit.
        sinks: (heads,), scores of one more key of each head, whose value is 0; Xiao et al. 2023, "Efficient
            streaming language models with attention sinks".
    """
    if not soft_cap and sinks is None:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=True
        )
    group = query.shape[1] // key.shape[1]
    if group > 1:
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = matmul(query, key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if soft_cap:
        scores = (scores / soft_cap).tanh() * soft_cap
    seen = _causal(query.shape[2], None, query.device) if mask is None else mask
    scores = where(seen, scores, HIDDEN)
    if sinks is None:
        return matmul(softmax(scores, -1), value)
    more = sinks.reshape(-1, 1, 1).expand(*scores.shape[:3], 1)
    return matmul(softmax(cat([scores, more], -1), -1)[..., :-1], value)
