"""Connectionist temporal classification (CTC), and the cross entropy of a linear layer."""

from __future__ import annotations

from math import prod
from typing import Any

from ..autograd import enable_grad, grad
from ..autograd.composed import composed
from ..autograd.grad_mode import unrecorded
from ..errors import ArgumentError, DTypeError, RangeError, ShapeError
from ..op.public import function
from ..ops.elementwise.comparison import where
from ..ops.elementwise.functions import logaddexp
from ..ops.index.gather import gather
from ..ops.matmul.linear import linear
from ..ops.shape.creation import arange, full
from ..ops.shape.joining import cat, stack
from ..tensors.construct import tensor
from ..tensors.dtypes import int64
from ..tensors.shape import index
from ..tensors.tensor import Tensor
from .likelihood_loss import cross_entropy
from .loss import reduced

# The logarithm of a path that there is not: finite, so that sums and their derivatives stay numbers.
_NEVER = -1e30


def _likelihood(logs: Tensor, states: Tensor, jumps: Tensor, steps: Tensor, last: Tensor) -> Tensor:
    """The logarithm of the sum over all paths; (batch,), or about `_NEVER` where there is no path.

    Args:
        logs: (time, batch, classes).
        states: (batch, states): the class of each, blanks between the labels.
        jumps: (batch, states): 0 where the state may follow that before the last, else `_NEVER`.
        steps: (batch,): how many times count.
        last: (batch,): the last state of each target, a blank.
    """
    times, batch, _ = logs.shape
    count = states.shape[1]
    emitted = gather(logs.clamp(min=_NEVER), 2, states.expand(times, batch, count))
    nothing = full((batch, 2), _NEVER, device=logs.device, dtype=logs.dtype)
    begun = arange(count, device=logs.device) < 2
    paths = where(begun, emitted[0], _NEVER)
    every = [paths]
    for k in range(1, times):
        before = cat([nothing, paths], 1)
        stayed = logaddexp(before[:, 2:], before[:, 1:-1])
        paths = logaddexp(stayed, before[:, :-2] + jumps) + emitted[k]
        every.append(paths)
    at = (steps - 1).clamp(min=0).reshape(1, batch, 1).expand(1, batch, count)
    final = gather(stack(every), 0, at)[0]
    ends = stack([last, (last - 1).clamp(min=0)], 1)
    blank, label = gather(final, 1, ends).unbind(1)
    return where(last == 0, blank, logaddexp(blank, label))


def _ctc_grad(g, logs, states, jumps, steps, last):
    """As in PyTorch that of log probabilities which a softmax made: ``exp(logs)`` less the share of paths."""
    with enable_grad():
        x = logs.detach().requires_grad_()
        found = _likelihood(x, states, jumps, steps, last)
    (shares,) = grad(found, x, g)
    counts = arange(logs.shape[0], device=logs.device).unsqueeze(1) < steps
    spread = (logs.exp() * -g.unsqueeze(1)).masked_fill(~counts.unsqueeze(2), 0.0)
    return shares + spread


_ctc = composed(name="ctc_loss", logs=_ctc_grad)(_likelihood)


def _lengths(name: str, given: Any, device: Any) -> Tensor:
    """Lengths as int64 on the device of the logarithms."""
    if not isinstance(given, Tensor):
        given = tensor(
            list(given) if isinstance(given, (tuple, list)) else [given], dtype=int64, device=device
        )
    if not given.dtype.is_integer:
        raise DTypeError(f"ctc_loss: {name} are {given.dtype}; they must be integers.")
    return given.to(int64).to(device).reshape(-1)


@function(exports="nn.functional", ours="ATen's reduction is a number, here it is a word")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative logarithm of a sequence of labels' probability, over all its alignments to the input.

    Args:
        log_probs: (time, batch, classes) or (time, classes): logarithms of a softmax.
        targets: (batch, labels), or all one after the other, whose lengths are then read from the device:
            integers, none of which is the blank.
        input_lengths, target_lengths: (batch,) or (): tensors, or numbers.
        blank: the class of no label.
        reduction: "mean" (divided by the lengths of the targets first), "sum" or "none".
        zero_infinity: losses of targets that are too long for the input are 0.

    Raises:
        ShapeError: the shapes do not fit.
        IndexError: at the next read, an input length is past the time, or a target is no class.

    Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.ctc_loss.html; Graves et al. 2006,
        equations 6 to 8
    """
    if log_probs.dim() not in (2, 3) or not log_probs.dtype.is_floating_point:
        raise ShapeError(
            f"ctc_loss: log_probs are {log_probs.dtype} of shape {tuple(log_probs.shape)}; they must be "
            "floating point, (time, batch, classes) or (time, classes)."
        )
    if not targets.dtype.is_integer:
        raise DTypeError(f"ctc_loss: targets are {targets.dtype}; labels must be integers.")
    single = log_probs.dim() == 2
    logs = log_probs.unsqueeze(1) if single else log_probs
    _, batch, classes = logs.shape
    blank = index(blank, "ctc_loss: blank")
    if not 0 <= blank < classes:
        raise RangeError(f"ctc_loss: blank {blank} is not one of the {classes} classes.")
    steps, sizes = (
        _lengths(name, given, logs.device)
        for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    )
    if steps.numel() != batch or sizes.numel() != batch:
        raise ShapeError(
            f"ctc_loss: there are {steps.numel()} input lengths and {sizes.numel()} target lengths for a "
            f"batch of {batch}."
        )
    with unrecorded():
        labels = _padded(targets.to(int64).to(logs.device), sizes, single)
        places = arange(labels.shape[1], device=logs.device)
        labels = labels.masked_fill(places >= sizes.unsqueeze(1), blank)
        blanks = labels.new_full(tuple(labels.shape), blank)
        states = cat([stack([blanks, labels], 2).flatten(1), blanks.new_full((batch, 1), blank)], 1)
        behind = cat([states.new_full((batch, 2), blank), states[:, :-2]], 1)[:, : states.shape[1]]
        allowed = (states != blank) & (states != behind)
        jumps = where(allowed, 0.0, _NEVER).to(logs.dtype)
    loss = -_ctc(logs, states, jumps, steps, 2 * sizes)
    never = (loss > -_NEVER / 2) | ((steps == 0) & (sizes > 0))
    loss = loss.masked_fill((steps == 0) & (sizes == 0), 0.0)
    loss = loss.masked_fill(never, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        return (loss / sizes.clamp(min=1).to(loss.dtype)).mean()
    return reduced(loss.squeeze(0) if single else loss, reduction)


def _padded(targets: Tensor, sizes: Tensor, single: bool) -> Tensor:
    """Targets as (batch, labels)."""
    if targets.dim() == 2:
        if targets.shape[0] != sizes.numel():
            raise ShapeError(
                f"ctc_loss: targets have shape {tuple(targets.shape)} for a batch of {sizes.numel()}."
            )
        return targets
    if single and targets.dim() == 1:
        return targets.unsqueeze(0)
    if targets.dim() != 1:
        raise ShapeError(
            f"ctc_loss: targets have shape {tuple(targets.shape)}; they must be (batch, labels), or in one "
            "row."
        )
    counts = sizes.tolist()
    if sum(counts) != targets.numel():
        raise ShapeError(
            f"ctc_loss: target lengths {counts} add up to another number than {targets.numel()}."
        )
    rows, at, longest = [], 0, max(counts, default=0)
    for n in counts:
        rows.append(cat([targets[at : at + n], targets.new_zeros((longest - n,))]))
        at += n
    return stack(rows)


class LinearCrossEntropyOptions:
    """How PyTorch cuts the products of `linear_cross_entropy` into chunks; here they are one, and the numbers
    are only kept.

    Args:
        settings: PyTorch's.

    Raises:
        ArgumentError: PyTorch has no such setting.
    """

    _known = ("allow_retain_graph", "batch_chunk_size", "chunking_method", "acc_policy", "acc_dtype")

    def __init__(self, **settings: Any):
        for name in settings:
            if name not in self._known:
                raise ArgumentError(f"LinearCrossEntropyOptions: there is no setting {name!r}.")
        self.settings = settings


@function(exports="nn.functional", ours="PyTorch composes it in Python")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    Args:
        input: (batch, columns) or (columns,).
        linear_weight: (classes, columns), or (classes, ..., columns) for losses of several places.
        target: as `cross_entropy` takes it.
        linear_bias: linear_weight's shape without the columns, or None.
        weight, reduction, label_smoothing: as `cross_entropy` takes them.
        ignore_index: targets of this value count for nothing; -100 if None.
        options: without effect.

    Raises:
        ShapeError: the shapes do not fit.
    """
    if options is not None and not isinstance(options, LinearCrossEntropyOptions):
        raise ArgumentError(f"linear_cross_entropy: options are {type(options).__name__} {options!r}")
    classes, places = linear_weight.shape[0] if linear_weight.dim() else 0, tuple(linear_weight.shape[1:-1])
    if input.dim() not in (1, 2) or linear_weight.dim() < 2 or input.shape[-1] != linear_weight.shape[-1]:
        raise ShapeError(
            f"linear_cross_entropy: input of shape {tuple(input.shape)} does not fit a weight of shape "
            f"{tuple(linear_weight.shape)}, (classes, ..., columns)."
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *places):
        raise ShapeError(
            f"linear_cross_entropy: linear_bias has shape {tuple(linear_bias.shape)}; it must be "
            f"{(classes, *places)}."
        )
    if places and input.dim() == 1:
        raise ShapeError("linear_cross_entropy: losses of several places need a batch.")
    shape = (*input.shape[:-1], classes, *places)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise ShapeError("linear_cross_entropy: ignore_index has no meaning for probabilities.")
    flat = linear_weight.reshape(classes * prod(places), linear_weight.shape[-1])
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    ignored = -100 if ignore_index is None else ignore_index
    logits = linear(input, flat, bias).reshape(shape)
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


__all__ = ["LinearCrossEntropyOptions", "ctc_loss", "linear_cross_entropy"]
