"""Solvers, samplers and diagnostics beside what torchdiffeq, numpyro and arviz computed:
`scripts/golden_physics.py`.
"""

import numpy as np
import pytest

import pellucid as torch
from pellucid import physics
from pellucid.physics.hmc import drift, evaluate

from paths import ROOT

GOLDEN = np.load(ROOT / "tests" / "golden" / "physics.npz")
STEP = 0.1


def given(name: str, dtype=torch.float64):
    return torch.tensor(GOLDEN[name], dtype=dtype, device="cpu")


def solved(method: str, **settings):
    """Values of the recorded neural ODE, and gradients by name."""
    leaves = {k: given(f"ode_{k}").requires_grad_() for k in ("W", "b", "V", "y0")}

    def field(t, y):
        return ((y**3) @ leaves["W"] + leaves["b"] * np.cos(t)).tanh() @ leaves["V"]

    y = physics.odeint(field, leaves["y0"], GOLDEN["ode_t"].tolist(), method=method, **settings)
    (y * given("ode_weight")).sum().backward()
    return y.detach().numpy(), {k: x.grad.numpy() for k, x in leaves.items()}


@pytest.mark.parametrize("method", ["euler", "midpoint", "rk4"])
def test_fixed_steps_are_torchdiffeqs(method):
    """Where steps end at the times that are asked for: torchdiffeq's rk4 is Kutta's rule of 3/8."""
    values, gradients = solved(method, step_size=STEP)
    np.testing.assert_allclose(values, GOLDEN[f"ode_{method}"], rtol=1e-12, atol=1e-13)
    for key, gradient in gradients.items():
        np.testing.assert_allclose(gradient, GOLDEN[f"ode_{method}_{key}"], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("theirs", ["dopri5", "adjoint"])
def test_the_adaptive_method_is_torchdiffeqs_within_its_tolerance(theirs):
    """Gradients through the steps, and those of the adjoint equation, which is solved backwards."""
    values, gradients = solved("dopri5", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(values, GOLDEN[f"ode_{theirs}"], atol=1e-9)
    for key, gradient in gradients.items():
        np.testing.assert_allclose(gradient, GOLDEN[f"ode_{theirs}_{key}"], atol=3e-8)


@pytest.mark.parametrize("kind", ["rank", "split", "plain"])
def test_r_hat_is_arvizs_and_numpyros(kind):
    found = physics.r_hat(given("chains"), kind).numpy()
    np.testing.assert_allclose(found, GOLDEN[f"r_hat_{kind}"], rtol=1e-9)


@pytest.mark.parametrize("kind", ["bulk", "tail", "mean", "plain"])
def test_effective_sizes_are_arvizs_and_numpyros(kind):
    found = physics.effective_sample_size(given("chains"), kind).numpy()
    np.testing.assert_allclose(found, GOLDEN[f"ess_{kind}"], rtol=1e-9)


def hills(q):
    return q.cosh().sum(-1) + q[..., 0] * q[..., 1]


def test_leapfrog_is_numpyros_velocity_verlet():
    q, p = given("verlet_start")
    slope = torch.func.grad(hills)
    found = physics.leapfrog_step(q, p, slope, 0.1, 10)
    np.testing.assert_allclose(torch.stack(found).numpy(), GOLDEN["verlet_unit"], rtol=1e-13, atol=1e-14)
    inverse = given("verlet_inverse")
    path = physics.integrate(physics.SeparableHamiltonian(hills, mass=1 / inverse), q, p, 0.1, 10)
    found = torch.stack([path.q[-1], path.p[-1]]).numpy()
    np.testing.assert_allclose(found, GOLDEN["verlet_masses"], rtol=1e-13, atol=1e-14)
    # The samplers' own, of chains side by side.
    state, p = evaluate(lambda q: -hills(q), q[None]), p[None]
    for _ in range(10):
        state, p = drift(lambda q: -hills(q), state, p, torch.tensor(0.1, device="cpu"), inverse)
    found = torch.cat([state.q, p]).numpy()
    np.testing.assert_allclose(found, GOLDEN["verlet_masses"], rtol=1e-6, atol=1e-7)


def test_a_posterior_is_numpyros():
    """A logistic regression: means and deviations by NUTS within the errors that both have."""
    torch.manual_seed(0)
    x, y = given("posterior_x", torch.float32), given("posterior_y", torch.float32)

    def log_density(w):
        logits = w @ x.T
        seen = torch.nn.functional.logsigmoid(torch.where(y > 0, logits, -logits)).sum(-1)
        return seen - (w * w).sum(-1) / 8

    chains = physics.sample(
        log_density, torch.randn(128, 3, device="cpu"), draws=12, warmup=25, kernel=physics.NUTS(3)
    )
    w = chains.samples.numpy().astype(np.float64).reshape(-1, 3)
    size = chains.effective_sample_size("mean").numpy()
    error = np.sqrt(w.var(0) / size + GOLDEN["posterior_error"] ** 2)
    assert (np.abs(w.mean(0) - GOLDEN["posterior_mean"]) < 4 * error).all()
    # A deviation's own error is that of a mean over the square root of 2, about.
    assert (np.abs(w.std(0) - GOLDEN["posterior_sd"]) < 4 * error).all()
