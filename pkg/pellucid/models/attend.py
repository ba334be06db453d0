"""Attention over queries, keys and values as a module, so that whoever looks finds all three there."""

from __future__ import annotations

from ..nn.modules.module import Module
from ..tensors.tensor import Tensor
from .cache import KVCache
from .masks import attend


class Attend(Module):
    """Causal attention over the positions of a call, or over those of a cache, which it makes longer.

    It has no parameters. Architectures whose attention calls one under the name ``attend`` have all points of
    `pellucid.lens` that lie between the projections.

    Args:
        layer: which layer of the cache is its own.
        scale: factor of the scores, ``1 / sqrt(head_dim)`` if None.
        soft_cap: what scores stay below, 0 for no limit; see `masks.attend`.
    """

    def __init__(self, layer: int, scale: float | None = None, soft_cap: float = 0.0):
        super().__init__()
        self.layer, self.scale, self.soft_cap = layer, scale, soft_cap

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        cache: KVCache | None = None,
        mask: Tensor | None = None,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """What the heads mix: (batch, heads, time, head_dim).

        Args:
            query: (batch, heads, time, head_dim), turned by its positions where the model does that.
            key, value: (batch, kv_heads, time, head_dim).
            cache: they are written behind its positions, and seen with those.
            mask: which keys each position sees, without a cache; those up to its own if not given. With one,
                what is added to the scores of each of its rows.
            sinks: (heads,), scores of one more key of each head, whose value is 0.
        """
        scale, soft_cap = self.scale, self.soft_cap
        if cache is None:
            return attend(query, key, value, mask, mask is None, scale, soft_cap, sinks)
        return cache.attend(self.layer, query, key, value, mask, scale=scale, soft_cap=soft_cap, sinks=sinks)
