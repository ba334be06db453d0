"""Activations as modules. Most are one function with fixed arguments and are declared as such."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError, RangeError, ShapeError
from ...op.arguments import number
from ...op.public import copied_over
from ...ops.elementwise import activations, functions
from ...ops.shape.creation import full
from ...tensors.tensor import Tensor
from .. import functional
from ..parameter import Parameter
from .module import Configured, Module


class _Activation(Configured):
    """A function of one tensor and of settings, which the module shows."""

    _function: Callable[..., Tensor]

    def __init__(self, **settings: Any):
        if settings and type(self).__init__ is _Activation.__init__:
            raise ArgumentError(f"{type(self).__name__}(): there is no argument {next(iter(settings))!r}.")
        self._set(**settings)

    def forward(self, input: Tensor) -> Tensor:
        given = [getattr(self, name) for name in self._settings if name != "inplace"]
        function = type(self)._function
        return (copied_over(function) if getattr(self, "inplace", False) else function)(input, *given)

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self._settings]
        return ", ".join(text for text in shown if text != "inplace=False")


class _Plain(_Activation):
    """A function of one tensor."""

    _settings = ("inplace",)
    inplace: bool

    def __init__(self, inplace: bool = False):
        super().__init__(inplace=inplace)


class ReLU(_Plain):
    """``max(input, 0)``.

    Args:
        inplace: write the result over the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, self.inplace)


class ReLU6(_Plain):
    """``min(max(input, 0), 6)``."""

    _function = staticmethod(activations.relu6)


class SiLU(_Plain):
    """``input * sigmoid(input)``."""

    _function = staticmethod(activations.silu)


class SELU(_Plain):
    """`ELU` with the scales that keep mean 0 and variance 1."""

    _function = staticmethod(activations.selu)


class Mish(_Plain):
    """``input * tanh(softplus(input))``."""

    _function = staticmethod(activations.mish)


class Hardswish(_Plain):
    """``input * relu6(input + 3) / 6``."""

    _function = staticmethod(activations.hardswish)


class Hardsigmoid(_Plain):
    """``relu6(input + 3) / 6``."""

    _function = staticmethod(activations.hardsigmoid)


class Tanh(_Activation):
    """Hyperbolic tangent."""

    _function = staticmethod(functions.tanh)


class Sigmoid(_Activation):
    """``1 / (1 + exp(-input))``."""

    _function = staticmethod(functions.sigmoid)


class LogSigmoid(_Activation):
    """``log(sigmoid(input))``."""

    _function = staticmethod(activations.logsigmoid)


class Softsign(_Activation):
    """``input / (1 + |input|)``."""

    _function = staticmethod(activations.softsign)


class Tanhshrink(_Activation):
    """``input - tanh(input)``."""

    _function = staticmethod(activations.tanhshrink)


class GELU(_Activation):
    """``input * Phi(input)`` with the normal distribution function Phi.

    Args:
        approximate: "none", or "tanh" for the approximation by a hyperbolic tangent.
    """

    _function = staticmethod(activations.gelu)

    def __init__(self, approximate: str = "none"):
        super().__init__(approximate=approximate)


class LeakyReLU(_Activation):
    """``input`` where positive, else ``negative_slope * input``."""

    _function = staticmethod(activations.leaky_relu)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__(negative_slope=negative_slope, inplace=inplace)


class ELU(_Activation):
    """``input`` where positive, else ``alpha * (exp(input) - 1)``."""

    _function = staticmethod(activations.elu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class CELU(_Activation):
    """``input`` where positive, else ``alpha * (exp(input / alpha) - 1)``."""

    _function = staticmethod(activations.celu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__(alpha=alpha, inplace=inplace)


class Hardtanh(_Activation):
    """Values moved into ``[min_val, max_val]``."""

    _function = staticmethod(activations.hardtanh)

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        for old, value in (("min_value", min_value), ("max_value", max_value)):
            if value is not None:
                text = f"Hardtanh: {old} is now called {old[:-2]}. Use that."
                warnings.warn(text, FutureWarning, stacklevel=2)
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        min_val, max_val = number(min_val, "Hardtanh: min_val"), number(max_val, "Hardtanh: max_val")
        if min_val >= max_val:
            raise RangeError(f"Hardtanh: min_val {min_val} must be below max_val {max_val}.")
        super().__init__(min_val=min_val, max_val=max_val, inplace=inplace)


class Softplus(_Activation):
    """``log(1 + exp(beta * x)) / beta``, the input x itself where ``beta * x`` exceeds the threshold."""

    _function = staticmethod(activations.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__(beta=beta, threshold=threshold)


class Threshold(_Activation):
    """``input`` where it is above ``threshold``, else ``value``."""

    _function = staticmethod(activations.threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__(threshold=threshold, value=value, inplace=inplace)


class GLU(_Activation):
    """The first half along an axis times the sigmoid of the second."""

    _function = staticmethod(functional.glu)

    def __init__(self, dim: int = -1):
        super().__init__(dim=dim)


class _Shrink(_Activation):
    """A function of one tensor and the distance from 0 where it changes."""

    lambd: float

    def __init__(self, lambd: float = 0.5):
        super().__init__(lambd=lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """``input``, but 0 where it is at most ``lambd`` away from 0."""

    _function = staticmethod(activations.hardshrink)


class Softshrink(_Shrink):
    """``input`` moved toward 0 by ``lambd``, and 0 where that would pass it."""

    _function = staticmethod(activations.softshrink)


class RReLU(_Activation):
    """``input`` where positive, else ``input`` times a slope, which is random while training."""

    lower: float
    upper: float
    inplace: bool

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False):
        super().__init__(lower=lower, upper=upper, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    """``input`` where positive, else ``weight * input``.

    Args:
        num_parameters: of the weight: 1, or as many as channels.
        init: where it begins.
        device, dtype: of the weight.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(
            full((num_parameters,), float(number(init, "PReLU: init")), dtype=dtype, device=device)
        )

    def reset_parameters(self) -> None:
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return activations.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _Along(Module):
    """A function along an axis; without one along PyTorch's choice, with a warning."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Along):
    """``exp(x_i) / sum_j exp(x_j)`` along an axis.

    Args:
        dim: the axis.
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim, 5)


class LogSoftmax(_Along):
    """``x_i - log(sum_j exp(x_j))`` along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, self.dim, 5)


class Softmin(_Along):
    """`Softmax` of the negated input."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmin(input, self.dim, 5)


class Softmax2d(Module):
    """`Softmax` over the channels of images, (batch, channels, height, width) or without the batch."""

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ShapeError(f"Softmax2d: takes tensors of 3 or 4 axes, not shape {tuple(input.shape)}.")
        return functional.softmax(input, -3)


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]  # fmt: skip
