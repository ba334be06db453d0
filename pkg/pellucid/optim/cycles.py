"""Schedules that go up and down: one cycle, many, and cosines that begin anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, floor, pi
from typing import Any

from ..errors import RangeError
from .optimizer import Optimizer
from .schedule import LRScheduler, check_is_optimizer, note_step, set_momentum


def _phase(end: float, lr: str, next_lr: str, momentum: str, next_momentum: str) -> dict[str, Any]:
    return {
        "end_step": end, "start_lr": lr, "end_lr": next_lr, "start_momentum": momentum,
        "end_momentum": next_momentum,
    }  # fmt: skip


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
        self.optimizer = optimizer
        if cycle_momentum:
            self._cycles()
        self.total_steps = steps
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        # At which step each phase ends, and the rates and momenta (keys of a group) between which it goes.
        up, end = float(pct_start * steps) - 1, steps - 1
        rise = _phase(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            back = _phase(2 * (up + 1) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
            last = _phase(end, "initial_lr", "min_lr", "max_momentum", "max_momentum")
            self._schedule_phases = [rise, back, last]
        else:
            last = _phase(end, "max_lr", "min_lr", "base_momentum", "max_momentum")
            self._schedule_phases = [rise, last]
        if last_epoch == -1:
            groups = optimizer.param_groups
            for group, highest in zip(groups, self._by_group("max_lr", max_lr), strict=True):
                group["initial_lr"], group["max_lr"] = highest / div_factor, highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
            if cycle_momentum:
                lowest = self._by_group("base_momentum", base_momentum)
                highest = self._by_group("max_momentum", max_momentum)
                for group, low, high in zip(groups, lowest, highest, strict=True):
                    group["base_momentum"], group["max_momentum"] = low, high
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2 * (1 + cos(pi * share))

    def get_lr(self) -> list[float]:
        """The rates of step ``last_epoch``, by group; also sets the momenta."""
        step = self.last_epoch
        if step > self.total_steps:
            raise RangeError(f"OneCycleLR: step {step} is after the last of {self.total_steps}.")
        begin, phase = 0.0, self._schedule_phases[0]
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        end = phase["end_step"]
        share = (step - begin) / (end - begin) if end != begin else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                low, high = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._between(low, high, share))
        return rates


class CyclicLR(LRScheduler):
    """Up from ``base_lr`` to ``max_lr`` and back, again and again; the momentum goes the other way.

    Args:
        optimizer: whose rates, and whose momentum or first beta.
        base_lr, max_lr: the lowest and the highest rate, or one per group.
        step_size_up, step_size_down: steps of each half; the second is like the first if None.
        mode: "triangular"; "triangular2" halves the height each cycle; "exp_range" multiplies it by ``gamma``
            each step.
        gamma: see above.
        scale_fn: the share of the height, a function of the cycle or the step, instead of ``mode``.
        scale_mode: "cycle" or "iterations": of what ``scale_fn`` is a function.
        cycle_momentum: whether momentum (or the first beta) goes down while the rate goes up, and back.
        base_momentum, max_momentum: the lowest and the highest momentum, or one per group.

    Raises:
        RangeError: an unknown mode, or an optimizer without momentum.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CyclicLR.html; Smith 2017,
        "Cyclical learning rates for training neural networks"
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ):
        check_is_optimizer(self, optimizer)
        self.optimizer = optimizer
        self.max_lrs = self._by_group("max_lr", max_lr)
        up = float(self._number("step_size_up", step_size_up))
        down = up if step_size_down is None else float(self._number("step_size_down", step_size_down))
        if not (up > 0 and down > 0):
            raise RangeError(f"CyclicLR: halves of {up:g} and {down:g} steps must have some.")
        self.total_size, self.step_ratio = up + down, up / (up + down)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise RangeError(
                f"CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', not {mode!r}."
            )
        self.mode, self.gamma, self._scale_fn_custom = mode, self._number("gamma", gamma), scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        lowest = self._by_group("base_lr", base_lr)
        if cycle_momentum:
            self._cycles()
            self.base_momentums = self._by_group("base_momentum", base_momentum)
            self.max_momentums = self._by_group("max_momentum", max_momentum)
        if last_epoch == -1:
            for k, group in enumerate(optimizer.param_groups):
                group["lr"] = lowest[k]
                if cycle_momentum:
                    group["base_momentum"], group["max_momentum"] = (
                        self.base_momentums[k],
                        self.max_momentums[k],
                    )
        super().__init__(optimizer, last_epoch)
        # The first rate is made of what the groups began with, as in PyTorch.
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """The share of the height in a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        powers = {"triangular": 1.0, "triangular2": 2.0 ** (1 - x), "exp_range": self.gamma**x}
        return powers[self.mode]

    def get_lr(self) -> list[float]:
        """The rates of step ``last_epoch``, by group; also sets the momenta."""
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for k, group in enumerate(self.optimizer.param_groups):
                low, high = self.base_momentums[k], self.max_momentums[k]
                set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "_scale_fn_custom": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        own = self._scale_fn_custom
        super().load_state_dict(state_dict)
        self._scale_fn_custom = own


class CosineAnnealingWarmRestarts(LRScheduler):
    """A falling half wave of a cosine from the base to ``eta_min``, again and again, each ``T_mult`` times as
    long as the last.

    Args:
        T_0: steps of the first.
        T_mult: see above.
        eta_min: the lowest rate.

    Raises:
        RangeError: ``T_0`` or ``T_mult`` is no positive integer.

    Source: https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.html;
        Loshchilov and Hutter 2017, "SGDR"
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ):
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise RangeError(
                    f"CosineAnnealingWarmRestarts: {name} must be a positive integer, not {value!r}."
                )
        self.T_0 = self.T_i = T_0
        self.T_mult, self.T_cur = T_mult, last_epoch
        self.eta_min = self._number("eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next step and set its rates.

        Args:
            epoch: go there instead; it may lie between two steps.

        Raises:
            RangeError: it is negative.
        """
        note_step()
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
            return self._update_lr(self.last_epoch + 1)
        at: Any = 0 if epoch is None else self._number("epoch", epoch)
        if at < 0:
            raise RangeError(f"CosineAnnealingWarmRestarts: a step must be at least 0, not {at}.")
        self.T_cur, self.T_i = at, self.T_0
        if self.T_mult == 1:
            self.T_cur = at % self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        self._update_lr(floor(at))


__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]
