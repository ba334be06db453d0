"""Constraints: sets of values, such as the support of a distribution or what its parameters must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..ops.linalg.spectral import eigvalsh
from ..ops.linalg.triangular import cholesky_ex
from ..ops.shape.joining import cat as joined
from ..ops.shape.joining import stack as stacked
from ..tensors.limits import finfo
from ..tensors.tensor import Tensor


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether its values are apart from each other.
        event_dim: how many of the last axes make one value.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each value belongs to the set: bool, without the axes of a value."""
        raise NotImplementedError(f"{type(self).__name__}: define check().")

    def __repr__(self) -> str:
        return f"{_title(self)}()"


def _title(constraint: Constraint) -> str:
    """The name of a class as PyTorch prints it, such as GreaterThan."""
    parts = type(constraint).__name__.split("_")
    return "".join(part[:1].upper() + part[1:] for part in parts)


class _Test(Constraint):
    """A constraint in one line.

    Args:
        name: how it prints.
        test: of a tensor of values.
        event_dim, is_discrete: as a constraint has them.
    """

    def __init__(
        self, name: str, test: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False
    ):
        self._name, self._test, self.event_dim, self.is_discrete = name, test, event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        return self._test(value)

    def __repr__(self) -> str:
        return self._name


class _Dependent(Constraint):
    """A set that depends on other values, so nothing is checked."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return type(self)(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ArgumentError("constraints: cannot determine validity of a dependent constraint.")


class dependent_property(property, _Dependent):
    """A property of a distribution that is a constraint; of the class it is a dependent one."""

    def __init__(
        self,
        fn: Callable | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, fn: Callable
    ) -> dependent_property:
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class _Bounded(Constraint):
    """A set with bounds, which are numbers or tensors."""

    names: tuple[str, ...] = ("lower_bound",)
    lower_bound: Any
    upper_bound: Any

    def __init__(self, *bounds: Any, **named: Any):
        given = dict(zip(self.names, bounds)) | named
        if len(bounds) + len(named) != len(self.names) or given.keys() != {*self.names}:
            raise ArgumentError(f"{type(self).__name__}: takes {' and '.join(self.names)}, and nothing else.")
        vars(self).update(given)

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={getattr(self, name)}" for name in self.names)
        return f"{_title(self)}({bounds})"


class greater_than(_Bounded):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class greater_than_eq(_Bounded):
    """A bound and numbers above it."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class less_than(_Bounded):
    """Numbers below a bound."""

    names = ("upper_bound",)

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class interval(_Bounded):
    """Numbers between two bounds, with both."""

    names = ("lower_bound", "upper_bound")

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class half_open_interval(interval):
    """Numbers from a bound to before another."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class integer_interval(interval):
    """Integers between two bounds, with both."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class multinomial(_Bounded):
    """Counts along the last axis that add up to at most a bound.

    Args:
        upper_bound: the bound.
    """

    names = ("upper_bound",)
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class independent(Constraint):
    """A set whose values are made of several values of another set.

    Args:
        base_constraint: the other set.
        reinterpreted_batch_ndims: how many more axes make one value.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.dim() < count:
            raise ShapeError(
                f"constraints: values need at least {self.event_dim} axes, not shape {tuple(value.shape)}."
            )
        return result.flatten(-count).all(-1) if count else result

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: that of its components, for a value that they share.

    Args:
        base_constraint: the components' support.
    """

    def __init__(self, base_constraint: Constraint):
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        axes = value.dim() - self.event_dim
        return result.flatten(axes).all(-1) if result.dim() > axes else result


class cat(Constraint):
    """Parts of one axis, each of a set of its own.

    Args:
        cseq: the sets.
        dim: the axis.
        lengths: of the parts; 1 each if not given.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return joined([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class stack(Constraint):
    """Values along one axis, each of a set of its own.

    Args:
        cseq: the sets.
        dim: the axis.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        dim = max(c.event_dim for c in self.cseq)
        return dim + (self.dim + dim < 0)

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        return stacked([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


def _is_one_hot(x: Tensor) -> Tensor:
    return (((x == 0) | (x == 1)).all(-1)) & (x.sum(-1) == 1)


def _is_lower(x: Tensor) -> Tensor:
    return (x == x.tril()).flatten(-2).all(-1)


def _has_positive_diagonal(x: Tensor) -> Tensor:
    return _is_lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _has_unit_rows(x: Tensor) -> Tensor:
    tolerance = finfo(x.dtype).eps * x.shape[-1] * 10
    unit = ((x.detach().square().sum(-1).sqrt() - 1).abs() <= tolerance).all(-1)
    return _has_positive_diagonal(x) & unit


def _is_square(x: Tensor) -> Tensor:
    return x.new_ones(x.shape[:-2]).bool() & (x.shape[-1] == x.shape[-2])


def _is_symmetric(x: Tensor) -> Tensor:
    if x.shape[-1] != x.shape[-2]:
        return _is_square(x)
    return x.isclose(x.mT, atol=1e-6).flatten(-2).all(-1)


def _is_semidefinite(x: Tensor) -> Tensor:
    found = _is_symmetric(x)
    return found & (eigvalsh(x) >= 0).all(-1) if bool(found.all()) else found


def _is_definite(x: Tensor) -> Tensor:
    found = _is_symmetric(x)
    return found & (cholesky_ex(x).info == 0) if bool(found.all()) else found


dependent = _Dependent()
real = _Test("Real()", lambda x: x == x)
real_vector = independent(real, 1)
boolean = _Test("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
one_hot = _Test("OneHot()", _is_one_hot, 1, True)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _Test("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
lower_triangular = _Test("LowerTriangular()", _is_lower, 2)
lower_cholesky = _Test("LowerCholesky()", _has_positive_diagonal, 2)
corr_cholesky = _Test("CorrCholesky()", _has_unit_rows, 2)
square = _Test("Square()", _is_square, 2)
symmetric = _Test("Symmetric()", _is_symmetric, 2)
positive_semidefinite = _Test("PositiveSemidefinite()", _is_semidefinite, 2)
positive_definite = _Test("PositiveDefinite()", _is_definite, 2)

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
    "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
    "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack",
    "symmetric", "unit_interval",
]  # fmt: skip
