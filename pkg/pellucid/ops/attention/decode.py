"""What a decoder's attention does with new positions, in one launch."""

from __future__ import annotations

from collections.abc import Sequence

from ...device.profile import profile
from ...device.stream import stream
from ...op.kernel import Launch, flag, load
from ...op.kernel.turns import most_turns, turns_of
from ...op.launches import RegisteredLaunch
from .joint import Joint, join

_WORKGROUP = 256
# Workgroup memory that a kernel may fill.
_BYTES = 16384
# What both kernels take from the launches that `place` joins.
_INPUTS = {
    "query": "0.x", "key_row": "1.x", "value_row": "3.rows", "cosines": "0.cosines", "sines": "0.sines",
    "key": "2.cache", "value": "3.cache", "params.query_offset": "0.x_offset",
    "params.key_row_offset": "1.x_offset", "params.value_row_offset": "3.rows_offset",
    "params.query_position": "0.position", "params.key_position": "1.position",
    "params.key_write": "2.position", "params.value_write": "3.position",
}  # fmt: skip
# Numbers of a cache that one workgroup reads sooner than a second launch would bring the parts of several
# together: a processor takes 64 bytes a cycle, and the launch costs about 8 us.
_ALONE = 1 << 17


def step(parts: Sequence[RegisteredLaunch]) -> Joint | None:
    """One launch for the attention of one new position, or None where there is no kernel for it.

    Args:
        parts: the rotary embeddings of query and key, the writes of key and value into their caches, the
            attention and the launch that combines its splits. What one makes the next ones take; both
            embeddings take the same tables; tables and caches begin where their buffers do; nobody else needs
            the turned query and key, nor the splits.

    Returns:
        The launch. Its parts are all six, or the first five where the splits are still to be combined.
    """
    kernel = load("attention/decode_step")
    if tuple(part.source.name for part in parts) != kernel.header.joins:
        return None
    turn_query, attend = parts[0], parts[4]
    values = attend.values
    dim, group, splits = int(values["head_dim"]), int(values["group"]), int(values["splits"])
    lanes = _lanes(dim)
    vectors = -(-group // 4)
    if lanes is None or not _fits(parts) or _memory(dim // 4, lanes[0], vectors) > _BYTES:
        return None
    pairs = int(values["groups"]) // splits
    has_sinks = parts[5].source.const("HAS_SINKS") == "true"
    alone = not has_sinks and (splits == 1 or _is_alone(pairs, int(values["capacity"]) * dim))
    splits = 1 if alone else splits
    sizes = {"QUADS": dim // 4, "KEY_LANES": lanes[0], "VALUE_LANES": lanes[1], "ROW_VECTORS": vectors}
    holes = {name: f"{value}u" for name, value in sizes.items()}
    holes |= {"ALONE": flag(alone), "INTERLEAVED": turn_query.source.const("INTERLEAVED")}
    holes["SOFT_CAP"] = attend.source.const("SOFT_CAP")
    fixed = ("group", "capacity", "scale")
    params = {name: values[name] for name in fixed} | {"splits": splits, "groups": pairs * splits}
    params["half"] = turn_query.values["half"]
    bind = {**_INPUTS, "out": "5.out" if alone else "4.state", "params.keys": "4.keys"}
    source = kernel.fill(holes)
    if turns_of(source, params) > most_turns():
        return None
    return join(Launch(source, pairs * splits, params, bind=bind), parts if alone else parts[:5])


def place(parts: Sequence[RegisteredLaunch]) -> Joint | None:
    """One launch for what brings new positions to attention, or None where there is no kernel for it.

    Args:
        parts: the rotary embeddings of query and key, and the writes of key and value into their caches. The
            write takes the turned key, which nobody else needs; both embeddings take the same tables, which
            begin where their buffers do.

    Returns:
        The launch, whose parts are all four.
    """
    kernel = load("attention/place")
    if tuple(part.source.name for part in parts) != kernel.header.joins or not _are_placed(parts):
        return None
    turn_query, turn_key, write_key, write_value = parts
    count, rows = turn_query.values["count"], write_key.values["count"]
    params = {
        "query_count": count, "row_count": rows, "query_heads": turn_query.values["heads"],
        "query_strides": turn_query.values["x_strides"], "key_heads": turn_key.values["heads"],
        "key_strides": turn_key.values["x_strides"], "value_heads": write_value.values["heads"],
        "value_strides": write_value.values["rows_strides"],
        **{name: turn_query.values[name] for name in ("time", "head_dim", "half")},
        "capacity": write_key.values["capacity"],
    }  # fmt: skip
    bind = {
        **_INPUTS, "out": "0.out", "params.key_offset": "2.cache_offset",
        "params.value_offset": "3.cache_offset",
    }  # fmt: skip
    source = kernel.fill({"INTERLEAVED": turn_query.source.const("INTERLEAVED")})
    return join(Launch(source, -(-(count + 2 * rows) // 64), params, bind=bind), parts)


def _are_placed(parts: Sequence[RegisteredLaunch]) -> bool:
    """Whether sizes agree, and the write takes the turned key as it is."""
    turn_query, turn_key, write_key, write_value = parts
    values = write_key.values
    heads, time, dim, count = (values[name] for name in ("heads", "time", "head_dim", "count"))
    by_batch, by_head, by_time, by_column = values["rows_strides"]
    return (
        _are_turned_alike(turn_query, turn_key)
        and all(part.values["head_dim"] == dim and part.values["time"] == time for part in parts)
        and turn_key.values["count"] == write_value.values["count"] == count
        and write_value.values["capacity"] == values["capacity"]
        and by_column == 1
        and (time == 1 or by_time == dim)
        and (heads == 1 or by_head == time * dim)
        and (count == heads * time * dim or by_batch == heads * time * dim)
        and all(_is_float32(part) for part in parts)
    )


def _is_alone(pairs: int, numbers: int) -> bool:
    """Whether one workgroup for all keys of a head is faster than several and a launch that combines them."""
    return numbers <= _ALONE or pairs >= profile(stream().open().info).processors


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


def _fits(parts: Sequence[RegisteredLaunch]) -> bool:
    """Whether there is one position, of float32, without a mask, all sizes agree and heads are turned alike.

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
        and attend.source.const("CAUSAL") == attend.source.const("ALIGN_END") == "true"
        and attend.source.const("HAS_MASK") == "false"
        and _are_turned_alike(turn_query, turn_key)
    )


def _are_turned_alike(turn_query: RegisteredLaunch, turn_key: RegisteredLaunch) -> bool:
    return (
        turn_query.values["half"] == turn_key.values["half"]
        and turn_query.source.const("INTERLEAVED") == turn_key.source.const("INTERLEAVED")
        and turn_query.source.const("INVERSE") == turn_key.source.const("INVERSE") == "false"
    )


def _is_float32(node: RegisteredLaunch) -> bool:
    return all(b.element == "f32" for b in node.source.bindings)


def _is_dense(node: RegisteredLaunch, binding: str) -> bool:
    """Whether everything is float32, and the heads of one position lie one after the other."""
    heads, dim, count = (node.values[name] for name in ("heads", "head_dim", "count"))
    by_batch, by_head, _, by_column = node.values[f"{binding}_strides"]
    return (
        _is_float32(node)
        and by_column == 1
        and (heads == 1 or by_head == dim)
        and (heads * dim == count or by_batch == heads * dim)
    )
