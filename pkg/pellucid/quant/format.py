"""Weight formats: which planes a quantized weight has in its buffer, and what they mean in numpy.

A weight of logical shape (rows, columns) lies as planes, one after another, each beginning at a multiple of
16 bytes. A plane is the same field of every unit of 32 columns, row after row. Which bits it holds is written
at the head of ``wgsl/quant/<format>.wgsl``. How files store such weights is said in `stored`, and for the
blocks of GGUF files in `formats.blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..device.resources import add_text
from ..errors import FormatError, ShapeError
from ..tensors.dtypes import NAMES, DType
from .activations import of_saved
from .stored import Expected, Settings, Shapes, Stored

UNIT = 32  # columns of a unit, in every format
ROW = 1 << 30  # `Plane.units` of a field that each row has once


@dataclass(frozen=True)
class Plane:
    """One field of every unit: ``nbytes`` bytes for each ``units`` units of a row, or, where all rows share
    one, of the only row that there is."""

    name: str
    nbytes: int
    units: int = 1
    shared: bool = False

    def rows(self, rows: int) -> int:
        """Rows of it that a weight of so many rows has."""
        return 1 if self.shared else rows

    def row_bytes(self, units: int) -> int:
        """Bytes of a row of so many units."""
        return -(-units // self.units) * self.nbytes


@dataclass(frozen=True)
class Layout:
    """Where the planes of a (rows, columns) weight lie.

    Args:
        units: units of 32 columns in a row; the last one may be padded.
        starts: first u32 word of each plane.
        nbytes: bytes of the whole buffer, a multiple of 16.
    """

    units: int
    starts: tuple[int, ...]
    nbytes: int

    @property
    def params(self) -> dict[str, int]:
        """The fields of Params by which a kernel finds the planes."""
        starts = (*self.starts, 0, 0, 0)
        return {"units": self.units, "plane_1": starts[1], "plane_2": starts[2], "plane_3": starts[3]}


FORMATS: dict[str, QuantFormat] = {}
"""Every format by name."""
BLOCK_FORMATS: dict[str, BlockFormat] = {}
"""Those of GGUF blocks."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantFormat:
    """A weight format; defining one makes it a dtype and a row of `FORMATS`.

    Args:
        name: lower case, such as ``"int8_rows"``; its WGSL file has the same.
        planes: what a buffer holds, in order; one to four.
        values: numpy: the planes, each uint8 (rows, fields of a row, nbytes), one row of those that are
            shared, to float32 values, 32 for each unit, row after row.
        stored: how checkpoints of other programs store such weights; our own way, a tensor of bytes for each
            plane, comes before.
        bounds: what a plane of a file must hold, by its name: bytes that point into another one.
        wgsl: the text of ``quant/<name>.wgsl``; the package's file if not given.

    Raises:
        FormatError: there is a dtype or format of that name, or the number of planes is another.
    """

    name: str
    planes: tuple[Plane, ...]
    values: Callable[..., np.ndarray]
    stored: tuple[Stored, ...] = ()
    wgsl: str | None = None
    bounds: Mapping[str, Expected] = field(default_factory=dict)

    def __post_init__(self):
        if self.name in NAMES:
            raise FormatError(f"{self.name}: there is such a dtype already. Choose another name.")
        if not 1 <= len(self.planes) <= 4:
            raise FormatError(f"{self.name}: has {len(self.planes)} planes. Give one to four.")
        if self.wgsl is not None:
            add_text(f"wgsl/quant/{self.name}.wgsl", self.wgsl)
        if getattr(self, "block", 0) != 1:  # halves are elements
            object.__setattr__(self, "stored", (_own_way(self), *self.stored))
        # No itemsize: a weight's bytes are those of its layout.
        NAMES[self.name] = DType(self.name, "q", 0, None)
        FORMATS[self.name] = self

    @property
    def dtype(self) -> DType:
        """The dtype of a weight in this format."""
        return NAMES[self.name]

    def units(self, columns: int) -> int:
        """Units of 32 columns in a row."""
        return -(-columns // UNIT)

    def layout(self, rows: int, columns: int) -> Layout:
        """Where the planes lie, for the kernels, the repacking and the numpy twins alike.

        Raises:
            ShapeError: the format has no rows of so many columns.

        Example:
            >>> from pellucid.quant import FORMATS
            >>> FORMATS["q4_1"].layout(2, 64)
            Layout(units=2, starts=(0, 16), nbytes=80)
        """
        units = self.units(columns)
        starts, at = [], 0
        for plane in self.planes:
            starts.append(at // 4)
            at += -(-plane.rows(rows) * plane.row_bytes(units) // 16) * 16
        return Layout(units, tuple(starts), at)


def _own_way(format: QuantFormat) -> Stored:
    """As `pellucid.weights.quantize` and ``save_pretrained`` store weights of a format."""
    name, first = format.name, format.planes[0]

    def shape(shapes: Shapes, settings: Settings) -> tuple[int, int]:
        size = next(iter(shapes.values()))
        if len(size) != 2 or size[1] % first.nbytes:
            raise FormatError(f"{first.name} of shape {size} are not rows of {first.nbytes} bytes each.")
        return size[0], size[1] // first.nbytes * first.units * UNIT

    return Stored(
        methods=("pellucid",),
        tensors={f"{name}_{plane.name}": ("uint8",) for plane in format.planes},
        shape=shape,
        expected={f"{name}_{plane}": wanted for plane, wanted in format.bounds.items()},
        planes=lambda tensors, settings: list(tensors.values()),
        activations=of_saved,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockFormat(QuantFormat):
    """A format of GGUF files, where rows are blocks of a number of columns.

    Args:
        gguf_type: number of the type in a GGUF file.
        block: columns of a block.
        block_bytes: bytes of a block.
        split: numpy: blocks, uint8 (blocks, block_bytes), to the planes.
        repack: the WGSL file that does so for one unit, below ``quant/``.
        starts: where in a block the bytes of each plane begin, if ``quant/repack_ranges`` copies them.
        codebook: the last plane of formats whose others point into one; it is the same in every weight.
    """

    gguf_type: int
    block: int
    block_bytes: int
    split: Callable[[np.ndarray], list[np.ndarray]]
    repack: str
    starts: tuple[int, ...] = ()
    codebook: bytes = b""

    def __post_init__(self):
        super().__post_init__()
        BLOCK_FORMATS[self.name] = self

    def units(self, columns: int) -> int:
        """Units of 32 columns in a row.

        Raises:
            ShapeError: the columns are not whole blocks.
        """
        if columns % self.block:
            raise ShapeError(
                f"{self.name}: a row of {columns} columns is not whole blocks of {self.block}. "
                "Keep such a weight in float32, or pad its columns."
            )
        return super().units(columns)

    @property
    def holes(self) -> dict[str, str]:
        """What ``wgsl/quant/repack.wgsl`` has to know of the bytes of a block."""
        if not self.starts:
            return {}
        spare = [0] * (4 - len(self.starts))
        sizes = [plane.row_bytes(self.block // UNIT) for plane in self.planes[: len(self.starts)]]
        holes = {"STARTS": (*self.starts, *spare), "SIZES": (*sizes, *spare)}
        holes = {name: f"vec4<u32>{numbers}" for name, numbers in holes.items()}
        return holes | {"UNITS": f"{self.block // UNIT}u", "BLOCK_BYTES": f"{self.block_bytes}u"}

    def raw_bytes(self, rows: int, columns: int) -> int:
        """Bytes of the weight in a GGUF file."""
        self.units(columns)
        return rows * (columns // self.block) * self.block_bytes
