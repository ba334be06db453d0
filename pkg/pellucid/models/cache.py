"""The keys and values of past positions, in memory that is allocated once."""

from __future__ import annotations

from collections.abc import Sequence

from ..autograd.grad_mode import no_grad
from ..errors import DimensionError
from ..ops.attention.cache import cache_write, cached_attention
from ..ops.shape.creation import arange, blank, empty, zeros_like
from ..ops.shape.joining import cat
from ..tensors.tensor import Tensor
from .masks import attend


class KVCache:
    """Keys and values of every layer: (batch, kv_heads, rows, head_dim) each, filled up to ``length``.

    A layer with a window holds no more positions than that: a new one overwrites the oldest. A layer with a
    state holds (batch, channels, columns): that of now among the keys, that of a position earlier among the
    values.

    Args:
        layers: number of layers.
        batch, kv_heads, capacity, head_dim: the sizes.
        value_dim: columns of values; ``head_dim`` if not given.
        windows: of each layer, the positions that its attention sees, or None for all; one number at most
            beside None.
        states: of each layer, channels and columns of its state, or None where it attends.
        original_positions: positions past which a text has all its keys turned otherwise, as LongRoPE does;
            None for no such number.
        device: where.

    Example:
        >>> from pellucid.models import KVCache
        >>> KVCache(2, 1, 3, 16, 8, device="cpu")
        KVCache(layers=2, batch=1, kv_heads=3, length=0, capacity=16, head_dim=8)
    """

    def __init__(
        self,
        layers: int,
        batch: int,
        kv_heads: int,
        capacity: int,
        head_dim: int,
        *,
        value_dim: int | None = None,
        windows: Sequence[int | None] = (),
        states: Sequence[tuple[int, int] | None] = (),
        original_positions: int | None = None,
        device=None,
    ):
        self._sizes = batch, kv_heads, head_dim
        self.states = list(states) or [None] * layers
        self.windows = [w and min(w, capacity) for w in windows] or [None] * layers
        rows = [w or capacity for w in self.windows]
        # Attention reads filled positions only: what the memory holds elsewhere does not matter.
        known: dict[tuple[int, ...], Tensor] = {}

        def made(layer: int, columns: int) -> Tensor:
            state = self.states[layer]
            size = (batch, *state) if state else (batch, kv_heads, rows[layer], columns)
            if size not in known:
                known[size] = empty(size, device=device)
                return _kept(known[size])
            return _kept(blank(known[size]._meta))

        self.keys = [made(k, head_dim) for k in range(layers)]
        self.values = [made(k, value_dim or head_dim) for k in range(layers)]
        self.capacity = capacity
        self.length = 0
        # What overwrote older positions, up to here.
        self._written = 0
        self._is_back = False  # states were taken back, and not shifted since
        self._slot: int | None = None
        self.original_positions = original_positions

    @property
    def batch(self) -> int:
        """Sequences."""
        return self._sizes[0]

    @property
    def slot(self) -> int:
        """Row of the next position in layers with a window."""
        window = next(filter(None, self.windows), 1)
        return self.length % window if self._slot is None else self._slot

    def at(self, length: int, slot: int | None) -> None:
        """Say where the next positions go; the numbers of a step that is captured may change."""
        self.length, self._slot = length, slot

    @property
    def memory(self) -> list[Tensor]:
        """All tensors that a step of generation reads or writes."""
        return [*self.keys, *self.values]

    def get_seq_length(self) -> int:
        """Positions that are filled."""
        return self.length

    def write(self, layer: int, key: Tensor, value: Tensor) -> None:
        """Put keys and values of new positions behind those of a layer; `advance` then counts them.

        Raises:
            DimensionError: the cache is full.
        """
        # Unpacked, since a step of every layer comes here: that is quicker than to index.
        (_, _, time, _), (_, _, rows, _) = key.shape, self.keys[layer].shape
        if self.length + time > self.capacity:
            raise DimensionError(
                f"KVCache: {self.length} positions are filled and {time} more do not fit into "
                f"{self.capacity}. Make a longer cache."
            )
        if self.length + time <= rows:
            self._write(layer, key, value, self.length)
        elif time == 1:
            self._write(layer, key, value, self.slot)
        else:
            key, value = key[:, :, -rows:], value[:, :, -rows:]
            slot = (self.length + time - key.shape[2]) % rows
            first = min(rows - slot, key.shape[2])
            self._write(layer, key[:, :, :first], value[:, :, :first], slot)
            if first < key.shape[2]:
                self._write(layer, key[:, :, first:], value[:, :, first:], 0)

    def _write(self, layer: int, key: Tensor, value: Tensor, position: int) -> None:
        cache_write(self.keys[layer], key, position)
        cache_write(self.values[layer], value, position)

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        scale: float | None = None,
        soft_cap: float = 0.0,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """Write new positions of a layer, and let their queries see what its window shows.

        Args:
            layer: which.
            query, key, value: (batch, heads or kv_heads, time, columns) of the new positions.
            mask: added to the scores, for all ``capacity`` keys.
            scale, soft_cap, sinks: as in `masks.attend`.

        Raises:
            DimensionError: the cache is full.
        """
        keys, values = self.keys[layer], self.values[layer]
        (_, _, time, _), (_, _, rows, _) = key.shape, keys.shape
        end, old = self.length + time, None
        if end <= rows:
            self._write(layer, key, value, self.length)
        else:
            if time > 1:
                old = self._seen(layer, query, key, value)
            self.write(layer, key, value)
            end = rows
        if old is not None:
            return attend(query, *old, False, scale=scale, soft_cap=soft_cap, sinks=sinks)
        return cached_attention(query, keys, values, end, mask, scale=scale, soft_cap=soft_cap, sinks=sinks)

    def shift(self, layer: int, x: Tensor) -> Tensor:
        """The state of a layer with new columns behind it: (batch, channels, columns + time).

        The last ones become its state.

        Args:
            layer: which.
            x: (batch, channels, time) of the new positions.
        """
        columns = self.keys[layer].shape[2]
        whole = cat([self.past(layer), x], 2)
        self.keep(layer, whole[:, :, -columns:], whole[:, :, -columns - 1 : -1])
        return whole

    def past(self, layer: int) -> Tensor:
        """The state that new positions of a layer go on with: (batch, channels, columns)."""
        state = self.keys[layer]
        return zeros_like(state) if self.length == 0 else state.clone()

    def keep(self, layer: int, now: Tensor, earlier: Tensor) -> None:
        """Make these a layer's state of the last new position, and that of the position before it."""
        with no_grad():
            self.keys[layer].copy_(now)
            self.values[layer].copy_(earlier)

    def _seen(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Keys and values of the window and the new positions, and who sees which."""
        rows, position = self.keys[layer].shape[2], self.length
        filled = min(position, rows)
        steps = arange(position, position + key.shape[2], device=query.device)
        held = arange(filled, device=query.device)
        # The last position before this one that has the row.
        held = position - 1 - (position - 1 - held) % rows
        places, at = cat([held, steps]), steps.unsqueeze(1)
        window = self.windows[layer] or self.capacity
        mask = (places <= at) & (places > at - window)
        keys = cat([self.keys[layer][:, :, :filled], key], 2)
        return keys, cat([self.values[layer][:, :, :filled], value], 2), mask

    def advance(self, time: int) -> None:
        """Count new positions, once all layers have written theirs."""
        self.length += time
        self._slot, self._is_back = None, False

    def settle(self, length: int) -> None:
        """Count the positions up to here as filled."""
        self.at(length, None)
        self._is_back = False
        self._written = max(self._written, length)

    def crop(self, length: int) -> None:
        """Forget the positions from ``length`` on, to go back to an earlier state.

        Raises:
            DimensionError: so many are not filled, or what a window saw then was overwritten since, or keys
                were turned for a longer text.
        """
        if not 0 <= length <= self.length:
            raise DimensionError(f"KVCache: cannot crop to {length}; {self.length} positions are filled.")
        window, written = min(filter(None, self.windows), default=None), max(self._written, self.length)
        if self.original_positions is not None and 0 < length <= self.original_positions < written:
            raise DimensionError(
                f"KVCache: cannot crop to {length}; {written} positions were filled, and texts of more than "
                f"{self.original_positions} have all keys turned by other factors. Run the sequence again."
            )
        if window is not None and written > window and 0 < length < written - 1:
            raise DimensionError(
                f"KVCache: cannot crop to {length}; the windows of {window} positions have forgotten what "
                f"was seen then: {written} were filled. Run the sequence again."
            )
        if any(self.states) and 0 < length < self.length:
            if length < self.length - 1 or self._is_back:
                raise DimensionError(
                    f"KVCache: cannot crop to {length}; states keep that of one position earlier, and "
                    f"{self.length} are filled. Run the sequence again."
                )
            for state, keys, values in zip(self.states, self.keys, self.values, strict=True):
                if state:
                    keys.copy_(values)
            self._is_back = True
        self._written = written if length else 0
        self.length = length

    def __repr__(self) -> str:
        batch, heads, head_dim = self._sizes
        return (
            f"KVCache(layers={len(self.keys)}, batch={batch}, kv_heads={heads}, length={self.length}, "
            f"capacity={self.capacity}, head_dim={head_dim})"
        )


def _kept(x: Tensor) -> Tensor:
    x._storage.set_kind("cache")
    return x
