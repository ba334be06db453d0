"""Which variant of a kernel suits the device.

Most kernels come in one form. Where a workgroup shares data, there are two: "shared", with workgroup memory
and barriers, for GPUs; and "direct", without, for adapters that run on the CPU: there a barrier switches
between all invocations of a workgroup, and costs more than reading the data again. Where a GPU has subgroups,
the shared kernels of rows combine the values of their lanes with them: "subgroups".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ...device.stream import stream
from .source import KernelSource, load
from .subgroups import are_sound

VARIANTS = ("direct", "shared", "subgroups")
# Elements of a row that the registers of 256 lanes hold, 16 each.
_HELD = 4096
# Lanes for a row, and the longest row that they take: of many rows, and of few, which may have more.
_LANES = {4: 16, 16: 256, 64: 1024, 128: 2048}
_LANES_OF_FEW = {4: 16, 16: 64, 64: 256, 128: 512}
# Columns from which a row is worth several workgroups, while there are few rows.
LONG = 8192
# Rows that do not fill a GPU.
_FEW = 256
# How the lanes of a row combine their values where they are not a whole workgroup.
_IN_PART_OF_A_WORKGROUP = {
    "across_sum": "row_sum(lane, value)",
    "across_max": "row_max(lane, value)",
    "across_fold": "row_fold(lane, value)",
}
_BY_SUBGROUPS = {
    "across_sum": "subgroup_sum(lane, value)",
    "across_max": "subgroup_max(lane, value)",
}


def _chosen() -> str:
    """What the variable PELLUCID_KERNELS says; empty where it says nothing.

    Raises:
        ValueError: the variable names no variant.
    """
    chosen = os.environ.get("PELLUCID_KERNELS", "")
    if chosen and chosen not in VARIANTS:
        raise ValueError(f"PELLUCID_KERNELS is {chosen!r}; it must be one of {VARIANTS}, or not set.")
    return chosen


def is_direct() -> bool:
    """Whether ops take their direct kernels: on software adapters, or as the variable PELLUCID_KERNELS says.

    Asked when an op is planned; plans that exist stay.

    Raises:
        ValueError: the variable names no variant.
    """
    chosen = _chosen()
    return chosen == "direct" if chosen else stream().open().info.is_software


def uses_subgroups() -> bool:
    """Whether kernels of rows use subgroups: on GPUs that have them and pass the test of subgroups.py, unless
    the variable PELLUCID_KERNELS says otherwise.

    Raises:
        ValueError: the variable names no variant.
    """
    return not is_direct() and _chosen() != "shared" and are_sound()


@dataclass(frozen=True)
class Rows:
    """How lanes are dealt out to rows of one length.

    Args:
        lanes: that share a row.
        workgroup: lanes of a workgroup; more than ``lanes`` where it holds several rows.
        quads: variables of four elements in which a lane holds its share of a row; 0 where it reads the row
            again instead.
    """

    lanes: int
    workgroup: int
    quads: int

    def grid(self, rows: int) -> int:
        """Workgroups for so many rows."""
        return -(-rows // (self.workgroup // self.lanes))

    def fill(self, file: str, holes: Mapping[str, str]) -> KernelSource:
        """A kernel of rows for these lanes: its holes filled, and its functions ``across_...``, which combine
        the values of a row's lanes, as they do it."""
        source = load(file)
        own = {"WORKGROUP": f"{self.workgroup}u", "LANES": f"{self.lanes}u", "QUADS": f"{self.quads}u"}
        if self.lanes < self.workgroup:
            own |= _IN_PART_OF_A_WORKGROUP
        elif self.lanes >= 64 and uses_subgroups():
            own |= _BY_SUBGROUPS
        declared = {n: v for n, v in own.items() if source.declares(n)}
        return source.fill({**declared, **holes})


def rows_of(length: int, rows: int = _FEW, several: bool = True) -> Rows:
    """How lanes are dealt out to rows of ``length`` elements.

    On a GPU up to 256 lanes: the fewest that hold the row with 16 elements each, or with 4 each where there
    are few rows; a workgroup has 64 at least. On a software adapter four, which run as one vector, so that
    nothing switches at a barrier; longer rows take many there too, for short sums.

    Args:
        length: elements of a row.
        rows: how many there are.
        several: whether a workgroup may hold more than one row.
    """
    if is_direct():
        lanes = 4 if length <= _HELD else 256
        return Rows(lanes, lanes, 0)
    table = _LANES_OF_FEW if rows < _FEW else _LANES
    lanes = next((n for n, most in table.items() if length <= most and (several or n >= 64)), 256)
    return Rows(lanes, max(lanes, 64), -(-length // (4 * lanes)) if length <= _HELD else 0)
