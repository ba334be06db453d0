"""Losses of probabilities as functions: nll, cross entropy of classes and of two, divergence of Kullback and
Leibler."""

from __future__ import annotations

from collections.abc import Callable

from ..autograd.composed import composed
from ..autograd.edges import labelled
from ..errors import DTypeError, RangeError, ShapeError
from ..op.arguments import boolean, number
from ..op.public import function
from ..ops.elementwise.activations import logsigmoid, softplus
from ..ops.elementwise.losses import bernoulli, divergence
from ..ops.index.gather import gather
from ..ops.norm.softmax import log_share, log_softmax
from ..tensors.dtypes import bool_
from ..tensors.shape import index
from ..tensors.tensor import Tensor
from .loss import no_integers, reduced, same_shape
from .older_reduction import takes_older

_ATEN = "self, target, weight=None, reduction=1, ignore_index=-100"


def _class_axis(name: str, input: Tensor, target: Tensor) -> int:
    if input.dim() == 0:
        raise ShapeError(f"{name}: input needs an axis of classes; its shape is ().")
    k = 0 if input.dim() == 1 else 1
    expected = tuple(n for axis, n in enumerate(input.shape) if axis != k)
    if tuple(target.shape) != expected:
        raise ShapeError(
            f"{name}: input has shape {tuple(input.shape)}, target {tuple(target.shape)}; class "
            f"indices must have shape {expected}."
        )
    return k


@function(exports="nn.functional", aten=(f"nll_loss.default({_ATEN})", f"nll_loss_nd.default({_ATEN})"))
@takes_older("ignore_index")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """``-weight[target] * input[target]``; the mean is divided by the sum of the weights.

    Args:
        input: (classes,), or (batch, classes, ...): log probabilities.
        target: integers, the shape of the input without the axis of classes.
        weight: (classes,) or None.
        ignore_index: targets of this value count for nothing.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: the shapes do not fit.
        IndexError: a target is not a class; raised by the next read.
    """
    k = _class_axis("nll_loss", input, target)
    return _of_classes(lambda safe: _picked(input, k, safe), input, target, weight, ignore_index, reduction)


def _picked(input: Tensor, k: int, places: Tensor) -> Tensor:
    """The elements of an axis at one place of each line."""
    return gather(input, k, places.unsqueeze(k)).squeeze(k)


def _of_classes(
    pick: Callable[[Tensor], Tensor],
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    """`nll_loss`, of what ``pick`` says that targets which are classes have."""
    # Of any width, where PyTorch takes int64 and uint8: numpy's integers have 32 bits in a page.
    if not target.dtype.is_integer:
        raise DTypeError(
            f"nll_loss: target is {target.dtype}; class indices must be integers. Convert them with .long()."
        )
    ignored = target == index(ignore_index, "ignore_index")
    safe = target.masked_fill(ignored, 0)
    picked = -pick(safe)
    if weight is None:
        factor = ignored.logical_not().to(input.dtype)
    else:
        factor = gather(weight, 0, safe.reshape(-1)).reshape(tuple(target.shape)).masked_fill(ignored, 0.0)
    loss = (picked * factor if weight is not None else picked).masked_fill(ignored, 0.0)
    out = loss.sum() / factor.sum() if reduction == "mean" else reduced(loss, reduction)
    return labelled("NllLossBackward0" if input.dim() < 3 else "NllLoss2DBackward0", out)


@function(exports="nn.functional", aten=f"cross_entropy_loss.default({_ATEN}, label_smoothing=0.0)")
@takes_older("ignore_index")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """``-sum_c target_c * log_softmax(input)_c``.

    Args:
        input: (classes,), or (batch, classes, ...): logits.
        target: class indices, the shape of the input without the axis of classes; or probabilities of the
            input's shape.
        weight: (classes,) or None.
        ignore_index: class indices of this value count for nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: share of the target that is spread over all classes, 0 to 1.

    Raises:
        ShapeError: the shapes do not fit.
        IndexError: a target is not a class; raised by the next read.

    Example:
        >>> import pellucid as torch
        >>> logits = torch.zeros(2, 4, device="cpu")
        >>> round(torch.nn.functional.cross_entropy(logits, torch.tensor([0, 3], device="cpu")).item(), 4)
        1.3863
    """
    label_smoothing = number(label_smoothing, "cross_entropy: label_smoothing")
    if not 0 <= label_smoothing <= 1:
        raise RangeError(f"cross_entropy: label_smoothing must lie between 0 and 1, not {label_smoothing}.")
    k = 0 if input.dim() == 1 else 1
    if target.dtype.is_floating_point:
        return _with_probabilities(input, target, weight, reduction, label_smoothing, k)
    if not label_smoothing and _is_read_once(input):
        k = _class_axis("nll_loss", input, target)

        def pick(safe: Tensor) -> Tensor:
            return log_share(_picked(input, k, safe), input, k)

        return _of_classes(pick, input, target, weight, ignore_index, reduction)
    logs = log_softmax(input, k)
    loss = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if not label_smoothing:
        return loss
    ignored = target == index(ignore_index, "ignore_index")
    by_class = _along(weight, input, k)
    smooth = -(logs if by_class is None else logs * by_class).sum(k).masked_fill(ignored, 0.0)
    if reduction == "mean":
        if weight is None:
            total = ignored.logical_not().to(input.dtype).sum()
        else:
            picked = gather(weight, 0, target.masked_fill(ignored, 0).reshape(-1)).reshape(
                tuple(target.shape)
            )
            total = picked.masked_fill(ignored, 0.0).sum()
        smooth = smooth.sum() / total
    else:
        smooth = reduced(smooth, reduction)
    share = label_smoothing / input.shape[k]
    return loss * (1 - label_smoothing) + smooth * share


def _is_read_once(input: Tensor) -> bool:
    """Whether no derivative asks for the logarithms of all classes."""
    is_plain = input._node is None and not getattr(input, "is_batched", False)
    return is_plain and input.dtype.is_floating_point and input.device.type == "webgpu"


def _along(weight: Tensor | None, input: Tensor, k: int) -> Tensor | None:
    return (
        None
        if weight is None
        else weight.reshape(tuple(-1 if axis == k else 1 for axis in range(input.dim())))
    )


def _with_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float, k: int
) -> Tensor:
    same_shape("cross_entropy", input, target)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[k]
    by_class = _along(weight, input, k)
    loss = log_softmax(input, k) * target
    loss = -(loss if by_class is None else loss * by_class).sum(k)
    if reduction == "mean":
        return loss.sum() / max(loss.numel(), 1)
    return reduced(loss, reduction)


@function(exports="nn.functional")
@takes_older()
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, logarithms not below -100.

    Args:
        input: probabilities.
        target: same shape, 0 to 1.
        weight: factors that broadcast to the losses, or None.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: the shapes differ.
        RangeError: on the cpu device, something is not between 0 and 1. On webgpu nothing waits for values:
            an input that is no probability gives NaN.
    """
    same_shape("binary_cross_entropy", input, target, weight)
    loss = bernoulli(input, target)
    loss = reduced(loss if weight is None else loss * weight, reduction)
    return labelled("BinaryCrossEntropyBackward0", loss)


def _logistic_grad(g, input, target, pos_weight):
    if pos_weight is None:
        return g * (input.sigmoid() - target)
    positive = pos_weight * target
    return g * ((positive + 1 - target) * input.sigmoid() - positive)


def _logistic_grad_target(g, input, pos_weight):
    return g * (-input if pos_weight is None else logsigmoid(-input) - pos_weight * logsigmoid(input))


@composed(
    name="binary_cross_entropy_with_logits",
    input=_logistic_grad,
    target=_logistic_grad_target,
    pos_weight=lambda g, input, target: g * target * softplus(-input),
)
def _logistic(input: Tensor, target: Tensor, pos_weight: Tensor | None) -> Tensor:
    # log(1 + exp(-x)) by softplus of -x; its linear part from 20 on is exact in float32.
    negative = softplus(-input)
    if pos_weight is None:
        return (1 - target) * input + negative
    return (1 - target) * input + ((pos_weight - 1) * target + 1) * negative


@function(
    exports="nn.functional",
    aten="binary_cross_entropy_with_logits.default(self, target, weight=None, pos_weight=None, reduction=1)",
)
@takes_older()
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of ``sigmoid(input)``, without overflow.

    Args:
        input: logits.
        target: same shape, 0 to 1.
        weight: factors that broadcast to the losses, or None.
        reduction: "mean", "sum" or "none".
        pos_weight: factors of the positive targets, broadcast to the input, or None.

    Raises:
        ShapeError: the shapes differ.
    """
    same_shape("binary_cross_entropy_with_logits", input, target, weight, pos_weight)
    no_integers("binary_cross_entropy_with_logits", input if target.dtype is bool_ else target)
    loss = _logistic(input, target, pos_weight)
    loss = loss if target.dtype is bool_ else loss.to(target.dtype)
    loss = reduced(loss if weight is None else loss * weight, reduction)
    return labelled("BinaryCrossEntropyWithLogitsBackward0", loss)


@function(exports="nn.functional")
@takes_older()
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """``target * (log(target) - input)``, where ``0 * log(0)`` is 0.

    Args:
        input: log probabilities.
        target: probabilities, or their logarithms with ``log_target``.
        reduction: "batchmean" (the mathematical definition), "mean", "sum" or "none".
        log_target: what the target is.
    """
    no_integers("kl_div", input, target)
    is_log = boolean(log_target, "log_target")
    loss = target.exp() * (target - input) if is_log else labelled("SubBackward0", divergence(input, target))
    count = input.shape[0] if input.dim() else 1
    return loss.sum() / count if reduction == "batchmean" else reduced(loss, reduction)
