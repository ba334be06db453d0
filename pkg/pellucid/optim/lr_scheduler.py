"""Learning rates that change with the steps: PyTorch's ``torch.optim.lr_scheduler``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import cos, pi
from types import FunctionType
from typing import Any

from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from ..tensors.absent import refuse_others
from .chains import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from .cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .optimizer import Optimizer
from .schedule import FactorLR, LRScheduler, check_is_optimizer, listed


class LambdaLR(LRScheduler):
    """``base * lr_lambda(step)``.

    Args:
        lr_lambda: a function of the step, or one per group.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1):
        check_is_optimizer(self, optimizer)
        name, count = type(self).__name__, len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else listed(self, "lr_lambda", lr_lambda)
        for f in self.lr_lambdas:
            if not callable(f):
                raise ArgumentError(f"{name}: lr_lambda must be functions, not {describe(f)}.")
        if len(self.lr_lambdas) != count:
            raise RangeError(
                f"{name}: {len(self.lr_lambdas)} functions for {count} groups. Give one, or one per group."
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and plain functions; of objects that are called their attributes."""
        states = [None if isinstance(f, FunctionType) else dict(vars(f)) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        given = dict(state_dict)
        for f, state in zip(self.lr_lambdas, given.pop("lr_lambdas"), strict=True):
            if state is not None:
                vars(f).update(state)
        super().load_state_dict(given)


class MultiplicativeLR(LambdaLR):
    """Times ``lr_lambda(step)`` every step.

    Args:
        optimizer: whose rates.
        lr_lambda: a function of the step, or one per group.
        last_epoch: steps already taken; -1 begins anew.
    """

    def get_lr(self) -> list[float]:
        if self.last_epoch <= 0 or self._is_initial:
            return self._rates
        return [lr * f(self.last_epoch) for lr, f in zip(self._rates, self.lr_lambdas, strict=True)]


class StepLR(FactorLR):
    """Times ``gamma`` every ``step_size`` steps."""

    _keeps_rates = False

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = self._number("step_size", step_size)
        if self.step_size == 0:
            raise RangeError("StepLR: step_size must not be 0.")
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma ** (step // self.step_size)


class MultiStepLR(FactorLR):
    """Times ``gamma`` at each of the steps ``milestones``."""

    _keeps_rates = False

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ):
        self.milestones = Counter(
            self._number("milestones", m) for m in listed(self, "milestones", milestones)
        )
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma ** sum(times for m, times in self.milestones.items() if m <= step)


class ExponentialLR(FactorLR):
    """Times ``gamma`` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.gamma**step


class LinearLR(FactorLR):
    """The base times a factor that goes evenly from ``start_factor`` to ``end_factor``."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        start_factor = self._number("start_factor", start_factor)
        end_factor = self._number("end_factor", end_factor)
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise RangeError(
                "LinearLR: factors must lie between 0 and 1, the first above 0; they are "
                f"{start_factor} and {end_factor}."
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = self._number("total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        done = min(step, self.total_iters) / self.total_iters if self.total_iters else 0
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ConstantLR(FactorLR):
    """The base times ``factor`` for the first ``total_iters`` steps."""

    _keeps_rates = False

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        factor = self._number("factor", factor)
        if not 0 <= factor <= 1:
            raise RangeError(f"ConstantLR: factor must lie between 0 and 1, not {factor}.")
        self.factor = factor
        self.total_iters = self._number("total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return self.factor if step < self.total_iters else 1.0


class PolynomialLR(FactorLR):
    """The base times ``(1 - step / total_iters)^power``, and 0 after ``total_iters`` steps."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = self._number("total_iters", total_iters)
        self.power = self._number("power", power)
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return (1.0 - step / self.total_iters) ** self.power if step < self.total_iters else 0.0


class CosineAnnealingLR(FactorLR):
    """``eta_min + (base - eta_min) * (1 + cos(pi * step / T_max)) / 2``, up again after ``T_max`` steps.

    Args:
        T_max: steps of half a wave.
        eta_min: the lowest rate.

    Source: Loshchilov and Hutter 2017, "SGDR", equation 5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = self._number("T_max", T_max)
        self.eta_min = self._number("eta_min", eta_min)
        if self.T_max == 0:
            raise RangeError("CosineAnnealingLR: T_max must not be 0.")
        super().__init__(optimizer, last_epoch)

    def _factor(self, step: int) -> float:
        return (1 + cos(pi * step / self.T_max)) / 2


_LRScheduler = LRScheduler  # its name before PyTorch 2.0, which sources still use

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR",
    "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR",
    "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

refuse_others("torch.optim.lr_scheduler", globals())
