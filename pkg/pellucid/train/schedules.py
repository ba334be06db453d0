"""Learning-rate schedules with a warmup, by transformers' names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import cos, pi
from typing import Any

from ..errors import RangeError
from ..optim.lr_scheduler import LambdaLR, LRScheduler
from ..optim.optimizer import Optimizer


def _progress(step: int, warmup: int, total: int) -> float:
    return (step - warmup) / max(1, total - warmup)


def _linear(step: int, warmup: int, total: int) -> float:
    return max(0.0, 1 - _progress(step, warmup, total))


def _cosine(step: int, warmup: int, total: int, num_cycles: float = 0.5) -> float:
    return max(0.0, 0.5 * (1 + cos(pi * num_cycles * 2 * _progress(step, warmup, total))))


def _restarts(step: int, warmup: int, total: int, num_cycles: int = 1) -> float:
    progress = _progress(step, warmup, total)
    return 0.0 if progress >= 1 else max(0.0, 0.5 * (1 + cos(pi * (num_cycles * progress % 1))))


def _cosine_to(
    step: int, warmup: int, total: int, num_cycles: float = 0.5, min_lr_rate: float = 0.0
) -> float:
    fall = 0.5 * (1 + cos(pi * num_cycles * 2 * _progress(step, warmup, total)))
    return max(0.0, fall * (1 - min_lr_rate) + min_lr_rate)


def _polynomial(
    step: int, warmup: int, total: int, rate: float, lr_end: float = 1e-7, power: float = 1.0
) -> float:
    if step > total:
        return lr_end / rate
    left = 1 - (step - warmup) / (total - warmup)
    return ((rate - lr_end) * left**power + lr_end) / rate


def _inverse_sqrt(step: int, warmup: int, total: int, timescale: int | None = None) -> float:
    scale = timescale or warmup or 10_000
    return 1.0 / ((step + scale - warmup) / scale) ** 0.5


def _wsd(
    step: int,
    warmup: int,
    total: int,
    num_decay_steps: int | None = None,
    min_lr_ratio: float = 0.0,
    num_cycles: float = 0.5,
) -> float:
    """Warmup, then stable, then decay to a smaller rate."""
    decay = num_decay_steps if num_decay_steps is not None else max(1, total // 10)
    begin = total - decay
    if step < begin:
        return 1.0
    if step >= total:
        return min_lr_ratio
    fall = 0.5 * (1 + cos(pi * num_cycles * 2 * (step - begin) / max(1, decay)))
    return max(0.0, fall * (1 - min_lr_ratio) + min_lr_ratio)


def _level(step: int, warmup: int, total: int) -> float:
    return 1.0


# What follows the warmup: a factor of the rate by step, steps of warmup and steps of all.
SCHEDULES: dict[str, Callable[..., float]] = {
    "linear": _linear,
    "cosine": _cosine,
    "cosine_with_restarts": _restarts,
    "cosine_with_min_lr": _cosine_to,
    "polynomial": _polynomial,
    "constant": _level,
    "constant_with_warmup": _level,
    "inverse_sqrt": _inverse_sqrt,
    "warmup_stable_decay": _wsd,
}


def get_scheduler(
    name: str,
    optimizer: Optimizer,
    num_warmup_steps: int = 0,
    num_training_steps: int = 0,
    scheduler_specific_kwargs: dict[str, Any] | None = None,
) -> LRScheduler:
    """A schedule that rises from 0 in the warmup and then follows its name.

    Args:
        name: of `SCHEDULES`; "constant" has no warmup.
        optimizer: whose rates.
        num_warmup_steps: steps that rates rise.
        num_training_steps: steps of all.
        scheduler_specific_kwargs: further settings, such as ``{"num_cycles": 2}``.

    Raises:
        RangeError: there is no such schedule.

    Source: https://huggingface.co/docs/transformers/main_classes/optimizer_schedules

    Example:
        >>> import pellucid as torch
        >>> optimizer = torch.optim.SGD([torch.zeros(1, device="cpu", requires_grad=True)], lr=1.0)
        >>> schedule = torch.train.get_scheduler("linear", optimizer, 2, 6)
        >>> rates = []
        >>> for _ in range(6):
        ...     rates.append(schedule.get_last_lr()[0])
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [0.0, 0.5, 1.0, 0.75, 0.5, 0.25]
    """
    if name not in SCHEDULES:
        raise RangeError(f"get_scheduler: name must be one of {', '.join(SCHEDULES)}, not {name!r}.")
    settings, after = dict(scheduler_specific_kwargs or {}), SCHEDULES[name]
    warmup = 0 if name == "constant" else num_warmup_steps
    if name == "polynomial":
        settings["rate"] = optimizer.defaults["lr"]
    if name == "cosine_with_min_lr" and "min_lr" in settings:
        settings["min_lr_rate"] = settings.pop("min_lr") / optimizer.defaults["lr"]
    follow = partial(after, warmup=warmup, total=num_training_steps, **settings)
    low = settings.get("min_lr_ratio", 0.0)

    def factor(step: int) -> float:
        return step / max(1, warmup) * (1 - low) + low if step < warmup else follow(step)

    return LambdaLR(optimizer, factor)


__all__ = ["SCHEDULES", "get_scheduler"]
