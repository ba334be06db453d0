"""Bernoulli, Binomial, Geometric, NegativeBinomial and Poisson: numbers of events."""

from __future__ import annotations

from math import nan
from typing import Any

from ..autograd.grad_mode import unrecorded
from ..errors import RangeError
from ..ops.elementwise.activations import logsigmoid, softplus
from ..ops.elementwise.comparison import where
from ..ops.random.distributions import bernoulli
from ..ops.random.rejection import binomial, poisson
from ..ops.shape.creation import arange
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gamma import log_gamma_variates
from .utils import (
    broadcast_all,
    lazy_property,
    log_chance,
    logits_to_probs,
    only_one,
    probs_to_logits,
    uniform,
)


class Odds:
    """What is given probabilities of events, or the logarithms of their odds, and has both."""

    def _hold(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Keep what is given, and return all in one shape."""
        is_probs = only_one(probs, logits)
        given = broadcast_all(*others, probs if is_probs else logits)
        setattr(self, "probs" if is_probs else "logits", given[-1])
        return given

    @lazy_property
    def logits(self) -> Any:
        """The logarithms of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return (self.probs if "probs" in vars(self) else self.logits).shape


class Bernoulli(Odds, ExponentialFamily):
    """1 with a probability, else 0.

    Args:
        probs: the probability, or
        logits: the logarithm of its odds.

    Raises:
        RangeError: both are given, or neither.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (given,) = self._hold(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        p = self.probs
        return (p >= 0.5).to(p.dtype).masked_fill(p == 0.5, nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with unrecorded():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return log_chance(self.logits, value)

    def entropy(self) -> Tensor:
        return -log_chance(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _numbered(2, self.probs, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return softplus(x)


def _numbered(count: int, like: Tensor, expand: bool) -> Tensor:
    values = arange(count, dtype=like.dtype, device=like.device).view(-1, *[1] * like.dim())
    return values.expand(-1, *like.shape) if expand else values


class Binomial(Odds, Distribution):
    """The number of successes among trials.

    Args:
        total_count: of trials.
        probs: the probability of a success, or
        logits: the logarithm of its odds.

    Raises:
        RangeError: both are given, or neither.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        # The dtype is that of the parameter.
        given = self._hold(probs, logits, total_count)
        self.total_count = given[0].to(given[-1].dtype)
        super().__init__(given[-1].shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """Integers up to `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with unrecorded():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways + value * self.logits - n * softplus(self.logits)

    def _trials(self, what: str) -> int:
        most, least = int(self.total_count.max()), int(self.total_count.min())
        if most != least:
            raise NotImplementedError(f"Binomial: Inhomogeneous total count not supported by `{what}`.")
        return most

    def entropy(self) -> Tensor:
        logs = self.log_prob(_numbered(1 + self._trials("entropy"), self.total_count, False))
        return -(logs.exp() * logs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _numbered(1 + self._trials("enumerate_support"), self.total_count, expand)


class Geometric(Odds, Distribution):
    """The number of failures before the first success.

    Args:
        probs: the probability of a success, above 0, or
        logits: the logarithm of its odds.

    Raises:
        RangeError: both are given, or neither, or a probability is 0.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        (given,) = self._hold(probs, logits)
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            raise RangeError(f"Geometric: probs must be greater than 0, but found {self.probs}")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with unrecorded():
            u = uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        sure = where((self.probs == 1) & (value == 0), 0.0, self.probs)
        return value * (-sure).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return -log_chance(self.logits, self.probs) / self.probs


class NegativeBinomial(Odds, Distribution):
    """The number of successes before ``total_count`` failures.

    Args:
        total_count: of failures, not negative; need not be whole.
        probs: the probability of a success, below 1, or
        logits: the logarithm of its odds.

    Raises:
        RangeError: both are given, or neither.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        given = self._hold(probs, logits, total_count)
        self.total_count = given[0].to(given[-1].dtype)
        super().__init__(given[-1].shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with unrecorded():
            logs = log_gamma_variates(self.total_count, self._extended_shape(sample_shape))
            return poisson((logs + self.logits).exp().to(self.total_count.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        logs = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        return logs + ways.masked_fill(n + value == 0, 0.0)


class Poisson(ExponentialFamily):
    """Poisson's distribution: ``p(k) = rate^k exp(-rate) / k!``.

    Args:
        rate: not negative.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with unrecorded():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()
