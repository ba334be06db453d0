"""P-039, P-040: layers that learn from targets of their own: with the chain rule it is gradient descent;
without it small networks learn, dead layers stay as they are, and large steps stay finite."""

import copy

import numpy as np
import pytest

import pellucid
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.errors import PellucidError
from pellucid.grid import GridNetwork, Link, Position, TargetPropagation, TargetPropagationConfig
from pellucid.nn.functional import mse_loss

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
PLACE = Position(0, 0, 0, 0)
Y = np.array([[0], [1], [1], [0]], np.float32)


def network(device="cpu", seed=0):
    pellucid.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(2, 8, device=device), nn.Tanh(), nn.Linear(8, 8, device=device), nn.Tanh(),
        nn.Linear(8, 1, device=device),
    )  # fmt: skip


def data(device="cpu"):
    return pellucid.tensor(X, device=device), pellucid.tensor(Y, device=device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_with_the_chain_rule_it_is_gradient_descent(device, momentum):
    net = network(device)
    twin = copy.deepcopy(net)
    config = TargetPropagationConfig(0.2, chain_rule=True, momentum=momentum, budget=-1)
    train, sgd = TargetPropagation(net, config), pellucid.optim.SGD(twin.parameters(), 0.2, momentum)
    x, y = data(device)
    for _ in range(4):
        record = train.step(x, y, mse_loss)
        sgd.zero_grad()
        loss = mse_loss(twin(x), y)
        assert record.loss == pytest.approx(loss.item(), rel=1e-5)
        loss.backward()
        sgd.step()
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_exclusive_or_is_learned_without_the_chain_rule():
    net = network()
    train = TargetPropagation(net, TargetPropagationConfig(0.1, momentum=0.9, budget=-1, max_step=0.5))
    x, y = data()
    records = [train.step(x, y, mse_loss) for _ in range(300)]
    assert records[-1].loss < 0.01 < records[0].loss
    for record in records:
        assert len(record.budgets) == len(record.gaps) == 5
        assert all(-1 <= b <= 1 for b in record.budgets)


def test_layers_with_a_low_link_budget_are_left_alone():
    net = network()
    before = copy.deepcopy(net)
    with pellucid.no_grad():
        net[4].weight.zero_()
        net[4].bias.fill_(-5.0)  # The target of 1 lies on the other side: the cosine is -1.
    dead = copy.deepcopy(net[4])
    config = TargetPropagationConfig(0.1, gradient_scale=10.0)
    record = TargetPropagation(net, config).step(*data(), mse_loss)
    assert record.budgets[4] < 0.2
    assert (net[4].bias == dead.bias).all()
    assert (net[4].weight == dead.weight).all()
    assert (net[0].weight == before[0].weight).all()  # nothing comes through weights of 0


@pytest.mark.parametrize("rate", [1e3, 1e12])
def test_a_large_rate_stays_finite(rate):
    net = network()
    config = TargetPropagationConfig(rate, momentum=0.5, activation_clamp=2.0, budget=-1, max_step=0.1)
    train = TargetPropagation(net, config)
    for _ in range(50):
        train.step(*data(), mse_loss)
    assert all(p.isfinite().all() for p in net.parameters())
    assert max(p.abs().max().item() for p in net.parameters()) < 15


def test_recurrent_and_convolution_layers_have_targets_too():
    pellucid.manual_seed(0)
    net = GridNetwork(
        1, 1, 3, 1,
        {
            (0, 0, 0, 0): nn.Conv1d(1, 3, 3, padding=1, device="cpu"),
            (0, 0, 1, 0): pellucid.grid.Layer({"type": "rnn", "d_model": 6}, device="cpu"),
            (0, 0, 2, 0): nn.Linear(6, 2, device="cpu"),
        },
    )  # fmt: skip
    x = pellucid.randn(5, 1, 6, device="cpu")
    y = x.sum(-1, keepdim=True).expand(5, 3, 2).tanh()
    train = TargetPropagation(net, TargetPropagationConfig(0.05, momentum=0.5, budget=-1, max_step=0.3))
    losses = [train.step(x, y, mse_loss).loss for _ in range(80)]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: TargetPropagation(nn.ReLU()),
        lambda: TargetPropagation(
            GridNetwork(
                1, 1, 1, 1, {(0, 0, 0, 0): nn.ReLU()}, [Link(Position(0, 0, 0, 0), Position(0, 0, 0, 0))]
            )
        ),
        lambda: TargetPropagationConfig(learning_rate=0),
        lambda: TargetPropagationConfig(momentum=1.0),
        lambda: TargetPropagationConfig(budget=2),
        lambda: TargetPropagationConfig(max_step=float("nan")),
    ],
)
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call()
