"""Systems of textbooks: harmonic oscillator, pendulum, Kepler's problem, Henon-Heiles."""

from __future__ import annotations

from ..errors import ArgumentError, RangeError
from ..op.arguments import describe
from ..tensors.tensor import Tensor
from .hamiltonian import SeparableHamiltonian


def _positive(where: str, **numbers: float) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ArgumentError(f"{where}: {name} must be a number, not {describe(value)}.")
        if not 0 < value < float("inf"):
            raise RangeError(f"{where}: {name} must be above 0, not {value!r}.")


def harmonic_oscillator(frequency: float = 1.0) -> SeparableHamiltonian:
    """Springs of one angular frequency along each axis: ``H = |p|^2 / 2 + w^2 |q|^2 / 2``.

    Its motion is ``q(t) = q cos(wt) + p/w sin(wt)``.

    Args:
        frequency: ``w``, in radians for a unit of time.

    Raises:
        RangeError: it is not above 0.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q, p = torch.tensor([1.0], device="cpu"), torch.tensor([0.0], device="cpu")
        >>> physics.harmonic_oscillator(2.0).energy(q, p)
        tensor(2., device='cpu')
    """
    _positive("harmonic_oscillator", frequency=frequency)
    half = frequency * frequency / 2
    return SeparableHamiltonian(lambda q: (q * q).sum(-1) * half)


def pendulum(gravity: float = 1.0, length: float = 1.0) -> SeparableHamiltonian:
    """A pendulum of mass 1 by its angle: ``H = p^2 / (2 l^2) + g l (1 - cos q)``.

    A swing of amplitude ``a`` takes ``4 sqrt(l/g) K(sin(a/2))``, with the complete elliptic integral K.

    Args:
        gravity, length: ``g`` and ``l``.

    Raises:
        RangeError: one is not above 0.

    Source: Landau and Lifshitz 1976, "Mechanics", section 11, problem 1

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> upright = torch.tensor([torch.pi], device="cpu")
        >>> physics.pendulum().energy(upright, upright * 0)
        tensor(2., device='cpu')
    """
    _positive("pendulum", gravity=gravity, length=length)
    return SeparableHamiltonian(lambda q: (1 - q.cos()).sum(-1) * (gravity * length), mass=length * length)


def kepler(attraction: float = 1.0) -> SeparableHamiltonian:
    """A planet about a fixed sun: ``H = |p|^2 / 2 - k / |q|``, in any number of dimensions.

    Orbits of negative energy are ellipses with the half-axis ``a = -k / (2 H)`` and the period
    ``2 pi sqrt(a^3 / k)``; the angular momentum stays.

    Args:
        attraction: ``k``.

    Raises:
        RangeError: it is not above 0.

    Source: Hairer, Lubich and Wanner 2006, "Geometric numerical integration", section I.2.2

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q, p = torch.tensor([1.0, 0.0], device="cpu"), torch.tensor([0.0, 1.0], device="cpu")
        >>> physics.kepler().energy(q, p)  # a circle
        tensor(-0.5000, device='cpu')
    """
    _positive("kepler", attraction=attraction)
    return SeparableHamiltonian(lambda q: -attraction * (q * q).sum(-1).rsqrt())


def _henon_heiles(q: Tensor) -> Tensor:
    if q.shape[-1] != 2:
        raise RangeError(f"henon_heiles: positions have two coordinates, not {q.shape[-1]}.")
    x, y = q[..., 0], q[..., 1]
    return (x * x + y * y) / 2 + x * x * y - y * y * y / 3


def henon_heiles() -> SeparableHamiltonian:
    """A star in a galaxy's plane: ``V = (x^2 + y^2) / 2 + x^2 y - y^3 / 3``.

    Motion is bounded below the energy 1/6, mostly regular below 1/12, and mostly chaotic near 1/6.

    Source: Henon and Heiles 1964, "The applicability of the third integral of motion"

    Example:
        >>> import pellucid as torch
        >>> from pellucid import physics
        >>> q = torch.tensor([0.0, 1.0], device="cpu")  # a saddle
        >>> physics.henon_heiles().energy(q, q * 0)
        tensor(0.1667, device='cpu')
    """
    return SeparableHamiltonian(_henon_heiles)
