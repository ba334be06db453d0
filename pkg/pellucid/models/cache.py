"""The keys and values of past positions, in memory that is allocated once."""

from __future__ import annotations

from ..errors import DimensionError
from ..ops.attention.cache import cache_write
from ..ops.shape.creation import blank, empty
from ..tensors.tensor import Tensor


class KVCache:
    """Keys and values of every layer: (batch, kv_heads, capacity, head_dim) each, filled up to ``length``.

    Args:
        layers: number of layers.
        batch, kv_heads, capacity, head_dim: the sizes.
        device: where.

    Example:
        >>> from pellucid.models import KVCache
        >>> KVCache(2, 1, 3, 16, 8, device="cpu")
        KVCache(layers=2, batch=1, kv_heads=3, length=0, capacity=16, head_dim=8)
    """

    def __init__(self, layers: int, batch: int, kv_heads: int, capacity: int, head_dim: int, *, device=None):
        # Attention reads filled positions only: what the memory holds elsewhere does not matter.
        first = empty((batch, kv_heads, capacity, head_dim), device=device)
        made = [_kept(first), *[_kept(blank(first._meta)) for _ in range(2 * layers - 1)]]
        self.keys, self.values = made[:layers], made[layers:]
        self.capacity = capacity
        self.length = 0

    def get_seq_length(self) -> int:
        """Positions that are filled."""
        return self.length

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Put keys and values of new positions behind those of a layer; `advance` then counts them.

        Raises:
            DimensionError: the cache is full.
        """
        time = key.shape[2]
        if self.length + time > self.capacity:
            raise DimensionError(
                f"KVCache: {self.length} positions are filled and {time} more do not fit into "
                f"{self.capacity}. Make a longer cache."
            )
        cache_write(self.keys[layer], key, self.length)
        cache_write(self.values[layer], value, self.length)

    def advance(self, time: int) -> None:
        """Count new positions, once all layers have written theirs."""
        self.length += time

    def crop(self, length: int) -> None:
        """Forget the positions from ``length`` on, to go back to an earlier state."""
        if not 0 <= length <= self.length:
            raise DimensionError(f"KVCache: cannot crop to {length}; {self.length} positions are filled.")
        self.length = length

    def __repr__(self) -> str:
        batch, heads, _, head_dim = self.keys[0].shape
        return (
            f"KVCache(layers={len(self.keys)}, batch={batch}, kv_heads={heads}, length={self.length}, "
            f"capacity={self.capacity}, head_dim={head_dim})"
        )


def _kept(x: Tensor) -> Tensor:
    x._storage.set_kind("cache")
    return x
