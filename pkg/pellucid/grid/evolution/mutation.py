"""Mutation of networks in a volume: weights, activations, types of layers, switches and remote links."""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError, PellucidError, RangeError
from ...nn.modules.module import Module
from ...ops.random.generator import Generator, fork_rng, manual_seed
from ...tensors.tensor import Tensor
from ..layers import ACTIVATIONS, LAYERS, Layer
from ..network import LINKS, GridNetwork, Link, Position

Shape = tuple[int, ...]


@dataclass(frozen=True)
class MutationConfig:
    """How often and how far networks change.

    Args:
        weight_rate: how often the parameters of a layer are moved.
        weight_scale: the standard deviation of their moves.
        activation_rate: how often a layer gets another activation.
        type_rate: how often a layer becomes one of another type, with new parameters.
        toggle_rate: how often a layer is switched on or off, where that changes no shape.
        link_rate, unlink_rate: how often the network gets a remote link more, or loses one.
        types: of layers that there may be.
        activations: that layers may have.

    Raises:
        RangeError: a rate is not from 0 to 1, a scale negative, or a type or activation unknown.
    """

    weight_rate: float = 0.8
    weight_scale: float = 0.05
    activation_rate: float = 0.05
    type_rate: float = 0.05
    toggle_rate: float = 0.02
    link_rate: float = 0.1
    unlink_rate: float = 0.05
    types: tuple[str, ...] = tuple(LAYERS)
    activations: tuple[str, ...] = tuple(ACTIVATIONS)

    def __post_init__(self) -> None:
        rates = {n: v for n, v in asdict(self).items() if n.endswith("_rate")}
        if bad := {n: v for n, v in rates.items() if not 0 <= v <= 1}:
            told = ", ".join(f"{n}={v}" for n, v in bad.items())
            raise RangeError(f"MutationConfig: {told}: not from 0 to 1.")
        if not 0 <= self.weight_scale < float("inf"):
            raise RangeError(f"MutationConfig: weight_scale must be finite, not {self.weight_scale}.")
        for name, known in (("types", LAYERS), ("activations", ACTIVATIONS)):
            if unknown := set(getattr(self, name)) - known.keys():
                raise RangeError(
                    f"MutationConfig: {name}: {', '.join(sorted(unknown))}; there are {', '.join(known)}."
                )

    @property
    def changes_structure(self) -> bool:
        """Whether more than numbers and activations changes."""
        return max(self.type_rate, self.toggle_rate, self.link_rate) > 0


def mutate(
    network: GridNetwork,
    example: Tensor,
    config: MutationConfig | None = None,
    seed: int | np.random.Generator = 0,
) -> GridNetwork:
    """A changed copy of a network, which takes what the network takes and gives the same shape.

    Layer by layer: parameters get normal noise; layers with a specification (`Layer`) get another activation,
    or become a layer of another type between the same shapes; layers between equal shapes are switched. Then
    a remote link is taken away, and one is added between layers of fitting shapes.

    Args:
        network: stays as it is.
        example: an input, by which shapes are found.
        config: rates.
        seed: of all draws, or a generator of numpy's to go on with.

    Raises:
        ArgumentError: this is no network in a volume.

    Source: Real et al. 2019, "Regularized Evolution for Image Classifier Architecture Search", for children
        by mutation alone; what is changed is this library's

    Example:
        >>> import pellucid
        >>> x = pellucid.zeros(1, 4, device="cpu")
        >>> spec = {"layers": [{"type": "dense", "d_model": 4}]}
        >>> net = pellucid.grid.network_from_json(spec, device="cpu")
        >>> child = pellucid.grid.mutate(net, x, seed=1)
        >>> child is not net, child(x).shape
        (True, Size([1, 4]))
    """
    if not isinstance(network, GridNetwork):
        raise ArgumentError(f"mutate: the network must be a GridNetwork, not {type(network).__name__}.")
    c, random = config or MutationConfig(), np.random.default_rng(seed)
    child = copy.deepcopy(network)
    inputs, outputs = shapes(child, example) if c.changes_structure else ({}, {})
    for place, layer in list(child.layers()):
        if random.random() < c.weight_rate:
            _move(layer, c.weight_scale, random)
        if isinstance(layer, Layer):
            if c.activations and random.random() < c.activation_rate:
                _activate(layer, str(random.choice(c.activations)))
            if random.random() < c.type_rate:
                _retype(child, place, layer, inputs[place], outputs[place], c, random)
        if random.random() < c.toggle_rate:
            if place in child.disabled:
                child.enable(place, _keeps_shape(layer, inputs[place]))
            elif inputs[place].shape == outputs[place].shape:
                child.enable(place, False)
    # Without a link that replaces, the shape before its target might be another.
    loose = [k for k, link in enumerate(child.links) if link.combine == "add"]
    if random.random() < c.unlink_rate and loose:
        child.links.pop(int(random.choice(loose)))
    if random.random() < c.link_rate:
        _link(child, inputs, outputs, random)
    return child


def shapes(network: GridNetwork, example: Tensor) -> tuple[dict[Position, Tensor], dict[Position, Tensor]]:
    """What each layer takes and gives, with `example` as the input of the network."""
    inputs: dict[Position, Tensor] = {}
    with no_grad():
        outputs = network._passes(example, 1, seen=inputs)[1]
    return inputs, outputs


def _move(layer: Module, scale: float, random: np.random.Generator) -> None:
    noise = None
    with no_grad():
        for p in layer.parameters():
            if p.dtype.is_floating_point:
                if noise is None:
                    noise = Generator(p.device)
                    noise.manual_seed(int(random.integers(1 << 31)))
                p.add_(p.new_empty(p.shape).normal_(0.0, scale, generator=noise))


def _activate(layer: Layer, activation: str) -> None:
    layer.activation = activation
    layer.specification = layer.specification | {"activation": activation}


def _retype(
    child: GridNetwork,
    place: Position,
    layer: Layer,
    input: Tensor,
    output: Tensor,
    config: MutationConfig,
    random: np.random.Generator,
) -> None:
    """Put a layer of another type at a place: the first one, in an order by chance, that fits the shapes."""
    old = layer.specification
    kept = {n: old[n] for n in ("activation", "dtype", "group", "scale_dtype") if n in old}
    with fork_rng():
        manual_seed(int(random.integers(1 << 31)))
        for kind in random.permutation([t for t in config.types if t != old["type"]]):
            fields = between(str(kind), tuple(input.shape), tuple(output.shape))
            if fields is None:
                continue
            try:
                made = Layer({"type": str(kind), **fields, **kept}, device=input.device)
                with no_grad():
                    fits = made(input).shape == output.shape
            except PellucidError:  # such as an embedding of numbers that are no integers
                continue
            if fits:
                child.place(place, made)
                return


def between(kind: str, input: Shape, output: Shape) -> dict[str, Any] | None:
    """Fields of a layer of a type that takes one shape and gives another; None if there is no such layer.

    Args:
        kind: a key of `LAYERS`.
        input, output: with the axis of the batch.
    """
    if len(input) < 2 or not output:
        return None
    first, last = input[-1], output[-1]
    dense = {"type": "dense", "input_height": first, "output_height": last}
    if kind in ("dense", "rnn", "lstm"):
        return {"input_height": first, "output_height": last}
    if kind == "embedding":
        return {"vocab_size": 256, "embedding_dim": last}
    if kind == "kmeans":
        return {"num_clusters": last, "d_model": first, "output_mode": "probabilities"}
    if kind == "sequential":
        return {"sequential_layers": [{**dense, "activation": "tanh"}, {"type": "dense", "d_model": last}]}
    if kind == "parallel":
        return {"parallel_branches": [dense, {**dense, "activation": "tanh"}], "combine_mode": "add"}
    if kind.startswith(("cnn", "conv")):
        axes = int(kind.replace("d", "")[-1])
        if len(input) != axes + 2 or input[2:] != output[2:] or len(output) != len(input):
            return None
        names = ("input_depth", "input_height", "input_width")[-axes:] if axes > 1 else ("input_height",)
        sizes = dict(zip(names, input[2:], strict=True))
        return {**sizes, "input_channels": input[1], "filters": output[1], "kernel_size": 3, "padding": 1}
    if input != output:
        return None
    if kind == "residual":
        return {"sequential_layers": [dense]}
    if kind == "multi_head_attention":
        heads = next((n for n in (4, 2, 1) if first % (2 * n) == 0), None)
        return None if heads is None else {"d_model": first, "num_heads": heads}
    return {} if kind == "softmax" else {"d_model": first}


def _keeps_shape(layer: Module, input: Tensor) -> bool:
    try:
        with no_grad():
            return layer(input).shape == input.shape
    except PellucidError:  # it was switched off between other shapes
        return False


def _link(
    child: GridNetwork,
    inputs: dict[Position, Tensor],
    outputs: dict[Position, Tensor],
    random: np.random.Generator,
) -> None:
    """Add one of the links that there are not yet and whose shapes fit."""
    there = {(k.source, k.target) for k in child.links}
    free = [
        (s, t)
        for s, given in outputs.items()
        for t, taken in inputs.items()
        if (s, t) not in there and given.shape == taken.shape and given.dtype is taken.dtype
    ]
    if free:
        source, target = free[int(random.integers(len(free)))]
        child.connect(Link(source, target, LINKS[0]))
