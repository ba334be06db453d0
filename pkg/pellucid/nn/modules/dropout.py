"""Dropout: zeros at random while training."""

from __future__ import annotations

from ...errors import RangeError
from ...op.arguments import number
from ...ops.random.distributions import dropout
from ...tensors.tensor import Tensor
from .module import Module


class Dropout(Module):
    """While training each element is zeroed with probability ``p``, the others are divided by ``1 - p``.

    Args:
        p: the probability.
        inplace: write the result over the input.

    Raises:
        RangeError: ``p`` is not a probability.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Dropout.html
    """

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        p = number(p, "Dropout: p")
        if not 0 <= p <= 1:
            raise RangeError(f"Dropout: p must lie between 0 and 1, not {p}.")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        out = dropout(input, self.p, self.training)
        return input.copy_(out) if self.inplace and out is not input else out

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


__all__ = ["Dropout"]
