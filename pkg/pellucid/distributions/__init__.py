"""Probability distributions: PyTorch's ``torch.distributions``."""

from ..tensors.absent import refuse_others
from . import constraints, divergences, transforms
from .categorical import (
    Categorical,
    MixtureSameFamily,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from .constraint_registry import biject_to, transform_to
from .counts import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from .distribution import Distribution, ExponentialFamily, Independent
from .extremes import GeneralizedPareto, Gumbel, Kumaraswamy, Pareto, Weibull
from .gamma import Chi2, Exponential, FisherSnedecor, Gamma, InverseGamma, StudentT
from .kl import kl_divergence, register_kl
from .location_scale import Cauchy, Laplace, Normal, Uniform, VonMises
from .multivariate import LowRankMultivariateNormal, MultivariateNormal, Wishart
from .relaxed import (
    ContinuousBernoulli,
    ExpRelaxedCategorical,
    LogitRelaxedBernoulli,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .simplex import Beta, Dirichlet, LKJCholesky
from .transformed import HalfCauchy, HalfNormal, LogisticNormal, LogNormal, TransformedDistribution
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli",
    "Dirichlet", "Distribution", "ExpRelaxedCategorical", "Exponential", "ExponentialFamily",
    "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
    "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal",
    "LogisticNormal", "LogitRelaxedBernoulli", "LowRankMultivariateNormal", "MixtureSameFamily",
    "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull",
    "Wishart", "biject_to", "constraints", "divergences", "kl_divergence", "register_kl",
    "transform_to", "transforms",
    *_transforms,
]  # fmt: skip

refuse_others("torch.distributions", globals())
