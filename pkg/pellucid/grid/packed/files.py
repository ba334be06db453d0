"""Packed weights on disk: safetensors files and JSON with base64, each the same bytes when written again."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from ...errors import FormatError
from ...nn.modules.module import Module
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ...weights.document import as_bytes, parse_object
from ...weights.folder import open as open_file
from ...weights.saving import save_file
from ..loading.tensors import load_tensors
from .packing import PARTS, PackedTensor, packed_from
from .polymorphic import restore, stored

# The key of the header that says which tensors are parts of packed ones.
KEY = "pellucid.packed"
_TYPES = {"data": "|u1", "lows": "<f4", "factor": "<f4"}


def save_packed(module: Module, filename: str | PathLike) -> None:
    """Write a module's parameters and buffers to a safetensors file, packed as it has them.

    A packed parameter `weight` is tensors `weight.data`, `weight.scales` and so on; the header says its kind.
    Waits for the device.

    Args:
        module: morphed or not.
        filename: where to.

    Example:
        >>> import os, tempfile, pellucid
        >>> layer = pellucid.grid.morph(pellucid.nn.Linear(256, 256, device="cpu"), "binary", "weight")
        >>> path = os.path.join(tempfile.mkdtemp(), "layer.safetensors")
        >>> pellucid.grid.save_packed(layer, path)
        >>> os.path.getsize(path) < 10_000  # 8 KiB of bits and 1 KiB of bias, instead of 257 KiB
        True
    """
    tensors: dict[str, Tensor] = {}
    packed: dict[str, Any] = {}
    for name, value in stored(module).items():
        if isinstance(value, PackedTensor):
            packed[name] = _fields(value)
            tensors |= {f"{name}.{part}": t for part, t in value.parts.items()}
        else:
            tensors[name] = value
    save_file(tensors, filename, {KEY: json.dumps(packed, sort_keys=True)})


def load_packed(module: Module, filename: str | PathLike) -> Module:
    """Read what `save_packed` wrote into a module of the same make, and return it.

    Args:
        module: with the same parameters and buffers; it need not be morphed.
        filename: a path or URL.

    Raises:
        FormatError: the file does not say how it is packed, or its parts do not fit each other.
        WeightError: names or shapes are not the module's.

    Example:
        >>> import os, tempfile, pellucid
        >>> one, two = (pellucid.nn.Linear(4, 4, device="cpu") for _ in range(2))
        >>> path = os.path.join(tempfile.mkdtemp(), "layer.safetensors")
        >>> pellucid.grid.save_packed(pellucid.grid.morph(one, "fp4"), path)
        >>> bool((pellucid.grid.load_packed(two, path).weight == one.weight).all())
        True
    """
    checkpoint = open_file(filename)
    try:
        packed = parse_object(f"{filename}: {KEY}", as_bytes(checkpoint.metadata[KEY]), deepest=8)
    except (KeyError, TypeError) as error:
        raise FormatError(f"{filename}: its header has no list {KEY!r} of packed tensors.") from error
    if not all(isinstance(v, dict) for v in packed.values()):
        raise FormatError(f"{filename}: {KEY} must say the fields of each packed tensor.")
    plain = load_tensors(checkpoint)
    state: dict[str, Tensor | PackedTensor] = {}
    for name, fields in packed.items():
        parts = {p: plain.pop(key) for p in PARTS if (key := f"{name}.{p}") in plain}
        state[name] = packed_from(fields, parts, f"{filename}: {name}")
    return restore(module, {**state, **plain})


def to_json(value: Tensor | PackedTensor) -> str | dict[str, Any]:
    """A float32 tensor as base64, packed bits as their fields and base64 of their parts."""
    if not isinstance(value, PackedTensor):
        return _base64(value.float().numpy().astype("<f4"))
    return {**_fields(value), **{name: _base64(part.numpy()) for name, part in value.parts.items()}}


async def on_cpu_async(value: Tensor | PackedTensor) -> Tensor | PackedTensor:
    """A tensor or packed bits on the cpu device, read where Python cannot wait."""
    if not isinstance(value, PackedTensor):
        return await _read_async(value)
    parts = {name: await _read_async(part) for name, part in value.parts.items()}
    return PackedTensor(value.precision, value.shape, value.group, **parts)


async def _read_async(value: Tensor) -> Tensor:
    return tensor(await value.detach().numpy_async(), device="cpu")


def from_json(value: Any, shape: tuple[int, ...], where: str) -> Tensor | PackedTensor:
    """What `to_json` gave, of a known shape; refused if it is anything else.

    Raises:
        FormatError: no base64, or another number of bytes.
    """
    if not isinstance(value, Mapping):
        return tensor(_numbers(value, "<f4", where, shape), device="cpu")
    parts = {}
    for name in PARTS:
        if name in value:
            small = name == "scales" and "factor" in value
            kind = "|u1" if small else _TYPES.get(name, "<f4")
            parts[name] = tensor(_numbers(value[name], kind, f"{where}, {name}"), device="cpu")
    packed = packed_from(dict(value), parts, where)
    if packed.shape != shape:
        raise FormatError(f"{where}: its shape is {packed.shape}, but the parameter's is {shape}.")
    return packed


def _fields(value: PackedTensor) -> dict[str, Any]:
    return {"dtype": value.precision.name, "shape": list(value.shape), "group": value.group}


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def _numbers(text: Any, kind: str, where: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise FormatError(f"{where}: this is no base64: {error}") from error
    size = np.dtype(kind).itemsize
    wanted = len(data) // size * size if shape is None else int(np.prod(shape)) * size
    if len(data) != wanted:
        told = "whole numbers" if shape is None else f"the float32 of {shape}, which are {wanted}"
        raise FormatError(f"{where}: {len(data)} bytes are not {told}.")
    found = np.frombuffer(data, kind).astype(kind[1:])
    return found if shape is None else found.reshape(shape)
