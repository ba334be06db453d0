"""One new position of a decoder's attention in one launch."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernel import Launch, load
from ..launches import Node
from .joint import Joint, join

# The launches that `step` takes the place of, in its order.
STEP = (
    "attention/rotary",
    "attention/rotary",
    "attention/cache_write",
    "attention/cache_write",
    "attention/decode",
    "attention/combine",
)

_WORKGROUP = 256
# Workgroup memory that a kernel may fill.
_BYTES = 16384
# Numbers of a cache that one workgroup reads sooner than a second launch would bring the parts of several
# together: a processor takes 64 bytes a cycle, and the launch costs about 8 us.
_ALONE = 1 << 17


def step(parts: Sequence[Node]) -> Joint | None:
    """One launch for the attention of one new position, or None where there is no kernel for it.

    Args:
        parts: the rotary embeddings of query and key, the writes of key and value into their caches, the
            attention and the launch that combines its splits. What one makes the next ones take; both
            embeddings take the same tables; tables and caches begin where their buffers do; nobody else needs
            the turned query and key, nor the splits.

    Returns:
        The launch. Its parts are all six, or the first five where the splits are still to be combined.
    """
    if tuple(part.source.name for part in parts) != STEP:
        return None
    turn_query, attend = parts[0], parts[4]
    values = attend.values
    dim, group, splits = int(values["head_dim"]), int(values["group"]), int(values["splits"])
    lanes = _lanes(dim)
    vectors = -(-group // 4)
    if lanes is None or not _fits(parts) or _memory(dim // 4, lanes[0], vectors) > _BYTES:
        return None
    pairs = int(values["groups"]) // splits
    alone = splits == 1 or int(values["capacity"]) * dim <= _ALONE
    splits = 1 if alone else splits
    sizes = {"QUADS": dim // 4, "KEY_LANES": lanes[0], "VALUE_LANES": lanes[1], "ROW_VECTORS": vectors}
    holes = {name: f"{value}u" for name, value in sizes.items()}
    holes |= {"ALONE": str(alone).lower(), "INTERLEAVED": _hole(turn_query, "INTERLEAVED")}
    fixed = ("group", "capacity", "scale")
    params = {name: values[name] for name in fixed} | {"splits": splits, "groups": pairs * splits}
    bind = {
        "query": "0.x", "key_row": "1.x", "value_row": "3.rows", "cosines": "0.cosines", "sines": "0.sines",
        "key": "2.cache", "value": "3.cache", "out": "5.out" if alone else "4.state",
        "params.query_offset": "0.x_offset", "params.key_row_offset": "1.x_offset",
        "params.value_row_offset": "3.rows_offset", "params.half": "0.half", "params.keys": "4.keys",
        "params.query_position": "0.position", "params.key_position": "1.position",
        "params.key_write": "2.position", "params.value_write": "3.position",
    }  # fmt: skip
    source = load("attention/decode_step").fill(holes)
    return join(Launch(source, pairs * splits, params, bind=bind), parts if alone else parts[:5])


def _lanes(dim: int) -> tuple[int, int] | None:
    """Lanes that share a key, and lanes that share a value; None where heads are too long or not quads."""
    quads = dim // 4
    if dim % 4 or not 0 < quads <= 64:
        return None
    key = 1 << max(-(-quads // 4) - 1, 0).bit_length()
    return max(key, 4), max(1 << (quads - 1).bit_length(), 4)


def _memory(quads: int, key_lanes: int, vectors: int) -> int:
    """Bytes of workgroup memory."""
    keys = 2 * _WORKGROUP // key_lanes
    queries = (4 * vectors + 1) * quads
    return 16 * (queries + key_lanes * (keys + 1) + vectors * (keys + 16))


def _fits(parts: Sequence[Node]) -> bool:
    """Whether there is one position, of float32, all sizes agree and heads are turned alike.

    Sizes are read off the parameters: launches that differ in the shapes of their tensors only are one.
    """
    turn_query, turn_key, write_key, write_value, attend, _ = parts
    values = attend.values
    dim, pairs = values["head_dim"], values["groups"] // values["splits"]
    cached = [write_key.values, write_value.values]
    return (
        all(part.values["head_dim"] == dim for part in parts[:4])
        and all(part.values["time"] == 1 for part in parts[:5])
        and turn_query.values["count"] == pairs * values["group"] * dim
        and all(part.values["count"] == pairs * dim for part in parts[1:4])
        and all(write["capacity"] == values["capacity"] for write in cached)
        and _is_dense(turn_query, "x")
        and _is_dense(turn_key, "x")
        and _is_dense(write_value, "rows")
        and values["value_dim"] == dim
        and _hole(attend, "CAUSAL") == _hole(attend, "ALIGN_END") == "true"
        and turn_query.values["half"] == turn_key.values["half"]
        and _hole(turn_query, "INTERLEAVED") == _hole(turn_key, "INTERLEAVED")
        and _hole(turn_query, "INVERSE") == _hole(turn_key, "INVERSE") == "false"
    )


def _is_dense(node: Node, binding: str) -> bool:
    """Whether everything is float32, and the heads of one position lie one after the other."""
    heads, dim, count = (node.values[name] for name in ("heads", "head_dim", "count"))
    by_batch, by_head, _, by_column = node.values[f"{binding}_strides"]
    return (
        all(b.element == "f32" for b in node.source.bindings)
        and by_column == 1
        and (heads == 1 or by_head == dim)
        and (heads * dim == count or by_batch == heads * dim)
    )


def _hole(node: Node, name: str) -> str:
    """How a const of a kernel is filled."""
    line = next(s for s in node.source.text.splitlines() if s.startswith(f"const {name} = "))
    return line.partition(" = ")[2].rstrip(";")
