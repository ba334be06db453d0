"""Layers that normalize the last axes."""

from __future__ import annotations

from ...ops.norm.normalization import layer_norm, rms_norm
from ...ops.shape.creation import empty
from ...tensors.dtypes import DType
from ...tensors.shape import sizes
from ...tensors.tensor import Tensor
from .. import init
from ..parameter import Parameter
from .module import Module


def _shape(normalized_shape) -> tuple[int, ...]:
    return sizes((normalized_shape,))


class LayerNorm(Module):
    """``out = (input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes.

    Args:
        normalized_shape: lengths of the last axes, or the length of the last one.
        eps: added to the variance.
        elementwise_affine: whether there are a weight and a bias.
        bias: whether there is a bias.
        device, dtype: of the parameters; the defaults if None.

    Attributes:
        weight: normalized_shape, ones; or None.
        bias: normalized_shape, zeros; or None.
    """

    def __init__(
        self,
        normalized_shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            value = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    weight: Parameter | None
    bias: Parameter | None

    def reset_parameters(self) -> None:
        """Ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """``out = input / sqrt(mean(input^2) + eps) * weight`` over the last axes.

    Args:
        normalized_shape: lengths of the last axes, or the length of the last one.
        eps: added to the mean of squares; the dtype's machine epsilon if None.
        elementwise_affine: whether there is a weight.
        device, dtype: of the weight; the defaults if None.

    Attributes:
        weight: normalized_shape, ones; or None.
    """

    def __init__(
        self,
        normalized_shape,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device=None,
        dtype: DType | None = None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        value = (
            Parameter(empty(self.normalized_shape, device=device, dtype=dtype))
            if elementwise_affine
            else None
        )
        self.register_parameter("weight", value)
        self.reset_parameters()

    weight: Parameter | None

    def reset_parameters(self) -> None:
        """Ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


__all__ = ["LayerNorm", "RMSNorm"]
