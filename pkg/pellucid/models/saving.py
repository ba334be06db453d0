"""``save_pretrained``: a model as a folder of ``config.json`` and safetensors, which transformers opens."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import fields, replace
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..device import device as Device
from ..errors import ArgumentError
from ..ops.shape.creation import empty
from ..quant.format import FORMATS, UNIT, QuantFormat
from ..quant.weight import dequantize, planes_of
from ..tensors import dtypes as dt
from ..tensors.construct import tensor
from ..tensors.dtypes import DType
from ..tensors.tensor import Tensor
from ..weights.saving import save_tensors
from .generate.config import TABLE
from .gguf_changes import CHANGES, TensorChange

# What packed halves are as elements.
_HALVES: dict[str, dt.DType] = {"f16": dt.float16, "bf16": dt.bfloat16}
Undo = tuple[tuple[str, TensorChange], ...]  # settings, and what each changed
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


class Origin(NamedTuple):
    """The checkpoint of a model: the keys of its ``config.json``, none of a GGUF, and its tensors.

    ``tensors`` has (name, shape) by the path of the parameter that they fill, in the order of its rows.
    ``factors`` tells whether a GGUF changed the rotary frequencies; ``head`` is a GGUF without its tensors.
    """

    keys: Mapping[str, Any] | None
    tensors: Mapping[str, list[tuple[str, tuple[int, ...]]]]
    factors: bool = False
    head: bytes = b""


def save_model(model: Any, save_directory: str | PathLike, max_shard_size: int | str) -> None:
    """What `PretrainedModel.save_pretrained` does."""
    most = _bytes(max_shard_size)
    folder = Path(save_directory)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"save_pretrained: {str(folder)!r} is a file. Give a folder.")
    undone = _undone(model)
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


def _pieces(model: Any, undone: Mapping[str, Undo]) -> Iterator[tuple[str, _Piece]]:
    """What is written, by name."""
    origin = model.origin
    known = origin.tensors if origin is not None and origin.keys is not None else {}
    tied = {path for path, source in model.ties().items() if model.get_parameter(path) is _at(model, source)}
    for path, value in model.state_dict().items():
        if path in tied:
            continue
        shape, d = tuple(value.shape), value.dtype
        if d.is_quantized and d.name not in _HALVES:
            if not all(change.keeps_rows for _, change in undone.get(path, ())):
                raise ArgumentError(
                    f"save_pretrained: {path} is {d}, and this architecture's GGUF has its columns otherwise "
                    "than a folder. Load the model with dtype=pellucid.float32."
                )
            yield from _planes(path, shape, FORMATS[d.name])
            continue
        pieces = known.get(path, [])
        if sum(prod(s) for _, s in pieces) != value.numel():
            # Made here, of a GGUF, or changed since it was loaded.
            for _, change in undone.get(path, ()):
                if change.parts:
                    shape = shape[1] * change.parts, shape[0] // change.parts
            pieces = model.folder_names(path, shape)
        at = 0
        for name, piece in pieces:
            rows = prod(piece) * shape[0] // value.numel() if value.numel() else 0
            some = slice(at, at + rows) if len(pieces) > 1 else slice(None)
            yield name, _Piece(path, piece, _HALVES.get(d.name) or d, some)
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


def _at(model: Any, path: str) -> Any:
    owner, _, name = path.rpartition(".")
    return getattr(model.get_submodule(owner), name)


def _shards(model: Any, most: int, undone: Mapping[str, Undo]) -> list[dict[str, _Piece]]:
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


def _reader(model: Any, part: Mapping[str, _Piece], undone: Mapping[str, Undo]) -> Callable[[str], Tensor]:
    """What gives the tensors of a file. The last weight stays until another one is asked for."""
    last: list[Any] = ["", None]

    def read(name: str) -> Tensor:
        piece = part[name]
        if last[0] != piece.path:
            last[:] = piece.path, _read(model, piece.path, undone.get(piece.path, ()))
        value = last[1]
        if piece.plane is not None:
            return tensor(value[piece.plane].reshape(piece.shape), device="cpu")
        return (value if piece.rows == slice(None) else value[piece.rows]).reshape(piece.shape)

    return read


def _read(model: Any, path: str, undo: Undo) -> Any:
    """A parameter as a folder has it: a tensor, or the planes of a quantized one."""
    value = _at(model, path).detach()
    if value.dtype.is_quantized and value.dtype.name not in _HALVES:
        planes, shared = planes_of(value), [plane.shared for plane in FORMATS[value.dtype.name].planes]
        for _, change in undo:
            assert change.rows is not None  # `_pieces` saw to it
            order = np.argsort(change.rows)
            planes = [p if same else p[order] for p, same in zip(planes, shared, strict=True)]
        return planes
    if value.dtype.is_quantized:
        value = dequantize(value).to(_HALVES[value.dtype.name])
    for setting, change in reversed(undo):
        if change.values is not None:
            value = _VALUES[setting](value)
        if change.columns is not None:
            value = value[:, tensor(np.argsort(change.columns), device=value.device)]
        if change.rows is not None:
            value = value[tensor(np.argsort(change.rows), device=value.device)]
        if change.parts:
            value = value.unflatten(0, (change.parts, -1)).transpose(1, 2).flatten(0, 1)
    return value


# What undoes a change of numbers.
_VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "norms_from_one": lambda x: x - 1,
    "rates_are_logs": lambda x: (-x).log(),
}


def _undone(model: Any) -> dict[str, Undo]:
    """The changes that llama.cpp's converter made to a model of a GGUF, by path of the parameter."""
    settings = [s for s in _converted(model) if s in CHANGES]
    if not settings:
        return {}
    config = replace(
        model.config, **{s: type(model.config).__dataclass_fields__[s].default for s in settings}
    )

    def made() -> Any:
        with Device("meta"):
            return type(model)(config)

    # Ctrl-C where the `with` ends may leave its device, but not in the program's context.
    before, found = copy_context().run(made), {}
    known = before.state_dict()
    for path in model.state_dict():
        steps = [(s, c) for s in settings if path in known for c in CHANGES[s](before, TensorChange(path))]
        if path not in known or any(c.path != path for _, c in steps):
            raise ArgumentError(
                f"save_pretrained: this {type(model).__name__} is of a GGUF, which has {path} in several "
                "weights. Load the folder that it was made of."
            )
        found[path] = tuple((s, c) for s, c in steps if not c.keeps_rows or c.rows is not None)
    return found


def _converted(model: Any) -> list[str]:
    """The settings that a GGUF has decided, of a model that is of one."""
    if model.origin is None or model.origin.keys is not None:
        return []
    settings = getattr(model.config_class, "gguf_settings", {})
    return [s for s, value in settings.items() if getattr(model.config, s) == value]


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
        if f.name in config.table and value is not None and not (before and getattr(before, f.name) == value):
            # Which of the names counts depends on the version that reads it.
            names = [key for key, field in config.renamed.items() if field == f.name]
            written |= dict.fromkeys((f.name, *names), value)
    # How a GGUF has weights is nothing that a folder says.
    written = {key: value for key, value in written.items() if key not in {*_converted(model)} & {*CHANGES}}
    if model.origin is not None and model.origin.factors:
        written |= _slowed(model)
    # As which dtype transformers reads all of it.
    sizes, planes = Counter({"float32": 0}), 0
    for _, piece in _pieces(model, {}):
        sizes[piece.dtype.name] += prod(piece.shape) if piece.plane is None else 0
        planes += piece.plane is not None
    if planes:
        written["quantization_config"] = {"quant_method": "pellucid"}
    written["torch_dtype" if "torch_dtype" in origin else "dtype"] = max(sizes, key=sizes.__getitem__)
    return {"architectures": [kind.__name__], "model_type": kind.model_types[0], **origin, **written}


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
