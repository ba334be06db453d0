"""How products of a few rows with a quantized weight are split among lanes, and whether with integer dot
products: a pure function of shape, format and device."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..device.host import Info
from ..kernel import Source
from .matmul_choice import processors

# The language feature that a device must have, and what `PELLUCID_DOTS` may say.
FEATURE = "packed_4x8_integer_dot_product"
_DOTS = ("integer", "float")
# Formats whose quants are bytes after few operations, and cost more as floats than reading them does.
DOT_FORMATS = frozenset({"q4_0", "q4_1", "q4_k", "q5_0", "q5_1", "q5_k"})
# Without an instruction for them.
_WITHOUT = ("apple",)
# Every workgroup splits x into bytes, which is worth its time for 32 rows of the weight, and more so for 128,
# if that leaves nearly as many workgroups as there are at once, of which a processor holds two.
_DOT_LANES = (8, 16, 32)
_HELD = 1.6
# Workgroup and step by format and lanes, where another than the usual was the fastest on an H200: there
# 16384 x 8192 weights were read at 61 to 62 % of the rate of a copy, and at 57 to 59 % with the usual ones.
_USUAL = (256, 64)
_MEASURED = {("q4_0", 16): (128, 64), ("q4_1", 16): (256, 32), ("q4_k", 16): (256, 32)}

# Rows of x that a kernel of lanes has registers for: eight beside four of the weight took a compiler minutes.
MOST_ROWS = 4
# Invocations of a kernel, and workgroups, that keep a large GPU busy; its processors.
_BUSY = 1 << 16
_WORKGROUPS = 264
_PROCESSORS = 132
# Lanes that share the rows of a weight, at most, by rows of x: x must fit in workgroup memory.
_MOST_LANES = {1: 64, 2: 32, 4: 16}


@dataclass(frozen=True)
class Lanes:
    """The consts of ``wgsl/matmul/quant_lanes.wgsl`` or ``wgsl/matmul/quant_dots.wgsl``.

    Args:
        workgroup: lanes of a workgroup.
        lanes: that share four rows of the weight.
        batch: rows of x.
        step: units of x that lie in workgroup memory.
        dots: whether with integer dot products.
    """

    workgroup: int
    lanes: int
    batch: int
    step: int
    dots: bool = False

    @property
    def rows(self) -> int:
        """Rows of the weight that a workgroup multiplies."""
        return 4 * self.workgroup // self.lanes

    @property
    def nbytes(self) -> int:
        """Workgroup memory, but for a norm's."""
        if self.dots:
            return 2 * (self.step + 4) * (5 * 16 + 4)
        return 16 * self.batch * max(8 * (self.step + 1), self.workgroup)

    def fill(self, source: Source) -> Source:
        """A kernel of lanes with these consts; the files name quant_lanes as the one that multiplies."""
        text = source.text.replace("matmul/quant_lanes", "matmul/quant_dots") if self.dots else source.text
        sizes = {"WORKGROUP": self.workgroup, "LANES": self.lanes, "BATCH": self.batch, "STEP": self.step}
        return Source(source.name, text).fill({name: f"{size}u" for name, size in sizes.items()})


def _is_slow(info: Info) -> bool:
    """Whether integer dot products are no instruction there."""
    return info.is_software or info.vendor.lower() in _WITHOUT


def choose(batch: int, rows: int, units: int, name: str, info: Info) -> Lanes:
    """The lanes for ``batch`` rows of x and weights of format ``name`` with ``rows`` rows of ``units`` units.

    With integer dot products for one row of x and a format of 4 or 5 bits, where the device has them and the
    weight has rows enough, or any number if the variable PELLUCID_DOTS is "integer"; without them if it is
    "float".

    Raises:
        ValueError: the variable says neither.
    """
    chosen = os.environ.get("PELLUCID_DOTS", "")
    if chosen and chosen not in _DOTS:
        raise ValueError(f"PELLUCID_DOTS is {chosen!r}; it must be one of {_DOTS}, or not set.")
    if batch == 1 and name in DOT_FORMATS and FEATURE in info.features and chosen != "float":
        found = [_dot_lanes(n, name, units) for n in _DOT_LANES]
        filling = [lanes for lanes in found if rows >= _HELD * processors(info) * lanes.rows]
        if filling and (chosen or not _is_slow(info)):
            return filling[0]
        if chosen:
            return found[-1]
    return _float_lanes(batch, rows, units)


def _dot_lanes(lanes: int, name: str, units: int) -> Lanes:
    workgroup, step = _MEASURED.get((name, lanes), _USUAL)
    return Lanes(workgroup, lanes, 1, step if units > 32 else 32, dots=True)


def _float_lanes(batch: int, rows: int, units: int) -> Lanes:
    """Few rows of the weight take more lanes each, while workgroup memory holds."""
    held = 1 << max(batch - 1, 0).bit_length()
    wanted = min(-(-4 * _BUSY // max(rows, 1)), units)
    lanes = min(max(1 << (wanted - 1).bit_length(), 8), _MOST_LANES[held])
    # Wide workgroups read x less often; they pay where there are enough of them. Narrow ones spread little
    # work over more processors; they must hold the x of a step.
    wide = held <= 2 and rows * lanes >= _WORKGROUPS * 4 * 256
    narrow = held * lanes <= 32 and rows * lanes < _PROCESSORS * 4 * 128
    return Lanes(256 if wide else 64 if narrow else 128, lanes, held, lanes)
