"""JSON specifications of networks in a volume: read, written, with weights as base64."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import FormatError, PellucidError
from ..weights.document import as_bytes, parse_object
from .fields import OF_NETWORK, PLACE, Fields
from .layers import Layer
from .network import GridNetwork, Link, Position
from .packed.files import from_json, on_cpu_async, to_json
from .packed.polymorphic import restore, stored

SIZE = ("depth", "rows", "cols", "layers_per_cell")
# A description of a few bytes must not ask for a machine's memory.
LARGEST = 1 << 20  # positions
LEVELS = 128  # of lists and objects: layers that lie too deep are told by their place


def network_from_json(text: str | bytes | dict[str, Any], device=None, dtype=None) -> GridNetwork:
    """A network from its JSON specification.

    Keys: `id`, `depth`, `rows`, `cols`, `layers_per_cell`, `layers` and `links`. A layer has its position
    `z`, `y`, `x`, `l`, its `type`, `activation`, the fields of its type, whether it is `disabled`, the
    `dtype`, `group` and `scale_dtype` of its parameters, as in `morph`, and maybe `weights`: by the names of
    the parameters, little-endian float32 as base64, or the packed bits of another dtype with their scales. A
    link has `source` and `target`, four numbers each, and `combine`. Other keys are kept and written again.

    Args:
        text: JSON, or what it says.
        device, dtype: of the parameters; the defaults if None.

    Raises:
        FormatError: what is wrong in which layer and field; nothing is built.

    Example:
        >>> import pellucid
        >>> text = '{"layers": [{"type": "dense", "d_model": 2, "activation": "relu"}]}'
        >>> pellucid.grid.network_from_json(text, device="cpu").num_parameters()
        6
    """
    spec = text if isinstance(text, dict) else _parsed(text)
    fields = Fields(spec, "specification")
    size = Position(*[fields.count(name, 1) for name in SIZE])
    if np.prod(size, dtype=np.float64) > LARGEST:
        raise FormatError(f"specification: a volume of {tuple(size)} has more than {LARGEST} positions.")
    net = GridNetwork(size.z, size.y, size.x, size.layer)
    own = {"device": device, "dtype": dtype}
    for number, given in enumerate(fields.items("layers", [])):
        where = f"layer {number}"
        if not isinstance(given, dict):
            raise FormatError(f"{where}: a layer is an object with fields, not {given!r}.")
        place = Position(*(Fields(given, where).count(name, 0, 0) for name in PLACE))
        where = f"{where} at {place}"
        if any(p >= n for p, n in zip(place, size, strict=True)):
            raise FormatError(f"{where}: the volume is only {', '.join(map(str, size))}.")
        if net.layer(place) is not None:
            raise FormatError(f"{where}: there is a layer already.")
        inside = {k: v for k, v in given.items() if k not in OF_NETWORK}
        layer = Layer(inside, where, **own)
        if "weights" in given:
            _fill(layer, given["weights"], where)
        net.place(place, layer)
        net.enable(place, not Fields(given, where).flag("disabled"))
    for number, given in enumerate(fields.items("links", [])):
        _connect(given, f"link {number}", net)
    net.extra = {k: v for k, v in spec.items() if k not in (*SIZE, "layers", "links")}
    return net


def network_to_json(network: GridNetwork, weights: bool = True) -> str:
    """The JSON specification of a network of `Layer`s; reading it and writing it again gives the same text.

    Args:
        network: made by `network_from_json`, or of layers of the class `Layer`.
        weights: whether parameters and buffers are written, too.

    Raises:
        FormatError: a layer is not described by a specification.

    Example:
        >>> import pellucid
        >>> text = '{"layers": [{"type": "dense", "d_model": 2}]}'
        >>> net = pellucid.grid.network_from_json(text, device="cpu")
        >>> '"depth":1' in pellucid.grid.network_to_json(net, weights=False)
        True
    """
    return _dumped(_described(network, weights))


async def network_to_json_async(network: GridNetwork, weights: bool = True) -> str:
    """`network_to_json` for places where Python cannot wait.

    Args:
        network, weights: as in `network_to_json`.
    """
    spec = _described(network, weights)
    for layer in spec["layers"]:
        for name, value in layer.get("weights", {}).items():
            layer["weights"][name] = await on_cpu_async(value)
    return _dumped(spec)


def _described(network: GridNetwork, weights: bool) -> dict[str, Any]:
    """The specification, with parameters as they are stored."""
    layers = []
    for place, layer in network.layers():
        if not isinstance(layer, Layer):
            raise FormatError(
                f"network_to_json: the layer at {place} is a {type(layer).__name__}. Only layers that "
                "have a specification, of the class Layer, can be written as JSON."
            )
        own = {k: v for k, v in layer.specification.items() if k not in OF_NETWORK}
        found: dict[str, Any] = {**dict(zip(PLACE, place, strict=True)), **own}
        if place in network.disabled:
            found["disabled"] = True
        if weights and (state := stored(layer)):
            found["weights"] = state
        layers.append(found)
    links = [
        {"source": list(k.source), "target": list(k.target), "combine": k.combine} for k in network.links
    ]
    return {**network.extra, **dict(zip(SIZE, network.size, strict=True)), "layers": layers, "links": links}


def _dumped(spec: dict[str, Any]) -> str:
    return json.dumps(spec, separators=(",", ":"), sort_keys=True, default=to_json)


def _parsed(text: Any) -> dict[str, Any]:
    if not isinstance(text, (str, bytes, bytearray)):
        raise FormatError(f"specification: this is no JSON: it is a {type(text).__name__}.")
    return parse_object("specification", as_bytes(text), deepest=LEVELS)


def _connect(given: Any, where: str, net: GridNetwork) -> None:
    if not isinstance(given, dict):
        raise FormatError(f"{where}: a link is an object with source and target, not {given!r}.")
    fields = Fields(given, where)
    ends = []
    for name in ("source", "target"):
        place = fields.items(name)
        if len(place) != 4 or not all(type(p) is int for p in place):
            raise FormatError(f"{where}: {name} must be four integers, not {place!r}.")
        ends.append(tuple(place))
    try:
        link = Link(net.position(ends[0]), net.position(ends[1]), fields.text("combine", "add"))
        net.connect(link)
    except PellucidError as error:
        raise FormatError(f"{where}: {error}") from error


def _fill(layer: Layer, weights: Any, where: str) -> None:
    """Give a layer its parameters and buffers; all of them must be there, and fit."""
    have = stored(layer)
    if not isinstance(weights, dict) or set(weights) != set(have):
        named = sorted(weights) if isinstance(weights, dict) else weights
        raise FormatError(f"{where}: weights must be those of {', '.join(have) or 'nothing'}, not {named!r}.")
    where = f"{where}: the weights of"
    restore(layer, {n: from_json(v, tuple(have[n].shape), f"{where} {n}") for n, v in weights.items()})
    # Weights that were given as float32 are masters of the dtype that the layer says.
    layer.morph_as_specified()
