"""Whole numbers of 16 and 32 bits with a scale for 32 columns or a row.

A weight is ``scale * q``, and with unsigned numbers ``scale * q + offset``. They are as exact as float32 is:
products and rows are of float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..format import ROW, UNIT, Plane, QuantFormat


def _values(kind: str) -> Callable:
    def values(quants: np.ndarray, scales: np.ndarray, *offsets: np.ndarray) -> np.ndarray:
        numbers = quants.view(kind).astype(np.float32)
        made = scales.view(np.float32) * numbers
        return made + offsets[0].view(np.float32) if offsets else made

    return values


def _wgsl(kind: str, bits: int, by_row: bool) -> str:
    is_signed = kind.startswith("int")
    what = f"d * q{'' if is_signed else ' + m'}, q of {kind}"
    return f"""// weight = {what}, floats for {"a row" if by_row else "32 columns"}
//
// uses  quant/wide

const BITS = {bits}u;
const SIGNED = {str(is_signed).lower()};
const BY_ROW = {str(by_row).lower()};
"""


for _bits in (16, 32):
    for _kind in (f"int{_bits}", f"uint{_bits}"):
        _fields = ("scales",) if _kind.startswith("int") else ("scales", "offsets")
        for _by_row in (False, True):
            QuantFormat(
                name=f"{_kind}_{'scaled' if len(_fields) == 1 else 'affine'}{'_rows' if _by_row else ''}",
                planes=(
                    Plane("quants", UNIT * _bits // 8),
                    *(Plane(field, 4, ROW if _by_row else 1) for field in _fields),
                ),
                values=_values(_kind),
                wgsl=_wgsl(_kind, _bits, _by_row),
            )
