"""First values of parameters: each function fills a tensor in place, outside the graph, and returns it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from math import ceil, prod, sqrt

import numpy as np

from ..autograd.grad_mode import unrecorded
from ..errors import RangeError, ShapeError
from ..ops.random.generator import Generator, default_generator, words
from ..tensors.absent import refuse_others
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": sqrt(2.0), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before a nonlinearity are larger, so that the variance stays.

    Args:
        nonlinearity: linear, sigmoid, tanh, relu, leaky_relu or selu.
        param: the slope of leaky_relu, 0.01 if None.

    Raises:
        ValueError: the nonlinearity has no known gain.

    Source: https://pytorch.org/docs/stable/nn.init.html#torch.nn.init.calculate_gain
    """
    if nonlinearity == "leaky_relu":
        return sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    try:
        return _GAINS[nonlinearity]
    except KeyError:
        known = ", ".join([*_GAINS, "leaky_relu"])
        raise RangeError(
            f"calculate_gain: no gain is known for {nonlinearity!r}. There are: {known}."
        ) from None


def fans(t: Tensor) -> tuple[int, int]:
    """(inputs, outputs) of one unit of a weight (out, in, *kernel).

    Raises:
        ShapeError: the tensor has fewer than two axes.
    """
    if t.dim() < 2:
        raise ShapeError(f"init: a tensor of shape {tuple(t.shape)} has no fan; it needs at least two axes.")
    outputs, inputs, *kernel = t.shape
    return inputs * prod(kernel), outputs * prod(kernel)


@unrecorded
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform from ``a`` to ``b``."""
    return tensor.uniform_(a, b, generator=generator)


@unrecorded
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Normal with this mean and standard deviation."""
    return tensor.normal_(mean, std, generator=generator)


@unrecorded
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal, restricted to ``[a, b]``: the inverse of the distribution function at uniform numbers."""
    from statistics import NormalDist

    unit = NormalDist()
    low, high = unit.cdf((a - mean) / std), unit.cdf((b - mean) / std)
    count = tensor.numel()
    uniform = (words(count, *(generator or default_generator).take(count)) + 0.5) * 2.0**-32
    inverse = np.vectorize(unit.inv_cdf, otypes=[np.float64])
    values = np.clip(inverse(low + (high - low) * uniform) * std + mean, a, b) if count else np.zeros(0)
    return _fill(tensor, values.reshape(tensor.shape))


@unrecorded
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value."""
    return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


@unrecorded
def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere.

    Raises:
        ShapeError: the tensor is not a matrix.
    """
    if tensor.dim() != 2:
        raise ShapeError(f"eye_: takes a matrix, not a tensor of shape {tuple(tensor.shape)}.")
    rows, columns = tensor.shape
    return _fill(tensor, np.eye(rows, columns))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform within ``gain * sqrt(6 / (fan_in + fan_out))``.

    Source: Glorot and Bengio 2010, equation 16
    """
    bound = gain * sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with the deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    Source: Glorot and Bengio 2010
    """
    return normal_(tensor, 0.0, gain * sqrt(2.0 / sum(fans(tensor))), generator)


# PyTorch's name of `fans`, which programs use although it is private.
_calculate_fan_in_and_fan_out = fans


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise RangeError(f"init: mode must be 'fan_in' or 'fan_out', not {mode!r}.")
    return fans(tensor)[mode == "fan_out"]


def _deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform within ``gain * sqrt(3 / fan)``.

    Args:
        tensor: (out, in, *kernel).
        a: slope of leaky_relu.
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
        nonlinearity: what follows; see `calculate_gain`.
        generator: the default one if None.

    Source: He et al. 2015, "Delving Deep into Rectifiers"
    """
    if 0 in tensor.shape:
        return tensor
    bound = sqrt(3.0) * _deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with the deviation ``gain / sqrt(fan)``; arguments as in `kaiming_uniform_`.

    Source: He et al. 2015, "Delving Deep into Rectifiers"
    """
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, _deviation(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Orthonormal rows or columns, whichever are fewer, times ``gain``; computed on the host.

    Raises:
        ShapeError: the tensor has fewer than two axes.

    Source: Saxe, McClelland and Ganguli 2013
    """
    from ..ops.random.distributions import randn

    if tensor.dim() < 2:
        raise ShapeError(
            f"orthogonal_: takes at least two axes, not a tensor of shape {tuple(tensor.shape)}."
        )
    rows, columns = tensor.shape[0], prod(tensor.shape[1:])
    flat = randn(max(rows, columns), min(rows, columns), device="cpu", generator=generator).numpy()
    q, r = np.linalg.qr(flat.astype(np.float64))
    q = q * np.sign(np.diag(r))
    return _fill(tensor, gain * (q.T if rows < columns else q).reshape(tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight (out, in, *kernel) that gives as many of its inputs as it can: 1 in the middle.

    Args:
        tensor: three to five axes.
        groups: each group of outputs begins with its first input.

    Raises:
        ShapeError: the number of axes differs, or the groups do not divide the outputs.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ShapeError(f"dirac_: takes three to five axes, not a tensor of shape {tuple(tensor.shape)}.")
    outputs, inputs, *kernel = tensor.shape
    if outputs % groups:
        raise ShapeError(f"dirac_: {groups} groups do not divide {outputs} outputs.")
    values = np.zeros(tuple(tensor.shape))
    for out in range(outputs):
        if (into := out % (outputs // groups)) < inputs:
            values[out, into, *[length // 2 for length in kernel]] = 1
    return _fill(tensor, values)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers, of which a share of each column is 0.

    Args:
        tensor: two axes.
        sparsity: the share, rounded up to whole rows.
        std: the deviation of the others.
        generator: the default one if None.

    Raises:
        ShapeError: the tensor has not two axes.

    Source: Martens 2010, "Deep learning via Hessian-free optimization"
    """
    from ..ops.random.distributions import rand, randn

    if tensor.dim() != 2:
        raise ShapeError(f"sparse_: takes two axes, not a tensor of shape {tuple(tensor.shape)}.")
    values = randn(*tensor.shape, device="cpu", generator=generator).numpy() * std
    order = rand(*tensor.shape, device="cpu", generator=generator).numpy().argsort(0)
    np.put_along_axis(values, order[: ceil(sparsity * tensor.shape[0])], 0, 0)
    return _fill(tensor, values)


@unrecorded
def _fill(target: Tensor, values: np.ndarray) -> Tensor:
    return target.copy_(tensor(values.astype(np.float32), device="cpu"))


def _older(name: str) -> Callable:
    """A form without underscore, which PyTorch gave up."""
    newer = globals()[f"{name}_"]

    @wraps(newer)
    def older(*args, **kwargs):
        warnings.warn(f"nn.init.{name} is deprecated. Use nn.init.{name}_.", FutureWarning, stacklevel=2)
        return newer(*args, **kwargs)

    older.__name__ = older.__qualname__ = name
    return older


globals().update({
    name: _older(name) for name in (
        "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse",
        "uniform", "xavier_normal", "xavier_uniform",
    )
})  # fmt: skip

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "fans", "kaiming_normal_", "kaiming_uniform_", "normal_",
    "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

refuse_others("torch.nn.init", globals())
