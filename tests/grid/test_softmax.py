"""P-035, P-036: the ten kinds of softmax sum to 1, have known values and right gradients."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid import grid
from pellucid.errors import ArgumentError, RangeError, ShapeError

X = np.random.default_rng(3).standard_normal((3, 6)).astype(np.float32) * 2
MASK = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]], bool)
PRIOR = np.array([[0.3, -0.2, 0.5]] * 1, np.float32)


def projected(z):
    """The nearest point of the simplex by trying every support."""
    z = z.astype(np.float64)
    for count in range(len(z), 0, -1):
        kept = np.sort(z)[::-1][:count]
        t = (kept.sum() - 1) / count
        if kept[-1] > t:
            return np.maximum(z - t, 0)
    raise AssertionError


def entmaxed(z, alpha):
    """By a threshold that float64 bisects."""
    x = (alpha - 1) * z.astype(np.float64)
    low, high = x.max() - 1, x.max()
    for _ in range(200):
        t = (low + high) / 2
        total = (np.maximum(x - t, 0) ** (1 / (alpha - 1))).sum()
        low, high = (t, high) if total >= 1 else (low, t)
    return np.maximum(x - low, 0) ** (1 / (alpha - 1))


def softmaxed(z, axis=-1):
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def hierarchical(z):
    tree = z.reshape(-1, 2, 3)
    return (softmaxed(tree.mean(-1))[..., None] * softmaxed(tree)).reshape(z.shape)


def adaptive(z):
    p = softmaxed(z)
    h = -(p * np.log(p)).sum(-1, keepdims=True)
    b = np.polyval([-0.037, 0.481, -2.3, 4.917, -1.791], h)
    return softmaxed(z * np.where(h > 0.5, np.maximum(b, 1), 1))


KINDS = {
    "standard": ({}, softmaxed),
    "grid": ({"rows": 2, "columns": 3}, lambda z: softmaxed(z.reshape(-1, 2, 3)).reshape(z.shape)),
    "hierarchical": ({"levels": [2, 3]}, hierarchical),
    "temperature": ({"temperature": 0.5}, lambda z: softmaxed(z / 0.5)),
    "sparse": ({}, lambda z: np.stack([projected(r) for r in z])),
    "adaptive": ({}, adaptive),
    "entmax": ({}, lambda z: np.stack([entmaxed(r, 1.5) for r in z])),
}
ENTMAX = {alpha: lambda z, a=alpha: np.stack([entmaxed(r, a) for r in z]) for alpha in (1.25, 1.7, 2.0, 3.0)}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, device):
    settings, right = KINDS[kind]
    out = grid.SoftmaxVariant(kind, **settings)(pellucid.tensor(X, device=device)).numpy()
    np.testing.assert_allclose(out, right(X), rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(out.sum(-1), 2.0 if kind == "grid" else 1.0, rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("alpha", ENTMAX)
def test_entmax_of_any_alpha(alpha, device):
    out = grid.entmax(pellucid.tensor(X, device=device), alpha).numpy()
    np.testing.assert_allclose(out, ENTMAX[alpha](X), rtol=2e-4, atol=5e-6)
    np.testing.assert_array_equal(out == 0, ENTMAX[alpha](X) == 0)


@pytest.mark.parametrize("device", DEVICES)
def test_masks(device):
    x = pellucid.tensor(X, device=device, requires_grad=True)
    mask = MASK & (np.arange(3) != 1)[:, None]
    out = grid.masked_softmax(x, pellucid.tensor(mask, device=device))
    expected = np.zeros_like(X)
    for row in (0, 2):
        expected[row, mask[row]] = softmaxed(X[row, mask[row]])
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-5, atol=1e-7)
    assert (out.detach().numpy()[~mask] == 0).all()  # also a row without any value
    (out * pellucid.tensor(X, device=device)).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert (x.grad.numpy()[~mask] == 0).all()


@pytest.mark.parametrize("device", DEVICES)
def test_mixtures_are_means_of_softmaxes(device):
    p, z = PRIOR[0], X[:3]
    out = grid.mixture_softmax(pellucid.tensor(z, device=device), pellucid.tensor(p, device=device)).numpy()
    np.testing.assert_allclose(out, (softmaxed(p)[:, None] * softmaxed(z)).sum(0), rtol=1e-5)


def test_gumbel_is_reproducible_from_its_seed_and_hard_in_the_forward_pass():
    layer, x = grid.SoftmaxVariant("gumbel", tau=0.7, hard=True), pellucid.tensor(X)
    pellucid.manual_seed(4)
    first = layer(x)
    assert ((first.numpy() == 0) | (first.numpy() == 1)).all()
    assert (first.sum(-1) == 1).all()
    pellucid.manual_seed(4)
    soft = grid.SoftmaxVariant("gumbel", tau=0.7)(x)
    np.testing.assert_allclose(soft.sum(-1).numpy(), 1, rtol=1e-5)
    assert (soft.argmax(-1) == first.argmax(-1)).all()
    pellucid.manual_seed(4)
    assert (first == layer(x)).all()
    assert not (first == layer(x)).all()


GRADIENTS = {
    **{k: (lambda z, k=k: grid.SoftmaxVariant(k, **KINDS[k][0])(z)) for k in KINDS if k != "adaptive"},
    "gumbel": lambda z: pellucid.manual_seed(0) and grid.SoftmaxVariant("gumbel", tau=0.7)(z),
    "entmax, 1.7": lambda z: grid.entmax(z, 1.7),
    "masked": lambda z: grid.masked_softmax(z, pellucid.tensor(MASK, device="cpu")),
    "mixture": lambda z: grid.mixture_softmax(z, z.sum(-1)),
}


@pytest.mark.parametrize("kind", GRADIENTS)
def test_gradients(kind):
    x = pellucid.tensor(X.astype(np.float64), device="cpu", requires_grad=True)
    assert pellucid.autograd.gradcheck(GRADIENTS[kind], (x,), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_the_gradient_of_adaptive_softmax_takes_its_temperature_as_a_constant(device):
    """P-035: beside PyTorch's of a softmax of the same factors."""
    p = softmaxed(X)
    h = -(p * np.log(p)).sum(-1, keepdims=True)
    factors = np.where(h > 0.5, np.maximum(np.polyval([-0.037, 0.481, -2.3, 4.917, -1.791], h), 1), 1)
    assert (factors != 1).any()
    x, theirs = pellucid.tensor(X, device=device, requires_grad=True), torch.tensor(X, requires_grad=True)
    (grid.adaptive_softmax(x) * pellucid.tensor(X, device=device)).sum().backward()
    (torch.softmax(theirs * torch.tensor(factors), -1) * torch.tensor(X)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_entmax_of_alpha_1_is_softmax_and_close_to_it_the_same():
    x = pellucid.tensor(X)
    expected = torch.softmax(torch.tensor(X), -1).numpy()
    np.testing.assert_allclose(grid.entmax(x, 1).numpy(), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(grid.entmax(x, 1.01).numpy(), expected, atol=0.02)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: grid.grid_softmax(x, 4, 2), ShapeError, "holds 8 values, but the last axis has 6"),
        (lambda x: grid.hierarchical_softmax(x, []), ShapeError, "levels"),
        (lambda x: grid.hierarchical_softmax(x, [2, 2]), ShapeError, "4 leaves"),
        (lambda x: grid.temperature_softmax(x, 0), RangeError, "positive and finite, not 0"),
        (lambda x: grid.temperature_softmax(x, "a"), ArgumentError, "a number, not str"),
        (lambda x: grid.entmax(x, 0.5), RangeError, "at least 1"),
        (lambda x: grid.sparsemax(x.sum()), ShapeError, "no axis"),
        (lambda x: grid.masked_softmax(x, x), ArgumentError, "bool tensor, not"),
        (lambda x: grid.mixture_softmax(x, x), ShapeError, r"\(\.\.\., k\)"),
        (lambda x: grid.SoftmaxVariant("hot"), RangeError, "one of standard, grid"),
        (
            lambda x: grid.SoftmaxVariant("sparse", alpha=2),
            ArgumentError,
            "has no settings, but alpha was given",
        ),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call(pellucid.tensor(X))
