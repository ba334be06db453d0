"""Normal, Laplace, Cauchy, Uniform and VonMises: distributions of a place and a width."""

from __future__ import annotations

from math import inf, log, nan, pi, sqrt
from typing import Any

from ..autograd.grad_mode import unrecorded
from ..errors import RangeError
from ..ops.elementwise.bessel import i0e, i1e
from ..ops.elementwise.probability import ndtr, ndtri
from ..ops.random.rejection import drawn, von_mises_block
from ..ops.shape.creation import full_like
from ..tensors.limits import finfo
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .utils import broadcast_all, standard_normal, uniform


class Normal(ExponentialFamily):
    """The normal distribution: ``p(x) = exp(-((x - loc) / scale)^2 / 2) / (scale * sqrt(2 pi))``.

    Args:
        loc: the mean.
        scale: the standard deviation, positive.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.distributions import Normal
        >>> Normal(torch.tensor(0.0, device="cpu"), 1.0).log_prob(torch.tensor(0.0, device="cpu"))
        tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + standard_normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * z.square() - self.scale.log() - 0.5 * log(2 * pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ndtr((value - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * log(2 * pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.square(), -0.5 / self.scale.square()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.square() / y + 0.5 * (-pi / y).log()


class Laplace(Distribution):
    """Laplace's distribution: ``p(x) = exp(-|x - loc| / scale) / (2 scale)``.

    Args:
        loc: the mean.
        scale: positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = uniform(self._extended_shape(sample_shape), self.loc) * 2 - 1
        return self.icdf(u.clamp(min=finfo(u.dtype).eps - 1) / 2 + 0.5)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        z = value - self.loc
        return 0.5 - 0.5 * z.sign() * (-z.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        u = value - 0.5
        return self.loc - self.scale * u.sign() * (-2 * u.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(Distribution):
    """Cauchy's distribution: ``p(x) = 1 / (pi * scale * (1 + ((x - loc) / scale)^2))``. It has no mean.

    Args:
        loc: the median.
        scale: half the width at half the height, positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -log(pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (pi * (value - 0.5)).tan()

    def entropy(self) -> Tensor:
        return log(4 * pi) + self.scale.log()


class Uniform(Distribution):
    """Equal density from ``low`` to before ``high``.

    Args:
        low, high: the bounds.

    Raises:
        RangeError: a lower bound is not below its upper one.
    """

    arg_constraints = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }
    has_rsample = True

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise RangeError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """The interval."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.low))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low <= value) & (value < self.high)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class VonMises(Distribution):
    """Von Mises's distribution of angles: ``p(x) = exp(k cos(x - loc)) / (2 pi I0(k))``.

    Args:
        loc: the mean angle.
        concentration: k, positive.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with unrecorded():
            concentration = self.concentration.expand(self._extended_shape(sample_shape))
            angle = drawn("VonMises", von_mises_block, concentration).to(self.loc.dtype) + self.loc
            return (angle + pi) % (2 * pi) - pi

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - log(2 * pi) - i0e(k).log()
