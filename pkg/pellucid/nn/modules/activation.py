"""Activations as modules. Most are one function with fixed arguments and are declared as such."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import RangeError
from ...op.arguments import number
from ...ops.elementwise import activations, functions
from ...tensors.tensor import Tensor
from .. import functional
from .module import Module


class _Plain(Module):
    """A function of one tensor."""

    _function: Callable[[Tensor], Tensor]

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        out = type(self)._function(input)
        return input.copy_(out) if self.inplace else out

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Plain):
    """``max(input, 0)``.

    Args:
        inplace: write the result over the input.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.ReLU.html
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, self.inplace)


class ReLU6(_Plain):
    """``min(max(input, 0), 6)``."""

    _function = staticmethod(activations.relu6)


class SiLU(_Plain):
    """``input * sigmoid(input)``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.SiLU.html
    """

    _function = staticmethod(activations.silu)


class Mish(_Plain):
    """``input * tanh(softplus(input))``."""

    _function = staticmethod(activations.mish)


class Hardswish(_Plain):
    """``input * relu6(input + 3) / 6``."""

    _function = staticmethod(activations.hardswish)


class Hardsigmoid(_Plain):
    """``relu6(input + 3) / 6``."""

    _function = staticmethod(activations.hardsigmoid)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.tanh(input)


class Sigmoid(Module):
    """``1 / (1 + exp(-input))``."""

    def forward(self, input: Tensor) -> Tensor:
        return functions.sigmoid(input)


class LogSigmoid(Module):
    """``log(sigmoid(input))``."""

    def forward(self, input: Tensor) -> Tensor:
        return activations.logsigmoid(input)


class Softsign(Module):
    """``input / (1 + |input|)``."""

    def forward(self, input: Tensor) -> Tensor:
        return activations.softsign(input)


class GELU(Module):
    """``input * Phi(input)`` with the normal distribution function Phi.

    Args:
        approximate: "none", or "tanh" for the approximation by a hyperbolic tangent.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.GELU.html
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return activations.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class LeakyReLU(Module):
    """``input`` where positive, else ``negative_slope * input``."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        out = activations.leaky_relu(input, self.negative_slope)
        return input.copy_(out) if self.inplace else out

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """``input`` where positive, else ``alpha * (exp(input) - 1)``."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        out = activations.elu(input, self.alpha)
        return input.copy_(out) if self.inplace else out

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Hardtanh(Module):
    """Values moved into ``[min_val, max_val]``."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__()
        self.min_val = number(min_val, "Hardtanh: min_val")
        self.max_val = number(max_val, "Hardtanh: max_val")
        if min_val >= max_val:
            raise RangeError(f"Hardtanh: min_val {min_val} must be below max_val {max_val}.")
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        out = activations.hardtanh(input, self.min_val, self.max_val)
        return input.copy_(out) if self.inplace else out

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``, the input x itself where ``beta * x`` exceeds the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return activations.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class GLU(Module):
    """The first half along an axis times the sigmoid of the second."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _Along(Module):
    """A function along an axis that must be named."""

    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Along):
    """``exp(x_i) / sum_j exp(x_j)`` along an axis.

    Args:
        dim: the axis.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.Softmax.html
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim)


class LogSoftmax(_Along):
    """``x_i - log(sum_j exp(x_j))`` along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, self.dim)


class Softmin(_Along):
    """`Softmax` of the negated input."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmin(input, self.dim)


__all__ = [
    "ELU", "GELU", "GLU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax",
    "Mish", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus", "Softsign", "Tanh",
]  # fmt: skip
