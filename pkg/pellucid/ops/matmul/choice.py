"""Which variant makes a product: a pure function of its shape and the device, unless `pellucid.webgpu.tune`
has measured a better one for shapes like it.

The function compares estimates of the time that each tile would take, in clocks of the device. What is
counted is in `_clocks`; what the numbers rest on is written beside them.
"""

from __future__ import annotations

from ...device.host import Info
from ...device.profile import profile
from ...errors import KernelError
from ...op.kernel import is_direct
from ...op.kernel.autotune import measured as tuned
from .tiles import Forced, Rates
from .variants import MOST_VECTORS, PARTS, TILES, MatmulTile, Shape, Variant

# The numbers below fit times of 17 products on an H200 (132 processors, 2 GHz); those of most tiles are
# scaled from an earlier form of the kernel's loop. Estimates of fast tiles are off by 11 % in the mean.
#
# A second buffer saves a barrier and costs registers: no difference.
_RATES = Rates(width=116, lanes=512, alone=0.55, traffic=13, latency=1000, put=600, dispatch=11_000)
# Instructions of a step that neither multiply nor read workgroup memory: its own, and for a block to fetch.
_STEP, _BLOCK = 90, 190
# Clocks that start and end a tile, and that bring a block of every lane together.
_ENDS, _GATHER = 2000, 1000
# Elements of the depth that a part of a product of few rows has at least, the lanes that read it at once on
# a processor, how many parts are worth a second dispatch, and how many that one adds up in time.
_LONG, _READING, _WORTH, _MOST = 2048, 256, 4, 64


def _clocks(shape: Shape, tile: MatmulTile, parts: int, at_once: int) -> float:
    """An estimate of the time that a product takes, with the sum of its parts."""
    depth = tile.step // tile.slices
    multiplying = tile.lane_rows * tile.lane_columns * depth
    reading = (tile.lane_rows + tile.lane_columns) // 4 * depth
    share = multiplying / (multiplying + reading + _STEP + _BLOCK * tile.blocks)
    ends = _ENDS
    if tile.slices > 1:
        ends += _GATHER * tile.lane_rows * tile.lane_columns // 16
    clocks = _RATES.clocks(
        work=tile.rows * tile.columns * tile.step / share,
        fetched=tile.fetched,
        lanes=tile.lanes,
        steps=-(-shape.depth // (tile.step * parts)),
        groups=tile.groups(shape) * parts,
        at_once=at_once,
        ends=ends,
    )
    if parts > 1:
        clocks += _RATES.parts(parts, shape.batch * shape.rows * shape.columns, at_once)
    return clocks


def candidates(shape: Shape, info: Info) -> list[Variant]:
    """Every variant that suits a product and a device, the one with the least estimate first."""
    at_once = profile(info).processors
    tiled = [
        Variant("tiled", tile, parts)
        for tile in TILES
        for parts in PARTS
        # A part has two steps at least, so that fetching overlaps with computing; slices are there to save
        # the second dispatch.
        if parts == 1 or (tile.slices == 1 and shape.depth >= 2 * parts * tile.step)
    ]
    tiled = [v for v in tiled if v.suits(shape, info)]
    tiled.sort(key=lambda v: _clocks(shape, v.tile, v.parts, at_once) if v.tile else 0.0)
    vectors = _vectors(shape, at_once) if shape.rows <= MOST_VECTORS else []
    found = [*[v for v in vectors if v.suits(shape, info)], *tiled]
    # What no kernel takes at once is cut into dispatches, as for adapters that run on a CPU.
    return found or [Variant("direct")]


def _vectors(shape: Shape, at_once: int) -> list[Variant]:
    """The kernels for few rows. The matrix is what takes the time: it is read along its contiguous axis."""
    file, width, lanes = ("vector", 4, 64) if shape.b_depth_first else ("vector_columns", 16, 256)
    groups = max(shape.batch * -(-shape.columns // width), 1)
    parts = 1
    most = min(shape.depth // _LONG, _MOST)
    while groups * parts * lanes < at_once * _READING and 2 * parts <= most:
        parts *= 2
    cut = [Variant(file, None, parts)] if parts > 1 else []
    return [*cut, Variant(file)] if parts >= _WORTH else [Variant(file), *cut]


def choose(shape: Shape, info: Info) -> Variant:
    """The variant for a product: the same at every run on the same device."""
    return candidates(shape, info)[0]


# Measurements


def bucket(length: int) -> int:
    """The largest of the lengths that share a measurement: 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 and so on."""
    power = 1 << max(length - 1, 0).bit_length()
    return power * 3 // 4 if power > 2 and length <= power * 3 // 4 else power


def key(shape: Shape, dtype: str) -> str:
    """The name of a bucket of products: ``float32 nt 1x1024x1024x4096`` is batch, rows, columns and depth.

    The letters are those of the operands: ``n`` lies row by row, ``t`` is the transposed of such a matrix.
    """
    letters = "tn"[shape.a_depth_first] + "nt"[shape.b_depth_first]
    sizes = (shape.batch, shape.rows, shape.columns, shape.depth)
    return f"{dtype} {letters} {'x'.join(str(bucket(n)) for n in sizes)}"


forced: Forced[Variant] = Forced()


def variant_for(shape: Shape, dtype: str, info: Info) -> Variant:
    """The variant that a product gets: the measured one where there is one that suits it, else `choose`.

    Adapters that run on a CPU get the kernel without workgroup memory.
    """
    if forced.choice is not None:
        return forced.choice
    if is_direct() and not is_narrow(shape):
        return Variant("direct")
    text = tuned.measured(info, key(shape, dtype))
    found = None if text is None else _read(text)
    return found if found is not None and found.suits(shape, info) else choose(shape, info)


def is_narrow(shape: Shape) -> bool:
    """Few sums, each so long that lanes should share it, even where they must wait for each other."""
    return shape.depth >= 4096 and shape.batch * shape.rows * shape.columns < 64


def _read(text: str) -> Variant | None:
    """A measured variant; None for one of another version of the library."""
    try:
        return Variant.parse(text)
    except KernelError:
        return None
