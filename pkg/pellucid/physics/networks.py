"""Hamiltonian and Lagrangian networks: motion learned as the derivatives of an energy, which is then
conserved.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ..autograd.derivatives import grad
from ..autograd.grad_mode import is_grad_enabled, under
from ..errors import ShapeError
from ..nn.modules.activation import Softplus, Tanh
from ..nn.modules.container import Sequential
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ..ops.linalg.solvers import solve_ex
from ..ops.shape.joining import cat, stack
from ..tensors.tensor import Tensor
from .hamiltonian import Hamiltonian, check_phase
from .integrators import check_steps


def _layers(activation: Callable[[], Module], dim: int, hidden: int, layers: int, device: Any) -> Sequential:
    widths = [dim] + [hidden] * layers
    modules: list[Module] = []
    for a, b in pairwise(widths):
        modules += [Linear(a, b, device=device), activation()]
    return Sequential(*modules, Linear(hidden, 1, device=device))


def derivatives(value: Tensor, by: list[Tensor], **options: bool) -> list[Tensor]:
    """Derivatives, 0 by what takes no part."""
    found = grad(value, by, allow_unused=True, **options)
    return [x * 0 if g is None else g for x, g in zip(by, found, strict=True)]


def _traced(x: Tensor) -> Tensor:
    """A value that derivatives can be asked by: itself where it has a graph, else a new leaf."""
    return x if x.requires_grad else x.detach().requires_grad_()


class HamiltonianNetwork(Module):
    """A network that gives the energy of positions and momenta, and by its derivatives their motion.

    ``dq/dt = dH/dp, dp/dt = -dH/dq``, with H an MLP. Whatever it learns, H is conserved.

    Args:
        dim: coordinates.
        hidden: columns of hidden layers.
        layers: how many hidden layers.
        device: where.

    Raises:
        RangeError: a count is below 1.

    Source: Greydanus, Dzamba and Yosinski 2019, "Hamiltonian neural networks"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> net = physics.HamiltonianNetwork(2, hidden=8, device="cpu")
        >>> q = torch.randn(5, 2, device="cpu")
        >>> velocity, force = net(q, q)
        >>> path = physics.integrate(net.system(), q, q, 0.1, 3, method="implicit_midpoint")
        >>> velocity.shape, path.q.shape
        (Size([5, 2]), Size([4, 5, 2]))
    """

    def __init__(self, dim: int, *, hidden: int = 64, layers: int = 2, device: Any = None):
        super().__init__()
        check_steps("HamiltonianNetwork", dim=dim, hidden=hidden, layers=layers)
        self.net = _layers(Tanh, 2 * dim, hidden, layers, device)

    def energy(self, q: Tensor, p: Tensor) -> Tensor:
        """``H(q, p)``: (...)."""
        return self.net(cat([q, p], -1)).squeeze(-1)

    def system(self) -> Hamiltonian:
        """The system of this energy, for `integrate`."""
        return Hamiltonian(self.energy)

    def forward(self, q: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        """``dq/dt`` and ``dp/dt``, through which a loss trains the energy.

        Args:
            q, p: (..., dim).
        """
        check_phase("HamiltonianNetwork", q, p)
        keep = is_grad_enabled()

        def walked() -> tuple[Tensor, Tensor]:
            a, b = _traced(q), _traced(p)
            of_q, of_p = derivatives(self.energy(a, b).sum(), [a, b], create_graph=keep)
            return of_p, -of_q

        return under(True, walked)


class LagrangianNetwork(Module):
    """A network that gives the Lagrangian of positions and velocities, and by its derivatives accelerations.

    ``a = (d2L/dv2)^-1 (dL/dq - d2L/dqdv v)``, the equation of Euler and Lagrange, with L an MLP. No momenta
    have to be known.

    Args:
        dim: coordinates.
        hidden: columns of hidden layers.
        layers: how many hidden layers.
        device: where.

    Raises:
        RangeError: a count is below 1.

    Source: Cranmer et al. 2020, "Lagrangian neural networks", equation 6

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> net = physics.LagrangianNetwork(2, hidden=8, device="cpu")
        >>> q = torch.randn(5, 2, device="cpu")
        >>> net(q, q).shape
        Size([5, 2])
    """

    def __init__(self, dim: int, *, hidden: int = 64, layers: int = 2, device: Any = None):
        super().__init__()
        check_steps("LagrangianNetwork", dim=dim, hidden=hidden, layers=layers)
        self.dim = dim
        self.net = _layers(Softplus, 2 * dim, hidden, layers, device)

    def lagrangian(self, q: Tensor, v: Tensor) -> Tensor:
        """``L(q, v)``: (...)."""
        return self.net(cat([q, v], -1)).squeeze(-1)

    def energy(self, q: Tensor, v: Tensor) -> Tensor:
        """``v dL/dv - L``, which the motion conserves: (...)."""

        def walked() -> Tensor:
            b = _traced(v)
            value = self.lagrangian(q, b)
            return (b * derivatives(value.sum(), [b], create_graph=True)[0]).sum(-1) - value

        made = under(True, walked)
        return made if is_grad_enabled() else made.detach()

    def forward(self, q: Tensor, v: Tensor) -> Tensor:
        """Accelerations, through which a loss trains the Lagrangian.

        Args:
            q, v: positions and velocities (..., dim).

        Raises:
            ShapeError: they are not (..., dim) with this network's dim.
        """
        check_phase("LagrangianNetwork", q, v)
        if q.shape[-1] != self.dim:
            raise ShapeError(f"LagrangianNetwork: q has {q.shape[-1]} coordinates, not {self.dim}.")
        return accelerations(self.lagrangian, q, v)


def accelerations(lagrangian: Callable[[Tensor, Tensor], Tensor], q: Tensor, v: Tensor) -> Tensor:
    """What a Lagrangian makes of positions and velocities: ``(d2L/dv2)^-1 (dL/dq - d2L/dqdv v)``.

    Args:
        lagrangian: of q and v (..., dim) to (...).
        q, v: positions and velocities (..., dim).

    Returns:
        (..., dim)

    Source: Cranmer et al. 2020, "Lagrangian neural networks", equation 6

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q = torch.tensor([[2.0]], device="cpu")
        >>> physics.accelerations(lambda q, v: (v**2 / 2 - q**2 / 2).sum(-1), q, q).tolist()  # a spring
        [[-2.0]]
    """
    keep = is_grad_enabled()

    def walked() -> Tensor:
        a, b = _traced(q), _traced(v)
        of_q, of_v = derivatives(lagrangian(a, b).sum(), [a, b], create_graph=True)
        mixed, masses = [], []
        for k in range(q.shape[-1]):
            row = of_v[..., k].sum()
            if not row.requires_grad:  # a Lagrangian that is linear in velocities
                row = row + (b * 0).sum()
            row_q, row_v = derivatives(row, [a, b], create_graph=keep, retain_graph=True)
            mixed.append((row_q * b).sum(-1))
            masses.append(row_v)
        right = of_q - stack(mixed, -1)
        return solve_ex(stack(masses, -2), right.unsqueeze(-1))[0].squeeze(-1)

    made = under(True, walked)
    return made if keep else made.detach()
