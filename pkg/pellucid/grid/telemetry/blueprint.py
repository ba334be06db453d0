"""Blueprints of networks: layers, shapes, counts of parameters as JSON; methods of objects by reflection."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ...errors import ArgumentError
from ...nn.modules.module import Module
from ...tensors.tensor import Tensor
from ..branches import Parallel
from ..evolution.dna import kind_of
from ..evolution.mutation import shapes
from ..layers import Layer
from ..network import GridNetwork


def blueprint(network: GridNetwork, name: str = "model", example: Tensor | None = None) -> dict[str, Any]:
    """What a network is made of, ready for JSON.

    Args:
        network: whose layers, links and counts of parameters are told.
        name: of the network.
        example: an input, for the shapes that layers take and give; null without.

    Returns:
        id, total_layers, total_parameters, links, and of each layer z, y, x, l, type, activation, dtype,
        parameters, input_shape, output_shape, disabled, and where it has some branches, with combine_mode, or
        the layers within.

    Raises:
        ArgumentError: this is no network in a volume.

    Example:
        >>> import pellucid
        >>> net = pellucid.grid.network_from_json('{"layers": [{"type": "dense", "d_model": 2}]}')
        >>> told = pellucid.grid.blueprint(net)
        >>> told["total_parameters"], told["layers"][0]["type"]
        (6, 'dense')
    """
    if not isinstance(network, GridNetwork):
        raise ArgumentError(f"blueprint: the network must be a GridNetwork, not {type(network).__name__}.")
    inputs, outputs = ({}, {}) if example is None else shapes(network, example)
    layers = []
    for place, layer in network.layers():
        layers.append({
            **dict(zip("zyxl", place, strict=True)),
            **_told(layer),
            "input_shape": list(inputs[place].shape) if place in inputs else None,
            "output_shape": list(outputs[place].shape) if place in outputs else None,
            "disabled": place in network.disabled,
        })  # fmt: skip
    return {
        "id": name,
        "total_layers": len(layers),
        "total_parameters": network.num_parameters(),
        "total_bytes": network.num_bytes(),
        "links": [
            {"source": list(k.source), "target": list(k.target), "combine": k.combine} for k in network.links
        ],
        "layers": layers,
    }


def _told(layer: Module) -> dict[str, Any]:
    inner = layer.layer if isinstance(layer, Layer) else layer
    told: dict[str, Any] = {
        "type": kind_of(layer),
        "activation": layer.activation if isinstance(layer, Layer) else None,
        "dtype": layer.specification.get("dtype", "float32") if isinstance(layer, Layer) else None,
        "parameters": sum(p.numel() for p in layer.parameters()),
    }
    if isinstance(inner, Parallel):
        told |= {"branches": [_told(b) for b in inner.branches], "combine_mode": inner.combine}
    elif within := list(_nearest(inner)):
        told["layers"] = [_told(m) for m in within]
    return told


def _nearest(module: Module) -> Iterator[Layer]:
    """The layers inside of a module, but not those inside of these."""
    for child in module.children():
        if isinstance(child, Layer):
            yield child
        else:
            yield from _nearest(child)


@dataclass(frozen=True)
class ParameterInfo:
    """An argument of a method: its name, type and default as they are written; empty if there are none."""

    name: str
    type: str
    default: str


@dataclass(frozen=True)
class MethodInfo:
    """A method: its name, arguments, what it returns, and the first line of what is said of it."""

    name: str
    parameters: list[ParameterInfo]
    returns: str
    summary: str

    @property
    def signature(self) -> str:
        """The method as it is called."""
        told = []
        for p in self.parameters:
            told.append(p.name + (f": {p.type}" if p.type else "") + (f" = {p.default}" if p.default else ""))
        return f"{self.name}({', '.join(told)})" + (f" -> {self.returns}" if self.returns else "")


def methods(of: Any) -> list[MethodInfo]:
    """The public methods of an object or class, by name: for pages that offer them.

    Args:
        of: an object or a class.

    Example:
        >>> import pellucid
        >>> found = {m.name: m for m in pellucid.grid.methods(pellucid.grid.GridNetwork)}
        >>> found["layer"].signature
        'layer(place: tuple[int, int, int, int]) -> Module | None'
    """
    kind = of if inspect.isclass(of) else type(of)
    found = []
    for name, function in inspect.getmembers(kind, callable):
        if name.startswith("_") or inspect.isclass(function):
            continue
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # functions of C that do not say how they are called
            continue
        given = list(signature.parameters.values())
        if given and not isinstance(inspect.getattr_static(kind, name), (staticmethod, classmethod)):
            given = given[1:]
        marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        parameters = [
            ParameterInfo(
                marks.get(p.kind, "") + p.name,
                _written(p.annotation),
                "" if p.default is p.empty else repr(p.default),
            )
            for p in given
        ]
        summary = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
        found.append(MethodInfo(name, parameters, _written(signature.return_annotation), summary))
    return found


def methods_json(of: Any) -> str:
    """`methods` as JSON, for callers that are not Python.

    Args:
        of: an object or a class.

    Example:
        >>> import json, pellucid
        >>> told = json.loads(pellucid.grid.methods_json(pellucid.grid.GridNetwork))
        >>> next(m for m in told if m["name"] == "num_bytes")["returns"]
        'int'
    """
    return json.dumps([asdict(m) | {"signature": m.signature} for m in methods(of)])


def _written(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
