"""P-044 to P-048: populations that evolve weights and structure: batches, reproducibility, exclusive or."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import pellucid
from ops.oracle import DEVICES
from pellucid.errors import FormatError, PellucidError
from pellucid.grid import NEAT, Genome, NEATConfig, Networks

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
Y = np.array([0, 1, 1, 0], np.float32)
CONFIG = NEATConfig(
    size=60, weight_scale=0.8, node_rate=0.1, connection_rate=0.2, activations=("sigmoid", "tanh"), seed=3
)


def fitness(networks):
    x, y = pellucid.tensor(X, device="cpu"), pellucid.tensor(Y, device="cpu")
    return 4 - ((networks(x)[..., 0] - y) ** 2).sum(-1)


def evolved(generations, config=CONFIG):
    neat = NEAT(2, 1, config, device="cpu")
    for _ in range(generations):
        neat.evolve(fitness)
    return neat


def by_hand(genome, row):
    """One network and one row, node by node."""
    act = {
        "sigmoid": lambda v: 1 / (1 + np.exp(-4.9 * v)),
        "tanh": np.tanh,
        "relu": lambda v: max(v, 0),
        "linear": float,
    }
    depth = genome.depths()
    value = {0: row[0], 1: row[1], 2: 1.0}
    for node in sorted(genome.activations, key=depth.__getitem__):
        total = sum(g.weight * value[g.source] for g in genome.connections if g.enabled and g.target == node)
        value[node] = act[genome.activations[node]](total)
    return [value[n] for n in range(3, 3 + genome.outputs)]


@pytest.mark.parametrize("device", DEVICES)
def test_networks_of_one_batch_are_each_its_own(device):
    genomes = evolved(15).genomes[:12]
    assert len({len(g.activations) for g in genomes}) > 1
    out = Networks(genomes, device)(pellucid.tensor(X, device=device)).numpy()
    right = [[by_hand(g, row) for row in X] for g in genomes]
    np.testing.assert_allclose(out, right, rtol=1e-4, atol=1e-5)


def test_exclusive_or_is_solved_and_the_best_never_gets_worse():
    neat = NEAT(2, 1, CONFIG, device="cpu")
    best = []
    while neat.generation < 150 and (not best or best[-1] < 3.9):
        neat.evolve(fitness)
        best.append(neat.fitnesses[0])
    assert best[-1] >= 3.9, neat.summary()
    assert all(b >= a - 1e-6 for a, b in pairwise(best))
    out = Networks([neat.best()], "cpu")(pellucid.tensor(X, device="cpu"))[0, :, 0]
    assert ((out > 0.5).float().numpy() == Y).all()
    assert len(neat.best().activations) > 1  # no network without a hidden node can do it
    assert str(neat.generation) in neat.summary()


def test_evolution_is_reproducible_from_its_seed():
    one, same, other = evolved(6), evolved(6), evolved(6, replace(CONFIG, seed=4))
    assert one.genomes == same.genomes
    assert one.fitnesses == same.fitnesses
    assert one.fitnesses != other.fitnesses


def test_one_structure_has_one_innovation_number():
    neat = evolved(20)
    found = {}
    for genome in neat.genomes:
        assert genome.depths() is not None
        numbers = [g.innovation for g in genome.connections]
        assert numbers == sorted(set(numbers))
        for g in genome.connections:
            assert found.setdefault(g.innovation, (g.source, g.target)) == (g.source, g.target)
    assert len(set(found.values())) == len(found)


def test_species_are_genomes_that_are_alike():
    neat = evolved(20, replace(CONFIG, threshold=1.0))
    assert len(neat.species) > 1
    assert sorted(k for s in neat.species for k in s.members) == list(range(60))
    a = neat.genomes[0]
    assert neat.distance(a, a) == 0
    heavier = replace(a, connections=tuple(replace(g, weight=g.weight + 1) for g in a.connections))
    assert neat.distance(a, heavier) == pytest.approx(0.4)
    assert neat.distance(a, replace(a, connections=a.connections[:-2])) == pytest.approx(2)


def test_champions_are_saved():
    champion = evolved(10).best()
    assert Genome.from_json(champion.to_json()) == champion


def broken(**changes):
    given = json.loads(evolved(1).best().to_json())
    given.update(changes)
    return json.dumps(given)


@pytest.mark.parametrize(
    "text",
    [
        lambda: "{",
        lambda: "[]",
        lambda: broken(inputs=0),
        lambda: broken(activations={}),
        lambda: broken(activations={"3": "hot"}),
        lambda: broken(connections=[{"innovation": 0}]),
        lambda: broken(
            connections=[{"innovation": 0, "source": 9, "target": 3, "weight": 1, "enabled": True}]
        ),
        lambda: broken(
            connections=[{"innovation": 0, "source": 3, "target": 3, "weight": 1, "enabled": True}]
        ),
        lambda: broken(
            connections=[{"innovation": 0, "source": 0, "target": 3, "weight": 1e999, "enabled": 1}]
        ),
        lambda: broken(
            connections=[{"innovation": 0, "source": 0, "target": 3, "weight": 1, "enabled": 1}] * 2
        ),
        lambda: broken(connections={}),
        lambda: broken(inputs=1, activations={"2": "tanh", "02": "relu"}, connections=[]),
        lambda: broken(
            inputs=1 << 20, activations={str((1 << 20) + 1 + k): "tanh" for k in range(300)}, connections=[]
        ),
    ],
)
def test_malformed_genes(text):
    with pytest.raises(FormatError):
        Genome.from_json(text())


@pytest.mark.parametrize(
    "call",
    [
        lambda: NEAT(0, 1),
        lambda: NEATConfig(size=1),
        lambda: NEATConfig(node_rate=1.5),
        lambda: NEATConfig(activations=("step",)),
        lambda: Networks([]),
        lambda: NEAT(2, 1, CONFIG).best(),
        lambda: NEAT(2, 1, CONFIG, device="cpu").evolve(lambda networks: [1.0]),
        lambda: NEAT(2, 1, CONFIG, device="cpu").networks()(pellucid.ones(3, device="cpu")),
        lambda: NEAT(2, 1, CONFIG, device="cpu").networks()(pellucid.ones(3, 3, device="cpu")),
    ],
)
def test_bad_input(call):
    with pytest.raises(PellucidError):
        call()


def test_a_fitness_that_is_not_a_number_is_the_lowest():
    neat = NEAT(2, 1, CONFIG, device="cpu")
    neat.evolve(lambda networks: [float("nan")] * 59 + [1.0])
    assert neat.fitnesses[0] == 1
    neat.evolve(fitness)
    neat.evolve(lambda networks: [float("-inf")] * 60)
    neat.evolve(fitness)
    assert np.isfinite(neat.fitnesses).all()
