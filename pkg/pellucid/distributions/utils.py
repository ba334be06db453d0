"""Probabilities, logits and triangles: what distributions share."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

from ..autograd.grad_mode import enable_grad
from ..errors import RangeError
from ..ops.elementwise.activations import logsigmoid
from ..ops.random.distributions import rand, randn
from ..ops.shape.creation import arange
from ..ops.shape.views import broadcast_tensors
from ..tensors.construct import tensor
from ..tensors.limits import finfo
from ..tensors.tensor import Tensor

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers get the dtype and device of the first tensor, or
    the defaults.

    Args:
        values: numbers, or tensors whose shapes broadcast.

    Raises:
        RangeError: one is neither.
    """
    like = next((v for v in values if isinstance(v, Tensor)), None)
    given = []
    for value in values:
        if isinstance(value, Tensor):
            given.append(value)
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise RangeError(f"broadcast_all: {value!r} is no number and no Tensor.") from None
        where = {} if like is None else {"dtype": like.dtype, "device": like.device}
        given.append(tensor(number, **where))
    return tuple(broadcast_tensors(*given)) if len(given) > 1 else (given[0],)


def only_one(probs: Any, logits: Any) -> bool:
    """Whether a distribution is given probabilities; else it is given logits.

    Raises:
        RangeError: it is given both, or neither.
    """
    if (probs is None) == (logits is None):
        raise RangeError("Either `probs` or `logits` must be specified, but not both.")
    return probs is not None


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1, by the spacing of the dtype's numbers."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logarithms of probabilities, or of the odds if ``is_binary``."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits along the last axis, or of each logarithm of odds if ``is_binary``."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def log_chance(logits: Tensor, value: Tensor) -> Tensor:
    """``value * log(p) + (1 - value) * log(1 - p)`` where the odds are ``exp(logits)``."""
    return logsigmoid(logits) - (1 - value) * logits


def standard_normal(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Normal numbers with the dtype and device of a tensor."""
    return randn(*shape, dtype=like.dtype, device=like.device)


def uniform(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Uniform numbers above 0 and below 1, with the dtype and device of a tensor."""
    limits = finfo(like.dtype)
    return rand(*shape, dtype=like.dtype, device=like.device).clamp(limits.tiny, 1 - limits.eps)


def sum_rightmost(value: Tensor, axes: int) -> Tensor:
    """The sum over so many of the last axes."""
    return value.sum(tuple(range(-axes, 0))) if axes else value


_sum_rightmost = sum_rightmost


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The rows of a lower triangle, one after the other.

    Args:
        mat: (..., n, n).
        diag: the last diagonal that belongs to the triangle.

    Raises:
        RangeError: there is no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise RangeError(f"tril_matrix_to_vec: diag is {diag}; it must be {-n} to {n - 1}.")
    place = arange(n, device=mat.device)
    return mat[..., place < place.view(-1, 1) + (diag + 1)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrix whose lower triangle has these rows; zero above.

    Args:
        vec: (..., count).
        diag: the last diagonal that belongs to the triangle.

    Raises:
        RangeError: no triangle has so many elements.
    """
    count = vec.shape[-1]
    twice = 1 + 2 * diag
    n = (isqrt(twice * twice + 8 * count + 4 * abs(diag) * (diag + 1)) - twice) // 2
    place = arange(n, device=vec.device)
    inside = place < place.view(-1, 1) + (diag + 1)
    if int(inside.sum()) != count:
        raise RangeError(f"vec_to_tril_matrix: no triangle with diagonal {diag} has {count} elements.")
    out = vec.new_zeros((*vec.shape[:-1], n, n))
    out[..., inside] = vec
    return out


class lazy_property:
    """A property that is computed at its first use, and kept."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.__name__, value)
        return value


__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "log_chance",
    "logits_to_probs", "only_one", "probs_to_logits", "standard_normal", "sum_rightmost",
    "tril_matrix_to_vec", "uniform", "vec_to_tril_matrix",
]  # fmt: skip
