"""Network DNA: a unit vector for each layer, to compare networks and to find patterns that moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...nn.modules.module import Module
from ...nn.utils.parametrize import type_before_parametrizations
from ..network import GridNetwork, Position
from ..packed.polymorphic import seen_parameters

# Below this, two layers of one kind at different places are not taken for the same pattern.
SHIFT = 0.8


@dataclass(frozen=True)
class LayerSignature:
    """A layer as a direction: its weights, in order, as it computes with them, divided by their length.

    Args:
        position: where the layer is.
        kind: the type of its specification, or its class.
        weights: float64 of length 1; (1,) for layers without weights.
    """

    position: Position
    kind: str
    weights: np.ndarray


class LogicShift(NamedTuple):
    """A pattern of the first network that stands at another position in the second."""

    source: Position
    target: Position
    overlap: float


@dataclass(frozen=True)
class NetworkComparison:
    """How alike two networks are.

    Args:
        overall: mean over the positions that either of them has; -1 to 1.
        layers: cosine of the signatures by position, 0 where only one has a layer or the kinds differ.
        shifts: patterns that moved, best first.
    """

    overall: float
    layers: dict[Position, float]
    shifts: list[LogicShift]


def cosine_similarity(first: np.ndarray, second: np.ndarray) -> float:
    """``a . b / (|a| |b|)`` of two vectors; 0 where one is zero or they are not equally long."""
    if first.shape != second.shape:
        return 0.0
    length = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / length, -1, 1)) if length else 0.0


def kind_of(layer: Module) -> str:
    """The type that a layer's specification says, or the name of its class."""
    specification = getattr(layer, "specification", None)
    return (
        specification["type"]
        if isinstance(specification, dict)
        else type_before_parametrizations(layer).__name__
    )


def dna(network: GridNetwork) -> list[LayerSignature]:
    """The signatures of a network's layers, in the order in which they run.

    Args:
        network: containers count with the weights of all that is inside.

    Raises:
        ArgumentError: this is no network in a volume.

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.GridNetwork(1, 1, 1, 1, {(0, 0, 0, 0): pellucid.nn.ReLU()})
        >>> pellucid.grid.dna(net)[0].weights.tolist()
        [1.0]
    """
    if not isinstance(network, GridNetwork):
        raise ArgumentError(f"dna: the network must be a GridNetwork, not {type(network).__name__}.")
    found = []
    for position, layer in network.layers():
        parts = [p.detach().float().numpy().astype(np.float64).ravel() for p in seen_parameters(layer)]
        weights = np.concatenate(parts) if parts else np.ones(1)
        length = np.linalg.norm(weights)
        found.append(LayerSignature(position, kind_of(layer), weights / length if length else weights))
    return found


def compare_networks(first: list[LayerSignature], second: list[LayerSignature]) -> NetworkComparison:
    """Compare two networks by their DNA.

    Args:
        first, second: from `dna`.

    Returns:
        Overlaps by position, their mean, and shifts: for a layer of the first network, the place in the
        second where a layer of its kind overlaps it by at least 0.8, and by more than that at its own place.

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.network_from_json('{"layers": [{"type": "dense", "d_model": 2}]}')
        >>> pellucid.grid.compare_networks(pellucid.grid.dna(net), pellucid.grid.dna(net)).overall
        1.0
    """
    ours, theirs = ({s.position: s for s in signatures} for signatures in (first, second))
    layers: dict[Position, float] = {}
    for position in sorted(ours.keys() | theirs.keys()):
        layers[position] = _overlap(ours.get(position), theirs.get(position))
    shifts = []
    for position, mine in ours.items():
        overlaps = {place: _overlap(mine, s) for place, s in theirs.items() if place != position}
        place = max(overlaps, key=overlaps.__getitem__, default=None)
        if (
            place is not None
            and overlaps[place] >= max(SHIFT, layers[position] + 1e-9)
            and len(mine.weights) > 1
        ):
            shifts.append(LogicShift(position, place, overlaps[place]))
    shifts.sort(key=lambda s: -s.overlap)
    return NetworkComparison(float(np.mean(list(layers.values()))) if layers else 1.0, layers, shifts)


def _overlap(first: LayerSignature | None, second: LayerSignature | None) -> float:
    if first is None or second is None or first.kind != second.kind:
        return 0.0
    return cosine_similarity(first.weights, second.weights)
