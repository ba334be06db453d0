"""The updates of optimizers as ops: one dispatch changes a parameter and its state.

Rates and decays are parameters of the launch: a changing learning rate plans nothing anew.
"""

# A declaration has no body.
# pyright: reportReturnType=false
from __future__ import annotations

import numpy as np

from ..errors import DTypeError, ShapeError
from ..kernel.launch import Launch, flag
from ..kernel.source import load
from ..op.call import Call
from ..op.declaration import op
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor

_WORKGROUP = 256


def _launch(call: Call, file: str, flags: dict[str, bool]) -> Launch:
    param = call["param"]
    for name, m in call.tensors():
        if m.dtype is not dt.float32 or not m.is_contiguous:
            raise DTypeError(f"'{name}' must be contiguous float32, not {m.dtype} with strides {m.strides}.")
        if m.shape != param.shape:
            raise ShapeError(f"'{name}' has shape {tuple(m.shape)}, the parameter {tuple(param.shape)}.")
    holes = {name: flag(on) for name, on in flags.items()}
    return Launch(load(file).fill(holes), -(-param.numel // _WORKGROUP), {"count": param.numel})


def _sgd_reference(param, grad, buffer, sign, decay, keep, take, nesterov, rate, is_nesterov):
    g = sign * grad + decay * param if decay else sign * grad
    step = g
    if buffer is not None:
        buffer[...] = keep * buffer + take * g
        step = g + nesterov * buffer if is_nesterov else buffer
    param -= rate * step


@op(
    public="SGD",
    kernel=lambda call: _launch(
        call, "optim/sgd", {"HAS_BUFFER": call["buffer"] is not None, "NESTEROV": call["is_nesterov"]}
    ),
    reference=_sgd_reference,
    grad=None,
    outputs=(),
    mutates=("param", "buffer"),
)
def sgd_update(
    param: Tensor,
    grad: Tensor,
    buffer: Tensor | None,
    sign: float,
    decay: float,
    keep: float,
    take: float,
    nesterov: float,
    rate: float,
    is_nesterov: bool,
) -> Tensor:
    """One step of stochastic gradient descent, in place; see wgsl/optim/sgd.wgsl for the formula."""


def _adam_reference(
    param, grad, mean, square, largest, sign, shrink, decay, take1, keep2, take2, root, eps, rate
):
    param *= shrink
    g = sign * grad + decay * param if decay else sign * grad
    mean += take1 * (g - mean)
    square[...] = keep2 * square + take2 * g * g
    second = square
    if largest is not None:
        np.maximum(largest, square, out=largest)
        second = largest
    param -= rate * mean / (np.sqrt(second) / root + eps)


@op(
    public="Adam",
    kernel=lambda call: _launch(call, "optim/adam", {"AMSGRAD": call["largest"] is not None}),
    reference=_adam_reference,
    grad=None,
    outputs=(),
    mutates=("param", "mean", "square", "largest"),
)
def adam_update(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    largest: Tensor | None,
    sign: float,
    shrink: float,
    decay: float,
    take1: float,
    keep2: float,
    take2: float,
    root: float,
    eps: float,
    rate: float,
) -> Tensor:
    """One step of Adam or AdamW, in place; see wgsl/optim/adam.wgsl for the formula."""


__all__ = ["adam_update", "sgd_update"]
