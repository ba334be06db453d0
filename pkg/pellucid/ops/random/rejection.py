"""Random numbers by rejection: gamma, Poisson, binomial, von Mises, and the gamma's derivative by its shape.

References compute in float64, with the words that kernels draw; `wgsl/parts/variates.wgsl` names the
methods.
"""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.batching import Batched, check_drawing, drawn_by_each, enclose
from ...autograd.composed import composed
from ...autograd.formulas import refused, zeros
from ...errors import ArgumentError, DTypeError
from ...op.declaration import elementwise, function, op
from ...op.families import formed
from ...op.rules import broadcast, float_only
from ...tensors.tensor import Tensor
from ..elementwise.gamma import digamma
from ..shape.creation import zeros as new_zeros
from ..shape.views import broadcast_tensors
from .distributions import STATE, WORDS
from .generator import Generator, blocks, chosen

_digamma: Callable = digamma.op.reference


def _share(words: np.ndarray) -> np.ndarray:
    return ((words >> 9) + 0.5) * 2.0**-23


def _tried(turns: int, state: tuple, found: np.ndarray, attempt: Callable) -> np.ndarray:
    """Values that are drawn again until they are taken, in so many turns at most. Where nothing is taken,
    ``found`` stays, and where it is NaN nothing is drawn. Of the places that are left and (4, places) words
    ``attempt`` says which values are taken, and all."""
    left = np.flatnonzero(~np.isnan(found))
    for turn in range(turns):
        if not left.size:
            break
        words = blocks(left.astype(np.uint64), turn, *state).T
        taken, values = attempt(left, words)
        found[left[taken]] = values[taken]
        left = left[~taken]
    return found


def _rest(m):
    """log(1 + m) - m"""
    s = m / (2 + m)
    z = s * s
    near = s * (2 * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z / 11)))) - m)
    return np.where(np.abs(m) > 0.2, np.log1p(m) - m, near)


def _stirling(k):
    z = 1 / (k * k)
    return (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z / 1680))) / k


def _deviance(x, mean):
    return x * _rest((mean - x) / x)


def _log_binomial(k, n, p):
    inner = _stirling(n) - _stirling(k) - _stirling(n - k) + 0.5 * np.log(n / (2 * np.pi * k * (n - k)))
    inner = inner + _deviance(k, n * p) + _deviance(n - k, n - n * p)
    return np.where(k == 0, n * np.log1p(-p), np.where(k == n, n * np.log(p), inner))


def _quietly(reference: Callable) -> Callable:
    """A reference of flat float64 arrays, for arrays of any shape and type."""

    def call(*values: Any) -> np.ndarray:
        *arrays, low, high, first, second = values
        kind = np.result_type(*arrays)
        wide = np.broadcast_arrays(*[np.asarray(a, np.float64) for a in arrays])
        state = (int(low), int(high), int(first), int(second))
        with np.errstate(all="ignore"):
            found = reference(*[a.ravel() for a in wide], state)
        return found.reshape(wide[0].shape).astype(kind)

    return call


@_quietly
def _log_gamma(a, state):
    d = np.where(a < 1, a + 1, a) - 1 / 3
    known = (a > 0) & (a < np.inf)

    def attempt(left, words):
        each, shape = d[left], a[left]
        n = np.sqrt(-2 * np.log(_share(words[0]))) * np.cos(2 * np.pi * _share(words[1]))
        m = n / (3 * np.sqrt(each))
        rest = each * (3 * _rest(m) - m * m * (3 + m))
        taken = (m > -1) & (np.log(_share(words[2])) < 0.5 * n * n + rest)
        small = np.where(shape < 1, np.log(_share(words[3])) / shape, 0)
        return taken, np.log(each) + 3 * np.log1p(m) + small

    found = _tried(24, state, np.where(known, np.log(d), np.nan), attempt)
    return np.where(a == 0, -np.inf, np.where(a == np.inf, np.inf, found))


@_quietly
def _poisson(rate, state):
    known = (rate >= 0) & (rate < np.inf)
    low = known & (rate < 10)
    found = np.where(known & ~low, np.floor(rate), np.nan)
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b

    def attempt(left, words):
        r, wide, tall = rate[left], b[left], a[left]
        u, v = _share(words[0]) - 0.5, _share(words[1])
        beside = 0.5 - np.abs(u)
        k = np.floor((2 * tall / beside + wide) * u + r + 0.43)
        height = np.log(v) + np.log(1.1239 + 1.1328 / (wide - 3.4)) - np.log(tall / (beside * beside) + wide)
        inside = (beside >= 0.07) & (v <= 0.9277 - 3.6224 / (wide - 2))
        outside = (k < 0) | ((beside < 0.013) & (v > beside))
        most = np.where(k == 0, -r, _deviance(k, r) - 0.5 * np.log(2 * np.pi * k) - _stirling(k))
        return inside | (~outside & (height <= most)), k

    found = _tried(48, state, found, attempt)
    return np.where(low, _counted(low, state, np.exp(-rate), lambda p, k: p * rate / (k + 1), np.inf), found)


def _counted(where, state, p, after, most):
    """Counts by the inverse of their distribution, from the probability of 0 on."""
    left = np.full(p.shape, np.inf)
    places = np.flatnonzero(where)
    left[places] = _share(blocks(places.astype(np.uint64), 0, *state)[:, 0])
    k = np.zeros_like(p)
    for _ in range(64):
        goes = where & (left > p) & (k < most)
        left, p, k = np.where(goes, left - p, left), np.where(goes, after(p, k), p), k + goes
    return k


@_quietly
def _binomial(count, chance, state):
    p = np.minimum(chance, 1 - chance)
    plain = (count > 0) & (chance > 0) & (chance < 1)
    low = plain & (count * p < 10)
    deviation = np.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p

    def attempt(left, words):
        n, each, wide, tall = count[left], p[left], b[left], a[left]
        u, v = _share(words[0]) - 0.5, _share(words[1])
        beside = 0.5 - np.abs(u)
        k = np.floor((2 * tall / beside + wide) * u + n * each + 0.5)
        inside = (beside >= 0.07) & (v <= 0.92 - 4.2 / wide)
        scale = np.log((2.83 + 5.1 / wide) * deviation[left])
        height = np.log(v) + scale - np.log(tall / (beside * beside) + wide)
        most = _log_binomial(np.floor((n + 1) * each), n, each)
        return (k >= 0) & (k <= n) & (inside | (height <= _log_binomial(k, n, each) - most)), k

    found = _tried(48, state, np.where(plain & ~low, np.floor(count * p), np.nan), attempt)
    start, odds = np.exp(count * np.log1p(-p)), p / (1 - p)
    small = _counted(low, state, start, lambda each, k: each * (count - k) / (k + 1) * odds, count)
    found = np.where(low, small, found)
    found = np.where(chance > 0.5, count - found, found)
    unknown = np.isnan(count) | np.isnan(chance)
    found = np.where((count <= 0) | (chance <= 0), 0, np.where(chance >= 1, count, found))
    return np.where(unknown, np.nan, found)


@_quietly
def _von_mises(concentration, state):
    c = np.maximum(concentration, 1e-6)
    root = np.sqrt(1 + 4 * c * c)
    from_one = (np.sqrt(2 + 2 * root) - 1 - 1 / (root + 2 * c)) / (2 * c)
    s = np.where(c < 0.05, 1 / c + c - 1, from_one * from_one / (2 - 2 * from_one))

    def attempt(left, words):
        angle = np.pi / 2 * _share(words[0])
        each = s[left]
        below = each * np.sin(angle) ** 2 / (0.5 * each + np.cos(angle) ** 2)
        height = c[left] * (each + below)
        v = _share(words[1])
        taken = (height * (2 - height) > v) | (np.log(height / v) + 1 >= height)
        found = 2 * np.arcsin(np.sqrt(np.minimum(0.5 * below, 1)))
        return taken, np.where(words[2] & 1, -found, found)

    return _tried(48, state, np.where(concentration > 0, 0.0, np.nan), attempt)


def _slope(a, value):
    kind = np.result_type(a, value)
    a, value = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(value, np.float64))
    with np.errstate(all="ignore"):
        m = np.expm1(value - np.log(a))
        r = -_rest(m)
        k = -1 / 3 + m * (1 / 6 - m * (1 / 10 - m * (1 / 15 - m / 21)))
        k = np.where(np.abs(m) > 0.1, (1 - 2 * r * (1 + m) / (m * m)) / m, k)
        far = (1 - np.where(m == 0, 0, r / m) - 0.5 * k / a) / a
        x = np.exp(value)
        term, total, harmonic, derivative = np.ones_like(x), np.ones_like(x), 0.0 * x, 0.0 * x
        for n in range(1, 128):
            term, harmonic = term * x / (a + n), harmonic + 1 / (a + n)
            total, derivative = total + term, derivative + term * harmonic
        near = (total * (_digamma(a + 1) - value) + derivative) / a
        shift, above = value - _digamma(a), 0.0 * x
        for u in np.arange(-2.6, 4.9, 0.2):
            s = np.exp(u - np.exp(-u))
            q = np.log1p(s / x)
            above += np.exp((a - 1) * q - s) * (shift + q) * s * (1 + np.exp(-u))
        found = np.where(a > 200, far, np.where(x <= np.maximum(1, a + 0.5), near, 0.2 * above / x))
    return np.where(a > 0, found, np.nan).astype(kind)


@op(
    public="_standard_gamma",
    dtype=float_only,
    shape=broadcast,
    kernel=elementwise("log_gamma_slope(input, other)", i32=False),
    reference=_slope,
    grad={name: refused("log_gamma_slope", "PyTorch has none either.") for name in ("input", "other")},
)
def log_gamma_slope(input: Tensor, other: Tensor) -> Tensor:
    """The derivative of the logarithm of a gamma variate by its shape ``input``, where the logarithm is
    ``other``: ``-(dP/da) / (x p)`` with the distribution function P and its density p."""


def _of_one(
    input: Tensor, seed_low: float, seed_high: float, offset_low: float, offset_high: float
) -> Tensor: ...
def _of_two(
    input: Tensor, other: Tensor, seed_low: float, seed_high: float, offset_low: float, offset_high: float
) -> Tensor: ...


def _row(
    name: str, call: str, reference: Callable, sentence: str, grad: Any, form: Callable = _of_one
) -> Callable:
    """An op that draws a number for each element of its inputs, from a place in a generator's stream."""
    return op(
        public={"log_gamma_block": "_standard_gamma", "poisson_block": "poisson"}.get(name, "binomial"),
        dtype=float_only,
        shape=broadcast,
        kernel=elementwise(call.replace(")", f", {STATE})"), i32=False, own=WORDS),
        reference=reference,
        grad=grad,
    )(formed(form, name, f"{sentence}, from a place in a generator's stream."))


log_gamma_block = _row(
    "log_gamma_block", "log_gamma_variate(input)", _log_gamma, "Logarithms of gamma variates of a shape",
    {"input": lambda g, input, out: g * log_gamma_slope(input, out)},
)  # fmt: skip
poisson_block = _row("poisson_block", "poisson_variate(input)", _poisson, "Poisson variates of a rate", None)
binomial_block = _row(
    "binomial_block", "binomial_variate(input, other)", _binomial,
    "Binomial variates of a count and a probability", None, _of_two,
)  # fmt: skip
von_mises_block = _row(
    "von_mises_block", "von_mises_variate(input)", _von_mises,
    "Angles around 0 of von Mises's distribution of a concentration", None,
)  # fmt: skip


_NO_BINOMIAL = refused("binomial", "Detach its arguments.")


def drawn(name: str, block: Callable, *inputs: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of one of the ops above, with words of their own; float32 of halves.

    Raises:
        DTypeError: an input is not floating point.
        ArgumentError: `vmap` says that examples share what depends on each.
    """
    check_drawing(each=True)
    for t in inputs:
        if not t.dtype.is_floating_point:
            raise DTypeError(f"{name}: the input is {t.dtype}, not floating point. Convert with .float().")
    like = inputs[0]
    given = [t.float() if t.dtype.itemsize < 4 else t for t in broadcast_tensors(*inputs)]
    if examples := drawn_by_each():
        lengths = [level.size for level in examples]
        given[0] = given[0] + enclose(new_zeros(*lengths, dtype=given[0].dtype, device=like.device), examples)
    elif any(isinstance(t, Batched) for t in given):
        raise ArgumentError(f"{name}: examples differ in what is drawn. Give vmap randomness='different'.")
    count = given[0].numel()
    for level in examples:
        count *= level.size
    return block(*given, *chosen(generator).take(4 * count, each=True))


@function(ours="a private name of PyTorch's")
def _standard_gamma(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma variates of these shapes and scale 1, with the derivative by the shape.

    Args:
        self: floating point, not negative; NaN gives NaN.

    Raises:
        DTypeError: another dtype.

    Source: Figurnov et al. 2018, "Implicit reparameterization gradients"
    """
    return drawn("_standard_gamma", log_gamma_block, self, generator=generator).exp().to(self.dtype)


@function()
@composed(input=zeros)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson variates of these rates; NaN where a rate is negative, infinite or NaN, of which PyTorch
    raises an error.

    Args:
        input: floating point.

    Raises:
        DTypeError: another dtype.
    """
    return drawn("poisson", poisson_block, input, generator=generator).to(input.dtype)


@function()
@composed(count=_NO_BINOMIAL, prob=_NO_BINOMIAL)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of ``count`` trials succeed, each with probability ``prob``.

    Args:
        count, prob: floating point, of shapes that broadcast.

    Raises:
        DTypeError: another dtype.

    Source: https://pytorch.org/docs/stable/distributions.html#binomial
    """
    return drawn("binomial", binomial_block, count, prob, generator=generator).to(count.dtype)
