"""Adagrad and its kind: steps scaled by the squares of past gradients, without a first moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .settings import given
from .update import ElementwiseOptimizer, update


class Adagrad(ElementwiseOptimizer):
    """``param -= lr * g / (sqrt(sum of g^2) + eps)``.

    Args:
        lr_decay: the rate of step t is ``lr / (1 + (t - 1) * lr_decay)``.
        initial_accumulator_value: with what the sum begins.

    Raises:
        ValueError: a setting is negative.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Adagrad.html; Duchi et al. 2011, "Adaptive
        subgradient methods for online learning and stochastic optimization"
    """

    _names = ("sum",)
    _counted = ("step",)
    _op = update("Adagrad", _names, ("eps", "rate"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(params, given(locals()))

    def _begin(self, name: str, group: dict[str, Any]) -> float:
        return float(group["initial_accumulator_value"])

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        return "sum = sum + g * g\np = p - rate * g / (sqrt(sum) + eps)"

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return group["eps"], float(group["lr"]) / (1.0 + (state["step"] - 1.0) * group["lr_decay"])


class Adadelta(ElementwiseOptimizer):
    """Steps as large as the recent ones, by the means of their squares and of the gradients'.

    Args:
        lr: times the step.
        rho: what the running means keep per step.
        eps: added to both means.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Adadelta.html; Zeiler 2012, "ADADELTA"
    """

    _names = ("square_avg", "acc_delta")
    _counted = ("step",)
    _op = update("Adadelta", _names, ("keep", "take", "eps", "rate"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        return """
            square_avg = keep * square_avg + take * g * g
            delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g
            acc_delta = keep * acc_delta + take * delta * delta
            p = p - rate * delta
        """

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return group["rho"], 1.0 - group["rho"], group["eps"], group["lr"]


class RMSprop(ElementwiseOptimizer):
    """``param -= lr * g / (sqrt(mean of g^2) + eps)``, with momentum its running sum.

    Args:
        alpha: what the running mean keeps per step.
        momentum: share of the last step that is kept.
        centered: take the gradient's variance instead of the mean of its square.

    Raises:
        ValueError: a setting is negative.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.RMSprop.html; Hinton 2012, "Neural networks
        for machine learning", lecture 6
    """

    _names = ("square_avg", "momentum_buffer", "grad_avg")
    _counted = ("step",)
    _op = update("RMSprop", _names, ("keep", "take", "eps", "momentum", "rate"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        used = {"momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return tuple([name for name in self._names if used.get(name, True)])

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        has_sum, centered = group["momentum"] > 0, group["centered"]
        return f"""
            square_avg = keep * square_avg + take * g * g
            {"grad_avg = grad_avg + take * (g - grad_avg)" if centered else ""}
            step = g / (sqrt(square_avg{" - grad_avg * grad_avg" if centered else ""}) + eps)
            {"momentum_buffer = momentum * momentum_buffer + step" if has_sum else ""}
            p = p - rate * {"momentum_buffer" if has_sum else "step"}
        """

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return group["alpha"], 1.0 - group["alpha"], group["eps"], group["momentum"], group["lr"]


__all__ = ["Adadelta", "Adagrad", "RMSprop"]
