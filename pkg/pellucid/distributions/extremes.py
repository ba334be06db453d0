"""Gumbel, Weibull, Pareto, GeneralizedPareto, Kumaraswamy: extremes, from uniform numbers."""

from __future__ import annotations

from math import inf, nan, pi, sqrt
from typing import Any

from ..ops.elementwise.comparison import where
from ..ops.shape.creation import ones_like
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .elementwise_transforms import AffineTransform, ExpTransform, PowerTransform
from .gamma import Exponential
from .location_scale import Uniform
from .transformed import TransformedDistribution
from .utils import broadcast_all, euler_constant, uniform


class Gumbel(TransformedDistribution):
    """Gumbel's distribution: ``cdf(x) = exp(-exp(-(x - loc) / scale))``.

    Args:
        loc: the mode.
        scale: positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        base = Uniform(self.loc * 0, ones_like(self.loc), validate_args=False)
        made = [
            ExpTransform().inv,
            AffineTransform(0, -ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, made, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return pi / sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class Weibull(TransformedDistribution):
    """Weibull's distribution: ``cdf(x) = 1 - exp(-(x / scale)^concentration)``.

    Args:
        scale, concentration: positive.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None
    ):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        made = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(Exponential(ones_like(self.scale), validate_args=False), made, validate_args)

    def _moment(self, k: int) -> Tensor:
        return self.scale**k * (1 + k * self.concentration_reciprocal).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale * (1 - r) ** r

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1


class Pareto(TransformedDistribution):
    """Pareto's distribution: ``p(x) = alpha * scale^alpha / x^(alpha + 1)`` from ``scale`` on.

    Args:
        scale, alpha: positive.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        made = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args=False), made, validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From ``scale`` on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy's distribution: ``cdf(x) = 1 - (1 - x^a)^b``.

    Args:
        concentration1, concentration0: a and b, positive.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(self.concentration0 * 0, ones_like(self.concentration0), validate_args=False)
        made = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, made, validate_args)

    def _moment(self, k: int) -> Tensor:
        b, power = self.concentration0, 1 + k / self.concentration1
        return (power.lgamma() + b.log() + b.lgamma() - (power + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        logs = (-b).log1p() / a - (-a * b).log1p() / a
        return where((a < 1) | (b < 1), nan, logs.exp())

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class GeneralizedPareto(Distribution):
    """What exceeds a threshold: ``p(x) = (1 + c z)^(-1/c - 1) / scale`` with ``z = (x - loc) / scale``;
    exponential where the concentration c is 0.

    Args:
        loc: the threshold.
        scale: positive.
        concentration: c.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """From the threshold on; with a negative concentration up to where the density ends."""
        c = self.concentration
        return constraints.interval(self.loc, where(c < 0, self.loc - self.scale / c, inf))

    def _branches(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and what to divide by."""
        zero = self.concentration.abs() <= 1e-8
        return zero, self.concentration.masked_fill(zero, 1.0)

    @property
    def mean(self) -> Tensor:
        fits = self.concentration < 1
        return where(fits, self.loc + self.scale / (1 - where(fits, self.concentration, 0.5)), nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        fits = self.concentration < 0.5
        c = where(fits, self.concentration, 0.25)
        return where(fits, self.scale.square() / ((1 - c).square() * (1 - 2 * c)), nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of larger values."""
        self._check(value)
        z, (zero, c) = (value - self.loc) / self.scale, self._branches()
        return where(zero, -z, -(c * z).log1p() / c)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z, (zero, c) = (value - self.loc) / self.scale, self._branches()
        power = 1 / c + 1
        return -self.scale.log() - where(zero, z, where(power == 0, power, power * (c * z).log1p()))

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return -self.log_survival_function(value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        logs, (zero, c) = (-value).log1p(), self._branches()
        return self.loc + self.scale * where(zero, -logs, (-c * logs).expm1() / c)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
