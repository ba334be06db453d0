"""Linear layers, and the one that does nothing."""

from __future__ import annotations

from math import sqrt

from ...ops.matmul.linear import linear
from ...ops.shape.creation import empty
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module


class Identity(Module):
    """``out = input``; takes and ignores any arguments.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Identity.html
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """``out = input @ weight.T + bias``.

    Args:
        in_features: length of the input's last axis.
        out_features: length of the output's last axis.
        bias: whether there is one.
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        weight: (out_features, in_features), uniform within ``1 / sqrt(in_features)``; float or quantized.
        bias: (out_features,) likewise, or None.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Linear.html

    Example:
        >>> import pellucid as torch
        >>> torch.nn.Linear(3, 2, device="cpu")(torch.ones(5, 3, device="cpu")).shape
        Size([5, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device=None, dtype: DType | None = None
    ):
        super().__init__()
        self.in_features = in_features = index(in_features, "Linear: in_features")
        self.out_features = out_features = index(out_features, "Linear: out_features")
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values."""
        init.kaiming_uniform_(self.weight, a=sqrt(5))
        if self.bias is not None:
            bound = 1 / sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


__all__ = ["Identity", "Linear"]
