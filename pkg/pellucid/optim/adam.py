"""Adam and AdamW: steps scaled by running moments of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from ..errors import ArgumentError
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, check_range
from .update import adam_update


class Adam(Optimizer):
    """``param -= lr * m / (sqrt(v) + eps)`` with m and v the corrected means of the gradient and its square.

    Args:
        params: parameters or groups.
        lr: learning rate.
        betas: what the running means keep per step.
        eps: added to the denominator.
        weight_decay: times the parameter is added to the gradient.
        amsgrad: use the largest v so far.
        maximize: go up instead of down.
        decoupled_weight_decay: shrink the parameter by ``lr * weight_decay`` instead, as `AdamW` does.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Adam.html; Kingma and Ba 2015, algorithm 1
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ):
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            check_range(name, value)
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ArgumentError(f"{type(self).__name__}: betas must be two numbers, not {betas!r}.")
        for k, beta in enumerate(betas):
            check_range(f"betas[{k}]", beta, below=1)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        value, grad = self._operands(p)
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"] = self._moment(value)
            state["exp_avg_sq"] = self._moment(value)
        if group["amsgrad"] and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = self._moment(value)
        state["step"] += 1
        adam_update(
            value,
            grad,
            state["exp_avg"],
            state["exp_avg_sq"],
            state["max_exp_avg_sq"] if group["amsgrad"] else None,
            *self._numbers_of(p, group, state["step"]),
        )
        self._write_back(p, value)

    def _numbers(self, group: dict[str, Any], step: int) -> tuple[float, ...]:
        lr, decay = float(group["lr"]), float(group["weight_decay"])
        beta1, beta2 = group["betas"]
        decoupled = group["decoupled_weight_decay"]
        return (
            -1.0 if group["maximize"] else 1.0,
            1.0 - lr * decay if decoupled else 1.0,
            0.0 if decoupled else decay,
            1.0 - beta1,
            float(beta2),
            1.0 - beta2,
            sqrt(1.0 - beta2**step),
            float(group["eps"]),
            lr / (1.0 - beta1**step),
        )

    def _kernel(self, group: dict[str, Any]) -> tuple:
        return (bool(group["amsgrad"]),)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter directly, instead of being part of the gradient.

    Args:
        params: parameters or groups.
        lr: learning rate.
        betas: what the running means keep per step.
        eps: added to the denominator.
        weight_decay: ``lr * weight_decay`` of the parameter is taken away per step.
        amsgrad: use the largest v so far.
        maximize: go up instead of down.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.AdamW.html; Loshchilov and Hutter 2019
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True
        )


__all__ = ["Adam", "AdamW"]
