"""Stochastic gradient descent: with momentum, averaged (ASGD), and by signs alone (Rprop)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import RangeError
from ..op.arguments import number
from .settings import given
from .update import ElementwiseOptimizer, update


class SGD(ElementwiseOptimizer):
    """``param -= lr * g``, where g is the gradient, or with momentum its running sum.

    Args:
        momentum: share of the last step that is kept.
        dampening: share of the gradient that is left out of the sum.
        nesterov: look ahead by one step of momentum.

    Raises:
        ValueError: a setting is negative, or ``nesterov`` without momentum or with dampening.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.SGD.html; Sutskever et al. 2013, "On the
        importance of initialization and momentum in deep learning"

    Example:
        >>> import pellucid as torch
        >>> w = torch.ones(1, requires_grad=True, device="cpu")
        >>> optimizer = torch.optim.SGD([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5]
    """

    _names = ("momentum_buffer",)
    _op = update("SGD", _names, ("keep", "take", "rate"))

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
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(params, given(locals()))
        dampening = number(dampening, "SGD: dampening")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise RangeError("SGD: nesterov needs momentum and no dampening.")

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        return self._names if group["momentum"] else ()

    def _counts(self, group: dict[str, Any]) -> dict[str, float]:
        return {}

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        if not group["momentum"]:
            return "p = p - rate * g"
        # The sum begins with the whole first gradient.
        is_first = state.get("momentum_buffer") is None
        moved = "g" if is_first else "keep * momentum_buffer + take * g"
        step = "(g + keep * momentum_buffer)" if group["nesterov"] else "momentum_buffer"
        return f"momentum_buffer = {moved}\np = p - rate * {step}"

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return group["momentum"], 1.0 - group["dampening"], group["lr"]


class ASGD(ElementwiseOptimizer):
    """Gradient descent at a falling rate; the state "ax" is the mean of the parameters since step ``t0``.

    Args:
        lr: learning rate; that of step t is ``lr / (1 + lambd * lr * t)^alpha``.
        lambd: decay of the parameters.
        alpha: power of the falling rate.
        t0: the step at which the mean begins.

    Raises:
        ValueError: a setting is negative.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.ASGD.html; Polyak and Juditsky 1992,
        "Acceleration of stochastic approximation by averaging"
    """

    _names = ("ax",)
    _counted = ("step", "eta", "mu")
    _op = update("ASGD", _names, ("keep", "rate", "take"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, given(locals()))

    def _counts(self, group: dict[str, Any]) -> dict[str, float]:
        return {"step": 0.0, "eta": float(group["lr"]), "mu": 1.0}

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        return """
            p = keep * p - rate * g
            ax = select(ax + take * (p - ax), p, take == 1.0)
        """

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        eta, mu, lr, step = state["eta"], state["mu"], float(group["lr"]), state["step"]
        state["eta"] = lr / (1.0 + group["lambd"] * lr * step) ** group["alpha"]
        state["mu"] = 1.0 / max(1.0, step - group["t0"])
        return 1.0 - group["lambd"] * eta, eta, mu


class Rprop(ElementwiseOptimizer):
    """A step of its own for every element, which grows while the gradient's sign stays and else shrinks.

    Args:
        lr: the first steps.
        etas: by how much a step shrinks and grows.
        step_sizes: the least and the largest step.

    Raises:
        ValueError: a setting is negative, or ``etas`` not on both sides of 1.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.Rprop.html; Riedmiller and Braun 1993, "A
        direct adaptive method for faster backpropagation learning"
    """

    _names = ("prev", "step_size")
    _counted = ("step",)
    _op = update("Rprop", _names, ("shorter", "longer", "least", "most"))

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, given(locals()))
        if not 0 < etas[0] < 1 < etas[1]:
            raise RangeError(f"Rprop: etas must lie between 0 and 1, and above 1, not {etas}.")

    def _begin(self, name: str, group: dict[str, Any]) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0

    def _rule(self, group: dict[str, Any], state: dict[str, Any]) -> str:
        return """
            turned = sign(g) * sign(prev)
            factor = select(select(1.0, longer, turned > 0.0), shorter, turned < 0.0)
            step_size = clamp(step_size * factor, least, most)
            prev = select(g, 0.0 * turned, turned < 0.0)
            p = p - sign(prev) * step_size
        """

    def _settings(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return *group["etas"], *group["step_sizes"]


__all__ = ["ASGD", "SGD", "Rprop"]
