"""``save_pretrained``: a model as a folder of ``config.json`` and safetensors, which transformers opens."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..quant.weight import dequantize
from ..tensors import dtypes as dt
from ..tensors.tensor import Tensor
from ..weights.saving import save_file
from .generate.config import TABLE

# What packed halves are as elements.
_HALVES: dict[str, dt.DType] = {"f16": dt.float16, "bf16": dt.bfloat16}
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
    most, origin = _bytes(max_shard_size), model.origin
    if origin is None or origin.keys is None:
        _check_named(model, origin)
    folder = Path(save_directory)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"save_pretrained: {str(folder)!r} is a file. Give a folder.")
    parts = _shards(model, most)
    folder.mkdir(parents=True, exist_ok=True)
    where: dict[str, str] = {}
    total = 0
    for k, part in enumerate(parts, 1):
        file = "model.safetensors" if len(parts) == 1 else f"model-{k:05}-of-{len(parts):05}.safetensors"
        tensors = {name: _elements(model, path, rows, shape) for name, (path, rows, shape) in part.items()}
        save_file(tensors, folder / file, {"format": "pt"})
        where |= dict.fromkeys(part, file)
        total += sum(t.numel() * t.itemsize for t in tensors.values())
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


def _check_named(model: Any, origin: Origin | None) -> None:
    """Refuse models without a folder whose weights lie otherwise than in one."""
    kind = type(model).__name__
    if any(".experts." in path for path in model.state_dict()):
        raise ArgumentError(
            f"save_pretrained: the experts of this {kind} lie beside each other, and only a folder says what "
            "they are called. Load one of that architecture, and give it these weights by load_state_dict()."
        )
    if origin is None:
        return
    settings = {*getattr(model.config_class, "gguf_settings", ())} - {"rope_interleaved"}
    if settings or origin.factors:
        why = "has factors for rotary frequencies" if origin.factors else "has weights in another form"
        raise ArgumentError(
            f"save_pretrained: this {kind} is of a GGUF, which {why}. Load the folder that it was made of."
        )


def _layout(model: Any) -> Iterator[tuple[str, str, slice, tuple[int, ...]]]:
    """Name, path of the parameter, its rows and shape, of each tensor that is written."""
    known = {} if model.origin is None else model.origin.tensors
    tied = {path for path, source in model.ties().items() if model.get_parameter(path) is _at(model, source)}
    for path, value in model.state_dict().items():
        if path in tied:
            continue
        shape = tuple(value.shape)
        pieces = known.get(path, [])
        if sum(prod(s) for _, s in pieces) != value.numel():
            # Made here, or changed since it was loaded.
            yield path, path, slice(None), shape
            continue
        at = 0
        for name, piece in pieces:
            rows = prod(piece) * shape[0] // value.numel() if value.numel() else 0
            yield name, path, slice(at, at + rows) if len(pieces) > 1 else slice(None), piece
            at += rows


def _at(model: Any, path: str) -> Any:
    owner, _, name = path.rpartition(".")
    return getattr(model.get_submodule(owner), name)


def _elementwise(d: dt.DType) -> dt.DType:
    """The dtype in a file."""
    return _HALVES.get(d.name, d)


def _shards(model: Any, most: int) -> list[dict[str, tuple[str, slice, tuple[int, ...]]]]:
    """What each file holds."""
    parts: list[dict] = [{}]
    size = 0
    for name, path, rows, shape in _layout(model):
        d = _at(model, path).dtype
        if d.is_quantized and d.name not in _HALVES:
            raise ArgumentError(
                f"save_pretrained: {path} is {d}. Load the model with dtype=pellucid.float32; "
                "pellucid.weights.quantize makes a quantized checkpoint of the folder."
            )
        nbytes = prod(shape) * _elementwise(d).itemsize
        if parts[-1] and size + nbytes > most:
            parts.append({})
            size = 0
        parts[-1][name] = path, rows, shape
        size += nbytes
    return parts


def _elements(model: Any, path: str, rows: slice, shape: tuple[int, ...]) -> Tensor:
    """The tensor that a file has under one name."""
    value = _at(model, path).detach()
    if value.dtype.is_quantized:
        value = dequantize(value).to(_HALVES[value.dtype.name])
    if _is_turned(model):
        value = _unturned(model, path, value)
    return (value if rows == slice(None) else value[rows]).reshape(shape)


def _is_turned(model: Any) -> bool:
    """Whether rows of queries and keys lie as the converter to GGUF leaves them, which no config says."""
    converted = "rope_interleaved" in getattr(model.config_class, "gguf_settings", ())
    named = model.origin is not None and model.origin.keys is not None
    return converted and not named and model.config.rope_interleaved


def _unturned(model: Any, path: str, value: Tensor) -> Tensor:
    """Rows of queries and keys in the order of ``config.json``'s models: a GGUF has the two halves of each
    head's columns one by one in turns."""
    config = model.config
    names, part = config.module_names, path.split(".")[-2]
    heads = {names.query: config.num_attention_heads, names.key: config.kv_heads}.get(part)
    if heads is None:
        return value
    apart = value.reshape(heads, -1, 2, *value.shape[1:])
    return apart.transpose(1, 2).reshape(value.shape)


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
    if _is_turned(model):
        del written["rope_interleaved"]
    # As which dtype transformers reads all of it.
    sizes = Counter({"float32": 0})
    for _, path, _, shape in _layout(model):
        d = _elementwise(_at(model, path).dtype)
        sizes[d.name] += 0 if d.is_quantized else prod(shape)
    written["torch_dtype" if "torch_dtype" in origin else "dtype"] = max(sizes, key=sizes.__getitem__)
    return {"architectures": [kind.__name__], "model_type": kind.model_types[0], **origin, **written}


def _settings(generation: Any) -> dict[str, Any]:
    """The keys of ``generation_config.json`` that are not their defaults."""
    default = type(generation)()
    return {k: v for k in TABLE if (v := getattr(generation, k)) != getattr(default, k)}


__all__ = ["Origin", "config_keys", "save_model"]
