"""Sampling from a density by its logarithm: chains side by side, a warmup that adapts, draws with
diagnostics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..autograd.grad_mode import under
from ..errors import ArgumentError, RangeError, ShapeError
from ..op.arguments import describe
from ..ops.random.distributions import randn_like
from ..ops.shape.joining import stack
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .adaptation import DualAveraging, inverse_masses, window_ends
from .diagnostics import effective_sample_size, r_hat
from .hmc import HMC, LogDensity, State, drift, evaluate, growth, kinetic
from .integrators import check_steps
from .nuts import NUTS


@dataclass(frozen=True)
class Chains:
    """Draws of several chains, and how they were made.

    Attributes:
        samples: (draws, chains, dim).
        log_density: (draws, chains).
        acceptance: the mean acceptance of each draw's trajectory, (draws, chains).
        divergent: whether its energy diverged, (draws, chains).
        gradients: how many gradients it took, (draws, chains).
        step_size: after the warmup.
        inverse_mass: after the warmup, (dim,).
    """

    samples: Tensor
    log_density: Tensor
    acceptance: Tensor
    divergent: Tensor
    gradients: Tensor
    step_size: float
    inverse_mass: Tensor

    @property
    def divergences(self) -> int:
        """How many draws diverged: above 0, the geometry is too hard for the step. Waits for the device."""
        return int(self.divergent.sum().item())

    def r_hat(self) -> Tensor:
        """See `r_hat`: (dim,)."""
        return r_hat(self.samples)

    def effective_sample_size(self, kind: str = "bulk") -> Tensor:
        """See `effective_sample_size`: (dim,)."""
        return effective_sample_size(self.samples, kind)

    def summary(self) -> str:
        """A table of each coordinate: mean, standard deviation, quantiles, effective sizes and R-hat."""
        x = self.samples.cpu().flatten(0, 1)
        shares = tensor([0.05, 0.5, 0.95], dtype=x.dtype, device="cpu")
        columns = [
            x.mean(0),
            x.std(0),
            *x.quantile(shares, dim=0),
            self.effective_sample_size("bulk"),
            self.effective_sample_size("tail"),
            self.r_hat(),
        ]
        names = ("", "mean", "sd", "5%", "50%", "95%", "ess_bulk", "ess_tail", "r_hat")
        lines = ["".join(f"{name:>10}" for name in names)]
        for k, row in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            values = "".join(f"{v:10.3f}" for v in row[:5]) + "".join(f"{v:10.0f}" for v in row[5:7])
            lines.append(f"{f'x[{k}]':>10}{values}{row[7]:10.3f}")
        draws, chains = self.samples.shape[:2]
        lines.append(
            f"{chains} chains of {draws} draws, {self.divergences} divergences, step {self.step_size:.3g}, "
            f"acceptance {self.acceptance.mean().item():.2f}"
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Chains(samples of shape {tuple(self.samples.shape)}, {self.divergences} divergences)"


def sample(
    log_density: LogDensity,
    initial: Tensor,
    *,
    draws: int = 1000,
    warmup: int = 1000,
    kernel: HMC | NUTS | None = None,
    target_acceptance: float | None = None,
    step_size: float | None = None,
    on_draw: Callable[[int, Tensor], Any] | None = None,
) -> Chains:
    """Draw from a density that is known up to a factor, by Hamiltonian Monte Carlo.

    Gradients are autograd's. In the warmup the step follows the acceptance by dual averaging, and masses
    follow the variances of the draws, of all chains together. Random numbers are those of `manual_seed`.

    Args:
        log_density: of positions (chains, dim) to (chains,); no row looks at another.
        initial: where chains begin, (chains, dim). Spread them wider than the density, so that R-hat tells.
        draws: to keep of each chain.
        warmup: draws before, which are not kept.
        kernel: an `HMC` or a `NUTS`; ``NUTS()`` if None.
        target_acceptance: what dual averaging aims at; 0.8 if None. Higher is slower and diverges less.
        step_size: the first step; a search finds one if None. Without warmup it stays.
        on_draw: called with the number of the draw, negative in the warmup, and positions (chains, dim).

    Returns:
        `Chains`.

    Raises:
        ShapeError: positions are not (chains, dim), or the density is not one number for each chain.
        RangeError: the density is 0 or no number where a chain begins.

    Source: Hoffman and Gelman 2014, "The no-U-turn sampler"; Stan Development Team, "Stan reference manual",
        for the windows of the warmup

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> _ = torch.manual_seed(0)
        >>> chains = physics.sample(
        ...     lambda x: -(x**2).sum(-1) / 2,
        ...     torch.zeros(20, 1, device="cpu"),
        ...     draws=20,
        ...     warmup=20,
        ...     kernel=physics.HMC(steps=4),
        ... )
        >>> chains.samples.shape, abs(chains.samples.std().item() - 1) < 0.2
        (Size([20, 20, 1]), True)
    """
    if not isinstance(initial, Tensor) or not initial.is_floating_point():
        raise ArgumentError(f"sample: initial must be a floating-point Tensor, not {describe(initial)}.")
    if initial.ndim != 2 or not initial.numel():
        raise ShapeError(f"sample: initial of shape {tuple(initial.shape)} must be (chains, dim).")
    kernel = NUTS() if kernel is None else kernel
    if not isinstance(kernel, (HMC, NUTS)):
        raise ArgumentError(f"sample: kernel must be an HMC or a NUTS, not {describe(kernel)}.")
    check_steps("sample", draws=draws, warmup=warmup + 1)
    target = kernel.target if target_acceptance is None else target_acceptance
    if not 0 < target < 1:
        raise RangeError(f"sample: target_acceptance must be between 0 and 1, not {target!r}.")
    if step_size is not None and not step_size > 0:
        raise RangeError(f"sample: step_size must be above 0, not {step_size!r}.")
    return under(
        False, _sampled, log_density, initial.detach(), draws, warmup, kernel, target, step_size, on_draw
    )


def _sampled(
    log_density: LogDensity,
    q: Tensor,
    draws: int,
    warmup: int,
    kernel: HMC | NUTS,
    target: float,
    step_size: float | None,
    on_draw: Callable[[int, Tensor], Any] | None,
) -> Chains:
    state = evaluate(log_density, q)
    if not bool(state.log_density.isfinite().all() & state.slope.isfinite().all()):
        raise RangeError(
            "sample: the log density or its gradient is infinite or no number where a chain begins. "
            "Begin inside "
            "of what the density allows, or map the coordinates to all real numbers."
        )
    inverse = q[0] * 0 + 1
    first = step_size or _first_step(log_density, state, inverse)
    averaging = DualAveraging(first, target, q)
    transition = kernel.transition(log_density)
    ends, window = window_ends(warmup), []
    for k in range(warmup):
        move = transition(state, averaging.step, inverse)
        state = move.state
        averaging.update(move.acceptance)
        if on_draw is not None:
            on_draw(k - warmup, state.q)
        if ends and ends[0] <= k < ends[-1]:
            window.append(state.q)
        if k + 1 in ends[1:]:
            inverse, window = inverse_masses(window), []
            averaging = DualAveraging(_first_step(log_density, state, inverse), target, q)
    step = averaging.final
    kept: list[tuple[Tensor, ...]] = []
    for k in range(draws):
        move = transition(state, step, inverse)
        state = move.state
        kept.append((state.q, state.log_density, move.acceptance, move.divergent, move.gradients))
        if on_draw is not None:
            on_draw(k, state.q)
    qs, values, acceptance, divergent, gradients = (stack(list(v)) for v in zip(*kept, strict=True))
    return Chains(qs, values, acceptance, divergent, gradients, step.item(), inverse)


def _first_step(log_density: LogDensity, state: State, inverse: Tensor) -> float:
    """A step of which one leapfrog step is accepted with a probability of about a half.

    Source: Hoffman and Gelman 2014, algorithm 4
    """
    q = state.q
    p = randn_like(q) / inverse.sqrt()
    energy = kinetic(p, inverse) - state.log_density

    def accepted(step: float) -> bool:
        at, moved = drift(log_density, state, p, tensor(step, dtype=q.dtype, device=q.device), inverse)
        return (-growth(at, moved, inverse, energy)).exp().clamp(max=1.0).mean().item() > 0.5

    step = 0.5
    rising = accepted(step)
    for _ in range(30):
        longer = step * 2 if rising else step / 2
        if accepted(longer) != rising:
            return step if rising else longer
        step = longer
    raise RangeError(
        f"sample: no step between {0.5**31:.1g} and {2.0**29:.1g} is accepted about half of the time. Is the "
        "density constant, or its gradient wrong?"
    )
