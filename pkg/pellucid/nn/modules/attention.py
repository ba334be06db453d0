"""Attention with several heads and its projections, as PyTorch lays it out."""

from __future__ import annotations

from ...errors import ShapeError
from ...ops.shape.creation import empty
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import functional, init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """``concat(head_1, ..., head_h) @ out_proj.T`` with ``head_i = attention(q_i, k_i, v_i)`` of projections.

    Args:
        embed_dim: columns of queries and of the output; a multiple of ``num_heads``.
        num_heads: how many heads share them.
        dropout: probability with which an attention weight is dropped while training.
        bias: whether the projections have one.
        add_bias_kv: whether there is a learned key and value behind all others.
        add_zero_attn: whether there is a key and value of zeros.
        kdim, vdim: columns of keys and values, ``embed_dim`` if None.
        batch_first: inputs are (batch, time, columns) instead of (time, batch, columns).
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        in_proj_weight: (3 * embed_dim, embed_dim), the projections of query, key and value one below the
            other; None if keys or values have columns of their own.
        q_proj_weight, k_proj_weight, v_proj_weight: the projections in that case.
        bias_k, bias_v: (1, 1, embed_dim) or None.
        in_proj_bias: (3 * embed_dim,) or None.
        out_proj: the `Linear` layer at the end.

    Raises:
        ShapeError: ``embed_dim`` is not a multiple of ``num_heads``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html; Vaswani et al. 2017,
        3.2
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
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
        self.add_zero_attn = add_zero_attn
        self.kdim = embed_dim if kdim is None else index(kdim, "MultiheadAttention: kdim")
        self.vdim = embed_dim if vdim is None else index(vdim, "MultiheadAttention: vdim")
        packed = self.kdim == self.vdim == embed_dim
        columns = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}

        def parameter(wanted: bool, *shape: int) -> Parameter | None:
            return Parameter(empty(*shape, device=device, dtype=dtype)) if wanted else None

        for name, n in columns.items():
            self.register_parameter(name, parameter(not packed, embed_dim, n))
        self.register_parameter("in_proj_weight", parameter(packed, 3 * embed_dim, embed_dim))
        self.register_parameter("in_proj_bias", parameter(bias, 3 * embed_dim))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, parameter(add_bias_kv, 1, 1, embed_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values; biases are zeros."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)
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
        batch_first = self.batch_first and query.dim() == 3
        if batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        out, weights = functional.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight,
            self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            self.in_proj_weight is None, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if batch_first else out), weights


__all__ = ["MultiheadAttention"]
