"""Functions of `pellucid.fft`.

Written by `scripts/reference`; do not edit.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence

from ...tensors.dtypes import DType
from ...tensors.formats import layout as _Layout
from ...tensors.formats import memory_format as _MemoryFormat
from ...tensors.tensor import Tensor

__all__: list[str]

def fft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Fourier transform, over one axis."""

def fft2(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Fourier transform, over two axes."""

def fftfreq(
    n: _int,
    d: _float = 1.0,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """The frequencies of `fft`: ``[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (d n)``."""

def fftn(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Fourier transform, over several axes."""

def fftshift(
    input: Tensor, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = ...
) -> Tensor:
    """The zero frequency in the middle of axes (all if ``dim`` is None)."""

def hfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Fourier transform of a signal whose other half is the conjugate, over one axis."""

def hfft2(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Fourier transform of a signal whose other half is the conjugate, over two axes."""

def hfftn(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Fourier transform of a signal whose other half is the conjugate, over several axes."""

def ifft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Inverse of `fft`, over one axis."""

def ifft2(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Inverse of `fft2`, over two axes."""

def ifftn(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Inverse of `fftn`, over several axes."""

def ifftshift(
    input: Tensor, dim: _int | Sequence[_int] | None = None, *, axis: _int | Sequence[_int] | None = ...
) -> Tensor:
    """Inverse of `fftshift`."""

def ihfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Inverse of `hfft`, over one axis."""

def ihfft2(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Inverse of `hfft2`, over two axes."""

def ihfftn(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Inverse of `hfftn`, over several axes."""

def irfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Inverse of `rfft`, over one axis."""

def irfft2(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Inverse of `rfft2`, over two axes."""

def irfftn(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Inverse of `rfftn`, over several axes."""

def rfft(
    input: Tensor,
    n: _int | None = None,
    dim: _int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: _int = ...,
) -> Tensor:
    """Fourier transform of a real signal: the half that says all, over one axis."""

def rfft2(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Fourier transform of a real signal: the half that says all, over two axes."""

def rfftfreq(
    n: _int,
    d: _float = 1.0,
    *,
    dtype: DType | None = None,
    device=None,
    requires_grad: _bool = False,
    out: Tensor | None = None,
    layout: _Layout | None = None,
    memory_format: _MemoryFormat | None = None,
    pin_memory: _bool | None = None,
) -> Tensor:
    """The frequencies of `rfft`: ``[0, 1, ..., n // 2] / (d n)``."""

def rfftn(
    input: Tensor,
    s: Sequence[_int] | None = None,
    dim: Sequence[_int] | None = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
    axis: Sequence[_int] | None = ...,
) -> Tensor:
    """Fourier transform of a real signal: the half that says all, over several axes."""
