"""What training loops do to the gradients and parameters of a whole model. PyTorch's ``torch.nn.utils``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...autograd import no_grad
from ...device import get_default_device
from ...errors import ArgumentError, GradientError, ShapeError
from ...op.arguments import describe, number
from ...ops.linalg.norms import norm
from ...ops.shape.joining import cat, stack
from ...tensors.absent import refuse_others
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import fusion, parametrizations, parametrize, prune, rnn, stateless
from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from .parametrizations import older_spectral_norm as spectral_norm
from .parametrizations import older_weight_norm as weight_norm
from .parametrizations import remove_spectral_norm, remove_weight_norm


def _gradients(name: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    if not isinstance(parameters, Iterable):
        raise ArgumentError(f"{name}: takes a tensor or several, not {describe(parameters)}")
    found = list(parameters)
    for p in found:
        if not isinstance(p, Tensor):
            raise ArgumentError(f"{name}: takes tensors, not {describe(p)}")
    return [p.grad for p in found if p.grad is not None]


@no_grad
def get_total_norm(
    tensors: Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector.

    Args:
        tensors: of any shapes.
        norm_type: the order of the norm.
        error_if_nonfinite: raise what says that the norm is not finite.
        foreach: accepted for PyTorch's sake.

    Raises:
        GradientError: with ``error_if_nonfinite``, the norm is not finite; waits for the device.
    """
    parts = [norm(t, norm_type) for t in tensors]
    if not parts:
        return tensor(0.0)
    total = norm(stack([part.to(parts[0].device) for part in parts]), norm_type)
    if error_if_nonfinite and not total.isfinite().item():
        raise GradientError(
            f"clip_grad_norm_: the total norm is {total.item()}. Pass error_if_nonfinite=False to go on."
        )
    return total


@no_grad
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients down together, so that their norm as one vector is at most ``max_norm``.

    Args:
        parameters: whose gradients; None counts for nothing.
        max_norm: the bound.
        norm_type: order of the norm; ``float("inf")`` is the largest magnitude.
        error_if_nonfinite: refuse a norm that is not finite, which waits for the device.

    Returns:
        The norm before, a tensor without axes.

    Raises:
        GradientError: the norm is not finite.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
    """
    max_norm = number(max_norm, "clip_grad_norm_: max_norm")
    grads = _gradients("clip_grad_norm_", parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    _scale(grads, max_norm, total)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """`clip_grad_norm_`, under its older name."""
    return clip_grad_norm_(*args, **kwargs)


def _scale(grads: list[Tensor], max_norm: float, total: Tensor) -> None:
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for g in grads:
        g.mul_(factor.to(g.device))


@no_grad
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients down together, by a norm that is known: `get_total_norm` gave it.

    Args:
        parameters: whose gradients.
        max_norm: the bound.
        total_norm: the norm.
        foreach: without effect.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grads_with_norm_.html
    """
    where = "clip_grads_with_norm_"
    _scale(_gradients(where, parameters), number(max_norm, f"{where}: max_norm"), total_norm)


@no_grad
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Move every element of every gradient into ``[-clip_value, clip_value]``.

    Args:
        parameters: whose gradients; None counts for nothing.
        clip_value: the bound.
        foreach: accepted for PyTorch's sake.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_value_.html
    """
    clip_value = number(clip_value, "clip_grad_value_: clip_value")
    for g in _gradients("clip_grad_value_", parameters):
        g.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters one after the other in one vector."""
    return cat([p.reshape(-1) for p in parameters])


@no_grad
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Overwrite parameters with consecutive parts of a vector.

    Raises:
        ShapeError: the vector's length is not theirs together.
    """
    parameters = list(parameters)
    count = sum(p.numel() for p in parameters)
    if tuple(vec.shape) != (count,):
        raise ShapeError(
            f"vector_to_parameters: the parameters have {count} elements, the vector has shape "
            f"{tuple(vec.shape)}."
        )
    start = 0
    for p in parameters:
        p.copy_(vec[start : start + p.numel()].reshape(tuple(p.shape)))
        start += p.numel()


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay the weights of two-dimensional convolutions out in a memory format; returns the module.

    Args:
        module: with its children.
        memory_format: such as ``torch.channels_last``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.convert_conv2d_weight_memory_format.html
    """
    return _laid_out(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay the weights of three-dimensional convolutions out in a memory format; returns the module.

    Args:
        module: with its children.
        memory_format: such as ``torch.channels_last_3d``.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.convert_conv3d_weight_memory_format.html
    """
    return _laid_out(module, (Conv3d, ConvTranspose3d), memory_format)


def _laid_out(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for m in module.modules():
        if isinstance(m, kinds):
            weight: Any = vars(m)["weight"]
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Make a module without drawing its first values.

    Args:
        module_cls: its class.
        args, kwargs: its arguments; ``device`` is where the parameters will be.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.utils.skip_init.html
    """
    device = kwargs.pop("device", get_default_device())
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "fusion",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

refuse_others("torch.nn.utils", globals())
