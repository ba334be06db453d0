"""kl_divergence, the table of pairs behind it, and the pairs of one family."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf
from typing import Any

from ..autograd.derivatives import grad
from ..errors import ArgumentError, ShapeError
from ..ops.elementwise.activations import softplus
from ..ops.elementwise.comparison import where
from ..ops.linalg.triangular import solve_triangular
from ..ops.shape.grids import broadcast_shapes
from ..tensors.tensor import Tensor
from .categorical import Categorical, OneHotCategorical
from .counts import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, ExponentialFamily, Independent
from .extremes import Gumbel, Pareto
from .gamma import Exponential, Gamma
from .location_scale import Cauchy, Laplace, Normal, Uniform
from .multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    mahalanobis,
)
from .relaxed import ContinuousBernoulli
from .simplex import Beta, Dirichlet
from .transformed import HalfNormal, TransformedDistribution
from .utils import euler_constant, sum_rightmost

_PAIRS: dict[tuple[type, type], Callable] = {}
_FOUND: dict[tuple[type, type], Callable | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """A decorator of a function of two distributions, which computes their divergence.

    Args:
        type_p, type_q: classes; the function is also for their subclasses, unless a pair is nearer.

    Raises:
        ArgumentError: one is no class of distributions.

    Source: https://pytorch.org/docs/stable/distributions.html#torch.distributions.kl.register_kl
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise ArgumentError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def declare(function: Callable) -> Callable:
        _PAIRS[type_p, type_q] = function
        _FOUND.clear()
        return function

    return declare


def _dispatch(p: type, q: type) -> Callable | None:
    """The function of the nearest classes; the first class counts more, where that decides with a warning."""
    known = [(p.__mro__.index(a), q.__mro__.index(b), f) for (a, b), f in _PAIRS.items()
             if issubclass(p, a) and issubclass(q, b)]  # fmt: skip
    if not known:
        return None
    left, right = min(known, key=lambda row: row[:2]), min(known, key=lambda row: row[1::-1])
    if left[2] is not right[2]:
        warnings.warn(
            f"Ambiguous kl_divergence({p.__name__}, {q.__name__}). Please register_kl this pair.",
            RuntimeWarning,
            stacklevel=3,
        )
    return left[2]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Kullback and Leibler's divergence: the mean under p of ``log p(x) - log q(x)``.

    Args:
        p, q: distributions whose batches broadcast.

    Returns:
        A tensor of the batches' shape.

    Raises:
        NotImplementedError: no function is registered for the pair.

    Source: https://pytorch.org/docs/stable/distributions.html#torch.distributions.kl.kl_divergence

    Example:
        >>> from pellucid.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item()
        0.5
    """
    key = type(p), type(q)
    if key not in _FOUND:
        _FOUND[key] = _dispatch(*key)
    function = _FOUND[key]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {key[0].__name__} and q type {key[1].__name__}"
        )
    return function(p, q)


def pairs(*kinds: tuple[type, type]) -> Callable[[Callable], Callable]:
    """A decorator as `register_kl` is, for several pairs."""

    def declare(function: Callable) -> Callable:
        for kind in kinds:
            register_kl(*kind)(function)
        return function

    return declare


@pairs((Normal, Normal))
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@pairs((HalfNormal, HalfNormal))
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@pairs((Laplace, Laplace))
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return away / q.scale + ratio * (-away / p.scale).exp() - ratio.log() - 1


@pairs((Cauchy, Cauchy))
def _cauchy(p: Any, q: Any) -> Tensor:
    """Source: Chyzak and Nielsen 2019, "A closed-form formula for the Kullback-Leibler divergence between
    Cauchy distributions"
    """
    top = ((p.scale + q.scale).square() + (p.loc - q.loc).square()).log()
    return top - (4 * p.scale * q.scale).log()


@pairs((Uniform, Uniform))
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), inf)


@pairs((Gumbel, Gumbel))
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = ((1 + ratio).lgamma() - away).exp()
    return away - ratio.log() + ratio * euler_constant + tail - (1 + euler_constant)


@pairs((Pareto, Pareto))
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.scale < q.scale, inf)


@pairs((Exponential, Exponential))
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@pairs((Gamma, Gamma))
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    size = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return size + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@pairs((Dirichlet, Dirichlet))
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    size = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return size + ((a - b) * (a.digamma() - a.sum(-1, keepdim=True).digamma())).sum(-1)


@pairs((Beta, Beta))
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@pairs((Bernoulli, Bernoulli))
def _bernoulli(p: Any, q: Any) -> Tensor:
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    yes = where(p.probs == 0, 0.0, where(q.probs == 0, inf, yes))
    return yes + where(p.probs == 1, 0.0, where(q.probs == 1, inf, no))


@pairs((Binomial, Binomial))
def _binomial(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, inf, p.total_count * each)


@pairs((Geometric, Geometric))
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@pairs((Poisson, Poisson))
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@pairs((Categorical, Categorical))
def _categorical(p: Any, q: Any) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    return where(p.probs == 0, 0.0, where(q.probs == 0, inf, each)).sum(-1)


@pairs((OneHotCategorical, OneHotCategorical))
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@pairs((ContinuousBernoulli, ContinuousBernoulli))
def _continuous(p: Any, q: Any) -> Tensor:
    sizes = q._log_normalizer(q.logits) - p._log_normalizer(p.logits)
    return p.mean * (p.logits - q.logits) + sizes


@pairs((ExponentialFamily, ExponentialFamily))
def _exponential_family(p: Any, q: Any) -> Tensor:
    """Bregman's divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: {type(p).__name__} and {type(q).__name__} are different exponential families"
        )
    natural = [n.detach().requires_grad_() for n in p._natural_params]
    normalizer = p._log_normalizer(*natural)
    slopes = grad(normalizer.sum(), natural, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for a, b, slope in zip(natural, q._natural_params, slopes, strict=True):
        term = (b - a) * slope
        result = result - sum_rightmost(term, term.dim() - result.dim())
    return result


@pairs((TransformedDistribution, TransformedDistribution))
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the distributions have different transforms or shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@pairs((Independent, Independent))
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: values have different numbers of axes")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _log_det(d: Any) -> Tensor:
    return 2 * half_log_det(d.scale_tril) if isinstance(d, MultivariateNormal) else d.log_det()


def _away(d: Any, value: Tensor) -> Tensor:
    return mahalanobis(d.scale_tril, value) if isinstance(d, MultivariateNormal) else d.mahalanobis(value)


def _solved(factor: Tensor, right: Tensor) -> Tensor:
    """The sum of squares of ``L^-1 right``."""
    shape = broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    return solve_triangular(
        factor.expand(*shape, *factor.shape[-2:]), right.expand(*shape, *right.shape[-2:]), upper=False
    ).square().sum((-2, -1))  # fmt: skip


def _trace(p: Any, q: Any) -> Tensor:
    """The trace of ``q.covariance^-1 p.covariance``."""
    low = isinstance(p, LowRankMultivariateNormal)
    columns = p.cov_factor if low else p.scale_tril
    if isinstance(q, MultivariateNormal):
        found = _solved(q.scale_tril, columns)
        return found + _solved(q.scale_tril, p.cov_diag.sqrt().diag_embed()) if low else found
    scaled = q.cov_factor.mT / q.cov_diag.unsqueeze(-2)
    found = (columns * q.cov_diag.rsqrt().unsqueeze(-1)).square().sum((-2, -1))
    found = found - _solved(q._capacitance_tril, scaled @ columns)
    if not low:
        return found
    own = _solved(q._capacitance_tril, scaled * p.cov_diag.sqrt().unsqueeze(-2))
    return found + (p.cov_diag / q.cov_diag).sum(-1) - own


@pairs(
    (MultivariateNormal, MultivariateNormal),
    (MultivariateNormal, LowRankMultivariateNormal),
    (LowRankMultivariateNormal, MultivariateNormal),
    (LowRankMultivariateNormal, LowRankMultivariateNormal),
)
def _multivariate_normal(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ShapeError(
            f"kl_divergence: vectors have different lengths {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    sizes = _log_det(q) - _log_det(p)
    return 0.5 * (sizes + _trace(p, q) + _away(q, q.loc - p.loc) - p.event_shape[0])
