"""Hamiltonian mechanics: symplectic integrators, odeint, Hamiltonian Monte Carlo, networks of energies."""

from .diagnostics import effective_sample_size, r_hat
from .hamiltonian import Hamiltonian, SeparableHamiltonian, hamiltonian_energy
from .hmc import HMC
from .integrators import implicit_midpoint_step, leapfrog_step, symplectic_euler_step
from .networks import HamiltonianNetwork, LagrangianNetwork, accelerations
from .nuts import NUTS
from .ode import odeint
from .sampling import Chains, sample
from .systems import harmonic_oscillator, henon_heiles, kepler, pendulum
from .trajectory import Trajectory, integrate

__all__ = [
    "HMC",
    "NUTS",
    "Chains",
    "Hamiltonian",
    "HamiltonianNetwork",
    "LagrangianNetwork",
    "SeparableHamiltonian",
    "Trajectory",
    "accelerations",
    "effective_sample_size",
    "hamiltonian_energy",
    "harmonic_oscillator",
    "henon_heiles",
    "implicit_midpoint_step",
    "integrate",
    "kepler",
    "leapfrog_step",
    "odeint",
    "pendulum",
    "r_hat",
    "sample",
    "symplectic_euler_step",
]
