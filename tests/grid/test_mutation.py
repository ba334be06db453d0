"""P-047, P-048: networks in a volume that mutate, and populations of them that learn exclusive or."""

import json

import numpy as np
import pytest

import pellucid
from grid.test_specification import SAMPLES
from ops.oracle import DEVICES
from pellucid.errors import ArgumentError, PellucidError, RangeError, ShapeError
from pellucid.grid import GridPopulation, Layer, MutationConfig, mutate, network_from_json, network_to_json
from pellucid.grid.evolution.mutation import between

ALWAYS = MutationConfig(1, 0.05, 1, 1, 1, 1, 1)
NEVER = MutationConfig(0, 0.05, 0, 0, 0, 0, 0)
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
Y = np.array([[0], [1], [1], [0]], np.float32)


def network(*layers, device="cpu"):
    pellucid.manual_seed(0)
    return network_from_json(
        {"depth": len(layers), "layers": [{"z": z, **f} for z, f in enumerate(layers)]}, device=device
    )


def chain(device="cpu"):
    dense = {"type": "dense", "d_model": 8, "activation": "tanh"}
    ends = {"input_height": 2, "output_height": 8}, {"input_height": 8, "output_height": 1}
    return network({"type": "dense", **ends[0]}, dense, dense, {"type": "dense", **ends[1]}, device=device)


def weights(net):
    return np.concatenate([p.detach().numpy().ravel() for p in net.parameters()])


@pytest.mark.parametrize("device", DEVICES)
def test_weights_move_by_seeded_noise(device):
    net = chain(device)
    x = pellucid.tensor(X, device=device)
    before = network_to_json(net)
    config = MutationConfig(1, 0.05, 0, 0, 0, 0, 0)
    child = mutate(net, x, config, seed=4)
    moves = weights(child) - weights(net)
    assert 0.045 < moves.std() < 0.055
    assert abs(moves.mean()) < 0.02
    assert network_to_json(mutate(net, x, config, seed=4)) == network_to_json(child)
    assert network_to_json(mutate(net, x, config, seed=5)) != network_to_json(child)
    assert network_to_json(mutate(net, x, NEVER)) == before == network_to_json(net)


def test_mutated_networks_run():
    """Long lines of descent of every kind of network: they run, keep their shape, and come back from JSON."""
    for fields, shape in (
        (chain(), (3, 2)),
        (network({"type": "rnn", "d_model": 6}, {"type": "layer_norm", "d_model": 6}), (2, 3, 6)),
        (
            network({"type": "cnn1", "input_height": 5, "input_channels": 2, "filters": 3, "padding": 1}),
            (2, 2, 5),
        ),
    ):
        net, x = fields, pellucid.ones(shape, device="cpu")
        want = net(x).shape
        kinds, random = set(), np.random.default_rng(1)
        for _ in range(12):
            before = network_to_json(net)
            child = mutate(net, x, ALWAYS, random)
            assert network_to_json(net) == before
            assert child(x).shape == want
            assert child(x, passes=2).isfinite().all()
            text = network_to_json(child)
            assert network_to_json(network_from_json(text, device="cpu")) == text
            kinds |= {layer["type"] for layer in json.loads(text)["layers"]}
            net = child
        # From 2 channels to 3 there are few types, and no layers to link.
        assert "cnn1" in kinds or (len(kinds) > 5 and net.links)


@pytest.mark.parametrize("kind", SAMPLES)
def test_layers_become_each_type(kind):
    """P-047: all 19 types can be had, between the shapes that they can stand between."""
    fields, shape = SAMPLES[kind]
    x = pellucid.ones(shape, device="cpu") if shape else pellucid.tensor([[1, 8]], device="cpu")
    if kind.startswith(("cnn", "conv")):
        axes = int(kind.replace("d", "")[-1])
        x = pellucid.ones(2, 3, *[4] * axes, device="cpu")
        assert between(kind, tuple(x.shape[:-1]), tuple(x.shape)) is None
        out = x
    else:
        out = Layer({"type": kind, **fields}, device="cpu")(x)
    found = between(kind, tuple(x.shape), tuple(out.shape))
    if found is None:  # SwiGLU and norms keep their shape, attention needs heads of even length
        assert x.shape != out.shape
        found = between(kind, tuple(out.shape), tuple(out.shape))
        x = out
    assert Layer({"type": kind, **found}, device="cpu")(x).shape == out.shape


def test_switches_and_links():
    net, x = chain(), pellucid.tensor(X, device="cpu")
    child = mutate(net, x, MutationConfig(0, 0, 0, 0, 1, 0, 0))
    assert {place.z for place in child.disabled} == {1, 2}  # the others change the shape
    again = mutate(child, x, MutationConfig(0, 0, 0, 0, 1, 0, 0))
    assert not again.disabled
    for count in range(1, 5):
        child = mutate(child, x, MutationConfig(0, 0, 0, 0, 0, 1, 0), seed=count)
        assert len({(k.source, k.target) for k in child.links}) == count
    assert len(mutate(child, x, MutationConfig(0, 0, 0, 0, 0, 0, 1)).links) == 3
    assert not net.links


def test_what_is_wrong_is_refused():
    for wrong in ({"weight_rate": 2}, {"weight_scale": -1}, {"types": ("denser",)}, {"activations": ("re",)}):
        with pytest.raises(RangeError, match="MutationConfig"):
            MutationConfig(**wrong)
    x = pellucid.tensor(X, device="cpu")
    with pytest.raises(ArgumentError, match="GridNetwork"):
        mutate(pellucid.nn.ReLU(), x)
    with pytest.raises(PellucidError):
        mutate(chain(), x[:, :1])
    with pytest.raises(RangeError, match="size"):
        GridPopulation(chain(), x, 1)
    population = GridPopulation(chain(), x, 4)
    with pytest.raises(RangeError, match="evolve"):
        population.best()
    with pytest.raises(ShapeError, match="3 numbers for 4"):
        population.evolve(lambda networks: [1, 2, 3])


@pytest.mark.parametrize("device", DEVICES)
def test_one_batch_gives_what_each_network_gives(device):
    x = pellucid.tensor(X, device=device)
    config = MutationConfig(1, 0.3, 0.1, 0.1, 0.1, 0.3, 0, types=("dense", "layer_norm", "swiglu"))
    population = GridPopulation(chain(device), x, 8, config)
    population.networks[3].morph("int8")
    together = population(x).numpy()
    assert together.shape == (8, 4, 1)
    for out, net in zip(together, population.networks, strict=True):
        np.testing.assert_allclose(out, net(x).detach().numpy(), rtol=2e-4, atol=2e-5)


def test_a_population_solves_exclusive_or():
    """P-048: within 20 generations; the best fitness never falls; two runs are equal."""
    x, y = pellucid.tensor(X, device="cpu"), pellucid.tensor(Y, device="cpu")
    small = network(
        {"type": "dense", "input_height": 2, "output_height": 4, "activation": "tanh"},
        {"type": "dense", "input_height": 4, "output_height": 1},
    )

    def is_solved(population):
        return population.fitnesses and ((population.best()(x) - y).abs() < 0.5).all()

    runs = []
    for limit in (20, 3):
        population, best = GridPopulation(small, x, 24, MutationConfig(0.9, 0.5, 0, 0, 0, 0, 0)), []
        while population.generation < limit and not is_solved(population):
            population.evolve(lambda networks: -((networks(x) - y) ** 2).mean((-1, -2)))
            best.append(population.fitnesses[0])
        assert best == sorted(best)
        runs.append(best)
        assert limit == 3 or is_solved(population)
    assert runs[0][:3] == runs[1]
    line = population.summary()
    assert line.startswith(f"generation 3: best {best[-1]:.4g}, mean ")
    assert line.endswith(", 1 structures")
    assert ((population.best()(x) - y) ** 2).mean().item() == pytest.approx(-best[-1], rel=1e-5)
