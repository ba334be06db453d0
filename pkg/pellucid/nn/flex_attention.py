"""Attention whose scores and mask are functions: PyTorch's ``torch.nn.attention.flex_attention``.

Scores are computed as a whole, so memory grows with the product of both lengths; attention without a function
of scores runs the kernels of `scaled_dot_product_attention`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple

from ..errors import ArgumentError, DTypeError, ShapeError
from ..ops.attention.scaled_dot_product import scaled_dot_product_attention
from ..ops.matmul.dense import matmul
from ..ops.shape.creation import arange
from ..tensors.construct import as_tensor
from ..tensors.dtypes import bool_, float32
from ..tensors.tensor import Tensor


class AuxRequest(NamedTuple):
    """What `flex_attention` gives besides.

    Attributes:
        lse: the logarithms of the sums of exponentials of scores.
        max_scores: the largest scores.
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by an `AuxRequest`; None for the rest."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


@dataclass
class BlockMask:
    """A mask of attention, from `create_block_mask`.

    Args:
        mask: (batch or 1, heads or 1, queries, keys) bools.
        mask_mod: the function that it was made by.
        BLOCK_SIZE: accepted for PyTorch's sake: the mask is kept whole.
    """

    mask: Tensor
    mask_mod: Callable
    BLOCK_SIZE: Any = 128

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys)."""
        return tuple(self.mask.shape)

    @property
    def seq_lengths(self) -> tuple[int, int]:
        """How many queries and keys."""
        return self.shape[-2], self.shape[-1]

    def numel(self) -> int:
        """How many pairs of queries and keys there are."""
        return self.mask.numel()

    def sparsity(self) -> float:
        """Percent of the pairs that are hidden; reads them."""
        return 100.0 * (1.0 - self.mask.float().mean().item())

    def to(self, device: Any) -> BlockMask:
        """The same on another device."""
        return BlockMask(self.mask.to(device), self.mask_mod, self.BLOCK_SIZE)


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """The mask of everything."""
    return (token_q == token_q) & (token_kv == token_kv)


def and_masks(*mask_mods: Callable) -> Callable:
    """What all masks show, as a function."""
    return _joined(mask_mods, lambda a, b: a & b)


def or_masks(*mask_mods: Callable) -> Callable:
    """What one of the masks shows, as a function."""
    return _joined(mask_mods, lambda a, b: a | b)


def _joined(mask_mods: tuple[Callable, ...], join: Callable) -> Callable:
    if not mask_mods or not all(map(callable, mask_mods)):
        raise ArgumentError("flex_attention: masks to join are functions, one or more.")

    def joined(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        found = mask_mods[0](b, h, q_idx, kv_idx)
        for mod in mask_mods[1:]:
            found = join(found, mod(b, h, q_idx, kv_idx))
        return found

    return joined


def _places(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    """The numbers of batch, head, query and key, each along its axis: functions of them broadcast."""
    return [
        arange(n, device=device).reshape(*(n if k == axis else 1 for k in range(4)))
        for axis, n in enumerate(shape)
    ]


def create_mask(
    mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """A mask as bools.

    Args:
        mod_fn: function of the numbers of batch, head, query and key. It is called once, with tensors that
            broadcast, and gives bools.
        B, H: how many of each; None where it does not matter.
        Q_LEN, KV_LEN: how many queries and keys.
        device: of the result; the default device if not given.

    Returns:
        (B or 1, H or 1, queries, keys).

    Source: https://pytorch.org/docs/stable/nn.attention.flex_attention.html
    """
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    places = _places(shape, device)
    return as_tensor(mod_fn(*places), device=places[0].device).to(bool_).expand(*shape)


def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
) -> BlockMask:
    """A mask for `flex_attention`; see `create_mask` for the arguments.

    Args:
        mask_mod: function of the numbers of batch, head, query and key.
        BLOCK_SIZE: accepted for PyTorch's sake.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.nn.flex_attention import create_block_mask, flex_attention
        >>> causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, "cpu")
        >>> x = torch.ones(1, 1, 4, 2, device="cpu")
        >>> flex_attention(x, x, x, block_mask=causal).shape
        Size([1, 1, 4, 2])
    """
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device).contiguous(), mask_mod, BLOCK_SIZE)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    kernel_options: Any = None,
    *,
    return_lse: bool = False,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention whose scores a function changes, and whose mask another one says.

    Args:
        query: (batch, heads, queries, width).
        key, value: (batch, heads or fewer with ``enable_gqa``, keys, width).
        score_mod: function of the scores and of the numbers of batch, head, query and key. It is called
            once, with tensors that broadcast.
        block_mask: of `create_block_mask`; None for everything. A query that sees nothing gives zeros.
        scale: of the scores; ``1 / sqrt(width)`` if not given.
        enable_gqa: whether several heads of queries share one of keys.
        kernel_options: accepted for PyTorch's sake.
        return_lse: also give the logarithms of the sums of exponentials.
        return_aux: what else to give, as an `AuxOutput`.

    Returns:
        (batch, heads, queries, width of values), or that and what was asked for besides.

    Raises:
        ShapeError: tensors or the mask do not fit.
        DTypeError: queries, keys and values differ in dtype.

    Source: https://pytorch.org/docs/stable/nn.attention.flex_attention.html
    """
    _check(query, key, value, enable_gqa)
    batch, heads, queries, width = query.shape
    keys = key.shape[-2]
    mask = None if block_mask is None else block_mask.mask
    if mask is not None and (
        mask.shape[-2] != queries
        or mask.shape[-1] != keys
        or mask.shape[0] not in (1, batch)
        or mask.shape[1] not in (1, heads)
    ):
        raise ShapeError(
            f"flex_attention: the mask has shape {tuple(mask.shape)}; it must have ({batch} or 1, {heads} or "
            f"1, {queries}, {keys})."
        )
    if mask is not None:
        mask = mask.to(query.device)
    if heads != key.shape[1]:
        each = heads // key.shape[1]
        key, value = (t.repeat_interleave(each, 1) for t in (key, value))
    if score_mod is None and mask is None and not return_lse and return_aux is None:
        return scaled_dot_product_attention(query, key, value, scale=scale)
    wide = query.float() if query.dtype.itemsize < 4 else query
    scores = matmul(wide, key.to(wide.dtype).mT) * (1 / sqrt(width) if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_places((batch, heads, queries, keys), query.device))
        scores = scores.expand(batch, heads, queries, keys)
    if mask is not None:
        scores = scores.masked_fill(~mask, -inf)
    # A row that sees nothing has no largest score: its exponentials are 0, and so is their share.
    top = scores.detach().amax(-1, keepdim=True)
    raised = (scores - top.masked_fill(top == -inf, 0.0)).exp()
    total = raised.sum(-1, keepdim=True)
    share = raised / total.masked_fill(total == 0, 1.0)
    out = matmul(share, value.to(wide.dtype)).to(query.dtype)
    lse = (total.log() + top.masked_fill(top == -inf, 0.0)).squeeze(-1).to(float32)
    if return_aux is not None:
        most = scores.amax(-1).to(float32)
        return out, AuxOutput(lse if return_aux.lse else None, most if return_aux.max_scores else None)
    return (out, lse) if return_lse else out


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ShapeError(f"flex_attention: {shapes}: all have four axes: batch, heads, positions and width.")
    if key.shape[:3] != value.shape[:3] or query.shape[-1] != key.shape[-1] or query.shape[0] != key.shape[0]:
        raise ShapeError(
            f"flex_attention: {shapes}: keys and values have the same batch, heads and positions, queries "
            "and keys the same batch and width."
        )
    if not (query.shape[-1] and key.shape[-2]):
        raise ShapeError(f"flex_attention: {shapes}: there is no key, or it has no width.")
    if not query.dtype == key.dtype == value.dtype:
        raise DTypeError(
            f"flex_attention: dtypes {query.dtype}, {key.dtype} and {value.dtype}. Give one for all three."
        )
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared and (not enable_gqa or not shared or heads % shared):
        raise ShapeError(
            f"flex_attention: {heads} heads of queries and {shared} of keys. Give as many, or "
            "enable_gqa=True for a number that divides the queries'."
        )


__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip
