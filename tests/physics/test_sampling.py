"""Samplers against known posteriors; diagnostics against closed forms and formulas of their own."""

import math

import numpy as np
import pytest

import pellucid as torch
from pellucid import physics
from pellucid.physics.adaptation import window_ends
from pellucid.physics.nuts import sub_trees

KERNELS = {"HMC": lambda: physics.HMC(6), "NUTS": lambda: physics.NUTS(4)}


@pytest.fixture(autouse=True)
def drawn_from_one_seed():
    torch.manual_seed(0)


def gaussian(device):
    """Mean, covariance with scales 1 and 5 and a correlation of 0.6, and the log density."""
    mean, covariance = np.array([1.0, -2.0]), np.array([[1.0, 3.0], [3.0, 25.0]])
    centre = torch.tensor(mean, dtype=torch.float32, device=device)
    a, b, c = (float(x) for x in np.linalg.inv(covariance)[[0, 0, 1], [0, 1, 1]])

    def log_density(x):
        u, v = (x - centre).unbind(-1)
        return (u * u * a + u * v * (2 * b) + v * v * c) / -2

    return mean, covariance, log_density


@pytest.mark.parametrize("kernel", KERNELS)
def test_mean_and_covariance_of_a_gaussian(kernel):
    mean, covariance, log_density = gaussian("cpu")
    chains = physics.sample(
        log_density,
        torch.randn(200, 2, device="cpu") * 5,
        draws=20,
        warmup=40,
        kernel=KERNELS[kernel](),
    )
    x = chains.samples.numpy().reshape(-1, 2)
    error = np.sqrt(np.diag(covariance) / chains.effective_sample_size("mean").numpy())
    assert (np.abs(x.mean(0) - mean) < 4 * error + 1e-3).all()
    np.testing.assert_allclose(np.cov(x.T), covariance, rtol=0.15)
    assert chains.divergences == 0
    assert 0.6 < chains.acceptance.mean().item() < 0.99
    np.testing.assert_allclose(chains.inverse_mass.numpy(), np.diag(covariance), rtol=0.5)
    np.testing.assert_allclose(
        chains.log_density.numpy()[-1], log_density(chains.samples[-1]).numpy(), rtol=1e-4, atol=1e-4
    )


@pytest.mark.gpu
def test_a_posterior_of_linear_regression_on_webgpu():
    """Normal prior, known noise: the posterior is a Gaussian that algebra gives. Transitions are replays."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 2))
    y = x @ [0.5, -1.5] + 0.7 * rng.standard_normal(20)
    covariance = np.linalg.inv(np.eye(2) + x.T @ x / 0.49)
    mean = covariance @ x.T @ y / 0.49
    inputs, targets = (torch.tensor(a.astype(np.float32)) for a in (x, y))

    def log_density(w):
        residuals = (w.unsqueeze(1) * inputs).sum(-1) - targets
        return (w * w).sum(-1) / -2 - (residuals * residuals).sum(-1) / 0.98

    chains = physics.sample(log_density, torch.randn(128, 2), draws=20, warmup=40, kernel=physics.HMC(6))
    found = chains.samples.numpy().reshape(-1, 2)
    np.testing.assert_allclose(found.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(found.T), covariance, atol=0.01)
    assert "128 chains of 20 draws, 0 divergences" in chains.summary()


def test_a_share_by_its_logit():
    """7 of 10 with an even prior: the share is Beta(8, 4), whose logit has the density that is asked for."""
    chains = physics.sample(
        lambda z: 8 * torch.nn.functional.logsigmoid(z[:, 0]) + 4 * torch.nn.functional.logsigmoid(-z[:, 0]),
        torch.randn(200, 1, device="cpu"),
        draws=20,
        warmup=40,
        kernel=physics.NUTS(3),
    )
    share = torch.sigmoid(chains.samples).numpy()
    assert share.mean() == pytest.approx(8 / 12, abs=0.01)
    assert share.var() == pytest.approx(8 * 4 / (12**2 * 13), rel=0.12)


def test_a_transition_keeps_the_density():
    """Chains that begin in the density are in it after a transition with a long step, many rejected."""
    q = torch.randn(20_000, 1, device="cpu")
    transition = physics.HMC(3).transition(lambda x: (x * x).sum(-1) / -2)
    from pellucid.physics.hmc import evaluate

    state = evaluate(lambda x: (x * x).sum(-1) / -2, q)
    move = transition(state, torch.tensor(1.7, device="cpu"), torch.ones(1, device="cpu"))
    moved = move.state.q.numpy()
    assert 0.3 < move.acceptance.mean().item() < 0.95
    assert moved.var() == pytest.approx(1, abs=0.04)
    assert (moved**4).mean() == pytest.approx(3, abs=0.3)


def test_what_diverges_is_told():
    """A density whose curvature explodes, with a step that is too long for it."""
    transition = physics.NUTS(3).transition(lambda x: -torch.exp((x * x).sum(-1)))
    from pellucid.physics.hmc import evaluate

    state = evaluate(lambda x: -torch.exp((x * x).sum(-1)), torch.ones(50, 1, device="cpu"))
    move = transition(state, torch.tensor(3.0, device="cpu"), torch.ones(1, device="cpu"))
    assert move.divergent.float().mean().item() > 0.5
    stayed = (move.state.q == 1).squeeze(1)
    assert stayed[move.divergent].float().mean().item() > 0.5
    assert move.state.q.isfinite().all().item()


@pytest.mark.parametrize("leaves", [8, 16])
def test_sub_trees_are_the_balanced_ones(leaves):
    """By recursion: a leaf closes the trees of 2^k leaves that end with it, whose first leaves were kept."""
    kept = {}
    for leaf in range(leaves):
        place, lowest, highest = sub_trees(leaf)
        if leaf % 2 == 0:
            kept[place] = leaf
            continue
        closed = [leaf + 1 - 2**k for k in range(1, 5) if (leaf + 1) % 2**k == 0]
        assert sorted(kept[k] for k in range(lowest, highest + 1)) == sorted(closed)


def test_windows_are_stans():
    assert window_ends(1000) == [75, 100, 150, 250, 450, 950]
    assert window_ends(10) == []
    assert window_ends(100) == [15, 70]
    assert window_ends(150) == [75, 100]


def autoregressive(rho, draws, chains):
    rng = np.random.default_rng(0)
    x = np.empty((draws, chains, 1))
    x[0] = rng.standard_normal((chains, 1))
    for k in range(1, draws):
        x[k] = rho * x[k - 1] + math.sqrt(1 - rho * rho) * rng.standard_normal((chains, 1))
    return torch.tensor(x, device="cpu")


@pytest.mark.parametrize("rho", [0.0, 0.6, -0.4])
def test_effective_size_of_an_autoregressive_chain(rho):
    """``n (1 - rho) / (1 + rho)``."""
    x = autoregressive(rho, 2000, 8)
    exact = 16000 * (1 - rho) / (1 + rho)
    for kind in ("bulk", "mean"):
        assert physics.effective_sample_size(x, kind).item() == pytest.approx(exact, rel=0.15)
    assert exact / 3 < physics.effective_sample_size(x, "tail").item() < 17_000


def test_r_hat_tells_chains_that_disagree():
    x = autoregressive(0.3, 400, 4)
    assert physics.r_hat(x).item() == pytest.approx(1, abs=0.01)
    shifted, wider = x.clone(), x.clone()
    shifted[:, 0] += 2
    wider[:, 0] *= 4
    drifting = x + torch.linspace(0, 2, 400, dtype=torch.float64, device="cpu")[:, None, None]
    for bad in (shifted, wider, drifting):
        assert physics.r_hat(bad).item() > 1.05
    assert math.isnan(physics.r_hat(x * 0).item())


def test_r_hat_without_ranks_is_gelman_and_rubins():
    """Of normal scores themselves ranks change nothing but their spacing."""
    from pellucid.physics.diagnostics import _ratio

    x = np.random.default_rng(1).standard_normal((100, 3, 2))
    means, within = x.mean(0), x.var(0, ddof=1).mean(0)
    exact = np.sqrt(99 / 100 + means.var(0, ddof=1) / within)
    np.testing.assert_allclose(_ratio(x), exact)


REFUSED = [
    (lambda q: physics.sample(lambda x: x.sum(-1), q[0]), r"must be \(chains, dim\)"),
    (lambda q: physics.sample(lambda x: x, q), "must give one number for"),
    (
        lambda q: physics.sample(lambda x: x.sum(-1).log(), q * 0),
        "infinite or no number where a chain begins",
    ),
    (lambda q: physics.sample(lambda x: x.sum(-1) * 0, q, draws=1, warmup=1), "is accepted about half of"),
    (lambda q: physics.sample(lambda x: x.sum(-1), q, draws=0), "draws must be at least 1"),
    (lambda q: physics.sample(lambda x: x.sum(-1), q, kernel="nuts"), "kernel must be an HMC or a NUTS"),
    (lambda q: physics.sample(lambda x: x.sum(-1), q, target_acceptance=1.0), "between 0 and 1"),
    (lambda q: physics.HMC(0), "steps must be at least 1"),
    (lambda q: physics.NUTS(20), "max_depth must be at most 15"),
    (lambda q: physics.r_hat(q), "eight draws"),
    (lambda q: physics.effective_sample_size(torch.ones(9, 2, 1, device="cpu"), "all"), "none of 'bulk'"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_what_is_refused(call, text):
    with pytest.raises((ValueError, TypeError), match=text):
        call(torch.ones(4, 2, device="cpu"))
