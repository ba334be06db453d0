"""Symplectic integrators: symplectic Euler, leapfrog (Stoermer-Verlet), Yoshida's of order 4 and 6, the
implicit midpoint rule.

They keep the area of phase space, so the energy of a long run swings about its value and does not drift.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from ..tensors.tensor import Tensor
from .hamiltonian import Hamiltonian, SeparableHamiltonian, check_phase

Gradient = Callable[[Tensor], Tensor]
Phase = tuple[Tensor, Tensor]

# Fixed-point iterations of the implicit midpoint rule: each gains a factor dt * |H''| / 2.
ITERATIONS = 8


def _yoshida4() -> tuple[float, ...]:
    root = 2 ** (1 / 3)
    outer = 1 / (2 - root)
    return outer, -root * outer, outer


def _yoshida6() -> tuple[float, ...]:
    """Solution A of Yoshida's table 1."""
    first, second, third = -1.17767998417887, 0.235573213359357, 0.784513610477560
    middle = 1 - 2 * (first + second + third)
    return third, second, first, middle, first, second, third


class Scheme(NamedTuple):
    """A method: its order, and the parts of a step that it takes one after another by its base method."""

    order: int
    parts: tuple[float, ...]


METHODS = {
    "symplectic_euler": Scheme(1, ()),
    "leapfrog": Scheme(2, (1.0,)),
    "implicit_midpoint": Scheme(2, (1.0,)),
    "yoshida4": Scheme(4, _yoshida4()),
    "yoshida6": Scheme(6, _yoshida6()),
}


def check_dt(where: str, dt: Any) -> None:
    """A step is a finite number other than 0; a negative one goes back in time."""
    if isinstance(dt, bool) or not isinstance(dt, (int, float)):
        raise ArgumentError(f"{where}: dt must be a number, not {describe(dt)}.")
    if not abs(dt) > 0 or abs(dt) == float("inf"):
        raise RangeError(f"{where}: dt must be finite and not 0, not {dt!r}.")


def check_steps(where: str, **counts: Any) -> None:
    """Counts are whole numbers from 1 on."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise ArgumentError(f"{where}: {name} must be an integer, not {describe(count)}.")
        if count < 1:
            raise RangeError(f"{where}: {name} must be at least 1, not {count}.")


def symplectic_euler_step(
    q: Tensor, p: Tensor, grad_h_q: Gradient, grad_h_p: Gradient, dt: float
) -> tuple[Tensor, Tensor]:
    """One step of symplectic Euler, of order 1: momenta first, then positions by the new momenta.

    ``p' = p - dt dH/dq(q), q' = q + dt dH/dp(p')``

    Args:
        q, p: positions and momenta (..., dim).
        grad_h_q: ``dH/dq`` of positions.
        grad_h_p: ``dH/dp`` of momenta.
        dt: the step.

    Returns:
        Positions and momenta after the step.

    Raises:
        ShapeError: q and p differ in shape.

    Source: Hairer, Lubich and Wanner 2006, "Geometric numerical integration", equation I.1.9

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q, p = torch.tensor([1.0], device="cpu"), torch.tensor([0.0], device="cpu")
        >>> physics.symplectic_euler_step(q, p, lambda q: q, lambda p: p, 0.5)
        (tensor([0.7500], device='cpu'), tensor([-0.5000], device='cpu'))
    """
    check_phase("symplectic_euler_step", q, p)
    p = p - grad_h_q(q) * dt
    return q + grad_h_p(p) * dt, p


def leapfrog_step(q: Tensor, p: Tensor, grad_h: Gradient, dt: float, n_steps: int = 1) -> Phase:
    """Steps of leapfrog (Stoermer-Verlet) of a system of unit masses, of order 2.

    ``p' = p - dt/2 dV/dq(q), q' = q + dt p', p'' = p' - dt/2 dV/dq(q')``

    Half steps of momenta that meet are joined, so n steps ask for n + 1 gradients.

    Args:
        q, p: positions and momenta (..., dim).
        grad_h: ``dH/dq`` of positions.
        dt: the step.
        n_steps: how many.

    Returns:
        Positions and momenta after the steps.

    Raises:
        ShapeError: q and p differ in shape.
        RangeError: no step.

    Source: Hairer, Lubich and Wanner 2003, "Geometric numerical integration illustrated by the
        Stoermer-Verlet method", equation 1.5

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q, p = torch.tensor([1.0, 0.0], device="cpu"), torch.tensor([0.0, 1.0], device="cpu")
        >>> q, p = physics.leapfrog_step(q, p, lambda q: q, dt=0.01, n_steps=100)
        >>> q, p  # cosine and sine of 1
        (tensor([0.5403, 0.8415], device='cpu'), tensor([-0.8415,  0.5403], device='cpu'))
    """
    check_phase("leapfrog_step", q, p)
    check_steps("leapfrog_step", n_steps=n_steps)
    p = p - grad_h(q) * (dt / 2)
    for k in range(n_steps):
        q = q + p * dt
        p = p - grad_h(q) * (dt if k < n_steps - 1 else dt / 2)
    return q, p


def kicks(
    system: SeparableHamiltonian, q: Tensor, p: Tensor, force: Tensor, dt: Any, parts: tuple[float, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Leapfrog steps of these parts of dt, from the force at q to the force at the end."""
    kick = parts[0] / 2
    for k, part in enumerate(parts):
        p = p + force * (dt * kick)
        q = q + system.velocity(None, p) * (dt * part)
        force = system.force(q)
        kick = (part + parts[k + 1]) / 2 if k + 1 < len(parts) else part / 2
    return q, p + force * (dt * kick), force


def midpoints(
    system: Hamiltonian, q: Tensor, p: Tensor, dt: Any, parts: tuple[float, ...], iterations: int
) -> Phase:
    """Steps of the implicit midpoint rule of these parts of dt."""
    for part in parts:
        dq, dp = q * 0, p * 0
        for _ in range(iterations):
            of_q, of_p = system.gradients(q + dq / 2, p + dp / 2)
            dq, dp = of_p * (dt * part), of_q * (dt * -part)
        q, p = q + dq, p + dp
    return q, p


def implicit_midpoint_step(
    system: Hamiltonian, q: Tensor, p: Tensor, dt: float, *, iterations: int = ITERATIONS
) -> Phase:
    """One step of the implicit midpoint rule, symplectic and of order 2 for any Hamiltonian.

    ``x' = x + dt J grad H((x + x') / 2)`` of ``x = (q, p)``, by fixed-point iteration.

    Args:
        system: a `Hamiltonian`, separable or not.
        q, p: positions and momenta (..., dim).
        dt: the step.
        iterations: each gains a factor of about ``dt / 2`` times the largest curvature of the energy.

    Returns:
        Positions and momenta after the step.

    Raises:
        ShapeError: q and p differ in shape.
        RangeError: no iteration.

    Source: Hairer, Lubich and Wanner 2006, "Geometric numerical integration", section VI.3 and VIII.6

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> system = physics.Hamiltonian(lambda q, p: ((q * q + p * p) / 2).sum(-1))
        >>> q, p = torch.tensor([1.0], device="cpu"), torch.tensor([0.0], device="cpu")
        >>> physics.implicit_midpoint_step(system, q, p, 0.5)
        (tensor([0.8824], device='cpu'), tensor([-0.4706], device='cpu'))
    """
    check_phase("implicit_midpoint_step", q, p)
    check_steps("implicit_midpoint_step", iterations=iterations)
    return midpoints(system, q, p, dt, (1.0,), iterations)


def stepper(system: Hamiltonian, method: str) -> Callable[..., tuple[Tensor, ...]]:
    """A step of a method: ``step(q, p, force, dt)`` to ``(q, p, force)`` of a separable system that kicks,
    ``step(q, p, dt)`` to ``(q, p)`` of any other.

    Raises:
        RangeError: no such method, or one that the system does not allow.
    """
    if method not in METHODS:
        raise RangeError(f"integrate: method {method!r} is none of {', '.join(map(repr, METHODS))}.")
    if not isinstance(system, SeparableHamiltonian) and method in ("symplectic_euler", "leapfrog"):
        raise RangeError(
            f"integrate: {method!r} needs a SeparableHamiltonian, whose force knows no momenta. Take "
            "'implicit_midpoint', 'yoshida4' or 'yoshida6', which take any Hamiltonian."
        )
    parts = METHODS[method].parts
    if method == "symplectic_euler":

        def euler(q: Tensor, p: Tensor, dt: float) -> Phase:
            p = p + system.force(q, p) * dt
            return q + system.velocity(q, p) * dt, p

        return euler
    if isinstance(system, SeparableHamiltonian) and method != "implicit_midpoint":
        return lambda q, p, force, dt: kicks(system, q, p, force, dt, parts)
    return lambda q, p, dt: midpoints(system, q, p, dt, parts, ITERATIONS)
