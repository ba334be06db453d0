"""Quantized weights of safetensors: which tensors make one, by the ``quantization_config``."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .. import weights
from ..errors import FormatError
from ..quant.activations import LAYER, DynamicQuantization
from ..quant.format import FORMATS, QuantFormat
from ..quant.stored import WANTED, Stored
from ..quant.weight import weight_from_planes
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint, TensorInfo
from ..weights.document import parse_object
from ..weights.fields import shown

_LONGEST_STATE = 1 << 12


@dataclass(frozen=True)
class StoredWeight:
    """A quantized weight as its checkpoint has it.

    Args:
        format: what it will be.
        stored: how it lies in the file.
        settings: the checkpoint's quantization_config.
        infos: its tensors, by what follows the layer's name.
        shape: the weight's.
        activations: how its layer rounds what it multiplies, if it does.
    """

    format: QuantFormat
    stored: Stored
    settings: Mapping[str, Any]
    infos: Mapping[str, TensorInfo]
    shape: tuple[int, int]
    activations: DynamicQuantization | None = None

    def weight(self, tensors: list[Tensor]) -> Tensor:
        """The weight of its tensors, which are in the order of ``infos``."""
        planes = self.stored.planes(dict(zip(self.infos, tensors, strict=True)), self.settings)
        return weight_from_planes(planes, self.format.name, self.shape)


def find_stored(
    checkpoint: Checkpoint, settings: Any, parameters: Mapping[str, Tensor]
) -> Generator[tuple, Any, tuple[dict[str, StoredWeight], set[str]]]:
    """Steps that find the quantized weights of a checkpoint.

    Args:
        checkpoint: of a folder.
        settings: ``quantization_config`` of its ``config.json``, or None.
        parameters: of the model, by name.

    Returns:
        The weights by the name that they would have as plain tensors, and the names of tensors that are no
        more needed.

    Raises:
        FormatError: the settings are not known, or weights, one or all, are not stored as they say.
    """
    found: dict[str, StoredWeight] = {}
    expected: list[tuple[TensorInfo, str]] = []
    passed: set[str] = set()
    if not settings:
        return found, passed
    method = settings.get("quant_method") if isinstance(settings, Mapping) else None
    settings = _flat(checkpoint.name, settings)
    # Of several ways the one with the most tensors: the others do not know of all.
    matches = sorted(_matches(checkpoint, _ways(checkpoint.name, method, settings)), key=lambda m: len(m[3]))
    matches = list({layer: (f, s, layer, infos) for f, s, layer, infos in matches}.values())
    if not matches:
        raise FormatError(
            f"{checkpoint.name}: quantization_config says {method!r}, but no weight is stored so. Remove it "
            "from config.json if they are floats that are meant as they are."
        )
    states = yield from _states(checkpoint, matches)
    for format, stored, layer, infos in matches:
        known = {**settings, **states.get(layer, {}), LAYER: layer}
        if (parameter := parameters.get(f"{layer}.weight")) is not None:
            known[WANTED] = tuple(parameter.shape)
        try:
            shape = stored.shape({part: info.shape for part, info in infos.items()}, known)
            activations = stored.activations(known)
        except FormatError as error:
            raise FormatError(
                f"{checkpoint.name}: {layer}: {error} Load another file of the model, such as a GGUF."
            ) from None
        found[f"{layer}.weight"] = StoredWeight(format, stored, known, infos, shape, activations)
        others = {f"{layer}.{part}" for part in stored.expected}
        others = {n for n in others if n in checkpoint and n not in parameters}
        if any(checkpoint[n].numel > prod(shape) for n in others):
            raise FormatError(
                f"{checkpoint.name}: {layer}: a tensor beside the weight has more elements than it. The "
                "file is damaged."
            )
        expected += [(checkpoint[n], f"{layer}.weight") for n in sorted(others)]
        passed |= others | {f"{layer}.{part}" for part in (*stored.ignored, stored.state)}
    if expected:
        infos = [info for info, _ in expected]
        arrays = yield weights, "read", (checkpoint, infos), {}
        for (info, target), raw in zip(expected, arrays, strict=True):
            _check(checkpoint, info, raw, found[target])
    return found, passed


def _matches(checkpoint: Checkpoint, ways: list[tuple[QuantFormat, Stored]]):
    """The weights that are stored in one of the ways: (format, way, layer, tensors by part)."""
    for format, stored in ways:
        first = next(iter(stored.tensors))
        for name in checkpoint:
            layer, _, ending = name.rpartition(stored.separator)
            whole = {part: f"{layer}{stored.separator}{part}" for part in stored.tensors}
            infos = {part: checkpoint[n] for part, n in whole.items() if n in checkpoint}
            if ending != first or infos.keys() != stored.tensors.keys():
                continue
            if stored.state and f"{layer}.{stored.state}" not in checkpoint:
                continue
            if all(infos[part].dtype in dtypes for part, dtypes in stored.tensors.items()):
                yield format, stored, layer, infos


def _flat(name: str, settings: Any) -> Any:
    """Settings with those of compressed-tensors for layers, which stand in groups, among the others."""
    groups = settings.get("config_groups") if isinstance(settings, Mapping) else None
    if not isinstance(groups, Mapping):
        return settings
    kinds = []
    for group in groups.values():
        of_weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(of_weights, Mapping):
            format, inputs = group.get("format") or settings.get("format"), group.get("input_activations")
            kinds.append({**of_weights, "format": format, "input_activations": inputs})
    if any(kind != kinds[0] for kind in kinds):
        raise FormatError(
            f"{name}: config_groups of quantization_config quantize weights in {len(kinds)} ways; one is "
            "read. Load another file of the model, such as a GGUF."
        )
    return {**settings, **kinds[0]} if kinds else settings


def _states(checkpoint: Checkpoint, matches: list) -> Generator[tuple, Any, dict[str, dict]]:
    """Steps that read what a tensor of JSON says of a weight, by layer."""
    infos = {layer: checkpoint[f"{layer}.{stored.state}"] for _, stored, layer, _ in matches if stored.state}
    for info in infos.values():
        if info.nbytes > _LONGEST_STATE:
            raise FormatError(
                f"{checkpoint.name}: {info.name} has {info.nbytes:,} bytes; {_LONGEST_STATE:,} of JSON are "
                "allowed. The file is damaged."
            )
    arrays = (yield weights, "read", (checkpoint, list(infos.values())), {}) if infos else []
    return {
        layer: parse_object(f"{checkpoint.name}: {info.name}", raw.tobytes())
        for (layer, info), raw in zip(infos.items(), arrays, strict=True)
    }


def _ways(name: str, method: Any, settings: Mapping[str, Any]) -> list[tuple[QuantFormat, Stored]]:
    """The formats, and the ways of storing them, that are the ones of the settings."""
    known = [(f, s) for f in FORMATS.values() for s in f.stored if method in s.methods]
    if not known:
        methods = sorted({m for f in FORMATS.values() for s in f.stored for m in s.methods})
        raise FormatError(
            f"{name}: quant_method {shown(method)} of quantization_config is not known. "
            f"There are {', '.join(methods)}. Load another file of the model, such as a GGUF."
        )
    ways = [(f, s) for f, s in known if not s.unread(settings)]
    if not ways:
        # A key that no way has such a value of, or else one that does not go with the others.
        keys = sorted({key for _, s in known for key in s.unread(settings)})
        read = {key: [v for _, s in known for v in s.when.get(key, ())] for key in keys}
        key = next((key for key in keys if settings.get(key) not in read[key]), keys[0])
        values = ", ".join(dict.fromkeys(map(str, read[key])))
        raise FormatError(
            f"{name}: {key} {shown(settings.get(key))} of quantization_config is not read for "
            f"{method}; {values} can be. Load another file of the model, such as a GGUF."
        )
    return ways


def _check(checkpoint: Checkpoint, info: TensorInfo, raw: np.ndarray, weight: StoredWeight) -> None:
    wanted = weight.stored.expected[info.name.rpartition(".")[2]]
    is_read = info.dtype == wanted.dtype
    if not is_read or not wanted.holds(raw.view(wanted.dtype), weight.shape, weight.settings):
        raise FormatError(
            f"{checkpoint.name}: {info.name}: {wanted.otherwise}. Load another file of the model, "
            "such as a GGUF."
        )
