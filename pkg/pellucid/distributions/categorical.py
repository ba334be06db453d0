"""Categorical, OneHotCategorical, Multinomial: draws from a table of probabilities; mixtures over one."""

from __future__ import annotations

from math import nan, prod
from typing import Any

from ..autograd.grad_mode import unrecorded
from ..errors import RangeError, ShapeError
from ..ops.elementwise.comparison import where
from ..ops.random.variates import weighted
from ..ops.shape.creation import arange, eye
from ..ops.shape.views import broadcast_tensors
from ..tensors.limits import finfo
from ..tensors.shape import Size, sizes
from ..tensors.tensor import Tensor
from . import constraints
from .counts import Binomial
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, only_one, probs_to_logits


class Categorical(Distribution):
    """Integers below n, each with its probability.

    Args:
        probs: (..., n) weights, not negative, which need not add up to 1, or
        logits: (..., n) logarithms of weights.

    Raises:
        RangeError: both are given, or neither.
        ShapeError: they have no axis.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.distributions import Categorical
        >>> Categorical(torch.tensor([0.25, 0.75], device="cpu")).log_prob(torch.tensor(1, device="cpu"))
        tensor(-0.2877)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        is_probs = only_one(probs, logits)
        given = probs if is_probs else logits
        if given.dim() < 1:
            name = "probs" if is_probs else "logits"
            raise ShapeError(f"Categorical: `{name}` parameter must be at least one-dimensional.")
        if is_probs:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Any:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """Integers below n."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return Size((*self._batch_shape, self._num_events))

    @property
    def mean(self) -> Tensor:
        return self.probs.new_full(self._batch_shape, nan)

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = sizes((sample_shape,))
        with unrecorded():
            rows = self.probs.reshape(-1, self._num_events)
            return weighted(rows, prod(shape)).T.reshape(*shape, *self._batch_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, logs = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, device=self.probs.device).view(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """Vectors with a 1 at the place that `Categorical` draws, else 0.

    Args:
        probs, logits, validate_args: as `Categorical` has them.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._placed(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _placed(self, places: Tensor) -> Tensor:
        count = self._event_shape[0]
        return (places.unsqueeze(-1) == arange(count, device=places.device)).to(self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._placed(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n, axes = self._event_shape[0], len(self._batch_shape)
        values = eye(n, dtype=self.probs.dtype, device=self.probs.device).view(n, *[1] * axes, n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples have the gradient of the probabilities.

    Source: Bengio et al. 2013, "Estimating or propagating gradients through stochastic neurons"
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """How often each of n events comes among ``total_count`` draws.

    Args:
        total_count: the number of draws.
        probs, logits, validate_args: as `Categorical` has them.

    Raises:
        NotImplementedError: total_count is no integer.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial: inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that add up to `total_count`."""
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = sizes((sample_shape,))
        draws = self._categorical.sample((self.total_count, *shape)).movedim(0, -1)
        counts = self.probs.new_zeros(self._extended_shape(shape))
        return counts.scatter_add(-1, draws, counts.new_ones(draws.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_tensors(self.logits, value)
        logits = where((value == 0) & (logits == -float("inf")), 0.0, logits)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        counts = Binomial(self.total_count, self.probs, validate_args=False)
        each = counts.enumerate_support(False)[1:]
        inner = (counts.log_prob(each).exp() * (each + 1).lgamma()).sum((0, -1))
        all_ways = self.probs.new_tensor(self.total_count + 1.0).lgamma()
        return self.total_count * self._categorical.entropy() - all_ways + inner


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family, whose last batch axis are the components.

    Args:
        mixture_distribution: a `Categorical` that chooses the component.
        component_distribution: the components.

    Raises:
        RangeError: they are no such distributions, or do not fit.
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        mixture, components = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical) or not isinstance(components, Distribution):
            raise RangeError(
                "MixtureSameFamily: the mixture distribution needs to be an instance of "
                "distributions.Categorical, the components one of distributions.Distribution"
            )
        shape, count = components.batch_shape[:-1], mixture.param_shape[-1]
        for a, b in zip(reversed(shape), reversed(mixture.batch_shape), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ShapeError(
                    f"MixtureSameFamily: `mixture_distribution.batch_shape` ({mixture.batch_shape}) is not "
                    f"compatible with `component_distribution.batch_shape` ({components.batch_shape})"
                )
        if components.batch_shape[-1:] != (count,):
            raise ShapeError(
                f"MixtureSameFamily: `mixture_distribution` component ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components.batch_shape[-1:]})"
            )
        self._mixture_distribution, self._component_distribution = mixture, components
        self._num_component = count
        super().__init__(shape, components.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Distribution | None = None) -> Distribution:
        new: Any = self._get_checked_instance(type(self), _instance)
        vars(new).update(vars(self))
        shape = Size(sizes((batch_shape,)))
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._component_distribution = self._component_distribution.expand((*shape, self._num_component))
        new._batch_shape = shape
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """What chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _shares(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self._event_shape))

    def _over_components(self, value: Tensor) -> Tensor:
        return value.sum(-1 - len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self._over_components(self._shares() * self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        means = self.component_distribution.mean
        away = (means - self.mean.unsqueeze(-1 - len(self._event_shape))).square()
        return self._over_components(self._shares() * (self.component_distribution.variance + away))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with unrecorded():
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            axes = len(self._event_shape)
            place = chosen.reshape(*chosen.shape, *[1] * (axes + 1))
            axis = values.dim() - axes - 1
            place = place.expand(*values.shape[:axis], 1, *values.shape[axis + 1 :])
            return values.gather(axis, place).squeeze(axis)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logs = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self._event_shape)))
        return (logs + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        shares = self.component_distribution.cdf(value.unsqueeze(-1 - len(self._event_shape)))
        return (shares * self.mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
