"""What mathematics and statistics know by name.

Written by `scripts/reference`; do not edit.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence

from ..tensors.dtypes import DType
from ..tensors.tensor import Tensor

__all__: list[str]

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Error function: ``2 / sqrt(pi) * integral of exp(-t^2) from 0 to input``."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(input)``, accurate for large values."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``2 ** input``."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-input))``."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``e ** input - 1``, accurate near zero."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + input)``, accurate near zero."""

def log_softmax(input: Tensor, dim: _int, dtype: DType | None = None) -> Tensor:
    """``out_i = x_i - log(sum_j exp(x_j))`` along an axis, without overflow."""

def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(input / (1 - input))``."""

def logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False) -> Tensor:
    """``log(sum(exp(input), dim))`` without overflow."""

def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """Rounded to the nearest integer, halves to even."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi * input) / (pi * input)``, 1 at 0."""

def softmax(input: Tensor, dim: _int, dtype: DType | None = None) -> Tensor:
    """``out_i = exp(x_i) / sum_j exp(x_j)`` along an axis; a row of only -inf gives NaN."""

def xlogy(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input * log(other)``, 0 where ``input`` is 0."""
