"""Samples have the moments that the distribution says, gradients that of the mean, and the seed says all."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pellucid
from distributions.rows import ROWS
from pellucid import distributions as D

COUNT = 4000


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row.sampled])
def test_moments(key, device):
    """Within five deviations of the mean of so many samples; variances within a quarter."""
    pellucid.manual_seed(7)
    with pellucid.device(device):
        d, _ = ROWS[key].make(pellucid, device)
    drawn = d.sample((COUNT,))
    assert drawn.shape == (COUNT, *d.batch_shape, *d.event_shape)
    assert not drawn.requires_grad
    assert bool(d.support.check(drawn).all())
    x = drawn.cpu().numpy().astype("f8")
    mean, variance = d.mean.detach().cpu().numpy(), d.variance.detach().cpu().numpy()
    assert (np.abs(x.mean(0) - mean) <= 5 * np.sqrt(variance / COUNT) + 1e-6).all()
    np.testing.assert_allclose(x.var(0), variance, rtol=0.25, atol=1e-6)


QUANTILES = (
    "cauchy", "half cauchy", "student", "pareto", "generalized pareto", "inverse gamma", "fisher",
    "kumaraswamy", "weibull", "continuous bernoulli", "gamma",
)  # fmt: skip


@pytest.mark.parametrize("key", QUANTILES)
def test_quantiles(key):
    """Kolmogorov and Smirnov's distance from the distribution function, or from PyTorch's samples."""
    pellucid.manual_seed(9)
    torch.manual_seed(9)
    d, _ = ROWS[key].make(pellucid, "webgpu")
    x = np.sort(d.sample((COUNT,)).cpu().numpy().astype("f8"), 0)
    try:
        share = d.cdf(pellucid.tensor(x.astype("f4"))).detach().cpu().numpy()
        far = np.abs(share - np.linspace(0, 1, COUNT).reshape(-1, 1)).max(0)
        assert (far < 2 / np.sqrt(COUNT)).all(), far
    except NotImplementedError:
        y = np.sort(ROWS[key].make(torch)[0].sample((COUNT,)).numpy(), 0)
        for a, b in zip(x.T, y.T, strict=True):
            far = np.abs(np.searchsorted(a, a) - np.searchsorted(b, a)).max() / COUNT
            assert far < 2 * np.sqrt(2 / COUNT)


# Means by their parameters, whose gradients those of many samples approach.
MEANS = {
    "Normal": ({"loc": 0.3, "scale": 1.2}, lambda p: p["loc"]),
    "Laplace": ({"loc": 0.3, "scale": 1.2}, lambda p: p["loc"]),
    "Uniform": ({"low": 0.3, "high": 1.2}, lambda p: (p["low"] + p["high"]) / 2),
    "Gamma": ({"concentration": 0.6, "rate": 1.5}, lambda p: p["concentration"] / p["rate"]),
    "Chi2": ({"df": 5.0}, lambda p: p["df"]),
    "Beta": ({"concentration1": 0.6, "concentration0": 2.0},
             lambda p: p["concentration1"] / (p["concentration1"] + p["concentration0"])),
    "Exponential": ({"rate": 1.5}, lambda p: 1 / p["rate"]),
    "LogNormal": ({"loc": 0.1, "scale": 0.4}, lambda p: (p["loc"] + p["scale"] ** 2 / 2).exp()),
    "HalfNormal": ({"scale": 1.2}, lambda p: p["scale"] * np.sqrt(2 / np.pi)),
    "Gumbel": ({"loc": 0.3, "scale": 1.2}, lambda p: p["loc"] + p["scale"] * np.euler_gamma),
    "Weibull": ({"scale": 1.2, "concentration": 2.0},
                lambda p: p["scale"] * (1 + 1 / p["concentration"]).lgamma().exp()),
    "ContinuousBernoulli": ({"probs": 0.2}, lambda p: D.ContinuousBernoulli(p["probs"]).mean),
    "StudentT": ({"df": 6.0, "loc": 0.3, "scale": 1.2}, lambda p: p["loc"]),
    "GeneralizedPareto": ({"loc": 0.3, "scale": 1.2, "concentration": 0.1},
                          lambda p: p["loc"] + p["scale"] / (1 - p["concentration"])),
}  # fmt: skip


@pytest.mark.parametrize("name", MEANS)
def test_gradients_of_samples(name):
    """The gradient of the mean of many samples is about that of the mean."""
    pellucid.manual_seed(5)
    given, mean = MEANS[name]
    leaves = {k: pellucid.tensor(v, device="cpu", requires_grad=True) for k, v in given.items()}
    d = getattr(D, name)(**leaves)
    drawn = d.rsample((40000,))
    found = pellucid.autograd.grad(drawn.mean(), [*leaves.values()])
    expected = pellucid.autograd.grad(mean(leaves), [*leaves.values()], allow_unused=True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.item(), 0.0 if b is None else b.item(), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_the_derivative_of_a_gamma_variate(device):
    """PyTorch's, of the same value; it is accurate to 5e-4 of this."""
    rng = np.random.default_rng(2)
    shape = np.exp(rng.uniform(-5, 8, 300)).astype("f4")
    a = pellucid.tensor(shape, device=device, requires_grad=True)
    pellucid.manual_seed(2)
    drawn = pellucid._standard_gamma(a)
    (slope,) = pellucid.autograd.grad(drawn.sum(), a)
    x = drawn.detach().cpu().numpy().astype("f8")
    expected = torch._standard_gamma_grad(torch.tensor(shape.astype("f8")), torch.tensor(x)).numpy()
    inside = x > 1e-35
    np.testing.assert_allclose(slope.cpu().numpy()[inside], expected[inside], rtol=1e-3)
    halves = pellucid._standard_gamma(pellucid.full((9,), 3.0, device=device, dtype=pellucid.float16))
    assert halves.dtype is pellucid.float16
    assert halves.isfinite().all()
    (slope,) = pellucid.autograd.grad(pellucid._standard_gamma(a).sum(), a, create_graph=True)
    with pytest.raises(RuntimeError, match="log_gamma_slope: has no derivative"):
        slope.sum().backward()


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_ranges_of_counts(device):
    """Each way to draw, from few to many."""
    pellucid.manual_seed(1)
    rates = pellucid.tensor([0.0, 0.5, 9.5, 10.5, 400.0, 1e6], device=device)
    drawn = pellucid.poisson(rates.expand(COUNT, 6)).cpu().numpy().astype("f8")
    rate = rates.cpu().numpy()
    assert (np.abs(drawn.mean(0) - rate) <= 5 * np.sqrt(rate / COUNT)).all()
    np.testing.assert_allclose(drawn.var(0), rate, rtol=0.15)
    n = pellucid.tensor([0.0, 7, 60, 60, 1000, 1e5, 5, 5], device=device)
    p = pellucid.tensor([0.5, 0.3, 0.3, 0.9, 0.002, 0.7, 0.0, 1.0], device=device)
    drawn = pellucid.binomial(n.expand(COUNT, 8), p).cpu().numpy().astype("f8")
    n, p = n.cpu().numpy(), p.cpu().numpy()
    assert (np.abs(drawn.mean(0) - n * p) <= 5 * np.sqrt(n * p * (1 - p) / COUNT) + 1e-4).all()
    np.testing.assert_allclose(drawn.var(0), n * p * (1 - p), rtol=0.15, atol=1e-9)
    assert pellucid.poisson(pellucid.tensor([-1.0, np.nan], device=device)).isnan().all()
    k = pellucid.tensor([0.01, 0.5, 3, 100, 1e4], device=device)
    cosines = D.VonMises(0.0 * k, k).sample((COUNT,)).cos().cpu().numpy().astype("f8")
    wide = torch.tensor([0.01, 0.5, 3, 100, 1e4], dtype=torch.float64)
    mean = (torch.special.i1e(wide) / torch.special.i0e(wide)).numpy()
    assert (np.abs(cosines.mean(0) - mean) < 5 * cosines.std(0) / np.sqrt(COUNT) + 1e-6).all()


def test_every_device_draws_the_same():
    made = []
    for device in ("cpu", "webgpu"):
        pellucid.manual_seed(4)
        a = pellucid.linspace(0.1, 30, 50, device=device)
        kinds = [
            D.Gamma(a, 1.0), D.Poisson(a), D.Beta(a, 2.0), D.VonMises(a, a), D.Categorical(a),
            D.Binomial(20, a / 31),
        ]  # fmt: skip
        made.append([d.sample((3,)).cpu().numpy() for d in kinds])
    for a, b in zip(*made, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_examples_of_a_batch_draw_their_own():
    rates = pellucid.full((3, 40), 5.0, device="cpu")
    drawn = pellucid.vmap(pellucid.poisson, randomness="different")(rates)
    assert drawn.shape == (3, 40)
    assert (drawn[0] != drawn[1]).any()
    shared = pellucid.vmap(lambda _: pellucid.poisson(rates[0]), randomness="different")(rates)
    assert (shared[0] != shared[1]).any()
    same = pellucid.vmap(lambda _: pellucid.poisson(rates[0]), randomness="same")(rates)
    assert (same[0] == same[1]).all()
    with pytest.raises(TypeError, match="Give vmap randomness='different'"):
        pellucid.vmap(pellucid.poisson, randomness="same")(rates)
    with pytest.raises(TypeError, match="randomness error mode"):
        pellucid.vmap(pellucid.poisson)(rates)
