"""Crossover of two networks: a child with the structure of the first and weights of both."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError, RangeError
from ...nn.parameter import Parameter
from ...ops.elementwise.comparison import where
from ...ops.shape.joining import cat
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..network import GridNetwork, Position
from .dna import cosine_similarity, kind_of

MODES = ("blend", "point", "uniform")


class Splice(NamedTuple):
    """What `splice` gives: the child, and how alike the parents' layers are that were mixed."""

    child: GridNetwork
    similarities: dict[Position, float]


def splice(
    first: GridNetwork,
    second: GridNetwork,
    mode: str = "blend",
    alpha: float = 0.5,
    fitness: tuple[float, float] = (1.0, 1.0),
    seed: int = 0,
) -> Splice:
    """Cross two networks. Layers of both at one position, of one kind and with equal shapes, are mixed.

    With f the second network's part of the fitness, ``f_b / (f_a + f_b)`` for positive ones, and s the cosine
    of a layer's weights in both:

    ``blend``: ``(1 - a) A + a B`` with ``a = alpha * (1 + s) * f``, at most 1: unlike layers and a weaker
    second parent count less. ``point``: the first ``1 - alpha`` of the weights from A, the rest from B.
    ``uniform``: each weight from B with probability ``alpha * 2 f``, held between 0 and 1, else from A.

    Args:
        first: whose layers, links and other weights the child has.
        second: the other parent.
        mode: blend, point or uniform.
        alpha: from 0, all of the first, to 1.
        fitness: of both; equal ones, or ones that are not positive, favour neither.
        seed: of the draws of uniform.

    Raises:
        RangeError: an unknown mode, or an alpha outside of 0 to 1.

    Source: Holland 1975, "Adaptation in Natural and Artificial Systems", for crossover; the way in which
        likeness and fitness count is this library's.

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.network_from_json('{"layers": [{"type": "dense", "d_model": 2}]}')
        >>> len(pellucid.grid.splice(net, net).similarities)
        1
    """
    for network in (first, second):
        if not isinstance(network, GridNetwork):
            raise ArgumentError(f"splice: parents must be GridNetworks, not {type(network).__name__}.")
    if mode not in MODES:
        raise RangeError(f"splice: mode must be one of {', '.join(MODES)}, not {mode!r}.")
    if not 0 <= alpha <= 1:
        raise RangeError(f"splice: alpha must lie between 0 and 1, not {alpha}.")
    a, b = fitness
    part = b / (a + b) if a > 0 and b > 0 else 0.5
    random = np.random.default_rng(seed)
    child = copy.deepcopy(first)
    similarities: dict[Position, float] = {}
    for position, ours, theirs in matching(child, second):
        mine, its = _flat(ours), _flat(theirs)
        likeness = similarities[position] = cosine_similarity(
            mine.numpy().astype(np.float64), its.numpy().astype(np.float64)
        )
        if mode == "blend":
            share = min(alpha * (1 + likeness) * part, 1.0)
            _fill(ours, (1 - share) * mine + share * its)
        elif mode == "point":
            cut = round(len(mine) * (1 - alpha))
            _fill(ours, cat([mine[:cut], its[cut:]]))
        else:
            exchange(ours, theirs, alpha * 2 * part, random)
    return Splice(child, similarities)


def matching(
    child: GridNetwork, second: GridNetwork
) -> Iterator[tuple[Position, list[Parameter], list[Parameter]]]:
    """Parameters of layers of both at one position, where these are of one kind and have equal shapes."""
    for position, layer in child.layers():
        inside = all(p < n for p, n in zip(position, second.size, strict=True))
        other = second.layer(position) if inside else None
        if other is None or kind_of(other) != kind_of(layer):
            continue
        ours, theirs = list(layer.parameters()), list(other.parameters())
        if ours and [p.shape for p in ours] == [p.shape for p in theirs]:
            yield position, ours, theirs


def exchange(
    ours: list[Parameter], theirs: list[Parameter], rate: float, random: np.random.Generator
) -> None:
    """Let each number of parameters become that of others by chance. Does not wait for the device."""
    mine, its = _flat(ours), _flat(theirs)
    taken = tensor(random.random(len(mine)) < min(rate, 1.0), device=mine.device)
    _fill(ours, where(taken, its, mine))


def _flat(parameters: list[Parameter]) -> Tensor:
    return cat([p.detach().float().flatten() for p in parameters])


def _fill(parameters: list[Parameter], values: Tensor) -> None:
    start = 0
    with no_grad():
        for p in parameters:
            p.copy_(values[start : start + p.numel()].reshape(p.shape))
            start += p.numel()
