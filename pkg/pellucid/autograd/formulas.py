"""What formulas of derivatives have in common. Where a derivative is 0 the incoming gradient is left out
rather than multiplied by 0: infinity and NaN, which what comes behind may send, would stay.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import GradientError
from ..tensors.tensor import Tensor


def zeros(g: Tensor) -> Tensor:
    """The derivative of what an argument does not change: steps, and values that are overwritten."""
    return g.new_zeros(g._meta.shape)


def without(g: Tensor, mask: Tensor) -> Tensor:
    """The incoming gradient, 0 where the mask holds."""
    return g.masked_fill(mask, 0.0)


def refused(name: str, instead: str) -> Callable[[Tensor], Tensor]:
    """The formula of an op that PyTorch does not differentiate: a walk through it fails, and ``instead`` says
    what does not.
    """

    def formula(g: Tensor) -> Tensor:
        raise GradientError(f"{name}: has no derivative, as in PyTorch. {instead}")

    return formula


__all__ = ["refused", "without", "zeros"]
