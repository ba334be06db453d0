"""Divergences of every pair that PyTorch has, and how a pair is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions.kl import _KL_REGISTRY

import pellucid
from distributions.rows import Row, definite, positive, real
from pellucid import distributions as D
from pellucid.distributions.kl import _PAIRS

# Two of each class.
MADE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Bernoulli": ({"probs": np.array([0.2, 0, 1], "f4")}, {"probs": np.array([0.7, 0.5, 0.5], "f4")}),
    "Beta": ({"concentration1": positive(3), "concentration0": positive(3)},
             {"concentration1": positive(3), "concentration0": positive(3)}),
    "Binomial": ({"total_count": 5, "probs": np.array([0.2, 0.5, 0.9], "f4")},
                 {"total_count": np.array([5, 5, 4], "f4"), "probs": np.array([0.7, 0.4, 0.3], "f4")}),
    "Categorical": ({"probs": np.array([[1, 2, 3], [0, 1, 1]], "f4")}, {"probs": np.array([3, 1, 2], "f4")}),
    "Cauchy": ({"loc": real(3), "scale": positive(3)}, {"loc": real(3), "scale": positive(3)}),
    "ContinuousBernoulli": ({"probs": np.array([0.2, 0.4, 0.9], "f4")}, {"logits": real(3)}),
    "Dirichlet": ({"concentration": positive(2, 3)}, {"concentration": positive(3)}),
    "Exponential": ({"rate": positive(3)}, {"rate": positive(3)}),
    "Gamma": ({"concentration": positive(3), "rate": positive(3)},
              {"concentration": positive(3), "rate": positive(3)}),
    "Gumbel": ({"loc": real(3), "scale": positive(3)}, {"loc": real(3), "scale": positive(3)}),
    "Geometric": ({"probs": np.array([0.2, 0.4, 0.9], "f4")}, {"logits": real(3)}),
    "HalfNormal": ({"scale": positive(3)}, {"scale": positive(3)}),
    "Laplace": ({"loc": real(3), "scale": positive(3)}, {"loc": real(3), "scale": positive(3)}),
    "LowRankMultivariateNormal": ({"loc": real(3), "cov_factor": real(3, 2), "cov_diag": positive(3)},
                                  {"loc": real(2, 3), "cov_factor": real(3, 1), "cov_diag": positive(3)}),
    "MultivariateNormal": ({"loc": real(3), "covariance_matrix": definite(3)},
                           {"loc": real(3), "precision_matrix": definite(2, 3)}),
    "Normal": ({"loc": real(3), "scale": positive(3)}, {"loc": real(3), "scale": positive(3)}),
    "OneHotCategorical": ({"logits": real(2, 3)}, {"logits": real(3)}),
    "Pareto": ({"scale": positive(3), "alpha": np.array([0.5, 1.5, 4], "f4")},
               {"scale": positive(3) / 2, "alpha": positive(3)}),
    "Poisson": ({"rate": positive(3)}, {"rate": positive(3)}),
    "Uniform": ({"low": np.array([0.1, 0, 0.4], "f4"), "high": np.array([0.6, 0.8, 2], "f4")},
                {"low": np.array([0.1, -1, 0], "f4"), "high": np.array([1, 0.9, 2], "f4")}),
}  # fmt: skip
# Of these PyTorch's is a formula of any exponential family, of base distributions, or infinite the wrong way
# round, see below.
OTHERS = {
    ("ExponentialFamily", "ExponentialFamily"), ("TransformedDistribution", "TransformedDistribution"),
    ("Independent", "Independent"), ("ContinuousBernoulli", "Uniform"), ("Uniform", "ContinuousBernoulli"),
}  # fmt: skip
NAMES = [pair for pair in ((p.__name__, q.__name__) for p, q in _KL_REGISTRY) if pair not in OTHERS]


def test_every_pair_of_pytorch_is_there():
    ours = {(p.__name__, q.__name__) for p, q in _PAIRS}
    assert ours == {(p.__name__, q.__name__) for p, q in _KL_REGISTRY}


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize("first", MADE)
def test_divergences_are_those_of_pytorch(first, device):
    found, expected, ours, theirs = [], [], [], []
    for second in (q for p, q in NAMES if p == first):
        rows = Row(first, MADE[first][0]), Row(second, MADE[second][1])
        with pellucid.device(device):
            pair = [row.make(pellucid, device) for row in rows]
        other = [row.make(torch) for row in rows]
        a = D.kl_divergence(pair[0][0], pair[1][0])
        b = torch.distributions.kl_divergence(other[0][0], other[1][0])
        assert a.shape == b.shape
        found.append(a)
        expected.append(b)
        if b.isfinite().all() and b.requires_grad:
            ours += pellucid.autograd.grad(a.sum(), pair[0][1] + pair[1][1])
            theirs += torch.autograd.grad(b.sum(), other[0][1] + other[1][1])
    for values, others, wide in ((found, expected, 1), (ours, theirs, 10)):
        here = pellucid.cat([v.flatten() for v in values]).detach().cpu().numpy() if values else np.zeros(0)
        there = torch.cat([v.flatten() for v in others]).detach().numpy() if others else np.zeros(0)
        np.testing.assert_allclose(here, there, rtol=wide * 5e-5, atol=wide * 5e-5)


def test_a_uniform_and_a_continuous_bernoulli():
    """Finite where one has all values of the other, else infinite; PyTorch's are infinite at equal bounds."""
    chance = D.ContinuousBernoulli(probs=pellucid.tensor(0.5, device="cpu"))
    for low, high, finite in ((0, 1, True), (-1, 2, True), (0.1, 1, False)):
        uniform = D.Uniform(pellucid.tensor(float(low), device="cpu"), float(high))
        expected = np.log(high - low) if finite else np.inf
        np.testing.assert_allclose(D.kl_divergence(chance, uniform).item(), expected, atol=1e-6)
    for low, high, finite in ((0, 1, True), (0.25, 0.5, True), (-1, 1, False)):
        uniform = D.Uniform(pellucid.tensor(float(low), device="cpu"), float(high))
        expected = -np.log(high - low) if finite else np.inf
        np.testing.assert_allclose(D.kl_divergence(uniform, chance).item(), expected, atol=1e-6)


def test_pairs_of_the_general_kind():
    zeros, ones = pellucid.zeros(2, 3, device="cpu"), pellucid.ones(2, 3, device="cpu")
    near, far = D.Normal(zeros, ones), D.Normal(ones, ones)
    assert D.kl_divergence(D.Independent(near, 1), D.Independent(far, 1)).tolist() == [1.5, 1.5]
    same = D.kl_divergence(D.LogNormal(zeros, ones), D.LogNormal(ones, ones))
    assert same.tolist() == D.kl_divergence(near, far).tolist()
    with pytest.raises(NotImplementedError, match="different numbers of axes"):
        D.kl_divergence(D.Independent(near, 1), D.Independent(far, 2))
    with pytest.raises(NotImplementedError, match="different transforms"):
        D.kl_divergence(D.LogNormal(zeros, ones), D.HalfNormal(ones))
    with pytest.raises(
        NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q"
    ):
        D.kl_divergence(near, D.Categorical(logits=ones))
    # By the log normalizer alone, against the formula of the pair.
    bregman = _PAIRS[D.ExponentialFamily, D.ExponentialFamily]
    for p, q in (
        (near, far),
        (D.Gamma(ones, 2 * ones), D.Gamma(2 * ones, ones)),
        (D.Dirichlet(ones), D.Dirichlet(2 * ones)),
        (D.Exponential(ones), D.Exponential(3 * ones)),
    ):
        np.testing.assert_allclose(bregman(p, q).tolist(), D.kl_divergence(p, q).tolist(), rtol=1e-5)
        np.testing.assert_allclose(
            D.ExponentialFamily.entropy(q).tolist() if not isinstance(q, D.Dirichlet) else 0,
            q.entropy().tolist() if not isinstance(q, D.Dirichlet) else 0,
            rtol=1e-5,
        )
    with pytest.raises(NotImplementedError, match="different exponential families"):
        bregman(near, D.Exponential(ones))
    with pytest.raises(NotImplementedError, match=r"q\.total_count > p\.total_count"):
        D.kl_divergence(D.Binomial(2, ones / 2), D.Binomial(3, ones / 2))
    with pytest.raises(ValueError, match="different lengths"):
        D.kl_divergence(
            *(
                D.MultivariateNormal(pellucid.zeros(n, device="cpu"), pellucid.eye(n, device="cpu"))
                for n in (2, 3)
            )
        )


def test_the_nearest_pair_is_found():
    class Mine(D.Normal):
        pass

    class Yours(Mine):
        pass

    @D.register_kl(Mine, D.Normal)
    def first(p, q):
        return "first"

    @D.register_kl(D.Normal, Yours)
    def second(p, q):
        return "second"

    try:
        made = [kind(pellucid.zeros(1, device="cpu"), 1.0) for kind in (D.Normal, Mine, Yours)]
        assert D.kl_divergence(made[1], made[0]) == "first"
        assert D.kl_divergence(made[0], made[2]) == "second"
        assert D.kl_divergence(made[0], made[1]).tolist() == [0.0]
        with pytest.warns(RuntimeWarning, match="Ambiguous"):
            assert D.kl_divergence(made[2], made[2]) == "first"
    finally:
        _PAIRS.pop((Mine, D.Normal))
        _PAIRS.pop((D.Normal, Yours))
    for wrong in ((int, D.Normal), (D.Normal, int)):
        with pytest.raises(TypeError, match="to be a Distribution subclass"):
            D.register_kl(*wrong)
