"""MultivariateNormal, LowRankMultivariateNormal and Wishart: vectors and matrices with covariances."""

from __future__ import annotations

import warnings
from math import log, nan, pi
from typing import Any

from ..errors import RangeError, ShapeError
from ..ops.elementwise.comparison import where
from ..ops.elementwise.gamma import mvlgamma
from ..ops.linalg.triangular import cholesky, solve_triangular
from ..ops.shape.creation import arange, eye
from ..ops.shape.grids import broadcast_shapes
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gamma import Gamma
from .utils import lazy_property, standard_normal


def _eye(like: Tensor) -> Tensor:
    return eye(like.shape[-1], dtype=like.dtype, device=like.device)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of a matrix's inverse, by that of the matrix with rows and columns reversed."""
    reversed_factor = cholesky(precision.flip((-2, -1)))
    upper = reversed_factor.flip((-2, -1)).mT
    return solve_triangular(upper, _eye(precision).expand(precision.shape), upper=False)


def mahalanobis(factor: Tensor, away: Tensor) -> Tensor:
    """``away^T (L L^T)^-1 away`` of vectors, with a lower triangle L; batches broadcast."""
    shape = broadcast_shapes(factor.shape[:-2], away.shape[:-1])
    n = away.shape[-1]
    solved = solve_triangular(factor.expand(*shape, n, n), away.expand(*shape, n).unsqueeze(-1), upper=False)
    return solved.squeeze(-1).square().sum(-1)


def half_log_det(factor: Tensor) -> Tensor:
    """The logarithm of the determinant of a triangle."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class _Covariance:
    """What is given a covariance, its inverse or its Cholesky factor, and has all."""

    def _hold(self, covariance: Any, precision: Any, tril: Any, batch: Any) -> Size:
        """Keep what is given, for a batch that broadcasts with it, and return the batch's shape."""
        rows = {"covariance_matrix": covariance, "precision_matrix": precision, "scale_tril": tril}
        given = {name: value for name, value in rows.items() if value is not None}
        kind = type(self).__name__
        if len(given) != 1:
            raise RangeError(
                f"{kind}: Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, value),) = given.items()
        if value.dim() < 2:
            raise ShapeError(
                f"{kind}: {name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        shape = broadcast_shapes(value.shape[:-2], tuple(batch))
        setattr(self, name, value.expand(*shape, *value.shape[-2:]))
        return Size(shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower triangle L of ``covariance = L L^T``."""
        if "covariance_matrix" in vars(self):
            return cholesky(self.covariance_matrix)
        return precision_to_scale_tril(self.precision_matrix)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.mT

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        identity = _eye(self.scale_tril).expand(self.scale_tril.shape)
        inverse = solve_triangular(self.scale_tril, identity, upper=False)
        return inverse.mT @ inverse


class MultivariateNormal(_Covariance, Distribution):
    """Normal vectors with a covariance.

    Args:
        loc: (..., n) the mean.
        covariance_matrix: (..., n, n) positive-definite, or
        precision_matrix: its inverse, or
        scale_tril: its lower Cholesky factor.

    Raises:
        RangeError: not exactly one of the three is given.
        ShapeError: one has too few axes.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ShapeError("MultivariateNormal: loc must be at least one-dimensional.")
        shape = self._hold(covariance_matrix, precision_matrix, scale_tril, loc.shape[:-1])
        self.loc = loc.expand(*shape, loc.shape[-1])
        super().__init__(shape, loc.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        away = mahalanobis(self.scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * log(2 * pi) + away) - half_log_det(self.scale_tril)

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + log(2 * pi)) + half_log_det(self.scale_tril)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance ``W W^T + diag(D)``, whose density is found by matrices of W's columns.

    Args:
        loc: (..., n) the mean.
        cov_factor: (..., n, rank) W.
        cov_diag: (..., n) D, positive.

    Raises:
        ShapeError: shapes do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ShapeError("LowRankMultivariateNormal: loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event:
            raise ShapeError(
                f"LowRankMultivariateNormal: cov_factor must be a batch of matrices with shape {event[0]} x m"
            )
        if cov_diag.shape[-1:] != event:
            raise ShapeError(
                f"LowRankMultivariateNormal: cov_diag must be a batch of vectors with shape {tuple(event)}"
            )
        shape = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand(*shape, *event)
        self.cov_factor = cov_factor.expand(*shape, *cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(*shape, *event)
        super().__init__(shape, event, validate_args=validate_args)

    @lazy_property
    def _capacitance_tril(self) -> Any:
        """The Cholesky factor of ``I + W^T D^-1 W``."""
        small = self.cov_factor.mT @ (self.cov_factor / self.cov_diag.unsqueeze(-1))
        return cholesky(small + _eye(small))

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return cholesky(self.covariance_matrix)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance, by Woodbury's formula."""
        scaled = (self.cov_factor / self.cov_diag.unsqueeze(-1)).mT
        half = solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - half.mT @ half

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        few = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        own = self.cov_diag.sqrt() * standard_normal(shape, self.loc)
        return self.loc + (self.cov_factor @ few.unsqueeze(-1)).squeeze(-1) + own

    def log_det(self) -> Tensor:
        """The logarithm of the covariance's determinant."""
        return 2 * half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def mahalanobis(self, away: Tensor) -> Tensor:
        """``away^T covariance^-1 away`` of vectors."""
        scaled = away / self.cov_diag
        inner = (self.cov_factor.mT @ scaled.unsqueeze(-1)).squeeze(-1)
        return (scaled * away).sum(-1) - mahalanobis(self._capacitance_tril, inner)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        size = self._event_shape[0] * log(2 * pi) + self.log_det()
        return -0.5 * (size + self.mahalanobis(value - self.loc))

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1 + log(2 * pi)) + self.log_det())


class Wishart(_Covariance, ExponentialFamily):
    """Sums of ``df`` outer products of normal vectors with a covariance: positive-definite matrices.

    Args:
        df: degrees of freedom, above n - 1; need not be whole.
        covariance_matrix: (..., n, n) positive-definite, or
        precision_matrix: its inverse, or
        scale_tril: its lower Cholesky factor.

    Raises:
        RangeError: not exactly one of the three is given, or df is too small.
        ShapeError: one has too few axes.

    Source: Odell and Feiveson 1966, "A numerical procedure to generate a sample covariance matrix"
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        shape = self._hold(covariance_matrix, precision_matrix, scale_tril, getattr(df, "shape", ()))
        (given,) = (t for t in vars(self).values() if isinstance(t, Tensor))
        n = given.shape[-1]
        self.df = (df if isinstance(df, Tensor) else given.new_tensor(df)).expand(shape)
        least = float(self.df.min())
        if least <= n - 1:
            raise RangeError(f"Wishart: Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if least < n:
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < "
                "ndim.",
                stacklevel=2,
            )
        self._n = n
        super().__init__(shape, given.shape[-2:], validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """What the parameters must be, by name."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._n - 1
        return where(factor > 0, factor, nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v.square() + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """By Bartlett's decomposition: chi variates on the diagonal, normal ones below it."""
        shape = self._extended_shape(sample_shape)
        row = arange(self._n, dtype=self.df.dtype, device=self.df.device)
        chi = (
            Gamma(0.5 * (self.df.unsqueeze(-1) - row), 0.5, validate_args=False).rsample(sample_shape).sqrt()
        )
        factor = self.scale_tril @ (standard_normal(shape, chi).tril(-1) + chi.diag_embed())
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, df, factor = self._n, self.df, self.scale_tril
        lower = cholesky(value)
        shape = broadcast_shapes(factor.shape, lower.shape)
        trace = (
            solve_triangular(factor.expand(shape), lower.expand(shape), upper=False).square().sum((-2, -1))
        )
        size = df * (n * log(2) / 2 + half_log_det(factor)) + mvlgamma(df / 2, n)
        return (df - n - 1) * half_log_det(lower) - trace / 2 - size

    def entropy(self) -> Tensor:
        n, df = self._n, self.df
        digammas = sum(((df - k) / 2).digamma() for k in range(n))
        size = (n + 1) * (n * log(2) / 2 + half_log_det(self.scale_tril)) + mvlgamma(df / 2, n)
        return size - (df - n - 1) / 2 * digammas + df * n / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._n - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._n
        half = y + (n + 1) / 2
        return half * (n * log(2) - 2 * half_log_det(cholesky(-2 * x))) + mvlgamma(half, n)
