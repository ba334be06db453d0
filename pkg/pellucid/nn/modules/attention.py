"""Attention with several heads and its projections, as PyTorch lays it out."""

from __future__ import annotations

from ...errors import ShapeError
from ...ops.attention.scaled_dot_product import scaled_dot_product_attention
from ...ops.matmul.dense import matmul
from ...ops.matmul.linear import linear
from ...ops.norm.softmax import softmax
from ...ops.random.distributions import dropout
from ...ops.shape.creation import empty
from ...tensors.dtypes import DType, bool_
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import init
from ..parameter import Parameter
from .linear import Linear
from .module import Module


class MultiheadAttention(Module):
    """``concat(head_1, ..., head_h) @ out_proj.T`` with ``head_i = attention(q_i, k_i, v_i)`` of projections.

    Args:
        embed_dim: columns of queries and of the output; a multiple of ``num_heads``.
        num_heads: how many heads share them.
        dropout: probability with which an attention weight is dropped while training.
        bias: whether the projections have one.
        batch_first: inputs are (batch, time, columns) instead of (time, batch, columns).
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        in_proj_weight: (3 * embed_dim, embed_dim), the projections of query, key and value one below the
            other.
        in_proj_bias: (3 * embed_dim,) or None.
        out_proj: the `Linear` layer at the end.

    Raises:
        ShapeError: ``embed_dim`` is not a multiple of ``num_heads``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html; Vaswani et al. 2017,
        3.2
    """

    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        batch_first: bool = False,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        embed_dim = index(embed_dim, "MultiheadAttention: embed_dim")
        num_heads = index(num_heads, "MultiheadAttention: num_heads")
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise ShapeError(
                f"MultiheadAttention: embed_dim {embed_dim} is not a multiple of num_heads {num_heads}."
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.in_proj_weight = Parameter(empty(3 * embed_dim, embed_dim, device=device, dtype=dtype))
        in_proj_bias = Parameter(empty(3 * embed_dim, device=device, dtype=dtype)) if bias else None
        self.register_parameter("in_proj_bias", in_proj_bias)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values; biases are zeros."""
        init.xavier_uniform_(self.in_proj_weight)
        self.out_proj.reset_parameters()
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            query: (time, batch, embed_dim), with ``batch_first`` (batch, time, embed_dim), or (time,
                embed_dim).
            key, value: the same with a time of their own.
            key_padding_mask: (batch, keys) or (keys,): bool (true = hidden) or numbers added to the scores.
            need_weights: also return the attention weights, which then lie in memory.
            attn_mask: (time, keys) or (batch * heads, time, keys): bool (true = hidden) or numbers to add.
            average_attn_weights: weights averaged over the heads instead of one of each.
            is_causal: says that ``attn_mask``, which must be given, is the causal one.

        Returns:
            (output, weights or None), the output shaped like the query.

        Raises:
            ShapeError: the shapes do not fit, or ``is_causal`` comes without a mask.
        """
        if is_causal and attn_mask is None:
            raise ShapeError("MultiheadAttention: is_causal=True is only a hint; give attn_mask as well.")
        batched = query.dim() == 3
        if not batched:
            query, key, value = (t.unsqueeze(0) for t in (query, key, value))
        elif not self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        mask = self._mask(attn_mask, key_padding_mask, query, key)
        query, key, value = self._project(query, key, value)
        rate = self.dropout if self.training else 0.0
        if need_weights:
            scores = matmul(query * self.head_dim**-0.5, key.transpose(-2, -1))
            weights = dropout(softmax(scores if mask is None else scores + mask, -1), rate)
            mixed = matmul(weights, value)
        else:
            mixed, weights = scaled_dot_product_attention(query, key, value, mask, rate), None
        batch, _, time, _ = mixed.shape
        out = self.out_proj(mixed.transpose(1, 2).reshape(batch, time, self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return out.squeeze(0), None if weights is None else weights.squeeze(0)
        return (out if self.batch_first else out.transpose(0, 1)), weights

    def _project(self, *inputs: Tensor) -> list[Tensor]:
        """Query, key and value as (batch, heads, time, head_dim)."""
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        heads = []
        for t, weight, bias in zip(inputs, self.in_proj_weight.chunk(3), biases, strict=True):
            batch, time, _ = t.shape
            projected = linear(t, weight, bias)
            heads.append(projected.reshape(batch, time, self.num_heads, self.head_dim).transpose(1, 2))
        return heads

    def _mask(
        self, attn_mask: Tensor | None, padding: Tensor | None, query: Tensor, key: Tensor
    ) -> Tensor | None:
        """Both masks as numbers to add to scores (batch, heads, time, keys)."""
        (batch, time, _), keys = query.shape, key.shape[1]
        total = None
        if attn_mask is not None:
            total = _added(attn_mask, query)
            total = total if total.dim() == 2 else total.reshape(batch, self.num_heads, time, keys)
        if padding is not None:
            hidden = _added(padding, query).reshape(batch, 1, 1, keys)
            total = hidden if total is None else total + hidden
        return total


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype is not bool_:
        return mask
    return like.new_zeros(tuple(mask.shape)).masked_fill(mask, float("-inf"))


__all__ = ["MultiheadAttention"]
