"""Networks of energies: derivatives against formulas and PyTorch, what they conserve, what they learn."""

import math

import numpy as np
import torch as pytorch

import pellucid as torch
from pellucid import physics


def test_motion_is_pytorchs_derivative_of_the_energy():
    torch.manual_seed(0)
    net = physics.HamiltonianNetwork(2, hidden=8, device="cpu")
    theirs = pytorch.nn.Sequential(
        pytorch.nn.Linear(4, 8),
        pytorch.nn.Tanh(),
        pytorch.nn.Linear(8, 8),
        pytorch.nn.Tanh(),
        pytorch.nn.Linear(8, 1),
    )
    theirs.load_state_dict({k: pytorch.tensor(v.numpy()) for k, v in net.net.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    velocity, force = net(torch.tensor(x[:, :2], device="cpu"), torch.tensor(x[:, 2:], device="cpu"))
    (velocity.square().sum() + force.sum()).backward()
    y = pytorch.tensor(x, requires_grad=True)
    (g,) = pytorch.autograd.grad(theirs(y).sum(), y, create_graph=True)
    np.testing.assert_allclose(velocity.detach().numpy(), g[:, 2:].detach().numpy(), atol=1e-6)
    np.testing.assert_allclose(force.detach().numpy(), -g[:, :2].detach().numpy(), atol=1e-6)
    (g[:, 2:].square().sum() - g[:, :2].sum()).backward()
    for ours, other in zip(net.net.parameters(), theirs.parameters(), strict=True):
        if ours.grad is not None:
            np.testing.assert_allclose(ours.grad.numpy(), other.grad.numpy(), atol=1e-5)


def test_a_hamiltonian_network_learns_a_pendulum_and_keeps_its_energy():
    torch.manual_seed(0)
    net = physics.HamiltonianNetwork(1, hidden=24, layers=1, device="cpu")
    q, p = torch.rand(128, 2, device="cpu").mul(3).sub(1.5).split(1, -1)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
    losses = []
    for _ in range(120):
        velocity, force = net(q, p)
        loss = (velocity - p).square().mean() + (force + q.sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.02 * losses[0]
    start = torch.tensor([[0.8]], device="cpu")
    path = physics.integrate(net.system(), start, start * 0, 0.1, 12, method="implicit_midpoint")
    assert path.drift < 1e-3
    exact = physics.integrate(physics.pendulum(), start, start * 0, 0.1, 12)
    assert abs(path.q[-1].item() - exact.q[-1].item()) < 0.15


def test_accelerations_of_a_double_pendulum():
    """Masses and lengths of 1: the textbook's formula."""
    g = 9.8

    def lagrangian(q, v):
        (a, b), (u, w) = q.unbind(-1), v.unbind(-1)
        motion = u * u + w * w / 2 + u * w * (a - b).cos()
        return motion + g * (2 * a.cos() + b.cos())

    q = torch.tensor([[0.3, -0.7], [1.2, 0.4]], dtype=torch.float64, device="cpu")
    v = torch.tensor([[0.5, 0.1], [-1.0, 2.0]], dtype=torch.float64, device="cpu")
    found = physics.accelerations(lagrangian, q, v).detach().numpy()
    for (a, b), (u, w), (x, y) in zip(q.tolist(), v.tolist(), found, strict=True):
        masses = np.array([[2, math.cos(a - b)], [math.cos(a - b), 1]])
        right = [
            -math.sin(a - b) * w * w - 2 * g * math.sin(a),
            math.sin(a - b) * u * u - g * math.sin(b),
        ]
        np.testing.assert_allclose([x, y], np.linalg.solve(masses, right), rtol=1e-9)


def test_a_lagrangian_network_trains_through_its_accelerations():
    torch.manual_seed(0)
    net = physics.LagrangianNetwork(1, hidden=16, layers=1, device="cpu")
    q, v = torch.randn(64, 1, device="cpu"), torch.randn(64, 1, device="cpu")
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(100):
        loss = (net(q, v) + q).abs().clamp(max=10).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert net.energy(q, v).shape == (64,)
    with torch.no_grad():
        assert not net(q, v).requires_grad
