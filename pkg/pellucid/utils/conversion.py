"""``pellucid.convert``: weights from one format to another, one tensor in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any

import numpy as np

from .. import weights
from ..device.steps import now
from ..errors import ArgumentError, DTypeError
from ..ops.quant.products import dequantize
from ..ops.shape.creation import empty
from ..quant.format import BLOCK_FORMATS
from ..quant.weight import weight_from_blocks
from ..tensors.construct import tensor
from ..tensors.dtypes import NAMES, DType, bfloat16, float16, float32
from ..tensors.tensor import Tensor
from ..weights.progress import Meter
from ..weights.saving import save_tensors
from .npz import save_npz

__all__ = ["FLOATS", "convert"]

FLOATS = {"float32": float32, "float16": float16, "bfloat16": bfloat16}
# What a GGUF calls these.
_HALVES = {"float16": "f16", "bfloat16": "bf16"}
_Tell = Callable[[weights.Progress], None]


def convert(
    source: Any,
    target: str | PathLike,
    *,
    dtype: str | None = None,
    format: str | Mapping[str, str | None] | None = None,
    overwrite: bool = False,
    on_progress: _Tell | None = None,
) -> int:
    """Write the weights of a file or of a model to another format, one tensor in memory at a time.

    A target that ends in ``.gguf`` is a whole model with its tokenizer, as `save_gguf` of a loaded one writes
    it: the source is a folder with ``config.json``, or another GGUF. Others are tensors by the names that
    they have; with a ``format`` they are encoded as `pellucid.weights.quantize` does.

    Args:
        source: what `pellucid.weights.open` reads: safetensors, a GGUF, a file of ``torch.save`` or numpy, an
            index, a folder; a path or a URL.
        target: a path that ends in ``.gguf``, ``.safetensors`` or ``.npz``; with a ``format`` also a folder.
        dtype: "float32", "float16" or "bfloat16" for all floats; quantized tensors need one, but in a GGUF.
        format: of matrices, such as "q4_k", or formats by patterns of names.
        overwrite: whether a file that is there may go.
        on_progress: called with a `pellucid.weights.Progress` for every tensor.

    Returns:
        How many tensors were written.

    Raises:
        ArgumentError: the target is of another format, or there already; or a GGUF cannot say what the model
            is.
        DTypeError: a tensor is quantized and no ``dtype`` was given, or the target has no such dtype.
        FormatError, SourceError: the source cannot be read, or its tokenizer has no place in a GGUF.

    Example:
        >>> import pellucid
        >>> pellucid.convert("SmolLM2-135M", "small.gguf", format="q8_0")  # doctest: +SKIP
        >>> pellucid.convert("model.gguf", "model.safetensors", dtype="float16")  # doctest: +SKIP
    """
    name = fspath(target)
    ending = os.path.splitext(name)[1]
    if ending not in (".gguf", ".safetensors", ".npz") and (ending or format is None):
        raise ArgumentError(
            f"convert: {name!r} must end in .gguf, .safetensors or .npz; with format= it may be a folder."
        )
    if os.path.isfile(name) and not overwrite:
        raise ArgumentError(f"convert: {name!r} is there. Give another name, or overwrite=True (--force).")
    if dtype is not None and dtype not in FLOATS:
        raise ArgumentError(f"convert: dtype is {dtype!r}; there are {', '.join(FLOATS)}.")
    if dtype is not None and format is not None:
        raise ArgumentError("convert: give dtype= or format=, not both.")
    if ending == ".gguf":
        wanted = _HALVES.get(dtype, dtype) if dtype is not None else format
        return _to_gguf(source, name, wanted, on_progress)
    if format is not None:
        if ending == ".npz":
            raise ArgumentError(
                "convert: npz has no quantized weights. Give a target of .gguf or .safetensors."
            )
        return len(weights.quantize(source, name, format))
    tensors = _Tensors(weights.open(source), None if dtype is None else FLOATS[dtype], on_progress)
    try:
        if ending == ".safetensors":
            save_tensors(tensors.kinds, name, tensors.read)
            return len(tensors.kinds)
        if halves := [key for key, kind in tensors.kinds.items() if kind.dtype is bfloat16]:
            raise DTypeError(f"convert: {halves[0]} is bfloat16, which npz does not have. Give dtype=.")
        save_npz(name, ((key, tensors.read(key).numpy()) for key in tensors.kinds))
        return len(tensors.kinds)
    finally:
        tensors.checkpoint.close()


class _Tensors:
    """The tensors of a checkpoint in the types that they become, read one at a time.

    Attributes:
        kinds: by name, on the device ``meta``.
    """

    def __init__(self, checkpoint: weights.Checkpoint, dtype: DType | None, tell: _Tell | None):
        self.checkpoint, self._tell, self._done = checkpoint, tell, 0
        self._meter = Meter(checkpoint.nbytes)
        self.kinds = {
            name: empty(info.shape, dtype=_becomes(checkpoint.name, info, dtype), device="meta")
            for name, info in checkpoint.items()
        }

    def read(self, name: str) -> Tensor:
        """A tensor on the device ``cpu``. Waits for the file."""
        info = self.checkpoint[name]
        (raw,) = weights.read(self.checkpoint, [info])
        self._done += info.nbytes
        if self._tell is not None:
            self._tell(self._meter.at(self._done, name))
        return _tensor(info, raw).to(self.kinds[name].dtype)


def _becomes(where: str, info: weights.TensorInfo, dtype: DType | None) -> DType:
    """The dtype of a tensor in the new file."""
    kind = NAMES.get(info.dtype)
    if kind is None or not (info.dtype in BLOCK_FORMATS or kind.numpy is not None):
        raise DTypeError(f"{where}: {info.name} is of {info.dtype}, which is no dtype here.")
    if kind.is_quantized and dtype is None:
        raise DTypeError(
            f"{where}: {info.name} is {info.dtype}. Say by dtype= (--dtype) which floats it becomes."
        )
    return dtype if dtype is not None and (kind.is_quantized or kind.is_floating_point) else kind


def _tensor(info: weights.TensorInfo, raw: np.ndarray) -> Tensor:
    if info.dtype in BLOCK_FORMATS:
        matrix = (info.numel // info.shape[-1], info.shape[-1])
        return dequantize(weight_from_blocks(raw, info.dtype, matrix, device="cpu")).reshape(info.shape)
    kind = NAMES[info.dtype]
    assert kind.numpy is not None  # `_becomes` saw to it
    if kind is bfloat16:
        array = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        array = raw.view(kind.numpy)
    return tensor(array.reshape(info.shape), dtype=kind, device="cpu")


def _to_gguf(
    source: Any, target: str, format: str | Mapping[str, str | None] | None, tell: _Tell | None
) -> int:
    """A model as a GGUF, with its tokenizer."""
    from ..models import sentence
    from ..models.gguf_saving import save_gguf
    from ..models.unloaded import open_unloaded
    from ..text import AutoTokenizer

    folder = weights.open_folder(source)
    try:
        opened = now(open_unloaded(folder))
        is_folder = folder.checkpoint.format != "gguf"
        has_tokenizer = is_folder and folder.read("tokenizer.json") is not None
        tokenizer = AutoTokenizer.from_pretrained(folder) if has_tokenizer else None
        meter, done = Meter(opened.nbytes), 0

        def read(path: str) -> Tensor:
            nonlocal done
            if tell is not None:
                done += opened.nbytes_of(path)
                tell(meter.at(min(done, opened.nbytes), path))
            return opened.read(path)

        model = opened.model
        known = now(sentence.modules(folder, sentence.GGUF_POOLING.values())) if is_folder else None
        keys = sentence.gguf_keys(known) if known is not None else None
        return len(save_gguf(model, model.gguf_reader(), target, format, tokenizer, read, keys))
    finally:
        folder.close()
