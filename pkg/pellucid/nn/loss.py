"""Losses of distances as functions: mse, l1, huber; and what all losses share.

`pellucid.nn.functional` exports them, modules/loss.py has them as modules.
"""

from __future__ import annotations

from ..autograd.edges import labelled
from ..errors import DTypeError, RangeError, ShapeError, warn
from ..op.arguments import number
from ..op.public import function
from ..ops.elementwise.losses import huber
from ..tensors.dtypes import bool_
from ..tensors.tensor import Tensor
from .older_reduction import takes_older

_REDUCTIONS = ("none", "mean", "sum")


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """All losses, their mean or their sum."""
    known(reduction)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _weighted(name: str, loss: Tensor, input: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """`reduced`, of losses times weights where there are some; their mean is one by weight."""
    if weight is None:
        return reduced(loss, reduction)
    same_shape(name, input, weight, what="weight")
    weighed = reduced(loss * weight, "sum" if reduction == "mean" else reduction)
    return weighed / weight.sum() if reduction == "mean" else weighed


def known(reduction: str) -> None:
    """Refuse a reduction that there is not."""
    if reduction not in _REDUCTIONS:
        raise RangeError(f"{reduction!r} is not a reduction. There are: {', '.join(_REDUCTIONS)}.")


def _real(name: str, *tensors: Tensor | None) -> None:
    for t in tensors:
        if t is not None and t.dtype.is_complex:
            raise DTypeError(f"{name}: takes no complex tensors. Work on real and imaginary parts.")


def no_integers(name: str, *tensors: Tensor) -> None:
    """Refuse integers and bools where PyTorch's kernel has none."""
    _real(name, *tensors)
    for t in tensors:
        if not t.dtype.is_floating_point:
            raise DTypeError(f"{name}: takes floating-point tensors, not {t.dtype}. Convert with .float().")


def same_shape(
    name: str, input: Tensor, target: Tensor, *factors: Tensor | None, what: str = "target"
) -> None:
    """Refuse another shape than the input's, and complex numbers."""
    _real(name, input, target, *factors)
    if tuple(input.shape) != tuple(target.shape):
        raise ShapeError(
            f"{name}: input has shape {tuple(input.shape)}, {what} {tuple(target.shape)}. They must be equal."
        )


def _broadcast(name: str, input: Tensor, target: Tensor) -> None:
    if tuple(input.shape) != tuple(target.shape):
        warn(
            f"{name}: input has shape {tuple(input.shape)}, target {tuple(target.shape)}; both are "
            "broadcast, which is rarely meant."
        )


def _numbers(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Bools as numbers of the other's type, which PyTorch takes in some losses."""
    if (input.dtype is bool_) is not (target.dtype is bool_):
        d = target.dtype if input.dtype is bool_ else input.dtype
        return input.to(d), target.to(d)
    return input, target


@function(exports="nn.functional", aten="mse_loss.default(self, target, reduction=1)")
@takes_older()
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """``(input - target)^2``.

    Args:
        input, target: same shape.
        reduction: "mean", "sum" or "none".
        weight: factors of the losses, by which the mean is weighted; shape of the input, or None.
    """
    _real("mse_loss", input, target)
    _broadcast("mse_loss", input, target)
    input, target = _numbers(input, target)
    loss = (input - target).square()
    return labelled("MseLossBackward0", _weighted("mse_loss", loss, input, weight, reduction))


@function(exports="nn.functional", aten="l1_loss.default(self, target, reduction=1)")
@takes_older()
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """``|input - target|``.

    Args:
        input, target: same shape.
        reduction: "mean", "sum" or "none".
        weight: factors of the losses, by which the mean is weighted; shape of the input, or None.
    """
    _broadcast("l1_loss", input, target)
    return _weighted("l1_loss", (input - target).abs(), input, weight, reduction)


@function(exports="nn.functional", aten="huber_loss.default(self, target, reduction=1, delta=1.0)")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """``d^2 / 2`` where ``d = |input - target|`` is below ``delta``, else ``delta * (d - delta / 2)``.

    Args:
        input, target: same shape.
        reduction: "mean", "sum" or "none".
        delta: positive.
        weight: factors of the losses, whose plain mean is taken; shape of the input, or None.
    """
    delta = number(delta, "huber_loss: delta")
    if not delta > 0:
        raise RangeError(f"huber_loss: delta must be positive, not {delta}.")
    no_integers("huber_loss", input)
    _broadcast("huber_loss", input, target)
    loss = huber(input, target, delta).to(input.dtype)
    if weight is not None:
        same_shape("huber_loss", input, weight, what="weight")
        loss = loss * weight
    return labelled("HuberLossBackward0", reduced(loss, reduction))


@function(exports="nn.functional")
@takes_older()
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """``d^2 / (2 beta)`` where ``d = |input - target|`` is below ``beta``, else ``d - beta / 2``.

    Args:
        input, target: same shape.
        reduction: "mean", "sum" or "none".
        beta: 0 gives `l1_loss`.
    """
    beta = number(beta, "smooth_l1_loss: beta")
    if not beta >= 0:
        raise RangeError(f"smooth_l1_loss: beta must not be negative, not {beta}.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    no_integers("smooth_l1_loss", input if input.dtype.kind in "fc" else target)
    _broadcast("smooth_l1_loss", input, target)
    return labelled("SmoothL1LossBackward0", reduced(huber(input, target, beta) / beta, reduction))
