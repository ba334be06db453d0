"""Transforms of vectors and matrices: softmax, stick breaking, Cholesky factors, parts of an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import Any

from ..errors import RangeError, ShapeError
from ..ops.elementwise.activations import logsigmoid, softplus
from ..ops.shape.creation import arange, eye
from ..ops.shape.joining import cat, stack
from ..ops.shape.padding import pad
from ..tensors.limits import finfo
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from . import constraints
from .transform import Transform
from .utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix


class _OfItsClass(Transform):
    """A transform that is the same for all of its class."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


def _at_least(name: str, axes: int, shape: Any) -> None:
    if len(shape) < axes:
        raise ShapeError(f"{name}: Too few dimensions on input: {tuple(shape)}")


class SoftmaxTransform(_OfItsClass):
    """``y = softmax(x)`` along the last axis; the inverse is a logarithm. It has no Jacobian."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _at_least("SoftmaxTransform", 1, shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_OfItsClass):
    """A vector of n numbers as n + 1 shares of 1, broken off one after the other.

    Source: Stan Reference Manual, "Unit simplex"
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        z = (x - _left(x.shape[-1], x).log()).sigmoid()
        return pad(z, [0, 1], value=1.0) * pad((1 - z).cumprod(-1), [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return head.log() - rest.log() + _left(head.shape[-1], y).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _left(x.shape[-1], x).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _at_least("StickBreakingTransform", 1, shape)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        _at_least("StickBreakingTransform", 1, shape)
        return Size((*shape[:-1], shape[-1] - 1))


def _left(count: int, like: Tensor) -> Tensor:
    """How many parts come after each."""
    return arange(count, 0, -1, dtype=like.dtype, device=like.device)


def _with_diagonal(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    return x.tril(-1) + change(x.diagonal(dim1=-2, dim2=-1)).diag_embed()


class LowerCholeskyTransform(_OfItsClass):
    """A matrix as a lower triangle with a positive diagonal, the exponential of its own."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return _with_diagonal(x, lambda d: d.exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return _with_diagonal(y, lambda d: d.log())


class PositiveDefiniteTransform(_OfItsClass):
    """A matrix as a positive-definite one, whose Cholesky factor `LowerCholeskyTransform` makes of it."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(y.cholesky())


class CorrCholeskyTransform(_OfItsClass):
    """A vector of ``n (n - 1) / 2`` numbers as the Cholesky factor of a correlation matrix of n rows.

    Row by row, ``tanh`` gives each number's share of what is left of the row's length.

    Source: Stan Reference Manual, "Cholesky factors of correlation matrices"
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        rest = (1 - r.square()).sqrt().cumprod(-1)
        r = r + eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(rest[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        rest = (1 - y.square().cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        shifted = pad(rest[..., :-1], [1, 0], value=1.0)
        t = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(shifted, -1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        rest = 1 - y.square().cumsum(-1)
        lengths = tril_matrix_to_vec(rest, -2).log().sum(-1) / 2
        return lengths - 2 * (x + softplus(-2 * x) - log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _at_least("CorrCholeskyTransform", 1, shape)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise RangeError("CorrCholeskyTransform: Input is not a flattend lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        _at_least("CorrCholeskyTransform", 2, shape)
        if shape[-2] != shape[-1]:
            raise ShapeError("CorrCholeskyTransform: Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class _Several(Transform):
    """Transforms of parts of a tensor along one axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _parts(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError(f"{type(self).__name__}: define _parts().")

    def _together(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: define _together().")

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return self._together([t(part) for t, part in pairs])

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return self._together([t.inv(part) for t, part in pairs])

    def _logs(self, x: Tensor, y: Tensor) -> list[Tensor]:
        rows = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in rows]

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_Several):
    """A transform for each part of an axis.

    Args:
        tseq: the transforms.
        dim: the axis.
        lengths: of the parts; 1 each if not given.
        cache_size: as `Transform` has it.
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The length of the axis."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor) -> list[Tensor]:
        return [*x.split(self.lengths, self.dim)]

    def _together(self, parts: list[Tensor]) -> Tensor:
        return cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        most, terms = self.event_dim, self._logs(x, y)
        rows = zip(self.transforms, terms, strict=True)
        terms = [sum_rightmost(term, most - t.event_dim) for t, term in rows]
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += most
        return cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        """Those of the parts."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Those of the parts."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Several):
    """A transform for each position along an axis.

    Args:
        tseq: the transforms.
        dim: the axis.
        cache_size: as `Transform` has it.
    """

    def with_cache(self, cache_size: int = 1) -> Transform:
        return (
            self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)
        )

    def _parts(self, x: Tensor) -> list[Tensor]:
        return [*x.unbind(self.dim)]

    def _together(self, parts: list[Tensor]) -> Tensor:
        return stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return stack(self._logs(x, y), self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Those of the parts."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Those of the parts."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
