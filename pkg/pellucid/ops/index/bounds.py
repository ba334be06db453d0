"""What an index may be: integers, and within the axis."""

from __future__ import annotations

import numpy as np

from ...errors import DimensionError, DTypeError
from ...op.call import Call


def integers(call: Call, name: str) -> None:
    """Refuse an index that is not an integer tensor."""
    d = call[name].dtype
    if not d.is_integer:
        raise DTypeError(f"'{name}' is {d}; an index must be int64 or int32. Convert it with .long().")


def outside(index: np.ndarray, limit: int, op_name: str, wrap: bool = False) -> None:
    """Raise for the first index outside a table on the cpu device."""
    bad = (index >= limit) | (index < (-limit if wrap else 0))
    if bad.any():
        raise DimensionError(
            f"{op_name}: index {int(index[bad][0])} is out of range for a length of {limit}."
        )
