"""Hamiltonian systems: an energy of positions and momenta, whose derivatives are the motion.

    dq/dt =  dH/dp        dp/dt = -dH/dq

Axes in front of the last are a batch: each row is a trajectory of its own, and all of them move in the same
dispatches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.transforms import grad
from ..errors import ArgumentError, RangeError, ShapeError
from ..op.arguments import describe
from ..ops.linalg.triangular import cholesky, cholesky_inverse
from ..tensors.tensor import Tensor

Mass = float | Tensor


def check_phase(where: str, q: Any, p: Any) -> None:
    """Positions and momenta are floats of one shape, with an axis of coordinates."""
    for name, x in (("q", q), ("p", p)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            raise ArgumentError(f"{where}: {name} must be a floating-point Tensor, not {describe(x)}.")
    if q.shape != p.shape or not q.ndim:
        raise ShapeError(
            f"{where}: q of shape {tuple(q.shape)} and p of {tuple(p.shape)} must both be (..., dim), "
            "one row "
            "for each trajectory."
        )


def one_for_each(where: str, values: Any, x: Tensor) -> Tensor:
    """An energy, if it is one number for each row of x."""
    if not isinstance(values, Tensor) or values.shape != x.shape[:-1]:
        shown = tuple(values.shape) if isinstance(values, Tensor) else describe(values)
        raise ShapeError(
            f"{where}: the function of rows of shape {tuple(x.shape)} gave {shown}, and must give one "
            "number for "
            f"each row, {tuple(x.shape[:-1])}. Sum over the last axis only."
        )
    return values


class Hamiltonian:
    """A system by its energy, which may mix positions and momenta in any way.

    ``dq/dt = dH/dp, dp/dt = -dH/dq``, with both derivatives by autograd.

    Args:
        energy: of ``q`` and ``p`` (..., dim) to (...), one number for each trajectory. It is made of tensor
            ops, and no row looks at another.

    Raises:
        ShapeError: when it is asked, the energy is not one number for each row.

    Source: Hamilton 1835, "Second essay on a general method in dynamics"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> system = physics.Hamiltonian(lambda q, p: ((1 + q**2) * p**2 / 2).sum(-1))
        >>> q, p = torch.tensor([[1.0]], device="cpu"), torch.tensor([[2.0]], device="cpu")
        >>> system.energy(q, p), system.velocity(q, p), system.force(q, p)
        (tensor([4.], device='cpu'), tensor([[4.]], device='cpu'), tensor([[-4.]], device='cpu'))
    """

    separable = False

    def __init__(self, energy: Callable[[Tensor, Tensor], Tensor]):
        if not callable(energy):
            raise ArgumentError(f"Hamiltonian: energy must be a function of q and p, not {describe(energy)}.")
        self._energy = energy
        self._steps: dict[Any, Any] = {}

    def energy(self, q: Tensor, p: Tensor) -> Tensor:
        """The energy of each trajectory: (...)."""
        return one_for_each(type(self).__name__, self._energy(q, p), q)

    def gradients(self, q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """``dH/dq`` and ``dH/dp``, of q's shape, in one walk."""
        return grad(lambda q, p: self.energy(q, p).sum(), (0, 1))(q, p)

    def velocity(self, q: Tensor, p: Tensor) -> Tensor:
        """``dq/dt = dH/dp``."""
        return self.gradients(q, p)[1]

    def force(self, q: Tensor, p: Tensor) -> Tensor:
        """``dp/dt = -dH/dq``."""
        return -self.gradients(q, p)[0]


class SeparableHamiltonian(Hamiltonian):
    """A system of kinetic energy and potential: ``H(q, p) = p M^-1 p / 2 + V(q)``.

    The force knows no momentum, so explicit symplectic methods apply.

    Args:
        potential: of ``q`` (..., dim) to (...), one number for each trajectory.
        mass: a number; masses (dim,); or a symmetric positive definite matrix (dim, dim).
        kinetic: of ``p`` (..., dim) to (...), instead of masses.

    Raises:
        RangeError: a mass is not positive, or both masses and a kinetic energy are given.
        ShapeError: masses of other shapes.

    Source: Hairer, Lubich and Wanner 2006, "Geometric numerical integration", section I.1

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> system = physics.SeparableHamiltonian(lambda q: (q**2).sum(-1) / 2, mass=2.0)
        >>> q, p = torch.tensor([[1.0]], device="cpu"), torch.tensor([[2.0]], device="cpu")
        >>> system.energy(q, p), system.velocity(q, p), system.force(q, p)
        (tensor([1.5000], device='cpu'), tensor([[1.]], device='cpu'), tensor([[-1.]], device='cpu'))
    """

    separable = True

    def __init__(
        self,
        potential: Callable[[Tensor], Tensor],
        mass: Mass = 1.0,
        kinetic: Callable[[Tensor], Tensor] | None = None,
    ):
        for name, function in (("potential", potential), ("kinetic", kinetic)):
            if not callable(function) and not (name == "kinetic" and function is None):
                raise ArgumentError(
                    f"SeparableHamiltonian: {name} must be a function, not {describe(function)}."
                )
        super().__init__(lambda q, p: self.kinetic(p) + self.potential(q))
        self._potential, self._kinetic = potential, kinetic
        self._mass = _masses(mass)
        if kinetic is not None and not (isinstance(mass, (int, float)) and mass == 1):
            raise RangeError("SeparableHamiltonian: masses and a kinetic energy exclude each other.")
        self._inverse = None
        if isinstance(self._mass, Tensor) and self._mass.ndim == 2:
            self._inverse = cholesky_inverse(cholesky(self._mass))

    def potential(self, q: Tensor) -> Tensor:
        """``V(q)``: (...)."""
        return one_for_each("potential", self._potential(q), q)

    def kinetic(self, p: Tensor) -> Tensor:
        """``T(p)``: (...)."""
        if self._kinetic is not None:
            return one_for_each("kinetic", self._kinetic(p), p)
        return (p * self._over_mass(p)).sum(-1) / 2

    def gradients(self, q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """``dV/dq`` and ``dT/dp``."""
        return -self.force(q), self.velocity(q, p)

    def velocity(self, q: Tensor | None, p: Tensor) -> Tensor:
        """``dT/dp``, which does not depend on positions."""
        return self._over_mass(p) if self._kinetic is None else grad(lambda p: self.kinetic(p).sum())(p)

    def force(self, q: Tensor, p: Tensor | None = None) -> Tensor:
        """``-dV/dq``, which does not depend on momenta."""
        return -grad(lambda q: self.potential(q).sum())(q)

    def _over_mass(self, p: Tensor) -> Tensor:
        mass = self._mass
        if not isinstance(mass, Tensor):
            return p if mass == 1 else p / mass
        if mass.shape[-1] != p.shape[-1]:
            raise ShapeError(
                f"SeparableHamiltonian: masses of shape {tuple(mass.shape)} for {p.shape[-1]} coordinates."
            )
        return p / mass if self._inverse is None else p @ self._inverse


def _masses(mass: Any) -> Mass:
    if isinstance(mass, (int, float)) and not isinstance(mass, bool):
        if not mass > 0:
            raise RangeError(f"SeparableHamiltonian: mass must be above 0, not {mass!r}.")
        return float(mass)
    if not isinstance(mass, Tensor) or not mass.is_floating_point():
        raise ArgumentError(
            f"SeparableHamiltonian: mass must be a number or a floating-point Tensor, not {describe(mass)}."
        )
    if mass.ndim not in (0, 1, 2) or (mass.ndim == 2 and mass.shape[0] != mass.shape[1]):
        raise ShapeError(
            f"SeparableHamiltonian: masses of shape {tuple(mass.shape)} are not (dim,) or (dim, dim)."
        )
    if not mass.ndim:
        return _masses(mass.item())
    if mass.ndim == 1 and not bool((mass > 0).all()):
        raise RangeError("SeparableHamiltonian: masses must be above 0.")
    return mass


def hamiltonian_energy(
    q: Tensor, p: Tensor, potential: Callable[[Tensor], Tensor], mass_matrix: Mass | None = None
) -> Tensor:
    """Kinetic and potential energy of each trajectory: ``p M^-1 p / 2 + V(q)``.

    Args:
        q, p: positions and momenta (..., dim).
        potential: of positions (..., dim) to (...).
        mass_matrix: a number, masses (dim,) or a matrix (dim, dim); 1 if None.

    Returns:
        (...)

    Raises:
        ShapeError: shapes do not fit.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q, p = torch.tensor([1.0, 0.0], device="cpu"), torch.tensor([0.0, 2.0], device="cpu")
        >>> physics.hamiltonian_energy(q, p, lambda q: (q * q).sum(-1) / 2)
        tensor(2.5000, device='cpu')
    """
    check_phase("hamiltonian_energy", q, p)
    return SeparableHamiltonian(potential, 1.0 if mass_matrix is None else mass_matrix).energy(q, p)
