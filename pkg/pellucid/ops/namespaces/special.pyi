"""Functions of `pellucid.special`.

Written by `scripts/reference`; do not edit.
"""

from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from collections.abc import Sequence

from ...tensors.dtypes import DType
from ...tensors.tensor import Tensor

__all__: list[str]

def airy_ai(input: Tensor = ..., *, out: Tensor | None = None, x: Tensor = ...) -> Tensor:
    """Airy's function Ai."""

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind, of order 0."""

def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the first kind, of order 1."""

def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind, of order 0."""

def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel function of the second kind, of order 1."""

def chebyshev_polynomial_t(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """Chebyshev's polynomial of the first kind and degree n. Of a negative degree it is 0."""

def chebyshev_polynomial_u(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """Chebyshev's polynomial of the second kind and degree n. Of a negative degree it is 0."""

def chebyshev_polynomial_v(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """Chebyshev's polynomial of the third kind and degree n. Of a negative degree it is 0."""

def chebyshev_polynomial_w(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """Chebyshev's polynomial of the fourth kind and degree n. Of a negative degree it is 0."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Derivative of `lgamma`."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``-input * log(input)``, 0 at 0."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Error function: ``2 / sqrt(pi) * integral of exp(-t^2) from 0 to input``."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(input)``, accurate for large values."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(input^2) * erfc(input)``, without underflow."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `erf`."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``2 ** input``."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-input))``."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``e ** input - 1``, accurate near zero."""

def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The lower share of the gamma function of ``input``, up to ``other``."""

def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The upper share of the gamma function of ``input``, from ``other`` on."""

def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the size of the gamma function."""

def hermite_polynomial_h(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """The physicists' Hermite polynomial of degree n. Of a negative degree it is 0."""

def hermite_polynomial_he(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """The probabilists' Hermite polynomial of degree n. Of a negative degree it is 0."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind, of order 0."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|input|)`` times `i0`."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the first kind, of order 1."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|input|)`` times `i1`."""

def laguerre_polynomial_l(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """Laguerre's polynomial of degree n. Of a negative degree it is 0."""

def legendre_polynomial_p(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """Legendre's polynomial of degree n. Of a negative degree it is 0."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + input)``, accurate near zero."""

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of `ndtr`, without underflow."""

def log_softmax(
    input: Tensor, dim: _int = ..., dtype: DType | None = None, *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """``out_i = x_i - log(sum_j exp(x_j))`` along an axis, without overflow."""

def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(input / (1 - input))``."""

def logsumexp(
    input: Tensor,
    dim: _int | Sequence[_int] = ...,
    keepdim: _bool = False,
    *,
    out: Tensor | None = None,
    axis: _int | Sequence[_int] = ...,
    keepdims: _bool = ...,
) -> Tensor:
    """``log(sum(exp(input), dim))`` without overflow."""

def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i0` without a derivative."""

def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i1` without a derivative."""

def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind, of order 0."""

def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Modified Bessel function of the second kind, of order 1."""

def multigammaln(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """Logarithm of the gamma function of p dimensions."""

def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The share of the standard normal distribution below the value."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `ndtr`."""

def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of `digamma` of order n."""

def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Derivative of `lgamma`."""

def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """Rounded to the nearest integer, halves to even."""

def scaled_modified_bessel_k0(input: Tensor = ..., *, out: Tensor | None = None, x: Tensor = ...) -> Tensor:
    """``exp(input)`` times `modified_bessel_k0`."""

def scaled_modified_bessel_k1(input: Tensor = ..., *, out: Tensor | None = None, x: Tensor = ...) -> Tensor:
    """``exp(input)`` times `modified_bessel_k1`."""

def shifted_chebyshev_polynomial_t(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """The shifted Chebyshev polynomial of the first kind and degree n. Of a negative degree it is 0."""

def shifted_chebyshev_polynomial_u(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """The shifted Chebyshev polynomial of the second kind and degree n. Of a negative degree it is 0."""

def shifted_chebyshev_polynomial_v(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """The shifted Chebyshev polynomial of the third kind and degree n. Of a negative degree it is 0."""

def shifted_chebyshev_polynomial_w(
    input: Tensor | _float = ...,
    n: Tensor | _float = ...,
    *,
    out: Tensor | None = None,
    x: Tensor | _float = ...,
) -> Tensor:
    """The shifted Chebyshev polynomial of the fourth kind and degree n. Of a negative degree it is 0."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi * input) / (pi * input)``, 1 at 0."""

def softmax(
    input: Tensor, dim: _int = ..., dtype: DType | None = None, *, out: Tensor | None = None, axis: _int = ...
) -> Tensor:
    """``out_i = exp(x_i) / sum_j exp(x_j)`` along an axis; a row of only -inf gives NaN."""

def spherical_bessel_j0(input: Tensor = ..., *, out: Tensor | None = None, x: Tensor = ...) -> Tensor:
    """Spherical Bessel function of the first kind, of order 0: ``sin(input) / input``."""

def xlog1py(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input * log(1 + other)``, 0 where ``input`` is 0."""

def xlogy(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """``input * log(other)``, 0 where ``input`` is 0."""

def zeta(input: Tensor | _float, other: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's zeta function: the sum of ``(k + other) ** -input`` over all k from 0."""
