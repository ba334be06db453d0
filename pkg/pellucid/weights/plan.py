"""Cuts the bytes that a load needs into requests: neighbours together, large tensors apart, no byte twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import WeightError
from .checkpoint import TensorInfo
from .source import Source

LARGEST_PART = 8_000_000  # bytes in one request; a multiple of 4
_SMALLEST_PART = 1_000_000
_WIDEST_GAP = 4096  # bytes of padding that are cheaper to fetch than to skip


class Target(NamedTuple):
    """Where a tensor's bytes go.

    Attributes:
        slot: the stream's slot.
        nbytes: size of the whole slot, with which it is allocated when it is new.
        offset: where in the slot the tensor begins, in bytes; a multiple of 4.
    """

    slot: int
    nbytes: int
    offset: int = 0


class Row(NamedTuple):
    """Bytes ``start`` to ``stop`` of a shard go to ``offset`` of a slot, for the load's item ``item``."""

    start: int
    stop: int
    slot: int
    nbytes: int
    offset: int
    item: int


class Part(NamedTuple):
    """One request: bytes ``start`` to ``stop`` of a shard, and its rows; rows of one range are adjacent."""

    shard: int
    start: int
    stop: int
    rows: list[Row]


class LoadPlan(NamedTuple):
    """What a load will do.

    Attributes:
        shards: the files.
        lanes: each a list of parts that one connection fetches in order; lanes run beside each other.
        names: of the items.
        bytes_total: bytes of all items.
    """

    shards: Sequence[Source]
    lanes: list[list[Part]]
    names: list[str]
    bytes_total: int


def make(shards: Sequence[Source], items: Sequence[tuple[TensorInfo, Target]], connections: int) -> LoadPlan:
    """Plan a load.

    Args:
        shards: the checkpoint's files.
        items: each tensor with its target; the same tensor may have several.
        connections: how many requests may be in flight.

    Raises:
        WeightError: a target is smaller than its tensor, or not aligned.
    """
    for info, target in items:
        if target.offset % 4 or target.offset < 0 or target.offset + info.nbytes > target.nbytes:
            raise WeightError(
                f"{info.name}: {info.nbytes:,} bytes do not fit at offset {target.offset:,} of a slot of "
                f"{target.nbytes:,}. "
                "Give a slot that is large enough and an offset that is a multiple of 4."
            )
    ranges: dict[tuple[int, int, int], list[int]] = {}
    for k, (info, _) in enumerate(items):
        if info.nbytes:
            ranges.setdefault((info.shard, info.start, info.stop), []).append(k)
    total = sum(stop - start for _, start, stop in ranges)
    limit = min(LARGEST_PART, max(_SMALLEST_PART, total // (2 * connections) & ~3))
    parts: list[Part] = []
    for (shard, begin, end), receivers in sorted(ranges.items()):
        start = begin
        while start < end:
            last = parts[-1] if parts else None
            if (
                last is None
                or last.shard != shard
                or not 0 <= start - last.stop <= _WIDEST_GAP
                or start + 4 > last.start + limit
            ):
                parts.append(last := Part(shard, start, start, []))
            room = last.start + limit - start
            stop = end if end - start <= room else start + (room & ~3)
            for k in receivers:
                slot, nbytes, offset = items[k][1]
                last.rows.append(Row(start, stop, slot, nbytes, offset + start - begin, k))
            parts[-1] = last._replace(stop=stop)
            start = stop
    lanes: list[list[Part]] = []
    for shard, source in enumerate(shards):
        mine = [p for p in parts if p.shard == shard]
        lanes += [mine] if source.ordered and mine else [[p] for p in mine]
    return LoadPlan(shards, lanes, [info.name for info, _ in items], total)
