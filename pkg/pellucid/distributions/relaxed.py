"""Between 0 and 1: ContinuousBernoulli, and smooth forms of discrete draws, RelaxedBernoulli and others."""

from __future__ import annotations

from typing import Any

from ..ops.elementwise.activations import softplus
from ..ops.elementwise.comparison import where
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .counts import Odds
from .distribution import Distribution, ExponentialFamily
from .elementwise_transforms import ExpTransform, SigmoidTransform
from .transformed import TransformedDistribution
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, uniform

# Where series of the logit are as accurate as the formulas.
_NEAR = 0.8


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers from 0 to 1 with density ``exp(x t - A(t))``, where ``A(t) = log((exp(t) - 1) / t)``.

    Args:
        probs: ``1 / (1 + exp(-t))``, kept between 0 and 1, or
        logits: t.
        lims: accepted for PyTorch's sake, which uses series between these probabilities.

    Raises:
        RangeError: both are given, or neither.

    Source: Loaiza-Ganem and Cunningham 2019, "The continuous Bernoulli: fixing a pervasive error in
        variational autoencoders"
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        (given,) = self._hold(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)
        if probs is not None:
            vars(self)["probs"] = clamp_probs(given)

    @lazy_property
    def probs(self) -> Any:
        """The parameter as a probability."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _either(self, near: Any, far: Any) -> Tensor:
        """A function of the logit: of small ones, and of others."""
        t = self.logits
        small = t.abs() < _NEAR
        return where(small, near(where(small, t, 0.0)), far(where(small, 1.0, t)))

    @property
    def mean(self) -> Tensor:
        return self._either(
            lambda t: 0.5 + t / 12 - t**3 / 720 + t**5 / 30240, lambda t: -1 / (-t).expm1() - 1 / t
        )

    @property
    def variance(self) -> Tensor:
        return self._either(
            lambda t: 1 / 12 - t**2 / 240 + t**4 / 6048 - t**6 / 172800,
            lambda t: 1 / t.square() - 0.25 / (0.5 * t).sinh().square(),
        )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return value * self.logits - self._log_normalizer(self.logits)

    def _falling(self, value: Tensor, function: Any) -> Tensor:
        """A function of the value and of a negative logit, for both signs."""
        t = self.logits
        up, tiny = t > 0, t.abs() < 1e-6
        found = function(where(up, 1 - value, value), where(tiny, -1.0, -t.abs()))
        return where(tiny, value, where(up, 1 - found, found))

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._falling(value, lambda x, t: (t * x).expm1() / t.expm1()).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self._falling(value, lambda u, t: (u * t.expm1()).log1p() / t)

    def entropy(self) -> Tensor:
        return self._log_normalizer(self.logits) - self.mean * self.logits

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        small = x.abs() < _NEAR
        t = where(small, x, 0.0)
        far = where(small, 1.0, x).abs()
        near = t / 2 + t**2 / 24 - t**4 / 2880 + t**6 / 181440
        return where(small, near, x.clamp(min=0) + (-(-far).expm1()).log() - far.log())


class LogitRelaxedBernoulli(Odds, Distribution):
    """The logit of a `RelaxedBernoulli` number: ``(logits + logistic noise) / temperature``.

    Args:
        temperature: positive.
        probs, logits, validate_args: as `Bernoulli` has them.

    Source: Maddison et al. 2017, "The concrete distribution"
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _shared = ("temperature",)

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        (given,) = self._hold(probs, logits)
        self.temperature = _number(temperature, given)
        super().__init__(given.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        p, u = clamp_probs(self.probs.expand(shape)), clamp_probs(uniform(shape, self.probs))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        away = self.logits - value * self.temperature
        return self.temperature.log() + away - 2 * softplus(away)


def _number(temperature: Tensor | float, like: Tensor) -> Tensor:
    return temperature if isinstance(temperature, Tensor) else like.new_tensor(temperature)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 near these, the nearer the lower the temperature; samples have gradients.

    Args:
        temperature: positive.
        probs, logits, validate_args: as `Bernoulli` has them.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a `RelaxedOneHotCategorical` vector.

    Args:
        temperature: positive.
        probs, logits, validate_args: as `Categorical` has them.

    Source: Maddison et al. 2017, "The concrete distribution"
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # The logarithms of shares.
    support = constraints.real_vector
    has_rsample = True
    _shared = ("temperature",)

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        self._categorical = Categorical(probs, logits)
        self.temperature = _number(temperature, self._categorical.logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        return ((self.logits - (-u.log()).log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, t = self._event_shape[0], self.temperature
        logits, value = broadcast_all(self.logits, value)
        size = t.new_tensor(float(n)).lgamma() + (n - 1) * t.log()
        return (logits - value * t).log_softmax(-1).sum(-1) + size


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares of 1 near a vector of `OneHotCategorical`, the nearer the lower the temperature; samples have
    gradients.

    Args:
        temperature: positive.
        probs, logits, validate_args: as `Categorical` has them.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
