"""Normalizations, and losses."""

from __future__ import annotations

from typing import Any

from .....nn import functional as F
from .....tensors import dtypes as dt
from .....tensors.tensor import Tensor
from ...rows import axis_of, one_of
from ..table import operator
from .elementwise import ops


@operator("BatchNormalization")
def batch_normalization(
    x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, var: Tensor, *, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1, is_test: int = 1, outputs: int = 1,
    consumed_inputs: Any = None,
):  # fmt: skip
    if not training_mode:
        return F.batch_norm(x, mean, var, scale, b, False, 0.0, epsilon)
    axes = [k for k in range(len(x.shape)) if k != 1]
    own, variance = ops.mean(x, axes), ops.var(x, axes, correction=0)
    y = F.batch_norm(x, own, variance, scale, b, False, 0.0, epsilon)
    return y, mean * momentum + own * (1 - momentum), var * momentum + variance * (1 - momentum)


@operator("InstanceNormalization")
def instance_normalization(
    x: Tensor, scale: Tensor, b: Tensor, *, epsilon: float = 1e-5, consumed_inputs: Any = None
):
    return F.instance_norm(x, weight=scale, bias=b, eps=epsilon)


@operator("GroupNormalization", since=21)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
):
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@operator("GroupNormalization", since=18)
def group_normalization_by_group(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5
):
    each = x.shape[1] // num_groups
    scale, bias = (ops.repeat_interleave(t, each) for t in (scale, bias))
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@operator("LayerNormalization", since=1)
def layer_normalization(
    x: Tensor, scale: Tensor, b: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5,
    stash_type: int = 1, outputs: int = 1,
):  # fmt: skip
    first = axis_of(axis, len(x.shape))
    shape = x.shape[first:]
    if outputs == 1 and tuple(scale.shape) == tuple(shape) and (b is None or b.shape == scale.shape):
        return F.layer_norm(x, shape, scale, b, epsilon)
    wide = x.to(dt.float32) if x.dtype in (dt.float16, dt.bfloat16) else x
    axes = list(range(first, len(x.shape)))
    mean = ops.mean(wide, axes, True)
    inverse = ops.rsqrt(ops.mean((wide - mean) ** 2, axes, True) + epsilon)
    y = ((wide - mean) * inverse).to(x.dtype) * scale
    return (y if b is None else y + b), mean, inverse


@operator("RMSNormalization", "SimplifiedLayerNormalization", since=1)
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
):
    shape = x.shape[axis_of(axis, len(x.shape)) :]
    if tuple(scale.shape) == tuple(shape):
        return F.rms_norm(x, shape, scale, epsilon)
    return F.rms_norm(x, shape, None, epsilon) * scale


@operator("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2):
    axis = axis_of(axis, len(x.shape))
    size = ops.sum(ops.abs(x), axis, True) if p == 1 else ops.sqrt(ops.sum(x * x, axis, True))
    return ops.where(size == 0, ops.zeros_like(x), x / size)


@operator("LRN")
def lrn(x: Tensor, *, size: int, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0):
    below = (size - 1) // 2
    ends = [0, 0] * (len(x.shape) - 2) + [below, size - 1 - below]
    squares = F.pad(x * x, ends)
    total = squares.narrow(1, 0, x.shape[1])
    for k in range(1, size):
        total = total + squares.narrow(1, k, x.shape[1])
    return x / ops.pow(total * (alpha / size) + bias, beta)


@operator("MeanVarianceNormalization", since=9)
def mean_variance_normalization(x: Tensor, *, axes: list | None = None):
    chosen = [0, 2, 3] if axes is None else list(axes)
    centered = x - ops.mean(x, chosen, True)
    return centered / (ops.sqrt(ops.mean(centered * centered, chosen, True)) + 1e-9)


def _loss(
    scores: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None, reduction: str
) -> Tensor:
    one_of("reduction", reduction, ("none", "sum", "mean"))
    target = target.to(dt.int64)
    valid = None if ignore_index is None else target != ignore_index
    safe = target if valid is None else ops.where(valid, target, ops.zeros_like(target))
    each = -ops.gather(scores, 1, safe.unsqueeze(1)).squeeze(1)
    if weight is not None:
        weights = ops.index_select(weight, 0, safe.reshape(-1)).reshape(safe.shape)
    else:
        weights = ops.ones_like(each)
    if valid is not None:
        weights = ops.where(valid, weights, ops.zeros_like(weights))
    each = ops.where(weights == 0, ops.zeros_like(each), each * weights)
    if reduction == "none":
        return each
    return ops.sum(each) / ops.sum(weights) if reduction == "mean" else ops.sum(each)


@operator("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    scores: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None = None,
    reduction: str = "mean",
):  # fmt: skip
    return _loss(scores, target, weight, ignore_index, reduction)


@operator("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    scores: Tensor, labels: Tensor, weights: Tensor | None = None, *, ignore_index: int | None = None,
    reduction: str = "mean",
):  # fmt: skip
    logs = ops.log_softmax(scores, 1)
    return _loss(logs, labels, weights, ignore_index, reduction), logs
