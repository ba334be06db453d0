"""Causal self-attention with rotary positions and grouped queries, as a layer of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..autograd.grad_mode import no_grad
from ..device import device as Device
from ..device import webgpu
from ..errors import ArgumentError, RangeError, ShapeError
from ..nn.functional import scaled_dot_product_attention
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..ops.attention.cache import cache_write, cached_attention, rotary_embedding, rotary_tables
from ..ops.matmul.tiles import tile_rows
from ..ops.shape.creation import arange, empty
from ..ops.shape.joining import cat
from ..tensors.shape import index
from ..tensors.tensor import Tensor


class Past:
    """Keys and values of the positions that a layer has seen: (batch, kv_heads, capacity, head_dim) each."""

    def __init__(self, layer: RotaryAttention, batch: int, capacity: int):
        size = batch, layer.num_kv_heads, capacity, layer.head_dim
        device = layer.k_proj.weight.device
        self.keys, self.values = (empty(size, device=device) for _ in range(2))
        self.tables = layer.tables(capacity, device)
        self.length = 0

    def check(self, batch: int, time: int) -> None:
        """Refuse other texts, and more positions than there is room for."""
        texts, _, capacity, _ = self.keys.shape
        if batch != texts or self.length + time > capacity:
            raise ShapeError(
                f"RotaryAttention: {batch} texts of {time} more positions do not fit behind {self.length} in "
                f"memory for {texts} texts of {capacity}. Give remember the sizes."
            )

    def attended(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What the next positions see of themselves and of all before."""
        cache_write(self.keys, k, self.length)
        cache_write(self.values, v, self.length)
        self.length += q.shape[2]
        return cached_attention(q, self.keys, self.values, self.length)


@contextmanager
def remember(network: Module, batch: int, capacity: int) -> Iterator[None]:
    """Let the attention of a network remember: each call goes on where the last one ended, without gradients.

    ``network(x[:, :5])``, ``network(x[:, 5:6])`` and so on give what ``network(x)`` gives at these positions.

    Args:
        network: `RotaryAttention` within it remembers; whatever else it has must look at no other position.
        batch: texts.
        capacity: positions, for which memory is taken at once.

    Raises:
        ArgumentError: there is no attention, or one that sees what comes after.
        ShapeError: in a call, other texts or more positions.

    Example:
        >>> import pellucid
        >>> layer, x = pellucid.grid.RotaryAttention(8, 2, device="cpu"), pellucid.ones(1, 3, 8, device="cpu")
        >>> with pellucid.grid.remember(layer, 1, 3):
        ...     parts = [layer(x[:, :2]), layer(x[:, 2:])]
        >>> pellucid.allclose(pellucid.cat(parts, 1), layer(x))
        True
    """
    layers = [m for m in network.modules() if isinstance(m, RotaryAttention)]
    if not layers or not all(m.causal for m in layers):
        raise ArgumentError(
            "remember: there must be attention in the network, all of it causal. Give one that can go on."
        )
    for layer in layers:
        layer.past = Past(layer, index(batch, "remember: batch"), index(capacity, "remember: capacity"))
    try:
        with no_grad():
            yield
    finally:
        for layer in layers:
            layer.past = None


class RotaryAttention(Module):
    """Self-attention of heads with rotary positions; several query heads may share a key and value head.

    ``out = concat_h(softmax(q_h k_g^T / sqrt(head_dim)) v_g) W_o``, position by position without the future.

    Args:
        d_model: length of the input's last axis.
        num_heads: query heads.
        num_kv_heads: key and value heads; `num_heads` if None. It divides `num_heads`.
        head_dim: numbers of a head; ``d_model / num_heads`` if None.
        rope_theta: base of the rotary positions; None for no positions.
        causal: whether a position sees only itself and those before it.
        tile_size: queries that are attended to at a time, each time with the keys that they see: of the
            future no scores are made. 0 asks `tile_rows`; None takes all at once.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        RangeError: heads that do not divide the model or each other, or a negative tile.

    Source: Su et al. 2021, "RoFormer"; Ainslie et al. 2023, "GQA"

    Example:
        >>> import pellucid
        >>> layer = pellucid.grid.RotaryAttention(8, 4, 2, device="cpu")
        >>> layer(pellucid.zeros(1, 3, 8, device="cpu")).shape
        Size([1, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        rope_theta: float | None = 10000.0,
        causal: bool = True,
        device=None,
        dtype=None,
        tile_size: int | None = None,
    ):
        super().__init__()
        if tile_size is not None and index(tile_size, "RotaryAttention: tile_size") < 0:
            raise RangeError(f"RotaryAttention: tile_size must not be negative, but is {tile_size}.")
        self.tile_size = tile_size
        self.past: Past | None = None  # of `remember`
        d, heads = index(d_model, "RotaryAttention: d_model"), index(num_heads, "RotaryAttention: num_heads")
        shared = heads if num_kv_heads is None else index(num_kv_heads, "RotaryAttention: num_kv_heads")
        if d < 1 or heads < 1 or shared < 1 or heads % shared or (head_dim is None and d % heads):
            raise RangeError(
                f"RotaryAttention: num_kv_heads must divide num_heads, and num_heads d_model unless head_dim "
                f"is given, but they are {shared}, {heads} and {d}."
            )
        size = d // heads if head_dim is None else index(head_dim, "RotaryAttention: head_dim")
        if size < 1 or (rope_theta is not None and size % 2):
            raise RangeError(
                f"RotaryAttention: rotary positions turn pairs, so head_dim must be even, not {size}."
            )
        self.d_model, self.num_heads, self.num_kv_heads, self.head_dim = d, heads, shared, size
        self.rope_theta, self.causal = rope_theta, bool(causal)
        self.q_proj = Linear(d, heads * size, False, device, dtype)
        self.k_proj = Linear(d, shared * size, False, device, dtype)
        self.v_proj = Linear(d, shared * size, False, device, dtype)
        self.o_proj = Linear(heads * size, d, False, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() < 2 or input.shape[-1] != self.d_model:
            raise ShapeError(
                f"RotaryAttention: the input must be (..., time, {self.d_model}), not {tuple(input.shape)}."
            )
        x, past = input.reshape(-1, *input.shape[-2:]), self.past
        if past is not None:
            past.check(*x.shape[:2])
        q, k, v = (
            project(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        tables = past.tables if past else self.tables(x.shape[1], x.device)
        if tables is not None:
            q, k = (rotary_embedding(t, *tables, past.length if past else 0) for t in (q, k))
        out = past.attended(q, k, v) if past else self._attended(q, k, v, self._rows(x))
        return self.o_proj(out.transpose(1, 2).flatten(-2)).reshape(input.shape)

    def tables(self, positions: int, device: Device) -> tuple[Tensor, Tensor] | None:
        """Cosines and sines of so many positions; None without rotary ones."""
        if self.rope_theta is None:
            return None
        half = self.head_dim // 2
        frequencies = [self.rope_theta ** (-p / half) for p in range(half)]
        return rotary_tables(frequencies, positions, device=device)

    def _rows(self, x: Tensor) -> int:
        """Queries that are attended to at a time."""
        if self.tile_size == 0:
            limits = webgpu.get_device_properties().limits if x.is_webgpu else {}
            names = "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup"
            return tile_rows(self.head_dim, *(limits[name] for name in names if name in limits))
        return x.shape[1] if self.tile_size is None else self.tile_size

    def _attended(self, q: Tensor, k: Tensor, v: Tensor, rows: int) -> Tensor:
        time, shared = q.shape[2], self.num_kv_heads != self.num_heads
        if rows >= time:
            return scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=shared)
        made = []
        for first in range(0, time, rows):
            last = min(first + rows, time)
            seen, mask = time, None
            if self.causal:
                places = arange(last, device=q.device)
                seen, mask = last, places[first:, None] >= places
            made.append(
                scaled_dot_product_attention(
                    q[:, :, first:last], k[:, :, :seen], v[:, :, :seen], mask, enable_gqa=shared
                )
            )
        return cat(made, 2)

    def extra_repr(self) -> str:
        return (
            f"{self.d_model}, heads={self.num_heads}, kv_heads={self.num_kv_heads}, head_dim={self.head_dim}"
        )
