"""The table of weight formats: how the blocks of a GGUF file are laid out as planes in one buffer.

Blocks of 18, 22, 34 or 210 bytes start anywhere; a kernel wants 16-byte words in a row. So a weight of
logical shape (rows, columns) is repacked into planes, each the same field of every unit of 32 columns, row
after row, each beginning at a multiple of 16 bytes. Which bits a plane holds is written at the head of
``wgsl/quant/<format>.wgsl``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ShapeError
from ..tensors.dtypes import NAMES, DType

UNIT = 32  # columns of a unit, in every format


@dataclass(frozen=True)
class Plane:
    """One field of every unit: ``nbytes`` bytes for each ``units`` units."""

    name: str
    nbytes: int
    units: int = 1


@dataclass(frozen=True)
class Layout:
    """Where the planes of a (rows, columns) weight lie.

    Args:
        units: units of 32 columns in a row; the last one may be padded (F16 and BF16 only).
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


@dataclass(frozen=True)
class QuantFormat:
    """A weight format, named as its WGSL file.

    Args:
        name: lower case, such as ``"q4_k"``.
        gguf_type: number of the type in a GGUF file.
        block: columns of a GGUF block.
        block_bytes: bytes of a GGUF block.
        planes: what a buffer holds, in order.
    """

    name: str
    gguf_type: int
    block: int
    block_bytes: int
    planes: tuple[Plane, ...]

    @property
    def dtype(self) -> DType:
        """The dtype of a weight in this format."""
        return NAMES[self.name]

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
        return -(-columns // UNIT)

    def raw_bytes(self, rows: int, columns: int) -> int:
        """Bytes of the weight in a GGUF file."""
        self.units(columns)
        return rows * (columns // self.block) * self.block_bytes

    def layout(self, rows: int, columns: int) -> Layout:
        """Where the planes lie, for the kernels, the repacking and the numpy twins alike.

        Example:
            >>> FORMATS["q4_1"].layout(2, 64)
            Layout(units=2, starts=(0, 16), nbytes=80)
        """
        units = self.units(columns)
        starts, at = [], 0
        for plane in self.planes:
            starts.append(at // 4)
            groups = -(-rows * units // plane.units)
            at += -(-groups * plane.nbytes // 16) * 16
        return Layout(units, tuple(starts), at)


FORMATS: dict[str, QuantFormat] = {
    f.name: f
    for f in (
        QuantFormat("f16", 1, 1, 2, (Plane("values", 64),)),
        QuantFormat("bf16", 30, 1, 2, (Plane("values", 64),)),
        QuantFormat("q4_0", 2, 32, 18, (Plane("quants", 16), Plane("scales", 2))),
        QuantFormat("q4_1", 3, 32, 20, (Plane("quants", 16), Plane("scales", 4))),
        QuantFormat("q5_0", 6, 32, 22, (Plane("quants", 16), Plane("scales", 2), Plane("fifths", 4))),
        QuantFormat("q5_1", 7, 32, 24, (Plane("quants", 16), Plane("scales", 4), Plane("fifths", 4))),
        QuantFormat("q8_0", 8, 32, 34, (Plane("quants", 32), Plane("scales", 2))),
        QuantFormat("q4_k", 12, 256, 144, (Plane("quants", 16), Plane("headers", 16, 8))),
        QuantFormat("q5_k", 13, 256, 176, (Plane("quants", 16), Plane("headers", 16, 8), Plane("fifths", 4))),
        QuantFormat(
            "q6_k",
            14,
            256,
            210,
            (Plane("quants", 16), Plane("tops", 8), Plane("scales", 2), Plane("supers", 2, 8)),
        ),
    )
}
"""Every format by name."""

# No itemsize: a weight's bytes are those of its layout.
NAMES.update({name: DType(name, "q", 0, None) for name in FORMATS})
