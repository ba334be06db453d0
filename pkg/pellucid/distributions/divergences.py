"""Divergences of different families: from the entropy of one, and its mean of the other's logarithm.

``KL(p, q) = -entropy(p) - E_p[log q(x)]``, where the mean asks p for that of x, of
``log(x)`` or of ``exp(-t x)``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi, sqrt
from typing import Any

from ..ops.elementwise.comparison import where
from ..ops.shape.creation import full_like
from ..tensors.tensor import Tensor
from .counts import Bernoulli, Binomial, Poisson
from .extremes import Gumbel, Pareto
from .gamma import Exponential, Gamma
from .kl import register_kl
from .location_scale import Laplace, Normal, Uniform
from .relaxed import ContinuousBernoulli
from .simplex import Beta
from .utils import euler_constant


def _mean_log_of_uniform(low: Tensor, high: Tensor) -> Tensor:
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


# The mean of log(x), by class.
_LOG: dict[type, Callable[[Any], Tensor]] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _mean_log_of_uniform(p.low, p.high),
}
# The mean of exp(-t x).
_EXP: dict[type, Callable[[Any, Tensor], Tensor]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (1 + t / p.rate).pow(-p.concentration),
    Normal: lambda p, t: (0.5 * (p.scale * t).square() - p.loc * t).exp(),
    Uniform: lambda p, t: ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low)),
}


def _log_of(p: Any) -> Tensor:
    return next(mean(p) for kind, mean in _LOG.items() if isinstance(p, kind))


def _exp_of(p: Any, t: Tensor) -> Tensor:
    return next(mean(p, t) for kind, mean in _EXP.items() if isinstance(p, kind))


def _under_gamma(p: Any, q: Any) -> Tensor:
    a = q.concentration
    return a * q.rate.log() - a.lgamma() + (a - 1) * _log_of(p) - q.rate * p.mean


def _under_normal(p: Any, q: Any) -> Tensor:
    spread = p.variance + (p.mean - q.loc).square()
    return -(q.scale.log() + 0.5 * log(2 * pi)) - 0.5 * spread / q.scale.square()


def _under_gumbel(p: Any, q: Any) -> Tensor:
    tail = (q.loc / q.scale).exp() * _exp_of(p, q.scale.reciprocal())
    return (q.loc - p.mean) / q.scale - tail - q.scale.log()


def _under_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    logs = (a - 1) * _log_of(p) + (b - 1) * _mean_log_of_uniform(1 - p.high, 1 - p.low)
    return logs + (a + b).lgamma() - a.lgamma() - b.lgamma()


def _under_laplace(p: Any, q: Any) -> Tensor:
    away = p.loc - q.loc
    z = away / p.scale
    size = sqrt(2 / pi) * p.scale * (-0.5 * z.square()).exp() + away * (sqrt(0.5) * z).erf()
    return -(2 * q.scale).log() - size / q.scale


# The mean under p of the logarithm of the density of q, by q's class.
_UNDER: dict[type, Callable[[Any, Any], Tensor]] = {
    Beta: _under_beta,
    ContinuousBernoulli: lambda p, q: p.mean * q.logits - q._log_normalizer(q.logits),
    Exponential: lambda p, q: q.rate.log() - q.rate * p.mean,
    Gamma: _under_gamma,
    Gumbel: _under_gumbel,
    Laplace: _under_laplace,
    Normal: _under_normal,
    Pareto: lambda p, q: q.alpha.log() + q.alpha.xlogy(q.scale) - (q.alpha + 1) * _log_of(p),
    Poisson: lambda p, q: p.mean * q.rate.log() - q.rate,
    Uniform: lambda p, q: -(q.high - q.low).log(),
}


def _outside(low: Any, high: Any) -> Callable[[Any, Any], Tensor]:
    """Whether p has values outside of an interval; bounds are numbers, or functions of q."""

    def test(p: Any, q: Any) -> Tensor:
        bounds = [b(q) if callable(b) else b for b in (low, high)]
        from_, to = (p.low, p.high) if isinstance(p, Uniform) else (0.0, 1.0)
        return (full_like(q.mean, 0.0) + from_ < bounds[0]) | (full_like(q.mean, 0.0) + to > bounds[1])

    return test


_IN_UNIFORM = _outside(lambda q: q.low, lambda q: q.high)
# Where the divergence is infinite, if not nowhere.
_ROWS: tuple[tuple[type, type, Callable | None], ...] = (
    (Bernoulli, Poisson, None),
    (Beta, ContinuousBernoulli, None),
    (Beta, Exponential, None),
    (Beta, Gamma, None),
    (Beta, Normal, None),
    (Beta, Uniform, _IN_UNIFORM),
    (ContinuousBernoulli, Exponential, None),
    (ContinuousBernoulli, Normal, None),
    (ContinuousBernoulli, Uniform, _IN_UNIFORM),
    (Exponential, Gamma, None),
    (Exponential, Gumbel, None),
    (Exponential, Normal, None),
    (Gamma, Exponential, None),
    (Gamma, Gumbel, None),
    (Gamma, Normal, None),
    (Gumbel, Normal, None),
    (Laplace, Normal, None),
    (Normal, Gumbel, None),
    (Normal, Laplace, None),
    (Pareto, Exponential, lambda p, q: p.alpha <= 1),
    (Pareto, Gamma, lambda p, q: p.alpha <= 1),
    (Pareto, Normal, lambda p, q: p.alpha <= 2),
    (Uniform, Beta, _outside(0.0, 1.0)),
    (Uniform, ContinuousBernoulli, _outside(0.0, 1.0)),
    (Uniform, Exponential, _outside(0.0, inf)),
    (Uniform, Gamma, _outside(0.0, inf)),
    (Uniform, Gumbel, None),
    (Uniform, Normal, None),
    (Uniform, Pareto, _outside(lambda q: q.scale, inf)),
)
# Pairs whose first has values where the second has none.
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _between(under: Callable, infinite: Callable | None) -> Callable[[Any, Any], Tensor]:
    def divergence(p: Any, q: Any) -> Tensor:
        found = -p.entropy() - under(p, q)
        return found if infinite is None else where(infinite(p, q), inf, found)

    return divergence


for _p, _q, _where in _ROWS:
    register_kl(_p, _q)(_between(_UNDER[_q], _where))
for _p, _kinds in _INFINITE.items():
    for _q in _kinds:
        register_kl(_p, _q)(lambda p, q: full_like(p.mean, inf))
