"""The kernels that make a product of matrices, as values: tiles, and variants that name a kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...device.host import Info
from ...errors import KernelError
from ...op.kernel.turns import most_turns
from .tiles import tile_rows, tile_table


@dataclass(frozen=True)
class Shape:
    """What the choice of a variant depends on: (batch, rows, depth) times (batch, depth, columns), and
    whether neighbours in depth are the nearer ones in either operand.
    """

    batch: int
    rows: int
    columns: int
    depth: int
    a_depth_first: bool = True
    b_depth_first: bool = False

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.rows * self.columns * self.depth


@dataclass(frozen=True)
class MatmulTile:
    """The consts of ``wgsl/matmul/tiled.wgsl``.

    Args:
        rows, columns: of a workgroup.
        lane_rows, lane_columns: of a lane.
        step: how much of the depth lies in workgroup memory.
        buffers: how many steps lie there.
        slices: groups of lanes that share a step; each makes the whole tile over its part of the step.
    """

    rows: int
    columns: int
    lane_rows: int
    lane_columns: int
    step: int = 16
    buffers: int = 1
    slices: int = 1

    @property
    def lanes(self) -> int:
        """The size of the workgroup."""
        return self.rows // self.lane_rows * self.columns // self.lane_columns * self.slices

    @property
    def fetched(self) -> int:
        """Bytes of a step."""
        return 4 * self.step * (self.rows + self.columns)

    @property
    def nbytes(self) -> int:
        """Workgroup memory: the steps, and in the end a block of 4 x 4 sums of every lane of the slices."""
        gathered = 64 * self.lanes if self.slices > 1 else 0
        return max(self.buffers, -(-gathered // self.fetched)) * self.fetched

    @property
    def blocks(self) -> int:
        """Blocks of 4 x 4 that a lane fetches for a step, 1 or 2."""
        return -(-(self.rows + self.columns) * self.step // (16 * self.lanes))

    def groups(self, shape: Shape) -> int:
        """Workgroups for one part of a product."""
        return shape.batch * -(-shape.rows // self.rows) * -(-shape.columns // self.columns)

    def __str__(self) -> str:
        sliced = f" {self.slices} slices" if self.slices > 1 else ""
        doubled = " doubled" if self.buffers == 2 else ""
        return f"{self.rows}x{self.columns}x{self.step} {self.lane_rows}x{self.lane_columns}{sliced}{doubled}"


def tile_by_limits(step: int, memory: int) -> MatmulTile:
    """The square tile of `tile_rows` for so much of the depth, with as many slices as 256 lanes give.

    Args:
        step: from 16 to 128, a power of two.
        memory: bytes of a workgroup; half of them are filled, so that a processor holds two tiles at least.
    """
    # The kernel's rows and columns are powers of two from 16 on.
    rows = 1 << max(tile_rows(step, memory), 16).bit_length() - 1
    lane_rows = 8 if rows * step > 1024 and rows == 64 else 4
    slices = min(256 * 4 * lane_rows // rows**2, step // 4)
    return MatmulTile(rows, rows, lane_rows, 4, step, slices=slices)


# At one depth, 32 lanes with 8 x 8 sums each take 64 instructions to multiply and 4 to read workgroup memory,
# with 8 x 4 sums 32 and 3, with 4 x 4 sums 16 and 2; NVIDIA's memory is then busy for half, three quarters
# and all of the time. So large blocks are better as long as their tiles fill the device; wide tiles also read
# a and b less often. The smaller ones are for smaller products. Where even these leave most of a device idle,
# slices share out the depth: a tile then has many lanes and long steps, of which there are few to wait for.
# Tiles that came second by 10 % or more for every product on an H200 are left out.
TILES = (
    *tile_table(
        """
        128 128 8 8, 128 128 8 8 8 2, 128 64 8 4, 128 64 8 4 16 2, 64 64 8 8, 64 64 8 4, 64 64 8 4 16 2,
        64 64 4 4, 64 64 4 4 16 2, 64 32 4 4, 32 64 4 4, 32 32 4 4, 32 32 4 4 16 2, 64 128 8 8 16 1 2,
        32 64 4 4 32 1 2, 32 32 8 4 64 1 8, 32 32 4 4 32 1 2, 16 32 4 4 64 1 8, 16 16 4 4 64 1 8
        """,
        MatmulTile,
    ),
    # Long steps in the memory that every adapter has, and in twice as much, which GPUs have.
    *(tile_by_limits(step, 16384) for step in (32, 64)),
    *(tile_by_limits(step, 32768) for step in (32, 64, 128)),
)
# Into how many parts the depth may be cut.
PARTS = (1, 2, 4, 8, 16)
# What the lanes of the kernels for few rows take of the depth at a time.
VECTOR_STEP = 128
# Rows up to which there are kernels that read the matrix once for all of them.
MOST_VECTORS = 8
_FILES = ("vector", "vector_columns", "direct")


@dataclass(frozen=True)
class Variant:
    """A kernel: its file, its tile if it is the tiled one, and into how many parts the depth is cut.

    ``direct`` is the kernel for adapters that run on a CPU.

    As text: ``tiled 64x64x16 8x4, 2 parts``; `Variant.parse` reads that.
    """

    file: str
    tile: MatmulTile | None = None
    parts: int = 1

    def suits(self, shape: Shape, info: Info) -> bool:
        """Whether it can make such a product on such a device."""
        if self.tile is None:
            is_short = shape.depth <= self.parts * VECTOR_STEP * most_turns() // 2
            return self.file == "direct" or (shape.rows <= MOST_VECTORS and is_short)
        if shape.depth > self.parts * self.tile.step * most_turns() // 2:
            return False
        return self.tile.nbytes <= info.limits.get("maxComputeWorkgroupStorageSize", 16384)

    def __str__(self) -> str:
        tile = f" {self.tile}" if self.tile else ""
        return f"{self.file}{tile}{f', {self.parts} parts' if self.parts > 1 else ''}"

    @staticmethod
    def parse(text: str) -> Variant:
        """The variant that a text names.

        Raises:
            KernelError: it names none.
        """
        name, _, parts = text.partition(", ")
        kernels = {file: Variant(file) for file in _FILES} | {
            f"tiled {t}": Variant("tiled", t) for t in TILES
        }
        cut = re.fullmatch(r"([2-9]|[1-9]\d+) parts", parts)
        if name not in kernels or (parts and (not cut or name == "direct")):
            raise KernelError(
                f"matmul: {text!r} is no variant. Write one of {', '.join(map(repr, kernels))}, "
                "and ', 2 parts' behind it for a depth that is cut in two."
            )
        return Variant(name.split()[0], kernels[name].tile, int(cut[1]) if cut else 1)
