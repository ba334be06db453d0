"""Normalization by channel: batch, group and instance norm, and local response norm.

Compositions: rows that lie together are those of `layer_norm`, means over a batch are reductions.
"""

from __future__ import annotations

from math import prod

from ...autograd.composed import composed
from ...autograd.grad_mode import grad_enabled, unrecorded
from ...errors import DTypeError, ShapeError
from ...op.arguments import number
from ...op.public import function
from ...op.rules import fit_input
from ...tensors.dtypes import LARGEST_HALF
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..reduce.reductions import mean, sum
from ..shape.creation import empty
from ..shape.joining import cat
from .normalization import input_gradient, layer_norm


def _along(of_channels: Tensor, input: Tensor) -> Tensor:
    """Numbers of channels as factors of (batch, channels, ...)."""
    return of_channels.reshape(1, -1, *[1] * (input.dim() - 2))


def _others(input: Tensor) -> tuple[int, ...]:
    """All axes but that of channels."""
    return (0, *range(2, input.dim()))


def _checked(name: str, input: Tensor, *of_channels: Tensor | None) -> None:
    if not input.dtype.is_floating_point:
        raise DTypeError(f"{name}: the input is {input.dtype}, not floating point. Convert it with .float().")
    if input.dim() < 2:
        raise ShapeError(
            f"{name}: the input has shape {tuple(input.shape)}; it needs (batch, channels, ...)."
        )
    fit_input(input, *of_channels)
    for t in of_channels:
        if t is not None and tuple(t.shape) != (input.shape[1],):
            raise ShapeError(
                f"{name}: a weight, bias or statistic has shape {tuple(t.shape)}; the {input.shape[1]} "
                f"channels need ({input.shape[1]},)."
            )


def more_than_one(input: Tensor, what: str, dims: tuple[int, ...]) -> None:
    """Refuse to take a variance of one element."""
    count = prod(input.shape[d] for d in dims)
    if count == 1:
        raise ShapeError(
            f"expected more than 1 {what} when training, got input size {tuple(input.shape)}. Give more, or "
            "call eval() of the module."
        )


def _scale_of(centred: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    """One over the deviation."""
    return (mean(centred * centred, dims, True) + eps).rsqrt()


def _batch_grad(g, input, weight, middle, scale, eps):
    g = g if weight is None else g * _along(weight, input)
    if grad_enabled.get():  # to be differentiated again: what was found of the input depends on it
        return input_gradient(g, input, _others(input), eps, True)
    normal = (input - middle) * scale
    rest = g - normal * mean(g * normal, _others(input), True)
    return scale * (rest - mean(g, _others(input), True))


def _batch_weight_grad(g, input, middle, scale, eps):
    if grad_enabled.get():
        return sum(g * _of_batch(input, None, None, middle, scale, eps), _others(input))
    return sum(g * ((input - middle) * scale), _others(input))


@composed(
    name="batch_norm",
    input=_batch_grad,
    weight=_batch_weight_grad,
    bias=lambda g, input: sum(g, _others(input)),
)
def _of_batch(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, middle: Tensor, scale: Tensor, eps: float
) -> Tensor:
    """A batch with its own mean and deviation, which the derivative goes through."""
    out = (input - middle) * (scale if weight is None else scale * _along(weight, input))
    return out if bias is None else out + _along(bias, input)


@unrecorded
def _move(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """A running statistic goes a part of the way to what was found."""
    if running is not None:
        running.add_((found.to(running.dtype) - running) * momentum)


def _wide(t: Tensor | None) -> Tensor | None:
    """Halves in float32: their squares add up past what they hold."""
    return t.float() if t is not None and t.dtype in LARGEST_HALF else t


@function()
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm` with the arguments in ATen's order."""
    if not input.numel():  # as in PyTorch no statistic moves
        out = input if weight is None else input * weight[:1].squeeze()
        return out.clone() if bias is None else out + bias[:1].squeeze()
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@function()
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch norm, with the means and inverse deviations of the channels; without training these are empty.

    Args:
        input: (batch, channels, ...).
        weight, bias, running_mean, running_var: (channels,) or None.
        training: use the batch's statistics, and move the running ones by ``momentum``.
        momentum, eps: as in `nn.functional.batch_norm`.
    """
    name = "batch_norm"
    _checked(name, input, weight, bias, running_mean, running_var)
    eps = number(eps, f"{name}: eps")
    x, weight, bias = _wide(input), _wide(weight), _wide(bias)
    assert x is not None
    if not training:
        if running_mean is None or running_var is None:
            raise ShapeError(f"{name}: without training it needs running_mean and running_var.")
        scale = (_along(running_var.detach(), x).to(x.dtype) + eps).rsqrt()
        factor = scale if weight is None else scale * _along(weight, x)
        out = (x - _along(running_mean.detach(), x).to(x.dtype)) * factor
        out = out if bias is None else out + _along(bias, x)
        nothing = empty(0, device=input.device, dtype=x.dtype)
        return out.to(input.dtype), nothing, nothing
    dims = _others(x)
    with unrecorded():
        middle = mean(x, dims, True)
        centred = x - middle
        variance = mean(centred * centred, dims, True)
        scale = (variance + eps).rsqrt()
    count = prod(x.shape[d] for d in dims)
    _move(running_mean, middle.reshape(-1), momentum)
    _move(running_var, variance.reshape(-1) * (count / max(count - 1, 1)), momentum)
    out = _of_batch(x, weight, bias, middle, scale, eps)
    return out.to(input.dtype), middle.reshape(-1), scale.reshape(-1)


@function(
    aten="group_norm.default(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True)",
    node="NativeGroupNorm",
)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`layer_norm` over the channels of a group and all axes behind them, with a weight and bias by channel.

    Args:
        input: (batch, channels, ...).
        num_groups: how many groups the channels are cut into.
        weight, bias: (channels,) or None.
        eps: added to the variance.
        cudnn_enabled: accepted for PyTorch's sake.

    Raises:
        ShapeError: the channels are not a multiple of ``num_groups``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.group_norm.html; Wu and He 2018
    """
    _checked("group_norm", input, weight, bias)
    num_groups = index(num_groups, "group_norm: num_groups")
    if num_groups < 1 or input.shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: {input.shape[1]} channels are not a multiple of num_groups {num_groups}."
        )
    return _of_groups(input, num_groups, weight, bias, eps)


def _of_groups(input: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    columns = prod(input.shape[1:]) // groups
    rows = input.reshape(input.shape[0], groups, columns)
    out = layer_norm(rows, (columns,), None, None, eps).reshape(input.shape)
    out = out if weight is None else out * _along(weight, input)
    out = out if bias is None else out + _along(bias, input)
    return out.to(input.dtype)


@function()
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, with the means and inverse deviations of the groups.

    Args:
        input: N * C * HxW elements, (batch, channels, ...).
        weight, bias: (channels,) or None.
        N, C, HxW: batch, channels, and the product of the other axes.
        group: how many groups.
        eps: added to the variance.
    """
    rows = input.reshape(N, group, C // max(group, 1) * HxW)
    middle = mean(rows, -1, True)
    return (
        group_norm(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape),
        middle.squeeze(-1),
        _scale_of(rows - middle, (-1,), eps).squeeze(-1),
    )


@function()
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Every channel of every member of the batch with its own mean and variance.

    Args:
        input: (batch, channels, ...).
        weight, bias, running_mean, running_var: (channels,) or None.
        use_input_stats: use the input's statistics, and move the running ones by ``momentum``; else use the
            running ones.
        momentum: how far the running statistics move, from 0 to 1.
        eps: added to the variance.
        cudnn_enabled: accepted for PyTorch's sake.
    """
    if not use_input_stats:
        return native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)[0]
    _checked("instance_norm", input, weight, bias, running_mean, running_var)
    if running_mean is not None or running_var is not None:
        with unrecorded():
            x, dims = _wide(input), tuple(range(2, input.dim()))
            assert x is not None
            middle = mean(x, dims, True)
            centred, count = x - middle, prod(x.shape[2:])
            variance = mean(centred * centred, (0, *dims)) * (count / max(count - 1, 1))
            _move(running_mean, mean(x, (0, *dims)), momentum)
            _move(running_var, variance, momentum)
    return _of_groups(input, input.shape[1], weight, bias, eps)


@function(exports="nn.functional", ours="PyTorch computes it by padding, pooling and powers, in Python")
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """``input / (k + alpha * mean(input^2 over size neighbouring channels))^beta``.

    Args:
        input: (batch, channels, ...).
        size: how many channels; those past the ends are 0.
        alpha, beta, k: numbers.
    """
    if input.dim() < 3:
        raise ShapeError(
            f"local_response_norm: the input has shape {tuple(input.shape)}; it needs three axes or more."
        )
    size, shape = index(size, "local_response_norm: size"), input.shape
    if not input.numel():
        return input  # also of integers, as PyTorch does
    squares = input * input
    # Past the ends are zeros: of a window that reaches further, no more than all channels are made.
    ends = [min(n, shape[1]) for n in (size // 2, (size - 1) // 2)]
    before, after = (squares.new_zeros((shape[0], n, *shape[2:])) for n in ends)
    sums = cat([before, squares, after], 1).unfold(1, ends[0] + ends[1] + 1, 1).sum(-1)
    return input / (sums * (alpha / size) + k) ** beta


@function()
def native_layer_norm(
    input: Tensor, normalized_shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, with the means and inverse deviations of the rows."""
    normalized_shape = tuple(normalized_shape)
    dims = tuple(range(-len(normalized_shape), 0))
    out = layer_norm(input, normalized_shape, weight, bias, eps)
    with unrecorded():
        middle = mean(input, dims, True)
        return out, middle, _scale_of(input - middle, dims, eps)
