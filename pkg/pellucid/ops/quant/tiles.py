"""Which tile makes a product of many rows with a quantized weight: a pure function of its shape and the
device."""

from __future__ import annotations

from ...device.host import Info
from ...device.profile import profile
from ..matmul.tiles import Forced, Rates, Tile, tile_table

# Small ones are for small products: they fill a device, and their slices have as many lanes as large ones.
# Steps of 48 and 96 divide the depths of models whose width is a multiple of 3.
TILES = tile_table(
    """
    16 16 4 96 12, 16 16 4 64 8, 16 16 2 64 8, 16 32 4 64 8, 16 32 4 64 4, 16 32 2 64 4,
    16 64 4 32 4, 32 32 4 48 4, 32 32 4 32 4, 32 32 4 32 2, 32 32 8 32 4, 32 64 4 32 2,
    32 64 8 32 2, 64 32 8 32 2, 16 64 2, 32 64 4, 64 64 4, 64 64 8, 64 128 8, 128 64 8
    """,
)  # fmt: skip

_RATES = Rates(width=128, lanes=512, alone=0.6, traffic=24, latency=900)
# Multiplications in whose time a quad of workgroup memory is read; what a number of the weight costs to
# unpack, and what a step costs beside.
_QUAD, _UNPACK, _STEP = 2, 6, 40
# Steps' worth of time that starts and ends a tile; clocks for each slice that is added.
_ENDS, _SLICE = 2, 60


def estimate(tile: Tile, batch: int, rows: tuple[int, ...], units: int, at_once: int) -> float:
    """Clocks that products take."""
    unpacking = tile.columns * tile.step * _UNPACK
    return _RATES.clocks(
        work=max(tile.multiplied, tile.read * _QUAD) + unpacking + tile.lanes * _STEP,
        fetched=tile.step * (4 * tile.rows + tile.columns),
        lanes=tile.lanes,
        steps=-(-32 * units // tile.step) + _ENDS,
        groups=tile.groups(batch, *rows),
        at_once=at_once,
        gather=(tile.slices - 1) * _SLICE,
    )


def candidates(batch: int, rows: tuple[int, ...], units: int, info: Info) -> list[Tile]:
    """Every tile that suits a device, the one with the least estimate first."""
    most = info.limits.get("maxComputeWorkgroupStorageSize", 16384)
    at_once = profile(info).processors
    found = [tile for tile in TILES if tile.nbytes() <= most]
    return sorted(found, key=lambda tile: estimate(tile, batch, rows, units, at_once))


forced: Forced[Tile] = Forced()


def choose(batch: int, rows: tuple[int, ...], units: int, info: Info) -> Tile:
    """The tile for products of x (batch, 32 * units) with weights of so many rows."""
    return forced.choice or candidates(batch, rows, units, info)[0]
