"""P-009, P-011, P-012: layers in a volume run in order, with remote links forward and back; gradients are
those of the same network written out."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.errors import PellucidError
from pellucid.grid import GridNetwork, Link, Position

A, B, C = Position(0, 0, 0, 0), Position(0, 1, 0, 1), Position(1, 0, 2, 0)
X = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)


def network(links=(), device="cpu"):
    pellucid.manual_seed(3)
    layers = {
        C: nn.Linear(3, 3, device=device),
        A: nn.Linear(3, 3, device=device),
        B: nn.Sequential(nn.Linear(3, 3, device=device), nn.Tanh()),
    }
    return GridNetwork(2, 2, 3, 2, layers, links)


def twin(net):
    """The three layers in PyTorch, in the order of the volume."""
    found = []
    for place, layer in net.layers():
        linear = torch.nn.Linear(3, 3)
        source = layer[0] if place == B else layer
        linear.load_state_dict({k: torch.tensor(v.numpy()) for k, v in source.state_dict().items()})
        found.append(torch.nn.Sequential(linear, torch.nn.Tanh()) if place == B else linear)
    return torch.nn.ModuleList(found)


def compare(net, passes, written_out, device):
    theirs = twin(net)
    x, given = torch.tensor(X, requires_grad=True), pellucid.tensor(X, device=device, requires_grad=True)
    right, mine = written_out(*theirs, x), net(given, passes)
    np.testing.assert_allclose(mine.detach().numpy(), right.detach().numpy(), rtol=1e-5, atol=1e-6)
    (right**2).sum().backward()
    (mine**2).sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), x.grad.numpy(), rtol=1e-4, atol=1e-5)
    by_place = [p for _, layer in net.layers() for p in layer.parameters()]
    for p, q in zip(by_place, theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_order_is_that_of_the_volume(device):
    net = network(device=device)
    assert [place for place, _ in net.layers()] == [A, B, C]
    compare(net, 1, lambda a, b, c, x: c(b(a(x))), device)


def test_a_link_forward_is_a_skip_connection():
    def right(a, b, c, x):
        h = a(x)
        return c(b(h) + h)

    compare(network([Link(A, C)]), 1, right, "cpu")
    replaced = network([Link(A, C, "replace")])
    a, _, c = (layer for _, layer in replaced.layers())
    x = pellucid.tensor(X, device="cpu")
    assert (replaced(x) == c(a(x))).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_link_back_brings_the_value_of_the_pass_before(device):
    def right(a, b, c, x):
        h = c(b(a(x)))
        h = c(b(a(x + h)))
        return c(b(a(x + h)))

    compare(network([Link(C, A)], device), 3, right, device)


def test_a_layer_that_feeds_itself():
    def right(a, b, c, x):
        h = b(a(x))
        return c(b(a(x) + h))

    compare(network([Link(B, B)]), 2, right, "cpu")


def test_layers_switched_off_hand_their_input_on():
    net = network()
    a, b, c = (layer for _, layer in net.layers())
    x = pellucid.tensor(X, device="cpu")
    net.enable(B, False)
    assert (net(x) == c(a(x))).all()
    net.enable(B)
    assert (net(x) == c(b(a(x)))).all()


def test_a_run_tells_what_each_layer_gave_and_how_long_it_took():
    net = network([Link(C, A)])
    x = pellucid.tensor(X, device="cpu")
    run = net.run(x, 2)
    assert (run.output == net(x, 2)).all()
    assert list(run.layers) == list(run.seconds) == [A, B, C]
    assert run.layers[C] is run.output
    assert all(s > 0 for s in run.seconds.values())


@pytest.mark.parametrize("device", DEVICES)
def test_a_run_goes_backward_and_tells_how_long_each_layer_took(device):
    """P-012: the gradients of `backward`, with times by layer, summed over passes."""
    net, twin = network([Link(C, A)], device), network([Link(C, A)], device)
    x = pellucid.tensor(X, device=device, requires_grad=True)
    slope = pellucid.tensor(X[::-1].copy(), device=device)
    twin(x, 2).backward(slope)
    wanted, x.grad = x.grad, None
    run = net.run(x, 2)
    assert [p for p, _ in run.given] == [A, B, C] * 2
    seconds = run.backward(slope)
    assert seconds.keys() == {A, B, C}
    assert all(s > 0 for s in seconds.values())
    assert (x.grad == wanted).all()
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        assert (p.grad == q.grad).all()


def test_numbers_of_positions_and_sizes():
    net = network()
    assert [net.index(p) for p in net.positions()] == list(range(24))
    assert net.index(C) == 16
    assert net.num_parameters() == 36
    assert net.num_bytes() == 144
    net.place(B, None)
    assert net.num_parameters() == 24
    assert net.layer(B) is None


def test_links_go_with_their_layers():
    net = network([Link(A, C), Link(B, B)])
    net.disconnect(A, C)
    assert net.links == [Link(B, B)]
    net.place(B, None)
    assert net.links == []


def test_state_is_saved_by_position():
    net, other = network(), network()
    other.load_state_dict(net.state_dict())
    assert set(dict(net.named_parameters())) >= {"z0y0x0l0.weight", "z0y1x0l1.0.bias"}
    x = pellucid.tensor(X, device="cpu")
    assert (net(x) == other(x)).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda net: GridNetwork(0, 1, 1, 1),
        lambda net: GridNetwork(1, 1, 1, 1, {(0, 0, 0, 1): nn.ReLU()}),
        lambda net: GridNetwork(1, 1, 1, 1, {(0, 0, 0, 0): "relu"}),
        lambda net: net.layer((0, 0, 0)),
        lambda net: net.index((0, 0, -1, 0)),
        lambda net: net.connect(Link(A, Position(0, 0, 0, 1))),
        lambda net: net.connect(Link(A, B, "multiply")),
        lambda net: net(pellucid.ones(1, 3, device="cpu"), 0),
        lambda net: GridNetwork(
            1, 1, 2, 1, {(0, 0, 0, 0): nn.Linear(3, 2), (0, 0, 1, 0): nn.Linear(2, 3)},
            [Link(Position(0, 0, 1, 0), Position(0, 0, 1, 0))],
        )(pellucid.ones(1, 3), 2),
    ],
)  # fmt: skip
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call(network())
