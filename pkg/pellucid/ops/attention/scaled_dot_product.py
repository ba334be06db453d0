"""Scaled dot-product attention: over tensors, and over a preallocated cache of keys and values."""

from __future__ import annotations

from contextlib import suppress
from functools import reduce
from math import prod

import numpy as np

from ...device.stream import stream
from ...errors import DTypeError, ShapeError
from ...op.arguments import boolean, number
from ...op.declaration import Call, op
from ...op.kernel import PIECE, Launch, Params, flag, is_direct, load
from ...tensors.dtypes import float32
from ...tensors.meta import Meta
from ...tensors.shape import Size, broadcast_shapes, broadcast_strides
from ...tensors.tensor import Tensor
from ..matmul.launch import MatrixOperand, Product
from .definition import by_definition, derivatives, scale_of

# Rows (query times heads of a group) and columns of value that the decode kernel holds in registers, and the
# bytes of workgroup memory that it may fill.
_ROWS, _COLUMNS, _BYTES = 8, 256, 16384
# Keys of one split of the decode kernel, and how many splits there are at most.
_SPLIT, _SPLITS = 128, 64
# Keys from which the loops of the kernel for many queries become long on an adapter that runs on the CPU (see
# op/kernel/turns.py): there are products and a softmax of their own for them.
_LONG = 1 << 14
# Scores that may lie in memory where the kernels have no workgroup memory.
_SCORES = 1 << 24


def _types(call: Call):
    d = call["query"].dtype
    for name, m in call.tensors():
        if name != "attn_mask" and m.dtype is not d:
            raise DTypeError(f"'query' is {d} and '{name}' is {m.dtype}. They must be equal.")
    if not d.is_floating_point:
        raise DTypeError(f"the query is {d}, not floating point. Convert it with .float().")
    return d, d


def _sizes(query: Meta, key: Meta, value: Meta) -> tuple[int, int, int]:
    """(batch times key heads, key heads, query heads per key head)."""
    shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if query.rank < 2 or key.rank != query.rank or value.rank != query.rank:
        raise ShapeError(
            f"{shapes}: all need the same number of axes, at least (time, head_dim). Add leading axes with "
            f"unsqueeze."
        )
    heads = query.shape[-3] if query.rank > 2 else 1
    kv_heads = key.shape[-3] if key.rank > 2 else 1
    if (
        query.shape[:-3] != key.shape[:-3]
        or key.shape[:-1] != value.shape[:-1]
        or query.shape[-1] != key.shape[-1]
    ):
        raise ShapeError(
            f"{shapes}: batches, and the lengths of key and value, and head_dim of query and key must agree."
        )
    if not kv_heads or heads % kv_heads:
        raise ShapeError(f"{shapes}: {heads} query heads are not a multiple of {kv_heads} key heads.")
    return prod(key.shape[:-2]), kv_heads, heads // kv_heads


def _shape(call: Call) -> Size:
    query, key, value = call["query"], call["key"], call["value"]
    _, _, group = _sizes(query, key, value)
    if group > 1 and not call["enable_gqa"]:
        raise ShapeError(
            f"query has {query.shape[-3]} heads and key {key.shape[-3]}. Give enable_gqa=True to share key "
            f"heads."
        )
    mask = call["attn_mask"]
    if mask is not None:
        if call["is_causal"]:
            raise ShapeError("give attn_mask or is_causal=True, not both.")
        scores = Size((*query.shape[:-1], key.shape[-2]))
        if broadcast_shapes(mask.shape, scores) != scores:
            raise ShapeError(
                f"attn_mask of shape {tuple(mask.shape)} does not broadcast to the scores {tuple(scores)}. "
                f"Reshape it."
            )
    return Size((*query.shape[:-1], value.shape[-1]))


def attention_launches(
    call: Call,
    key: str,
    value: str,
    keys: int,
    causal: bool,
    align_end: bool,
    scale: float,
    mask: str | None = None,
    length: str | None = None,
    soft_cap: float = 0.0,
    sinks: str | None = None,
) -> list[Launch]:
    """The dispatches of one attention: one that tiles queries, or for few queries one per split of the
    keys and one that combines.

    ``length`` names the argument that holds the number of keys where that changes from call to call.
    """
    query, value_meta = call["query"], call[value]
    pairs, kv_heads, group = _sizes(query, call[key], value_meta)
    time, head_dim = query.shape[-2:]
    value_dim, capacity = value_meta.shape[-1], value_meta.shape[-2]
    rows = time * group
    params: Params = {
        "kv_heads": kv_heads, "group": group, "time": time, "capacity": capacity, "head_dim": head_dim,
        "value_dim": value_dim, "scale": scale,
    }  # fmt: skip
    bind = {"query": "query", "key": key, "value": value, "mask": mask or "query", "sinks": sinks or "query"}
    if length:
        bind["params.keys"] = length
    else:
        params["keys"] = keys
    strides = (0, 0, 0, 0)
    if mask:
        m = call[mask]
        full = broadcast_strides(m.shape, m.strides, (*query.shape[:-1], keys))
        strides = (0, *full) if query.rank == 3 else (0, 0, *full) if query.rank == 2 else full[-4:]
        if query.rank > 4 and any(full[:-4]):
            raise ShapeError(
                f"attn_mask of shape {tuple(m.shape)} differs along a leading axis of five-dimensional "
                f"queries. Flatten the batch axes."
            )
    params |= dict(zip(("mask_batch", "mask_head", "mask_time", "mask_key"), strides, strict=True))
    holes = {
        "CAUSAL": flag(causal), "ALIGN_END": flag(align_end), "HAS_MASK": flag(mask is not None),
        "BOOL_MASK": flag(mask is not None and call[mask].dtype.kind == "b"),
        "SOFT_CAP": repr(float(soft_cap)), "HAS_SINKS": flag(sinks is not None),
    }  # fmt: skip
    if is_direct() and 0 < pairs * rows * capacity <= _SCORES and capacity <= PIECE // 3:
        return _direct_launches(call, bind, params, holes, pairs, keys)
    vectors = -(-rows // 4)
    if rows <= _ROWS and value_dim <= _COLUMNS and 64 * 17 * 4 + 16 * vectors * (head_dim + 64) <= _BYTES:
        splits = max(1, min(-(-keys // _SPLIT), _SPLITS))
        call.temporary("state", (pairs, splits, rows, value_dim + 2))
        holes |= {
            "ROW_VECTORS": f"{max(vectors, 1)}u",
            "QUERY_VECTORS": f"{max(vectors * head_dim, 1)}u",
            "COLUMN_BLOCKS": f"{max(-(-value_dim // 64), 1)}u",
        }
        groups = pairs * splits
        shared = {k: params[k] for k in ("kv_heads", "group", "time", "value_dim", "keys") if k in params}
        combine, deal = ({**shared, "groups": n, "splits": splits} for n in (pairs * rows, groups))
        # The query is not bound: a joined launch may do without it.
        dynamic = {"sinks": sinks or "state"} | ({"params.keys": length} if length else {})
        has_sinks = {"HAS_SINKS": holes.pop("HAS_SINKS")}
        return [
            Launch(load("attention/decode").fill(holes), groups, params | deal, bind=bind),
            Launch(load("attention/combine").fill(has_sinks), pairs * rows, combine, bind=dynamic),
        ]
    blocks = min(max(-(-value_dim // 32), 1), 8)
    column_tiles = -(-value_dim // (32 * blocks))
    groups = pairs * -(-rows // 32) * column_tiles
    holes["COLUMN_BLOCKS"] = f"{blocks}u"
    params |= {"groups": groups, "column_tiles": column_tiles, **_out_strides(call)}
    return [Launch(load("attention/prefill").fill(holes), groups, params, bind=bind)]


def _out_strides(call: Call) -> dict[str, int]:
    """Lay the output out as (batch, time, heads, value_dim), so that a decoder sees its heads side by side
    without a copy; types that are converted afterwards stay contiguous."""
    m = call.out
    heads, time, dim = (1, *m.shape)[-3:]
    if m.dtype is float32 and m.rank > 2:
        call.lay_out((*m.strides[:-3], dim, heads * dim, 1))
        return {"out_batch": heads * time * dim, "out_head": dim, "out_time": heads * dim}
    return {"out_batch": heads * time * dim, "out_head": time * dim, "out_time": dim}


def _direct_launches(
    call: Call, bind: dict[str, str], params: Params, holes: dict[str, str], pairs: int, keys: int
) -> list[Launch]:
    """Scores, weights and output one after the other, without workgroup memory."""
    sizes = ("group", "time", "capacity", "head_dim", "value_dim")
    group, time, capacity, head_dim, value_dim = (int(params[name]) for name in sizes)
    rows, length = group * time, bind.get("params.keys")
    call.temporary("scores", (pairs, rows, capacity))
    by_scores = MatrixOperand(rows * capacity, 0, capacity, 1)
    dots = Product(
        pairs, 1, rows, keys, head_dim,
        MatrixOperand(rows * head_dim, 0, head_dim, 1), MatrixOperand(capacity * head_dim, 0, 1, head_dim),
    ).direct(bind["query"], bind["key"], out_columns=capacity)  # fmt: skip
    out = Product(
        pairs, 1, rows, value_dim, keys, by_scores, MatrixOperand(capacity * value_dim, 0, value_dim, 1)
    ).direct("scores", bind["value"])
    dots.bind["out"] = "scores"
    if length:
        for launch, field in ((dots, "columns"), (out, "depth")):
            del launch.params[field]
            launch.bind[f"params.{field}"] = length
        out.at_most["depth"] = capacity
    unused = ("head_dim", "value_dim")
    weights = Launch(
        load("attention/weights_direct").fill(holes),
        -(-pairs * rows // 16),
        {"rows": pairs * rows, **{k: v for k, v in params.items() if k not in unused}},
        bind=bind,
    )
    return [dots, weights, out]


def _launches(call: Call) -> list[Launch]:
    mask = "attn_mask" if call["attn_mask"] is not None else None
    scale = scale_of(call["query"].shape, call["scale"])
    return attention_launches(
        call, "key", "value", call["key"].shape[-2], call["is_causal"], False, scale, mask
    )


def numpy_attention(
    query, key, value, mask, causal_from: int | None, scale: float, soft_cap: float = 0.0, sinks=None
) -> np.ndarray:
    """The reference in float64, but for scores, which are equal or infinite where they are in float32; key j
    is visible to query t if j <= t + causal_from."""
    group = (query.shape[-3] if query.ndim > 2 else 1) // (key.shape[-3] if key.ndim > 2 else 1)
    if group > 1:
        key, value = key.repeat(group, -3), value.repeat(group, -3)
    scores = query.astype(np.float64) @ np.swapaxes(key, -1, -2)
    if query.dtype != np.float64:
        scores = scores.astype(np.float32).astype(np.float64)
    scores = scores * scale
    if soft_cap:
        scores = np.tanh(scores / soft_cap) * soft_cap
    if causal_from is not None:
        visible = np.arange(key.shape[-2]) <= np.arange(query.shape[-2])[:, None] + causal_from
        scores = np.where(visible, scores, -np.inf)
    if mask is not None:
        scores = scores + (np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask)
    if sinks is not None:
        scores = np.concatenate([scores, np.broadcast_to(sinks[:, None, None], (*scores.shape[:3], 1))], -1)
        value = np.concatenate([value, np.zeros_like(value[..., :1, :])], -2)
    if scores.shape[-1] == 0:
        return np.zeros((*query.shape[:-1], value.shape[-1]))
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ value


def _reference(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    return numpy_attention(
        query, key, value, attn_mask, 0 if is_causal else None, scale_of(query.shape, scale)
    )


def _is_too_long(query: Tensor) -> bool:
    m = query._meta
    return m.device.type == "webgpu" and m.shape[-2] > 1 and stream().open().info.is_software


def _prepared(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """Leading axes expanded; and weights in memory, where some of them are dropped or the rows are long."""
    leads = {query.shape[:-2], key.shape[:-2], value.shape[:-2]}
    rest = attn_mask, dropout_p, is_causal, scale, enable_gqa
    if len(leads) > 1 and not boolean(enable_gqa, "enable_gqa"):
        with suppress(ShapeError):  # the op says what is wrong with them
            lead = reduce(broadcast_shapes, leads)
            wide = [t.expand(*lead, *t.shape[-2:]) for t in (query, key, value)]
            return scaled_dot_product_attention(*wide, *rest)
    m = key._meta
    is_long = m.numel > _LONG and m.rank > 1 and m.shape[-2] > _LONG and _is_too_long(query)
    if number(dropout_p, "dropout_p") != 0 or is_long:
        scaled_dot_product_attention.op.inferred((query, key, value, *rest))
        return by_definition(query, key, value, *rest)


@op(
    dtype=_types,
    shape=_shape,
    kernel=_launches,
    reference=_reference,
    grad=dict.fromkeys(("query", "key", "value", "attn_mask"), derivatives),
    strided=("attn_mask",),
    exports=("torch", "nn.functional"),
    prepare=_prepared,
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float | int = 0.0,
    is_causal: bool = False,
    scale: float | int | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(scale * query @ key.T + attn_mask) @ value``, without the scores ever lying in memory.

    Args:
        query: (..., heads, time, head_dim); without ``enable_gqa`` the axes before time broadcast.
        key: (..., kv_heads, keys, head_dim).
        value: (..., kv_heads, keys, value_dim).
        attn_mask: broadcasts to (..., heads, time, keys): bool (true = visible) or a number added to the
            scores.
        dropout_p: probability with which a weight is dropped.
        is_causal: query t sees keys 0 to t.
        scale: factor of the scores, ``1 / sqrt(head_dim)`` if None.
        enable_gqa: let heads be a multiple of kv_heads; neighbouring heads share a key head.

    Returns:
        (..., heads, time, value_dim). A query that sees no key gives 0.

    Raises:
        ShapeError: shapes do not fit, or both a mask and ``is_causal`` are given.
        DTypeError: dtypes differ.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html;
        Dao 2023, "FlashAttention-2"
    """
