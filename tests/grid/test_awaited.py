"""What is awaited gives what its blocking twin gives: steps, populations, JSON."""

import asyncio
import copy

import pytest

import pellucid
from ops.oracle import DEVICES
from pellucid.grid import (
    Backpropagation,
    GridPopulation,
    TargetPropagation,
    network_from_json,
    network_to_json,
    network_to_json_async,
)

SPEC = {
    "cols": 2,
    "layers": [
        {"type": "dense", "d_model": 3, "activation": "tanh", "dtype": "int4"},
        {"x": 1, "type": "dense", "d_model": 3},
    ],
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", [Backpropagation, TargetPropagation])
def test_steps(device, method):
    pellucid.manual_seed(0)
    one = network_from_json(SPEC, device=device)
    two = copy.deepcopy(one)
    x = pellucid.randn(4, 3, device=device)
    first, second = method(one), method(two)
    loss = pellucid.nn.functional.mse_loss
    for _ in range(3):
        assert asyncio.run(first.step_async(x, x, loss)) == second.step(x, x, loss)
    assert asyncio.run(network_to_json_async(one)) == network_to_json(two)


def test_populations():
    pellucid.manual_seed(0)
    network = network_from_json(SPEC, device="cpu")
    x = pellucid.randn(4, 3, device="cpu")
    one, two = (GridPopulation(network, x, 6, seed=1) for _ in range(2))

    def fitness(networks):
        return -((networks(x) - x) ** 2).mean((-1, -2))

    for _ in range(3):
        asyncio.run(one.evolve_async(fitness))
        two.evolve(fitness)
    assert one.fitnesses == two.fitnesses
