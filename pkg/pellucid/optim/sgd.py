"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import RangeError
from ..op.arguments import number
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, check_range
from .update import sgd_update


class SGD(Optimizer):
    """``param -= lr * g``, where g is the gradient, or with momentum its running sum.

    Args:
        params: parameters or groups.
        lr: learning rate.
        momentum: share of the last step that is kept.
        dampening: share of the gradient that is left out of the sum.
        weight_decay: times the parameter is added to the gradient.
        nesterov: look ahead by one step of momentum.
        maximize: go up instead of down.

    Raises:
        ValueError: a setting is negative, or ``nesterov`` without momentum or with dampening.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.SGD.html

    Example:
        >>> import pellucid as torch
        >>> w = torch.ones(1, requires_grad=True, device="cpu")
        >>> optimizer = torch.optim.SGD([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ):
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            check_range(name, value)
        dampening = number(dampening, "SGD: dampening")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise RangeError("SGD: nesterov needs momentum and no dampening.")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        value, grad = self._operands(p)
        state = self.state[p] if group["momentum"] else {}
        sign, decay, keep, take, nesterov, rate = self._numbers_of(p, group)
        buffer = None
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                # The sum begins with the whole first gradient.
                buffer = state["momentum_buffer"] = self._moment(value)
                keep, take = 0.0, 1.0
        sgd_update(value, grad, buffer, sign, decay, keep, take, nesterov, rate, bool(group["nesterov"]))
        self._write_back(p, value)

    def _numbers(self, group: dict[str, Any], step: int) -> tuple[float, ...]:
        momentum = float(group["momentum"])
        return (
            -1.0 if group["maximize"] else 1.0,
            float(group["weight_decay"]),
            momentum,
            1.0 - group["dampening"],
            momentum,
            float(group["lr"]),
        )

    def _kernel(self, group: dict[str, Any]) -> tuple:
        return bool(group["momentum"]), bool(group["nesterov"])


__all__ = ["SGD"]
