"""Tiles that workgroups make of products, what they take, and how one is forced: what the choices of kernels
for products, quantized products and convolutions share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...errors import RangeError
from ...op.kernel import flag
from ...op.plan_cache import forget_plans
from ...tensors.shape import index

T = TypeVar("T")


def tile_rows(depth: int, memory: int = 16384, invocations: int = 256) -> int:
    """How many rows a tile of products has, from an adapter's limits: of queries and keys in attention, where
    the depth is that of a head, or of two matrices, where it is a step.

    ``memory / 2 // (depth * 2 * 4)``: half of a workgroup's memory holds two rows of float32 for each. It is
    a multiple of 8 from 8 to 64, and not above the invocations of a workgroup.

    Args:
        depth: numbers of a row.
        memory: the limit `maxComputeWorkgroupStorageSize`, in bytes; WebGPU's default if not given.
        invocations: the limit `maxComputeInvocationsPerWorkgroup`.

    Raises:
        RangeError: one of them is not positive.

    Example:
        >>> import pellucid
        >>> pellucid.grid.tile_rows(64), pellucid.grid.tile_rows(64, 32768)
        (16, 32)
    """
    given = {"depth": depth, "memory": memory, "invocations": invocations}
    for name, value in given.items():
        if index(value, f"tile_rows: {name}") < 1:
            raise RangeError(f"tile_rows: {name} must be at least 1, not {value}.")
    rows = min(memory // 2 // (depth * 2 * 4), invocations)
    return min(max(rows // 8 * 8, 8), 64)


@dataclass(frozen=True)
class Tile:
    """The consts of ``wgsl/parts/tile.wgsl``.

    Args:
        rows, columns: of a workgroup.
        lane_rows: of a lane, which makes four columns.
        step: how much of the depth lies in workgroup memory.
        slices: groups of lanes that share a step.
    """

    rows: int
    columns: int
    lane_rows: int
    step: int = 16
    slices: int = 1

    @property
    def lanes(self) -> int:
        """The size of the workgroup."""
        return self.rows // self.lane_rows * self.columns // 4 * self.slices

    @property
    def multiplied(self) -> int:
        """Multiplications of a step."""
        return self.rows * self.columns * self.step

    @property
    def read(self) -> float:
        """Quads of workgroup memory that lanes read in a step."""
        return self.multiplied * (self.lane_rows + 4) / (16 * self.lane_rows)

    def nbytes(self, beside: int = 0) -> int:
        """Workgroup memory: a step and so many quads beside it, in their place the sums of the slices."""
        gathered = self.slices * self.rows * self.columns // 4 if self.slices > 1 else 0
        return 16 * max((self.rows + self.columns) * (self.step // 4 + 1) + beside, gathered)

    def groups(self, rows: int, *columns: int) -> int:
        """Workgroups for matrices of so many rows and columns each."""
        return -(-rows // self.rows) * sum(-(-n // self.columns) for n in columns)

    def has_edges(self, depth: int) -> bool:
        """Whether the last step reaches past such a depth; there is one at least."""
        return depth == 0 or depth % self.step > 0

    def holes(self, depth: int) -> dict[str, str]:
        """The consts as the kernels have them, for products of such a depth."""
        sizes = {
            "TILE_ROWS": self.rows, "TILE_COLUMNS": self.columns, "LANE_ROWS": self.lane_rows,
            "STEP": self.step, "SLICES": self.slices,
        }  # fmt: skip
        return {name: f"{size}u" for name, size in sizes.items()} | {"EDGES": flag(self.has_edges(depth))}

    def __str__(self) -> str:
        sliced = f", {self.slices} slices" if self.slices > 1 else ""
        return f"{self.rows}x{self.columns}x{self.step} {self.lane_rows}x4{sliced}"


def tile_table(rows: str, kind: Callable[..., T] = Tile) -> tuple[T, ...]:
    """Tiles from a table: the numbers of each, with commas between tiles."""
    return tuple(kind(*map(int, row.split())) for row in rows.split(","))


@dataclass(frozen=True)
class Rates:
    """What a processor does per clock with the tiles of a kernel, as its times show it.

    Args:
        width: multiplications.
        lanes: how many it holds.
        alone: multiplications of a lane whose tile is alone: instructions wait for each other.
        traffic: bytes from and to the cache that all processors share.
        latency: clocks until a fetch arrives.
        put: clocks until what was fetched is where all lanes see it.
        dispatch: clocks between two dispatches, of which one waits for the other.
    """

    width: int
    lanes: int
    alone: float
    traffic: int
    latency: int
    put: int = 0
    dispatch: int = 0

    def clocks(
        self,
        work: float,
        fetched: int,
        lanes: int,
        steps: float,
        groups: int,
        at_once: int,
        ends: float = 0,
        gather: float = 0,
    ) -> float:
        """The time that tiles take: that of the processor with the most of them.

        Args:
            work: of a step of a tile, in multiplications.
            fetched: bytes of a step.
            lanes: of a tile.
            steps: of a tile.
            groups: tiles.
            at_once: processors.
            ends: clocks that start and end tiles, whose processor has other ones meanwhile.
            gather: the same of each.
        """
        rounds = -(-groups // at_once)
        together = max(min(rounds, self.lanes // lanes), 1)
        step = max(
            together * work / self.width,
            max(work / min(self.alone * lanes, self.width), self.latency) + self.put,
            together * fetched / self.traffic,
        )
        return (step * steps + ends + gather * together) * rounds / together

    def parts(self, parts: int, results: int, at_once: int) -> float:
        """The time that a second dispatch takes, which adds up so many parts of as many results."""
        return self.dispatch + 4 * results * (2 * parts + 1) / (self.traffic * at_once)


class Forced(Generic[T]):
    """A choice that is taken for all that is planned within a ``with``; for measurements and tests."""

    def __init__(self) -> None:
        self.choice: T | None = None

    @contextmanager
    def __call__(self, choice: T | None) -> Iterator[None]:
        before, self.choice = self.choice, choice
        forget_plans()
        try:
            yield
        finally:
            self.choice = before
            forget_plans()
