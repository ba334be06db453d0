"""Checks of the grid in a page: what it exports, a network's methods, a population's, and wholes that run.

Prints every check that fails, then one line of JSON: how many passed, by group.
"""

import json
import sys
import traceback

import seeds

import pellucid as torch
from pellucid import grid, nn
from pellucid.grid import GridNetwork, GridPopulation, Link, MutationConfig, Position, network_from_json

X = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
EXPORTS = (
    "GridNetwork", "network_from_json", "dna", "compare_networks", "splice", "GridPopulation", "methods_json",
    "load_universal",
)  # fmt: skip


def network() -> GridNetwork:
    torch.manual_seed(0)
    layers = [
        {"x": 0, "type": "dense", "input_height": 2, "output_height": 8, "activation": "tanh"},
        {"x": 1, "type": "dense", "d_model": 8, "activation": "tanh"},
        {"x": 2, "type": "dense", "input_height": 8, "output_height": 1, "activation": "linear"},
    ]
    return network_from_json({"cols": 3, "layers": layers})


def manual(net: GridNetwork) -> torch.Tensor:
    first, second, third = (layer.layer for _, layer in net.layers())
    return third(second(first(X).tanh()).tanh())


def connected() -> tuple[GridNetwork, torch.Tensor]:
    net = network()
    plain = net(X)
    net.connect(Link(Position(0, 0, 0, 0), Position(0, 0, 2, 0)))
    return net, plain


def disabled() -> bool:
    net = network()
    net.enable((0, 0, 1, 0), False)
    first, _, third = (layer.layer for _, layer in net.layers())
    return close(net(X), third(first(X).tanh()))


def disconnected() -> bool:
    net, plain = connected()
    net.disconnect((0, 0, 0, 0), (0, 0, 2, 0))
    return close(net(X), plain)


def replaced() -> bool:
    net = network()
    net.place((0, 0, 1, 0), nn.Identity())
    first, _, third = (layer for _, layer in net.layers())
    return close(net(X), third(first(X)))


def trained() -> bool:
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), 0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = ((net(X) - Y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses[-1].item() < 0.1 * losses[0].item()


def slopes() -> bool:
    net, twin = network(), network()
    net(X).sum().backward()
    manual(twin).sum().backward()
    return all(close(a.grad, b.grad) for a, b in zip(net.parameters(), twin.parameters(), strict=True))


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool((a - b).abs().max() < 1e-5)


def nested(deep: int) -> str:
    """A specification of layers within each other."""
    inner = '{"type":"sequential","sequential_layers":['
    return '{"layers":[' + inner * deep + '{"type":"dense","d_model":2}' + "]}" * deep + "]}"


def genome(**changed) -> str:
    """Genes of two inputs and one output, with some changed."""
    genes = {"inputs": 2, "outputs": 1, "activations": {"3": "tanh"}, "connections": []}
    return json.dumps({**genes, **changed})


def header(**changed) -> bytes:
    """A safetensors file of one tensor, with a header in which something is changed."""
    told = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16], **changed}
    text = json.dumps({"weight": told}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(16)


def refused() -> bool:
    """Whether specifications, genomes and checkpoints that are broken get an error of the library."""
    network_from_json(nested(32))(torch.ones(1, 2))
    grid.Genome.from_json(genome())
    grid.load_universal(header())
    for read, given in (
        (network_from_json, {"layers": [{"type": "sponge"}]}),
        (network_from_json, '{"layers": ['),
        (network_from_json, "[" * 100_000),
        (network_from_json, nested(33)),
        (network_from_json, nested(400)),
        (network_from_json, {"layers": [{"type": "dense", "d_model": -1}]}),
        (network_from_json, {"layers": [{"type": "dense", "d_model": 1 << 24}]}),
        (network_from_json, {"depth": float("nan")}),
        (network_from_json, {"depth": 1 << 20, "rows": 1 << 20}),
        (network_from_json, None),
        (grid.Genome.from_json, '{"inputs": 0}'),
        (grid.Genome.from_json, genome(inputs=1 << 30)),
        (grid.Genome.from_json, genome(activations={"3": "sponge"})),
        (grid.Genome.from_json, "[" * 100_000),
        (grid.load_universal, b'\x08\0\0\0\0\0\0\0{"a": 1}'),
        (grid.load_universal, header(shape=[-2, -2])),
        (grid.load_universal, header(shape=[1 << 40, 1 << 40])),
        (grid.load_universal, header(dtype=[])),
        (grid.load_universal, header()[:-3]),
        (grid.load_tensors, header(data_offsets=[0, 1 << 60])),
        (grid.load_tensors, b"\xff" * 9),
    ):
        try:
            read(given)
        except torch.errors.PellucidError:
            continue
        return False
    return True


NETWORK = {
    "calls": lambda: close(network()(X), manual(network())),
    "gradients": slopes,
    "run": lambda: close(network().run(X).output, manual(network())),
    "times of layers": lambda: len(network().run(X).seconds) == 3,
    "values of layers": lambda: network().run(X).layers[Position(0, 0, 1, 0)].shape == (4, 8),
    "layer": lambda: type(network().layer((0, 0, 1, 0)).layer) is nn.Linear,
    "index": lambda: network().index((0, 0, 2, 0)) == 2,
    "positions": lambda: [*network().positions()] == [Position(0, 0, x, 0) for x in range(3)],
    "place": replaced,
    "connect": lambda: not close(connected()[0](X), connected()[1]),
    "disconnect": disconnected,
    "enable": disabled,
    "morph": lambda: len(network().morph("binary").layer((0, 0, 1, 0)).layer.weight.abs().unique()) == 1,
    "bytes": lambda: network().num_bytes() == 4 * network().num_parameters() == 4 * (24 + 72 + 9),
    "JSON": lambda: close(network_from_json(grid.network_to_json(network()))(X), network()(X)),
    "errors": refused,
}


def population(config: MutationConfig | None = None) -> GridPopulation:
    return GridPopulation(network(), X, 8, config, seed=1)


def fitness(networks: GridPopulation) -> torch.Tensor:
    return -((networks(X) - Y) ** 2).mean((-1, -2))


def evolved(generations: int) -> GridPopulation:
    made = population()
    for _ in range(generations):
        made.evolve(fitness)
    return made


def bests() -> list[float]:
    made, found = population(), []
    for _ in range(4):
        made.evolve(fitness)
        found.append(made.fitnesses[0])
    return found


POPULATION = {
    "size": lambda: len(population().networks) == 8,
    "members differ": lambda: not close(population()(X)[0], population()(X)[1]),
    "one batch": lambda: all(
        close(out, net(X)) for out, net in zip(population()(X), population().networks, strict=True)
    ),
    "evolve": lambda: evolved(2).generation == 2,
    "sorted": lambda: evolved(1).fitnesses == sorted(evolved(1).fitnesses, reverse=True),
    "best": lambda: abs(-((evolved(2).best()(X) - Y) ** 2).mean().item() - evolved(2).fitnesses[0]) < 1e-5,
    "never worse": lambda: bests() == sorted(bests()),
    "a seed again": lambda: evolved(3).fitnesses == evolved(3).fitnesses,
}


def swiglu() -> bool:
    layer = grid.Layer({"type": "swiglu", "d_model": 8, "output_height": 16})
    x = torch.randn(3, 8, requires_grad=True)
    layer(x).pow(2).sum().backward()
    return all(bool((p.grad.abs().sum() > 0).item()) for p in (x, *layer.parameters()))


def newcomer() -> bool:
    """The program that the docs begin with, which is this one's argument."""
    names: dict = {}
    exec(sys.argv[1], names)
    return names["loss"].item() < 0.01


WHOLE = {
    "twenty lines": newcomer,
    "sequential": trained,
    "DNA": lambda: grid.compare_networks(grid.dna(network()), grid.dna(network())).overall > 0.9999,
    "SwiGLU": swiglu,
    "splice": lambda: close(grid.splice(network(), network(), "blend", 0.0).child(X), network()(X)),
}
GROUPS = {
    "exports": {name: lambda name=name: callable(getattr(grid, name)) for name in EXPORTS},
    "network": NETWORK,
    "population": POPULATION,
    "whole": WHOLE,
    "seeds": {family: lambda family=family: seeds.repeats(family) for family in seeds.FAMILIES},
}


def main() -> int:
    passed = dict.fromkeys(GROUPS, 0)
    for group, checks in GROUPS.items():
        for name, check in checks.items():
            try:
                good = check()
            except Exception:  # the others are checked, too
                print(f"{group}, {name}: {traceback.format_exc(limit=-3)}")
                good = False
            if good:
                passed[group] += 1
            else:
                print(f"{group}, {name}: failed")
    print(json.dumps(passed))
    return 0 if passed == {group: len(checks) for group, checks in GROUPS.items()} else 1


if __name__ == "__main__":
    sys.exit(main())
