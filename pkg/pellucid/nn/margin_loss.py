"""Losses of margins, pairs and likelihoods as functions, each written as what it is before the reduction."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from ..autograd.composed import composed
from ..errors import DimensionError, DTypeError, RangeError, ShapeError
from ..op.arguments import number, wrong
from ..op.public import function
from ..ops.elementwise.activations import logsigmoid
from ..ops.elementwise.comparison import where
from ..ops.index.gather import gather
from ..ops.linalg.norms import norm
from ..ops.shape.creation import arange, full_like
from ..tensors.dtypes import bool_, int64
from ..tensors.shape import broadcast_shapes
from ..tensors.tensor import Tensor
from .loss import known, no_integers, reduced
from .older_reduction import takes_older

_PYTHON = "PyTorch composes it in Python"


def _loss(*, ours: str = "", older: str = "reduce", node: str = "") -> Callable[[Callable[..., Tensor]], Any]:
    """Declare a loss for `nn.functional`: the last argument is ``reduction``.

    Args:
        ours: why it is no operator of ATen.
        older: where `takes_older` puts ``size_average``; empty where PyTorch's never took it.
        node: what PyTorch calls its one node.
    """

    def declare(one_by_one: Callable[..., Tensor]) -> Any:
        own = inspect.signature(one_by_one)
        last = inspect.Parameter(
            "reduction", inspect.Parameter.POSITIONAL_OR_KEYWORD, default="mean", annotation="str"
        )
        names = list(own.parameters.values())
        keyword = [p for p in names if p.kind is p.KEYWORD_ONLY]
        if keyword:
            last = last.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        signature = own.replace(parameters=[*names, last])

        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            how = bound.arguments.pop("reduction")
            known(how)
            return reduced(one_by_one(*bound.args, **bound.kwargs), how)

        loss: Any = functools.wraps(one_by_one)(call)
        loss.__signature__ = signature
        whole = takes_older(older)(loss) if older else loss
        return function(exports="nn.functional", ours=ours, node=node)(whole)

    return declare


def _same_axes(name: str, **tensors: Tensor) -> None:
    if len({t.dim() for t in tensors.values()}) > 1:
        shapes = ", ".join(f"{n} {tuple(t.shape)}" for n, t in tensors.items())
        raise ShapeError(f"{name}: shapes must have equally many axes, but are {shapes}.")


@_loss(node="SoftMarginLoss")
def soft_margin_loss(input: Tensor, target: Tensor) -> Tensor:
    """``log(1 + exp(-target * input))``."""
    no_integers("soft_margin_loss", input)
    target = target.to(input.dtype) if target.dtype is bool_ else target
    if broadcast_shapes(input.shape, target.shape) != input.shape:
        raise ShapeError(
            f"soft_margin_loss: the target's shape {tuple(target.shape)} does not broadcast to the input's, "
            f"{tuple(input.shape)}."
        )
    return (-target * input).exp().log1p().to(input.dtype)


@_loss()
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0) -> Tensor:
    """``input`` where the target is 1, ``max(0, margin - input)`` where it is -1."""
    apart = where(target != 1, (margin - input).clamp_min(0), 0.0)
    return apart + where(target != -1, input, 0.0)


@_loss()
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0) -> Tensor:
    """``max(0, margin - target * (input1 - input2))``."""
    _same_axes("margin_ranking_loss", input1=input1, input2=input2, target=target)
    return (-target * (input1 - input2) + margin).clamp_min(0)


@_loss()
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0) -> Tensor:
    """``1 - cos(input1, input2)`` where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Args:
        input1, input2: (batch, length) or (length,).
        target: (batch,) or ().
        margin: -1 to 1.
    """
    if target.dim() > 1 or input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise ShapeError(
            f"cosine_embedding_loss: target has shape {tuple(target.shape)}, the inputs "
            f"{tuple(input1.shape)} and {tuple(input2.shape)}; they must have one axis more."
        )
    sizes = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = (input1 * input2).sum(-1) / sizes.sqrt()
    return where(target == 1, 1 - cosine, 0.0) + where(target == -1, (cosine - margin).clamp_min(0), 0.0)


@composed(name="clamp", variance=lambda g: g)
def _no_less(variance: Tensor, eps: float) -> Tensor:
    """The larger of the two; to the derivative it is always the variance."""
    return variance.clamp(min=eps)


@_loss(ours=_PYTHON, older="")
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6
) -> Tensor:
    """``(log(var) + (input - target)^2 / var) / 2``.

    Args:
        input: means.
        target: samples.
        var: variances, of the input's shape, with 1 for one axis, or without the last; negative ones are
            not refused, since that would wait for the device.
        full: add ``log(2 pi) / 2``.
        eps: the least variance.
    """
    if isinstance(var, Tensor):
        spread = var
    elif var >= 0:
        spread = full_like(input, var)
    else:
        raise RangeError(f"gaussian_nll_loss: var must not be negative, but is {var}.")
    shape = tuple(input.shape)
    others = [n for n, m in zip(spread.shape, shape) if n != m]
    if tuple(spread.shape) == shape[:-1]:
        spread = spread.unsqueeze(-1)
    elif spread.dim() != len(shape) or others not in ([], [1]):
        raise ShapeError(f"gaussian_nll_loss: var has shape {tuple(spread.shape)}, input {shape}.")
    spread = _no_less(spread, eps)
    found = 0.5 * (spread.log() + (input - target).square() / spread)
    return found + 0.5 * math.log(2 * math.pi) if full else found


@_loss(older="eps")
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8
) -> Tensor:
    """``exp(input) - target * input``; without ``log_input`` ``input - target * log(input + eps)``.

    Args:
        input: rates, or their logarithms.
        target: counts.
        log_input: what the input is.
        full: add Stirling's approximation of the logarithm of the factorial.
        eps: added where a logarithm is taken.
    """
    eps = number(eps, "poisson_nll_loss: eps")
    found = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if not full:
        return found
    factorial = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
    return found + factorial.masked_fill(target <= 1, 0.0)


def _rows(name: str, input: Tensor, target: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    """Scores and targets with a batch in front."""
    if input.dim() == 0:
        input, target = input.unsqueeze(0), target if axes else target.reshape(-1)
    if input.dim() not in (1, 2) or target.dim() != input.dim() + axes:
        raise ShapeError(f"{name}: input has shape {tuple(input.shape)}, target {tuple(target.shape)}.")
    if target.dtype is not int64:
        raise DTypeError(f"{name}: target is {target.dtype}, not int64. Convert it with .long().")
    return (input, target) if input.dim() == 2 else (input.unsqueeze(0), target.unsqueeze(0))


@_loss(node="MultiMarginLoss")
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """The mean over classes of ``max(0, margin - input[target] + input[i])^p``, but of the target itself.

    Args:
        input: (batch, classes) or (classes,).
        target: class indices, (batch,) or (), of one input also (1,).
        p: 1 or 2.
        margin: by which the target's score should be the largest.
        weight: (classes,) or None.

    Raises:
        ShapeError: shapes do not fit.
        DTypeError: the target is not int64.
        RangeError: another p.
    """
    if p not in (1, 2):
        raise RangeError(f"multi_margin_loss: p must be 1 or 2, not {p}.")
    if input.dim() == 1 and tuple(target.shape) == (1,):
        input = input.unsqueeze(0)
    count = input.shape[-1] if input.dim() else 1
    if weight is not None and tuple(weight.shape) != (count,):
        raise ShapeError(
            f"multi_margin_loss: weight has shape {tuple(weight.shape)}; it must have {(count,)}."
        )
    rows, classes = _rows("multi_margin_loss", input, target, -1)
    place = classes.unsqueeze(1)
    lost = (margin - gather(rows, 1, place) + rows).clamp_min(0)
    lost = lost if p == 1 else lost.square()
    if weight is not None:
        lost = lost * gather(weight, 0, classes).unsqueeze(1)
    own = arange(rows.shape[1], device=rows.device) == place
    found = lost.masked_fill(own, 0.0).sum(1) / rows.shape[1]
    return found if input.dim() == 2 else found.squeeze(0)


@_loss(node="MultilabelMarginLoss")
def multilabel_margin_loss(input: Tensor, target: Tensor) -> Tensor:
    """The sum over targets and other classes of ``max(0, 1 - input[target] + input[i])``, over the classes.

    Args:
        input: (batch, classes) or (classes,).
        target: class indices of the same shape; those before the first -1 count.
    """
    rows, classes = _rows("multilabel_margin_loss", input, target, 0)
    if rows.shape != classes.shape:
        shape = tuple(target.shape)
        raise ShapeError(f"multilabel_margin_loss: target has shape {shape}, the input {tuple(input.shape)}.")
    counts = (classes < 0).cumsum(1) == 0
    safe = classes.masked_fill(counts.logical_not(), 0)
    is_target = (counts.unsqueeze(2) & (safe.unsqueeze(2) == arange(rows.shape[1], device=rows.device))).any(
        1
    )
    lost = (1 - gather(rows, 1, safe).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    found = where(counts.unsqueeze(2) & is_target.logical_not().unsqueeze(1), lost, 0.0)
    found = found.sum((1, 2)) / rows.shape[1]
    return found if input.dim() == 2 else found.squeeze(0)


@_loss(ours=_PYTHON)
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """The mean over the last axis of the cross entropies of single classes, by logits."""
    if not input.dim():
        raise DimensionError("multilabel_soft_margin_loss: an input without axes has no classes.")
    found = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    found = found if weight is None else found * weight
    # PyTorch counts the input's axes, also where the target has more.
    return found.sum(input.dim() - 1) / input.shape[-1]


@function(exports="nn.functional")
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The norm of ``x1 - x2 + eps`` over the last axis."""
    return norm(x1 - x2 + eps, p, -1, keepdim)


def _triplet(name, anchor, positive, negative, distance: Any, margin, swap) -> Tensor:
    margin, is_function = number(margin, f"{name}: margin"), callable(distance)
    if not is_function:
        raise wrong(f"{name}: distance_function", "a function", distance)
    if not margin > 0:
        raise RangeError(f"{name}: margin must be greater than 0, not {margin}.")
    _same_axes(name, anchor=anchor, positive=positive, negative=negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return (margin + near - far).clamp_min(0)


@_loss()
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
) -> Tensor:
    """``max(0, margin + d(anchor, positive) - d(anchor, negative))`` with `pairwise_distance` as d.

    Args:
        anchor, positive, negative: (batch, length) or (length,).
        margin: by which the negative should lie farther.
        p, eps: of the distance.
        swap: take the distance between positive and negative where that is smaller.
    """

    def distance(a, b):
        return pairwise_distance(a, b, p, eps)

    return _triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap)


@_loss(ours=_PYTHON, older="")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable | None = None,
    margin: float = 1.0,
    swap: bool = False,
) -> Tensor:
    """`triplet_margin_loss` with any distance, a function of two tensors."""
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet("triplet_margin_with_distance_loss", anchor, positive, negative, distance, margin, swap)
