"""Adam and its kind: steps scaled by running moments of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from .settings import given
from .update import ElementwiseOptimizer, update

_MOMENTS = """
exp_avg = exp_avg + take1 * (g - exp_avg)
exp_avg_sq = keep2 * exp_avg_sq + take2 * g * g
"""


class Adam(ElementwiseOptimizer):
    """``param -= lr * m / (sqrt(v) + eps)`` with m and v the corrected means of the gradient and its square.

    Args:
        amsgrad: use the largest v so far.
        decoupled_weight_decay: shrink the parameter by ``lr * weight_decay`` instead, as `AdamW` does.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Adam.html; Kingma and Ba 2015, algorithm 1
    """

    _names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    _counted = ("step",)
    _op = update("Adam", _names, ("take1", "keep2", "take2", "root", "eps", "rate"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return self._names if group["amsgrad"] else self._names[:2]

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        largest = "max_exp_avg_sq = max(max_exp_avg_sq, exp_avg_sq)" if group["amsgrad"] else ""
        second = "max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"
        return f"{_MOMENTS}{largest}\np = p - rate * exp_avg / (sqrt({second}) / root + eps)"

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        step = state["step"]
        root, rate = sqrt(1.0 - beta2**step), float(group["lr"]) / (1.0 - beta1**step)
        return 1.0 - beta1, beta2, 1.0 - beta2, root, group["eps"], rate


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter directly, instead of being part of the gradient.

    Args:
        weight_decay: ``lr * weight_decay`` of the parameter is taken away per step.
        amsgrad: use the largest v so far.

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
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(**{k: v for k, v in locals().items() if k not in ("self", "__class__")},
                         decoupled_weight_decay=True)  # fmt: skip


class NAdam(ElementwiseOptimizer):
    """Adam with Nesterov's momentum, whose share grows towards beta1 with the steps.

    Args:
        momentum_decay: how fast the momentum's share grows.
        decoupled_weight_decay: shrink the parameter by ``lr * weight_decay`` instead.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.NAdam.html; Dozat 2016, "Incorporating
        Nesterov momentum into Adam"
    """

    _names = ("exp_avg", "exp_avg_sq")
    _counted = ("step", "mu_product")
    _op = update("NAdam", _names, ("take1", "keep2", "take2", "root", "eps", "rate", "ahead"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _counts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"step": 0.0, "mu_product": 1.0}

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        return f"{_MOMENTS}p = p - (rate * g + ahead * exp_avg) / (sqrt(exp_avg_sq) / root + eps)"

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        lr, step = float(group["lr"]), state["step"]
        mu, after = [beta1 * (1.0 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (step, step + 1)]
        state["mu_product"] *= mu
        product = state["mu_product"]
        rate, ahead = lr * (1.0 - mu) / (1.0 - product), lr * after / (1.0 - product * after)
        return 1.0 - beta1, beta2, 1.0 - beta2, sqrt(1.0 - beta2**step), group["eps"], rate, ahead


class RAdam(ElementwiseOptimizer):
    """Adam that goes without the second moment until enough steps tell its variance.

    Args:
        decoupled_weight_decay: shrink the parameter by ``lr * weight_decay`` instead.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.RAdam.html; Liu et al. 2020, "On the
        variance of the adaptive learning rate and beyond"
    """

    _names = ("exp_avg", "exp_avg_sq")
    _counted = ("step",)
    _op = update("RAdam", _names, ("take1", "keep2", "take2", "rectified", "eps", "rate"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        return f"""{_MOMENTS}
            factor = select(1.0, rectified / (sqrt(exp_avg_sq) + eps), rectified > 0.0)
            p = p - rate * factor * exp_avg
        """

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        step = state["step"]
        last = 2.0 / (1.0 - beta2) - 1.0
        length = last - 2.0 * step * beta2**step / (1.0 - beta2**step)
        rectified = 0.0
        if length > 5.0:
            share = (length - 4.0) * (length - 2.0) * last / ((last - 4.0) * (last - 2.0) * length)
            rectified = sqrt(share) * sqrt(1.0 - beta2**step)
        rate = float(group["lr"]) / (1.0 - beta1**step)
        return 1.0 - beta1, beta2, 1.0 - beta2, rectified, group["eps"], rate


class Adamax(ElementwiseOptimizer):
    """Adam whose second moment is the largest gradient, each step's a little less.

    Args:
        betas: what the running mean and the largest gradient keep per step.
        eps: added to the gradient's size.

    Raises:
        ValueError: a setting is out of range.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Adamax.html; Kingma and Ba 2015, algorithm 2
    """

    _names = ("exp_avg", "exp_inf")
    _counted = ("step",)
    _op = update("Adamax", _names, ("take1", "keep2", "eps", "rate"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        return """
            exp_avg = exp_avg + take1 * (g - exp_avg)
            exp_inf = max(keep2 * exp_inf, abs(g) + eps)
            p = p - rate * exp_avg / exp_inf
        """

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        return 1.0 - beta1, beta2, group["eps"], float(group["lr"]) / (1.0 - beta1 ** state["step"])


__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]
