"""NEAT: networks whose structure grows by evolution, with genes, innovation numbers and species."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from ...errors import ArgumentError, RangeError, ShapeError
from ...tensors.shape import index
from ...tensors.tensor import Tensor
from .genome import ACTIVATIONS, ConnectionGene, Genome, Networks


@dataclass(frozen=True)
class NEATConfig:
    """Settings of evolution.

    Args:
        size: genomes of a generation.
        elites: the part of a generation that lives on unchanged.
        weight_rate: how often the weights of a child are moved.
        weight_scale: the standard deviation of their moves.
        replace_rate: how often a weight is drawn anew instead.
        connection_rate, node_rate: how often a child gets a connection or a node more.
        activation_rate: how often a hidden node gets another activation.
        toggle_rate: how often a connection is switched on or off.
        excess, disjoint, difference: weights of the distance of two genomes.
        threshold: genomes closer than this are one species.
        activations: those that hidden nodes may have.
        output: the activation of outputs.
        seed: of all draws.
    """

    size: int = 150
    elites: float = 0.25
    weight_rate: float = 0.8
    weight_scale: float = 0.05
    replace_rate: float = 0.1
    connection_rate: float = 0.1
    node_rate: float = 0.05
    activation_rate: float = 0.05
    toggle_rate: float = 0.02
    excess: float = 1.0
    disjoint: float = 1.0
    difference: float = 0.4
    threshold: float = 3.0
    activations: tuple[str, ...] = ("sigmoid",)
    output: str = "sigmoid"
    seed: int = 0

    def __post_init__(self) -> None:
        rates = {n: v for n, v in asdict(self).items() if n.endswith("_rate") or n == "elites"}
        if bad := {n: v for n, v in rates.items() if not 0 <= v <= 1}:
            raise RangeError(f"NEATConfig: {', '.join(f'{n}={v}' for n, v in bad.items())}: not from 0 to 1.")
        if index(self.size, "NEATConfig: size") < 2:
            raise RangeError(f"NEATConfig: size must be at least 2, not {self.size}.")
        if unknown := {*self.activations, self.output} - ACTIVATIONS.keys():
            raise RangeError(
                f"NEATConfig: no activations: {', '.join(unknown)}; there are {', '.join(ACTIVATIONS)}."
            )


@dataclass
class Species:
    """Genomes that are like a representative of the generation before."""

    representative: Genome
    members: list[int] = field(default_factory=list)


class NEAT:
    """A population that evolves weights and structure.

    Each generation is evaluated as one batch. The best `elites` live on; the other places go to the species
    by their mean fitness, and are filled with children of parents of one species: aligned by innovation
    numbers, genes that both have from either, others from the fitter. The best fitness never falls.

    Args:
        inputs, outputs: of the networks.
        config: settings.
        device: where networks run; the default device if None.

    Attributes:
        genomes: of this generation, the fittest first once it was evaluated.
        fitnesses: of `genomes`, or empty before the first evaluation.
        species: of this generation.
        generation: how many were evaluated.

    Source: Stanley and Miikkulainen 2002, "Evolving Neural Networks through Augmenting Topologies"

    Example:
        >>> import pellucid
        >>> neat = pellucid.grid.NEAT(1, 1, pellucid.grid.NEATConfig(size=8, seed=1), device="cpu")
        >>> x = pellucid.ones(1, 1, device="cpu")
        >>> neat.evolve(lambda networks: networks(x)[:, 0, 0])
        >>> neat.fitnesses == sorted(neat.fitnesses, reverse=True)
        True
    """

    def __init__(self, inputs: int, outputs: int, config: NEATConfig | None = None, device=None):
        self.config, self.device = config or NEATConfig(), device
        inputs, outputs = index(inputs, "NEAT: inputs"), index(outputs, "NEAT: outputs")
        if inputs < 1 or outputs < 1:
            raise RangeError(f"NEAT: inputs and outputs must be positive, not {inputs} and {outputs}.")
        self.random = np.random.default_rng(self.config.seed)
        self.innovations: dict[tuple[int, int], int] = {}
        self.splits: dict[int, int] = {}
        first = inputs + 1
        self.next_node = first + outputs
        ends = range(first, first + outputs)
        activations = dict.fromkeys(ends, self.config.output)
        self.genomes = [
            Genome(
                inputs, outputs, dict(activations),
                tuple(self._gene(s, t, self.random.standard_normal()) for t in ends for s in range(first)),
            )
            for _ in range(self.config.size)
        ]  # fmt: skip
        self.fitnesses: list[float] = []
        self.species: list[Species] = []
        self.generation = 0

    def networks(self) -> Networks:
        """The networks of this generation as one batch, in the order of `genomes`."""
        return Networks(self.genomes, self.device)

    def best(self) -> Genome:
        """The fittest genome so far."""
        if not self.fitnesses:
            raise ArgumentError("NEAT.best: nothing was evaluated yet. Call evolve first.")
        return self.genomes[0]

    def evolve(self, fitness: Callable[[Networks], Tensor | Sequence[float]]) -> None:
        """Evaluate a generation, and make the next one.

        Args:
            fitness: from the networks to one number for each, higher is better; NaN counts as the lowest.
        """
        if self.generation:
            self.genomes = self._next()
        found = fitness(self.networks())
        values = found.detach().numpy() if isinstance(found, Tensor) else np.asarray(found, np.float64)
        if values.shape != (len(self.genomes),):
            raise ShapeError(f"NEAT.evolve: fitness must give ({len(self.genomes)},), not {values.shape}.")
        values = np.where(np.isnan(values), -np.inf, values.astype(np.float64))
        order = np.argsort(-values, kind="stable")
        self.genomes = [self.genomes[k] for k in order]
        self.fitnesses = [float(values[k]) for k in order]
        self._speciate()
        self.generation += 1

    def summary(self) -> str:
        """One line about this generation."""
        best = self.best()
        hidden, connections = len(best.activations) - best.outputs, sum(g.enabled for g in best.connections)
        return (
            f"generation {self.generation}: best {self.fitnesses[0]:.4g}, "
            f"mean {np.mean(self.fitnesses):.4g}, {len(self.species)} species, {hidden} hidden nodes and "
            f"{connections} connections in the best"
        )

    def distance(self, first: Genome, second: Genome) -> float:
        """How unlike genomes are: excess and disjoint genes per gene, and the mean difference of weights."""
        a, b = ({g.innovation: g for g in genome.connections} for genome in (first, second))
        shared = a.keys() & b.keys()
        end = min(max(a, default=-1), max(b, default=-1))
        excess = sum(n > end for n in a.keys() ^ b.keys())
        disjoint = len(a.keys() ^ b.keys()) - excess
        longest = max(len(a), len(b), 1)
        longest = 1 if longest < 20 else longest
        apart = float(np.mean([abs(a[n].weight - b[n].weight) for n in shared])) if shared else 0.0
        c = self.config
        return (c.excess * excess + c.disjoint * disjoint) / longest + c.difference * apart

    def _speciate(self) -> None:
        kinds = [Species(s.representative) for s in self.species]
        for k, genome in enumerate(self.genomes):
            for kind in kinds:
                if self.distance(genome, kind.representative) < self.config.threshold:
                    kind.members.append(k)
                    break
            else:
                kinds.append(Species(genome, [k]))
        self.species = [kind for kind in kinds if kind.members]
        for kind in self.species:
            kind.representative = self.genomes[kind.members[self.random.integers(len(kind.members))]]

    def _next(self) -> list[Genome]:
        kept = max(1, round(self.config.size * self.config.elites))
        children = list(self.genomes[:kept])
        finite = [f for f in self.fitnesses if f > -np.inf]
        low = min(finite, default=0.0)
        shares = np.array(
            [
                np.mean([max(self.fitnesses[k], low) - low for k in kind.members]) + 1e-9
                for kind in self.species
            ]
        )
        shares = shares / shares.sum() if np.isfinite(shares).all() else np.full(len(shares), 1 / len(shares))
        while len(children) < self.config.size:
            kind = self.species[self.random.choice(len(shares), p=shares)]
            # Members are in the order of fitness: the better half are parents.
            parents = kind.members[: max(1, (len(kind.members) + 1) // 2)]
            one, other = sorted(int(k) for k in self.random.choice(parents, 2))
            children.append(self._mutated(self._crossed(self.genomes[one], self.genomes[other])))
        return children

    def _crossed(self, fitter: Genome, other: Genome) -> Genome:
        theirs = {g.innovation: g for g in other.connections}
        genes = []
        for gene in fitter.connections:
            twin = theirs.get(gene.innovation)
            if twin is not None and self.random.random() < 0.5:
                gene = replace(gene, weight=twin.weight)
            if twin is not None and not (gene.enabled and twin.enabled):
                gene = replace(gene, enabled=bool(self.random.random() < 0.25))
            genes.append(gene)
        return replace(fitter, connections=tuple(genes))

    def _mutated(self, genome: Genome) -> Genome:
        c, random = self.config, self.random
        genes = list(genome.connections)
        if random.random() < c.weight_rate:
            moves = random.standard_normal(len(genes)) * c.weight_scale
            anew = random.random(len(genes)) < c.replace_rate
            drawn = random.standard_normal(len(genes))
            genes = [
                replace(g, weight=float(drawn[k] if anew[k] else g.weight + moves[k]))
                for k, g in enumerate(genes)
            ]
        if genes and random.random() < c.toggle_rate:
            k = int(random.integers(len(genes)))
            genes[k] = replace(genes[k], enabled=not genes[k].enabled)
        activations = dict(genome.activations)
        hidden = [n for n in activations if n > genome.inputs + genome.outputs]
        if hidden and random.random() < c.activation_rate:
            activations[int(random.choice(hidden))] = str(random.choice(c.activations))
        if random.random() < c.node_rate and (open_genes := [k for k, g in enumerate(genes) if g.enabled]):
            k = int(random.choice(open_genes))
            gene = genes[k]
            node = self.splits.setdefault(gene.innovation, self.next_node)
            if node == self.next_node:
                self.next_node += 1
            if node not in activations:
                activations[node] = str(random.choice(c.activations))
                genes[k] = replace(gene, enabled=False)
                genes += [self._gene(gene.source, node, 1.0), self._gene(node, gene.target, gene.weight)]
        if random.random() < c.connection_rate:
            self._connect(genome.inputs, activations, genes)
        genes.sort(key=lambda g: g.innovation)
        return replace(genome, activations=activations, connections=tuple(genes))

    def _connect(self, inputs: int, activations: dict[int, str], genes: list[ConnectionGene]) -> None:
        """Add a connection between two nodes that have none, where it makes no cycle."""
        last_output = inputs + self.genomes[0].outputs
        sources = [*range(inputs + 1), *(n for n in activations if n > last_output)]
        there = {(g.source, g.target) for g in genes}
        leads: dict[int, set[int]] = {}
        for g in genes:
            leads.setdefault(g.source, set()).add(g.target)
        free = [
            (s, t) for s in sources for t in activations
            if s != t and (s, t) not in there and not _reaches(leads, t, s)
        ]  # fmt: skip
        if free:
            s, t = free[int(self.random.integers(len(free)))]
            genes.append(self._gene(s, t, self.random.standard_normal()))

    def _gene(self, source: int, target: int, weight: float) -> ConnectionGene:
        number = self.innovations.setdefault((source, target), len(self.innovations))
        return ConnectionGene(number, source, target, float(weight))


def _reaches(leads: dict[int, set[int]], start: int, end: int) -> bool:
    seen, todo = {start}, [start]
    while todo:
        node = todo.pop()
        if node == end:
            return True
        new = leads.get(node, set()) - seen
        seen |= new
        todo.extend(new)
    return False
