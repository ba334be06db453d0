"""What decoders share: attention, feed-forward, the layer, and the model below the head."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import DimensionError
from ..nn.modules.container import ModuleList
from ..nn.modules.embedding import Embedding
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..ops.shape.creation import arange, empty
from ..tensors.tensor import Tensor
from .activations import activation
from .attend import Attend
from .cache import KVCache
from .decoder_config import DecoderConfig
from .masks import visible
from .rotary import RotaryEmbedding


def add_linear(module: Module, config: DecoderConfig, name: str, inputs: int, outputs: int, bias: bool):
    """Give a module a layer that multiplies, if it has a name."""
    if name:
        setattr(module, name, config.linear(inputs, outputs, bias))


def part(module: Module, name: str, x: Tensor) -> Tensor:
    """What a module's part makes of ``x``; ``x`` where the part has no name."""
    return getattr(module, name)(x) if name else x


class Attention(Module):
    """Causal self-attention; neighbouring query heads share a key head.

    Args:
        config: the model's.
        layer: which layer of the cache is its own.
    """

    def __init__(self, config: DecoderConfig, layer: int):
        super().__init__()
        self.names = config.module_names
        self.heads, self.kv_heads, self.head_dim = config.num_attention_heads, config.kv_heads, config.columns
        self.attend = Attend(layer, config.scale, config.soft_cap)
        self.add_projections(config)
        self.add_norms(config)
        if self.names.sinks:
            setattr(self, self.names.sinks, Parameter(empty(self.heads).normal_(0, 0.02)))

    def add_projections(self, config: Any) -> None:
        """Make the products for query, key, value and output."""
        dim, names = config.hidden_size, self.names
        rows = [n * self.head_dim for n in (self.heads, self.kv_heads, self.kv_heads)]
        self.columns = rows
        if names.joined:
            add_linear(self, config, names.joined, dim, sum(rows), config.attention_bias)
        else:
            for name, count in zip((names.query, names.key, names.value), rows, strict=True):
                add_linear(self, config, name, dim, count, config.attention_bias)
        add_linear(self, config, names.output, rows[0], dim, config.output_bias)

    def add_norms(self, config: Any) -> None:
        """Make the norms of each head's queries and keys."""
        for name in (self.names.query_norm, self.names.key_norm):
            if name:
                setattr(self, name, config.norm(self.head_dim))

    def forward(
        self,
        x: Tensor,
        rotary: RotaryEmbedding | None,
        cache: KVCache | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        batch, time, _ = x.shape
        query, key, value = self.project(x)
        if rotary is not None:
            position = cache.length if cache is not None else 0
            query, key = rotary(query, position), rotary(key, position)
        sinks = getattr(self, self.names.sinks) if self.names.sinks else None
        out = self.attend(query, key, value, cache, mask, sinks)
        return getattr(self, self.names.output)(out.transpose(1, 2).reshape(batch, time, -1))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values: (batch, heads or kv_heads, time, head_dim)."""
        names = self.names
        if names.joined:
            query, key, value = self.split_joined(part(self, names.joined, x))
        else:
            query = self.split(getattr(self, names.query)(x))
            key = self.split(getattr(self, names.key)(x))
            value = self.split(getattr(self, names.value)(x))
        if names.query_norm:
            query, key = getattr(self, names.query_norm)(query), getattr(self, names.key_norm)(key)
        return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def split(self, x: Tensor) -> Tensor:
        """Columns as heads: (batch, time, heads * head_dim) to (batch, time, heads, head_dim)."""
        batch, time, _ = x.shape
        return x.view(batch, time, -1, self.head_dim)

    def split_joined(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (batch, time, heads, head_dim) of one product."""
        query, key, value = (self.split(own) for own in x.split(self.columns, -1))
        return query, key, value


class HeadwiseAttention(Attention):
    """Attention whose joined product has a key head's queries, its key and its value beside each other.

    A GGUF has all queries, then all keys, then all values.
    """

    def __init__(self, config: Any, layer: int):
        super().__init__(config, layer)
        self.by_head = config.joined_by_head

    def split_joined(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not self.by_head:
            return super().split_joined(x)
        batch, time, _ = x.shape
        heads = x.view(batch, time, self.kv_heads, -1, self.head_dim)
        query = heads[:, :, :, :-2].reshape(batch, time, self.heads, self.head_dim)
        return query, heads[:, :, :, -2], heads[:, :, :, -1]


class FeedForward(Module):
    """``down(act(up(x)))``, or gated ``down(act(gate(x)) * up(x))``.

    Args:
        config: the model's.
        columns: between the products; the configuration's if not given.
    """

    def __init__(self, config: DecoderConfig, columns: int | None = None):
        super().__init__()
        self.names, self.is_gated = config.module_names, config.is_gated
        self.activation = activation(config.activation)
        columns, dim, bias = columns or config.intermediate_size, config.hidden_size, config.mlp_bias
        joined = self.is_gated and not self.names.gate
        if self.is_gated:
            add_linear(self, config, self.names.gate, dim, columns, bias)
        add_linear(self, config, self.names.up, dim, 2 * columns if joined else columns, bias)
        add_linear(self, config, self.names.down, columns, dim, bias)

    def forward(self, x: Tensor) -> Tensor:
        gate = getattr(self, self.names.gate)(x) if self.is_gated and self.names.gate else None
        up = getattr(self, self.names.up)(x)
        if not self.is_gated:
            return getattr(self, self.names.down)(self.activation(up))
        if gate is None:
            gate, up = up.chunk(2, -1)
        return getattr(self, self.names.down)(self.activation(gate) * up)


class DecoderLayer(Module):
    """Attention and feed-forward, each between norms and beside a residual, or both beside one.

    Args:
        config: the model's.
        layer: its number.
    """

    attention_class: ClassVar[type[Any]] = Attention
    mlp_class: ClassVar[type[Any]] = FeedForward

    def __init__(self, config: Any, layer: int):
        super().__init__()
        self.names, self.is_parallel, self.scale = (
            config.module_names,
            config.is_parallel,
            config.residual_scale,
        )
        names = self.names
        setattr(self, names.attention, self.attention_class(config, layer))
        self.add_mlp(config, layer)
        for name in (names.before_attention, names.after_attention, names.before_mlp, names.after_mlp):
            if name:
                setattr(self, name, config.norm())

    def add_mlp(self, config: Any, layer: int) -> None:
        """Make the feed-forward."""
        setattr(self, self.names.mlp, self.mlp_class(config))

    def forward(
        self,
        x: Tensor,
        rotary: RotaryEmbedding | None,
        cache: KVCache | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        # Parts that have no name are asked for here, not in calls: a step of every layer comes by.
        names, scale = self.names, self.scale
        normed = getattr(self, names.before_attention)(x) if names.before_attention else x
        added = getattr(self, names.attention)(normed, rotary, cache, mask)
        if names.after_attention:
            added = getattr(self, names.after_attention)(added)
        if self.is_parallel:
            if names.before_mlp:
                normed = getattr(self, names.before_mlp)(x)
            return x + added + getattr(self, names.mlp)(normed)
        x = x + (added if scale == 1 else added * scale)
        normed = getattr(self, names.before_mlp)(x) if names.before_mlp else x
        added = getattr(self, names.mlp)(normed)
        if names.after_mlp:
            added = getattr(self, names.after_mlp)(added)
        return x + (added if scale == 1 else added * scale)


class Decoder(Module):
    """Embedding, layers, final norm: ids (batch, time) to hidden states (batch, time, dim).

    Args:
        config: the model's.
    """

    layer_class: ClassVar[type[Any]] = DecoderLayer
    # Whether hidden states are the embedding and what layers make of it, the last one normed; or what layers
    # make, and the last one normed.
    keeps_embedding: ClassVar[bool] = True

    def __init__(self, config: Any):
        super().__init__()
        self.config, self.names = config, config.module_names
        count = config.num_hidden_layers
        self.add_embeddings(config)
        setattr(self, self.names.layers, ModuleList([self.layer_class(config, k) for k in range(count)]))
        if self.names.norm:
            setattr(self, self.names.norm, config.norm())
        self.turnings = [config.turning(k) for k in range(count)]
        self.windows = [config.window(k) for k in range(count)]
        for name in sorted(filter(None, {*self.turnings})):
            setattr(self, name, config.rotary(name))

    def add_embeddings(self, config: Any) -> None:
        """Make the embeddings of ids, and of positions where they are learned."""
        names = self.names
        setattr(self, names.embedding, Embedding(config.vocab_size, config.hidden_size))
        if names.positions:
            rows = config.max_position_embeddings
            setattr(self, names.positions, Embedding(rows, config.hidden_size))
        if names.embedding_norm:
            setattr(self, names.embedding_norm, config.norm())

    def forward(
        self,
        ids: Tensor,
        cache: KVCache | None = None,
        attention_mask: Tensor | None = None,
        keep: list[Tensor] | None = None,
    ) -> Tensor:
        masks = self.masks(ids, cache, attention_mask)
        x = self.embed(ids, cache, attention_mask)
        for k in range(self.config.num_hidden_layers):
            if keep is not None:
                keep.append(x)
            x = self.run_layer(k, x, cache, masks)
        if cache is not None:
            cache.advance(ids.shape[1])
        if keep is not None and not self.keeps_embedding:
            keep[:] = [*keep[1:], x]
        x = self.finish(x)
        if keep is not None:
            keep.append(x)
        return x

    def run_layer(self, k: int, x: Tensor, cache: KVCache | None, masks: dict) -> Tensor:
        """What layer ``k`` makes of hidden states; ``masks`` are those of `masks`."""
        rotary = getattr(self, self.turnings[k]) if self.turnings[k] else None
        return getattr(self, self.names.layers)[k](x, rotary, cache, masks[self.windows[k]])

    def finish(self, x: Tensor) -> Tensor:
        """What the head is given of the last layer's output, or of another's: the final norm."""
        return part(self, self.names.norm, x)

    def masks(self, ids: Tensor, cache: KVCache | None, attention_mask: Tensor | None) -> dict:
        """What layers add to their scores, by window."""
        return {window: visible(attention_mask, ids, cache, window) for window in {*self.windows}}

    def embed(self, ids: Tensor, cache: KVCache | None, attention_mask: Tensor | None) -> Tensor:
        """Hidden states before the first layer."""
        x = part(self, self.names.embedding, ids)
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        if self.names.positions:
            x = x + part(self, self.names.positions, self.places(ids, cache, attention_mask))
        return part(self, self.names.embedding_norm, x)

    def places(self, ids: Tensor, cache: KVCache | None, attention_mask: Tensor | None) -> Tensor:
        """Rows of the table of learned positions: (time,) or (batch, time)."""
        position, time = cache.length if cache is not None else 0, ids.shape[1]
        check_positions(self.config, position + time)
        return arange(time, device=ids.device) + position


def check_positions(config: Any, end: int) -> None:
    """Refuse positions past the model.

    Raises:
        DimensionError: ``end`` is more than the model has.
    """
    if end > config.max_position_embeddings:
        raise DimensionError(
            f"position {end - 1}: the model has {config.max_position_embeddings} positions. Shorten the "
            "prompt or what is generated."
        )
