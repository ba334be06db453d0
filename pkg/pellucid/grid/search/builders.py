"""Builders of networks in a volume: chains, transformers, networks for images, and networks at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import RangeError
from ...ops.random.generator import fork_rng, manual_seed
from ...tensors.shape import index
from ..evolution.mutation import between
from ..layers import ACTIVATIONS, LAYERS
from ..network import GridNetwork
from ..specification import network_from_json


def _counted(where: str, **counts: int) -> None:
    for name, value in counts.items():
        if index(value, f"{where}: {name}") < 1:
            raise RangeError(f"{where}: {name} must be at least 1, not {value}.")


def _network(size: tuple[int, int, int, int], layers: list[dict[str, Any]], device: Any) -> GridNetwork:
    names = ("depth", "rows", "cols", "layers_per_cell")
    return network_from_json({**dict(zip(names, size, strict=True)), "layers": layers}, device=device)


def sequential_network(
    num_layers: int, d_model: int, activation: str = "relu", dtype: str | None = None, device=None
) -> GridNetwork:
    """A chain of dense layers of one width, a cell each.

    Args:
        num_layers, d_model: how many, and how wide.
        activation: of all of them.
        dtype: the kind of number of their parameters, as in `morph`; float32 if None.
        device: of the parameters; the default if None.

    Raises:
        RangeError: there is no layer, or no width.
        FormatError: the activation or the dtype is unknown.

    Example:
        >>> import pellucid
        >>> pellucid.grid.sequential_network(3, 8).num_parameters()
        216
    """
    _counted("sequential_network", num_layers=num_layers, d_model=d_model)
    own = {} if dtype is None else {"dtype": dtype}
    layer = {"type": "dense", "d_model": d_model, "activation": activation, **own}
    return _network((num_layers, 1, 1, 1), [{**layer, "z": z} for z in range(num_layers)], device)


def transformer_network(
    num_blocks: int,
    d_model: int,
    num_heads: int = 4,
    num_kv_heads: int | None = None,
    dtype: str | None = None,
    device=None,
) -> GridNetwork:
    """Decoder blocks of Llama's make, a cell each: attention and SwiGLU, each behind RMSNorm and a residual.

    Args:
        num_blocks, d_model, num_heads: how many, how wide, and heads of attention.
        num_kv_heads: key and value heads; `num_heads` if None.
        dtype: the kind of number of the parameters, as in `morph`; float32 if None.
        device: of the parameters; the default if None.

    Raises:
        RangeError: a count is not positive.
        FormatError: heads do not divide the width, or the dtype is unknown.

    Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models"

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.transformer_network(2, 16, device="cpu")
        >>> net(pellucid.ones(1, 5, 16, device="cpu")).shape
        Size([1, 5, 16])
    """
    _counted("transformer_network", num_blocks=num_blocks, d_model=d_model, num_heads=num_heads)
    own = {} if dtype is None else {"dtype": dtype}
    norm = {"type": "rms_norm", "d_model": d_model}
    attention = {
        "type": "multi_head_attention", "d_model": d_model, "num_heads": num_heads,
        "num_kv_heads": num_heads if num_kv_heads is None else num_kv_heads,
    }  # fmt: skip
    parts = attention, {"type": "swiglu", "d_model": d_model}
    layers = [
        {"z": z, "l": n, "type": "residual", "sequential_layers": [norm, part], **own}
        for z in range(num_blocks)
        for n, part in enumerate(parts)
    ]
    return _network((num_blocks, 1, 1, 2), layers, device)


def cnn_network(
    input_size: int, num_classes: int, channels: int = 1, dtype: str | None = None, device=None
) -> GridNetwork:
    """Two convolutions with stride 2 and a dense layer, for square images.

    Args:
        input_size: sides of the images, at least 4.
        num_classes: numbers that come out.
        channels: of the images.
        dtype: the kind of number of the parameters, as in `morph`; float32 if None.
        device: of the parameters; the default if None.

    Raises:
        RangeError: a count is not positive, or the images are smaller than 4.

    Example:
        >>> import pellucid
        >>> pellucid.grid.cnn_network(8, 10, device="cpu")(pellucid.ones(2, 1, 8, 8, device="cpu")).shape
        Size([2, 10])
    """
    _counted("cnn_network", input_size=input_size - 3, num_classes=num_classes, channels=channels)
    own = {} if dtype is None else {"dtype": dtype}
    sides = input_size, -(-input_size // 2), -(-input_size // 4)
    widths = channels, 8, 16
    layers: list[dict[str, Any]] = [
        {
            "z": z, "type": "cnn2", "input_height": sides[z], "input_width": sides[z], "kernel_size": 3,
            "input_channels": widths[z], "filters": widths[z + 1], "stride": 2, "padding": 1,
            "activation": "relu", **own,
        }
        for z in range(2)
    ]  # fmt: skip
    flat = widths[2] * sides[2] ** 2
    layers.append({"z": 2, "type": "dense", "input_height": flat, "output_height": num_classes, **own})
    return _network((3, 1, 1, 1), layers, device)


def random_network(
    depth: int, rows: int, columns: int, layers_per_cell: int, d_model: int, seed: int = 0, device=None
) -> GridNetwork:
    """A layer of a type by chance at every place, for sequences (batch, time, d_model).

    Types are those of the 19 that keep such a shape, with activations by chance and new parameters.

    Args:
        depth, rows, columns, layers_per_cell: lengths of the volume's axes.
        d_model: width of all layers.
        seed: of types, activations and parameters.
        device: of the parameters; the default if None.

    Raises:
        RangeError: a count is not positive.

    Source: Xie et al. 2019, "Exploring Randomly Wired Neural Networks for Image Recognition", for networks by
        chance

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.random_network(2, 2, 2, 1, 8, seed=3, device="cpu")
        >>> net(pellucid.ones(1, 3, 8, device="cpu")).shape
        Size([1, 3, 8])
    """
    size = (depth, rows, columns, layers_per_cell)
    names = ("depth", "rows", "columns", "layers_per_cell")
    _counted("random_network", **dict(zip(names, size, strict=True)), d_model=d_model)
    random, shape = np.random.default_rng(seed), (1, 1, d_model)
    # Not those of integers, and not those whose specification says how long a sequence is.
    free = [kind for kind in LAYERS if not kind.startswith(("embedding", "cnn", "conv"))]
    fields = {kind: between(kind, shape, shape) for kind in free}
    kinds = [kind for kind, found in fields.items() if found is not None]
    layers = []
    for place in np.ndindex(size):
        kind = str(random.choice(kinds))
        place = dict(zip("zyxl", map(int, place), strict=True))
        activation = str(random.choice(list(ACTIVATIONS)))
        layers.append({**place, "type": kind, "activation": activation, **(fields[kind] or {})})
    with fork_rng():
        manual_seed(int(random.integers(1 << 31)))
        return _network(size, layers, device)
