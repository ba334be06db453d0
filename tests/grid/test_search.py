"""P-015, P-097: networks built from a few numbers and at random; cells whose architecture is learned."""

import numpy as np
import pytest
import torch

import pellucid
from ops.oracle import DEVICES
from pellucid import nn
from pellucid.errors import ArgumentError, FormatError, RangeError, ShapeError
from pellucid.grid import (
    DARTSCell,
    MixedOperation,
    architecture_parameters,
    cnn_network,
    image_operations,
    network_from_json,
    network_to_json,
    random_network,
    search_step,
    sequential_network,
    transformer_network,
    vector_operations,
)
from pellucid.grid.search.darts import NONE, Zero
from pellucid.nn.functional import mse_loss

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


def test_builders():
    """P-015: each network runs, comes back from JSON, and has the parameters that its numbers say."""
    own = {"device": "cpu"}
    for net, shape, count in (
        (sequential_network(3, 5, "tanh", "int8", **own), (2, 5), 3 * 30),
        (
            transformer_network(2, 16, 4, 2, "fp16", **own),
            (2, 3, 16),
            2 * (2 * 16 + 2 * 256 + 2 * 128 + 3 * 16 * 64),
        ),
        (cnn_network(9, 10, 3, **own), (2, 3, 9, 9), 8 * 28 + 16 * 73 + 10 * (16 * 9 + 1)),
    ):
        x = pellucid.ones(shape, **own)
        out = net(x)
        assert out.shape == ((2, 10) if len(shape) == 4 else shape)
        assert net.num_parameters() == count
        text = network_to_json(net)
        assert (network_from_json(text, **own)(x) == out).all()
    for call in (
        lambda: sequential_network(0, 4),
        lambda: cnn_network(3, 2),
        lambda: random_network(1, 1, 1, 0, 4),
    ):
        with pytest.raises(RangeError, match="at least 1"):
            call()
    with pytest.raises(FormatError, match="activation"):
        sequential_network(1, 2, "bent")


def test_networks_at_random():
    """P-015, P-097: forward and backward without NaN, the same network from the same seed."""
    seen = set()
    for seed in range(8):
        net = random_network(2, 2, 1, 2, 8, seed, device="cpu")
        x = pellucid.tensor(
            np.random.default_rng(seed).standard_normal((2, 5, 8)).astype(np.float32), device="cpu"
        )
        out = net(x.requires_grad_())
        assert out.shape == x.shape
        (out * out).sum().backward()
        assert out.isfinite().all()
        assert x.grad.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())
        assert network_to_json(net) == network_to_json(random_network(2, 2, 1, 2, 8, seed, device="cpu"))
        seen |= {layer.specification["type"] for _, layer in net.layers()}
    assert len(seen) == 12, seen


def test_derivatives_of_a_cell():
    """P-097: by the input, the alphas and the weights."""
    pellucid.manual_seed(0)
    cell = DARTSCell(vector_operations(3, "cpu"), 2, device="cpu").double()
    with pellucid.no_grad():
        cell.alphas.normal_()
    names = [name for name, _ in cell.named_parameters()]
    inputs = [
        pellucid.randn(2, 3, device="cpu", dtype=pellucid.float64, requires_grad=True) for _ in range(2)
    ]
    chosen = [n for n in names if n == "alphas" or n.startswith(("edges.0.", "edges.4."))]
    given = [dict(cell.named_parameters())[n] for n in chosen]

    def run(first, second, *values):
        return pellucid.func.functional_call(cell, dict(zip(chosen, values, strict=True)), (first, second))

    assert pellucid.autograd.gradcheck(run, (*inputs, *given))


@pytest.mark.parametrize("device", DEVICES)
def test_mixed_operations(device):
    mixed = MixedOperation({NONE: Zero, "skip": nn.Identity, "relu": nn.ReLU})
    x, alphas = pellucid.tensor(X, device=device), pellucid.tensor([0.5, -1.0, 2.0], device=device)
    w = torch.tensor([0.5, -1.0, 2.0]).softmax(0)
    want = w[1] * torch.tensor(X) + w[2] * torch.tensor(X).relu()
    np.testing.assert_allclose(mixed(x, alphas).numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ShapeError, match="different shapes"):
        MixedOperation({"skip": nn.Identity, "less": lambda: nn.Linear(4, 3, device=device)})(x, alphas[:2])
    with pytest.raises(ArgumentError, match="no operations"):
        MixedOperation({})


def test_cells_of_images():
    pellucid.manual_seed(0)
    cell = DARTSCell(image_operations(4, "cpu"), 2, dim=1, device="cpu")
    x = pellucid.randn(2, 4, 6, 6, device="cpu")
    out = cell(x, x.flip(0))
    assert out.shape == (2, 8, 6, 6)
    out.square().mean().backward()
    assert cell.alphas.grad.abs().min() > 0
    assert cell.discrete()(x, x.flip(0)).shape == (2, 8, 6, 6)


def test_a_search_finds_the_operation_that_fits():
    """Targets are made by tanh of a layer; the cell's strongest operation becomes that, and stands alone."""
    pellucid.manual_seed(1)
    made = nn.Linear(4, 4, device="cpu")
    with pellucid.no_grad():
        made.weight.mul_(4)
    x = pellucid.randn(64, 4, device="cpu")
    y = (made(x)).tanh().detach()
    operations = {k: v for k, v in vector_operations(4, "cpu").items() if k != "linear"}
    cell = DARTSCell(operations, 1, device="cpu")
    alphas = architecture_parameters(cell)
    assert len(alphas) == 1
    others = [p for p in cell.parameters() if p is not cell.alphas]
    optimizers = pellucid.optim.Adam(others, 0.03), pellucid.optim.Adam(alphas, 0.03)
    before = cell.alphas.detach().clone()
    losses = [
        search_step(cell, (x[:32], y[:32]), (x[32:], y[32:]), mse_loss, *optimizers) for _ in range(100)
    ]
    assert losses[-1][0].item() < 0.2 * losses[0][0].item()
    assert (cell.alphas != before).any()
    (edge,) = cell.genotype(1)
    assert edge.operation == "tanh"
    small = cell.discrete(1)
    chosen = cell.edges[edge.source].operations[list(operations).index("tanh")]
    assert (small(x) == chosen(x)).all()
    assert [e.source for e in cell.genotype()] == [0, 1]
    with pytest.raises(RangeError, match="at least 1"):
        cell.genotype(0)
    with pytest.raises(RangeError, match="nodes"):
        DARTSCell(operations, 0)
