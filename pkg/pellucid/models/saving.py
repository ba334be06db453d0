"""``save_pretrained``: a model as a folder of ``config.json`` and safetensors, which transformers opens."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..nn.ao.quantization import input_quantization
from ..ops.shape.creation import empty
from ..quant.activations import DynamicQuantization
from ..quant.format import FORMATS, UNIT, QuantFormat
from ..quant.weight import planes_of
from ..tensors import dtypes as dt
from ..tensors.construct import tensor
from ..tensors.dtypes import DType
from ..tensors.tensor import Tensor
from ..weights.saving import save_tensors
from .generate.config import TABLE
from .gguf_changes import CHANGES
from .gguf_undoing import (
    HALVES,
    FolderWeight,
    converted,
    folder_weights,
    format_of,
    parameter_at,
    plain,
    read_weight,
)

Undone = Mapping[str, FolderWeight]  # weights of the folder that a GGUF was made of, by path
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


class Origin(NamedTuple):
    """The checkpoint of a model: the keys of its ``config.json``, none of a GGUF, and its tensors.

    ``tensors`` has (name, shape) by the path of the parameter that they fill, in the order of its rows.
    ``factors`` tells whether a GGUF changed the rotary frequencies; ``head`` is a GGUF without its tensors.
    ``files`` are the names of the files of weights: paths, or addresses.
    """

    keys: Mapping[str, Any] | None
    tensors: Mapping[str, list[tuple[str, tuple[int, ...]]]]
    factors: bool = False
    head: bytes = b""
    files: tuple[str, ...] = ()


def save_model(model: Any, save_directory: str | PathLike, max_shard_size: int | str) -> None:
    """What `PretrainedModel.save_pretrained` does."""
    most = _bytes(max_shard_size)
    folder = Path(save_directory)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"save_pretrained: {str(folder)!r} is a file. Give a folder.")
    undone = folder_weights(model)
    parts = _shards(model, most, undone)
    folder.mkdir(parents=True, exist_ok=True)
    where: dict[str, str] = {}
    total = 0
    for k, part in enumerate(parts, 1):
        file = "model.safetensors" if len(parts) == 1 else f"model-{k:05}-of-{len(parts):05}.safetensors"
        kinds = {name: empty(piece.shape, dtype=piece.dtype, device="meta") for name, piece in part.items()}
        save_tensors(kinds, folder / file, _reader(model, part, undone), {"format": "pt"})
        where |= dict.fromkeys(part, file)
        total += sum(t.numel() * t.itemsize for t in kinds.values())
    index = {"metadata": {"total_size": total}, "weight_map": where}
    documents: dict[str, Any] = {"config.json": config_keys(model)}
    if len(parts) > 1:
        documents["model.safetensors.index.json"] = index
    if (generation := getattr(model, "generation_config", None)) is not None:
        documents["generation_config.json"] = _settings(generation)
    for name, document in documents.items():
        text = json.dumps(document, indent=2, ensure_ascii=False)
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    if len(parts) == 1:  # of a larger model that was here
        (folder / "model.safetensors.index.json").unlink(missing_ok=True)


def _bytes(size: int | str) -> int:
    if isinstance(size, str):
        found = re.fullmatch(r"([0-9]+)\s*([KMG]I?B)", size.upper())
        size = int(found[1]) * _UNITS[found[2]] if found else 0
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ArgumentError("save_pretrained: max_shard_size is a number of bytes, or a text such as '5GB'.")
    return size


class _Piece(NamedTuple):
    """A tensor of a file: rows of a parameter, or a plane of a quantized one."""

    path: str
    shape: tuple[int, ...]
    dtype: DType
    rows: slice = slice(None)
    plane: int | None = None

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def _pieces(model: Any, undone: Undone) -> Iterator[tuple[str, _Piece]]:
    """What is written, by name."""
    origin, known = model.origin, {}
    if origin is not None and origin.keys is not None:
        known = origin.tensors
    tied = {
        path
        for path, source in model.ties().items()
        if model.get_parameter(path) is parameter_at(model, source)
    }
    for path, value in (undone or model.state_dict()).items():
        if path in tied:
            continue
        if isinstance(value, FolderWeight):
            shape, d, pieces = value.shape, format_of(model, value), value.names
        else:
            shape, d, pieces = tuple(value.shape), value.dtype, known.get(path, [])
        if d.is_quantized and d.name not in HALVES:
            yield from _planes(path, shape, FORMATS[d.name])
            continue
        if sum(prod(s) for _, s in pieces) != prod(shape):  # made here, or changed since it was loaded
            pieces = model.folder_names(path, shape)
        at = 0
        for name, piece in pieces:
            rows = prod(piece) * shape[0] // prod(shape) if prod(shape) else 0
            some = slice(at, at + rows) if len(pieces) > 1 else slice(None)
            yield name, _Piece(path, piece, HALVES.get(d.name) or d, some)
            at += rows


def _planes(path: str, shape: tuple[int, ...], fmt: QuantFormat) -> Iterator[tuple[str, _Piece]]:
    """The planes of a quantized weight, as `pellucid.weights.quantize` names them."""
    if shape[1] % UNIT:
        raise ArgumentError(
            f"save_pretrained: {path} is {fmt.name} of {shape[1]} columns, no whole units of {UNIT}. "
            "Load the model with dtype=pellucid.float32."
        )
    for k, plane in enumerate(fmt.planes):
        size = plane.rows(shape[0]), plane.row_bytes(fmt.units(shape[1]))
        yield f"{path.removesuffix('.weight')}.{fmt.name}_{plane.name}", _Piece(path, size, dt.uint8, plane=k)


def _shards(model: Any, most: int, undone: Undone) -> list[dict[str, _Piece]]:
    """What each file holds."""
    parts: list[dict[str, _Piece]] = [{}]
    size = 0
    for name, piece in _pieces(model, undone):
        if parts[-1] and size + piece.nbytes > most:
            parts.append({})
            size = 0
        parts[-1][name] = piece
        size += piece.nbytes
    return parts


def _reader(model: Any, part: Mapping[str, _Piece], undone: Undone) -> Callable[[str], Tensor]:
    """What gives the tensors of a file. The last weight stays until another one is asked for."""
    last: list[Any] = ["", None]

    def read(name: str) -> Tensor:
        piece = part[name]
        if last[0] != piece.path:
            last[:] = piece.path, _read(model, piece.path, undone)
        value = last[1]
        if piece.plane is not None:
            return tensor(value[piece.plane].reshape(piece.shape), device="cpu")
        return (value if piece.rows == slice(None) else value[piece.rows]).reshape(piece.shape)

    return read


def _read(model: Any, path: str, undone: Undone) -> Any:
    """A parameter as a folder has it: a tensor, or the planes of a quantized one."""
    if undone:
        return read_weight(model, undone[path])
    value = parameter_at(model, path).detach()
    is_quantized = value.dtype.is_quantized and value.dtype.name not in HALVES
    return planes_of(value) if is_quantized else plain(value)


def config_keys(model: Any) -> dict[str, Any]:
    """The keys of ``config.json``: those that were there, with the values that count now."""
    config, kind = model.config, type(model)
    origin = dict((model.origin and model.origin.keys) or {})
    origin.pop("quantization_config", None)
    before = type(config).from_dict(origin) if origin else None
    written: dict[str, Any] = {}
    for f in fields(config):
        value = getattr(config, f.name)
        # What is there keeps its way of writing. What config.json has no key for, a model of one never has.
        is_said = value is not None or f.default is not None
        if f.name in config.table and is_said and not (before and getattr(before, f.name) == value):
            # Which of the names counts depends on the version that reads it.
            names = [key for key, field in config.renamed.items() if field == f.name]
            written |= dict.fromkeys((f.name, *names), value)
    # How a GGUF has weights is nothing that a folder says.
    written = {key: value for key, value in written.items() if key not in {*converted(model)} & {*CHANGES}}
    if model.origin is not None and model.origin.factors:
        written |= _slowed(model)
    # As which dtype transformers reads all of it.
    sizes, planes = Counter({"float32": 0}), 0
    for _, piece in _pieces(model, folder_weights(model)):
        sizes[piece.dtype.name] += prod(piece.shape) if piece.plane is None else 0
        planes += piece.plane is not None
    if planes:
        written["quantization_config"] = {"quant_method": "pellucid", **_activations(model)}
    written["torch_dtype" if "torch_dtype" in origin else "dtype"] = max(sizes, key=sizes.__getitem__)
    return {"architectures": [kind.__name__], "model_type": kind.model_types[0], **origin, **written}


def _activations(model: Any) -> dict[str, Any]:
    """Which layers round their input, and how."""
    groups: dict[DynamicQuantization, list[str]] = {}
    for path, module in model.named_modules():
        if (how := input_quantization(module)) is not None:
            groups.setdefault(how, []).append(path)
    found = [{**how.to_dict(), "layers": layers} for how, layers in groups.items()]
    return {"input_activations": found} if found else {}


def _slowed(model: Any) -> dict[str, Any]:
    """Rotary frequencies with factors of their own, as a file says them that has the same for all lengths."""
    positions = model.config.max_position_embeddings
    factors = model.decoder.rotary_emb.slowed().tolist()
    return {
        "rope_scaling": {
            "rope_type": "longrope", "short_factor": factors, "long_factor": factors, "factor": 1.0,
            "attention_factor": 1.0, "original_max_position_embeddings": positions,
        }
    }  # fmt: skip


def _settings(generation: Any) -> dict[str, Any]:
    """The keys of ``generation_config.json`` that are not their defaults."""
    default = type(generation)()
    return {k: v for k in TABLE if (v := getattr(generation, k)) != getattr(default, k)}


__all__ = ["Origin", "config_keys", "save_model"]
