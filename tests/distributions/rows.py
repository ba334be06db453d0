"""Distributions with parameters, as rows: the class, its arguments, and what differs from PyTorch's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import pellucid

RANDOM = np.random.default_rng(11)


def real(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype("f4")


def positive(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0.4, 3, shape).astype("f4")


def chance(*shape: int) -> np.ndarray:
    return RANDOM.uniform(0.1, 0.9, shape).astype("f4")


def definite(*shape: int) -> np.ndarray:
    a = real(*shape, shape[-1])
    return (a @ a.swapaxes(-1, -2) + np.eye(shape[-1])).astype("f4")


@dataclass
class Row:
    """A distribution.

    Args:
        name: of the class.
        args: its arguments; arrays become tensors, and what is drawn of them is differentiated.
        rtol, atol: of values; those of gradients are ten times as wide.
        without: what is not compared: PyTorch's is less exact, or differs as a comment says.
        rough: what has no gradient in PyTorch.
        sampled: whether the mean and variance of samples are looked at.
    """

    name: str
    args: dict[str, Any]
    rtol: float = 2e-5
    atol: float = 2e-5
    without: tuple[str, ...] = ()
    rough: tuple[str, ...] = ()
    sampled: bool = True
    built: Any = field(default=None)

    def make(self, library: Any, device: str | None = None) -> tuple[Any, list[Any]]:
        """The distribution of a library, and the tensors that have gradients."""
        leaves: list[Any] = []

        def tensor(value: Any) -> Any:
            if not isinstance(value, np.ndarray):
                return value
            t = library.tensor(value, **({"device": device} if device else {}))
            if value.dtype.kind == "f":
                leaves.append(t.requires_grad_())
            return t

        given = {name: tensor(value) for name, value in self.args.items()}
        if self.built is not None:
            return self.built(library.distributions, given), leaves
        return getattr(library.distributions, self.name)(**given), leaves


def mixture(D: Any, given: dict[str, Any]) -> Any:
    return D.MixtureSameFamily(D.Categorical(given["probs"]), D.Normal(given["loc"], given["scale"]))


def of_vectors(D: Any, given: dict[str, Any]) -> Any:
    parts = D.Independent(D.Normal(given["loc"], given["scale"]), 1)
    return D.MixtureSameFamily(D.Categorical(logits=given["logits"]), parts)


def squashed(D: Any, given: dict[str, Any]) -> Any:
    base = D.Normal(given["loc"], given["scale"])
    return D.TransformedDistribution(base, [D.AffineTransform(0.5, -2.0), D.SigmoidTransform()])


def halves(D: Any, given: dict[str, Any]) -> Any:
    return D.Independent(D.Gamma(given["concentration"], given["rate"]), 1)


ROWS = {
    "normal": Row("Normal", {"loc": real(2, 3), "scale": positive(3)}),
    "normal of numbers": Row("Normal", {"loc": 0.5, "scale": 2.0}),
    "laplace": Row("Laplace", {"loc": real(3), "scale": positive(3)}),
    "cauchy": Row("Cauchy", {"loc": real(3), "scale": positive(3)}, sampled=False),
    "uniform": Row("Uniform", {"low": real(3), "high": 3 + positive(3)}),
    "von mises": Row("VonMises", {"loc": real(3), "concentration": positive(3)}, sampled=False),
    "student": Row("StudentT", {"df": np.array([0.7, 1.5, 9], "f4"), "loc": real(3), "scale": positive(3)},
                   sampled=False),
    "log normal": Row("LogNormal", {"loc": real(3), "scale": chance(3)}),
    "half normal": Row("HalfNormal", {"scale": positive(3)}),
    "half cauchy": Row("HalfCauchy", {"scale": positive(3)}, sampled=False),
    "logistic normal": Row("LogisticNormal", {"loc": real(2, 3), "scale": positive(2, 3)}, sampled=False),
    "gumbel": Row("Gumbel", {"loc": real(3), "scale": positive(3)}),
    "weibull": Row("Weibull", {"scale": positive(3), "concentration": 1 + positive(3)}),
    "pareto": Row("Pareto", {"scale": positive(3), "alpha": np.array([0.5, 1.5, 9], "f4")}, sampled=False),
    "generalized pareto": Row("GeneralizedPareto", {"loc": real(4), "scale": positive(4),
        "concentration": np.array([0, 0.2, -0.4, 1.5], "f4")}, sampled=False),
    "kumaraswamy": Row("Kumaraswamy", {"concentration1": 1 + positive(3), "concentration0": 1 + positive(3)},
                       without=("mode",)),
    "gamma": Row("Gamma", {"concentration": positive(3), "rate": positive(3)}, rough=("cdf",)),
    "chi2": Row("Chi2", {"df": positive(3)}, rough=("cdf",)),
    "exponential": Row("Exponential", {"rate": positive(3)}),
    "inverse gamma": Row("InverseGamma", {"concentration": np.array([0.7, 1.5, 9], "f4"),
        "rate": positive(3)}, sampled=False, rough=("cdf",)),
    "fisher": Row("FisherSnedecor", {"df1": np.array([1, 5, 9], "f4"), "df2": np.array([1, 9, 30], "f4")},
                  sampled=False),
    "beta": Row("Beta", {"concentration1": positive(3), "concentration0": positive(3)}),
    "dirichlet": Row("Dirichlet", {"concentration": positive(2, 3)}),
    "lkj": Row("LKJCholesky", {"dim": 3, "concentration": positive(2)}, sampled=False),
    "bernoulli": Row("Bernoulli", {"probs": chance(3)}),
    "bernoulli of logits": Row("Bernoulli", {"logits": real(3)}),
    "binomial": Row("Binomial", {"total_count": 7, "probs": chance(3)}),
    "binomial of counts": Row("Binomial", {"total_count": np.array([0, 3, 40], "f4"), "logits": real(3)},
                              without=("entropy",)),
    "geometric": Row("Geometric", {"probs": chance(3)}),
    "negative binomial": Row("NegativeBinomial", {"total_count": positive(3), "probs": chance(3)}),
    "poisson": Row("Poisson", {"rate": positive(3)}),
    "categorical": Row("Categorical", {"probs": positive(2, 4)}, sampled=False),
    "categorical of logits": Row("Categorical", {"logits": real(2, 4)}, sampled=False),
    "one hot": Row("OneHotCategorical", {"logits": real(2, 4)}),
    "straight through": Row("OneHotCategoricalStraightThrough", {"probs": positive(4)}),
    "multinomial": Row("Multinomial", {"total_count": 5, "probs": positive(2, 4)}),
    "mixture": Row("mixture", {"probs": positive(2, 3), "loc": real(2, 3), "scale": positive(2, 3)},
                   built=mixture),
    "mixture of vectors": Row("mixture", {"logits": real(3), "loc": real(3, 2), "scale": positive(3, 2)},
                              built=of_vectors),
    "continuous bernoulli": Row("ContinuousBernoulli", {"probs": chance(4)}, rtol=1e-4, atol=1e-4),
    "relaxed bernoulli": Row("RelaxedBernoulli", {"temperature": np.full(1, 0.7, "f4"), "probs": chance(3)},
                             sampled=False),
    "relaxed one hot": Row("RelaxedOneHotCategorical", {"temperature": np.full(1, 0.7, "f4"),
        "logits": real(2, 3)}, sampled=False, rtol=1e-4, atol=1e-4),
    "multivariate normal": Row("MultivariateNormal", {"loc": real(2, 3), "covariance_matrix": definite(3)},
                               rtol=1e-4, atol=1e-4),
    "precision": Row("MultivariateNormal", {"loc": real(3), "precision_matrix": definite(2, 3)},
                     rtol=1e-4, atol=1e-4),
    "scale tril": Row("MultivariateNormal", {"loc": real(3), "scale_tril": np.linalg.cholesky(definite(3))},
                      rtol=1e-4, atol=1e-4),
    "low rank": Row("LowRankMultivariateNormal", {"loc": real(3), "cov_factor": real(2, 3, 2),
        "cov_diag": positive(3)}, rtol=1e-4, atol=1e-4),
    "wishart": Row("Wishart", {"df": np.array([4, 5.5], "f4"), "covariance_matrix": definite(3)},
                   rtol=1e-4, atol=2e-4),
    "transformed": Row("transformed", {"loc": real(3), "scale": positive(3)}, built=squashed, sampled=False),
    "independent": Row("independent", {"concentration": positive(2, 3), "rate": positive(3)}, built=halves),
}  # fmt: skip


def both(row: Row, device: str) -> tuple[Any, list[Any], Any, list[Any]]:
    """The distribution here and of PyTorch, each with its leaves."""
    return (*row.make(pellucid, device), *row.make(torch))
