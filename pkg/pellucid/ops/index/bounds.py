"""What an index may be: integers, and within the axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import DimensionError, DTypeError
from ...op.call import Call
from ...tensors.dtypes import DType


def integers(call: Call, name: str) -> None:
    """Refuse an index that is not an integer tensor."""
    d = call[name].dtype
    if not d.is_integer:
        raise DTypeError(f"'{name}' is {d}; an index must be int64 or int32. Convert it with .long().")


def of(name: str, indices: str = "index") -> Callable:
    """A rule for dtypes: the type of an argument, where another one holds indices."""

    def types(call: Call) -> tuple[DType, DType]:
        integers(call, indices)
        return call[name].dtype, call[name].dtype

    return types


def outside(index: np.ndarray, limit: int, op_name: str, wrap: bool = False) -> None:
    """Raise for the first index outside a table on the cpu device."""
    bad = (index >= limit) | (index < (-limit if wrap else 0))
    if bad.any():
        raise DimensionError(
            f"{op_name}: index {int(index[bad][0])} is out of range for a length of {limit}."
        )
