"""The Transformer of "Attention is all you need": encoder and decoder layers, and stacks of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from ...errors import RangeError, ShapeError
from ...ops.elementwise.activations import gelu, relu
from ...ops.shape.creation import full
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import init
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .norm import LayerNorm

_ACTIVATIONS = {"relu": relu, "gelu": gelu}


class TransformerLayer(Module):
    """What layers of encoders and decoders share: self-attention, a feed-forward network, and their norms."""

    # How many norms, and dropouts after the network's own.
    _parts = 2

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        if not callable(activation) and _ACTIVATIONS.get(str(activation)) is None:
            raise RangeError(
                f"{type(self).__name__}: activation must be 'relu', 'gelu' or a function, not {activation!r}."
            )
        where: Any = {"device": device, "dtype": dtype}
        heads: Any = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **where}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads)
        if self._parts == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **heads)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **where)
        self.norm_first = norm_first
        parts = range(1, self._parts + 1)
        for k in parts:
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, **where))
        for k in parts:
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation = _ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def _sum(self, k: int, x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
        """A residual step with norm and dropout number k."""
        norm, dropout = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        if self.norm_first:
            return x + dropout(change(norm(x)))
        return norm(x + dropout(change(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(TransformerLayer):
    """``x = norm1(x + self_attention(x)); x = norm2(x + linear2(activation(linear1(x))))``.

    Args:
        d_model: columns of the input.
        nhead: heads of the attention.
        dim_feedforward: columns between the two linear layers.
        dropout: probability, in the attention, the network and after both.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variances.
        batch_first: inputs are (batch, time, d_model) instead of (time, batch, d_model).
        norm_first: norm what goes into attention and network instead of the sums.
        bias: whether linear layers and norms have one.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        ShapeError: ``d_model`` is not a multiple of ``nhead``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html; Vaswani et al.
        2017, 3.1

    Example:
        >>> import pellucid as torch
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, device="cpu")
        >>> layer(torch.ones(5, 3, 8, device="cpu")).shape
        Size([5, 3, 8])
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """One layer.

        Args:
            src: (time, batch, d_model), with ``batch_first`` (batch, time, d_model), or (time, d_model).
            src_mask: (time, time) or (batch * heads, time, time): bool (true = hidden) or numbers to add.
            src_key_padding_mask: (batch, time) likewise.
            is_causal: says that ``src_mask``, which must be given, is the causal one.

        Returns:
            The input's shape.
        """

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        return self._sum(2, self._sum(1, src, attend), self._feed_forward)


class TransformerDecoderLayer(TransformerLayer):
    """An encoder layer with attention to what the encoder made, ``memory``, before the network.

    Args:
        d_model: columns of the input.
        nhead: heads of both attentions.
        dim_feedforward: columns between the two linear layers.
        dropout: probability, in attentions, the network and after all three.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variances.
        batch_first: inputs are (batch, time, d_model) instead of (time, batch, d_model).
        norm_first: norm what goes into attentions and network instead of the sums.
        bias: whether linear layers and norms have one.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        ShapeError: ``d_model`` is not a multiple of ``nhead``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html; Vaswani et al.
        2017, 3.1
    """

    _parts = 3

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """One layer; masks and shapes as in `TransformerEncoderLayer`, those of ``memory`` over its times.

        Args:
            tgt: what goes through the layer.
            memory: what the encoder made.
            tgt_mask, tgt_key_padding_mask, tgt_is_causal: of the self-attention.
            memory_mask, memory_key_padding_mask, memory_is_causal: of the attention to ``memory``.

        Returns:
            Shape of ``tgt``.
        """

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def look(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )[0]

        return self._sum(3, self._sum(2, self._sum(1, tgt, attend), look), self._feed_forward)


def _is_causal(given: bool | None, mask: Tensor | None) -> bool:
    """What a stack tells its layers: only a hint, which the mask itself makes good."""
    return bool(given) and mask is not None


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other.

    Args:
        encoder_layer: copied ``num_layers`` times.
        num_layers: see above.
        norm: what follows the last.
        enable_nested_tensor, mask_check: taken, and without effect: there are no nested tensors.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(index(num_layers, "num_layers"))])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """All layers and the norm; arguments as in `TransformerEncoderLayer`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, _is_causal(is_causal, mask))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other.

    Args:
        decoder_layer: copied ``num_layers`` times.
        num_layers: see above.
        norm: what follows the last.
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList([deepcopy(decoder_layer) for _ in range(index(num_layers, "num_layers"))])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """All layers and the norm; arguments as in `TransformerDecoderLayer`."""
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        causal = _is_causal(tgt_is_causal, tgt_mask), _is_causal(memory_is_causal, memory_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, *causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to what it made.

    Args:
        d_model: columns of both inputs.
        nhead: heads of the attentions.
        num_encoder_layers, num_decoder_layers: how many layers.
        dim_feedforward: columns between two linear layers.
        dropout: probability.
        activation: "relu", "gelu" or a function.
        custom_encoder, custom_decoder: modules in the place of the stacks.
        layer_norm_eps: added to the variances.
        batch_first: inputs are (batch, time, d_model) instead of (time, batch, d_model).
        norm_first: norm what goes into attentions and networks instead of the sums.
        bias: whether linear layers and norms have one.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        ShapeError: ``d_model`` is not a multiple of ``nhead``, or inputs do not fit.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Transformer.html; Vaswani et al. 2017

    Example:
        >>> import pellucid as torch
        >>> model = torch.nn.Transformer(8, 2, 1, 1, 16, device="cpu")
        >>> source, target = (torch.ones(n, 3, 8, device="cpu") for n in (5, 4))
        >>> mask = torch.nn.Transformer.generate_square_subsequent_mask(4, device="cpu")
        >>> model(source, target, tgt_mask=mask, tgt_is_causal=True).shape
        Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = relu,
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        parts: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first)
        parts += (norm_first, bias, device, dtype)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype) for _ in range(2)]
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*parts), num_encoder_layers, norms[0])
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*parts), num_decoder_layers, norms[1])
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The decoder's output; arguments as in the layers.

        Raises:
            ShapeError: batches or columns of ``src`` and ``tgt`` do not fit.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == tgt.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError(
                "Transformer: the batch number of src and tgt must be equal; they are "
                f"{src.shape[batch]} and {tgt.shape[batch]}."
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer: the feature number of src and tgt must be d_model, {self.d_model}; they are "
                f"{src.shape[-1]} and {tgt.shape[-1]}."
            )
        encoder: Any = self.encoder
        decoder: Any = self.decoder
        memory = encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype: DType | None = None) -> Tensor:
        """A causal mask: -inf above the diagonal, else 0.

        Args:
            sz: times.
            device, dtype: of the mask; the defaults if None.

        Returns:
            (sz, sz).
        """
        return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)


__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip
