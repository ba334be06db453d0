"""Schedules of schedules, and one that follows a measure: sequence, product, plateau."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import inf
from typing import Any

from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from .optimizer import Optimizer
from .schedule import LRScheduler, check_is_optimizer, listed, note_step, warn_of_epoch


def _check_all(chain: LRScheduler, schedulers: Sequence[Any], optimizer: Optimizer | None) -> None:
    """Refuse what are not schedules of one optimizer, each by its step alone."""
    name = type(chain).__name__
    if not schedulers:
        raise RangeError(f"{name}: there are no schedules.")
    for each in schedulers:
        if not isinstance(each, LRScheduler):
            raise ArgumentError(f"{name}: schedulers must be schedules, not {describe(each)}.")
        if isinstance(each, ReduceLROnPlateau):
            raise RangeError(f"{name}: ReduceLROnPlateau needs a measure at each step. Step it by itself.")
        if each.optimizer is not (optimizer or schedulers[0].optimizer):
            raise RangeError(f"{name}: a {type(each).__name__} is a schedule of another optimizer.")


class _OfSchedules(LRScheduler):
    """Base of schedules that are made of others, in ``_schedulers``."""

    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedules."""
        own = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        return {**own, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        given = dict(state_dict)
        for scheduler, state in zip(self._schedulers, given.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(state)
        self.__dict__.update(given)


class SequentialLR(_OfSchedules):
    """One schedule after the other.

    Args:
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
        _check_all(self, schedulers, optimizer)
        last_epoch = self._number("last_epoch", last_epoch)
        if len(milestones) != len(schedulers) - 1:
            raise RangeError(
                f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, "
                f"not {len(milestones)}."
            )
        self.optimizer = optimizer
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self._begin(self._schedulers[0])

    def _begin(self, scheduler: LRScheduler) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        scheduler.last_epoch = -1
        if "_step_count" in vars(scheduler):
            scheduler._step_count = 0  # it begins, whatever the optimizer has done
        scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        note_step()
        self.last_epoch += 1
        k = bisect_right(self._milestones, self.last_epoch)
        if k and self._milestones[k - 1] == self.last_epoch:
            self._begin(self._schedulers[k])
        else:
            self._schedulers[k].step()
        self._last_lr = self._schedulers[k].get_last_lr()


class ChainedScheduler(_OfSchedules):
    """Several schedules at once, each going on from what the one before made of the rates.

    Args:
        schedulers: of one optimizer.
        optimizer: that one.

    Raises:
        RangeError: there are none, or they belong to several optimizers.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ChainedScheduler.html
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        schedulers = listed(self, "schedulers", schedulers)
        _check_all(self, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer or schedulers[0].optimizer
        self._last_lr = self._rates

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Step every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when a measure has not become better for more than ``patience`` steps.

    Args:
        mode: "min" or "max": which way is better.
        factor: below 1.
        patience: steps without a better measure that are borne.
        threshold: by how much a better measure is better, "rel" as a share of the best or "abs".
        threshold_mode: see above.
        cooldown: steps after a reduction that do not count.
        min_lr: the lowest rate, or one per group.
        eps: reductions smaller than this are left out.

    Raises:
        RangeError: ``factor`` is 1 or more, or a mode is unknown.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ):
        check_is_optimizer(self, optimizer)
        if self._number("factor", factor) >= 1:
            raise RangeError(f"ReduceLROnPlateau: factor must be below 1, not {factor}.")
        for name, value, known in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if value not in known:
                raise RangeError(
                    f"ReduceLROnPlateau: {name} must be {known[0]!r} or {known[1]!r}, not {value!r}."
                )
        self.optimizer = optimizer
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.min_lrs = self._by_group("min_lr", min_lr)
        self.default_min_lr: Any = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.best = self.mode_worse = inf if mode == "min" else -inf
        self.last_epoch = self.cooldown_counter = self.num_bad_epochs = 0
        self._last_lr = self._rates

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction is too recent for bad steps to count."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            return sign * value > sign * (self.best * (1.0 + sign * self.threshold))
        return sign * value > sign * self.best + self.threshold

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Note a measure, and reduce the rates if it is time.

        Args:
            metrics: a number or a tensor of one element.
            epoch: the step.
        """
        note_step()
        value = float(metrics)
        if epoch is not None:
            warn_of_epoch(self)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates

    def _reduce(self) -> None:
        if self.default_min_lr is not None:
            self.min_lrs = [self.default_min_lr] * len(self.optimizer.param_groups)
        rates = self._rates
        if len(rates) != len(self.min_lrs):
            raise RangeError(
                f"ReduceLROnPlateau: {len(self.min_lrs)} values of min_lr for {len(rates)} groups. Set "
                "min_lrs."
            )
        lower = [max(lr * self.factor, least) for lr, least in zip(rates, self.min_lrs, strict=True)]
        self._set([new if lr - new > self.eps else lr for lr, new in zip(rates, lower, strict=True)])


__all__ = ["ChainedScheduler", "ReduceLROnPlateau", "SequentialLR"]
