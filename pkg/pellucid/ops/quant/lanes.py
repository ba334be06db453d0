"""How products of a few rows with a quantized weight are split among lanes, and whether with integer dot
products: a pure function of shape, format and device."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache

from ...device.host import Info
from ...device.profile import profile
from ...op.kernel import KernelSource, load

# The language feature that a device must have, and what `PELLUCID_DOTS` may say.
FEATURE = "packed_4x8_integer_dot_product"
_DOTS = ("integer", "float")
# Every workgroup splits x into bytes, which is worth its time for 32 rows of the weight, and more so for 128:
# what share of its time is left for those, by the lanes that four of them have. A processor holds two
# workgroups; one alone takes this part of the time of two. Of 44 cases that were measured on an H200 all but
# one get the fastest of the three within 4 %.
_DOT_LANES = {8: 1.0, 16: 0.93, 32: 0.8}
_DOT_WORKGROUP = 256
_ALONE = 0.6
# Workgroups of 32 rows for every processor from which on it is worth splitting x at all.
_HELD = 1.6
# Rows of at least so many units, of a weight that does not fill the device, are split, into at most so many
# parts.
_SPLIT_UNITS = 384
_MOST_PARTS = 16
# Units of a step by lanes, and by format, too, where another length was faster. With that, q4_1 is faster
# with 16 lanes than with 8 whatever the rows: more workgroups find room on a processor.
_STEPS = {8: 128, 16: 128, 32: 64}
_MEASURED = {("q4_1", 16): 32, ("q4_k", 16): 32}
_LEAST = {"q4_1": 16}

# Rows of x that a kernel of lanes has registers for: eight beside four of the weight took a compiler minutes.
MOST_ROWS = 4
# Invocations of a kernel that keep a processor busy, and workgroups that it holds at once.
_BUSY = 496
_WORKGROUPS = 2
# Workgroup memory that a norm takes beside the products.
_NORM_BYTES = 2048
# Units of a row from which on 16 lanes read it faster than 8, and 128 invocations than 256.
_LONG = 64
# Formats whose units fill so many registers that 64 invocations with 32 lanes are faster.
_HALVES = frozenset({"f16", "bf16"})
# Lanes that share the rows of a weight, at most, by rows of x: x must fit in workgroup memory.
_MOST_LANES = {1: 64, 2: 32, 4: 16}


@dataclass(frozen=True)
class Lanes:
    """The consts of ``wgsl/matmul/quant/lanes.wgsl`` or ``wgsl/matmul/quant/dots.wgsl``.

    Args:
        workgroup: lanes of a workgroup.
        lanes: that share four rows of the weight.
        batch: rows of x.
        step: units of x that lie in workgroup memory.
        dots: whether with integer dot products.
        parts: of the columns, made by workgroups of their own, as ``wgsl/matmul/quant/split.wgsl`` does.
    """

    workgroup: int
    lanes: int
    batch: int
    step: int
    dots: bool = False
    parts: int = 1

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

    @property
    def file(self) -> str:
        """The kernel of one weight."""
        return "matmul/quant/vector" if self.parts == 1 else "matmul/quant/split"

    def split(self, units: int) -> dict[str, int]:
        """The parameters of the parts of rows of ``units`` units, if there are several."""
        chunk = -(-units // (8 * self.parts)) * 8
        return {} if self.parts == 1 else {"parts": -(-units // chunk), "chunk": chunk}

    def fill(self, source: KernelSource) -> KernelSource:
        """A kernel of lanes with these consts; the files name quant_lanes as the one that multiplies."""
        if self.dots:
            source = source.with_part("matmul/quant/lanes", "matmul/quant/dots")
        sizes = {"WORKGROUP": self.workgroup, "LANES": self.lanes, "BATCH": self.batch, "STEP": self.step}
        return source.fill({name: f"{size}u" for name, size in sizes.items()})


@cache
def has_dots(name: str) -> bool:
    """Whether a format's file says how integer dot products read it: where the quants are bytes after few
    operations, and cost more as floats than reading them does."""
    return "fn quad_bytes(" in load(f"quant/{name}").text


def choose(batch: int, rows: int, units: int, name: str, info: Info, alone: bool = False) -> Lanes:
    """The lanes for ``batch`` rows of x and weights of format ``name`` with ``rows`` rows of ``units`` units.

    With integer dot products for one row of x and a format of 4 to 6 bits, where the device has them and the
    weight has rows enough or long ones, or any if the variable PELLUCID_DOTS is "integer"; without them if it
    is "float". Of one weight ``alone``, for which x is not normalized, columns may be split.

    Raises:
        ValueError: the variable says neither.
    """
    chosen = os.environ.get("PELLUCID_DOTS", "")
    if chosen and chosen not in _DOTS:
        raise ValueError(f"PELLUCID_DOTS is {chosen!r}; it must be one of {_DOTS}, or not set.")
    if batch == 1 and has_dots(name) and FEATURE in info.features and chosen != "float":
        found = [_dot_lanes(n, name, units, info) for n in _DOT_LANES]
        split = _split(found[0], rows, units, info) if alone else None
        worth = split is not None or rows >= _HELD * profile(info).processors * found[-1].rows
        if chosen or (worth and profile(info).has_integer_dots):
            wide = [lanes for lanes in found if lanes.lanes >= _LEAST.get(name, 0)]
            return split or min(wide, key=lambda lanes: _time(lanes, rows, info))
    return _float_lanes(batch, rows, units, name, info)


def _time(lanes: Lanes, rows: int, info: Info) -> float:
    """What products by integers take in proportion, by the workgroups that one processor gets."""
    each = -(-rows // (lanes.rows * profile(info).processors))
    return (each // 2 + each % 2 * _ALONE) * lanes.rows / _DOT_LANES[lanes.lanes]


def _split(lanes: Lanes, rows: int, units: int, info: Info) -> Lanes | None:
    """Lanes for few long rows in parts, as many workgroups as a device holds; None where it does not pay."""
    blocks, held = -(-rows // lanes.rows), _WORKGROUPS * profile(info).processors
    if units < _SPLIT_UNITS or not held <= blocks * _MOST_PARTS or 2 * blocks > held:
        return None
    return replace(lanes, parts=held // blocks)


def _dot_lanes(lanes: int, name: str, units: int, info: Info) -> Lanes:
    step = min(_MEASURED.get((name, lanes), _STEPS[lanes]), max(_power(units), 32))
    found = Lanes(_DOT_WORKGROUP, lanes, 1, step, dots=True)
    room = info.limits.get("maxComputeWorkgroupStorageSize", 16384) - _NORM_BYTES
    return found if found.nbytes <= room else replace(found, step=64)


def _float_lanes(batch: int, rows: int, units: int, name: str, info: Info) -> Lanes:
    """Few rows of the weight take more lanes each, while workgroup memory holds."""
    held, processors = _power(batch), profile(info).processors
    wanted = min(-(-4 * _BUSY * processors // max(rows, 1)), units)
    lanes = min(max(_power(wanted), 16 if units >= _LONG else 8), _MOST_LANES[held])
    # Wide workgroups read x less often, which pays for short rows where there are enough workgroups. Narrow
    # ones spread little work over more processors; they must hold the x of a step.
    wide = held <= 2 and units < _LONG and rows * lanes >= _WORKGROUPS * processors * 4 * 256
    little = rows * lanes < processors * 4 * 128 or (name in _HALVES and lanes == 32)
    narrow = held * lanes <= 32 and little
    return Lanes(256 if wide else 64 if narrow else 128, lanes, held, lanes)


def _power(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()
