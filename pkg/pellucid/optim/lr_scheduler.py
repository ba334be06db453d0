"""Learning rates that change with the steps: PyTorch's ``torch.optim.lr_scheduler``."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import cos, pi
from typing import Any

from ..device.stream import stream
from .optimizer import Optimizer


def _note_step() -> None:
    """A replay of a captured function takes no step of a schedule; it follows the rates that are set."""
    if (capturing := stream().capturing) is not None:
        capturing.refuse("it steps a learning-rate schedule. Step it after the call")


class LRScheduler:
    """Base of all schedules: sets the rate of each group at construction and at every `step`.

    Args:
        optimizer: whose rates.
        last_epoch: steps already taken; -1 begins anew.

    Attributes:
        base_lrs: the rates at the beginning.
        last_epoch: steps taken.

    Source: https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: takes an optimizer, not {type(optimizer).__name__}.")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                # Kept if it is there: with several schedules on one optimizer all start from the same rate.
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: to go on at step {last_epoch}, each group needs 'initial_lr'."
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self.step()

    def get_lr(self) -> list[float]:
        """The rates of step ``last_epoch``, by group."""
        raise NotImplementedError(f"{type(self).__name__}: define get_lr().")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, by group."""
        return self._last_lr

    def step(self) -> None:
        """Go to the next step and set its rates; call it after the optimizer's step."""
        _note_step()
        self.last_epoch += 1
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    @property
    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` gave."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """``base * lr_lambda(step)``.

    Args:
        optimizer: whose rates.
        lr_lambda: a function of the step, or one per group.
        last_epoch: steps already taken; -1 begins anew.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | Sequence[Callable], last_epoch: int = -1):
        count = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueError(
                f"LambdaLR: {len(self.lr_lambdas)} functions for {count} groups. Give one, or one per group."
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
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
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._rates]


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
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
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(
                "LinearLR: factors must lie between 0 and 1, the first above 0; they are "
                f"{start_factor} and {end_factor}."
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        done = min(self.last_epoch, self.total_iters) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The base times ``factor`` for the first ``total_iters`` steps."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must lie between 0 and 1, not {factor}.")
        self.factor = factor
        self.total_iters = total_iters
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
        self.T_max = T_max
        self.eta_min = eta_min
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
        ValueError: a step after the last, settings out of range, or an optimizer without momentum.

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
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"OneCycleLR: takes an optimizer, not {type(optimizer).__name__}.")
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or epochs and steps_per_epoch.")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0 <= pct_start <= 1:
            raise ValueError(
                f"OneCycleLR: total_steps {total_steps} must be positive and pct_start {pct_start} "
                "lie between 0 and 1."
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}."
            )
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError(
                f"OneCycleLR: {type(optimizer).__name__} has neither momentum nor betas. Give "
                "cycle_momentum=False."
            )
        self.total_steps = total_steps
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        # At which step each phase ends, and the rates and momenta (keys of a group) between which it goes.
        up, end = float(pct_start * total_steps) - 1, float(total_steps - 1)
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
        values = list(value) if isinstance(value, Sequence) else [value] * len(groups)
        if len(values) != len(groups):
            raise ValueError(
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
            raise ValueError(f"OneCycleLR: step {step} is after the last of {self.total_steps}.")
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
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, "
                f"not {len(milestones)}."
            )
        self.optimizer = optimizer
        self.schedulers = list(schedulers)
        self.milestones = list(milestones)
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
        _note_step()
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
