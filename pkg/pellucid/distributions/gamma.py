"""Gamma and what is made of it: Chi2, Exponential, InverseGamma, FisherSnedecor, StudentT."""

from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any

from ..ops.elementwise.comparison import where
from ..ops.elementwise.gamma import igamma
from ..ops.random.rejection import drawn, log_gamma_block
from ..tensors.limits import finfo
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .transformed import TransformedDistribution
from .transforms import PowerTransform
from .utils import broadcast_all, standard_normal, uniform


def log_gamma_variates(concentration: Tensor, shape: Any) -> Tensor:
    """Logarithms of gamma variates of scale 1, which do not underflow; their gradients are implicit."""
    return drawn("rsample", log_gamma_block, concentration.expand(tuple(shape)))


class Gamma(ExponentialFamily):
    """The gamma distribution: ``p(x) = rate^a x^(a - 1) exp(-rate x) / gamma(a)`` with shape a.

    Args:
        concentration: a, positive.
        rate: positive.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None
    ):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        logs = log_gamma_variates(self.concentration, self._extended_shape(sample_shape))
        value = logs.exp().to(self.rate.dtype) / self.rate
        tiny = finfo(value.dtype).tiny
        return value + (value.detach().clamp(min=tiny) - value.detach())

    def log_prob(self, value: Tensor) -> Tensor:
        value = like(value, self.rate)
        self._check(value)
        a = self.concentration
        return a.xlogy(self.rate) + (a - 1).xlogy(value) - self.rate * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return igamma(*broadcast_all(self.concentration, self.rate * value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() - (x + 1) * (-y).log()


def like(value: Any, parameter: Tensor) -> Tensor:
    """A value as a tensor."""
    return value if isinstance(value, Tensor) else parameter.new_tensor(value)


class Chi2(Gamma):
    """The sum of squares of ``df`` standard normal numbers: ``Gamma(df / 2, 0.5)``.

    Args:
        df: degrees of freedom, positive.
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2


class Exponential(ExponentialFamily):
    """The exponential distribution: ``p(x) = rate * exp(-rate x)``.

    Args:
        rate: positive.
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def stddev(self) -> Tensor:
        return self.mean

    @property
    def mode(self) -> Tensor:
        return self.rate * 0

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return -uniform(self._extended_shape(sample_shape), self.rate).log() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -(-x).log()


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma variate.

    Args:
        concentration, rate: of the gamma distribution, positive.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None
    ):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-1.0), validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """That of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """That of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class FisherSnedecor(Distribution):
    """The ratio of two chi-square variates, each divided by its degrees of freedom.

    Args:
        df1, df2: degrees of freedom, positive.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = (Gamma(df * 0.5, df) for df in (self.df1, self.df2))
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), nan)

    @property
    def mode(self) -> Tensor:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return where(b > 4, 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4)), nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        upper, lower = (log_gamma_variates(df * 0.5, shape) for df in (self.df1, self.df2))
        return (upper - lower).exp().to(self.df1.dtype) * self.df2 / self.df1

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        known = (a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log()
        return known + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()


class StudentT(Distribution):
    """Student's distribution: of ``loc + scale * z / sqrt(c / df)`` with a normal z and a chi-square c.

    Args:
        df: degrees of freedom, positive.
        loc: the median.
        scale: positive.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return where(self.df > 1, self.loc, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, inf, nan).to(finite.dtype))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        half = self.df * 0.5
        logs = log_gamma_variates(half, shape).to(half.dtype) - half.log()
        return self.loc + self.scale * standard_normal(shape, self.loc) * (-0.5 * logs).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z, df = (value - self.loc) / self.scale, self.df
        size = self.scale.log() + 0.5 * (df.log() + log(pi)) + (0.5 * df).lgamma()
        return (0.5 * (df + 1)).lgamma() - size - 0.5 * (df + 1) * (z.square() / df).log1p()

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        size = half.lgamma() + 0.5 * log(pi) - more.lgamma() + 0.5 * self.df.log()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + size
