"""Bits from a seed: what draws random numbers, by family, and a digest of all that it gives.

Tests run it natively on both devices, and the page of checks in Chromium.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import pellucid as torch
from pellucid import grid, nn
from pellucid.grid import (
    NEAT,
    FitConfig,
    GridPopulation,
    Layer,
    MutationConfig,
    NEATConfig,
    network_from_json,
)
from pellucid.nn import init
from pellucid.nn.functional import gumbel_softmax, mse_loss

ROWS = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
TARGETS = [[0.0], [1.0], [1.0], [0.0]]
CHAIN = {
    "depth": 2,
    "layers": [
        {"type": "dense", "input_height": 2, "output_height": 6, "activation": "tanh"},
        {"z": 1, "type": "dense", "input_height": 6, "output_height": 1},
    ],
}
# Layers of the grid with weights, each by its smallest fields.
LAYERS = (
    {"type": "dense", "d_model": 5},
    {"type": "multi_head_attention", "d_model": 8, "num_heads": 2},
    {"type": "swiglu", "d_model": 4},
    {"type": "cnn2", "input_height": 4, "input_width": 4, "filters": 2},
    {"type": "conv_transposed_1d", "input_height": 4, "filters": 2},
    {"type": "rnn", "d_model": 3},
    {"type": "lstm", "d_model": 3},
    {"type": "embedding", "vocab_size": 5, "embedding_dim": 3},
    {"type": "kmeans", "num_clusters": 3, "d_model": 4},
)
INITS = (
    init.uniform_, init.normal_, init.trunc_normal_, init.xavier_uniform_, init.xavier_normal_,
    init.kaiming_uniform_, init.kaiming_normal_, init.orthogonal_, lambda t: init.sparse_(t, 0.5),
)  # fmt: skip


def data() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(ROWS), torch.tensor(TARGETS)


def initial(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    filled = [fill(torch.empty(6, 5)) for fill in INITS]
    return [*filled, *(p for fields in LAYERS for p in Layer(fields).parameters())]


def dropout(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    x = torch.ones(4, 3, 5, 5, requires_grad=True)
    parts = nn.Dropout(0.3), nn.Dropout2d(0.3), nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.3)
    outs = [part(x) for part in parts]
    torch.stack(outs).square().sum().backward()
    assert x.grad is not None
    return [*outs, x.grad]


def gumbel(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    x = torch.tensor(ROWS, requires_grad=True)
    soft, hard = gumbel_softmax(x, 0.7), gumbel_softmax(x.repeat(1, 20), 0.7, hard=True)
    layer = grid.SoftmaxVariant("gumbel", tau=0.5)(x)
    (soft * x + layer).sum().backward()
    assert x.grad is not None
    return [soft, hard, layer, x.grad]


def clusters(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(1)
    x = torch.randn(40, 3)
    return list(grid.kmeans(x, 5, seed=seed))


def mutated(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(1)
    x, _ = data()
    one, other = network_from_json(CHAIN), network_from_json(CHAIN)
    child = grid.mutate(one, x, MutationConfig(1, 0.1, 0.5, 0.5, 0.2, 0.5, 0), seed=seed)
    mixed = grid.splice(one, other, "uniform", seed=seed).child
    drawn = grid.random_network(1, 1, 2, 1, 4, seed)
    return [p for net in (child, mixed, drawn) for p in net.parameters()]


def population(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(1)
    x, y = data()
    config = MutationConfig(0.9, 0.3, 0.1, 0.1, 0.1, 0.2, 0.1, types=("dense", "layer_norm"))
    made = GridPopulation(network_from_json(CHAIN), x, 6, config, seed=seed)
    for _ in range(3):
        made.evolve(lambda nets: -((nets(x) - y) ** 2).mean((-1, -2)))
    return [torch.tensor(made.fitnesses), *(p for net in made.networks for p in net.parameters())]


def neat(seed: int) -> list[torch.Tensor]:
    x, y = data()
    made = NEAT(2, 1, NEATConfig(size=10, node_rate=0.3, connection_rate=0.3, seed=seed))
    for _ in range(4):
        made.evolve(lambda nets: -((nets(x) - y) ** 2).mean((-1, -2)))
    genes = [g.weight for genome in made.genomes for g in genome.connections]
    return [torch.tensor(made.fitnesses), torch.tensor(genes)]


def trained(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    x, y = data()
    net = network_from_json(CHAIN)
    losses = grid.fit(net, [(x, y)] * 2, FitConfig(3, 0.1)).losses
    targets = grid.TargetPropagation(net)
    ticks = grid.SystolicTraining(net, None, 0.1)
    told = [method.step(x, y, mse_loss).loss for method in (targets, ticks) for _ in range(2)]
    return [torch.tensor([*losses, *told]), *net.parameters()]


def searched(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    x = torch.randn(8, 3)
    cell = grid.DARTSCell(grid.vector_operations(3), 1)
    alphas = grid.architecture_parameters(cell)
    others = [p for p in cell.parameters() if all(p is not a for a in alphas)]
    by = torch.optim.Adam(others, 0.03), torch.optim.Adam(alphas, 0.03)
    losses = [loss for _ in range(2) for loss in grid.search_step(cell, (x, x), (x, -x), mse_loss, *by)]
    return [*losses, *cell.parameters()]


FAMILIES: dict[str, Callable[[int], Iterable[torch.Tensor]]] = {
    "init": initial,
    "dropout": dropout,
    "Gumbel softmax": gumbel,
    "k-means": clusters,
    "mutation": mutated,
    "population": population,
    "NEAT": neat,
    "training": trained,
    "search": searched,
}


def bits(family: str, seed: int) -> str:
    """A digest of every bit that a family gives from a seed, on the default device."""
    digest = hashlib.sha256()
    for t in FAMILIES[family](seed):
        digest.update(f"{t.dtype} {tuple(t.shape)} ".encode() + t.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def repeats(family: str) -> bool:
    """Whether two runs from one seed are equal in every bit, and one from another seed is not."""
    torch.manual_seed(99)  # the second run begins in another state
    first = bits(family, 3)
    torch.manual_seed(7)
    torch.rand(13)
    return first == bits(family, 3) != bits(family, 4)
