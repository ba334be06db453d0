"""Attention over queries, keys and values as a module, so that whoever looks finds all three there."""

from __future__ import annotations

from ..nn import functional as F
from ..nn.modules.module import Module
from ..ops.attention.cache import cached_attention
from ..tensors.tensor import Tensor
from .cache import KVCache


class Attend(Module):
    """Causal attention over the positions of a call, or over those of a cache, which it makes longer.

    It has no parameters. Architectures whose attention calls one under the name ``attend`` have all points of
    `pellucid.lens` that lie between the projections.

    Args:
        layer: which layer of the cache is its own.
    """

    def __init__(self, layer: int):
        super().__init__()
        self.layer = layer

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        cache: KVCache | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """What the heads mix: (batch, heads, time, head_dim).

        Args:
            query: (batch, heads, time, head_dim), turned by its positions where the model does that.
            key, value: (batch, kv_heads, time, head_dim).
            cache: they are written behind its positions, and seen with those.
            mask: which keys each position sees, without a cache; those up to its own if not given.
        """
        if cache is None:
            return F.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=mask is None, enable_gqa=True
            )
        cache.write(self.layer, key, value)
        end = cache.length + query.shape[2]
        return cached_attention(query, cache.keys[self.layer], cache.values[self.layer], end)
