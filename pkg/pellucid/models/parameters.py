"""What the tensors of a checkpoint become: matrices that stay packed, elements, several as one."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ..device import device as Device
from ..device.cpu import CpuStorage
from ..device.stream import Storage, stream
from ..ops.shape.joining import cat
from ..ops.shape.movement import cast
from ..quant.format import FORMATS
from ..quant.rows import RowStorage, row_chunks
from ..quant.weight import largest_buffer, weight_from_blocks
from ..tensors import dtypes as dt
from ..tensors.dtypes import DType
from ..tensors.meta import meta
from ..tensors.tensor import Tensor
from ..weights.checkpoint import Checkpoint, TensorInfo
from .stored import StoredWeight

_HALVES = {"float16": "f16", "bfloat16": "bf16"}


def plain_tensors(
    wanted: Mapping[str, Tensor],
    checkpoint: Checkpoint,
    names: Mapping[str, str],
    stored: Mapping[str, StoredWeight],
) -> list[TensorInfo]:
    """The tensors of a checkpoint that are parameters, or some rows of one, as matrices where those are.

    Args:
        wanted: parameters by path.
        checkpoint, names, stored: as in `load_weights`.
    """
    return [
        as_matrix(checkpoint[source], tuple(wanted[target].shape))
        for source, target in names.items()
        if target not in stored
    ]


def as_matrix(info: TensorInfo, wanted: tuple[int, ...]) -> TensorInfo:
    """A stack of matrices, or a row, as the matrix that the model has of it."""
    if len(wanted) != 2 or len(info.shape) not in (1, 3) or info.shape[-1] != wanted[1]:
        return info
    return info._replace(shape=(prod(info.shape[:-1]), wanted[1]))


def kept_format(info: TensorInfo) -> str | None:
    """The weight format in which a tensor stays, or None for plain elements."""
    if info.dtype in FORMATS:
        return info.dtype
    return _HALVES.get(info.dtype) if len(info.shape) == 2 else None


def packed(info: TensorInfo, raw: Any, device: Device) -> Tensor:
    """A matrix in its format, of halves and blocks; anything else as `unpacked` has it."""
    format = kept_format(info)
    if format is not None and len(info.shape) == 2:
        if device.type == "webgpu":
            words = meta((raw.nbytes // 4,), dt.uint32, device)
            raw = Tensor(raw, words, 0)
        rows, columns = info.shape
        return weight_from_blocks(raw, format, (rows, columns), device=device)
    return unpacked(info, raw, device)


def unpacked(info: TensorInfo, raw: Any, device: Device) -> Tensor:
    """A tensor in float32 where the file has halves: norms and biases take part in float32 arithmetic."""
    x = elements(info, raw, device)
    return cast(x, dt.float32) if x.dtype in (dt.float16, dt.bfloat16) else x


def elements(info: TensorInfo, raw: Any, device: Device) -> Tensor:
    """A tensor as the file has it; elements of a byte that are no dtype here are bytes."""
    d = dt.NAMES.get(info.dtype, dt.uint8)
    storage = raw if device.type == "webgpu" else CpuStorage(_plain(raw, d), "weight")
    return Tensor(storage, meta(info.shape, d, device), 0)


def _plain(raw, d: DType) -> np.ndarray:
    data = np.frombuffer(raw, np.uint8)
    if d is dt.bfloat16:
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert d.numpy is not None
    return data.view(d.numpy).copy()


def joined(parts: list[Tensor], shape) -> Tensor:
    """A parameter of this shape of tensors that are rows of it, one below the other."""
    if len(parts) == 1:
        return parts[0]
    d = parts[0].dtype
    if not d.is_quantized:
        return cat(parts)
    chunks = [c for part in parts for c in row_chunks(part)]
    m = chunks[0]._meta
    whole = meta((sum(c.shape[0] for c in chunks), prod(shape[1:])), m.dtype, m.device)
    # Halves are rows without gaps: those of several tensors may be one buffer.
    if d.name in _HALVES.values() and m.shape[1] % 32 == 0:
        sizes = [c.shape[0] * m.shape[1] * 2 for c in chunks]
        if m.device.type == "cpu":
            data = [c._storage.data.view(np.uint8)[:n] for c, n in zip(chunks, sizes, strict=True)]
            return Tensor(CpuStorage(np.concatenate(data).view(np.uint32), "weight"), whole, 0)
        if sum(sizes) <= largest_buffer():
            storage, at = Storage(sum(sizes), "weight"), 0
            for chunk, n in zip(chunks, sizes, strict=True):
                stream().copy(chunk._storage, storage, 0, at, n)
                at += n
            return Tensor(storage, whole, 0)
    return Tensor(RowStorage(chunks), whole, 0)
