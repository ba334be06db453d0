"""Learning rates that change with the steps: PyTorch's ``torch.optim.lr_scheduler``."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import cos, pi
from typing import Any

from ..errors import ArgumentError, RangeError
from ..op.arguments import describe, number
from ..tensors.absent import refuse_others
from .optimizer import Optimizer
from .schedule import LRScheduler, check_is_optimizer, listed, note_step


class LambdaLR(LRScheduler):
    """``base * lr_lambda(step)``.

    Args:
        optimizer: whose rates.
        lr_lambda: a function of the step, or one per group.
        last_epoch: steps already taken; -1 begins anew.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1):
        check_is_optimizer(self, optimizer)
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else listed(self, "lr_lambda", lr_lambda)
        for f in self.lr_lambdas:
            if not callable(f):
                raise ArgumentError(f"LambdaLR: lr_lambda must be functions, not {describe(f)}.")
        if len(self.lr_lambdas) != count:
            raise RangeError(
                f"LambdaLR: {len(self.lr_lambdas)} functions for {count} groups. Give one, or one per group."
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = self._number("step_size", step_size)
        if self.step_size == 0:
            raise RangeError("StepLR: step_size must not be 0.")
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._rates
        return [lr * self.gamma for lr in self._rates]


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the steps ``milestones``."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ):
        self.milestones = Counter(
            self._number("milestones", m) for m in listed(self, "milestones", milestones)
        )
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._rates]


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = self._number("gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._rates if self.last_epoch == 0 else [lr * self.gamma for lr in self._rates]


class LinearLR(LRScheduler):
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

    def get_lr(self) -> list[float]:
        done = min(self.last_epoch, self.total_iters) / self.total_iters if self.total_iters else 0
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The base times ``factor`` for the first ``total_iters`` steps."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        factor = self._number("factor", factor)
        if not 0 <= factor <= 1:
            raise RangeError(f"ConstantLR: factor must lie between 0 and 1, not {factor}.")
        self.factor = factor
        self.total_iters = self._number("total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * (self.factor if self.last_epoch < self.total_iters else 1.0) for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """``eta_min + (base - eta_min) * (1 + cos(pi * step / T_max)) / 2``, up again after ``T_max`` steps.

    Args:
        optimizer: whose rates.
        T_max: steps of half a wave.
        eta_min: the lowest rate.
        last_epoch: steps already taken; -1 begins anew.

    Source: Loshchilov and Hutter 2017, "SGDR", equation 5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = self._number("T_max", T_max)
        self.eta_min = self._number("eta_min", eta_min)
        if self.T_max == 0:
            raise RangeError("CosineAnnealingLR: T_max must not be 0.")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + cos(pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up from ``max_lr / div_factor`` to ``max_lr``, then down to that start over ``final_div_factor``; the
    momentum goes the other way.

    Args:
        optimizer: whose rates, and whose momentum or first beta.
        max_lr: the highest rate, or one per group.
        total_steps: steps of the whole cycle; or ``epochs`` times ``steps_per_epoch``.
        epochs, steps_per_epoch: the same by two factors.
        pct_start: share of the steps that go up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether momentum (or the first beta) goes down while the rate goes up, and back.
        base_momentum, max_momentum: the lowest and the highest momentum, or one per group.
        div_factor, final_div_factor: see above.
        three_phase: come back to the start as slowly as it was left, then go on to the last rate.
        last_epoch: steps already taken; -1 begins anew.

    Raises:
        RangeError: a step after the last, settings out of range, or an optimizer without momentum.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html; Smith and
        Topin 2018, "Super-Convergence"
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        check_is_optimizer(self, optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise RangeError("OneCycleLR: give total_steps, or epochs and steps_per_epoch.")
            total_steps = self._number("epochs", epochs) * self._number("steps_per_epoch", steps_per_epoch)
        steps, pct_start = self._number("total_steps", total_steps), self._number("pct_start", pct_start)
        div_factor = self._number("div_factor", div_factor)
        final_div_factor = self._number("final_div_factor", final_div_factor)
        if not (div_factor and final_div_factor):
            raise RangeError("OneCycleLR: div_factor and final_div_factor must not be 0.")
        if steps <= 0 or not 0 <= pct_start <= 1:
            raise RangeError(
                f"OneCycleLR: total_steps {steps} must be positive and pct_start {pct_start} "
                "lie between 0 and 1."
            )
        if anneal_strategy not in ("cos", "linear"):
            raise RangeError(
                f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}."
            )
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise RangeError(
                f"OneCycleLR: {type(optimizer).__name__} has neither momentum nor betas. Give "
                "cycle_momentum=False."
            )
        self.total_steps = steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        # At which step each phase ends, and the rates and momenta (keys of a group) between which it goes.
        up, end = float(pct_start * steps) - 1, float(steps - 1)
        rise = (up, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            back = (2 * (up + 1) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
            self.phases = [rise, back, (end, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            self.phases = [rise, (end, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        if last_epoch == -1:
            groups = optimizer.param_groups
            for group, highest in zip(groups, self._by_group("max_lr", max_lr, groups), strict=True):
                group["initial_lr"], group["max_lr"] = highest / div_factor, highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
            if cycle_momentum:
                lowest = self._by_group("base_momentum", base_momentum, groups)
                highest = self._by_group("max_momentum", max_momentum, groups)
                for group, low, high in zip(groups, lowest, highest, strict=True):
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _by_group(name: str, value: Any, groups: Sequence[Any]) -> list[float]:
        values = list(value) if isinstance(value, (list, tuple)) else [value] * len(groups)
        values = [number(v, f"OneCycleLR: {name}") for v in values]
        if len(values) != len(groups):
            raise RangeError(
                f"OneCycleLR: {len(values)} values of {name} for {len(groups)} groups. Give one, or one per "
                "group."
            )
        return values

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + cos(pi * share))

    def get_lr(self) -> list[float]:
        """The rates of step ``last_epoch``, by group; also sets the momenta."""
        step = self.last_epoch
        if step > self.total_steps:
            raise RangeError(f"OneCycleLR: step {step} is after the last of {self.total_steps}.")
        begin, phase = 0.0, self.phases[0]
        for phase in self.phases:
            if step <= phase[0] or phase is self.phases[-1]:
                break
            begin = phase[0]
        end, lr, next_lr, momentum, next_momentum = phase
        share = (step - begin) / (end - begin) if end != begin else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[lr], group[next_lr], share))
            if self.cycle_momentum:
                value = self._between(group[momentum], group[next_momentum], share)
                if "betas" in group:
                    group["betas"] = (value, *group["betas"][1:])
                else:
                    group["momentum"] = value
        return rates


class SequentialLR(LRScheduler):
    """One schedule after the other.

    Args:
        optimizer: whose rates.
        schedulers: each begins its own count at its milestone.
        milestones: steps at which the second and later ones begin.
        last_epoch: the step before the first, as PyTorch counts: -1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ):
        check_is_optimizer(self, optimizer)
        schedulers = listed(self, "schedulers", schedulers)
        milestones = [self._number("milestones", m) for m in listed(self, "milestones", milestones)]
        for each in schedulers:
            if not isinstance(each, LRScheduler):
                raise ArgumentError(f"SequentialLR: schedulers must be schedules, not {describe(each)}.")
        if not schedulers:
            raise RangeError("SequentialLR: there are no schedules.")
        last_epoch = self._number("last_epoch", last_epoch)
        if len(milestones) != len(schedulers) - 1:
            raise RangeError(
                f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, "
                f"not {len(milestones)}."
            )
        self.optimizer = optimizer
        self.schedulers = schedulers
        self.milestones = milestones
        self.last_epoch = last_epoch + 1
        self.base_lrs = self.schedulers[0].base_lrs
        self._begin(self.schedulers[0])

    def _begin(self, scheduler: LRScheduler) -> None:
        for group, base in zip(self.optimizer.param_groups, scheduler.base_lrs, strict=True):
            group["lr"] = base
        scheduler.last_epoch = -1
        scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def step(self) -> None:
        note_step()
        self.last_epoch += 1
        k = bisect_right(self.milestones, self.last_epoch)
        if k and self.milestones[k - 1] == self.last_epoch:
            self._begin(self.schedulers[k])
        else:
            self.schedulers[k].step()
        self._last_lr = self.schedulers[k].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        own = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "schedulers")}
        return {**own, "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        given = dict(state_dict)
        for scheduler, state in zip(self.schedulers, given.pop("schedulers"), strict=True):
            scheduler.load_state_dict(state)
        self.__dict__.update(given)


__all__ = [
    "ConstantLR", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "OneCycleLR", "SequentialLR", "StepLR",
]  # fmt: skip

refuse_others("torch.optim.lr_scheduler", globals())
