"""Transform: an invertible function with the logarithm of its Jacobian's size; inverses, chains."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import reduce
from math import prod
from operator import mul
from typing import Any

from ..errors import RangeError, ShapeError
from ..ops.shape.creation import zeros_like
from ..tensors.shape import Size
from ..tensors.tensor import Tensor
from . import constraints
from .utils import sum_rightmost


class Transform:
    """An invertible function with a known logarithm of the size of its Jacobian.

    Args:
        cache_size: 1 to remember the last value and its image, so that the inverse gives it back as it was;
            0 not to.

    Attributes:
        domain, codomain: constraints of values and images.
        bijective: whether each image has one value.
        sign: 1 or -1, of the derivative of a monotone function of one number.

    Raises:
        RangeError: another cache_size.

    Source: https://pytorch.org/docs/stable/distributions.html#module-torch.distributions.transforms
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    sign: Any

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise RangeError(f"{type(self).__name__}: cache_size must be 0 or 1, not {cache_size!r}.")
        self._cache_size = cache_size
        self._inv: Any = None
        self._kept: tuple[Any, Any] = None, None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_inv": None, "_kept": (None, None)}

    def __getattr__(self, name: str) -> Any:
        if name == "sign":
            raise NotImplementedError(f"{type(self).__name__} has no sign.")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def event_dim(self) -> int:
        """How many axes make one value, where domain and codomain agree."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise RangeError(
                f"{type(self).__name__}: Please use either .domain.event_dim or .codomain.event_dim"
            )
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse; that of it is this transform."""
        made = self._inv() if self._inv is not None else None
        if made is None:
            made = _Inverse(self)
            self._inv = weakref.ref(made)
        return made

    def with_cache(self, cache_size: int = 1) -> Transform:
        """This transform with another cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, x: Tensor) -> Tensor:
        """The image of a value."""
        if self._cache_size == 0:
            return self._call(x)
        if x is self._kept[0]:
            return self._kept[1]
        y = self._call(x)
        self._kept = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is self._kept[1]:
            return self._kept[0]
        x = self._inverse(y)
        self._kept = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: define _call().")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: define _inverse().")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """``log |det dy/dx|`` of a value and its image, without the axes of a value."""
        raise NotImplementedError(f"{type(self).__name__}: define log_abs_det_jacobian().")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the image of a tensor of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of a tensor whose image has this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform):
        super().__init__(cache_size=transform._cache_size)
        self._inverted = transform

    @property
    def domain(self) -> Any:
        return self._inverted.codomain

    @property
    def codomain(self) -> Any:
        return self._inverted.domain

    @property
    def bijective(self) -> bool:
        return self._inverted.bijective

    @property
    def sign(self) -> Any:
        return self._inverted.sign

    @property
    def inv(self) -> Transform:
        return self._inverted

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inverted.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self._inverted == other._inverted

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inverted._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inverted.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inverted.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inverted.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_Inverse({self._inverted!r})"


def _raised(constraint: Any, more: int) -> Any:
    return constraints.independent(constraint, more) if more > 0 else constraint


class ComposeTransform(Transform):
    """Transforms one after the other.

    Args:
        parts: in the order in which they are applied.
        cache_size: as `Transform` has it; the parts get it, too.
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def _axes(self) -> tuple[int, int]:
        """The axes of a value and of its image, of which parts may need more than the first and the last."""
        before = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            before = max(before + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        after = self.parts[0].domain.event_dim
        for part in self.parts:
            after = max(after + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return before, after

    @constraints.dependent_property
    def domain(self) -> Any:
        """That of the first part."""
        if not self.parts:
            return constraints.real
        found = self.parts[0].domain
        return _raised(found, self._axes()[0] - found.event_dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """That of the last part."""
        if not self.parts:
            return constraints.real
        found = self.parts[-1].codomain
        return _raised(found, self._axes()[1] - found.event_dim)

    @property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return reduce(mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self) -> Transform:
        made = self._inv() if self._inv is not None else None
        if made is None:
            made = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, made._inv = weakref.ref(made), weakref.ref(self)
        return made

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        axes, terms = self.domain.event_dim, []
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(term, axes - part.domain.event_dim))
            axes += part.codomain.event_dim - part.domain.event_dim
        return reduce(lambda a, b: a + b, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform of more axes: the logarithm of its Jacobian is summed over these.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many more axes make one value.
        cache_size: as `Transform` has it.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """That of the base, for more axes."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """That of the base, for more axes."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ShapeError(f"IndependentTransform: Too few dimensions on input: {tuple(x.shape)}")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ShapeError(f"IndependentTransform: Too few dimensions on input: {tuple(y.shape)}")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Another shape of the last axes.

    Args:
        in_shape, out_shape: of one value before and after.
        cache_size: as `Transform` has it.

    Raises:
        ShapeError: they have different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if prod(self.in_shape) != prod(self.out_shape):
            raise ShapeError(
                f"ReshapeTransform: in_shape {tuple(self.in_shape)} and out_shape {tuple(self.out_shape)} "
                "have different numbers of elements"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Real numbers of the first shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Real numbers of the second shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return self._changed(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._changed(shape, self.out_shape, self.in_shape)

    def _changed(self, shape: Any, before: Size, after: Size) -> Size:
        cut = len(shape) - len(before)
        if cut < 0 or tuple(shape[cut:]) != tuple(before):
            raise ShapeError(f"ReshapeTransform: Shape mismatch: expected {before} but got {tuple(shape)}")
        return Size((*shape[:cut], *after))
