"""Dirichlet, Beta, LKJCholesky: shares of 1, and correlations."""

from __future__ import annotations

from math import log, pi
from typing import Any

from ..autograd.grad_mode import unrecorded
from ..errors import RangeError, ShapeError
from ..ops.elementwise.comparison import where
from ..ops.elementwise.gamma import mvlgamma
from ..ops.shape.creation import arange
from ..ops.shape.joining import stack
from ..tensors.limits import finfo
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gamma import like, log_gamma_variates
from .utils import broadcast_all, standard_normal


class Dirichlet(ExponentialFamily):
    """Shares of 1: ``p(x) = prod_i x_i^(a_i - 1) / B(a)`` along the last axis.

    Samples are shares of gamma variates, so a gradient by one concentration is not PyTorch's of the same
    sample, which has the same mean.

    Args:
        concentration: a, positive, with at least one axis.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise ShapeError("Dirichlet: `concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, keepdim=True)
        none = (self.concentration < 1).all(-1, keepdim=True)
        first = self.concentration.argmax(-1, keepdim=True)
        corner = mode.new_zeros(mode.shape).scatter(-1, first, 1.0)
        return where(none, corner, mode)

    @property
    def variance(self) -> Tensor:
        total, a = self.concentration.sum(-1, keepdim=True), self.concentration
        return a * (total - a) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        logs = log_gamma_variates(self.concentration, self._extended_shape(sample_shape))
        return logs.softmax(-1).to(self.concentration.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        return (a - 1).xlogy(value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, total, count = self.concentration, self.concentration.sum(-1), self.concentration.shape[-1]
        normalizer = a.lgamma().sum(-1) - total.lgamma()
        return normalizer - (count - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """The beta distribution: ``p(x) = x^(a - 1) (1 - x)^(b - 1) / B(a, b)``.

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
        pair = stack([*broadcast_all(concentration1, concentration0)], -1)
        self._dirichlet = Dirichlet(pair, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """a"""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """b"""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        value = like(value, self.concentration1)
        self._check(value)
        a, b = self.concentration1, self.concentration0
        logs = (a - 1).xlogy(value) + (b - 1).xlogy(1 - value)
        return logs + (a + b).lgamma() - a.lgamma() - b.lgamma()

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, whose density is ``det(correlation)^(concentration - 1)``.

    Args:
        dim: rows of the matrix, at least 2.
        concentration: positive; 1 for equal density.

    Raises:
        RangeError: dim is less than 2.

    Source: Lewandowski et al. 2009, "Generating random correlation matrices based on vines and extended onion
        method", section 3
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise RangeError(
                f"LKJCholesky: Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        c = self.concentration
        row = arange(dim, dtype=c.dtype, device=c.device)
        before = (row - 1).clamp(min=0)
        self._beta = Beta(before + 0.5, (c + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * before)
        super().__init__(c.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Row by row: a point on a sphere, with a length whose square is a beta variate."""
        with unrecorded():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = standard_normal(self._extended_shape(sample_shape), length).tril(-1)
            size = normal.square().sum(-1, keepdim=True).sqrt()
            w = length.sqrt() * normal / size.masked_fill(size == 0, 1.0)
            rest = (1 - w.square().sum(-1)).clamp(min=finfo(w.dtype).tiny).sqrt()
            return w + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        diagonal, c, more = value.diagonal(dim1=-2, dim2=-1)[..., 1:], self.concentration, self.dim - 1
        row = arange(2, self.dim + 1, dtype=c.dtype, device=c.device)
        power = 2 * (c - 1).unsqueeze(-1) + self.dim - row
        a = c + 0.5 * more
        size = 0.5 * more * log(pi) + mvlgamma(a - 0.5, more) - a.lgamma() * more
        return (power * diagonal.log()).sum(-1) - size
