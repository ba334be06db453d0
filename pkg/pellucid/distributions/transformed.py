"""TransformedDistribution, and what it makes of normal numbers: LogNormal, HalfNormal, LogisticNormal."""

from __future__ import annotations

from math import inf, log, pi, sqrt
from typing import Any

from ..autograd.grad_mode import unrecorded
from ..errors import RangeError
from ..ops.elementwise.comparison import where
from ..ops.shape.creation import full_like
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, Independent
from .elementwise_transforms import AbsTransform, ExpTransform
from .location_scale import Cauchy, Normal
from .transform import ComposeTransform, Transform
from .utils import sum_rightmost
from .vector_transforms import StickBreakingTransform


class TransformedDistribution(Distribution):
    """Samples of a distribution, changed by transforms.

    Args:
        base_distribution: the distribution.
        transforms: a transform or several, in the order in which they are applied.

    Raises:
        RangeError: they are no transforms, or the distribution has too few axes for them.

    Example:
        >>> import pellucid as torch
        >>> from pellucid.distributions import Normal, TransformedDistribution, transforms
        >>> log_normal = TransformedDistribution(Normal(0.0, 1.0), [transforms.ExpTransform()])
        >>> log_normal.cdf(torch.tensor(1.0)).item()
        0.5
    """

    arg_constraints = {}
    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(
            isinstance(t, Transform) for t in self.transforms
        ):
            raise RangeError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        axes = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        domain, codomain = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < domain:
            raise RangeError(
                f"base_distribution needs to have shape with size at least {domain}, but got {shape}."
            )
        after = whole.forward_shape(shape)
        before = Size(whole.inverse_shape(after))
        if shape != before:
            base_distribution = base_distribution.expand(before[: len(before) - axes])
        if domain > axes:
            base_distribution = Independent(base_distribution, domain - axes)
        self.base_dist = base_distribution
        cut = len(after) - max(codomain, axes + codomain - domain)
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Distribution | None = None) -> Distribution:
        new: Any = super().expand(batch_shape, _instance)
        shape: Any = new.batch_shape + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    def _support(self) -> Any:
        """The codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    support: Any = constraints.dependent_property(_support, is_discrete=False)

    has_rsample: Any = property(lambda self: self.base_dist.has_rsample)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with unrecorded():
            return self._changed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._changed(self.base_dist.rsample(sample_shape))

    def _changed(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        axes, y, total = len(self.event_shape), value, None
        for t in reversed(self.transforms):
            x = t.inv(y)
            axes += t.domain.event_dim - t.codomain.event_dim
            term = sum_rightmost(t.log_abs_det_jacobian(x, y), axes - t.domain.event_dim)
            total = term if total is None else total + term
            y = x
        found = sum_rightmost(self.base_dist.log_prob(y), axes - len(self.base_dist.event_shape))
        return found if total is None else found - total

    def _turned(self, chance: Tensor) -> Tensor:
        """Probabilities of larger values in place of smaller ones, where the transforms change the order."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return chance if isinstance(sign, int) and sign == 1 else sign * (chance - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            value = t.inv(value)
        self.base_dist._check(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._changed(self.base_dist.icdf(self._turned(value)))


class LogNormal(TransformedDistribution):
    """Numbers whose logarithms are normal.

    Args:
        loc, scale: mean and standard deviation of the logarithm.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        v = self.scale.square()
        return v.expm1() * (2 * self.loc + v).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """The size of a number whose distribution is the same below 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base: type

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None):
        super().__init__(self.base(0, scale, validate_args=False), AbsTransform(), validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution on both sides."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return where(value >= 0, self.base_dist.log_prob(value) + log(2), -inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - log(2)


class HalfNormal(_Half):
    """The size of a normal number of mean 0.

    Args:
        scale: its standard deviation, positive.
        validate_args: as `Distribution` has it.

    Source: https://pytorch.org/docs/stable/distributions.html#halfnormal
    """

    base = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * sqrt(2 / pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / pi)


class HalfCauchy(_Half):
    """The size of a number of Cauchy's distribution around 0.

    Args:
        scale: its scale, positive.
        validate_args: as `Distribution` has it.

    Source: https://pytorch.org/docs/stable/distributions.html#halfcauchy
    """

    base = Cauchy

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance


class LogisticNormal(TransformedDistribution):
    """Shares of 1 that `StickBreakingTransform` makes of normal numbers; one more than these.

    Args:
        loc, scale: of the normal numbers.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None):
        base: Distribution = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The means."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations."""
        return self.base_dist.base_dist.scale
