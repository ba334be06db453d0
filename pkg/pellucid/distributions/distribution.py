"""Distribution, the base class: shapes, checked arguments, `expand`; ExponentialFamily, Independent."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

from ..autograd.derivatives import grad
from ..autograd.grad_mode import unrecorded
from ..errors import ArgumentError, RangeError, ShapeError
from ..op.arguments import described
from ..tensors.shape import Size, sizes
from ..tensors.tensor import Tensor
from . import constraints
from .utils import lazy_property, sum_rightmost


class _Undefined:
    """What subclasses say."""

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        raise NotImplementedError(f"{type(instance).__name__} does not implement {self._name}")


class Distribution:
    """A probability distribution, or a batch of independent ones.

    A sample has shape ``sample_shape + batch_shape + event_shape``. Parameters and samples are checked
    unless ``validate_args`` is False, for which a tensor on `webgpu` is waited for.

    Args:
        batch_shape: of the distributions that are here together.
        event_shape: of one value.
        validate_args: whether parameters and values are checked; `set_default_validate_args` says what is
            done if not given.

    Attributes:
        has_rsample: whether samples have gradients.
        has_enumerate_support: whether all values can be listed.

    Raises:
        RangeError: a parameter is outside of what `arg_constraints` says.

    Source: https://pytorch.org/docs/stable/distributions.html

    Example:
        >>> import pellucid as torch
        >>> from pellucid.distributions import Normal
        >>> d = Normal(torch.zeros(3, device="cpu"), 2.0)
        >>> d.batch_shape, d.log_prob(torch.ones(3, device="cpu")).shape
        (Size([3]), Size([3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    # Tensors that are no batch of parameters.
    _shared: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        init = vars(cls).get("__init__")
        if init is not None and cls.__doc__ and cls.__module__.startswith("pellucid."):
            names, page = signature(init).parameters, f"distributions.html#{cls.__name__.lower()}"
            cls.__doc__ = described(cls.__doc__, names, {"validate_args": "as `Distribution` has it."}, page)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments that are not told."""
        if value not in (True, False):
            raise RangeError(f"set_default_validate_args: value is {value!r}; it must be True or False.")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            rows = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Set it, or give validate_args=False.",
                stacklevel=3,
            )
            return
        for name, constraint in rows.items():
            lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or (lazy and name not in vars(self)):
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise RangeError(
                    f"{type(self).__name__}: Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    @property
    def batch_shape(self) -> Size:
        """The shape of the distributions that are here together."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    arg_constraints: Any = _Undefined("What the parameters must be, by name.")
    support: Any = _Undefined("The constraint of the values.")
    mean: Any = _Undefined("The mean.")
    mode: Any = _Undefined("The likeliest value.")
    variance: Any = _Undefined("The variance.")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Values without a gradient, of shape ``sample_shape + batch_shape + event_shape``."""
        with unrecorded():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Values whose gradients by the parameters are those of a reparameterization.

        Raises:
            NotImplementedError: there is none; `has_rsample` is False.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement rsample")

    def sample_n(self, n: int) -> Tensor:
        """`n` samples, or batches of them; ``sample((n,))`` says the same."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", FutureWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at values: ``sample_shape + batch_shape``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to this one."""
        raise NotImplementedError(f"{type(self).__name__} does not implement cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first axis; with ``expand`` for each of the
        batch."""
        raise NotImplementedError(f"{type(self).__name__} does not implement enumerate_support")

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape ``batch_shape``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement entropy")

    def perplexity(self) -> Tensor:
        """``exp(entropy)``."""
        return self.entropy().exp()

    def expand(self, batch_shape: Any, _instance: Distribution | None = None) -> Distribution:
        """The same distributions for a larger batch; memory is shared.

        Args:
            batch_shape: to which `batch_shape` broadcasts.
            _instance: the new distribution, for classes that make it themselves.
        """
        shape, held = sizes((batch_shape,)), len(self._batch_shape)
        new = self._get_checked_instance(type(self), _instance)
        for name, value in vars(self).items():
            if isinstance(value, Distribution):
                value = value.expand((*shape, *value.batch_shape[held:]))
            elif isinstance(value, Tensor) and name not in self._shared:
                value = value.expand((*shape, *value.shape[held:]))
            vars(new)[name] = value
        new._batch_shape = Size(shape)
        return new

    def _get_checked_instance(self, cls: type, _instance: Distribution | None = None) -> Distribution:
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sizes((sample_shape,)), *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise RangeError(f"{name}: The value argument to log_prob must be a Tensor")
        axes = len(self._event_shape)
        if value.dim() < axes or tuple(value.shape[value.dim() - axes :]) != tuple(self._event_shape):
            raise ShapeError(
                f"{name}: The right-most size of value must match event_shape: {tuple(value.shape)} vs "
                f"{tuple(self._event_shape)}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ShapeError(
                    f"{name}: Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} "
                    f"vs {tuple(expected)}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support`. Set it, or give validate_args=False.", stacklevel=3
            )
            return
        if not bool(support.check(value).all()):
            raise RangeError(
                f"{name}: Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to "
                f"be within the support ({support!r}) of the distribution {self!r}, but found invalid "
                f"values:\n{value}"
            )

    def _check(self, value: Tensor) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in vars(self)]
        given = (f"{n}: {v if v.numel() == 1 else v.size()}" for n in names for v in (vars(self)[n],))
        return f"{type(self).__name__}({', '.join(given)})"


class ExponentialFamily(Distribution):
    """Distributions with density ``h(x) * exp(sum_i t_i(x) * natural_i - A(natural))``.

    The log normalizer A gives the entropy and the divergence of two of one class, by its derivative.

    Source: Nielsen and Nock 2010, "Entropies and cross-entropies of exponential families"
    """

    _natural_params: Any = _Undefined("The natural parameters, a tuple of tensors.")
    _log_normalizer: Any = _Undefined("A, a function of the natural parameters.")
    _mean_carrier_measure: Any = _Undefined("The mean of ``log(h(x))``.")

    def entropy(self) -> Tensor:
        """The entropy by Bregman's divergence of the log normalizer."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        gradients = grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, gradient in zip(natural, gradients, strict=True):
            if gradient is None:
                raise ArgumentError(f"{type(self).__name__}: _log_normalizer leaves out a parameter.")
            term = parameter * gradient
            result = result - sum_rightmost(
                term.reshape(*self._batch_shape, -1) if term.numel() else term.unsqueeze(-1), 1
            )
        return result


class Independent(Distribution):
    """Axes of a batch as axes of one value.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many of the last axes of its batch become axes of a value.

    Raises:
        RangeError: the batch has fewer axes.
    """

    arg_constraints = {}

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ):
        count = reinterpreted_batch_ndims
        if count > len(base_distribution.batch_shape):
            raise RangeError(
                f"Independent: Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {count} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - count
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        super().__init__(shape[:cut], shape[cut:], validate_args)

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the base, for more axes."""
        count = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, count) if count else self.base_dist.support

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Independent: Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
