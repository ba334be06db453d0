"""Functions of `pellucid.signal.windows`.

Written by `scripts/reference`; do not edit.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence
from typing import Any

from ....tensors.dtypes import DType
from ....tensors.formats import layout as _Layout
from ....tensors.formats import memory_format as _MemoryFormat
from ....tensors.tensor import Tensor

__all__: list[str]

def bartlett(
    M: _int,
    *,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """A triangle: ``1 - |2 k / span - 1|``."""

def blackman(
    M: _int,
    *,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Blackman's window, of two cosines."""

def cosine(
    M: _int,
    *,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Half a period of a sine."""

def exponential(
    M: _int,
    *,
    center: _float | None = None,
    tau: _float = 1.0,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """``exp(-|k - center| / tau)``."""

def gaussian(
    M: _int,
    *,
    std: _float = 1.0,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """``exp(-(k - span / 2)^2 / (2 std^2))``."""

def general_cosine(
    M: _int,
    *,
    a: Sequence[_float],
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """``sum_i (-1)^i a[i] cos(2 pi i k / span)``."""

def general_hamming(
    M: _int,
    *,
    alpha: _float = 0.54,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """``alpha - (1 - alpha) cos(2 pi k / span)``."""

def hamming(
    M: _int,
    *,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Hamming's window, of one cosine."""

def hann(
    M: _int,
    *,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Hann's window: ``sin(pi k / span)^2``."""

def kaiser(
    M: _int,
    *,
    beta: _float = 12.0,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """``i0(beta sqrt(1 - (2 k / span - 1)^2)) / i0(beta)``."""

def nuttall(
    M: _int,
    *,
    sym: _bool = True,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: _bool = False,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """Nuttall's window, of three cosines."""
