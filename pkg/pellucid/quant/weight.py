"""Quantized weights as tensors: from planes, or from a file's blocks, in as many buffers as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import device as Device
from ..device import get_default_device, resolved
from ..device.cpu import CpuStorage
from ..device.stream import Storage, stream
from ..errors import DeviceError, DTypeError, FormatError, ShapeError
from ..ops.quant.products import dequantize, repack_rows
from ..tensors.dtypes import DType, uint32
from ..tensors.meta import meta
from ..tensors.tensor import Tensor
from .format import BLOCK_FORMATS, FORMATS, BlockFormat, QuantFormat
from .planes import join_planes, repack_blocks, split_planes
from .rows import RowStorage, moved, row_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

# Rows of a chunk, and of a piece that is repacked at once, start at multiples of this, so that no
# word has two writers.
_STEP = 16
# Bytes of raw blocks copied aside at once where the whole file part is too large to bind.
_PIECE = 32 << 20


def weight_from_blocks(raw, format: str | DType, shape: tuple[int, int], device=None) -> Tensor:
    """A quantized weight from the blocks of a GGUF file, repacked to planes where it will live.

    Args:
        raw: the blocks: bytes, a uint8 array, or a contiguous uint8 or uint32 tensor that begins at a word.
        format: a name of `FORMATS` such as ``"q4_1"``, or its dtype.
        shape: (rows, columns).
        device: where; that of ``raw`` if it is a tensor, else the default device.

    Returns:
        A tensor of dtype ``format``, without gradient. F16 and BF16 rows of whole units lie as planes
        already: such a ``raw`` becomes the weight's storage.

    Raises:
        FormatError: the number of bytes is not that of the shape.
        ShapeError: the columns are not whole blocks.
        DTypeError: there is no such format, or it has no blocks.

    Source: the block layouts of the PyPI package ``gguf`` (gguf.quants)

    Example:
        >>> weight_from_blocks(bytes(40), "q4_1", (1, 64), device="cpu").shape
        Size([1, 64])
    """
    fmt = BLOCK_FORMATS.get(quant_format(format).name)
    if fmt is None:
        raise DTypeError(f"{format}: is no format of GGUF blocks. Use weight_from_planes.")
    rows, columns = shape
    expected = fmt.raw_bytes(rows, columns)
    where = (
        resolved(device)
        if device is not None
        else raw.device
        if isinstance(raw, Tensor)
        else get_default_device()
    )
    given = raw.numel() * raw.itemsize if isinstance(raw, Tensor) else memoryview(raw).nbytes
    if given < expected or (given != expected and not isinstance(raw, Tensor)):
        raise FormatError(
            f"{fmt.name}: a weight of shape ({rows}, {columns}) takes {expected} bytes, "
            f"and {given} are given. Give exactly the tensor's bytes."
        )
    if where.type == "cpu":
        data = (
            raw.numpy().reshape(-1).view(np.uint8)
            if isinstance(raw, Tensor)
            else np.frombuffer(raw, np.uint8)
        )
        words = repack_blocks(data[:expected], fmt, rows, columns)
        return Tensor(CpuStorage(words, "weight"), meta(shape, fmt.dtype, where), 0)
    if not isinstance(raw, Tensor) or raw.device is not where:
        data = raw.numpy() if isinstance(raw, Tensor) else np.frombuffer(raw, np.uint8)
        kind = "weight" if fmt.block == 1 else "activation"
        storage, offset = stream().upload(np.ascontiguousarray(data).reshape(-1).view(np.uint8), kind), 0
    else:
        storage, offset = raw._storage, raw._offset * raw.itemsize
    return _on_webgpu(storage, offset, fmt, rows, columns, where)


def weight_from_planes(planes: Sequence[Tensor], format: str | DType, shape: tuple[int, ...]) -> Tensor:
    """A quantized weight from its planes, on the device where these are.

    Args:
        planes: a tensor for each plane of the format, of any dtype but bfloat16, whose bytes are the plane's.
        format: a name of `FORMATS` such as ``"int8_rows"``, or its dtype.
        shape: (rows, columns), or of more axes, such as the kernels of a convolution: those after the first
            are the columns.

    Returns:
        A tensor of dtype ``format``, without gradient.

    Raises:
        FormatError: the number of planes or their bytes are not those of the shape.
        ShapeError: the format has no rows of so many columns.
        DTypeError: there is no such format.
        DeviceError: the weight is larger than a buffer of the device may be.

    Example:
        >>> import pellucid as torch
        >>> quants = torch.tensor([[1] * 32, [-2] * 32], dtype=torch.int8, device="cpu")
        >>> scales = torch.tensor([0.5, 2.0], device="cpu")
        >>> weight = weight_from_planes([quants, scales], "int8_rows", (2, 32))
        >>> weight.dequantize()[:, 0].tolist()
        [0.5, -4.0]
    """
    fmt = quant_format(format)
    rows, columns = shape[0], prod(shape[1:])
    layout = fmt.layout(rows, columns)
    wanted = [plane.rows(rows) * plane.row_bytes(layout.units) for plane in fmt.planes]
    given = [plane.numel() * plane.itemsize for plane in planes]
    if wanted != given:
        raise FormatError(
            f"{fmt.name}: the planes of a weight of shape ({rows}, {columns}) take {wanted} bytes, and those "
            f"given have {given}. Give one tensor for each of {', '.join(p.name for p in fmt.planes)}."
        )
    where = planes[0].device
    result = meta(tuple(shape), fmt.dtype, where)
    if where.type == "cpu":
        words = join_planes([plane.numpy() for plane in planes], fmt, rows, columns)
        return Tensor(CpuStorage(words, "weight"), result, 0)
    if layout.nbytes > largest_buffer():
        raise DeviceError(
            f"{fmt.name}: a weight of shape ({rows}, {columns}) takes {layout.nbytes} bytes, and a buffer of "
            f"this device may have {largest_buffer()}. Use a device with a larger "
            "maxStorageBufferBindingSize."
        )
    storage = Storage(layout.nbytes, "weight")
    for start, plane in zip(layout.starts, planes, strict=True):
        plane = plane.contiguous()
        if plane._offset * plane.itemsize % 4:
            plane = plane.clone()
        nbytes = -(-plane.numel() * plane.itemsize // 4) * 4
        stream().copy(plane._storage, storage, plane._offset * plane.itemsize, 4 * start, nbytes)
    return Tensor(storage, result, 0)


def planes_of(weight: Tensor) -> list[np.ndarray]:
    """The planes of a quantized weight: uint8 (rows, fields of a row, bytes of a field).

    Waits for the device.
    """
    fmt, columns = quant_format(weight.dtype), prod(weight.shape[1:])
    parts = []
    for chunk in row_chunks(moved(weight.detach(), "cpu")):
        words: Any = chunk._storage
        parts.append(split_planes(words.data.view(np.uint32).reshape(-1), fmt, chunk.shape[0], columns))
    return [
        each[0] if kind.shared or len(each) == 1 else np.concatenate(each)
        for kind, each in zip(fmt.planes, zip(*parts, strict=True), strict=True)
    ]


def quant_format(format: str | DType) -> QuantFormat:
    """The row of `FORMATS` of a name or dtype.

    Raises:
        DTypeError: there is none.
    """
    name = format.name if isinstance(format, DType) else format.lower()
    try:
        return FORMATS[name]
    except KeyError:
        raise DTypeError(f"there is no weight format {name!r}. There are {', '.join(FORMATS)}.") from None


def largest_buffer() -> int:
    """Bytes that a kernel can reach in one buffer of the webgpu device."""
    limits = stream().open().info.limits
    return min(limits["maxStorageBufferBindingSize"], limits["maxBufferSize"])


def _on_webgpu(raw: Storage, offset: int, fmt: BlockFormat, rows: int, columns: int, where: Device) -> Tensor:
    limit = largest_buffer()
    if fmt.block == 1 and columns % 32 == 0 and offset == 0 and raw.nbytes <= limit:
        return Tensor(raw, meta((rows, columns), fmt.dtype, where), 0)
    chunks = []
    for start, stop in _row_ranges(fmt, rows, columns, limit):
        count = stop - start
        layout = fmt.layout(count, columns)
        planes = Storage(layout.nbytes, "weight")
        if fmt.codebook:
            book = stream().upload(np.frombuffer(fmt.codebook, np.uint8), "activation")
            stream().copy(book, planes, 0, 4 * layout.starts[-1], len(fmt.codebook))
        target = Tensor(planes, meta((planes.nbytes // 4,), uint32, where), 0)
        for first, last in _pieces(fmt, start, stop, columns, raw.nbytes > limit):
            begin, size = offset + fmt.raw_bytes(first, columns), fmt.raw_bytes(last - first, columns)
            words = -(-size // 4)
            if raw.nbytes > limit:
                piece = Storage(4 * words)
                stream().copy(raw, piece, begin, 0, 4 * words)
                blocks = Tensor(piece, meta((words,), uint32, where), 0)
            else:
                blocks = Tensor(raw, meta((words,), uint32, where), begin // 4)
            repack_rows(target, blocks, fmt.name, count, columns, first - start, last - first)
        chunks.append(Tensor(planes, meta((count, columns), fmt.dtype, where), 0))
    if len(chunks) == 1:
        return chunks[0]
    return Tensor(RowStorage(chunks), meta((rows, columns), fmt.dtype, where), 0)


def _row_ranges(fmt: BlockFormat, rows: int, columns: int, limit: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose planes fit into a buffer of ``limit`` bytes."""
    most = rows
    if fmt.layout(rows, columns).nbytes > limit:
        most = limit * rows // fmt.layout(rows, columns).nbytes // _STEP * _STEP
        while most and fmt.layout(most, columns).nbytes > limit:
            most -= _STEP
        if not most:
            raise ShapeError(
                f"{fmt.name}: {_STEP} rows of {columns} columns are over the device's limit of {limit} bytes "
                "a buffer. Use a device with a larger maxStorageBufferBindingSize."
            )
    for start in range(0, rows, most):
        yield start, min(start + most, rows)


def _pieces(fmt: BlockFormat, start: int, stop: int, columns: int, split: bool) -> Iterator[tuple[int, int]]:
    """Ranges of rows that are repacked at once."""
    step = max(_PIECE // fmt.raw_bytes(1, columns) // _STEP, 1) * _STEP if split else stop - start
    for first in range(start, stop, step):
        yield first, min(first + step, stop)


__all__ = ["dequantize", "largest_buffer", "quant_format", "weight_from_blocks", "weight_from_planes"]
