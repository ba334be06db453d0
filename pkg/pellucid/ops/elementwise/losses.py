"""Losses of each element, before `nn.functional` takes their mean or their sum: one launch for each."""

from __future__ import annotations

import numpy as np

from ...autograd.formulas import without
from ...errors import RangeError
from ...op.declaration import elementwise, op
from ...op.rules import floating, in_one_dtype
from ...tensors.tensor import Tensor
from .activations import hardtanh

_DISTANCE = "abs(input - {target})"


def _huber_reference(input, target, delta):
    d = np.abs(input - target)
    return np.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta)


def _huber_grad(g, input, target, delta):
    """Beyond the corners the slope is that of a line."""
    return g * hardtanh(input - target, -delta, delta)


@op(
    dtype=floating,
    kernel=elementwise(
        f"select(({_DISTANCE} - 0.5 * delta) * delta, 0.5 * {_DISTANCE} * {_DISTANCE}, {_DISTANCE} < delta)",
        i32=False,
    ),
    reference=_huber_reference,
    grad={
        "input": _huber_grad,
        "target": lambda g, input, target, delta: -_huber_grad(g, input, target, delta),
    },
    public="huber_loss",
)
def huber(input: Tensor, target: Tensor, delta: float) -> Tensor:
    """``d^2 / 2`` where ``d = |input - target|`` is below ``delta``, else ``delta * (d - delta / 2)``."""


def _bernoulli_reference(input, target):
    for name, values in (("input", input), ("target", target)):
        if not ((values >= 0) & (values <= 1)).all():
            raise RangeError(f"all elements of {name} must be between 0 and 1. Pass it through sigmoid().")
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = np.maximum(np.log(input), -100), np.maximum(np.log1p(-input), -100)
    return -(target * yes + (1 - target) * no)


@op(
    dtype=in_one_dtype(floating),
    kernel=elementwise(
        "-({target} * nan_max(log_of(input), -100.0) + (1.0 - {target}) * nan_max(log1p_of(-input), -100.0))",
        i32=False,
    ),
    reference=_bernoulli_reference,
    grad={
        # At 0 and 1 the quotient is that of a number which is not quite.
        "input": lambda g, input, target: g * (input - target) / ((1 - input) * input).clamp(min=1e-12),
        "target": lambda g, input: g * ((1 - input).log() - input.log()),
    },
    public="binary_cross_entropy",
)
def bernoulli(input: Tensor, target: Tensor) -> Tensor:
    """``-(target * log(input) + (1 - target) * log(1 - input))``, logarithms not below -100. On the webgpu
    device, where nothing waits for values, what is no probability gives NaN."""


def _entropy_grad(g, target):
    return without(g * target.log(), (g == 0) | (target == 0)) + g * (target / target)


@op(
    dtype=floating,
    kernel=elementwise("xlogy_of({target}, {target}) - {target} * input", i32=False),
    reference=lambda input, target: (
        np.where(target == 0, target, target * np.log(np.where(target == 0, 1, target))) - target * input
    ),
    grad={
        "input": lambda g, target: -(g * target),
        "target": lambda g, input, target: _entropy_grad(g, target) - g * input,
    },
    public="kl_div",
)
def divergence(input: Tensor, target: Tensor) -> Tensor:
    """``target * (log(target) - input)``, where ``0 * log(0)`` is 0."""
