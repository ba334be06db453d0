"""Linear layers, the one that does nothing, and what compares two inputs."""

from __future__ import annotations

from math import sqrt

from ...errors import RangeError
from ...ops.index.embeddings import bilinear
from ...ops.matmul.linear import linear
from ...ops.shape.creation import empty
from ...tensors.dtypes import DType
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .. import functional, init, margin_loss
from ..parameter import Parameter
from .module import Module


class Identity(Module):
    """``out = input``; takes and ignores any arguments."""

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


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch has for the last projection of attention."""


class Bilinear(Module):
    """``out[k] = input1 @ weight[k] @ input2 + bias[k]``.

    Args:
        in1_features, in2_features: lengths of the inputs' last axes.
        out_features: length of the output's last axis.
        bias: whether there is one.
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        weight: (out_features, in1_features, in2_features), uniform within ``1 / sqrt(in1_features)``.
        bias: (out_features,) likewise, or None.

    Raises:
        RangeError: ``in1_features`` is not positive.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.in1_features = in1_features = index(in1_features, "Bilinear: in1_features")
        self.in2_features = in2_features = index(in2_features, "Bilinear: in2_features")
        self.out_features = out_features = index(out_features, "Bilinear: out_features")
        if in1_features <= 0:
            raise RangeError(f"Bilinear: in1_features must be positive, not {in1_features}.")
        shape = out_features, in1_features, in2_features
        self.weight = Parameter(empty(*shape, device=device, dtype=dtype))
        value = Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", value)
        self.reset_parameters()

    bias: Parameter | None

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1 / sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class CosineSimilarity(Module):
    """See `functional.cosine_similarity`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """See `functional.pairwise_distance`."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return margin_loss.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


__all__ = [
    "Bilinear",
    "CosineSimilarity",
    "Identity",
    "Linear",
    "NonDynamicallyQuantizableLinear",
    "PairwiseDistance",
]
