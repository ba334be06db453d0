"""Trajectories: many steps of a Hamiltonian system, captured once and replayed, and their energies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..autograd.grad_mode import under
from ..op.jit import compile
from ..ops.shape.joining import stack
from ..tensors.construct import tensor
from ..tensors.tensor import Tensor
from .hamiltonian import Hamiltonian, SeparableHamiltonian, check_phase
from .integrators import check_dt, check_steps, stepper


@dataclass(frozen=True)
class Trajectory:
    """Where a batch of systems was at some times.

    Attributes:
        t: times (times,), from 0.
        q, p: positions and momenta (times, ..., dim).
        energy: (times, ...).
    """

    t: Tensor
    q: Tensor
    p: Tensor
    energy: Tensor

    @property
    def drift(self) -> float:
        """The largest ``|H(t) - H(0)|`` of all trajectories and times. Waits for the device."""
        return (self.energy - self.energy[0]).abs().max().item()

    def __repr__(self) -> str:
        end, shape = self.t[-1].item(), tuple(self.q.shape)
        return f"Trajectory(t=0 to {end:g}, q and p of shape {shape}, drift={self.drift:.3g})"


def integrate(
    system: Hamiltonian,
    q: Tensor,
    p: Tensor,
    dt: float,
    steps: int,
    *,
    method: str = "leapfrog",
    every: int = 1,
    on_step: Callable[[int, Tensor, Tensor], object] | None = None,
) -> Trajectory:
    """Follow a batch of trajectories by a symplectic method.

    On ``webgpu`` a step is captured: all trajectories move in one chain of dispatches, which is replayed.
    Where something requires grad, steps run eagerly and the result hangs in the graph.

    Args:
        system: a `Hamiltonian`.
        q, p: where they begin, (..., dim).
        dt: the step; negative goes back in time.
        steps: how many.
        method: of separable systems ``"symplectic_euler"`` (order 1) and ``"leapfrog"`` (2); of any
            ``"implicit_midpoint"`` (2), ``"yoshida4"`` and ``"yoshida6"``.
        every: keep one state of so many.
        on_step: called with the number of steps, q and p, whenever a state is kept; what draws while it runs.

    Returns:
        A `Trajectory` of ``1 + steps // every`` times.

    Raises:
        ShapeError: q and p differ in shape.
        RangeError: no such method, no step, or a method that the system does not allow.

    Source: Hairer, Lubich and Wanner 2006, "Geometric numerical integration", sections I.1, II.5, V.3;
        Yoshida 1990, "Construction of higher order symplectic integrators"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q, p = torch.tensor([1.0, 0.0], device="cpu"), torch.tensor([0.0, 1.0], device="cpu")
        >>> path = physics.integrate(physics.harmonic_oscillator(), q, p, dt=0.01, steps=1000, every=100)
        >>> path.q.shape, path.drift < 1e-6
        (Size([11, 2]), True)
    """
    check_phase("integrate", q, p)
    check_dt("integrate", dt)
    check_steps("integrate", steps=steps, every=every)
    step = system._steps.get(method)
    if step is None:
        step = system._steps[method] = compile(stepper(system, method), dynamic=("dt",))
    dt = float(dt)
    state: tuple[Tensor, ...] = (q, p)
    if isinstance(system, SeparableHamiltonian) and method not in ("symplectic_euler", "implicit_midpoint"):
        state = (q, p, system.force(q))
    kept = [(q, p)]
    for k in range(1, steps + 1):
        state = step(*state, dt)
        if k % every == 0:
            kept.append((state[0], state[1]))
            if on_step is not None:
                under(False, on_step, k, state[0].detach(), state[1].detach())
    qs, ps = (stack(list(values)) for values in zip(*kept, strict=True))
    times = tensor([k * every * dt for k in range(len(kept))], dtype=q.dtype, device=q.device)
    return Trajectory(times, qs, ps, system.energy(qs, ps))
