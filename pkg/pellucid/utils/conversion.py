"""``pellucid.convert``: files of weights from one format to another."""

from __future__ import annotations

import os
from collections.abc import Callable
from os import PathLike, fspath
from typing import Any

import numpy as np

from .. import weights
from ..errors import ArgumentError, DTypeError
from ..ops.quant.products import dequantize
from ..quant.format import BLOCK_FORMATS
from ..quant.weight import weight_from_blocks
from ..tensors.construct import tensor
from ..tensors.dtypes import NAMES, bfloat16, float16, float32
from ..tensors.tensor import Tensor
from ..weights.progress import Meter
from ..weights.saving import save_file
from .npz import save_npz

__all__ = ["FLOATS", "convert"]

FLOATS = {"float32": float32, "float16": float16, "bfloat16": bfloat16}


def convert(
    source: Any,
    target: str | PathLike,
    *,
    dtype: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[weights.Progress], None] | None = None,
) -> int:
    """Write the tensors of a file to another format.

    Args:
        source: what `pellucid.weights.open` reads: safetensors, a GGUF, a file of ``torch.save`` or numpy, an
            index, a folder; a path or a URL.
        target: a path that ends in ``.safetensors`` or ``.npz``.
        dtype: "float32", "float16" or "bfloat16" for all floats; quantized tensors need one.
        overwrite: whether a file that is there may go.
        on_progress: called with a `pellucid.weights.Progress` for every tensor.

    Returns:
        How many tensors were written.

    Raises:
        ArgumentError: the target is of another format, or there already.
        DTypeError: a tensor is quantized and no ``dtype`` was given, or the target has no such dtype.
        FormatError, SourceError: the source cannot be read.

    Example:
        >>> import pellucid
        >>> pellucid.convert("model.gguf", "model.safetensors", dtype="float16")  # doctest: +SKIP
    """
    name = fspath(target)
    if not name.endswith((".safetensors", ".npz")):
        raise ArgumentError(
            f"convert: {name!r} must end in .safetensors or .npz. A model becomes a GGUF by its save_gguf()."
        )
    if os.path.exists(name) and not overwrite:
        raise ArgumentError(f"convert: {name!r} is there. Give another name, or overwrite=True.")
    if dtype is not None and dtype not in FLOATS:
        raise ArgumentError(f"convert: dtype is {dtype!r}; there are {', '.join(FLOATS)}.")
    tensors = {
        key: t.to(FLOATS[dtype]) if dtype is not None and t.dtype.is_floating_point else t
        for key, t in _read(source, dtype, on_progress).items()
    }
    if name.endswith(".safetensors"):
        save_file(tensors, name)
        return len(tensors)
    if halves := [key for key, t in tensors.items() if t.dtype is bfloat16]:
        raise DTypeError(f"convert: {halves[0]} is bfloat16, which npz does not have. Give dtype=.")
    save_npz(name, {key: t.numpy() for key, t in tensors.items()})
    return len(tensors)


def _read(source: Any, dtype: str | None, on_progress: Callable | None) -> dict[str, Tensor]:
    checkpoint = weights.open(source)
    meter, done = Meter(checkpoint.nbytes), 0
    found = {}
    try:
        for info in checkpoint.values():
            (raw,) = weights.read(checkpoint, [info])
            found[info.name] = _tensor(checkpoint.name, info, raw, dtype)
            done += info.nbytes
            if on_progress is not None:
                on_progress(meter.at(done, info.name))
    finally:
        checkpoint.close()
    return found


def _tensor(where: str, info: weights.TensorInfo, raw: np.ndarray, dtype: str | None) -> Tensor:
    kind = NAMES.get(info.dtype)
    if kind is not None and kind.is_quantized and info.dtype in BLOCK_FORMATS:
        if dtype is None:
            raise DTypeError(f"{where}: {info.name} is {info.dtype}. Say by dtype= which floats it becomes.")
        matrix = (info.numel // info.shape[-1], info.shape[-1])
        return dequantize(weight_from_blocks(raw, info.dtype, matrix, device="cpu")).reshape(info.shape)
    if kind is None or kind.numpy is None:
        raise DTypeError(f"{where}: {info.name} is of {info.dtype}, which is no dtype here.")
    if kind is bfloat16:
        array = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        array = raw.view(kind.numpy)
    return tensor(array.reshape(info.shape), dtype=kind, device="cpu")
