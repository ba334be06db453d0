"""Genomes of NEAT: networks as genes of nodes and connections, and many of them as one batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...errors import ArgumentError, FormatError, ShapeError
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...weights.document import as_bytes, parse_object

MOST_INPUTS = 1 << 20  # of a genome in a file
MOST_WEIGHTS = 1 << 28  # between its nodes
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": lambda x: (4.9 * x).sigmoid(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.clamp(min=0),
    "linear": lambda x: x,
}


@dataclass(frozen=True)
class ConnectionGene:
    """A connection between two nodes, with the number of the innovation that first made it."""

    innovation: int
    source: int
    target: int
    weight: float
    enabled: bool = True


@dataclass(frozen=True)
class Genome:
    """A network as genes: nodes by number, connections by innovation.

    Nodes 0 to inputs - 1 are inputs, the next one is 1 always, the next ones are outputs; others are hidden.

    Args:
        inputs, outputs: how many there are.
        activations: the activation of each output and hidden node.
        connections: sorted by innovation; without cycles.
    """

    inputs: int
    outputs: int
    activations: dict[int, str]
    connections: tuple[ConnectionGene, ...]

    def to_json(self) -> str:
        """As JSON; `from_json` reads it."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes) -> Genome:
        """A genome that `to_json` wrote.

        Raises:
            FormatError: it is no JSON, genes are missing or malformed, or the connections make a cycle.
        """
        try:
            given = parse_object("Genome.from_json", as_bytes(text))
            if not isinstance(given["connections"], list):
                raise TypeError("connections are no list")
            genes = tuple(
                ConnectionGene(_whole(g["innovation"]), _whole(g["source"]), _whole(g["target"]),
                               _number(g["weight"]), _flag(g["enabled"]))
                for g in given["connections"]
            )  # fmt: skip
            made = Genome(
                _whole(given["inputs"]), _whole(given["outputs"]),
                {int(n): a for n, a in given["activations"].items()}, genes,
            )  # fmt: skip
            if len(made.activations) < len(given["activations"]):
                raise ValueError("two activations are of one node")
            made._check()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"Genome.from_json: these are no genes: {error!r}") from error
        return made

    def _check(self) -> None:
        first = self.inputs + 1
        if not 1 <= self.inputs <= MOST_INPUTS:
            raise FormatError(f"Genome: there are {self.inputs} inputs; from 1 to {MOST_INPUTS} are read.")
        nodes = len(self.activations)
        if nodes * (first + nodes) > MOST_WEIGHTS:
            raise FormatError(
                f"Genome: {self.inputs} inputs and {nodes} other nodes have more than {MOST_WEIGHTS} weights "
                "between them."
            )
        outputs = range(first, first + self.outputs)
        if not 1 <= self.outputs <= len(self.activations) or not set(outputs) <= self.activations.keys():
            raise FormatError("Genome: there must be inputs and outputs, and an activation for each output.")
        if min(self.activations) < first or not set(self.activations.values()) <= ACTIVATIONS.keys():
            raise FormatError(f"Genome: activations of nodes from {first} on are {', '.join(ACTIVATIONS)}.")
        known = {*range(first), *self.activations}
        numbers = [g.innovation for g in self.connections]
        for gene in self.connections:
            if gene.source not in known or gene.target not in self.activations:
                raise FormatError(
                    f"Genome: a connection goes from {gene.source} to {gene.target}, not to nodes."
                )
            if not abs(gene.weight) < float("inf"):
                raise FormatError(f"Genome: the weight of innovation {gene.innovation} is {gene.weight}.")
        if numbers != sorted(set(numbers)):
            raise FormatError("Genome: connections must be sorted by innovation, each once.")
        if self.depths() is None:
            raise FormatError("Genome: the connections make a cycle.")

    def depths(self) -> dict[int, int] | None:
        """The longest path from an input to each node, over all connections; None where they make a cycle."""
        sources: dict[int, list[int]] = {n: [] for n in self.activations}
        for gene in self.connections:
            sources[gene.target].append(gene.source)
        depth = dict.fromkeys(range(self.inputs + 1), 0)
        open_nodes = set(self.activations)
        while open_nodes:
            ready = [n for n in open_nodes if all(s in depth for s in sources[n])]
            if not ready:
                return None
            for n in ready:
                depth[n] = 1 + max((depth[s] for s in sources[n]), default=0)
            open_nodes.difference_update(ready)
        return depth


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no integer")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{value!r} is no number")
    return float(value) if abs(value) < 1e300 else float("inf")


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError(f"{value!r} is neither true nor false")
    return value


class Networks:
    """Genomes of one task as one batch: all run together, each row of the batch a network of its own.

    Args:
        genomes: with equally many inputs and outputs.
        device: where; the default device if None.

    Example:
        >>> import pellucid
        >>> neat = pellucid.grid.NEAT(2, 1, pellucid.grid.NEATConfig(size=3), device="cpu")
        >>> neat.networks()(pellucid.zeros(4, 2, device="cpu")).shape
        Size([3, 4, 1])
    """

    def __init__(self, genomes: Sequence[Genome], device=None):
        if not genomes:
            raise ArgumentError("Networks: there must be at least one genome.")
        first = genomes[0]
        self.inputs, self.outputs = first.inputs, first.outputs
        if any((g.inputs, g.outputs) != (self.inputs, self.outputs) for g in genomes):
            raise ShapeError("Networks: the genomes have different numbers of inputs or outputs.")
        depths = [g.depths() for g in genomes]
        orders = [sorted(g.activations, key=lambda n: (n > g.inputs + g.outputs, n)) for g in genomes]
        width = max(len(order) for order in orders)
        start = self.inputs + 1
        weights = np.zeros((len(genomes), start + width, width), np.float32)
        kinds = {name: np.zeros((len(genomes), 1, width), bool) for name in ACTIVATIONS}
        for k, (genome, order) in enumerate(zip(genomes, orders, strict=True)):
            place = {n: n for n in range(start)} | {n: start + j for j, n in enumerate(order)}
            for gene in genome.connections:
                if gene.enabled:
                    weights[k, place[gene.source], place[gene.target] - start] += gene.weight
            for n in order:
                kinds[genome.activations[n]][k, 0, place[n] - start] = True
        self.ticks = max(max(depth.values()) for depth in depths if depth is not None)
        self.weights = tensor(weights, device=device)
        used = {name: m for name, m in kinds.items() if m.any()}
        self.kinds = {name: tensor(m.astype(np.float32), device=device) for name, m in used.items()}

    def __call__(self, input: Tensor) -> Tensor:
        """The outputs of every network.

        Args:
            input: (rows, inputs), the same for all networks, or (networks, rows, inputs).

        Returns:
            (networks, rows, outputs).
        """
        count, rows = self.weights.shape[0], input.shape[-2] if input.dim() > 1 else 0
        if input.dim() not in (2, 3) or input.shape[-1] != self.inputs:
            raise ShapeError(f"Networks: the input must be (rows, {self.inputs}), not {tuple(input.shape)}.")
        x = input.expand(count, rows, self.inputs)
        given = x.new_zeros(count, rows, self.weights.shape[1])
        given[..., : self.inputs] = x
        given[..., self.inputs] = 1.0
        state = given
        out = given
        for _ in range(self.ticks):
            z = state @ self.weights
            out = z.new_zeros(z.shape)
            for name, m in self.kinds.items():
                out = out + ACTIVATIONS[name](z) * m
            state = given.clone()
            state[..., self.inputs + 1 :] = out
        return out[..., : self.outputs]
