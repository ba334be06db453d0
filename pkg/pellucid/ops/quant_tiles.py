"""Which tile makes a product of many rows with a quantized weight: a pure function of its shape and the
device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..device.host import Info
from ..op import forget_plans
from .matmul_choice import processors


@dataclass(frozen=True)
class Tile:
    """The consts of ``wgsl/matmul/quant_tile.wgsl``.

    Args:
        rows: of x, of a workgroup.
        columns: of the result, of a workgroup.
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
    def nbytes(self) -> int:
        """Workgroup memory: the tiles, and in their place the sums of the slices."""
        gathered = self.slices * self.rows * self.columns // 4 if self.slices > 1 else 0
        return 16 * max((self.rows + self.columns) * (self.step // 4 + 1), gathered)

    def groups(self, batch: int, *rows: int) -> int:
        """Workgroups for products of so many rows of x with weights of so many rows."""
        return -(-batch // self.rows) * sum(-(-n // self.columns) for n in rows)

    def holes(self, units: int) -> dict[str, str]:
        """The consts as the kernels have them, for weights of so many units a row."""
        sizes = {
            "TILE_M": self.rows, "TILE_N": self.columns, "LANE_M": self.lane_rows, "STEP": self.step,
            "SLICES": self.slices,
        }  # fmt: skip
        return {name: f"{size}u" for name, size in sizes.items()} | {
            "EDGES": str(bool(32 * units % self.step)).lower()
        }

    def __str__(self) -> str:
        sliced = f", {self.slices} slices" if self.slices > 1 else ""
        return f"{self.rows}x{self.columns}x{self.step} {self.lane_rows}x4{sliced}"


# Small ones are for small products: they fill a device, and their slices have as many lanes as large ones.
# Steps of 48 and 96 divide the depths of models whose width is a multiple of 3.
TILES = (
    Tile(16, 16, 4, 96, 12),
    Tile(16, 16, 4, 64, 8),
    Tile(16, 16, 2, 64, 8),
    Tile(16, 32, 4, 64, 8),
    Tile(16, 32, 4, 64, 4),
    Tile(16, 32, 2, 64, 4),
    Tile(16, 64, 4, 32, 4),
    Tile(32, 32, 4, 48, 4),
    Tile(32, 32, 4, 32, 4),
    Tile(32, 32, 4, 32, 2),
    Tile(32, 32, 8, 32, 4),
    Tile(32, 64, 4, 32, 2),
    Tile(32, 64, 8, 32, 2),
    Tile(64, 32, 8, 32, 2),
    Tile(16, 64, 2),
    Tile(32, 64, 4),
    Tile(64, 64, 4),
    Tile(64, 64, 8),
    Tile(64, 128, 8),
    Tile(128, 64, 8),
)

# What a processor multiplies per clock, the lanes that it holds, and the share of its speed that a lane's
# instructions reach alone: they wait for each other.
_WIDTH, _LANES, _ALONE = 128, 512, 0.6
# Multiplications in whose time a quad of workgroup memory is read; what a number of the weight costs to
# unpack, and what a step costs beside.
_QUAD, _UNPACK, _STEP = 8, 6, 40
# Bytes per clock and processor from the cache that all share; clocks until a fetch arrives.
_TRAFFIC, _LATENCY = 24, 900
# Steps' worth of time that starts and ends a tile; clocks for each slice that is added.
_ENDS, _SLICE = 2, 60


def estimate(tile: Tile, batch: int, rows: tuple[int, ...], units: int, at_once: int) -> float:
    """Clocks that products take: those of the processor with the most tiles."""
    multiplying = tile.rows * tile.columns * tile.step
    reading = multiplying * (tile.lane_rows + 4) / (16 * tile.lane_rows) * _QUAD / 4
    work = max(multiplying, reading) + tile.columns * tile.step * _UNPACK + tile.lanes * _STEP
    rounds = -(-tile.groups(batch, *rows) // at_once)
    together = max(min(rounds, _LANES // tile.lanes), 1)
    step = max(
        together * work / _WIDTH,
        work / (_ALONE * tile.lanes),
        together * tile.step * (4 * tile.rows + tile.columns) / _TRAFFIC,
        _LATENCY,
    )
    clocks = step * (-(-32 * units // tile.step) + _ENDS) + (tile.slices - 1) * _SLICE * together
    return clocks * rounds / together


def candidates(batch: int, rows: tuple[int, ...], units: int, info: Info) -> list[Tile]:
    """Every tile that suits a device, the one with the least estimate first."""
    most = info.limits.get("maxComputeWorkgroupStorageSize", 16384)
    at_once = processors(info)
    found = [tile for tile in TILES if tile.nbytes <= most]
    return sorted(found, key=lambda tile: estimate(tile, batch, rows, units, at_once))


_forced: Tile | None = None


def choose(batch: int, rows: tuple[int, ...], units: int, info: Info) -> Tile:
    """The tile for products of x (batch, 32 * units) with weights of so many rows."""
    return _forced or candidates(batch, rows, units, info)[0]


@contextmanager
def forced(tile: Tile | None) -> Iterator[None]:
    """Take one tile for every product that is planned meanwhile; for measurements and tests."""
    global _forced
    before, _forced = _forced, tile
    forget_plans()
    try:
        yield
    finally:
        _forced = before
        forget_plans()
