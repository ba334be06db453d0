"""What element types can hold: finfo and iinfo."""

from __future__ import annotations

import math

import numpy as np

from ..errors import ArgumentError
from .dtypes import DType, bfloat16, get_default_dtype, int64

# Of types that numpy lacks, as PyTorch has them: digits behind the point, the smallest normal number, the
# largest.
_OTHERS = {
    "bfloat16": (7, 2.0**-126, bfloat16.largest),
    "float8_e4m3fn": (3, 2.0**-6, 448.0),
    "float8_e4m3fnuz": (3, 2.0**-7, 240.0),
    "float8_e5m2": (2, 2.0**-14, 57344.0),
    "float8_e5m2fnuz": (3, 2.0**-15, 57344.0),
}


class finfo:
    """Limits of a floating-point type; of a complex one those of its parts.

    Args:
        type: the type, the default one if None.

    Attributes:
        bits: bits of an element.
        eps: the step from 1 to the next number.
        max, min: the largest and the smallest finite number.
        tiny, smallest_normal: the smallest positive number with full precision.
        resolution: ten to the minus number of digits that survive.
        dtype: its name.

    Raises:
        ArgumentError: the type has no such limits.

    Source: https://pytorch.org/docs/stable/type_info.html#torch.torch.finfo

    Example:
        >>> import pellucid as torch
        >>> torch.finfo(torch.float16).max
        65504.0
    """

    def __init__(self, type: DType | None = None):
        type = get_default_dtype() if type is None else type
        if not isinstance(type, DType) or not (type.is_floating_point or type.is_complex):
            raise ArgumentError(f"finfo: takes a floating-point dtype, not {type!r}. Use iinfo for integers.")
        self.bits, self.dtype = 8 * type.itemsize, type.name
        if type.is_complex:
            self.bits //= 2
            self.dtype = f"float{self.bits}"
        if type.name in _OTHERS:
            digits, self.tiny, self.max = _OTHERS[type.name]
            self.min = -self.max
        else:
            parts = np.finfo(type.numpy)  # type: ignore[arg-type]
            digits, self.tiny = parts.nmant, float(parts.smallest_normal)
            self.max, self.min = float(parts.max), float(parts.min)
        self.smallest_normal = self.tiny
        self.eps = 2.0**-digits
        self.resolution = 10.0 ** -math.floor(digits * math.log10(2))

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer type.

    Args:
        type: the type.

    Attributes:
        bits: bits of an element.
        max, min: the largest and the smallest number.
        dtype: its name.

    Raises:
        ArgumentError: the type is none of integers.

    Source: https://pytorch.org/docs/stable/type_info.html#torch.torch.iinfo

    Example:
        >>> import pellucid as torch
        >>> torch.iinfo(torch.int8).max
        127
    """

    def __init__(self, type: DType = int64):
        if not isinstance(type, DType) or not type.is_integer:
            raise ArgumentError(f"iinfo: takes an integer dtype, not {type!r}. Use finfo for floats.")
        assert type.numpy is not None
        ends = np.iinfo(type.numpy)
        self.bits, self.dtype = int(ends.bits), type.name
        self.max, self.min = int(ends.max), int(ends.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
