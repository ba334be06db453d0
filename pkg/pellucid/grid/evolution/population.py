"""Populations of networks in a volume that evolve by crossover and mutation, evaluated in batches."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.grad_mode import no_grad
from ...autograd.mapped import vmap
from ...errors import RangeError, ShapeError
from ...nn.func import functional_call, stack_module_state
from ...nn.utils.parametrize import is_parametrized
from ...ops.shape.joining import stack
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from ..layers import Layer
from ..network import GridNetwork
from .mutation import MutationConfig, mutate
from .splice import exchange, matching


class GridPopulation:
    """Networks of which the fittest live on and have children.

    Each generation is sorted by fitness. The best `elites` stay as they are; the others are replaced by
    children of two of these, by `splice` and `mutate`. So the best fitness never falls.

    Args:
        network: the first one; the others are mutations of it.
        example: an input, by which shapes are found.
        size: how many networks there are.
        config: rates of mutation.
        elites: the part of a generation that stays.
        seed: of all draws.

    Attributes:
        networks: of this generation, the fittest first once it was evaluated.
        fitnesses: of `networks`, or empty before the first evaluation.
        generation: how many were evaluated.

    Raises:
        RangeError: there are fewer than two networks, or elites are not a part.

    Source: Such et al. 2017, "Deep Neuroevolution", for elites and mutation of weights

    Example:
        >>> import pellucid
        >>> spec = {"layers": [{"type": "dense", "d_model": 2}]}
        >>> net = pellucid.grid.network_from_json(spec, device="cpu")
        >>> x = pellucid.ones(1, 2, device="cpu")
        >>> population = pellucid.grid.GridPopulation(net, x, 8)
        >>> population.evolve(lambda networks: -(networks(x) - 1).abs().mean((-1, -2)))
        >>> population.fitnesses == sorted(population.fitnesses, reverse=True)
        True
    """

    def __init__(
        self,
        network: GridNetwork,
        example: Tensor,
        size: int = 32,
        config: MutationConfig | None = None,
        elites: float = 0.25,
        seed: int = 0,
    ):
        if index(size, "GridPopulation: size") < 2 or not 0 < elites < 1:
            raise RangeError(
                f"GridPopulation: size must be at least 2 and elites between 0 and 1, not {size} and "
                f"{elites}."
            )
        self.example, self.config, self.elites = example, config or MutationConfig(), elites
        self.random = np.random.default_rng(seed)
        self.networks = [mutate(network, example, self.config, self.random) for _ in range(size)]
        self.fitnesses: list[float] = []
        self.generation = 0

    def __call__(self, input: Tensor) -> Tensor:
        """What all networks give for one input: those of one structure are one batch.

        Args:
            input: for each of them.

        Returns:
            (networks, ...).
        """
        groups: dict[str, list[int]] = {}
        for k, network in enumerate(self.networks):
            groups.setdefault(_structure(network, k), []).append(k)
        found: dict[int, Tensor] = {}
        with no_grad():
            for places in groups.values():
                together = outputs([self.networks[k] for k in places], input)
                found |= {k: together[n] for n, k in enumerate(places)}
        return stack([found[k] for k in range(len(self.networks))])

    def evolve(self, fitness: Callable[[GridPopulation], Tensor | Sequence[float]]) -> None:
        """Evaluate this generation, sort it, and make the next one.

        Args:
            fitness: from the population, which can be called with an input, to a number for each network;
                higher is better, and NaN is worst.

        Raises:
            ShapeError: these are not as many numbers as networks.
        """
        given = self._evaluated(fitness)
        self._sort(given.tolist() if isinstance(given, Tensor) else list(given))

    async def evolve_async(self, fitness: Callable[[GridPopulation], Tensor | Sequence[float]]) -> None:
        """`evolve` for places where Python cannot wait.

        Args:
            fitness: as in `evolve`.
        """
        given = self._evaluated(fitness)
        self._sort(await given.tolist_async() if isinstance(given, Tensor) else list(given))

    def _evaluated(self, fitness: Callable[[GridPopulation], Any]) -> Tensor | Sequence[float]:
        if self.generation:
            self._breed()
        given = fitness(self)
        return given.detach().float().flatten() if isinstance(given, Tensor) else given

    def _sort(self, numbers: list[float]) -> None:
        if len(numbers) != len(self.networks):
            raise ShapeError(
                f"GridPopulation: fitness gave {len(numbers)} numbers for {len(self.networks)} networks."
            )
        values = [-float("inf") if f != f else float(f) for f in numbers]
        order = sorted(range(len(values)), key=lambda k: -values[k])
        self.networks = [self.networks[k] for k in order]
        self.fitnesses = [values[k] for k in order]
        self.generation += 1

    def best(self) -> GridNetwork:
        """The fittest network of the last evaluation."""
        if not self.fitnesses:
            raise RangeError("GridPopulation: no generation was evaluated yet. Call evolve() first.")
        return self.networks[0]

    def summary(self) -> str:
        """One line: the generation, the best and the mean fitness, and how many structures there are."""
        finite = [f for f in self.fitnesses if abs(f) < float("inf")]
        kinds = len({_structure(network, k) for k, network in enumerate(self.networks)})
        best = self.fitnesses[0] if self.fitnesses else float("nan")
        mean = float(np.mean(finite)) if finite else float("nan")
        return f"generation {self.generation}: best {best:.4g}, mean {mean:.4g}, {kinds} structures"

    def _breed(self) -> None:
        kept = max(1, round(len(self.networks) * self.elites))
        parents = self.networks[:kept]
        children = list(parents)
        while len(children) < len(self.networks):
            one, other = (int(k) for k in self.random.integers(kept, size=2))
            child = copy.deepcopy(parents[min(one, other)])
            random = np.random.default_rng(int(self.random.integers(1 << 31)))
            for _, ours, theirs in matching(child, parents[max(one, other)]):
                exchange(ours, theirs, 0.5, random)
            children.append(mutate(child, self.example, self.config, self.random))
        self.networks = children


def outputs(networks: Sequence[GridNetwork], input: Tensor) -> Tensor:
    """What networks of one structure give for one input, as one batch: (networks, ...)."""
    if len(networks) == 1:
        return networks[0](input).unsqueeze(0)
    state = stack_module_state(list(networks))
    return vmap(lambda state: functional_call(networks[0], state, (input,)))(state)


def _structure(network: GridNetwork, number: int) -> str:
    """A text that is equal for networks which differ in numbers of parameters only."""
    layers = []
    for place, layer in network.layers():
        # What has no specification, or versions of its parameters, runs by itself.
        if not isinstance(layer, Layer) or any(is_parametrized(m) for m in layer.modules()):
            return f"network {number}"
        layers.append([place, layer.specification])
    links = [[k.source, k.target, k.combine] for k in network.links]
    return json.dumps([layers, links, sorted(network.disabled)], sort_keys=True, default=str)
