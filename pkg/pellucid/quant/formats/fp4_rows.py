"""FP4 (E2M1) with a float32 scale for a row: numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.

Source: Open Compute Project 2023, "OCP Microscaling Formats (MX)", for the numbers
"""

from __future__ import annotations

import numpy as np

from ..format import ROW, UNIT, Plane, QuantFormat
from .low_bits import E2M1, in_order


def _values(quants: np.ndarray, scales: np.ndarray) -> np.ndarray:
    numbers = E2M1[in_order(quants.reshape(-1, UNIT // 2))] / 2
    return scales.view(np.float32) * numbers.reshape(*quants.shape[:2], UNIT)


FP4_ROWS = QuantFormat(
    name="fp4_rows",
    planes=(Plane("quants", UNIT // 2), Plane("scales", 4, ROW)),
    values=_values,
)
