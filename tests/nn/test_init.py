"""First values: distributions have PyTorch's bounds and moments, and depend on the seed only."""

import numpy as np
import pytest
import torch

import pellucid
from pellucid.nn import init

SHAPE = (400, 300)


def moments(fill, lib, device="cpu"):
    t = lib.empty(SHAPE, device=device) if lib is pellucid else lib.empty(SHAPE)
    out = fill(lib.nn.init, t)
    assert out is t
    a = t.numpy()
    return np.array([a.mean(), a.std(), a.min(), a.max()])


@pytest.mark.parametrize(
    "fill",
    [
        lambda i, t: i.uniform_(t, -2, 3),
        lambda i, t: i.xavier_uniform_(t, gain=2.0),
        lambda i, t: i.kaiming_uniform_(t, a=5**0.5),
        lambda i, t: i.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
        lambda i, t: i.trunc_normal_(t, std=2.0, a=-1.0, b=3.0),
        lambda i, t: i.constant_(t, 0.3),
        lambda i, t: i.ones_(t),
        lambda i, t: i.zeros_(t),
    ],
)
def test_bounded(fill, device):
    ours, theirs = moments(fill, pellucid, device), moments(fill, torch)
    np.testing.assert_allclose(ours, theirs, atol=0.02, rtol=0.01)


@pytest.mark.parametrize(
    "fill",
    [
        lambda i, t: i.normal_(t, 1.0, 0.5),
        lambda i, t: i.xavier_normal_(t),
        lambda i, t: i.kaiming_normal_(t, nonlinearity="tanh"),
        lambda i, t: i.kaiming_normal_(t, a=0.3, mode="fan_out"),
        lambda i, t: i.orthogonal_(t, gain=2.0),
    ],
)
def test_normal(fill, device):
    ours, theirs = moments(fill, pellucid, device), moments(fill, torch)
    np.testing.assert_allclose(ours[:2], theirs[:2], atol=0.01, rtol=0.02)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal(shape):
    a = init.orthogonal_(pellucid.empty(shape, device="cpu")).numpy().reshape(shape[0], -1)
    product = a @ a.T if a.shape[0] < a.shape[1] else a.T @ a
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)


def test_eye(device):
    assert init.eye_(pellucid.empty(2, 3, device=device)).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_layers_begin_within_pytorchs_bounds(device):
    layer = pellucid.nn.Linear(16, 64, device=device)
    for value in (layer.weight, layer.bias):
        a = value.detach().numpy()
        assert np.abs(a).max() <= 0.25
        assert np.abs(a).max() > 0.2
    table = pellucid.nn.Embedding(200, 50, device=device).weight.detach().numpy()
    assert abs(table.std() - 1) < 0.03


def test_one_seed_gives_one_model_on_every_device():
    weights = {}
    for device in ("cpu", "webgpu"):
        pellucid.manual_seed(5)
        weights[device] = pellucid.nn.Linear(7, 3, device=device).weight.detach().numpy()
    np.testing.assert_allclose(weights["cpu"], weights["webgpu"], atol=1e-7)


@pytest.mark.parametrize("name", ["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"])
def test_gains(name):
    assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert init.calculate_gain("leaky_relu", 0.3) == pytest.approx(
        torch.nn.init.calculate_gain("leaky_relu", 0.3)
    )


def test_says_what_is_wrong():
    x = pellucid.empty(3, device="cpu")
    with pytest.raises(ValueError, match=r"shape \(3,\) has no fan"):
        init.xavier_uniform_(x)
    with pytest.raises(ValueError, match="no gain is known for 'gelu'"):
        init.calculate_gain("gelu")
    with pytest.raises(ValueError, match="mode must be 'fan_in' or 'fan_out', not 'fan'"):
        init.kaiming_uniform_(pellucid.empty(3, 3, device="cpu"), mode="fan")
    with pytest.raises(ValueError, match="takes a matrix"):
        init.eye_(x)
    with pytest.raises(ValueError, match="at least two axes"):
        init.orthogonal_(x)
