"""Multi-head attention as a function, and which kernel computes it. PyTorch's ``torch.nn.attention``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from ..errors import ArgumentError, RangeError, ShapeError
from ..op.public import function
from ..ops.attention.scaled_dot_product import scaled_dot_product_attention
from ..ops.matmul.dense import matmul
from ..ops.matmul.linear import linear
from ..ops.norm.softmax import softmax
from ..ops.random.dropouts import dropout
from ..ops.shape.creation import ones
from ..ops.shape.joining import cat
from ..tensors.dtypes import bool_
from ..tensors.tensor import Tensor


class SDPBackend(IntEnum):
    """PyTorch's names of the ways to compute attention; here the kernel is chosen by the shapes."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def causal_upper_left(*size: int) -> Tensor:
    """The mask of attention in which query i sees the keys up to i.

    Args:
        size: how many queries and keys.

    Returns:
        Bools on the default device, for ``attn_mask``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.attention.bias.CausalBias.html
    """
    return _causal("causal_upper_left", size, 0)


def causal_lower_right(*size: int) -> Tensor:
    """The same where the last query sees all keys, as with keys that are cached.

    Args:
        size: how many queries and keys.
    """
    return _causal("causal_lower_right", size, size[-1] - size[0])


def _causal(name: str, size: tuple[int, ...], diagonal: int) -> Tensor:
    if len(size) != 2:
        raise ArgumentError(f"{name}: takes two lengths, of queries and of keys, not {len(size)}.")
    return ones(*size, dtype=bool_).tril(diagonal)


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Say which of PyTorch's kernels may run: without effect, since none of them exists here.

    Args:
        backends: a `SDPBackend`, or several.
        set_priority: without effect.

    Raises:
        ArgumentError: something else is given.
    """
    for each in backends if isinstance(backends, (list, tuple, set)) else [backends]:
        if not isinstance(each, SDPBackend):
            raise ArgumentError(f"sdpa_kernel: takes SDPBackend, not {type(each).__name__} {each!r}")
    yield


def _added(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask as numbers to add."""
    if mask is None or mask.dtype is not bool_:
        return mask
    return like.new_zeros(tuple(mask.shape)).masked_fill(mask, float("-inf"))


def _longer(mask: Tensor | None) -> Tensor | None:
    """A mask with one more key, which is visible."""
    return None if mask is None else cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _checked(query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None) -> None:
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if query.dim() not in (2, 3) or not query.dim() == key.dim() == value.dim():
        raise ShapeError(f"MultiheadAttention: {shapes}: all need three axes, or two without a batch.")
    batched = query.dim() == 3
    if key.shape[0] != value.shape[0] or (batched and not query.shape[1] == key.shape[1] == value.shape[1]):
        raise ShapeError(
            f"MultiheadAttention: {shapes}: key and value need the same time, all the same batch."
        )
    if padding is not None and padding.dim() != query.dim() - 1:
        raise ShapeError(
            f"MultiheadAttention: key_padding_mask has shape {tuple(padding.shape)}; it must be (batch, "
            "keys), or (keys,) without a batch."
        )
    if mask is not None and mask.dim() not in (2, 3):
        raise ShapeError(
            f"MultiheadAttention: attn_mask has shape {tuple(mask.shape)}; it must be (time, keys) or "
            "(batch * heads, time, keys)."
        )


@function(exports="nn.functional", ours="PyTorch composes it in Python")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes: projections, attention of every head, and a projection.

    Args:
        query: (time, batch, columns) or (time, columns).
        key, value: the same with a time of their own.
        embed_dim_to_check: the columns of the query.
        num_heads: how many heads share them.
        in_proj_weight, in_proj_bias: of query, key and value one below the other.
        bias_k, bias_v: (1, 1, columns): a key and value at the end of all others.
        add_zero_attn: whether there is one of zeros.
        dropout_p: probability with which a weight is dropped in training.
        out_proj_weight, out_proj_bias: the last projection.
        training: whether weights are dropped.
        key_padding_mask: (batch, keys) or (keys,): bool (true = hidden) or numbers added to the scores.
        need_weights: return the weights too.
        attn_mask: (time, keys) or (batch * heads, time, keys), likewise.
        use_separate_proj_weight: take the next three instead of ``in_proj_weight``.
        q_proj_weight, k_proj_weight, v_proj_weight: (columns, columns of the input).
        static_k, static_v: (batch * heads, keys, head_dim), in the place of projected keys and values.
        average_attn_weights: the mean of the weights over the heads.
        is_causal: says that ``attn_mask``, which must be given, is the causal one.

    Returns:
        The output, shaped like the query, and weights (batch, time, keys), with all heads (batch, heads,
        time, keys); or None.

    Raises:
        ShapeError: the shapes do not fit, or ``is_causal`` comes without a mask.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html; Vaswani et al. 2017,
        3.2
    """
    if is_causal and attn_mask is None:
        raise ShapeError("MultiheadAttention: is_causal=True is only a hint; give attn_mask as well.")
    _checked(query, key, value, key_padding_mask, attn_mask)
    batched, padding = query.dim() == 3, key_padding_mask
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        padding = None if padding is None else padding.unsqueeze(0)
    time, batch, columns = query.shape
    if columns != embed_dim_to_check or columns % num_heads:
        raise ShapeError(
            f"MultiheadAttention: the query has {columns} columns; expected {embed_dim_to_check}, a multiple "
            f"of {num_heads} heads."
        )
    if use_separate_proj_weight:
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    elif in_proj_weight is None:
        raise RangeError("MultiheadAttention: give in_proj_weight, or use_separate_proj_weight and three.")
    else:
        weights = in_proj_weight.chunk(3)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    q, k, v = (linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases, strict=True))
    mask, padding = _added(attn_mask, q), _added(padding, q)
    if bias_k is not None and bias_v is not None:
        k = cat([k, bias_k.expand(1, batch, -1)], 0)
        v = cat([v, bias_v.expand(1, batch, -1)], 0)
        mask, padding = _longer(mask), _longer(padding)

    def heads(t: Tensor, given: Tensor | None) -> Tensor:
        if given is not None:
            return given.reshape(batch, num_heads, *given.shape[1:])
        return t.reshape(t.shape[0], batch, num_heads, columns // num_heads).permute(1, 2, 0, 3)

    q, k, v = heads(q, None), heads(k, static_k), heads(v, static_v)
    if add_zero_attn:
        k, v = (cat([t, t.new_zeros((batch, num_heads, 1, t.shape[-1]))], 2) for t in (k, v))
        mask, padding = _longer(mask), _longer(padding)
    keys = k.shape[2]
    if mask is not None and mask.dim() == 3:
        mask = mask.reshape(batch, num_heads, time, keys)
    if padding is not None:
        padding = padding.reshape(batch, 1, 1, keys)
        mask = padding if mask is None else mask + padding
    rate = dropout_p if training else 0.0
    if need_weights:
        scores = matmul(q * q.shape[-1] ** -0.5, k.transpose(-2, -1))
        shares = dropout(softmax(scores if mask is None else scores + mask, -1), rate)
        mixed = matmul(shares, v)
    else:
        mixed, shares = scaled_dot_product_attention(q, k, v, mask, rate), None
    out = linear(mixed.permute(2, 0, 1, 3).reshape(time, batch, columns), out_proj_weight, out_proj_bias)
    if shares is not None and average_attn_weights:
        shares = shares.mean(1)
    if batched:
        return out, shares
    return out.squeeze(1), None if shares is None else shares.squeeze(0)


__all__ = ["SDPBackend", "sdpa_kernel"]
