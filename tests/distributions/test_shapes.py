"""Batches, checked arguments, listed values: what all distributions have, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pellucid
from distributions.rows import ROWS
from pellucid import distributions as D

ONE = pellucid.tensor(1.0, device="cpu")
ZEROS = pellucid.zeros(3, device="cpu")


@pytest.mark.parametrize("key", ROWS)
def test_expand(key):
    d, _ = ROWS[key].make(pellucid, "cpu")
    with pellucid.device("cpu"):
        larger = d.expand((4, *d.batch_shape))
        assert type(larger) is type(d)
        assert larger.batch_shape == (4, *d.batch_shape)
        value = d.sample()
        drawn = larger.sample((2,))
        assert drawn.shape == (2, *larger.batch_shape, *larger.event_shape)
        same = d.log_prob(value).expand(larger.batch_shape)
        np.testing.assert_allclose(larger.log_prob(value).tolist(), same.tolist(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "key", ["normal", "categorical", "gamma", "bernoulli", "half normal", "multivariate normal"]
)
def test_how_they_print(key):
    ours, theirs = (ROWS[key].make(library)[0] for library in (pellucid, torch))
    assert repr(ours) == repr(theirs).replace("torch.Size", "Size")


def test_parts_print():
    parts = D.Independent(D.Normal(ZEROS, 1.0), 1)
    assert repr(parts) == "Independent(Normal(loc: Size([3]), scale: Size([3])), 1)"
    mixed = D.MixtureSameFamily(D.Categorical(logits=ZEROS), D.Normal(ZEROS, 1.0))
    assert "Categorical(logits: Size([3]))" in repr(mixed)


@pytest.mark.parametrize("key", ["bernoulli", "binomial", "categorical", "one hot"])
def test_listed_values(key):
    ours, theirs = (ROWS[key].make(library)[0] for library in (pellucid, torch))
    for expand in (True, False):
        a, b = ours.enumerate_support(expand), theirs.enumerate_support(expand)
        assert a.tolist() == b.tolist()
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
    total = ours.log_prob(ours.enumerate_support()).exp().sum(0)
    np.testing.assert_allclose(total.tolist(), np.ones(total.shape), rtol=1e-5)
    with pytest.raises(NotImplementedError):
        D.Independent(ours, 1).enumerate_support()
    with pytest.raises(NotImplementedError, match="Inhomogeneous total count"):
        D.Binomial(pellucid.tensor([1.0, 2.0], device="cpu"), ONE / 2).enumerate_support()


REFUSED = {
    "parameter scale": lambda: D.Normal(ONE, -1.0),
    "parameter loc": lambda: D.Normal(ONE * np.nan, 1.0),
    "parameter probs": lambda: D.Bernoulli(ONE * 2),
    "satisfy the constraint Simplex": lambda: D.Categorical(pellucid.tensor([-1.0, 2.0], device="cpu")),
    "covariance_matrix": lambda: D.MultivariateNormal(ZEROS, -pellucid.eye(3, device="cpu")),
    "not defined when low": lambda: D.Uniform(ONE, 0.0),
    "probs must be greater than 0": lambda: D.Geometric(ONE * 0),
    "Either `probs` or `logits`": lambda: D.Bernoulli(ONE / 2, ONE),
    "not both": D.Categorical,
    "at least one-dimensional": lambda: D.Categorical(ONE),
    "parameter must be at least one": lambda: D.Dirichlet(ONE),
    "loc must be at least": lambda: D.MultivariateNormal(ONE, ZEROS),
    "Exactly one of": lambda: D.MultivariateNormal(ZEROS),
    "at least two-dim": lambda: D.MultivariateNormal(ZEROS, ZEROS),
    "low rank": lambda: D.LowRankMultivariateNormal(ONE, ONE, ONE),
    "matrices with shape 3 x m": lambda: D.LowRankMultivariateNormal(ZEROS, ZEROS, ZEROS),
    "vectors with shape": lambda: D.LowRankMultivariateNormal(ZEROS, pellucid.eye(3, device="cpu"), ONE),
    "greater than ndim - 1 = 2": lambda: D.Wishart(1.0, pellucid.eye(3, device="cpu")),
    "greater than or equal to 2": lambda: D.LKJCholesky(1),
    "len.base_distribution.batch_shape": lambda: D.Independent(D.Normal(ONE, 1.0), 1),
    "needs to be an instance": lambda: D.MixtureSameFamily(D.Normal(ONE, 1.0), D.Normal(ZEROS, 1.0)),  # type: ignore[arg-type]
    "does not equal": lambda: D.MixtureSameFamily(D.Categorical(logits=ZEROS), D.Normal(ZEROS[:2], 1.0)),
    "is not compatible": lambda: D.MixtureSameFamily(
        D.Categorical(logits=ZEROS.expand(2, 3)), D.Normal(ZEROS.expand(5, 3), 1.0)),
    "must be a Tensor": lambda: D.Normal(ONE, 1.0).log_prob(1.0),  # type: ignore[arg-type]
    "must match event_shape": lambda: D.Dirichlet(ZEROS + 1).log_prob(ONE),
    "not broadcastable": lambda: D.Normal(ZEROS, 1.0).log_prob(ZEROS[:2]),
    "within the support": lambda: D.Exponential(ONE).log_prob(-ONE),
    "is no number and no Tensor": lambda: D.Normal("a", 1.0),  # type: ignore[arg-type]
    "must be True or False": lambda: D.Distribution.set_default_validate_args(3),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_refused(said):
    """PyTorch raises ValueError, in some places AssertionError."""
    with pytest.raises(ValueError, match="at least one-dimensional" if said == "low rank" else said):
        REFUSED[said]()


def test_nothing_is_looked_at_unless_it_is_asked():
    outside = D.Normal(ONE, -1.0, validate_args=False)
    assert outside.log_prob(ONE).isnan().item()
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Exponential(-ONE).rate.item() == -1
        assert D.Exponential(ONE).log_prob(-ONE).item() == 1
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="rate"):
        D.Exponential(-ONE)


def test_what_is_not_there():
    d = D.Categorical(logits=ZEROS)
    calls = (
        d.rsample, lambda: d.cdf(ONE), lambda: d.icdf(ONE), D.Poisson(ONE).entropy,
        lambda: D.Distribution(validate_args=False).mean, D.Normal(ONE, 1.0).enumerate_support,
        D.VonMises(ONE, 1.0).entropy,
    )  # fmt: skip
    for call in calls:
        with pytest.raises(NotImplementedError, match="does not implement"):
            call()
    with pytest.raises(AttributeError, match=r"torch\.distributions has no attribute 'Norml'\. Did you mean"):
        D.Norml  # noqa: B018
    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        D.Distribution()
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(ONE, 1.0).sample_n(3).shape == (3,)
    with pytest.raises(NotImplementedError, match="inhomogeneous total_count"):
        D.Multinomial(ONE, ZEROS)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="Low df"):
        D.Wishart(2.5, pellucid.eye(3, device="cpu"))


def test_numbers_become_tensors_of_the_default_dtype_and_device():
    d = D.Normal(0.0, 1.0)
    assert d.loc.device.type == "webgpu"
    assert d.loc.dtype is pellucid.float32
    halves = D.Normal(pellucid.zeros(2, dtype=pellucid.float16, device="cpu"), 1.0)
    assert halves.rsample().dtype is pellucid.float16
    wide = D.Gamma(pellucid.ones(2, dtype=pellucid.float64, device="cpu"), 1.0)
    assert wide.sample().dtype is pellucid.float64
    assert D.Normal(ONE, 1.0).perplexity().item() == pytest.approx(
        np.exp(D.Normal(ONE, 1.0).entropy().item())
    )
    assert D.Binomial(3, ONE / 2).param_shape == D.Bernoulli(logits=ONE).param_shape == ()


def test_triangles_as_vectors():
    from pellucid.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

    matrix = pellucid.arange(9.0, device="cpu").reshape(3, 3)
    for diag in (-1, 0, 1):
        vector = tril_matrix_to_vec(matrix, diag)
        expected = torch.distributions.utils.tril_matrix_to_vec(torch.arange(9.0).reshape(3, 3), diag)
        assert vector.tolist() == expected.tolist()
        assert vec_to_tril_matrix(vector, diag).tolist() == matrix.tril(diag).tolist()
    with pytest.raises(ValueError, match="it must be -3 to 2"):
        tril_matrix_to_vec(matrix, 3)
    with pytest.raises(ValueError, match="no triangle with diagonal 0 has 4 elements"):
        vec_to_tril_matrix(pellucid.ones(4, device="cpu"))


def test_a_policy_learns():
    """REINFORCE: the arm that pays is chosen in the end."""
    pellucid.manual_seed(0)
    logits = pellucid.zeros(4, device="cpu", requires_grad=True)
    optimizer = pellucid.optim.Adam([logits], lr=0.2)
    for _ in range(60):
        policy = D.Categorical(logits=logits)
        action = policy.sample((16,))
        reward = (action == 2).float()
        loss = -(policy.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * policy.entropy()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert D.Categorical(logits=logits).probs[2].item() > 0.9
