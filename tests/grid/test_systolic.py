"""P-041: ticks of a clock: the sequential result after as many as layers, feedback, gradients in time."""

import itertools

import numpy as np
import pytest

import pellucid
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.errors import PellucidError
from pellucid.grid import GridNetwork, Link, Position, Systolic

PLACES = [Position(0, 0, x, 0) for x in range(3)]
X = np.random.default_rng(2).standard_normal((6, 2, 3)).astype(np.float32)


def network(links=(), order=range(3), device="cpu", dtype=None):
    pellucid.manual_seed(1)
    layers = [nn.Sequential(nn.Linear(3, 3, device=device, dtype=dtype), nn.Tanh()) for _ in range(3)]
    return GridNetwork(1, 1, 3, 1, {PLACES[k]: layers[k] for k in order}, links)


@pytest.mark.parametrize("device", DEVICES)
def test_a_chain_gives_the_sequential_result_after_its_length(device):
    net = network(device=device)
    engine = Systolic(net, history=True)
    x = pellucid.tensor(X, device=device)
    out = [engine.tick(x[t]) for t in range(6)]
    assert out[:2] == [None, None]
    for t in range(2, 6):
        np.testing.assert_allclose(
            out[t].detach().numpy(), net(x[t - 2]).detach().numpy(), rtol=1e-5, atol=1e-6
        )
    assert [len(made) for made in engine.history] == [1, 2, 3, 3, 3, 3]
    assert engine.ticks == 6
    engine.reset()
    assert engine.tick(x[0]) is None


def test_the_order_in_which_layers_were_placed_does_not_matter():
    x = pellucid.tensor(X, device="cpu")
    found = []
    for order in itertools.permutations(range(3)):
        engine = Systolic(network([Link(PLACES[2], PLACES[0])], order))
        found.append([engine.tick(x[t]) for t in range(6)][-1])
    assert all((f == found[0]).all() for f in found)


def test_feedback_is_what_the_source_gave_in_the_tick_before():
    net = network([Link(PLACES[2], PLACES[0])])
    a, b, c = (layer for _, layer in net.layers())
    engine, x = Systolic(net), pellucid.tensor(X, device="cpu")
    h = [None, None, None]
    for t in range(6):
        out = engine.tick(x[t])
        first = x[t] if h[2] is None else x[t] + h[2]
        h = [a(first), None if h[0] is None else b(h[0]), None if h[1] is None else c(h[1])]
        assert (out is None) == (h[2] is None)
    np.testing.assert_allclose(out.detach().numpy(), h[2].detach().numpy(), rtol=1e-6)


class Ticks(nn.Module):
    """What the last two of five ticks give."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        engine = Systolic(self.net)
        out = [engine.tick(x[t]) for t in range(5)]
        return out[-1] + out[-2]


def test_gradients_go_through_ticks_and_links():
    links = [Link(PLACES[1], PLACES[1]), Link(PLACES[2], PLACES[0])]
    run = Ticks(network(links, dtype=pellucid.float64))
    names, values = zip(*run.named_parameters(), strict=True)

    def function(x, *given):
        return pellucid.func.functional_call(run, dict(zip(names, given, strict=True)), (x,))

    x = pellucid.tensor(X.astype(np.float64), device="cpu", requires_grad=True)
    assert pellucid.autograd.gradcheck(function, (x, *values))


def test_a_window_cuts_the_graph():
    """P-041, P-086: truncated backpropagation through time."""
    x = pellucid.tensor(X, device="cpu", requires_grad=True)
    for window, reaches in ((None, True), (3, False)):
        engine = Systolic(network([Link(PLACES[0], PLACES[0])]), window)
        out = [engine.tick(x[t]) for t in range(6)][-1]
        (slope,) = pellucid.autograd.grad(out.sum(), [x])
        assert (slope[3].abs().sum() > 0).item()
        assert (slope[0].abs().sum() > 0).item() == reaches


@pytest.mark.parametrize(
    "call",
    [
        lambda: Systolic(GridNetwork(1, 1, 1, 1)),
        lambda: Systolic(nn.ReLU()),
        lambda: Systolic(network(), 0),
    ],
)
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call()
