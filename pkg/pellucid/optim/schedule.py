"""The base of all schedules of learning rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from ..autograd.grad_mode import under
from ..device.stream import stream
from ..errors import ArgumentError, RangeError, warn
from ..op.arguments import describe, number
from ..tensors.tensor import Tensor
from .optimizer import Optimizer
from .settings import constructed


def note_step() -> None:
    """A replay of a captured function takes no step of a schedule; it follows the rates that are set."""
    if (capturing := stream().capturing) is not None:
        capturing.refuse("it steps a learning-rate schedule. Step it after the call")


def _warning(get_lr: Callable) -> Callable:
    """A `get_lr` that says what to call in its place, where no step calls it."""

    @wraps(get_lr)
    def found(self: LRScheduler) -> list[float]:
        if not self._get_lr_called_within_step:
            warn(
                f"{type(self).__name__}: get_lr() computes a step. Call get_last_lr() for the present rates."
            )
        return get_lr(self)

    return found


def warn_of_epoch(scheduler: LRScheduler) -> None:
    """Say that steps count themselves."""
    warn(f"{type(scheduler).__name__}: epoch is deprecated. Call step() without it, once for each step.")


def check_is_optimizer(scheduler: LRScheduler, optimizer: Any) -> None:
    """Refuse what is no optimizer.

    Raises:
        ArgumentError: it is none.
    """
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"{type(scheduler).__name__}: takes an optimizer, not {describe(optimizer)}.")


def listed(scheduler: LRScheduler, name: str, values: Any) -> list[Any]:
    """A setting that is several values.

    Raises:
        ArgumentError: it is one.
    """
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise ArgumentError(f"{type(scheduler).__name__}: {name} must be a list, not {describe(values)}.")
    return list(values)


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

    _get_lr_called_within_step = False

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        constructed(cls)
        if "get_lr" in vars(cls) and cls.__module__.startswith("pellucid."):
            cls.get_lr = _warning(cls.get_lr)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_is_optimizer(self, optimizer)
        last_epoch = self._number("last_epoch", last_epoch)
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                # Kept if it is there: with several schedules on one optimizer all start from the same rate.
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: to go on at step {last_epoch}, each group needs 'initial_lr'."
                )
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        if optimizer._opt_called is None:
            optimizer._opt_called = False
        self._own_step = vars(optimizer).get("step")
        self._step_count = 0
        self._last_lr: list[float] = []
        self._is_initial = True
        self.step()
        self._is_initial = False

    def _number(self, name: str, value: Any) -> Any:
        """A setting that is a number."""
        return number(value, f"{type(self).__name__}: {name}")

    def get_lr(self) -> list[float]:
        """The rates of step ``last_epoch``, by group."""
        raise NotImplementedError(f"{type(self).__name__}: define get_lr().")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, by group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step and set its rates; call it after the optimizer's step.

        Args:
            epoch: go to this step instead; deprecated.
        """
        note_step()
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch(self)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Go to the next step, or to this one, and set its rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr() if epoch is None else self._get_closed_form_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _warn_of_order(self) -> None:
        """Say at the first step if the optimizer has taken none, which leaves the first rate out."""
        step = vars(self.optimizer).get("step")
        # What wraps the step in PyTorch's eyes is the step.
        if step is not self._own_step and not hasattr(step, "__wrapped__"):
            warn(
                f"{type(self).__name__}: optimizer.step was replaced after the schedule was made, which does "
                "not see its calls. Call optimizer.step() before lr_scheduler.step()."
            )
        elif not self.optimizer._opt_called:
            warn(
                f"{type(self).__name__}: lr_scheduler.step() was called before optimizer.step(), so no step "
                "uses the first rate. Call optimizer.step() first."
            )

    def _get_closed_form_lr(self) -> list[float]:
        """The rates of step ``last_epoch`` whatever the present ones are."""
        return self.get_lr()

    def _set(self, rates: list[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            if isinstance(group["lr"], Tensor):
                under(False, group["lr"].fill_, lr)
            else:
                group["lr"] = lr
        self._last_lr = self._rates

    @property
    def _rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def _by_group(self, name: str, value: Any) -> list[float]:
        """A setting that is one number, or one per group."""
        count = len(self.optimizer.param_groups)
        values = list(value) if isinstance(value, (list, tuple)) else [value] * count
        if len(values) != count:
            raise RangeError(
                f"{type(self).__name__}: {len(values)} values of {name} for {count} groups. Give one, or one "
                "per group."
            )
        return [self._number(name, v) for v in values]

    def _cycles(self) -> None:
        """Note which momentum of an optimizer is cycled, and refuse one that has none."""
        if not {"momentum", "betas"} & set(self.optimizer.defaults):
            raise RangeError(
                f"{type(self).__name__}: {type(self.optimizer).__name__} has neither momentum nor betas. "
                "Give cycle_momentum=False."
            )
        self.use_beta1 = "betas" in self.optimizer.defaults

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        left_out = ("optimizer", "lr_lambdas", "_own_step")
        return {k: v for k, v in self.__dict__.items() if k not in left_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` gave."""
        self.__dict__.update(state_dict)


class FactorLR(LRScheduler):
    """Base of schedules whose rate is ``least + (base - least) * factor``, a factor that only the step tells.

    Each step multiplies the present rate by what the factor changes, so that several such schedules of one
    optimizer multiply.
    """

    eta_min = 0.0
    # Whether a schedule that goes on leaves the rates as they are at its construction, as most do in PyTorch.
    _keeps_rates = True

    def _factor(self, step: int) -> float:
        raise NotImplementedError(f"{type(self).__name__}: define _factor().")

    def get_lr(self) -> list[float]:
        least, factor = self.eta_min, self._factor(self.last_epoch)
        if self._is_initial and self.last_epoch > 0 and self._keeps_rates:
            return self._rates
        before = 1.0 if self.last_epoch == 0 else self._factor(self.last_epoch - 1)
        if before == 0:
            return [lr + (base - least) * factor for lr, base in zip(self._rates, self.base_lrs, strict=True)]
        return [least + (lr - least) * (factor / before) for lr in self._rates]

    def _get_closed_form_lr(self) -> list[float]:
        return [
            self.eta_min + (base - self.eta_min) * self._factor(self.last_epoch) for base in self.base_lrs
        ]


def set_momentum(group: dict[str, Any], value: float) -> None:
    """Set the momentum of a group, or its first beta."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


__all__ = [
    "FactorLR", "LRScheduler", "check_is_optimizer", "listed", "note_step", "set_momentum", "warn_of_epoch",
]  # fmt: skip
