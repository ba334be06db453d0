"""Which tile makes a convolution, and in how many parts of its depth: a pure function of its sizes and the
device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..device.host import Info
from ..op import forget_plans
from .matmul_choice import processors


@dataclass(frozen=True)
class Sizes:
    """A convolution as products: (rows, depth) with (depth, pixels), ``products`` of them.

    Args:
        products: groups, times the phases of a transposed convolution.
        rows: channels that a group makes.
        pixels: of a phase, in all images.
        depth: channels that a group takes, times taps.
    """

    products: int
    rows: int
    pixels: int
    depth: int


@dataclass(frozen=True)
class Tile:
    """The consts of ``wgsl/conv/tiled.wgsl``.

    Args:
        rows: of a workgroup.
        pixels: of a workgroup.
        lane_rows: of a lane, which makes four pixels.
        step: how much of the depth lies in workgroup memory.
        slices: groups of lanes that share a step.
    """

    rows: int
    pixels: int
    lane_rows: int
    step: int = 16
    slices: int = 1

    @property
    def lanes(self) -> int:
        """The size of the workgroup."""
        return self.rows // self.lane_rows * self.pixels // 4 * self.slices

    @property
    def nbytes(self) -> int:
        """Workgroup memory: the tiles and the taps of a step, in their place the sums of the slices."""
        gathered = self.slices * self.rows * self.pixels // 4 if self.slices > 1 else 0
        return 16 * max((self.rows + self.pixels) * (self.step // 4 + 1) + self.step, gathered)

    def groups(self, sizes: Sizes) -> int:
        """Workgroups for the whole depth."""
        return sizes.products * -(-sizes.rows // self.rows) * -(-sizes.pixels // self.pixels)

    def chunk(self, depth: int, parts: int) -> int:
        """The length of a part of the depth."""
        return -(-depth // (parts * self.step)) * self.step

    @property
    def holes(self) -> dict[str, str]:
        """The consts as the kernel has them."""
        sizes = {
            "TILE_ROWS": self.rows, "TILE_PIXELS": self.pixels, "LANE_ROWS": self.lane_rows,
            "STEP": self.step, "SLICES": self.slices,
        }  # fmt: skip
        return {name: f"{size}u" for name, size in sizes.items()}

    def __str__(self) -> str:
        sliced = f", {self.slices} slices" if self.slices > 1 else ""
        return f"{self.rows}x{self.pixels}x{self.step} {self.lane_rows}x4{sliced}"


# Small ones are for small convolutions: they fill a device, and their slices have as many lanes as large
# ones. Steps of 48 divide the depths of 3 x 3 taps.
TILES = (
    Tile(16, 16, 4, 64, 8),
    Tile(16, 32, 4, 64, 8),
    Tile(16, 32, 4, 64, 4),
    Tile(16, 32, 2, 32, 4),
    Tile(16, 64, 4, 32, 4),
    Tile(16, 64, 2, 32, 2),
    Tile(16, 64, 2),
    Tile(32, 16, 4, 64, 8),
    Tile(32, 32, 4, 48, 4),
    Tile(32, 32, 4, 32, 4),
    Tile(32, 32, 4, 32, 2),
    Tile(32, 32, 8, 32, 4),
    Tile(32, 64, 4, 32, 2),
    Tile(32, 64, 8, 32, 2),
    Tile(32, 64, 4),
    Tile(64, 16, 4, 32, 4),
    Tile(64, 32, 4, 32, 2),
    Tile(64, 32, 8, 32, 2),
    Tile(64, 64, 4),
    Tile(64, 64, 8),
    Tile(64, 128, 8),
    Tile(128, 64, 8),
)
# Into how many parts the depth is cut, at most, and the steps that a part has at least.
_PARTS, _LEAST = (1, 2, 4, 8, 16, 32, 64), 2

# The constants are fitted to 294 times of thirteen convolutions on an NVIDIA H200, where the choices are 2 %
# slower than the fastest tiles on average.
# What a processor multiplies per clock, the lanes that it holds, and the share of its speed that a lane's
# instructions reach alone: they wait for each other.
_WIDTH, _LANES, _ALONE = 128, 1024, 0.44
# Multiplications in whose time a quad of workgroup memory is read; what an element of a window and a quad of
# the weight cost to fetch, and what a lane's step costs beside.
_QUAD, _PIXEL, _WEIGHT, _STEP = 5.7, 30, 66, 44
# Bytes per clock and processor from the cache that all share; clocks until a fetch arrives.
_TRAFFIC, _LATENCY = 11, 2000
# Steps' worth of time that starts and ends a tile; clocks for each slice that is added, and between two
# dispatches.
_ENDS, _SLICE, _DISPATCH = 1.5, 1, 12_000


def estimate(tile: Tile, parts: int, sizes: Sizes, at_once: int) -> float:
    """Clocks that a convolution takes: those of the processor with the most tiles, and the sum of the
    parts."""
    multiplying = tile.rows * tile.pixels * tile.step
    reading = multiplying * (tile.lane_rows + 4) / (16 * tile.lane_rows) * _QUAD
    fetching = tile.step * (tile.pixels * _PIXEL + tile.rows * _WEIGHT / 4)
    work = multiplying + reading + fetching + tile.lanes * _STEP
    rounds = -(-tile.groups(sizes) * parts // at_once)
    together = max(min(rounds, _LANES // tile.lanes), 1)
    step = max(
        together * work / _WIDTH,
        work / (_ALONE * tile.lanes),
        together * tile.step * 4 * (tile.rows + tile.pixels) / _TRAFFIC,
        _LATENCY,
    )
    steps = tile.chunk(sizes.depth, parts) // tile.step + _ENDS
    clocks = (step * steps + (tile.slices - 1) * _SLICE * together) * rounds / together
    if parts > 1:
        moved = 4 * sizes.products * sizes.rows * sizes.pixels * (2 * parts + 1)
        clocks += _DISPATCH + moved / (_TRAFFIC * at_once)
    return clocks


def candidates(sizes: Sizes, info: Info) -> list[tuple[Tile, int]]:
    """Every tile that suits a device with every number of parts, the pair with the least estimate first."""
    most = info.limits.get("maxComputeWorkgroupStorageSize", 16384)
    at_once = processors(info)
    found = [
        (tile, parts)
        for tile in TILES
        if tile.nbytes <= most
        for parts in _PARTS
        # with lengths rounded up, fewer parts may already cover the depth
        if parts == 1
        or (
            sizes.depth >= _LEAST * parts * tile.step
            and (parts - 1) * tile.chunk(sizes.depth, parts) < sizes.depth
        )
    ]
    return sorted(found, key=lambda pair: estimate(*pair, sizes, at_once))


_forced: tuple[Tile, int] | None = None


def choose(sizes: Sizes, info: Info) -> tuple[Tile, int]:
    """The tile for a convolution, and the parts of its depth."""
    return _forced or candidates(sizes, info)[0]


@contextmanager
def forced(tile: Tile | None, parts: int = 1) -> Iterator[None]:
    """Take one tile for every convolution that is planned meanwhile; for measurements and tests."""
    global _forced
    before, _forced = _forced, None if tile is None else (tile, parts)
    forget_plans()
    try:
        yield
    finally:
        _forced = before
        forget_plans()
