"""Integrators against closed forms: orders of convergence, what they conserve, batches in one replayed
chain.
"""

import gc
import math

import numpy as np
import pytest

import pellucid as torch
from pellucid import physics
from pellucid.physics.integrators import METHODS

ORDERS = {name: method.order for name, method in METHODS.items()}


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64, device="cpu")


def nonseparable():
    """``H = (q^2 + 1)(p^2 + 1) / 2``, of which the test knows the curve: energy, and the reference at
    1e-12.
    """
    return physics.Hamiltonian(lambda q, p: ((q * q + 1) * (p * p + 1) / 2).sum(-1))


def kepler_at(t: float, eccentricity: float) -> tuple[np.ndarray, np.ndarray]:
    """Where an ellipse of half-axis 1 is, that began in its perihelion: Kepler's equation by Newton's
    method.
    """
    e, anomaly = eccentricity, t
    for _ in range(50):
        anomaly -= (anomaly - e * math.sin(anomaly) - t) / (1 - e * math.cos(anomaly))
    root, rate = math.sqrt(1 - e * e), 1 / (1 - e * math.cos(anomaly))
    q = np.array([math.cos(anomaly) - e, root * math.sin(anomaly)])
    return q, np.array([-math.sin(anomaly) * rate, root * math.cos(anomaly) * rate])


@pytest.mark.parametrize("method", ORDERS)
def test_orders_of_convergence_on_an_oscillator(method):
    """The error at t = 2 falls with dt to the power of the order."""
    system, errors = physics.harmonic_oscillator(1.3), []
    for steps in (10, 20):
        path = physics.integrate(system, doubles(1.0), doubles(0.5), 2 / steps, steps, method=method)
        exact = math.cos(2.6) + 0.5 / 1.3 * math.sin(2.6)
        errors.append(abs(path.q[-1].item() - exact))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[method], abs=0.25), errors


@pytest.mark.parametrize("method", ["leapfrog", "yoshida4", "yoshida6"])
def test_orders_of_convergence_on_an_ellipse(method):
    e, errors = 0.3, []
    q, p = kepler_at(0.0, e)
    for steps in (30, 60):
        path = physics.integrate(
            physics.kepler(), doubles(*q), doubles(*p), 3 / steps, steps, method=method, every=steps
        )
        errors.append(np.abs(path.q[-1].numpy() - kepler_at(3.0, e)[0]).max())
    assert math.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[method], abs=0.5), errors


@pytest.mark.parametrize("method", ["implicit_midpoint", "yoshida4"])
def test_orders_of_convergence_where_energy_mixes_q_and_p(method):
    """Of 2 and 4 steps against 16."""
    system, found = nonseparable(), []
    for steps in (2, 4, 16):
        path = physics.integrate(
            system, doubles(0.6), doubles(0.2), 0.4 / steps, steps, method=method, every=steps
        )
        found.append(path.q[-1].item())
    errors = [abs(x - found[-1]) for x in found[:2]]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[method], abs=0.4), errors


def test_one_step_of_symplectic_euler_is_its_formula():
    q, p = physics.symplectic_euler_step(
        doubles(1.0, 2.0), doubles(3.0, -1.0), lambda q: q**3, lambda p: 2 * p, 0.1
    )
    np.testing.assert_allclose(p.numpy(), [2.9, -1.8])
    np.testing.assert_allclose(q.numpy(), [1.58, 1.64])


@pytest.mark.parametrize(
    ("device", "dtype"), [("cpu", torch.float64), ("cpu", torch.float32), ("webgpu", torch.float32)]
)
def test_leapfrog_keeps_the_energy_of_an_oscillator(device, dtype):
    """C-16, C-47."""
    q, p = (torch.tensor(x, device=device, dtype=dtype) for x in ([1.0, 0.0], [0.0, 1.0]))
    with torch.no_grad():
        q, p = physics.leapfrog_step(q, p, lambda q: q, 0.01, 1000)
    energy = physics.hamiltonian_energy(q, p, lambda q: (q * q).sum(-1) / 2)
    assert abs(energy.item() - 1.0) < 1e-6
    assert abs(q[0].item() - math.cos(10)) < 1e-3


@pytest.mark.gpu
def test_energy_swings_and_does_not_drift():
    """C-15: ten thousand steps of symplectic Euler stay within dt/2 of the energy; explicit Euler would be
    far away.
    """
    q = torch.tensor([1.0])
    path = physics.integrate(
        physics.harmonic_oscillator(), q, q * 0, 0.05, 10_000, method="symplectic_euler", every=250
    )
    assert path.drift < 0.05 / 2
    late = (path.energy[-20:] - path.energy[0]).abs().max().item()
    early = (path.energy[:21] - path.energy[0]).abs().max().item()
    assert late < 1.5 * early


def test_leapfrog_keeps_area_and_goes_back():
    """The Jacobian of a step has determinant 1; a step of -dt undoes one of dt."""
    system = physics.pendulum()

    def step(x):
        path = physics.integrate(system, x[:1], x[1:], 0.3, 3)
        return torch.cat([path.q[-1], path.p[-1]])

    x = doubles(0.7, 0.4)
    jacobian = torch.func.jacrev(step)(x)
    assert torch.linalg.det(jacobian).item() == pytest.approx(1, abs=1e-12)
    there = step(x)
    back = physics.integrate(system, there[:1], there[1:], -0.3, 3)
    np.testing.assert_allclose([back.q[-1].item(), back.p[-1].item()], x.numpy(), atol=1e-14)


def test_a_pendulum_swings_in_its_elliptic_period():
    """4 K(sin(a/2)) by the arithmetic-geometric mean."""
    amplitude = 2.0
    a, b = 1.0, math.cos(amplitude / 2)
    while abs(a - b) > 1e-15:
        a, b = (a + b) / 2, math.sqrt(a * b)
    period = 2 * math.pi / a
    path = physics.integrate(
        physics.pendulum(), doubles(amplitude), doubles(0.0), period / 40, 40, method="yoshida6", every=40
    )
    assert path.q[-1].item() == pytest.approx(amplitude, abs=1e-5)


def test_henon_heiles_is_bounded_below_the_saddles():
    q = doubles(0.0, 0.1).expand(3, 2).contiguous()
    p = torch.stack([doubles(0.4, x) for x in (0.0, 0.05, 0.1)])
    path = physics.integrate(physics.henon_heiles(), q, p, 0.2, 60, method="yoshida4", every=5)
    assert path.energy[0].max().item() < 1 / 6
    assert path.q.abs().max().item() < 1
    assert path.drift < 1e-4


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["leapfrog", "yoshida4", "implicit_midpoint"])
def test_a_step_of_a_batch_is_replayed(method):
    """Trajectories side by side are those of one alone, and all but the first steps are replays."""
    gc.collect()  # a step runs eagerly while any module has hooks, as one may that a cycle still holds
    system = physics.pendulum()
    q = torch.linspace(-2, 2, 64).unsqueeze(1)
    path = physics.integrate(system, q, q * 0, 0.1, 20, method=method)
    assert system._steps[method].explain().replays >= 17
    alone = physics.integrate(physics.pendulum(), q[3:4].cpu(), q[3:4].cpu() * 0, 0.1, 20, method=method)
    np.testing.assert_allclose(path.q[:, 3].numpy(), alone.q[:, 0].numpy(), atol=2e-5)
    # Another step is the same program.
    before = system._steps[method].explain().replays
    physics.integrate(system, q, q * 0, 0.05, 20, method=method)
    assert system._steps[method].explain().replays >= before + 16


def test_derivatives_go_through_a_trajectory():
    """``dq(t)/dq(0) = cos(wt)`` of an oscillator, and a gradient by a parameter of the potential."""
    stiffness = doubles(1.0).requires_grad_()
    system = physics.SeparableHamiltonian(lambda q: (q * q * stiffness).sum(-1) / 2)
    q = doubles(1.0).requires_grad_()
    path = physics.integrate(system, q, doubles(0.0), 0.1, 10, method="yoshida6")
    path.q[-1].sum().backward()
    assert q.grad.item() == pytest.approx(math.cos(1), abs=1e-8)
    assert stiffness.grad.item() == pytest.approx(-math.sin(1) / 2, abs=1e-7)


def test_masses_of_all_kinds_are_the_same_system():
    def potential(q):
        return (q * q).sum(-1) / 2

    q, p = doubles(1.0, 2.0), doubles(0.5, -1.0)
    masses = [2.0, doubles(2.0, 2.0), torch.eye(2, dtype=torch.float64, device="cpu") * 2]
    systems = [physics.SeparableHamiltonian(potential, mass=m) for m in masses]
    systems.append(physics.SeparableHamiltonian(potential, kinetic=lambda p: (p * p).sum(-1) / 4))
    for system in systems:
        assert system.energy(q, p).item() == pytest.approx(2.8125)
        np.testing.assert_allclose(system.velocity(q, p).numpy(), [0.25, -0.5])
        np.testing.assert_allclose(system.force(q, p).numpy(), [-1, -2])
    assert physics.hamiltonian_energy(q, p, potential, masses[2]).item() == pytest.approx(2.8125)


def test_what_draws_is_called_with_what_is_kept():
    seen = []
    physics.integrate(
        physics.pendulum(),
        doubles(1.0),
        doubles(0.0),
        0.1,
        10,
        every=4,
        on_step=lambda k, q, p: seen.append((k, q)),
    )
    assert [k for k, _ in seen] == [4, 8]


REFUSED = [
    (lambda s, q: physics.integrate(s, q, q[:1], 0.1, 1), r"q of shape \(2,\) and p of \(1,\)"),
    (lambda s, q: physics.integrate(s, q, q, 0.0, 1), "dt must be finite and not 0"),
    (lambda s, q: physics.integrate(s, q, q, float("nan"), 1), "dt must be finite and not 0"),
    (lambda s, q: physics.integrate(s, q, q, "a", 1), "dt must be a number"),
    (lambda s, q: physics.integrate(s, q, q, 0.1, 0), "steps must be at least 1"),
    (lambda s, q: physics.integrate(s, q, q, 0.1, 1, method="rk4"), "'rk4' is none of"),
    (lambda s, q: physics.integrate(s, q.long(), q, 0.1, 1), "q must be a floating-point Tensor"),
    (lambda s, q: physics.integrate(nonseparable(), q, q, 0.1, 1), "needs a SeparableHamiltonian"),
    (lambda s, q: physics.Hamiltonian(lambda q, p: q * p).energy(q, q), "must give one number for each row"),
    (lambda s, q: physics.SeparableHamiltonian(lambda q: q.sum(-1), mass=-1.0), "mass must be above 0"),
    (lambda s, q: physics.SeparableHamiltonian(3), "potential must be a function"),
    (lambda s, q: physics.pendulum(length=0), "length must be above 0"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_is_refused(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(physics.pendulum(), doubles(1.0, 2.0))
