"""Hamiltonian Monte Carlo: chains that move as particles in the potential ``-log density``, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..autograd.transforms import grad_and_value
from ..errors import RangeError
from ..op.jit import compile
from ..ops.elementwise.comparison import where
from ..ops.random.distributions import rand, randn_like
from ..tensors.tensor import Tensor
from .hamiltonian import one_for_each
from .integrators import check_steps

# An energy that grew by more is a divergence: the step is too long for the curvature there.
DIVERGENT = 1000.0
LogDensity = Callable[[Tensor], Tensor]


class State(NamedTuple):
    """Where chains are: positions (chains, dim), log densities (chains,) and their gradients."""

    q: Tensor
    log_density: Tensor
    slope: Tensor


class Move(NamedTuple):
    """What became of a transition: the state, acceptance, whether energy diverged, and gradients,
    (chains,).
    """

    state: State
    acceptance: Tensor
    divergent: Tensor
    gradients: Tensor


def evaluate(log_density: LogDensity, q: Tensor) -> State:
    """Log densities and gradients of all chains, in one walk."""

    def total(q: Tensor) -> tuple[Tensor, Tensor]:
        values = one_for_each("log_density", log_density(q), q)
        return values.sum(), values

    slope, (_, values) = grad_and_value(total, has_aux=True)(q)
    return State(q, values, slope)


def kinetic(p: Tensor, inverse: Tensor) -> Tensor:
    """``sum(p^2 / m) / 2``: (chains,)."""
    return (p * p * inverse).sum(-1) / 2


def drift(
    log_density: LogDensity, at: State, p: Tensor, step: Tensor, inverse: Tensor
) -> tuple[State, Tensor]:
    """One leapfrog step of all chains."""
    p = p + at.slope * (step * 0.5)
    at = evaluate(log_density, at.q + p * inverse * step)
    return at, p + at.slope * (step * 0.5)


def growth(at: State, p: Tensor, inverse: Tensor, energy: Tensor) -> Tensor:
    """By how much energy grew, infinite where it is no number: (chains,)."""
    grown = kinetic(p, inverse) - at.log_density - energy
    return where(grown.isnan(), float("inf"), grown)


class HMC:
    """Hamiltonian Monte Carlo with a fixed number of leapfrog steps.

    Momenta are drawn anew, all chains move, and each accepts where it comes to with the probability
    ``min(1, exp(H - H'))``. A transition is one chain of dispatches, which is captured.

    Args:
        steps: leapfrog steps of a transition.
        jitter: steps of chains vary by so much, evenly, at each transition, so that no orbit closes.

    Raises:
        RangeError: no step, or a jitter outside 0 to 1.

    Source: Duane et al. 1987, "Hybrid Monte Carlo"; Neal 2011, "MCMC using Hamiltonian dynamics"

    Example:
        >>> from pellucid import physics
        >>> physics.HMC(steps=20)
        HMC(steps=20, jitter=0.2)
    """

    target = 0.8

    def __init__(self, steps: int = 16, jitter: float = 0.2):
        check_steps("HMC", steps=steps)
        if not 0 <= jitter < 1:
            raise RangeError(f"HMC: jitter must be at least 0 and below 1, not {jitter!r}.")
        self.steps, self.jitter = steps, jitter

    def __repr__(self) -> str:
        return f"HMC(steps={self.steps}, jitter={self.jitter})"

    def transition(self, log_density: LogDensity) -> Callable[[State, Tensor, Tensor], Move]:
        """The function of a state, a step (a Tensor of no axes) and inverse masses (dim,) to a `Move`."""
        steps, jitter = self.steps, self.jitter

        def move(
            q: Tensor, values: Tensor, slope: Tensor, step: Tensor, inverse: Tensor
        ) -> tuple[Tensor, ...]:
            start = at = State(q, values, slope)
            p = randn_like(q) / inverse.sqrt()
            energy = kinetic(p, inverse) - values
            if jitter:
                step = step * (rand(len(q), 1, dtype=q.dtype, device=q.device) * (2 * jitter) + (1 - jitter))
            for _ in range(steps):
                at, p = drift(log_density, at, p, step, inverse)
            grown = growth(at, p, inverse, energy)
            acceptance = (-grown).exp().clamp(max=1.0)
            accepted = rand(len(q), dtype=q.dtype, device=q.device) < acceptance
            kept = (
                where(accepted.unsqueeze(-1) if a.ndim == 2 else accepted, a, b)
                for a, b in zip(at, start, strict=True)
            )
            return (*kept, acceptance, grown > DIVERGENT)

        captured = compile(move)

        def transition(state: State, step: Tensor, inverse: Tensor) -> Move:
            q, values, slope, acceptance, divergent = captured(*state, step, inverse)
            return Move(State(q, values, slope), acceptance, divergent, values * 0 + steps)

        return transition
