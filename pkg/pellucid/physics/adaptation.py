"""Adaptation of samplers: dual averaging of the step, and variances of windows as inverse masses."""

from __future__ import annotations

import math

from ..ops.shape.joining import stack
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor

# Hoffman and Gelman's: how strongly, how early and how long the step follows the acceptance.
_SHRINK, _EARLY, _DECAY = 0.05, 10.0, 0.75


class DualAveraging:
    """A step size that brings the mean acceptance to a target, kept on the device.

    ``log e(t) = mu - sqrt(t) / 0.05 * mean(target - acceptance)``, and its average, which later steps weigh
    less.

    Args:
        step_size: the first.
        target: the mean acceptance that is wanted.
        like: a Tensor of the device and dtype.

    Source: Hoffman and Gelman 2014, "The no-U-turn sampler", section 3.2
    """

    def __init__(self, step_size: float, target: float, like: Tensor):
        self.target = target
        self.count = 0
        self.centre = math.log(10 * step_size)
        first = tensor(math.log(step_size), dtype=like.dtype, device=like.device)
        self.log_step, self.log_mean, self.miss = first, first, first * 0

    def update(self, acceptance: Tensor) -> None:
        """Follow the acceptance of a step, whose mean over all chains counts."""
        self.count += 1
        t = self.count
        share = 1 / (t + _EARLY)
        self.miss = self.miss * (1 - share) + (acceptance.mean() * -1 + self.target) * share
        self.log_step = self.miss * (-math.sqrt(t) / _SHRINK) + self.centre
        weight = t**-_DECAY
        self.log_mean = self.log_step * weight + self.log_mean * (1 - weight)

    @property
    def step(self) -> Tensor:
        """The step to try next."""
        return self.log_step.exp()

    @property
    def final(self) -> Tensor:
        """The step to keep."""
        return self.log_mean.exp()


def window_ends(warmup: int) -> list[int]:
    """After which steps of a warmup masses follow the draws since the last of them: windows that double.

    Warmups below 150 have one window, and keep more steps behind it than Stan's do, so that the step settles.

    Source: Stan Development Team, "Stan reference manual", section "HMC algorithm parameters"
    """
    if warmup < 20:
        return []
    start, base, end = (75, 25, 50) if warmup >= 150 else (int(0.15 * warmup), 0, int(0.3 * warmup))
    if not base:
        return [start, warmup - end]
    ends, at, width = [start], start, base
    while at + width <= warmup - end:
        # A window that the next, twice as long, would not fit behind goes to the end.
        at = warmup - end if at + 3 * width > warmup - end else at + width
        ends.append(at)
        width *= 2
    return ends


def inverse_masses(draws: list[Tensor]) -> Tensor:
    """Variances of draws (chains, dim) each, drawn towards 0.001 where draws are few: (dim,)."""
    x = stack(draws)
    x = x.reshape(-1, x.shape[-1])
    n = x.shape[0]
    return x.var(0) * (n / (n + 5)) + 1e-3 * 5 / (n + 5)
