"""Dropout: zeros at random while training."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import RangeError
from ...op.arguments import number
from ...ops.random import dropouts
from ...tensors.tensor import Tensor
from .module import Module


class _Dropout(Module):
    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        p = number(p, f"{type(self).__name__}: p")
        if not 0 <= p <= 1:
            raise RangeError(f"{type(self).__name__}: p must lie between 0 and 1, not {p}.")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """While training each element is zeroed with probability ``p``, the others are divided by ``1 - p``.

    Args:
        p: the probability.
        inplace: write the result over the input.

    Raises:
        RangeError: ``p`` is not a probability.
    """

    _function = staticmethod(dropouts.dropout)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of (batch, channels, length)."""

    _function = staticmethod(dropouts.dropout1d)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of (batch, channels, height, width)."""

    _function = staticmethod(dropouts.dropout2d)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of (batch, channels, depth, height, width)."""

    _function = staticmethod(dropouts.dropout3d)


class AlphaDropout(_Dropout):
    """`Dropout` for `SELU`: mean 0 and variance 1 stay; see `functional.alpha_dropout`."""

    _function = staticmethod(dropouts.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    _function = staticmethod(dropouts.feature_alpha_dropout)


__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]
