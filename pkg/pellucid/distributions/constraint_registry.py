"""biject_to and transform_to: from real numbers to a constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError
from . import constraints as c
from . import transforms as t


class ConstraintRegistry:
    """Transforms by class of constraint.

    Example:
        >>> from pellucid.distributions import constraints, transform_to
        >>> transform_to(constraints.positive)
        ExpTransform()
    """

    def __init__(self):
        self._registry: dict[type, Callable[[Any], t.Transform]] = {}
        # Constraints of one line, which share a class.
        self._single: dict[int, Callable[[Any], t.Transform]] = {}

    def register(self, constraint: Any, factory: Callable | None = None) -> Callable:
        """Register what makes a transform of a constraint; without ``factory``, a decorator.

        Args:
            constraint: a subclass of `Constraint`, or one whose class it is for.
            factory: a function of the constraint.

        Raises:
            ArgumentError: it is no constraint.
        """
        if factory is None:
            return lambda made: self.register(constraint, made)
        if isinstance(constraint, c._Test):
            self._single[id(constraint)] = factory
            return factory
        kind = type(constraint) if isinstance(constraint, c.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, c.Constraint):
            raise ArgumentError(
                f"register: Expected constraint to be a Constraint subclass or instance, but got {kind}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> t.Transform:
        """The transform of a constraint.

        Raises:
            NotImplementedError: there is none.
        """
        made = self._single.get(id(constraint)) or self._registry.get(type(constraint))
        if made is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return made(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _between(constraint: Any) -> t.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and low == 0 and isinstance(high, (int, float)) and high == 1:
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _above(constraint: Any) -> t.Transform:
    low = constraint.lower_bound
    if isinstance(low, (int, float)) and low == 0:
        return t.ExpTransform()
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(low, 1)])


def _below(constraint: Any) -> t.Transform:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(constraint.upper_bound, -1)])


for _registry in (biject_to, transform_to):
    _registry.register(c.real, lambda constraint: t.identity_transform)
    for _kind, _make in (
        (c.greater_than, _above),
        (c.greater_than_eq, _above),
        (c.less_than, _below),
        (c.interval, _between),
        (c.half_open_interval, _between),
    ):
        _registry.register(_kind, _make)
    _registry.register(c.corr_cholesky, lambda constraint: t.CorrCholeskyTransform())
    _registry.register(
        c.independent,
        lambda constraint, made=_registry: t.IndependentTransform(
            made(constraint.base_constraint), constraint.reinterpreted_batch_ndims
        ),
    )
    _registry.register(
        c.cat,
        lambda constraint, made=_registry: t.CatTransform(
            [made(part) for part in constraint.cseq], constraint.dim, constraint.lengths
        ),
    )
    _registry.register(
        c.stack,
        lambda constraint, made=_registry: t.StackTransform(
            [made(part) for part in constraint.cseq], constraint.dim
        ),
    )
biject_to.register(c.simplex, lambda constraint: t.StickBreakingTransform())
transform_to.register(c.simplex, lambda constraint: t.SoftmaxTransform())
transform_to.register(c.lower_cholesky, lambda constraint: t.LowerCholeskyTransform())
for _of in (c.positive_definite, c.positive_semidefinite):
    transform_to.register(_of, lambda constraint: t.PositiveDefiniteTransform())

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
