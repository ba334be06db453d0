"""The base of all schedules of learning rates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..device.stream import stream
from ..errors import ArgumentError
from ..op.arguments import describe, number
from .optimizer import Optimizer


def note_step() -> None:
    """A replay of a captured function takes no step of a schedule; it follows the rates that are set."""
    if (capturing := stream().capturing) is not None:
        capturing.refuse("it steps a learning-rate schedule. Step it after the call")


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
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self.step()

    def _number(self, name: str, value: Any) -> Any:
        """A setting that is a number."""
        return number(value, f"{type(self).__name__}: {name}")

    def get_lr(self) -> list[float]:
        """The rates of step ``last_epoch``, by group."""
        raise NotImplementedError(f"{type(self).__name__}: define get_lr().")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, by group."""
        return self._last_lr

    def step(self) -> None:
        """Go to the next step and set its rates; call it after the optimizer's step."""
        note_step()
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


__all__ = ["LRScheduler", "check_is_optimizer", "listed", "note_step"]
