"""Which tile makes a convolution, and in how many parts of its depth: a pure function of its sizes and the
device, unless `pellucid.webgpu.tune` has measured a better one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

from ...device.host import Info
from ...device.profile import profile
from ...op.kernel.autotune import measured as tuned
from ..matmul.choice import bucket
from ..matmul.tiles import Forced, Rates, Tile, tile_table


@dataclass(frozen=True)
class Sizes:
    """A convolution as products: (rows, depth) with (depth, columns), ``products`` of them.

    Args:
        products: groups, times the phases of a transposed convolution.
        rows: channels that a group makes.
        columns: pixels of a phase, in all images.
        depth: channels that a group takes, times taps.
    """

    products: int
    rows: int
    columns: int
    depth: int

    def groups(self, tile: Tile) -> int:
        """Workgroups for the whole depth."""
        return self.products * tile.groups(self.rows, self.columns)


class TileChoice(NamedTuple):
    """A tile, and into how many parts the depth is cut. As text: ``16x32x64 4x4, 8 slices, 2 parts``."""

    tile: Tile
    parts: int = 1

    def __str__(self) -> str:
        return f"{self.tile}{f', {self.parts} parts' if self.parts > 1 else ''}"


def chunk(tile: Tile, depth: int, parts: int) -> int:
    """The length of a part of the depth."""
    return max(-(-depth // (parts * tile.step)), 1) * tile.step


# Small ones are for small convolutions: they fill a device, and their slices have as many lanes as large
# ones. Steps of 48 divide the depths of 3 x 3 taps.
TILES = tile_table(
    """
    16 16 4 64 8, 16 32 4 64 8, 16 32 4 64 4, 16 32 2 32 4, 16 64 4 32 4, 16 64 2 32 2, 16 64 2,
    32 16 4 64 8, 32 32 4 48 4, 32 32 4 32 4, 32 32 4 32 2, 32 32 8 32 4, 32 64 4 32 2,
    32 64 8 32 2, 32 64 4, 64 16 4 32 4, 64 32 4 32 2, 64 32 8 32 2, 64 64 4, 64 64 8, 64 128 8,
    128 64 8
    """
)
# Into how many parts the depth is cut, at most, and the steps that a part has at least.
PARTS, _LEAST = (1, 2, 4, 8, 16, 32, 64), 2

# The constants are fitted to 294 times of thirteen convolutions on an NVIDIA H200, where the choices are 2 %
# slower than the fastest tiles on average.
_RATES = Rates(width=128, lanes=1024, alone=0.44, traffic=11, latency=2000, dispatch=12_000)
# Multiplications in whose time a quad of workgroup memory is read; what an element of a window and a quad of
# the weight cost to fetch, and what a lane's step costs beside.
_QUAD, _PIXEL, _WEIGHT, _STEP = 5.7, 30, 66, 44
# Steps' worth of time that starts and ends a tile; clocks for each slice that is added.
_ENDS, _SLICE = 1.5, 1


def estimate(tile: Tile, parts: int, sizes: Sizes, at_once: int) -> float:
    """Clocks that a convolution takes, with the sum of the parts."""
    fetching = tile.step * (tile.columns * _PIXEL + tile.rows * _WEIGHT / 4)
    clocks = _RATES.clocks(
        work=tile.multiplied + tile.read * _QUAD + fetching + tile.lanes * _STEP,
        fetched=4 * tile.step * (tile.rows + tile.columns),
        lanes=tile.lanes,
        steps=chunk(tile, sizes.depth, parts) // tile.step + _ENDS,
        groups=sizes.groups(tile) * parts,
        at_once=at_once,
        gather=(tile.slices - 1) * _SLICE,
    )
    if parts > 1:
        clocks += _RATES.parts(parts, sizes.products * sizes.rows * sizes.columns, at_once)
    return clocks


def candidates(sizes: Sizes, info: Info) -> list[TileChoice]:
    """Every tile that suits a device with every number of parts, the pair with the least estimate first."""
    most = info.limits.get("maxComputeWorkgroupStorageSize", 16384)
    at_once = profile(info).processors
    found = [
        TileChoice(tile, parts)
        for tile in TILES
        if tile.nbytes(beside=tile.step) <= most
        for parts in PARTS
        # with lengths rounded up, fewer parts may already cover the depth
        if parts == 1
        or (
            sizes.depth >= _LEAST * parts * tile.step
            and (parts - 1) * chunk(tile, sizes.depth, parts) < sizes.depth
        )
    ]
    return sorted(found, key=lambda pair: estimate(*pair, sizes, at_once))


_forced: Forced[TileChoice] = Forced()


def choose(sizes: Sizes, info: Info) -> TileChoice:
    """The tile for a convolution, and the parts of its depth."""
    return _forced.choice or candidates(sizes, info)[0]


def key(sizes: Sizes, dtype: str) -> str:
    """The name of a bucket of convolutions that makes a result: ``float32 conv2d 1x64x4096x768``."""
    lengths = (sizes.products, sizes.rows, sizes.columns, sizes.depth)
    return f"{dtype} conv2d {'x'.join(str(bucket(n)) for n in lengths)}"


def choice_for(sizes: Sizes, dtype: str, info: Info) -> TileChoice:
    """What a convolution gets that makes a result: what was measured, where that suits, else `choose`."""
    text = None if _forced.choice else tuned.measured(info, key(sizes, dtype))
    found = (choice for choice in candidates(sizes, info) if str(choice) == text) if text else ()
    return next(iter(found), None) or choose(sizes, info)


def forced(tile: Tile | None, parts: int = 1) -> AbstractContextManager[None]:
    """Take one tile for every convolution that is planned meanwhile; for measurements and tests."""
    return _forced(None if tile is None else TileChoice(tile, parts))
